//! Reads the factors of a plan: the levels of each, and what each level changes in the base.

use serde_json::{Value as Json, json};

use crate::compared::builds::DeclaredBuild;
use crate::compared::configs::{DeclaredConfig, report_unknown_config};
use crate::compared::options::{OptionValue, check_option_name, option};
use crate::reading::context::{Context, Section, ValueKind};
use crate::reading::value_kinds::{Line, ListOf};
use crate::spec::{Config, ENV, Engine};
use crate::text::diagnostic::Place;
use crate::text::tree::{Entry, Node};
use crate::text::wording::{choices, code, key_part};

/// The tables of factors.
const BUILDS: &str = "builds";
const CONFIGS: &str = "configs";
const SET: &str = "set";

/// The most levels of a factor: more are a curve, and not a choice.
const LEVELS_MAX: usize = 8;

/// A factor with what each of its levels changes in the base.
pub(super) struct Factor {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) levels: Vec<Level>,
}

pub(super) struct Level {
    /// The value, as results show it.
    pub(super) name: String,
    pub(super) change: Change,
}

/// The change that a level makes to the base.
pub(super) enum Change {
    Build(usize),
    /// The indexes of configs whose own values are merged into the base, in this order.
    Configs(Vec<usize>),
    Set(String),
    Env(String),
}

/// The build and the config without any change.
pub(super) struct Base {
    pub(super) build: usize,
    pub(super) config: usize,
}

/// The factors of a plan.
pub(super) struct Factors {
    pub(super) base: Base,
    pub(super) all: Vec<Factor>,
}

impl Factors {
    /// Reads `[factors]`. Returns `None` if the base is unknown.
    pub(super) fn read(
        cx: &mut Context<'_>,
        section: &mut Section,
        base_node: Option<&Node>,
        builds: &[DeclaredBuild],
        configs: &[DeclaredConfig],
    ) -> Option<Self> {
        // Which build and which config are the base's may follow from the first levels.
        let build_names = names_of_levels(cx, section, BUILDS);
        let config_names = names_of_levels(cx, section, CONFIGS);
        let base = base(cx, base_node, &build_names, &config_names, builds, configs)?;

        let mut all = build_factors(cx, build_names, &base, builds);
        all.extend(config_factors(cx, config_names, &base, configs));
        all.extend(option_factors(cx, section, builds[base.build].build.engine));
        check(cx, &all, section.place);
        Some(Self { base, all })
    }
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

            let mut levels = Vec::new();
            for (value, _) in values {
                let text = value.text.clone();
                let change = if key == SET { Change::Set(text) } else { Change::Env(text) };
                levels.push(Level { name: value.text, change });
            }
            all.push(Factor { name, place, levels });
        }
    }
    all
}

/// Reports factors with too few or too many levels, two factors of one name, and a plan without
/// factors.
fn check(cx: &mut Context<'_>, factors: &[Factor], place: Place) {
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
