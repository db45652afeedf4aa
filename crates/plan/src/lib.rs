//! The text of a plan -> targets, workloads and cells, or diagnostics with line and column. No I/O.
//!
//! [`parse`] goes in steps: `document` takes the text apart and keeps the place of every value, `overrides` puts
//! `--set` arguments over it, and `insert`, `kv`, `sysbench`, `builds`, `configs` and `targets` read what they know through `reader`
//! and the `kinds` of values, which say what is wrong with a value and note each with its origin. Nothing stops at the
//! first error.

mod builds;
mod configs;
mod diagnostic;
mod document;
mod insert;
mod kinds;
mod kv;
mod order;
mod overrides;
mod quantity;
mod reader;
mod redact;
mod render;
mod spec;
mod step;
pub mod sysbench;
mod targets;
mod terms;
mod tree;
mod variants;
mod wording;

pub use diagnostic::{Diagnostic, Place, Severity, Span};
pub use redact::redact;
pub use render::render;
pub use spec::*;

use std::time::Duration;

use insert::InsertReader;
use kinds::{Choice, Count, Flag, Line, ListOf, Name, Optional, SmallCount, Time, is_name};
use kv::KvReader;
use reader::{Context, Field, Kind, Section};
use sysbench::SysbenchReader;
use wording::code;

/// The plan that is run when none is given; its path is [`DEFAULT_PLAN_PATH`].
pub const DEFAULT_PLAN: &str = include_str!("default.toml");

/// What stands in place of a path for [`DEFAULT_PLAN`].
pub const DEFAULT_PLAN_PATH: &str = "built-in plan";

const KEYS: [&str; 15] = [
    "name",
    "clients",
    "repeats",
    "order",
    "base",
    "against-itself",
    "seed",
    "data-dir",
    "keep-data",
    "server-timeout",
    "server-user",
    "workload",
    "build",
    "config",
    "target",
];
const WORKLOAD_KEYS: [&str; 3] = ["insert", "kv", "sysbench"];

/// More clients than any machine serves.
const CLIENTS_MOST: u32 = 10_000;
const REPEATS_MOST: u32 = 1_000;

/// Codes of what is wrong with one key or value, whatever the rest of the plan says.
const LOCAL_CODES: [&str; 12] = [
    "plan::bad-expression",
    "plan::bad-name",
    "plan::bad-number",
    "plan::bad-sql",
    "plan::bad-text",
    "plan::bad-unit",
    "plan::bad-url",
    "plan::out-of-range",
    "plan::unknown-key",
    "plan::unknown-step",
    "plan::unknown-value",
    "plan::wrong-type",
];

/// Understands a plan. `path` is where its text came from, for messages and for the name of a plan that has none;
/// `sets` are the arguments of `--set`, put over the text in their order. With the plan come warnings.
///
/// # Errors
/// Everything that is wrong with it, warnings included, sorted by position; at least one is an error.
pub fn parse(
    path: &str,
    text: &str,
    sets: &[String],
) -> Result<(Plan, Vec<Diagnostic>), Vec<Diagnostic>> {
    let document = document::read(text);
    let mut root = document.root;
    let mut cx = Context::new(text);
    cx.diagnostics = document.diagnostics;
    overrides::apply(&mut root, sets, &mut cx.diagnostics);
    let before = cx.diagnostics.len();
    let plan = read(&mut cx, path, root);

    let mut diagnostics = cx.diagnostics;
    if let Some(lost_at) = document.lost_at {
        // What the parser did not find may be there all the same.
        let mut index = 0;
        diagnostics.retain(|diagnostic| {
            index += 1;
            let is_seen = match diagnostic.place {
                Place::File(span) => span.end < lost_at,
                Place::Set { .. } => true,
                Place::Nowhere => false,
            };
            index <= before || is_seen && LOCAL_CODES.contains(&diagnostic.code)
        });
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.place);
    match plan {
        Some(plan)
            if diagnostics
                .iter()
                .all(|diagnostic| diagnostic.severity == Severity::Warning) =>
        {
            Ok((plan, diagnostics))
        }
        _ => Err(diagnostics),
    }
}

/// Reads all of a plan. What could not be read is reported; `None` only when there is nothing to go on with.
fn read(cx: &mut Context<'_>, path: &str, root: tree::Table) -> Option<Plan> {
    let mut section = Section::new(cx, "", root, Place::Nowhere, &KEYS);
    let section = &mut section;
    let name = cx.field(section, "name", &Name, name_from(path));
    let clients = ListOf(SmallCount(1..=CLIENTS_MOST), "a list of counts");
    let clients = cx.field(section, "clients", &clients, vec![(1, Place::Nowhere)]);
    let repeats = cx.field(section, "repeats", &SmallCount(1..=REPEATS_MOST), 1);
    let order = Choice(&[
        ("interleaved", Order::Interleaved),
        ("grouped", Order::Grouped),
    ]);
    let order = cx.field(section, "order", &order, Order::Interleaved);
    let base_entry = section.take("base");
    let twin_entry = section.take("against-itself");
    let base_at = cx.resolved.len();
    let seed = cx.field(section, "seed", &Count(0..=u64::MAX), 1);
    let data_dir = cx.field(
        section,
        "data-dir",
        &Optional(Line, "(beside the results)"),
        None,
    );
    let keep_data = cx.field(section, "keep-data", &Flag, false);
    let timeout = Time(Duration::from_secs(1)..=Duration::from_secs(24 * 3600));
    let server_timeout = cx.field(
        section,
        "server-timeout",
        &timeout,
        Duration::from_secs(120),
    );
    let server_user = cx.field(
        section,
        "server-user",
        &Optional(Line, "(chosen when needed)"),
        None,
    );

    let clients_most = clients
        .value
        .iter()
        .map(|(clients, _)| *clients)
        .max()
        .filter(|_| clients.trusted);
    let variants = workload(cx, section, clients_most);
    let builds = builds::read(cx, section.take("build"));
    let mut engines: Vec<Engine> = Vec::new();
    for (build, _) in &builds.value {
        if !engines.contains(&build.engine) {
            engines.push(build.engine);
        }
    }
    let configs = configs::read(cx, section.take("config"), &engines);
    let parts = targets::Parts {
        builds: &builds.value,
        configs: &configs.value,
    };
    let target_entry = section.take("target");
    // Names that failed to be read would be reported again as unknown.
    let targets = if builds.trusted && configs.trusted {
        targets::read(cx, target_entry, &parts)
    } else {
        Field {
            value: Vec::new(),
            place: Place::Nowhere,
            trusted: false,
        }
    };
    let against_itself = twin_entry.is_some();
    // What a plan says of all its targets is not wrong where only one of them is measured.
    if targets.trusted && !against_itself {
        targets::report_unused(cx, &parts, &targets.value);
    }
    check_engines(cx, variants.as_deref(), &builds.value);
    let targets = match &twin_entry {
        Some(entry) => targets::against_itself(cx, entry, &targets, base_at),
        None => targets,
    };
    let measured = measured(cx, variants.as_deref(), &builds.value, &targets.value);
    let base_entry = base_entry.filter(|_| !against_itself);
    let base = base(cx, base_entry, &targets, measured, base_at);

    Some(Plan {
        name: name.value,
        clients: clients
            .value
            .into_iter()
            .map(|(clients, _)| clients)
            .collect(),
        repeats: repeats.value,
        order: order.value,
        base: base?,
        against_itself,
        seed: seed.value,
        data_dir: data_dir.value,
        keep_data: keep_data.value,
        server_timeout: server_timeout.value,
        server_user: server_user.value,
        variants: variants?,
        builds: builds.value.into_iter().map(|(build, _)| build).collect(),
        configs: configs
            .value
            .into_iter()
            .map(|declared| declared.config)
            .collect(),
        targets: targets.value,
        resolved: std::mem::take(&mut cx.resolved),
    })
}

/// The name of a plan that has none: its file's, without what can't be in a name.
fn name_from(path: &str) -> String {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = file.split('.').next().unwrap_or(file);
    let name: String = stem
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        })
        .take(64)
        .collect();
    if is_name(&name) {
        name
    } else {
        "plan".to_owned()
    }
}

fn workload(
    cx: &mut Context<'_>,
    section: &mut Section,
    clients_most: Option<u32>,
) -> Option<Vec<Variant>> {
    const HELP: &str = "add a table `[workload.insert]`, the Insert Benchmark, `[workload.sysbench]`, the sysbench \
         microbenchmarks, or `[workload.kv]`, the key-value sequence; all their keys have defaults";
    let missing = |place| {
        Diagnostic::error("plan::missing-key", place, "the plan has no workload").help(HELP)
    };
    let Some(entry) = section.take("workload") else {
        cx.report(missing(Place::Nowhere));
        return None;
    };
    let errors = cx.diagnostics.len();
    let mut workload = Section::of(cx, "workload", entry.node, &WORKLOAD_KEYS)?;
    let mut given: Vec<(&str, tree::Entry)> = WORKLOAD_KEYS
        .into_iter()
        .filter_map(|name| Some((name, workload.take(name)?)))
        .collect();
    given.sort_by_key(|(_, entry)| entry.key_place);
    let mut given = given.into_iter();
    let Some((name, entry)) = given.next() else {
        // An unknown key was probably meant to be one.
        if cx.diagnostics.len() == errors {
            cx.report(missing(entry.key_place).label("nothing in it"));
        }
        return None;
    };
    if let Some((other, second)) = given.next() {
        cx.report(
            Diagnostic::error(
                "plan::conflict",
                second.key_place,
                format!("`workload.{name}` and `workload.{other}` exclude each other"),
            )
            .label("a plan has one workload")
            .also(entry.key_place, "the other")
            .help("make two plans of it"),
        );
        return None;
    }
    match name {
        "insert" => variants::read::<InsertReader>(cx, entry.node, clients_most),
        "kv" => variants::read::<KvReader>(cx, entry.node, clients_most),
        _ => variants::read::<SysbenchReader>(cx, entry.node, clients_most),
    }
}

/// Reports builds that the workload can't run on.
fn check_engines(cx: &mut Context<'_>, variants: Option<&[Variant]>, builds: &[(Build, Place)]) {
    let Some(variant) = variants.and_then(<[Variant]>::first) else {
        return;
    };
    for (build, place) in builds {
        let (workload, why, help) = match (&variant.workload, build.engine == Engine::RocksDb) {
            (Workload::Kv(_), false) => (
                "key-value sequence does",
                "has no keys and values",
                "it runs on builds of `rocksdb`; for others use `[workload.insert]`",
            ),
            (Workload::Sysbench(_), true) => (
                "sysbench microbenchmarks do",
                "has no SQL",
                "they run on servers and SQLite; for RocksDB use `[workload.kv]` or `[workload.insert]`",
            ),
            _ => continue,
        };
        let engine = builds::engine_name(build.engine);
        cx.report(
            Diagnostic::error(
                "plan::conflict",
                *place,
                format!("the {workload} not run on build {}", code(&build.name)),
            )
            .label(format!("{} {why}", code(engine)))
            .help(help),
        );
    }
}

/// The index of the first target that has cells; 0 where none has any, which is reported.
fn measured(
    cx: &mut Context<'_>,
    variants: Option<&[Variant]>,
    builds: &[(Build, Place)],
    targets: &[Target],
) -> usize {
    let mut refused = None;
    for (index, target) in targets.iter().enumerate() {
        let (build, place) = &builds[target.build];
        for variant in variants.unwrap_or_default() {
            match variant.workload.not_applicable_to(build.engine) {
                None => return index,
                Some(why) => refused = refused.or(Some((*place, why))),
            }
        }
    }
    if let Some((place, why)) = refused {
        cx.report(
            Diagnostic::error(
                "plan::conflict",
                place,
                "no target's engine can run the workload: nothing would be measured",
            )
            .label(why)
            .help("leave out what it can't do, or add a target that can"),
        );
    }
    0
}

/// The index of the base target, noted at `at`; that of `first` where the plan does not say.
fn base(
    cx: &mut Context<'_>,
    entry: Option<tree::Entry>,
    targets: &Field<Vec<Target>>,
    first: usize,
    at: usize,
) -> Option<usize> {
    let (index, place) = match entry {
        None => (first, Place::Nowhere),
        Some(entry) => {
            let index = targets::named(cx, "base", &entry, targets)?;
            (index, entry.node.place)
        }
    };
    let value = Line.show(&targets.value.get(index)?.name);
    let origin = cx.origin(place);
    cx.resolved.insert(
        at,
        Resolved {
            key: "base".to_owned(),
            value,
            origin,
            place,
        },
    );
    Some(index)
}
