//! `[config.ENGINE.NAME]`: named sets of options, which may extend each other.

use crate::builds::ENGINES;
use crate::diagnostic::{Diagnostic, Place};
use crate::kinds::{Choice, CpuList, Flag, Line, Size, bad_name};
use crate::reader::{Context, Field, Kind, Section, table_of, wrong_type};
use crate::spec::{Config, Engine, Limits, UnknownOptions};
use crate::tree::{Entry, Node, Table, Value};
use crate::wording::{code, did_you_mean, key_part, list, quoted};

const KEYS: [&str; 5] = ["extends", "file", "set", "memory", "cpus"];
const ROCKSDB_KEYS: [&str; 8] = [
    "extends",
    "file",
    "set",
    "load",
    "unknown-options",
    "statistics",
    "memory",
    "cpus",
];
const UNKNOWN_OPTIONS: Choice<UnknownOptions> = Choice(&[
    ("refuse", UnknownOptions::Refuse),
    ("skip", UnknownOptions::Skip),
]);

/// The keys that a config of an engine may have.
fn keys_of(engine: Engine) -> &'static [&'static str] {
    match engine {
        Engine::RocksDb => &ROCKSDB_KEYS,
        _ => &KEYS,
    }
}

/// Below this no server starts.
const MEMORY_LEAST: u64 = 64 << 20;

/// The name of the config of an engine that has none.
pub(crate) const IMPLICIT: &str = "default";

/// A config as it was written.
struct Written {
    name: String,
    engine: Engine,
    place: Place,
    extends: Option<(String, Place)>,
    file: Option<String>,
    set: Vec<(String, String)>,
    load: Vec<(String, String)>,
    limits: Limits,
    unknown_options: Option<UnknownOptions>,
    statistics: Option<bool>,
}

/// A config with what else is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) config: Config,
    pub(crate) place: Place,
    /// Another config extends it.
    pub(crate) is_extended: bool,
}

/// Reads `[config]`. `engines` are those of the builds: each that no config is written for gets an empty one.
pub(crate) fn read(
    cx: &mut Context<'_>,
    entry: Option<Entry>,
    engines: &[Engine],
) -> Field<Vec<Declared>> {
    let errors = error_count(cx);
    let mut written = Vec::new();
    if let Some(entry) = entry {
        let names: Vec<&str> = ENGINES.iter().map(|(name, _)| *name).collect();
        if let Some(mut section) = Section::of(cx, "config", entry.node, &names) {
            let mut tables: Vec<(Engine, Entry)> = ENGINES
                .iter()
                .filter_map(|(name, engine)| Some((*engine, section.take(name)?)))
                .collect();
            tables.sort_by_key(|(_, entry)| entry.key_place);
            for (engine, entry) in tables {
                let path = section.name_of(&entry.key);
                let table = table_of(cx, &path, entry.node).unwrap_or_default();
                for entry in table.entries {
                    written.extend(config(cx, engine, &path, entry));
                }
            }
        }
    }
    written.sort_by_key(|config| config.place);
    let mut declared = extend(cx, &written);
    for &engine in engines {
        if !written.iter().any(|config| config.engine == engine) {
            let config = Config {
                name: IMPLICIT.to_owned(),
                engine,
                files: Vec::new(),
                set: Vec::new(),
                load: Vec::new(),
                limits: Limits::default(),
                unknown_options: UnknownOptions::default(),
                statistics: false,
            };
            cx.resolve(
                format!("config.{}.{IMPLICIT}", engine.name()),
                "{}".to_owned(),
                Place::Nowhere,
            );
            declared.push(Declared {
                config,
                place: Place::Nowhere,
                is_extended: false,
            });
        }
    }
    Field {
        value: declared,
        place: Place::Nowhere,
        trusted: error_count(cx) == errors,
    }
}

fn error_count(cx: &Context<'_>) -> usize {
    cx.diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == crate::Severity::Error)
        .count()
}

fn config(
    cx: &mut Context<'_>,
    engine: Engine,
    engine_path: &str,
    entry: Entry,
) -> Option<Written> {
    let path = format!("{engine_path}.{}", key_part(&entry.key));
    let (name, place) = (entry.key, entry.key_place);
    let name_is_bad = bad_name("a config has a name that cannot be used", &name, place);
    let is_named = name_is_bad.is_none();
    cx.diagnostics.extend(name_is_bad);
    if is_stray_key(engine, &name, &entry.node) {
        cx.report(wrong_type(&path, &entry.node, "a config").help(format!(
            "name the config: {}",
            code(&format!("[{engine_path}.NAME]"))
        )));
        return None;
    }
    let mut section = Section::of(cx, &path, entry.node, keys_of(engine))?;
    let mut text = |cx: &mut Context<'_>, key: &str| {
        let entry = section.take(key)?;
        let key = section.name_of(key);
        let text = cx.read(&key, &entry.node, &Line)?;
        cx.resolve(key, quoted(&text), entry.node.place);
        Some((text, entry.node.place))
    };
    let extends = text(cx, "extends");
    let file = text(cx, "file").map(|(file, _)| file);
    let limits = Limits {
        memory_bytes: given(cx, &mut section, "memory", &Size(MEMORY_LEAST..=u64::MAX)),
        cpus: given(cx, &mut section, "cpus", &CpuList),
    };
    let unknown_options = given(cx, &mut section, "unknown-options", &UNKNOWN_OPTIONS);
    let statistics = given(cx, &mut section, "statistics", &Flag);
    let [set, load] = ["set", "load"].map(|key| {
        let path = section.name_of(key);
        let table = section
            .take(key)
            .and_then(|entry| table_of(cx, &path, entry.node))
            .unwrap_or_default();
        options(cx, engine, &path, table)
    });
    let is_plain = extends.is_none() && file.is_none() && set.is_empty() && load.is_empty();
    let is_bare = limits == Limits::default() && unknown_options.is_none() && statistics.is_none();
    if is_plain && is_bare {
        cx.resolve(path, "{}".to_owned(), place);
    }
    is_named.then_some(Written {
        name,
        engine,
        place,
        extends,
        file,
        set,
        load,
        limits,
        unknown_options,
        statistics,
    })
}

/// The value of a key that has no default.
fn given<K: Kind>(
    cx: &mut Context<'_>,
    section: &mut Section,
    key: &str,
    kind: &K,
) -> Option<K::Value> {
    let entry = section.take(key)?;
    let name = section.name_of(key);
    let value = cx.read(&name, &entry.node, kind)?;
    cx.resolve(name, kind.show(&value), entry.node.place);
    Some(value)
}

/// Whether this is a key of a config where the name of one should be: `[config.sqlite]` instead of
/// `[config.sqlite.NAME]`.
fn is_stray_key(engine: Engine, name: &str, node: &Node) -> bool {
    let keys = keys_of(engine);
    let is_config = match &node.value {
        Value::Table(table) => {
            table.entries.is_empty()
                || table
                    .entries
                    .iter()
                    .any(|entry| keys.contains(&entry.key.as_str()))
        }
        Value::Broken => true,
        _ => false,
    };
    keys.contains(&name) && !is_config
}

/// Options in the engine's notation.
fn options(
    cx: &mut Context<'_>,
    engine: Engine,
    path: &str,
    table: Table,
) -> Vec<(String, String)> {
    let mut options: Vec<(String, String, Place)> = Vec::new();
    for entry in table.entries {
        let key = format!("{path}.{}", key_part(&entry.key));
        let is_word = entry
            .key
            .starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && entry
                .key
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.' || c == '-');
        if !is_word {
            cx.report(
                Diagnostic::error(
                    "plan::bad-name",
                    entry.key_place,
                    format!("{} has an option with a name that cannot be used: {}", code(path), code(&entry.key)),
                )
                .label("not the name of an option")
                .help("a name begins with a letter or `_` and goes on with letters, digits, `_`, `-` or `.`"),
            );
            continue;
        }
        // Engines do not tell upper case from lower in these names.
        if let Some((_, _, first)) = options
            .iter()
            .find(|(name, ..)| name.eq_ignore_ascii_case(&entry.key))
        {
            cx.report(
                Diagnostic::error(
                    "plan::duplicate-key",
                    entry.key_place,
                    format!("{} is given twice", code(&entry.key)),
                )
                .label("given again")
                .also(*first, "first given here"),
            );
            continue;
        }
        if let Some((value, shown)) = option(cx, engine, &key, &entry.node) {
            cx.resolve(key, shown, entry.node.place);
            options.push((entry.key, value, entry.key_place));
        }
    }
    options
        .into_iter()
        .map(|(name, value, _)| (name, value))
        .collect()
}

/// A value in the engine's notation and in the plan's.
fn option(
    cx: &mut Context<'_>,
    engine: Engine,
    key: &str,
    node: &Node,
) -> Option<(String, String)> {
    match &node.value {
        Value::Broken => None,
        // RocksDB knows no other words for them.
        Value::Boolean(flag) if engine == Engine::RocksDb => {
            Some((flag.to_string(), flag.to_string()))
        }
        Value::Boolean(flag) => Some((
            if *flag { "on" } else { "off" }.to_owned(),
            flag.to_string(),
        )),
        Value::Integer(text, _) | Value::Float(text, _) => Some((text.clone(), text.clone())),
        Value::String(text) if text.is_empty() => Some((String::new(), quoted(""))),
        Value::String(_) => {
            let text = cx.read(key, node, &Line)?;
            let shown = quoted(&text);
            Some((text, shown))
        }
        Value::Table(_) => {
            cx.report(
                wrong_type(key, node, "a value")
                    .help("an option's name that has a dot stands in quotes: `\"a.b\" = 1`"),
            );
            None
        }
        Value::Datetime | Value::List(_) => {
            cx.report(
                wrong_type(key, node, "a value")
                    .help("write it as a string, as the engine reads it"),
            );
            None
        }
    }
}

/// Applies what configs extend. A config that extends what is not there, or itself, is reported.
fn extend(cx: &mut Context<'_>, written: &[Written]) -> Vec<Declared> {
    let parent_of = |config: &Written| {
        let (name, _) = config.extends.as_ref()?;
        written
            .iter()
            .position(|other| other.engine == config.engine && other.name == *name)
    };
    let mut declared = Vec::new();
    for (index, config) in written.iter().enumerate() {
        if let Some((name, place)) = &config.extends
            && parent_of(config).is_none()
        {
            let names = names_of(written, config.engine);
            let engine = config.engine.name();
            let elsewhere = written.iter().find(|other| other.name == *name);
            let mut diagnostic = Diagnostic::error(
                "plan::unknown-config",
                *place,
                format!(
                    "config {} extends an unknown config: {}",
                    code(&config.name),
                    code(name)
                ),
            )
            .label(format!("no config of {} has this name", code(engine)))
            .help(format!(
                "{}configs here: {}",
                did_you_mean(name, &names),
                list(&names)
            ));
            if let Some(other) = elsewhere {
                diagnostic = diagnostic.also(
                    other.place,
                    format!("this one is of {}", code(other.engine.name())),
                );
            }
            cx.report(diagnostic);
        }
        // From the config itself up to the one that extends none.
        let mut line = vec![index];
        while let Some(parent) = line.last().and_then(|&last| parent_of(&written[last])) {
            if let Some(start) = line.iter().position(|&earlier| earlier == parent) {
                // A circle is reported once: by the config of it that is written first.
                if start == 0 && line.iter().all(|&other| other >= index) {
                    report_circle(cx, written, &line);
                }
                break;
            }
            line.push(parent);
        }
        let mut files = Vec::new();
        let (mut set, mut load) = (Vec::new(), Vec::new());
        let mut limits = Limits::default();
        let (mut unknown_options, mut statistics) = (None, None);
        for &ancestor in line.iter().rev() {
            let own = &written[ancestor].limits;
            unknown_options = written[ancestor].unknown_options.or(unknown_options);
            statistics = written[ancestor].statistics.or(statistics);
            limits.memory_bytes = own.memory_bytes.or(limits.memory_bytes);
            limits.cpus = own.cpus.clone().or(limits.cpus);
            files.extend(written[ancestor].file.clone());
            merge(&mut set, &written[ancestor].set);
            merge(&mut load, &written[ancestor].load);
        }
        let is_extended = written.iter().any(|other| parent_of(other) == Some(index));
        let config = Config {
            name: config.name.clone(),
            engine: config.engine,
            files,
            set,
            load,
            limits,
            unknown_options: unknown_options.unwrap_or_default(),
            statistics: statistics.unwrap_or(false),
        };
        declared.push(Declared {
            config,
            place: written[index].place,
            is_extended,
        });
    }
    declared
}

/// Puts options over those of the config that is extended.
fn merge(options: &mut Vec<(String, String)>, over: &[(String, String)]) {
    for (name, value) in over {
        match options
            .iter_mut()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
        {
            Some(earlier) => *earlier = (name.clone(), value.clone()),
            None => options.push((name.clone(), value.clone())),
        }
    }
}

fn report_circle(cx: &mut Context<'_>, written: &[Written], line: &[usize]) {
    let place_of = |index: usize| {
        written[index]
            .extends
            .as_ref()
            .map_or(Place::Nowhere, |(_, place)| *place)
    };
    let mut names: Vec<&str> = line
        .iter()
        .map(|&index| written[index].name.as_str())
        .collect();
    names.push(names[0]);
    let way = names.join(" -> ");
    let mut diagnostic = Diagnostic::error(
        "plan::extends-cycle",
        place_of(line[0]),
        format!("config {} extends itself: {}", code(names[0]), code(&way)),
    )
    .label("goes round in a circle")
    .help("take one `extends` of the circle out");
    for &index in &line[1..] {
        diagnostic = diagnostic.also(place_of(index), "and on from here");
    }
    cx.report(diagnostic);
}

fn names_of(written: &[Written], engine: Engine) -> Vec<&str> {
    written
        .iter()
        .filter(|config| config.engine == engine)
        .map(|config| config.name.as_str())
        .collect()
}
