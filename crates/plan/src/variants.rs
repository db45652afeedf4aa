//! `[workload.X.variant.NAME]`: what the variants of a workload change in it.

use std::collections::HashMap;

use crate::diagnostic::Diagnostic;
use crate::kinds::bad_name;
use crate::reader::{Context, table_of};
use crate::spec::{Resolved, Variant, Workload};
use crate::tree::{Entry, Node, Table, Value};

/// The keys of a workload whose own keys are changed one by one.
const NESTED: [&str; 2] = ["step", "test"];

/// How a workload is read from its table.
pub(crate) trait Reader {
    /// Its table's path, `workload.X`.
    const PATH: &'static str;

    /// Reads the table; `clients_most` is the largest number of clients that the plan has, if that is known.
    fn read(cx: &mut Context<'_>, node: Node, clients_most: Option<u32>) -> Option<Workload>;
}

/// Reads a workload with its variants; without any there is one, without a name. What all share has to be
/// a workload by itself.
pub(crate) fn read<R: Reader>(
    cx: &mut Context<'_>,
    mut node: Node,
    clients_most: Option<u32>,
) -> Option<Vec<Variant>> {
    let declared = match &mut node.value {
        Value::Table(table) => table.take("variant"),
        _ => None,
    };
    let shared = node.clone();
    let noted = cx.resolved.len();
    let workload = R::read(cx, node, clients_most);
    let Some(declared) = declared else {
        return Some(vec![Variant {
            name: None,
            workload: workload?,
        }]);
    };
    let variants_path = format!("{}.variant", R::PATH);
    let table = table_of(cx, &variants_path, declared.node)?;
    if table.entries.is_empty() {
        let message = format!("`{variants_path}` is empty");
        let help = format!("leave it out, or name a variant: `[{variants_path}.NAME]`");
        cx.report(
            Diagnostic::error("plan::empty-list", declared.key_place, message)
                .label("nothing to measure")
                .help(help),
        );
    }
    let mut variants = Vec::new();
    for entry in table.entries {
        let name_is_bad = bad_name(
            "a variant has a name that cannot be used",
            &entry.key,
            entry.key_place,
        );
        cx.diagnostics.extend(name_is_bad);
        let path = format!("{variants_path}.{}", entry.key);
        let (name, place) = (Some(entry.key), entry.key_place);
        let Some(mut changes) = table_of(cx, &path, entry.node) else {
            continue;
        };
        if let Some(nested) = changes.take("variant") {
            let message = format!("unknown key `variant` in `[{path}]`");
            cx.report(
                Diagnostic::error("plan::unknown-key", nested.key_place, message)
                    .label("a variant has no variants")
                    .help(format!("put them side by side: `[{variants_path}.NAME]`")),
            );
        }
        let before = cx.resolved.len();
        let workload = changed::<R>(cx, &shared, changes, &path, noted, clients_most);
        if cx.resolved.len() == before {
            cx.resolve(path, "{}".to_owned(), place);
        }
        variants.extend(workload.map(|workload| Variant { name, workload }));
    }
    workload.map(|_| variants)
}

/// The shared workload with a variant's changes. Of its values only those are noted that are not as in the shared one,
/// whose notes begin at `noted`.
fn changed<R: Reader>(
    cx: &mut Context<'_>,
    shared: &Node,
    changes: Table,
    path: &str,
    noted: usize,
    clients_most: Option<u32>,
) -> Option<Workload> {
    let mut node = shared.clone();
    if let Value::Table(table) = &mut node.value {
        put_over(table, changes, 0);
    }
    let (diagnostics, resolved) = (cx.diagnostics.len(), cx.resolved.len());
    let workload = R::read(cx, node, clients_most);
    // What is wrong with the shared values was said.
    let news = cx.diagnostics.split_off(diagnostics);
    for diagnostic in news {
        if !cx.diagnostics.contains(&diagnostic) {
            cx.report(diagnostic);
        }
    }
    let mut changed = cx.resolved.split_off(resolved);
    let shared: HashMap<&str, &Resolved> = cx.resolved[noted..]
        .iter()
        .map(|value| (value.key.as_str(), value))
        .collect();
    changed.retain(|value| shared.get(value.key.as_str()) != Some(&value));
    for mut value in changed {
        let rest = value.key.strip_prefix(R::PATH).unwrap_or("");
        value.key = format!("{path}{rest}");
        cx.resolved.push(value);
    }
    workload
}

/// Puts changes over a workload's table; `depth` is 0 there, and 1 in its tables [`NESTED`].
fn put_over(table: &mut Table, changes: Table, depth: u32) {
    for change in changes.entries {
        let is_nested = depth == 1 || depth == 0 && NESTED.contains(&change.key.as_str());
        let existing = table.get_mut(&change.key).map(|it| &mut it.node.value);
        match (existing, change.node.value) {
            (Some(Value::Table(existing)), Value::Table(changes)) if is_nested => {
                put_over(existing, changes, depth + 1);
            }
            (_, value) => table.put(Entry {
                node: Node {
                    value,
                    ..change.node
                },
                ..change
            }),
        }
    }
}
