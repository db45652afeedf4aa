//! `[config.ENGINE.NAME]`: named sets of options, which may extend each other.

use crate::diagnostic::{Diagnostic, Place};
use crate::quantity::Quantity;
use crate::reader::{Context, Section, ValueKind, table_of};
use crate::spec::{Build, Config, Engine};
use crate::tree::{Entry, Node, Value};
use crate::value_kinds::{Choice, CpuList, Flag, Line, check_name};
use crate::wording::{choices, code, key_part, quoted};

/// Keys of a config, which stand where its name should be in `[config.sqlite]` instead of `[config.sqlite.NAME]`.
const NOT_NAMES: [&str; 5] = ["extends", "file", "set", "load", FACTORS];

/// The key of factors.
pub(crate) const FACTORS: &str = "factors";

/// What `assay compare --by` takes for something else than a factor of the plan.
const NOT_FACTORS: [&str; 2] = ["build", "all"];

/// Whether options that a version doesn't know are left out.
const UNKNOWN_OPTIONS: Choice<bool> = Choice(&[("refuse", false), ("skip", true)]);

/// Below this no server starts.
const MEMORY_LEAST: u64 = 64 << 20;

/// The name of the config of an engine that has none.
pub(crate) const IMPLICIT: &str = "default";

/// Options in the engine's notation.
pub(crate) type Options = Vec<(String, String)>;

/// A config as it was written.
struct Written {
    /// What it says itself.
    own: Config,
    place: Place,
    extends: Option<(String, Place)>,
    skips_unknown_options: Option<bool>,
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

/// Reads `[config]`. Each engine of the builds that no config is written for gets an empty one.
pub(crate) fn read(
    cx: &mut Context<'_>,
    entry: Option<Entry>,
    builds: &[(Build, Place)],
) -> Vec<Declared> {
    let mut written = Vec::new();
    if let Some(mut section) = entry.and_then(|entry| Section::of(cx, "config", entry.node)) {
        let take = |(name, engine): &(&str, Engine)| Some((*engine, section.take(name)?));
        let mut tables: Vec<(Engine, Entry)> = Engine::NAMES.iter().filter_map(take).collect();
        tables.sort_by_key(|(_, entry)| entry.key_place);
        for (engine, entry) in tables {
            let path = section.name_of(&entry.key);
            let table = table_of(cx, &path, entry.node).unwrap_or_default();
            for entry in table.entries {
                written.extend(config(cx, engine, &path, entry));
            }
        }
        section.finish(cx);
    }
    written.sort_by_key(|config| config.place);
    let mut declared = extend(cx, &written);
    for engine in builds.iter().map(|(build, _)| build.engine) {
        if !declared.iter().any(|it| it.config.engine == engine) {
            let key = format!("config.{}.{IMPLICIT}", engine.name());
            cx.resolve(key, "{}".to_owned(), Place::Nowhere);
            declared.push(Declared {
                config: Config::new(IMPLICIT, engine),
                place: Place::Nowhere,
                is_extended: false,
            });
        }
    }
    declared
}

fn config(
    cx: &mut Context<'_>,
    engine: Engine,
    engine_path: &str,
    entry: Entry,
) -> Option<Written> {
    let path = format!("{engine_path}.{}", key_part(&entry.key));
    let (name, place) = (entry.key, entry.key_place);
    if NOT_NAMES.contains(&name.as_str()) {
        let header = code(&format!("[{engine_path}.NAME]"));
        let message = format!("{} is a key of a config, not a config", code(&path));
        cx.error("plan::bad-name", place, message)
            .label("not a name")
            .help(format!("name the config: {header}"));
        return None;
    }
    let message = "a config has a name that cannot be used";
    let is_named = check_name(cx, message, &name, place);
    let notes = cx.resolved.len();
    let section = &mut Section::of(cx, &path, entry.node)?;
    let extends_at = section.place_of("extends");
    let extends = cx.given(section, "extends", &Line);
    let mut own = Config::new(&name, engine);
    own.files.extend(cx.given(section, "file", &Line));
    let memory = Quantity::size(MEMORY_LEAST..=u64::MAX);
    own.limits.memory_bytes = cx.given(section, "memory", &memory);
    own.limits.cpus = cx.given(section, "cpus", &CpuList);
    let (mut skips_unknown_options, mut statistics) = (None, None);
    if engine == Engine::RocksDb {
        skips_unknown_options = cx.given(section, "unknown-options", &UNKNOWN_OPTIONS);
        statistics = cx.given(section, "statistics", &Flag);
    }
    own.set = options(cx, engine, section, "set");
    if engine == Engine::RocksDb {
        own.load = options(cx, engine, section, "load");
    }
    own.factors = factors(cx, section);
    section.finish(cx);
    if cx.resolved.len() == notes {
        cx.resolve(path, "{}".to_owned(), place);
    }
    is_named.then_some(Written {
        own,
        place,
        extends: extends.map(|name| (name, extends_at)),
        skips_unknown_options,
        statistics,
    })
}

/// Reads the factors that a build or a config names, with its values.
pub(crate) fn factors(cx: &mut Context<'_>, section: &mut Section) -> Options {
    options(cx, Engine::Null, section, FACTORS)
}

/// Reads a table of options in the engine's notation.
fn options(cx: &mut Context<'_>, engine: Engine, section: &mut Section, key: &str) -> Options {
    let path = section.name_of(key);
    let mut options: Vec<(String, String, Place)> = Vec::new();
    for Entry {
        key: name,
        key_place: place,
        node,
    } in cx.table(section, key).entries
    {
        let full = format!("{path}.{}", key_part(&name));
        let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
        if !is_word {
            let (path, name) = (code(&path), code(&name));
            let message = format!("{path} has an option with a name that cannot be used: {name}");
            cx.error("plan::bad-name", place, message)
                    .label("not the name of an option")
                    .help("a name begins with a letter or `_` and goes on with letters, digits, `_`, `-` or `.`");
            continue;
        }
        if key == FACTORS && NOT_FACTORS.contains(&name.as_str()) {
            let (path, name) = (code(&path), code(&name));
            let message = format!("{path} has a factor with a name that cannot be used: {name}");
            cx.error("plan::bad-name", place, message)
                .label("has a meaning of its own in `assay compare --by`")
                .help("give it another name");
            continue;
        }
        // Engines do not tell upper case from lower in these names.
        let mut others = options.iter();
        if let Some((_, _, first)) = others.find(|(other, ..)| other.eq_ignore_ascii_case(&name)) {
            let message = format!("{} is given twice", code(&name));
            cx.error("plan::duplicate-key", place, message)
                .label("given again")
                .also(*first, "first given here");
            continue;
        }
        if let Some((value, shown)) = option(cx, engine, &full, &node) {
            cx.resolve(full, shown, node.place);
            options.push((name, value, place));
        }
    }
    let options = options.into_iter();
    options.map(|(name, value, _)| (name, value)).collect()
}

/// Returns a value in the engine's notation and in the plan's.
fn option(
    cx: &mut Context<'_>,
    engine: Engine,
    key: &str,
    node: &Node,
) -> Option<(String, String)> {
    let flag = match &node.value {
        Value::Boolean(flag) => Some(*flag),
        Value::Bare(text) => text.parse().ok(),
        _ => None,
    };
    if let Some(flag) = flag {
        // RocksDB knows no other words for them.
        let (on, off) = match engine {
            Engine::RocksDb => ("true", "false"),
            _ => ("on", "off"),
        };
        let text = if flag { on } else { off };
        return Some((text.to_owned(), flag.to_string()));
    }
    let help = match &node.value {
        Value::Integer(text) | Value::Float(text) => return Some((text.clone(), text.clone())),
        Value::Bare(text) if text.parse::<f64>().is_ok() => {
            return Some((text.clone(), text.clone()));
        }
        Value::String(text) | Value::Bare(text) if text.is_empty() => {
            return Some((String::new(), quoted("")));
        }
        Value::Table(_) => "an option's name that has a dot stands in quotes: `\"a.b\" = 1`",
        Value::Datetime | Value::List(_) => "write it as a string, as the engine reads it",
        _ => {
            let text = Line.read(cx, key, node)?;
            let shown = quoted(&text);
            return Some((text, shown));
        }
    };
    cx.wrong_type(key, node, "a value").help(help);
    None
}

/// Applies what configs extend. A config that extends what is not there, or itself, is reported.
fn extend(cx: &mut Context<'_>, written: &[Written]) -> Vec<Declared> {
    let parent_of = |config: &Written| {
        let (name, _) = config.extends.as_ref()?;
        let is_parent = |it: &Written| it.own.engine == config.own.engine && it.own.name == *name;
        written.iter().position(is_parent)
    };
    let mut declared = Vec::new();
    for (index, config) in written.iter().enumerate() {
        if let (Some((name, place)), None) = (&config.extends, parent_of(config)) {
            report_unknown(cx, written, config, name, *place);
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
        let mut whole = Config::new(&config.own.name, config.own.engine);
        for ancestor in line.iter().rev().map(|&ancestor| &written[ancestor]) {
            let own = &ancestor.own;
            whole.files.extend_from_slice(&own.files);
            put_over(&mut whole.set, &own.set);
            put_over(&mut whole.load, &own.load);
            put_over(&mut whole.factors, &own.factors);
            let limits = &mut whole.limits;
            limits.memory_bytes = own.limits.memory_bytes.or(limits.memory_bytes);
            limits.cpus = own.limits.cpus.clone().or(limits.cpus.take());
            let skips = ancestor.skips_unknown_options;
            whole.skips_unknown_options = skips.unwrap_or(whole.skips_unknown_options);
            whole.statistics = ancestor.statistics.unwrap_or(whole.statistics);
        }
        declared.push(Declared {
            config: whole,
            place: config.place,
            is_extended: written.iter().any(|other| parent_of(other) == Some(index)),
        });
    }
    declared
}

/// Puts options over those of the config that is extended.
fn put_over(options: &mut Options, over: &Options) {
    for option in over {
        let mut earlier = options.iter_mut();
        match earlier.find(|(other, _)| other.eq_ignore_ascii_case(&option.0)) {
            Some(earlier) => *earlier = option.clone(),
            None => options.push(option.clone()),
        }
    }
}

fn report_unknown(
    cx: &mut Context<'_>,
    written: &[Written],
    config: &Written,
    name: &str,
    place: Place,
) {
    let engine = config.own.engine;
    let same_engine = written.iter().filter(|it| it.own.engine == engine);
    let names: Vec<&str> = same_engine.map(|it| it.own.name.as_str()).collect();
    let (own, shown) = (code(&config.own.name), code(name));
    let message = format!("config {own} extends an unknown config: {shown}");
    let elsewhere = written.iter().find(|other| other.own.name == name);
    let engine = code(engine.name());
    unknown(
        cx,
        place,
        message,
        elsewhere.map(|it| (it.own.engine, it.place)),
    )
    .label(format!("no config of {engine} has this name"))
    .help(choices(name, "configs here", &names));
}

/// Reports that a config is unknown where it is named; `elsewhere` is one of this name of another engine.
pub(crate) fn unknown<'d>(
    cx: &'d mut Context<'_>,
    place: Place,
    message: String,
    elsewhere: Option<(Engine, Place)>,
) -> &'d mut Diagnostic {
    let diagnostic = cx.error("plan::unknown-config", place, message);
    if let Some((engine, place)) = elsewhere {
        diagnostic.also(place, format!("this one is of {}", code(engine.name())));
    }
    diagnostic
}

fn report_circle(cx: &mut Context<'_>, written: &[Written], line: &[usize]) {
    let extends = |index: &usize| written[*index].extends.as_ref();
    let place_of = |index| extends(index).map_or(Place::Nowhere, |(_, place)| *place);
    let names = line.iter().chain(&line[..1]);
    let names: Vec<&str> = names
        .map(|&index| written[index].own.name.as_str())
        .collect();
    let way = code(&names.join(" -> "));
    let message = format!("config {} extends itself: {way}", code(names[0]));
    let diagnostic = cx.error("plan::extends-cycle", place_of(&line[0]), message);
    diagnostic
        .label("goes round in a circle")
        .help("take one `extends` of the circle out");
    for index in &line[1..] {
        diagnostic.also(place_of(index), "and on from here");
    }
}
