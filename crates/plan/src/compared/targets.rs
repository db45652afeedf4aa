//! Reads `[[target]]`: which builds are measured with which configs.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::builds::DeclaredBuild;
use super::configs::{DeclaredConfig, report_unknown_config};
use crate::reading::context::{Context, Section, ValueKind, tables_of};
use crate::reading::value_kinds::{Line, ListOf};
use crate::spec::{Config, Engine, Target};
use crate::text::diagnostic::Place;
use crate::text::tree::{Node, Table, Value};
use crate::text::wording::{choices, code, list, quoted};

/// The end of a twin's name; see [`with_twin`].
const TWIN_SUFFIX: &str = "-again";

/// The key that names the target that loads the database of another.
const LOAD_WITH: &str = "load-with";

/// The parts that targets are made of.
pub(crate) struct TargetParts<'a> {
    pub(crate) builds: &'a [DeclaredBuild],
    pub(crate) configs: &'a [DeclaredConfig],
}

/// The end of the name of a target whose database another one loads, before the other's name.
const LOADED_SUFFIX: &str = "-from-";

/// Targets whose databases another one loads.
struct Loaded {
    /// Their indexes.
    targets: Range<usize>,
    /// The name of the other target.
    loader: Node,
}

/// Indexes of builds or configs, each with the place where it is named.
type PlacedIndexes = Vec<(usize, Place)>;

/// Reads `[[target]]`. Without one, combines every build with every config of its engine.
pub(crate) fn read(
    cx: &mut Context<'_>,
    node: Option<Node>,
    parts: &TargetParts<'_>,
) -> Vec<Target> {
    let nodes = match node {
        Some(node) => tables_of(cx, "target", node, |cx, place| {
            cx.error("plan::empty-list", place, "`target` is an empty list")
                .label("nothing to measure")
                .help("remove it to measure every build with every config of its engine");
        }),
        // An empty table is every build with every config.
        None => vec![Node { value: Value::Table(Table::default()), place: Place::Nowhere }],
    };

    let mut targets = Vec::new();
    let mut first_places = HashMap::new();
    let mut loaded = Vec::new();
    for node in nodes {
        loaded.extend(read_one(cx, node, parts, &mut targets, &mut first_places));
    }

    for Loaded { targets: indexes, loader } in loaded {
        let index = index_named(cx, LOAD_WITH, &loader, &targets, true);
        targets[indexes].iter_mut().for_each(|target| target.load_with = index);
    }
    targets
}

/// Reads one table, and adds each of its builds with each of its configs of the same engine.
/// `first_places` has the place of each target, by its name. Returns those that others load.
fn read_one(
    cx: &mut Context<'_>,
    node: Node,
    parts: &TargetParts<'_>,
    targets: &mut Vec<Target>,
    first_places: &mut HashMap<String, Place>,
) -> Option<Loaded> {
    let errors = cx.errors();
    let place = node.place;
    let mut section = Section::of(cx, "target", node)?;

    let builds = names(cx, &mut section, "builds").map(|names| parts.builds_named(cx, &names));
    // An unknown build leaves open which engine a config should be for.
    let are_known = cx.errors() == errors;
    let builds = builds.unwrap_or_else(|| parts.all_builds());
    let configs = match names(cx, &mut section, "configs") {
        Some(names) => parts.configs_named(cx, &names, &builds, are_known),
        None => parts.configs_of(&builds, |_| true),
    };

    let loader = section.take(LOAD_WITH).map(|entry| entry.node);
    section.finish(cx);
    if cx.errors() > errors {
        return None;
    }

    cx.resolve("target", parts.show(&builds, &configs), place);
    if let Some(other) = &loader {
        let shown = other.text().map(|name| Line.show(&name.to_owned()));
        cx.resolve(format!("target.{LOAD_WITH}"), shown.unwrap_or_default(), other.place);
    }

    let first_index = targets.len();
    for (build, build_place) in &builds {
        for (config, config_place) in &configs {
            let owner = &parts.builds[*build].build;
            let declared = &parts.configs[*config];
            if owner.engine != declared.config.engine {
                continue;
            }

            let mut name = format!("{}.{}", owner.name, declared.config.name);
            if let Some(other) = loader.as_ref().and_then(Node::text) {
                name += &format!("{LOADED_SUFFIX}{other}");
            }
            let here = config_place.or(*build_place).or(place);

            if let Some(first) = first_places.get(&name) {
                let message = format!("target {} is defined twice", code(&name));
                cx.error("plan::duplicate-target", here, message)
                    .label("defined again")
                    .also(*first, "first defined here")
                    .help("remove it; to measure a target more than once, raise `repeats`");
                continue;
            }

            refuse_factor_of_both(cx, &name, &parts.builds[*build], declared);
            first_places.insert(name.clone(), here);
            targets.push(Target { name, build: *build, config: *config, load_with: None });
        }
    }
    Some(Loaded { targets: first_index..targets.len(), loader: loader? })
}

/// Refuses a factor that both the build and the config of a target set.
fn refuse_factor_of_both(
    cx: &mut Context<'_>,
    target: &str,
    build: &DeclaredBuild,
    config: &DeclaredConfig,
) {
    let of_config = &config.config.factors;
    let is_of_both = |factor: &&(String, String)| of_config.iter().any(|other| other.0 == factor.0);
    let Some((factor, _)) = build.build.factors.iter().find(is_of_both) else {
        return;
    };

    let message = format!("target {} has the factor {} twice", code(target), code(factor));
    cx.error("plan::duplicate-key", config.place, message)
        .label("its config sets it")
        .also(build.place, "its build sets it too")
        .help("set the factor in one of the two");
}

/// Takes a list of names; `None` if the table has none.
fn names(cx: &mut Context<'_>, section: &mut Section, key: &str) -> Option<Vec<(String, Place)>> {
    let node = section.take(key)?.node;
    ListOf(Line, "a list of names").read(cx, &section.name_of(key), &node)
}

/// Returns the index of the target that `key` names.
pub(crate) fn index_named(
    cx: &mut Context<'_>,
    key: &str,
    node: &Node,
    targets: &[Target],
    are_known: bool,
) -> Option<usize> {
    let name = Line.read(cx, key, node).filter(|_| are_known)?;
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();

    let index = names.iter().position(|other| *other == name);
    if index.is_none() {
        let message = format!("{} names an unknown target: {}", code(key), code(&name));
        cx.error("plan::unknown-target", node.place, message)
            .label("no target has this name")
            .help(choices(&name, "available targets", &names));
    }
    index
}

/// Returns a target and its twin: the same build with the same config under another name. Any
/// difference between the two is noise.
pub(crate) fn with_twin(cx: &mut Context<'_>, place: Place, target: &Target) -> Vec<Target> {
    if target.load_with.is_some() {
        let message = format!("target {} cannot be compared with itself", code(&target.name));
        cx.error("plan::conflict", place, message)
            .label("another target loads its database")
            .help("compare it with the target that loads its database");
        return Vec::new();
    }

    let twin = Target { name: format!("{}{TWIN_SUFFIX}", target.name), ..target.clone() };
    vec![target.clone(), twin]
}

/// Reports builds and configs that no target uses.
pub(crate) fn report_unused(cx: &mut Context<'_>, parts: &TargetParts<'_>, targets: &[Target]) {
    const HELP: &str = "add it to a `[[target]]`, or remove it";

    for (index, DeclaredBuild { build, place }) in parts.builds.iter().enumerate() {
        if !targets.iter().any(|target| target.build == index) {
            let message = format!("build {} is in no target", code(&build.name));
            cx.warning("plan::unused-build", *place, message).label("not measured").help(HELP);
        }
    }

    let measured: HashSet<usize> = targets.iter().map(|target| target.config).collect();
    for (index, declared) in parts.configs.iter().enumerate() {
        let is_used = declared.is_extended || measured.contains(&index);
        if is_used || declared.place == Place::Nowhere {
            continue;
        }

        let Config { name, engine, .. } = &declared.config;
        let message =
            format!("config {} is in no target", code(&format!("{}.{name}", engine.name())));
        let has_build = parts.builds.iter().any(|declared| declared.build.engine == *engine);
        let help = if has_build { HELP } else { "add a build of its engine, or remove it" };
        cx.warning("plan::unused-config", declared.place, message).label("not measured").help(help);
    }
}

impl TargetParts<'_> {
    fn all_builds(&self) -> PlacedIndexes {
        let indexes = 0..self.builds.len();
        indexes.map(|index| (index, Place::Nowhere)).collect()
    }

    /// Returns the configs for the engines of `builds` that pass `is_wanted`.
    fn configs_of(
        &self,
        builds: &PlacedIndexes,
        is_wanted: impl Fn(&DeclaredConfig) -> bool,
    ) -> PlacedIndexes {
        let engines: Vec<Engine> =
            builds.iter().map(|(build, _)| self.builds[*build].build.engine).collect();

        let mut configs = Vec::new();
        for (index, declared) in self.configs.iter().enumerate() {
            if engines.contains(&declared.config.engine) && is_wanted(declared) {
                configs.push((index, Place::Nowhere));
            }
        }
        configs
    }

    fn names_of(&self, configs: &PlacedIndexes) -> Vec<&str> {
        let mut known = HashSet::new();
        let names = configs.iter().map(|(config, _)| self.configs[*config].config.name.as_str());
        names.filter(|&name| known.insert(name)).collect()
    }

    fn builds_named(&self, cx: &mut Context<'_>, names: &[(String, Place)]) -> PlacedIndexes {
        let declared: Vec<&str> =
            self.builds.iter().map(|declared| declared.build.name.as_str()).collect();

        let mut builds = Vec::new();
        for (name, place) in names {
            match declared.iter().position(|other| other == name) {
                Some(index) => builds.push((index, *place)),
                None => {
                    let message = format!("unknown build: {}", code(name));
                    let header = code(&format!("[build.{name}]"));
                    cx.error("plan::unknown-build", *place, message)
                        .label("not declared")
                        .help(choices(name, "available builds", &declared))
                        .help(format!("to add a build, write {header}"));
                }
            }
        }
        builds
    }

    /// Returns the configs of these names for the engines of `builds`. One name may match a config
    /// of each engine.
    fn configs_named(
        &self,
        cx: &mut Context<'_>,
        names: &[(String, Place)],
        builds: &PlacedIndexes,
        builds_are_known: bool,
    ) -> PlacedIndexes {
        let mut configs = Vec::new();
        for (name, place) in names {
            let found = self.configs_of(builds, |declared| declared.config.name == *name);
            if found.is_empty() && builds_are_known {
                let usable = self.configs_of(builds, |_| true);
                let same_name = self.configs.iter().find(|other| other.config.name == *name);
                let elsewhere = same_name.map(|other| (other.config.engine, other.place));

                let message = format!("unknown config: {}", code(name));
                report_unknown_config(cx, *place, message, elsewhere)
                    .label("no build of this target can use a config of this name")
                    .help(choices(name, "available configs", &self.names_of(&usable)));
            }
            configs.extend(found.into_iter().map(|(index, _)| (index, *place)));
        }

        if builds_are_known && !configs.is_empty() {
            self.report_without_config(cx, builds, &configs);
        }
        configs
    }

    fn report_without_config(
        &self,
        cx: &mut Context<'_>,
        builds: &PlacedIndexes,
        configs: &PlacedIndexes,
    ) {
        for &(index, place) in builds {
            let DeclaredBuild { build, place: declared_at } = &self.builds[index];
            let mut engines = configs.iter().map(|(config, _)| self.configs[*config].config.engine);
            if engines.any(|engine| engine == build.engine) {
                continue;
            }

            let engine = code(build.engine.name());
            let usable = self.configs_of(&vec![(index, place)], |_| true);
            let names = list(&self.names_of(&usable));
            let message = format!("build {} has no config in this target", code(&build.name));
            let place = place.or(*declared_at);
            cx.error("plan::build-without-config", place, message)
                .label(format!("no config here is for {engine}"))
                .help(format!("add one of the configs for {engine}: {names}"))
                .help("or put the build in a `[[target]]` of its own");
        }
    }

    /// Writes a target's table for listings.
    fn show(&self, builds: &PlacedIndexes, configs: &PlacedIndexes) -> String {
        let builds: Vec<String> =
            builds.iter().map(|(build, _)| quoted(&self.builds[*build].build.name)).collect();
        let configs: Vec<String> = self.names_of(configs).into_iter().map(quoted).collect();
        format!("{{ builds = [{}], configs = [{}] }}", builds.join(", "), configs.join(", "))
    }
}
