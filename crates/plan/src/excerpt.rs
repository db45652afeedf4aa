//! Cuts a plan down to two targets and one step, as a plan of its own.
//!
//! The excerpt is made of the plan's tree, so it has no comment of the plan. Each config is written
//! with all that it extends, and without its files: their options come before those of `set`.

use std::collections::{BTreeMap, HashSet};

use crate::compared::host_metrics::{HOST_DISKS, HOST_METRICS};
use crate::reading::context::Context;
use crate::reading::document;
use crate::reading::overrides;
use crate::spec::{
    Designed, ENV, Insert, InsertStepKind, Plan, Reuse, Sysbench, SysbenchStepKind, Transactions,
    TransactionsStepKind, Workload,
};
use crate::text::diagnostic::Place;
use crate::text::tree::{Entry, Node, Table, Value};
use crate::text::wording::{key_part, quoted};
use crate::workloads::variants;

/// The part of a plan that an excerpt keeps.
#[derive(Clone, Debug)]
pub struct Excerpt<'a> {
    /// The name of the new plan.
    pub name: &'a str,
    /// The names of the targets; the first one is the base.
    pub targets: [&'a str; 2],
    /// The number of clients.
    pub clients: u32,
    /// The variant of the workload, if the plan has variants.
    pub variant: Option<&'a str>,
    /// The steps, such as those of [`Workload::steps_to_reach`].
    pub steps: Vec<String>,
    /// The number of repeats.
    pub repeats: u32,
    /// The sources of builds that the new plan names in another way than the plan, by the build's
    /// name.
    pub sources: BTreeMap<String, String>,
    /// The options in the files of each target's config, in their order.
    pub file_options: [Vec<(String, String)>; 2],
    /// The dotted keys of options of configs that the new plan leaves out.
    pub left_out: Vec<String>,
    /// Each cell is measured once more with a profiler.
    pub is_profiled: bool,
    /// The work of each target is counted.
    pub is_exact: bool,
}

/// Keys of the plan that an excerpt takes as they are. Others name places of the machine, or are
/// written anew.
const KEPT_KEYS: [&str; 6] = ["order", "turns", "idle", "placement", "seed", "server-timeout"];

/// The key of a config that says what becomes of options that a version of RocksDB lacks.
const UNKNOWN_OPTIONS: &str = "unknown-options";

/// The address on which servers listen if the plan says that they listen.
const LISTEN: &str = "127.0.0.1";

impl Workload {
    /// Returns the step and those before it that shape the data it finds: all but those that only
    /// read. Warm-ups that results don't show count as part of what they prepare. Empty if the
    /// workload lacks the step.
    pub fn steps_to_reach(&self, step: &str) -> Vec<String> {
        let steps = match self {
            Self::Insert(insert) => insert_steps(insert),
            Self::Kv(kv) => {
                let steps = kv.steps.iter();
                steps.map(|step| (&step.name, !step.kind.only_reads())).collect()
            }
            Self::Sysbench(sysbench) => sysbench_steps(sysbench),
            Self::Transactions(transactions) => transactions_steps(transactions),
        };

        let Some(last) = steps.iter().position(|(name, _)| *name == step) else {
            return Vec::new();
        };

        let before = steps[..last].iter().filter(|(_, is_needed)| *is_needed);
        before.chain([&steps[last]]).map(|(name, _)| (*name).clone()).collect()
    }
}

/// Returns the name of each step, and whether it shapes the data of later ones.
fn insert_steps(insert: &Insert) -> Vec<(&String, bool)> {
    let mut steps = Vec::new();
    for step in &insert.steps {
        let only_reads = matches!(step.kind, InsertStepKind::Query { rate, .. } if rate == 0.0);
        steps.push((&step.name, !only_reads));
    }
    steps
}

/// Returns the name of each step, and whether it shapes the data of later ones or warms up.
fn sysbench_steps(sysbench: &Sysbench) -> Vec<(&String, bool)> {
    let mut steps = Vec::new();
    for step in &sysbench.steps {
        let is_needed = match &step.kind {
            SysbenchStepKind::Run { test, reported, .. } => !reported || !test.only_reads(),
            _ => true,
        };
        steps.push((&step.name, is_needed));
    }
    steps
}

/// Returns the name of each step, and whether it shapes the data of later ones or warms up.
fn transactions_steps(transactions: &Transactions) -> Vec<(&String, bool)> {
    let script = &transactions.script;
    let mut steps = Vec::new();
    for step in &transactions.steps {
        let is_needed = match &step.kind {
            TransactionsStepKind::Run { test, reported, .. } => {
                let mut parts = script.tests[*test].parts.iter();
                !reported || parts.any(|(part, _)| script.transactions[*part].writes())
            }
            _ => true,
        };
        steps.push((&step.name, is_needed));
    }
    steps
}

/// Writes the part of a plan that `wanted` describes. `text` and `sets` are those that `plan` was
/// parsed from. Returns `None` if the plan lacks a target, or the text is another plan's.
pub fn excerpt(plan: &Plan, text: &str, sets: &[String], wanted: &Excerpt<'_>) -> Option<String> {
    let mut cx = Context::new(text);
    let mut root = document::read(&mut cx, text)?;
    overrides::apply(&mut cx, &mut root, sets);

    let mut out = Table::default();
    out.set("name", string(wanted.name));
    out.set("clients", Value::List(vec![node(number(wanted.clients))]));
    out.set("repeats", number(wanted.repeats));
    out.set("base", string(wanted.targets[0]));
    for key in KEPT_KEYS {
        out.entries.extend(root.take(key));
    }

    match plan.reuse {
        Reuse::Off => {}
        Reuse::Repeat => out.set("reuse", string("repeat")),
        Reuse::Run | Reuse::Always => out.set("reuse", string("run")),
    }

    if plan.listen.is_some() {
        out.set("listen", string(LISTEN));
    }

    for (key, is_kept, count) in [
        ("profile", wanted.is_profiled, plan.profile.repeats),
        ("exact", wanted.is_exact, plan.exact.repeats),
    ] {
        if is_kept {
            let mut table = taken_table(&mut root, key);
            // It may have been asked for on the command line of a resumed run only.
            if count > 0 {
                table.set("repeats", number(count));
            }
            out.set(key, Value::Table(table));
        }
    }

    out.set("workload", Value::Table(workload(&mut root, plan, wanted)?));
    out.set("build", Value::Table(builds(&mut root, plan, wanted)?));

    let configs = configs(&mut root, plan, wanted)?;
    if !configs.entries.is_empty() {
        out.set("config", Value::Table(configs));
    }

    let targets = targets(plan, wanted)?;
    out.set("target", Value::List(targets));

    let mut written = String::new();
    write_table(&mut written, "", &out);
    Some(written)
}

/// Returns the workload with the changes of the wanted variant and the wanted steps.
fn workload(root: &mut Table, plan: &Plan, wanted: &Excerpt<'_>) -> Option<Table> {
    let name = plan.variants.first()?.workload.name();
    let mut table = taken_table(&mut taken_table(root, "workload"), name);

    let mut declared = taken_table(&mut table, "variant");
    if let Some(variant) = declared_variant(plan, wanted) {
        let changes = taken_table(&mut declared, variant);
        variants::override_table(&mut table, changes, 0);
    }

    let steps = wanted.steps.iter().map(|step| node(string(step)));
    table.set("steps", Value::List(steps.collect()));

    // Keys of steps and tests that are left out would be mistakes.
    let is_wanted = |name: &str| wanted.steps.iter().any(|step| step == name);
    retain(&mut table, "step", is_wanted);

    let is_test_of = |step: &str, name: &str| {
        step.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    retain(&mut table, "test", |name| wanted.steps.iter().any(|step| is_test_of(step, name)));

    let mut workload = Table::default();
    workload.set(name, Value::Table(table));
    Some(workload)
}

/// Returns the name of the wanted variant in the plan. A step that is measured alone has the changes
/// of the variant in which it comes after others.
fn declared_variant<'a>(plan: &'a Plan, wanted: &Excerpt<'a>) -> Option<&'a str> {
    let mut variants = plan.variants.iter();
    let variant = variants.find(|variant| variant.name.as_deref() == wanted.variant)?;
    match &variant.alone {
        Some(alone) => alone.in_sequence.as_deref(),
        None => wanted.variant,
    }
}

/// Keeps the wanted entries of a table, and the table if any is left.
fn retain(table: &mut Table, key: &str, is_wanted: impl Fn(&str) -> bool) {
    let mut inner = taken_table(table, key);
    inner.entries.retain(|entry| is_wanted(&entry.key));
    if !inner.entries.is_empty() {
        table.set(key, Value::Table(inner));
    }
}

/// Returns the builds of the targets, each with its new source.
fn builds(root: &mut Table, plan: &Plan, wanted: &Excerpt<'_>) -> Option<Table> {
    let mut declared = taken_table(root, "build");
    let mut builds = Table::default();
    for target in wanted.targets {
        let build = &plan.builds[target_named(plan, target)?.build];

        // Both targets may have one build.
        let Some(entry) = declared.take(&build.name) else {
            continue;
        };

        let Value::Table(mut table) = entry.node.value else {
            return None;
        };

        if let Some(source) = wanted.sources.get(&build.name) {
            table.take("url");
            table.take("replica-url");
            table.take(HOST_METRICS);
            table.take(HOST_DISKS);
            table.set(build.engine.name(), string(source));
        }

        builds.set(&build.name, Value::Table(table));
    }
    Some(builds)
}

/// Returns the configs of the targets by engine, each with all that it extends.
fn configs(root: &mut Table, plan: &Plan, wanted: &Excerpt<'_>) -> Option<Table> {
    let declared = taken_table(root, "config");
    let factors = taken_table(root, "factors");
    let mut configs = Table::default();

    for (target, file_options) in wanted.targets.iter().zip(&wanted.file_options) {
        let config = &plan.configs[target_named(plan, target)?.config];
        let engine = config.engine.name();
        let mut merged = match (declared.table(engine), &plan.designed) {
            (of_engine, Some(designed)) => {
                designed_config(of_engine, &factors, plan, designed, target)?
            }
            (Some(of_engine), None) => merged_config(of_engine, &config.name)?,
            // The plan has none for this engine: its targets have the empty one.
            (None, None) => continue,
        };

        merged.take("extends");
        merged.take("file");

        if !file_options.is_empty() {
            let mut set = Table::default();
            for (name, value) in file_options {
                set.set_option(name, string(value));
            }
            for entry in taken_table(&mut merged, "set").entries {
                set.set_option(&entry.key, entry.node.value);
            }
            merged.set("set", Value::Table(set));
            // Such a file may be of another version.
            if config.engine.facts().has_load_options && merged.get(UNKNOWN_OPTIONS).is_none() {
                merged.set(UNKNOWN_OPTIONS, string("skip"));
            }
        }

        let path = format!("config.{engine}.{}", key_part(&config.name));
        leave_out(&mut merged, &path, &wanted.left_out);

        let mut known = taken_table(&mut configs, engine);
        known.set(&config.name, Value::Table(merged));
        configs.set(engine, Value::Table(known));
    }
    Some(configs)
}

/// Returns the config that a design made for a target: the base's, with what the levels of configs
/// change, and the options and variables of all levels.
fn designed_config(
    of_engine: Option<&Table>,
    factors: &Table,
    plan: &Plan,
    designed: &Designed,
    target: &str,
) -> Option<Table> {
    let of_target = designed.targets.iter().find(|other| other.target == target)?;
    let mut merged = Table::default();
    if let Some(of_engine) = of_engine {
        let base = &plan.configs[plan.targets[plan.base].config].name;
        merged = merged_config(of_engine, base)?;

        let of_configs = factors.table("configs");
        for (factor, level) in designed.factors.iter().zip(&of_target.levels) {
            let is_of_configs = of_configs.is_some_and(|all| all.get(&factor.name).is_some());
            if is_of_configs && *level > 0 {
                merge(&mut merged, &merged_config(of_engine, &factor.levels[*level])?);
            }
        }
    }

    let config = &plan.configs[target_named(plan, target)?.config];
    for (key, options) in [("set", &config.set), (ENV, &config.env)] {
        let mut table = Table::default();
        for (name, value) in options {
            table.set(name, string(value));
        }
        if !table.entries.is_empty() {
            merged.set(key, Value::Table(table));
        }
    }
    Some(merged)
}

/// Returns a config with the values of those that it extends.
fn merged_config(configs: &Table, name: &str) -> Option<Table> {
    let (mut lineage, mut known) = (Vec::new(), HashSet::new());
    let mut next = Some(name.to_owned());
    while let Some(name) = next {
        let config = configs.table(&name)?;
        if !known.insert(name) {
            return None;
        }
        lineage.push(config);
        next = config.get("extends").and_then(Node::text).map(str::to_owned);
    }

    let mut merged = Table::default();
    for config in lineage.into_iter().rev() {
        merge(&mut merged, config);
    }
    Some(merged)
}

/// Removes the values whose dotted keys are `left_out` from a table, and from the tables in it.
fn leave_out(table: &mut Table, path: &str, left_out: &[String]) {
    let key_of = |entry: &Entry| format!("{path}.{}", key_part(&entry.key));
    table.entries.retain(|entry| !left_out.contains(&key_of(entry)));
    for entry in &mut table.entries {
        let key = key_of(entry);
        if let Value::Table(inner) = &mut entry.node.value {
            leave_out(inner, &key, left_out);
        }
    }
}

/// Adds the values of `own`, which replace those of the same name in the tables of `merged`.
fn merge(merged: &mut Table, own: &Table) {
    for entry in &own.entries {
        let existing = merged.get_mut(&entry.key).map(|existing| &mut existing.node.value);
        match (existing, &entry.node.value) {
            (Some(Value::Table(existing)), Value::Table(own)) => merge(existing, own),
            (_, value) => merged.set_option(&entry.key, value.clone()),
        }
    }
}

/// Returns the tables that make exactly the wanted targets.
fn targets(plan: &Plan, wanted: &Excerpt<'_>) -> Option<Vec<Node>> {
    let mut tables = Vec::new();
    for name in wanted.targets {
        let target = target_named(plan, name)?;
        let one = |name: &str| Value::List(vec![node(string(name))]);

        let mut table = Table::default();

        table.set("builds", one(&plan.builds[target.build].name));
        table.set("configs", one(&plan.configs[target.config].name));
        if let Some(loader) = target.load_with {
            table.set("load-with", string(&plan.targets[loader].name));
        }
        tables.push(node(Value::Table(table)));
    }
    Some(tables)
}

fn target_named<'p>(plan: &'p Plan, name: &str) -> Option<&'p crate::Target> {
    plan.targets.iter().find(|target| target.name == name)
}

fn node(value: Value) -> Node {
    Node { value, place: Place::Nowhere }
}

fn string(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn number(count: u32) -> Value {
    Value::Integer(count.to_string())
}

/// Removes and returns a table; an empty one if there is none.
fn taken_table(table: &mut Table, key: &str) -> Table {
    match table.take(key).map(|entry| entry.node.value) {
        Some(Value::Table(table)) => table,
        _ => Table::default(),
    }
}

impl Table {
    fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    fn table(&self, key: &str) -> Option<&Table> {
        match &self.get(key)?.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    fn set(&mut self, key: &str, value: Value) {
        let node = node(value);
        self.put(Entry { key: key.to_owned(), key_place: Place::Nowhere, node });
    }

    /// Sets an option. Engines ignore the case of its name.
    fn set_option(&mut self, name: &str, value: Value) {
        self.entries.retain(|entry| !entry.key.eq_ignore_ascii_case(name));
        self.set(name, value);
    }
}

/// Writes a table of TOML: first its values, then its tables, each below its own header.
fn write_table(out: &mut String, path: &str, table: &Table) {
    for Entry { key, node, .. } in &table.entries {
        if !is_below_header(&node.value) {
            out.push_str(&format!("{} = {}\n", key_part(key), inline(&node.value)));
        }
    }

    for Entry { key, node, .. } in &table.entries {
        let key = key_part(key);
        let path = if path.is_empty() { key } else { format!("{path}.{key}") };
        match &node.value {
            Value::Table(inner) => {
                let needs_header = inner.entries.is_empty()
                    || inner.entries.iter().any(|entry| !is_below_header(&entry.node.value));
                if needs_header {
                    out.push_str(&format!("\n[{path}]\n"));
                }
                write_table(out, &path, inner);
            }
            Value::List(tables) if is_below_header(&node.value) => {
                for table in tables {
                    out.push_str(&format!("\n[[{path}]]\n"));
                    if let Value::Table(inner) = &table.value {
                        write_table(out, &path, inner);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns whether a value is written below a header of its own: a table, or a list of tables.
fn is_below_header(value: &Value) -> bool {
    match value {
        Value::Table(_) => true,
        Value::List(nodes) => {
            !nodes.is_empty() && nodes.iter().all(|node| matches!(node.value, Value::Table(_)))
        }
        _ => false,
    }
}

/// Writes a value on one line.
fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        // What `--set` gave means the same as in a plan.
        Value::Bare(text) if is_literal(text) => text.clone(),
        Value::Bare(text) => quoted(text),
        Value::Integer(text) | Value::Float(text) => text.clone(),
        Value::Boolean(flag) => flag.to_string(),
        Value::List(nodes) => {
            let items: Vec<String> = nodes.iter().map(|node| inline(&node.value)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Table(table) => {
            let entries = table.entries.iter();
            let pairs = entries
                .map(|entry| format!("{} = {}", key_part(&entry.key), inline(&entry.node.value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        // No key of a plan has a date.
        Value::Datetime => quoted(""),
    }
}

/// Returns whether TOML reads a text as a number or a boolean.
fn is_literal(text: &str) -> bool {
    let is_decimal = text.parse::<f64>().is_ok_and(f64::is_finite)
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && !text.starts_with('.')
        && !text.ends_with('.')
        && (text == "0" || text.starts_with("0.") || !text.starts_with('0'));
    is_decimal || text.parse::<bool>().is_ok()
}

#[cfg(test)]
mod tests;
