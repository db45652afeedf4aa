//! Reads `[workload.X.variant.NAME]`: what each variant changes in its workload.

use std::collections::HashMap;

use crate::reading::context::{Context, table_of};
use crate::reading::value_kinds::check_name;
use crate::spec::{Resolved, Variant, Workload};
use crate::text::tree::{Entry, Node, Table, Value};

/// The tables of a workload whose keys a variant changes one by one.
const NESTED: [&str; 2] = ["step", "test"];

/// Reads the workload at `path`, and calls `read_one` for each of its variants. A workload without
/// variants is read as one variant without a name. The part that all variants share must be a valid
/// workload.
pub(crate) fn read(
    cx: &mut Context<'_>,
    path: &str,
    mut node: Node,
    read_one: impl Fn(&mut Context<'_>, Node) -> Option<Workload>,
) -> Option<Vec<Variant>> {
    let declared = match &mut node.value {
        Value::Table(table) => table.take("variant"),
        _ => None,
    };

    let shared = node.clone();
    let noted = cx.resolved.len();
    let workload = read_one(cx, node);
    let Some(declared) = declared else {
        return Some(vec![Variant { name: None, workload: workload?, alone: None }]);
    };

    let variants_path = format!("{path}.variant");
    let table = table_of(cx, &variants_path, declared.node)?;
    if table.entries.is_empty() {
        let message = format!("`{variants_path}` has no variants");
        let help = format!("remove it, or add a variant: `[{variants_path}.NAME]`");
        cx.error("plan::empty-list", declared.key_place, message)
            .label("nothing to measure")
            .help(help);
    }

    let mut variants = Vec::new();
    for entry in table.entries {
        check_name(cx, "invalid name of a variant", &entry.key, entry.key_place);
        let variant_path = format!("{variants_path}.{}", entry.key);
        let Some(mut changes) = table_of(cx, &variant_path, entry.node) else {
            continue;
        };

        if let Some(nested) = changes.take("variant") {
            let message = format!("unknown key `variant` in `[{variant_path}]`");
            cx.error("plan::unknown-key", nested.key_place, message)
                .label("variants cannot be nested")
                .help(format!("declare it next to the others: `[{variants_path}.NAME]`"));
        }

        let before = cx.resolved.len();
        let workload = changed(cx, &shared, changes, noted, &read_one);

        // Listings show a variant's values below its own table.
        for value in &mut cx.resolved[before..] {
            let key = value.key.strip_prefix(path).unwrap_or("");
            value.key = format!("{variant_path}{key}");
        }
        if cx.resolved.len() == before {
            cx.resolve(variant_path, "{}".to_owned(), entry.key_place);
        }

        variants.extend(workload.map(|workload| Variant {
            name: Some(entry.key),
            workload,
            alone: None,
        }));
    }
    workload.map(|_| variants)
}

/// Reads the shared workload with a variant's changes. Notes only values that differ from those of
/// the shared workload, whose notes begin at `noted`.
fn changed(
    cx: &mut Context<'_>,
    shared: &Node,
    changes: Table,
    noted: usize,
    read_one: impl Fn(&mut Context<'_>, Node) -> Option<Workload>,
) -> Option<Workload> {
    let mut node = shared.clone();
    if let Value::Table(table) = &mut node.value {
        override_table(table, changes, 0);
    }

    let (diagnostics, resolved) = (cx.diagnostics.len(), cx.resolved.len());
    let workload = read_one(cx, node);

    // Errors in the shared values are already reported.
    for diagnostic in cx.diagnostics.split_off(diagnostics) {
        if !cx.diagnostics.contains(&diagnostic) {
            cx.diagnostics.push(diagnostic);
        }
    }

    let mut changed = cx.resolved.split_off(resolved);
    let shared: HashMap<&str, &Resolved> =
        cx.resolved[noted..].iter().map(|value| (value.key.as_str(), value)).collect();
    changed.retain(|value| shared.get(value.key.as_str()) != Some(&value));
    cx.resolved.extend(changed);
    workload
}

/// Applies changes to a workload's table; `depth` is 0 there, and 1 in its [`NESTED`] tables.
pub(crate) fn override_table(table: &mut Table, changes: Table, depth: u32) {
    for change in changes.entries {
        let is_nested = depth == 1 || depth == 0 && NESTED.contains(&change.key.as_str());
        let existing = table.get_mut(&change.key).map(|entry| &mut entry.node.value);
        match (existing, change.node.value) {
            (Some(Value::Table(existing)), Value::Table(changes)) if is_nested => {
                override_table(existing, changes, depth + 1);
            }
            (_, value) => table.put(Entry { node: Node { value, ..change.node }, ..change }),
        }
    }
}
