//! Reads `[config.ENGINE.NAME]`: named sets of options, which may extend each other.

use std::collections::{HashMap, HashSet};

use words::{Durability, EngineInterface, TransactionKind};

use super::builds::DeclaredBuild;
use super::creation::{self, override_creation};
use super::options::{FACTORS, factors, options, override_options};
use crate::reading::context::{Context, Section, table_of};
use crate::reading::quantity::Quantity;
use crate::reading::value_kinds::{Choice, CpuList, Flag, Line, check_name};
use crate::spec::{Config, ENV, Engine, Limits};
use crate::text::diagnostic::{Diagnostic, Place};
use crate::text::tree::{Entry, Node, Value};
use crate::text::wording::{choices, code, key_part};

/// Keys of a config, and whether they are tables. In `[config.sqlite]` instead of
/// `[config.sqlite.NAME]` they are where a name should be.
const KEYS: [(&str, bool); 22] = [
    ("extends", false),
    ("file", false),
    ("memory", false),
    ("cpus", false),
    ("cpu-quota", false),
    ("replicas", false),
    ("replication", false),
    ("reads", false),
    ("tls", false),
    ("unknown-options", false),
    ("statistics", false),
    ("durability", false),
    ("transactions", false),
    ("table-format", false),
    ("table-options", false),
    ("extensions", false),
    ("setup-sql", false),
    ("init-arguments", false),
    (ENV, true),
    ("set", true),
    ("load", true),
    (FACTORS, true),
];

/// The treatment of options that a version does not have.
const UNKNOWN_OPTIONS: Choice<bool> = Choice(&[("refuse", false), ("skip", true)]);

/// No server starts with less.
const MEMORY_MIN: u64 = 64 << 20;

/// The servers that connections go to if they only read.
const READS: Choice<bool> = Choice(&[("primary", false), ("replica", true)]);
/// The way in which PostgreSQL's replicas follow their primary: by its log, or by the changes of
/// rows.
const REPLICATION: Choice<bool> = Choice(&[("physical", false), ("logical", true)]);
const REPLICAS_MAX: u32 = 8;

/// The largest number of options and files of all configs, with those that they extend. A long
/// chain of configs would otherwise need more memory than the host has.
const OPTIONS_MAX: usize = 1_000_000;

/// The largest number of configs of a cycle whose places are shown.
const CYCLE_SHOWN_MAX: usize = 10;

/// The name of the empty config of an engine for which the plan has none.
pub(crate) const IMPLICIT: &str = "default";

/// A config as the plan writes it.
#[derive(Clone, Debug)]
pub(crate) struct WrittenConfig {
    /// The config's own values, without those of the config that it extends.
    own: Config,
    place: Place,
    extends: Option<(String, Place)>,
    skips_unknown_options: Option<bool>,
    statistics: Option<bool>,
    durability: Option<Durability>,
    transactions: Option<TransactionKind>,
    tls: Option<bool>,
    replicas: Option<u32>,
    logical_replication: Option<bool>,
    reads_replicas: Option<bool>,
}

impl WrittenConfig {
    /// Returns a config that sets nothing else.
    fn new(own: Config, place: Place) -> Self {
        Self {
            own,
            place,
            extends: None,
            skips_unknown_options: None,
            statistics: None,
            durability: None,
            transactions: None,
            tls: None,
            replicas: None,
            logical_replication: None,
            reads_replicas: None,
        }
    }
}

/// A config, with its place in the plan.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredConfig {
    /// The config, with all that it extends.
    pub(crate) config: Config,
    pub(crate) place: Place,
    /// Another config extends it.
    pub(crate) is_extended: bool,
    /// The index of the config that it extends.
    pub(crate) parent: Option<usize>,
    /// The changes of the config; `None` for an empty one that the plan does not have.
    pub(crate) written: Option<WrittenConfig>,
}

/// Reads `[config]`. Adds an empty config for each engine that has a build and no config.
pub(crate) fn read(
    cx: &mut Context<'_>,
    entry: Option<Entry>,
    builds: &[DeclaredBuild],
) -> Vec<DeclaredConfig> {
    let mut written = Vec::new();
    if let Some(section) = entry.and_then(|entry| Section::of(cx, "config", entry.node)) {
        written = read_written(cx, section);
    }
    // Errors and listings follow the order of the plan, not that of engines.
    written.sort_by_key(|config| config.place);

    let mut declared = extend(cx, written);
    for DeclaredBuild { build, .. } in builds {
        let engine = build.engine;

        if !declared.iter().any(|other| other.config.engine == engine) {
            let key = format!("config.{}.{IMPLICIT}", engine.name());
            cx.resolve(key, "{}".to_owned(), Place::Nowhere);
            declared.push(DeclaredConfig {
                config: Config::new(IMPLICIT, engine),
                place: Place::Nowhere,
                is_extended: false,
                parent: None,
                written: None,
            });
        }
    }

    declared
}

/// Reads the configs of all engines, as the plan writes them.
fn read_written(cx: &mut Context<'_>, mut section: Section) -> Vec<WrittenConfig> {
    let mut tables: Vec<(Engine, Entry)> = Vec::new();
    for (name, engine) in Engine::NAMES {
        tables.extend(section.take(name).map(|entry| (*engine, entry)));
    }
    tables.sort_by_key(|(_, entry)| entry.key_place);

    let mut written = Vec::new();
    for (engine, entry) in tables {
        let path = section.name_of(&entry.key);
        let table = table_of(cx, &path, entry.node).unwrap_or_default();
        for named in table.entries {
            written.extend(config(cx, engine, &path, named));
        }
    }

    let before = cx.diagnostics.len();
    section.finish(cx);
    for diagnostic in &mut cx.diagnostics[before..] {
        diagnostic.help("name a config's engine: `[config.ENGINE.NAME]`");
    }
    written
}

/// Reads one config, whose options are listed in the order in which they are read. Returns `None` if
/// it has no valid name.
fn config(
    cx: &mut Context<'_>,
    engine: Engine,
    engine_path: &str,
    entry: Entry,
) -> Option<WrittenConfig> {
    let path = format!("{engine_path}.{}", key_part(&entry.key));
    let (name, place) = (entry.key, entry.key_place);
    if is_key_of_config(&name, &entry.node) {
        let header = code(&format!("[{engine_path}.NAME]"));
        let message = format!("{} is outside of any config", code(&path));
        cx.error("plan::bad-name", place, message)
            .label("expected the name of a config")
            .help(format!("put it in a config: {header}"));
        return None;
    }
    let is_named = check_name(cx, "invalid name of a config", &name, place);

    let listed_before = cx.resolved.len();
    let section = &mut Section::of(cx, &path, entry.node)?;
    let mut written = WrittenConfig::new(Config::new(&name, engine), place);

    // What the config extends, and where it runs.
    let extends_at = section.place_of("extends");
    let extends = cx.given(section, "extends", &Line);
    written.extends = extends.map(|name| (name, extends_at));
    written.own.files.extend(cx.given(section, "file", &Line));
    written.own.limits = limits(cx, section);

    // What only some engines have.
    let facts = engine.facts();
    if facts.has_replicas {
        read_replicas(cx, section, &mut written);
    }
    if facts.is_server() {
        written.tls = cx.given(section, "tls", &Flag);
    }
    if facts.interface == EngineInterface::Keys {
        written.durability = cx.given(section, "durability", &Choice(Durability::NAMES));
    }
    // Versions of a library differ in the options that they know.
    if facts.has_load_options {
        written.skips_unknown_options = cx.given(section, "unknown-options", &UNKNOWN_OPTIONS);
        written.statistics = cx.given(section, "statistics", &Flag);
        written.transactions = cx.given(section, "transactions", &Choice(TransactionKind::NAMES));
    }

    // The engine's own options.
    written.own.set = options(cx, engine, section, "set");
    if facts.has_load_options {
        written.own.load = options(cx, engine, section, "load");
    }
    creation::read(cx, section, &mut written.own);
    written.own.factors = factors(cx, section);
    section.finish(cx);

    // A config without any value is listed, too.
    if cx.resolved.len() == listed_before {
        cx.resolve(path, "{}".to_owned(), place);
    }
    is_named.then_some(written)
}

/// Reads how many replicas a config has, how they follow, and what they have of their own.
fn read_replicas(cx: &mut Context<'_>, section: &mut Section, written: &mut WrittenConfig) {
    let engine = written.own.engine;
    written.replicas = cx.given(section, "replicas", &Quantity::count(0..=REPLICAS_MAX));
    written.reads_replicas = cx.given(section, "reads", &READS);
    if engine.facts().has_logical_replication {
        written.logical_replication = cx.given(section, "replication", &REPLICATION);
    }

    let path = section.name_of("replica");
    let place = section.place_of("replica");
    let table = cx.table(section, "replica");
    let replica = &mut Section::new(&path, table, place);
    written.own.replica_limits = limits(cx, replica);
    written.own.replica_set = options(cx, engine, replica, "set");
    replica.finish(cx);
}

/// Returns true if a key in the place of a config's name is a key of configs instead.
fn is_key_of_config(name: &str, node: &Node) -> bool {
    let is_table = matches!(node.value, Value::Table(_));
    KEYS.iter().any(|(key, needs_table)| *key == name && (*needs_table || !is_table))
}

fn limits(cx: &mut Context<'_>, section: &mut Section) -> Limits {
    let memory = Quantity::size(MEMORY_MIN..=u64::MAX);
    let memory_bytes = cx.given(section, "memory", &memory);
    let cpus = cx.given(section, "cpus", &CpuList);
    let quota = cx.given(section, "cpu-quota", &Quantity::processors());

    Limits {
        memory_bytes,
        cpus,
        cpu_quota_milli: quota.map(|processors| (processors * 1e3).round() as u64),
    }
}

/// Replaces the limits that `own` sets.
fn override_limits(limits: &mut Limits, own: &Limits) {
    limits.memory_bytes = own.memory_bytes.or(limits.memory_bytes);
    limits.cpus = own.cpus.clone().or(limits.cpus.take());
    limits.cpu_quota_milli = own.cpu_quota_milli.or(limits.cpu_quota_milli);
}

/// Merges each config with those that it extends. Reports a config that extends an unknown one, or
/// itself.
fn extend(cx: &mut Context<'_>, written: Vec<WrittenConfig>) -> Vec<DeclaredConfig> {
    let parents = find_parents(cx, &written);
    let extended: HashSet<usize> = parents.iter().flatten().copied().collect();

    let mut merged: Vec<Option<Config>> = vec![None; written.len()];
    let mut options_total = 0;
    for index in 0..written.len() {
        for ancestor in unmerged_lineage(cx, &written, &parents, &merged, index) {
            let parent = parents[ancestor].and_then(|parent| merged[parent].as_ref());
            let config = merge(parent, &written[ancestor]);
            options_total += config.set.len() + config.load.len() + config.files.len();
            if options_total > OPTIONS_MAX {
                report_too_many_options(cx, written[ancestor].place);
                return Vec::new();
            }
            merged[ancestor] = Some(config);
        }
    }

    let all_merged = merged.into_iter().flatten();
    all_merged
        .zip(written)
        .enumerate()
        .map(|(index, (config, written))| DeclaredConfig {
            config,
            place: written.place,
            is_extended: extended.contains(&index),
            parent: parents[index],
            written: Some(written),
        })
        .collect()
}

/// Returns the index of the config that each config extends. Reports unknown ones.
fn find_parents(cx: &mut Context<'_>, written: &[WrittenConfig]) -> Vec<Option<usize>> {
    let mut indexes = HashMap::new();
    for (index, config) in written.iter().enumerate() {
        indexes.entry((config.own.engine, config.own.name.as_str())).or_insert(index);
    }

    let mut parents = Vec::with_capacity(written.len());
    for config in written {
        let Some((name, place)) = &config.extends else {
            parents.push(None);
            continue;
        };

        let parent = indexes.get(&(config.own.engine, name.as_str())).copied();
        if parent.is_none() {
            report_unknown(cx, written, config, name, *place);
        }

        parents.push(parent);
    }
    parents
}

/// Returns the config `index` and those that it extends, ancestors first, up to one that is merged.
/// Reports a cycle, which ends the lineage.
fn unmerged_lineage(
    cx: &mut Context<'_>,
    written: &[WrittenConfig],
    parents: &[Option<usize>],
    merged: &[Option<Config>],
    index: usize,
) -> Vec<usize> {
    let mut lineage = Vec::new();
    let mut positions = HashMap::new();
    let mut next = Some(index);
    while let Some(current) = next.filter(|&current| merged[current].is_none()) {
        if let Some(&start) = positions.get(&current) {
            report_cycle(cx, written, &lineage[start..]);
            break;
        }
        positions.insert(current, lineage.len());
        lineage.push(current);
        next = parents[current];
    }
    lineage.reverse();
    lineage
}

/// Returns the values of `written` over those of its merged parent.
pub(crate) fn merge(parent: Option<&Config>, written: &WrittenConfig) -> Config {
    let own = &written.own;
    let mut merged = match parent {
        Some(parent) => Config { name: own.name.clone(), ..parent.clone() },
        None => Config::new(&own.name, own.engine),
    };

    merged.files.extend_from_slice(&own.files);
    override_options(&mut merged.set, &own.set);
    override_options(&mut merged.load, &own.load);
    override_options(&mut merged.factors, &own.factors);
    override_options(&mut merged.replica_set, &own.replica_set);
    override_options(&mut merged.env, &own.env);
    override_creation(&mut merged.creation, &own.creation);
    override_limits(&mut merged.limits, &own.limits);
    override_limits(&mut merged.replica_limits, &own.replica_limits);

    merged.replicas = written.replicas.unwrap_or(merged.replicas);
    merged.logical_replication = written.logical_replication.unwrap_or(merged.logical_replication);
    merged.reads_replicas = written.reads_replicas.unwrap_or(merged.reads_replicas);
    merged.skips_unknown_options =
        written.skips_unknown_options.unwrap_or(merged.skips_unknown_options);
    merged.statistics = written.statistics.unwrap_or(merged.statistics);
    merged.durability = written.durability.unwrap_or(merged.durability);
    merged.transactions = written.transactions.unwrap_or(merged.transactions);
    merged.tls = written.tls.unwrap_or(merged.tls);
    merged
}

fn report_too_many_options(cx: &mut Context<'_>, place: Place) {
    let message = format!(
        "the configs have more than {OPTIONS_MAX} options and files with those that they extend"
    );
    cx.error("plan::too-many-options", place, message)
        .label("this config exceeds the limit")
        .help("extend fewer configs, or move common options into a `file`");
}

fn report_unknown(
    cx: &mut Context<'_>,
    written: &[WrittenConfig],
    config: &WrittenConfig,
    name: &str,
    place: Place,
) {
    let Config { name: own_name, engine, .. } = &config.own;
    let mut names: Vec<&str> = Vec::new();
    let mut elsewhere = None;
    for other in written {
        if other.own.engine == *engine && other.own.name != *own_name {
            names.push(&other.own.name);
        }
        if other.own.name == name {
            elsewhere = elsewhere.or(Some((other.own.engine, other.place)));
        }
    }

    let message = format!("config {} extends an unknown config: {}", code(own_name), code(name));
    report_unknown_config(cx, place, message, elsewhere)
        .label(format!("no config of {} has this name", code(engine.name())))
        .help(choices(name, "available configs", &names));
}

/// Reports an unknown config; `elsewhere` is a config of the same name for another engine.
pub(crate) fn report_unknown_config<'d>(
    cx: &'d mut Context<'_>,
    place: Place,
    message: String,
    elsewhere: Option<(Engine, Place)>,
) -> &'d mut Diagnostic {
    let diagnostic = cx.error("plan::unknown-config", place, message);
    if let Some((engine, place)) = elsewhere {
        diagnostic.also(place, format!("this config is for {}", code(engine.name())));
    }
    diagnostic
}

/// Reports configs of which each extends the next, and the last the first. The report begins with
/// the config that the plan has first.
fn report_cycle(cx: &mut Context<'_>, written: &[WrittenConfig], cycle: &[usize]) {
    let mut cycle = cycle.to_vec();
    let first = (0..cycle.len()).min_by_key(|&position| cycle[position]);
    cycle.rotate_left(first.unwrap_or(0));

    let mut names: Vec<&str> = Vec::new();
    let mut places = Vec::new();
    for &index in &cycle {
        let WrittenConfig { own, extends, .. } = &written[index];
        names.push(&own.name);
        places.push(extends.as_ref().map_or(Place::Nowhere, |(_, place)| *place));
    }
    let first_name = names[0];
    names.push(first_name);

    let path = code(&names.join(" -> "));
    let message = format!("config {} extends itself: {path}", code(first_name));
    let diagnostic = cx.error("plan::extends-cycle", places[0], message);
    diagnostic.label("the cycle starts here").help("remove one `extends` of the cycle");
    for &place in places.iter().take(CYCLE_SHOWN_MAX).skip(1) {
        diagnostic.also(place, "and continues here");
    }
}
