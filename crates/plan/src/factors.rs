//! Reads `[factors]` and `[design]`: makes the targets that tell the effects of factors.
//!
//! Each target is the base with the levels that the design gives it. A level of an option or of an
//! environment variable is a value, a level of `builds` is a build, and a level of `configs` is
//! what that config changes in the base's.

use design::{DesignError, Exclusion, Kind, Levels, Request};
use serde_json::{Value as Json, json};

use crate::builds::DeclaredBuild;
use crate::configs::{
    DeclaredConfig, OptionValue, check_option_name, merge, option, override_options,
    report_unknown_config,
};
use crate::diagnostic::Place;
use crate::quantity::Quantity;
use crate::reader::{Context, Section, ValueKind, tables_of};
use crate::spec::{Config, DesignFactor, Designed, DesignedTarget, ENV, Engine, Target};
use crate::tree::{Entry, Node, Table, Value};
use crate::value_kinds::{Choice, Flag, Line, ListOf, Optional};
use crate::wording::{choices, code, key_part};

/// The tables of factors, in the order in which errors about them are reported.
const BUILDS: &str = "builds";
const CONFIGS: &str = "configs";
const SET: &str = "set";

/// The most levels of a factor: more are a curve, and not a choice.
const LEVELS_MAX: usize = 8;

/// What `[factors]` and `[design]` make.
pub(crate) struct MadeTargets {
    pub(crate) designed: Designed,
    pub(crate) targets: Vec<Target>,
}

/// The keys of a plan that designs use.
pub(crate) struct DesignEntries {
    pub(crate) design: Option<Entry>,
    pub(crate) factors: Option<Entry>,
    /// The value of `base`.
    pub(crate) base: Option<Node>,
    /// The place of `[[target]]`.
    pub(crate) target: Option<Place>,
}

impl DesignEntries {
    /// Returns whether the plan has any of the two tables.
    pub(crate) fn are_given(&self) -> bool {
        self.design.is_some() || self.factors.is_some()
    }
}

/// A factor with what each of its levels changes in the base.
struct Factor {
    name: String,
    place: Place,
    levels: Vec<Level>,
}

struct Level {
    /// The value, as results show it.
    name: String,
    change: Change,
}

/// What a level changes in the base.
enum Change {
    Build(usize),
    /// The indexes of configs whose own values are merged into the base, in this order.
    Configs(Vec<usize>),
    Set(String),
    Env(String),
}

/// The build and the config without any change.
struct Base {
    build: usize,
    config: usize,
}

/// The keys of `[design]`.
struct DesignKeys {
    kind: Kind,
    target_count: Option<usize>,
    folds: bool,
    exclusions: Vec<Exclusion>,
    /// The levels of each combination of a listed design.
    combinations: Vec<Levels>,
    place: Place,
}

/// Reads both tables, adds the configs of the design's targets to `configs`, and returns the
/// targets. Returns `None` after an error.
pub(crate) fn read(
    cx: &mut Context<'_>,
    entries: DesignEntries,
    builds: &[DeclaredBuild],
    configs: &mut Vec<DeclaredConfig>,
) -> Option<MadeTargets> {
    let errors = cx.errors();
    let design_place = entries.design.as_ref().map_or(Place::Nowhere, |entry| entry.node.place);
    let factors_place = entries.factors.as_ref().map_or(design_place, |entry| entry.node.place);
    if let Some(target) = entries.target {
        cx.error("plan::conflict", target, "a plan with `[factors]` has no `[[target]]`")
            .label("the design makes the targets")
            .also(factors_place, "the factors")
            .help("remove `[[target]]`, and name the target without any change as `base`");
    }

    let design = entries.design.and_then(|entry| Section::of(cx, "design", entry.node));
    let mut design =
        design.unwrap_or_else(|| Section::new("design", Table::default(), Place::Nowhere));
    let factors = entries.factors.and_then(|entry| Section::of(cx, "factors", entry.node));
    let mut factors =
        factors.unwrap_or_else(|| Section::new("factors", Table::default(), design_place));

    // Errors about names and values come before the design, which rests on them.
    let build_names = names_of_levels(cx, &mut factors, BUILDS);
    let config_names = names_of_levels(cx, &mut factors, CONFIGS);
    let base = base(cx, entries.base.as_ref(), &build_names, &config_names, builds, configs)?;
    let mut all = build_factors(cx, build_names, &base, builds);
    all.extend(config_factors(cx, config_names, &base, configs));
    all.extend(option_factors(cx, &mut factors, builds[base.build].build.engine));
    factors.finish(cx);
    let keys = design_keys(cx, &mut design, &all);
    design.finish(cx);
    check_factors(cx, &all, factors_place);
    if cx.errors() > errors {
        return None;
    }

    let rows = rows(cx, &keys, &all, factors_place)?;
    let shown = format!("(the {} targets of the design)", rows.len());
    cx.resolve("target", shown, Place::Nowhere);
    Some(make_targets(keys.kind, &all, &base, rows, builds, configs))
}

/// The levels of a target.
struct Row {
    levels: Levels,
    is_folded: bool,
}

/// A factor whose levels are names of builds or configs.
struct NamedLevels {
    name: String,
    place: Place,
    levels: Vec<(String, Place)>,
}

/// Reads `[factors.builds]` or `[factors.configs]`.
fn names_of_levels(cx: &mut Context<'_>, factors: &mut Section, key: &str) -> Vec<NamedLevels> {
    let path = factors.name_of(key);
    let mut all = Vec::new();
    for Entry { key: name, key_place: place, node } in cx.table(factors, key).entries {
        if !check_option_name(cx, &path, &name, place, true) {
            continue;
        }
        let full = format!("{path}.{}", key_part(&name));
        let kind = ListOf(Line, "a list of names");
        if let Some(levels) = kind.read(cx, &full, &node) {
            cx.resolve(full, kind.show(&levels), node.place);
            all.push(NamedLevels { name, place, levels });
        }
    }
    all
}

/// Returns the build and the config of the base: those that `base` names, else the first levels of
/// factors, else the first build and the first config of its engine.
fn base(
    cx: &mut Context<'_>,
    node: Option<&Node>,
    build_names: &[NamedLevels],
    config_names: &[NamedLevels],
    builds: &[DeclaredBuild],
    configs: &[DeclaredConfig],
) -> Option<Base> {
    let given = node.and_then(Node::text);
    let (given_build, given_config) = match given.map(|name| name.split_once('.')) {
        Some(Some((build, config))) => (Some(build), Some(config)),
        // The error about the name of a target is reported where the base is read.
        _ => (None, None),
    };

    let first = |all: &[NamedLevels]| Some(all.first()?.levels.first()?.0.clone());
    let build_name = given_build.map(str::to_owned).or_else(|| first(build_names));
    let build = match build_name {
        Some(name) => builds.iter().position(|declared| declared.build.name == name)?,
        None => 0,
    };

    let engine = builds.get(build)?.build.engine;
    let config_name = given_config.map(str::to_owned).or_else(|| first(config_names));
    let config = configs.iter().position(|declared| {
        let Config { name, engine: of, .. } = &declared.config;
        *of == engine && config_name.as_ref().is_none_or(|wanted| wanted == name)
    });
    if config.is_none() {
        let place = node.map_or(Place::Nowhere, |node| node.place);
        let name = config_name.unwrap_or_default();
        let message = format!("the base of the design has an unknown config: {}", code(&name));
        report_unknown_config(cx, place, message, None).label("no config has this name");
    }
    Some(Base { build, config: config? })
}

/// Returns the factors of `[factors.builds]`. The first level must be the base's build.
fn build_factors(
    cx: &mut Context<'_>,
    named: Vec<NamedLevels>,
    base: &Base,
    builds: &[DeclaredBuild],
) -> Vec<Factor> {
    let of_base = &builds[base.build].build;
    let names: Vec<&str> = builds.iter().map(|declared| declared.build.name.as_str()).collect();
    let mut factors = Vec::new();
    for NamedLevels { name, place, levels } in named {
        report_other_base(cx, &levels, &of_base.name, "build");

        let mut found = Vec::new();
        for (level, level_place) in levels {
            let Some(index) = names.iter().position(|other| *other == level) else {
                let message = format!("unknown build: {}", code(&level));
                cx.error("plan::unknown-build", level_place, message)
                    .label("not declared")
                    .help(choices(&level, "available builds", &names));
                continue;
            };
            if builds[index].build.engine != of_base.engine {
                let message = format!("build {} is of another engine than the base", code(&level));
                cx.error("plan::conflict", level_place, message)
                    .label(format!("the base is of {}", code(of_base.engine.name())))
                    .help("compare engines with `[[target]]`: they have no options in common");
                continue;
            }
            found.push(Level { name: level, change: Change::Build(index) });
        }
        factors.push(Factor { name, place, levels: found });
    }
    factors
}

/// Returns the factors of `[factors.configs]`. The first level must be the base's config, and the
/// others must extend it.
fn config_factors(
    cx: &mut Context<'_>,
    named: Vec<NamedLevels>,
    base: &Base,
    configs: &[DeclaredConfig],
) -> Vec<Factor> {
    let of_base = &configs[base.config].config;
    let mut factors = Vec::new();
    for NamedLevels { name, place, levels } in named {
        report_other_base(cx, &levels, &of_base.name, "config");

        let mut found = Vec::new();
        for (level, level_place) in levels {
            let index = configs.iter().position(|declared| {
                declared.config.engine == of_base.engine && declared.config.name == level
            });
            let Some(index) = index else {
                let message = format!("unknown config: {}", code(&level));
                report_unknown_config(cx, level_place, message, None)
                    .label(format!("no config of {} has this name", code(of_base.engine.name())));
                continue;
            };
            let Some(changes) = changes_of(index, base.config, configs) else {
                let message =
                    format!("config {} does not extend {}", code(&level), code(&of_base.name));
                cx.error("plan::conflict", level_place, message)
                    .label("a level is what the config changes in the base's config")
                    .help(format!("add `extends = \"{}\"` to the config", of_base.name));
                continue;
            };
            found.push(Level { name: level, change: Change::Configs(changes) });
        }
        factors.push(Factor { name, place, levels: found });
    }
    factors
}

/// Reports a first level that is not the base's.
fn report_other_base(cx: &mut Context<'_>, levels: &[(String, Place)], base: &str, what: &str) {
    let Some((first, place)) = levels.first().filter(|(first, _)| first != base) else {
        return;
    };
    let message = format!("the first level, {}, is not the base's {what}", code(first));
    cx.error("plan::conflict", *place, message)
        .label(format!("the base has {}", code(base)))
        .help(format!("put {} first, or set `base`", code(base)));
}

/// Returns the configs by which a config differs from the base's, the base's own child first;
/// `None` if it does not extend the base's.
fn changes_of(index: usize, base: usize, configs: &[DeclaredConfig]) -> Option<Vec<usize>> {
    let mut changes = Vec::new();
    let mut next = index;
    while next != base {
        changes.push(next);
        next = configs[next].parent?;
    }
    changes.reverse();
    Some(changes)
}

/// The levels of an option.
struct LevelOf<'n> {
    engine: Engine,
    option: &'n str,
}

impl ValueKind for LevelOf<'_> {
    type Value = OptionValue;

    fn read(&self, cx: &mut Context<'_>, name: &str, node: &Node) -> Option<OptionValue> {
        option(cx, self.engine, name, self.option, node)
    }

    fn show(&self, value: &OptionValue) -> String {
        value.shown.clone()
    }

    fn schema(&self) -> Json {
        json!({ "type": ["string", "number", "boolean"] })
    }
}

/// Reads `[factors.set]` and `[factors.env]`.
fn option_factors(cx: &mut Context<'_>, factors: &mut Section, engine: Engine) -> Vec<Factor> {
    let mut all = Vec::new();
    for key in [SET, ENV] {
        let path = factors.name_of(key);
        // Environment variables are text.
        let notation = if key == SET { engine } else { Engine::Null };
        for Entry { key: name, key_place: place, node } in cx.table(factors, key).entries {
            if !check_option_name(cx, &path, &name, place, true) {
                continue;
            }
            let full = format!("{path}.{}", key_part(&name));
            let kind = ListOf(LevelOf { engine: notation, option: &name }, "a list of values");
            let Some(values) = kind.read(cx, &full, &node) else {
                continue;
            };
            cx.resolve(full, kind.show(&values), node.place);

            let levels = values.into_iter().map(|(value, _)| Level {
                name: value.text.clone(),
                change: if key == SET { Change::Set(value.text) } else { Change::Env(value.text) },
            });
            let levels = levels.collect();
            all.push(Factor { name, place, levels });
        }
    }
    all
}

/// Reports factors with too few or too many levels, two factors of one name, and a plan without
/// factors.
fn check_factors(cx: &mut Context<'_>, factors: &[Factor], place: Place) {
    if factors.is_empty() {
        cx.error("plan::missing-key", place, "the design has no factors")
            .label("nothing would be changed")
            .help("name options with their levels: `[factors.set]` and `shared_buffers = [\"1GB\", \"4GB\"]`");
    }

    for (index, factor) in factors.iter().enumerate() {
        let name = code(&factor.name);
        let count = factor.levels.len();
        if !(2..=LEVELS_MAX).contains(&count) {
            let levels = words::counted(count, "level");
            let message = format!("factor {name} has {levels}; expected 2 to {LEVELS_MAX}");
            cx.error("plan::bad-value", factor.place, message)
                .label("the first level is the base's")
                .help("list the base's value first, then the others");
        }
        if let Some(first) = factors[..index].iter().find(|other| other.name == factor.name) {
            let message = format!("factor {name} is given twice");
            cx.error("plan::duplicate-key", factor.place, message)
                .label("given again")
                .also(first.place, "first given here")
                .help("rename one of them");
        }
    }
}

/// Reads `[design]`.
fn design_keys(cx: &mut Context<'_>, section: &mut Section, factors: &[Factor]) -> DesignKeys {
    let counts = Optional(Quantity::count(4..=32), "(the fewest of 4, 8, 16 or 32)");
    let keys = DesignKeys {
        kind: cx.value(section, "kind", &Choice(Kind::NAMES), Kind::Screening),
        target_count: cx.value(section, "targets", &counts, None).map(|count: u32| count as usize),
        folds: cx.value(section, "fold-over", &Flag, false),
        exclusions: exclusions(cx, section, factors),
        combinations: combinations(cx, section, factors),
        place: section.place,
    };

    if (keys.kind == Kind::Listed) == keys.combinations.is_empty() {
        let message = "`design.combinations` is for `kind = \"listed\"`, which needs it";
        cx.error("plan::conflict", section.place, message)
            .label("in this table")
            .help("list the levels of each target: `combinations = [{ FACTOR = LEVEL }]`");
    }
    keys
}

/// Reads the levels that can't go together.
fn exclusions(cx: &mut Context<'_>, section: &mut Section, factors: &[Factor]) -> Vec<Exclusion> {
    let tables = tables_of_levels(cx, section, "exclude", factors).into_iter();
    tables.map(|levels| Exclusion { levels }).collect()
}

/// Reads the combinations of a listed design. Factors that a combination does not name have the
/// base's level.
fn combinations(cx: &mut Context<'_>, section: &mut Section, factors: &[Factor]) -> Vec<Levels> {
    let mut combinations = Vec::new();
    for given in tables_of_levels(cx, section, "combinations", factors) {
        let mut levels = vec![0; factors.len()];
        for (factor, level) in given {
            levels[factor] = level;
        }
        combinations.push(levels);
    }
    combinations
}

/// Reads a list of tables of factors and levels, as indexes.
fn tables_of_levels(
    cx: &mut Context<'_>,
    section: &mut Section,
    key: &str,
    factors: &[Factor],
) -> Vec<Vec<(usize, usize)>> {
    let path = section.name_of(key);
    let Some(entry) = section.take(key) else {
        return Vec::new();
    };

    let mut tables = Vec::new();
    let mut shown = Vec::new();
    for node in tables_of(cx, &path, entry.node.clone(), |_, _| {}) {
        let Value::Table(table) = node.value else {
            cx.wrong_type(&path, &node, "a table of factors and levels")
                .help("write it as `{ FACTOR = LEVEL, OTHER = LEVEL }`");
            continue;
        };
        let mut levels = Vec::new();
        let mut written = Vec::new();
        for Entry { key, key_place, node } in table.entries {
            if let Some(level) = named_level(cx, &key, key_place, &node, factors) {
                written.push(format!(
                    "{} = {}",
                    key_part(&key),
                    node.literal().unwrap_or_default()
                ));
                levels.push(level);
            }
        }
        shown.push(format!("{{ {} }}", written.join(", ")));
        tables.push(levels);
    }
    cx.resolve(path, format!("[{}]", shown.join(", ")), entry.node.place);
    tables
}

/// Returns the index of a factor and of its level.
fn named_level(
    cx: &mut Context<'_>,
    name: &str,
    place: Place,
    node: &Node,
    factors: &[Factor],
) -> Option<(usize, usize)> {
    let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
    let Some(factor) = names.iter().position(|other| *other == name) else {
        let message = format!("unknown factor: {}", code(name));
        cx.error("plan::unknown-key", place, message).label("not in `[factors]`").help(choices(
            name,
            "available factors",
            &names,
        ));
        return None;
    };

    // A level that could not be read was reported before.
    let is_level = |level: &Level| match &node.value {
        Value::Boolean(flag) => ["on", "true", "1"].contains(&level.name.as_str()) == *flag,
        Value::Integer(text) | Value::Float(text) | Value::String(text) | Value::Bare(text) => {
            *text == level.name
        }
        _ => false,
    };
    let level = factors[factor].levels.iter().position(is_level);
    if level.is_none() {
        let levels: Vec<&str> =
            factors[factor].levels.iter().map(|level| level.name.as_str()).collect();
        let message = format!("factor {} has no such level", code(name));
        cx.error("plan::bad-value", node.place, message)
            .label("not a level")
            .help(format!("levels: {}", levels.join(", ")));
    }
    Some((factor, level?))
}

/// Returns the levels of all targets; reports why there is no design.
fn rows(
    cx: &mut Context<'_>,
    keys: &DesignKeys,
    factors: &[Factor],
    factors_place: Place,
) -> Option<Vec<Row>> {
    let level_counts: Vec<usize> = factors.iter().map(|factor| factor.levels.len()).collect();
    let place = keys.place.or(factors_place);
    let allowed = design::TARGET_COUNTS;
    if let Some(count) = keys.target_count.filter(|count| !allowed.contains(count)) {
        let counts: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        let message = format!("no screening has {count} targets");
        cx.error("plan::bad-value", place, message)
            .label("in this table")
            .help(format!("expected one of {}", counts.join(", ")));
        return None;
    }

    let request = Request {
        kind: keys.kind,
        level_counts: &level_counts,
        target_count: keys.target_count,
        excluded: &keys.exclusions,
        listed: &keys.combinations,
    };
    let design = match design::generate(&request) {
        Ok(design) => design,
        Err(error) => {
            report_no_design(cx, place, error);
            return None;
        }
    };

    let mut folded = if keys.folds { design.folded() } else { Vec::new() };
    folded.retain(|levels| !keys.exclusions.iter().any(|exclusion| exclusion.forbids(levels)));
    let folded = folded.into_iter().map(|levels| Row { levels, is_folded: true });
    let own = design.targets.into_iter().map(|levels| Row { levels, is_folded: false });
    Some(own.chain(folded).collect())
}

fn report_no_design(cx: &mut Context<'_>, place: Place, error: DesignError) {
    let message = format!("there is no such design: {error}");
    let help = match error {
        DesignError::BaseExcluded => "the base has the first level of each factor",
        DesignError::TooFewTargets { needed: Some(_) } => "raise `design.targets`",
        DesignError::TooFewTargets { needed: None } => {
            "remove factors, or measure them in two plans"
        }
        DesignError::TooManyTargets(_) => "use `kind = \"screening\"`",
        DesignError::NotEstimable => "remove an exclusion, or raise `design.targets`",
    };
    cx.error("plan::no-design", place, message).label("for these factors").help(help);
}

/// Adds a config for each target of a design, and returns the targets. The first one is the base,
/// which keeps its name.
fn make_targets(
    kind: Kind,
    factors: &[Factor],
    base: &Base,
    rows: Vec<Row>,
    builds: &[DeclaredBuild],
    configs: &mut Vec<DeclaredConfig>,
) -> MadeTargets {
    let base_config = configs[base.config].clone();
    let mut targets = Vec::new();
    let mut designed_targets = Vec::new();
    for (index, row) in rows.into_iter().enumerate() {
        let Changed { build, mut config } = base.changed(&row.levels, factors, configs);
        config.name = base_config.config.name.clone();
        if index > 0 {
            config.name += &format!("-{:02}", index + 1);
        }
        let name = format!("{}.{}", builds[build].build.name, config.name);
        configs.push(DeclaredConfig { config, ..base_config.clone() });

        designed_targets.push(DesignedTarget {
            target: name.clone(),
            levels: row.levels,
            is_folded: row.is_folded,
        });
        targets.push(Target { name, build, config: configs.len() - 1, load_with: None });
    }

    let named = factors.iter().map(|factor| DesignFactor {
        name: factor.name.clone(),
        levels: factor.levels.iter().map(|level| level.name.clone()).collect(),
    });
    let designed = Designed { kind, factors: named.collect(), targets: designed_targets };
    MadeTargets { designed, targets }
}

/// The base with the changes of some levels.
struct Changed {
    build: usize,
    config: Config,
}

impl Base {
    /// Returns the base with these levels of the factors.
    fn changed(&self, levels: &Levels, factors: &[Factor], configs: &[DeclaredConfig]) -> Changed {
        let config = configs[self.config].config.clone();
        let mut changed = Changed { build: self.build, config };
        for (factor, level) in factors.iter().zip(levels) {
            let level = &factor.levels[*level];
            let named = |value: &str| vec![(factor.name.clone(), value.to_owned())];
            match &level.change {
                Change::Build(build) => changed.build = *build,
                Change::Configs(indexes) => {
                    let written =
                        indexes.iter().filter_map(|index| configs[*index].written.as_ref());
                    for written in written {
                        changed.config = merge(Some(&changed.config), written);
                    }
                }
                Change::Set(value) => override_options(&mut changed.config.set, &named(value)),
                Change::Env(value) => override_options(&mut changed.config.env, &named(value)),
            }
            override_options(&mut changed.config.factors, &named(&level.name));
        }
        changed
    }
}
