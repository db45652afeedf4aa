//! `[[target]]`: which builds are measured with which configs.

use crate::configs::Declared;
use crate::diagnostic::{Diagnostic, Place};
use crate::kinds::{Line, ListOf};
use crate::reader::{Context, Field, Kind, Section, wrong_type};
use crate::spec::{Build, Resolved, Target};
use crate::tree::{Entry, Value};
use crate::wording::{code, did_you_mean, list};

const KEYS: [&str; 2] = ["builds", "configs"];

/// How the name of a twin ends: see [`against_itself`].
const AGAIN: &str = "-again";

/// What targets are made of.
pub(crate) struct Parts<'a> {
    pub(crate) builds: &'a [(Build, Place)],
    pub(crate) configs: &'a [Declared],
}

/// Reads `[[target]]`; without one, everything is combined with everything of its engine.
pub(crate) fn read(
    cx: &mut Context<'_>,
    entry: Option<Entry>,
    parts: &Parts<'_>,
) -> Field<Vec<Target>> {
    let mut targets = Targets {
        targets: Vec::new(),
        places: Vec::new(),
    };
    let Some(entry) = entry else {
        let (builds, configs) = (parts.all_builds(), parts.all_configs(&parts.all_builds()));
        note(cx, parts, &builds, &configs, Place::Nowhere);
        targets.add(cx, parts, &builds, &configs, Place::Nowhere);
        return Field {
            value: targets.targets,
            place: Place::Nowhere,
            trusted: true,
        };
    };
    let mut trusted = true;
    let place = entry.key_place;
    let nodes = match entry.node.value {
        Value::List(nodes) => nodes,
        Value::Broken => {
            return Field {
                value: Vec::new(),
                place,
                trusted: false,
            };
        }
        _ => {
            cx.report(
                wrong_type("target", &entry.node, "a list of tables")
                    .help("write it with two brackets: `[[target]]`"),
            );
            return Field {
                value: Vec::new(),
                place,
                trusted: false,
            };
        }
    };
    if nodes.is_empty() {
        cx.report(
            Diagnostic::error("plan::empty-list", entry.node.place, "`target` is empty")
                .label("nothing to measure")
                .help("leave it out to measure every build with every config of its engine"),
        );
        trusted = false;
    }
    for node in nodes {
        let errors = cx.diagnostics.len();
        let place = node.place;
        let Some(mut section) = Section::of(cx, "target", node, &KEYS) else {
            trusted = false;
            continue;
        };
        let builds = names(cx, &mut section, "builds").map(|names| builds_of(cx, parts, &names));
        // Without its builds it is not known of which engine a config should be.
        let builds_are_known = cx.diagnostics.len() == errors;
        let builds = builds.unwrap_or_else(|| parts.all_builds());
        let configs = names(cx, &mut section, "configs")
            .map(|names| configs_of(cx, parts, &builds, &names, builds_are_known));
        let configs = configs.unwrap_or_else(|| parts.all_configs(&builds));
        if cx.diagnostics.len() > errors {
            trusted = false;
            continue;
        }
        note(cx, parts, &builds, &configs, place);
        if !targets.add(cx, parts, &builds, &configs, place) {
            trusted = false;
        }
    }
    Field {
        value: targets.targets,
        place,
        trusted,
    }
}

/// The index of the target that `key` names.
pub(crate) fn named(
    cx: &mut Context<'_>,
    key: &str,
    entry: &Entry,
    targets: &Field<Vec<Target>>,
) -> Option<usize> {
    let name = cx.read(key, &entry.node, &Line)?;
    if !targets.trusted {
        return None;
    }
    let names: Vec<&str> = targets
        .value
        .iter()
        .map(|target| target.name.as_str())
        .collect();
    let index = names.iter().position(|other| *other == name);
    if index.is_none() {
        cx.report(
            Diagnostic::error(
                if key == "base" {
                    "plan::unknown-base"
                } else {
                    "plan::unknown-target"
                },
                entry.node.place,
                format!("{} is no target: {}", code(key), code(&name)),
            )
            .label("not a target")
            .help(format!(
                "{}targets here: {}",
                did_you_mean(&name, &names),
                list(&names)
            )),
        );
    }
    index
}

/// The target that `against-itself` names and its twin, the same build with the same config under another name: what
/// differs between the two is noise. Noted at `at`.
pub(crate) fn against_itself(
    cx: &mut Context<'_>,
    entry: &Entry,
    targets: &Field<Vec<Target>>,
    at: usize,
) -> Field<Vec<Target>> {
    let place = entry.node.place;
    let named = named(cx, "against-itself", entry, targets);
    let Some(target) = named.and_then(|index| targets.value.get(index)) else {
        return Field {
            value: Vec::new(),
            place,
            trusted: false,
        };
    };
    let value = Line.show(&target.name);
    let origin = cx.origin(place);
    cx.resolved.insert(
        at,
        Resolved {
            key: "against-itself".to_owned(),
            value,
            origin,
            place,
        },
    );
    let twin = Target {
        name: format!("{}{AGAIN}", target.name),
        ..target.clone()
    };
    Field {
        value: vec![target.clone(), twin],
        place,
        trusted: true,
    }
}

/// Reports builds and configs that nothing is measured with.
pub(crate) fn report_unused(cx: &mut Context<'_>, parts: &Parts<'_>, targets: &[Target]) {
    for (index, (build, place)) in parts.builds.iter().enumerate() {
        if !targets.iter().any(|target| target.build == index) {
            cx.report(
                Diagnostic::warning(
                    "plan::unused-build",
                    *place,
                    format!("build {} is in no target", code(&build.name)),
                )
                .label("not measured"),
            );
        }
    }
    for (index, declared) in parts.configs.iter().enumerate() {
        let is_used = declared.is_extended || targets.iter().any(|target| target.config == index);
        if !is_used && declared.place != Place::Nowhere {
            let name = format!("{}.{}", declared.config.engine.name(), declared.config.name);
            cx.report(
                Diagnostic::warning(
                    "plan::unused-config",
                    declared.place,
                    format!("config {} is in no target", code(&name)),
                )
                .label("not measured"),
            );
        }
    }
}

impl Parts<'_> {
    fn all_builds(&self) -> Vec<(usize, Place)> {
        (0..self.builds.len())
            .map(|index| (index, Place::Nowhere))
            .collect()
    }

    /// All configs of the engines of `builds`.
    fn all_configs(&self, builds: &[(usize, Place)]) -> Vec<(usize, Place)> {
        let is_of =
            |declared: &Declared| builds.iter().any(|(build, _)| self.fits(*build, declared));
        let configs = self
            .configs
            .iter()
            .enumerate()
            .filter(|(_, declared)| is_of(declared));
        configs.map(|(index, _)| (index, Place::Nowhere)).collect()
    }

    fn fits(&self, build: usize, declared: &Declared) -> bool {
        self.builds[build].0.engine == declared.config.engine
    }
}

fn names(cx: &mut Context<'_>, section: &mut Section, key: &str) -> Option<Vec<(String, Place)>> {
    let entry = section.take(key)?;
    cx.read(
        &section.name_of(key),
        &entry.node,
        &ListOf(Line, "a list of names"),
    )
}

fn builds_of(
    cx: &mut Context<'_>,
    parts: &Parts<'_>,
    names: &[(String, Place)],
) -> Vec<(usize, Place)> {
    let declared: Vec<&str> = parts
        .builds
        .iter()
        .map(|(build, _)| build.name.as_str())
        .collect();
    let mut builds = Vec::new();
    for (name, place) in names {
        match declared.iter().position(|other| other == name) {
            Some(index) => builds.push((index, *place)),
            None => cx.report(
                Diagnostic::error(
                    "plan::unknown-build",
                    *place,
                    format!("unknown build: {}", code(name)),
                )
                .label("not declared")
                .help(format!(
                    "{}builds here: {}",
                    did_you_mean(name, &declared),
                    list(&declared)
                ))
                .help(format!(
                    "declare it with {}",
                    code(&format!("[build.{name}]"))
                )),
            ),
        }
    }
    builds
}

/// The configs of these names for the engines of `builds`: one name may stand for several, one of each engine.
fn configs_of(
    cx: &mut Context<'_>,
    parts: &Parts<'_>,
    builds: &[(usize, Place)],
    names: &[(String, Place)],
    builds_are_known: bool,
) -> Vec<(usize, Place)> {
    let mut configs = Vec::new();
    for (name, place) in names {
        let named = parts
            .configs
            .iter()
            .enumerate()
            .filter(|(_, declared)| declared.config.name == *name);
        let named: Vec<(usize, &Declared)> = named.collect();
        let before = configs.len();
        let is_of =
            |declared: &Declared| builds.iter().any(|(build, _)| parts.fits(*build, declared));
        configs.extend(
            named
                .iter()
                .filter(|(_, declared)| is_of(declared))
                .map(|(index, _)| (*index, *place)),
        );
        if configs.len() > before || !builds_are_known {
            continue;
        }
        let of_builds = parts.all_configs(builds);
        let usable: Vec<&str> = of_builds
            .iter()
            .map(|(index, _)| parts.configs[*index].config.name.as_str())
            .collect();
        let help = format!(
            "{}configs of these builds: {}",
            did_you_mean(name, &usable),
            list(&usable)
        );
        let diagnostic = match named.first() {
            None => Diagnostic::error(
                "plan::unknown-config",
                *place,
                format!("unknown config: {}", code(name)),
            )
            .label("not declared"),
            Some((_, declared)) => Diagnostic::error(
                "plan::config-without-build",
                *place,
                format!("no build of this target can use config {}", code(name)),
            )
            .label(format!(
                "a config of {}",
                code(declared.config.engine.name())
            ))
            .also(declared.place, "declared here"),
        };
        cx.report(diagnostic.help(help));
    }
    if builds_are_known {
        for (build, place) in builds {
            if !configs
                .iter()
                .any(|(config, _)| parts.fits(*build, &parts.configs[*config]))
                && !configs.is_empty()
            {
                report_without_config(cx, parts, *build, *place);
            }
        }
    }
    configs
}

fn report_without_config(cx: &mut Context<'_>, parts: &Parts<'_>, build: usize, place: Place) {
    let (build_name, engine) = (&parts.builds[build].0.name, parts.builds[build].0.engine);
    let usable: Vec<&str> = parts
        .configs
        .iter()
        .filter(|declared| declared.config.engine == engine)
        .map(|declared| declared.config.name.as_str())
        .collect();
    let place = if place == Place::Nowhere {
        parts.builds[build].1
    } else {
        place
    };
    cx.report(
        Diagnostic::error(
            "plan::build-without-config",
            place,
            format!("build {} has no config in this target", code(build_name)),
        )
        .label(format!("a build of {}", code(engine.name())))
        .help(format!(
            "configs of {}: {}",
            code(engine.name()),
            list(&usable)
        ))
        .help("targets of different engines may stand in tables `[[target]]` of their own"),
    );
}

/// Notes a target's table for people.
fn note(
    cx: &mut Context<'_>,
    parts: &Parts<'_>,
    builds: &[(usize, Place)],
    configs: &[(usize, Place)],
    place: Place,
) {
    let build_names: Vec<String> = builds
        .iter()
        .map(|(index, _)| parts.builds[*index].0.name.clone())
        .collect();
    let mut config_names: Vec<String> = Vec::new();
    for (index, _) in configs {
        let name = &parts.configs[*index].config.name;
        if !config_names.contains(name) {
            config_names.push(name.clone());
        }
    }
    let show = |names: &[String]| {
        format!(
            "[{}]",
            names
                .iter()
                .map(|name| Line.show(name))
                .collect::<Vec<_>>()
                .join(", ")
        )
    };
    let value = format!(
        "{{ builds = {}, configs = {} }}",
        show(&build_names),
        show(&config_names)
    );
    cx.resolve("target", value, place);
}

/// Targets as they are found.
struct Targets {
    targets: Vec<Target>,
    /// Where each came from.
    places: Vec<Place>,
}

impl Targets {
    /// Adds every build with every config of its engine. `false` when one was there already, which is reported.
    fn add(
        &mut self,
        cx: &mut Context<'_>,
        parts: &Parts<'_>,
        builds: &[(usize, Place)],
        configs: &[(usize, Place)],
        place: Place,
    ) -> bool {
        let mut is_new = true;
        for (build, build_place) in builds {
            for (config, config_place) in configs {
                if !parts.fits(*build, &parts.configs[*config]) {
                    continue;
                }
                let name = format!(
                    "{}.{}",
                    parts.builds[*build].0.name, parts.configs[*config].config.name
                );
                let here = if *config_place == Place::Nowhere {
                    *build_place
                } else {
                    *config_place
                };
                let here = if here == Place::Nowhere { place } else { here };
                if let Some(first) = self.targets.iter().position(|target| target.name == name) {
                    is_new = false;
                    cx.report(
                        Diagnostic::error(
                            "plan::duplicate-target",
                            here,
                            format!("target {} is there twice", code(&name)),
                        )
                        .label("there already")
                        .also(self.places[first], "first here")
                        .help("take it out: `repeats` measures a target more than once"),
                    );
                    continue;
                }
                self.targets.push(Target {
                    name,
                    build: *build,
                    config: *config,
                });
                self.places.push(here);
            }
        }
        is_new
    }
}
