//! Reads `[factors]` and `[design]`: makes the targets that tell the effects of factors.
//!
//! Each target is the base with the levels that the design gives it. A level of an option or of an
//! environment variable is a value, a level of `builds` is a build, and a level of `configs` is what
//! that config changes in the base's.

mod keys;
mod levels;

use design::{DesignError, Kind, Levels, Request};

use self::keys::{DesignKeys, design_keys};
use self::levels::{Base, Change, Factor, Factors};
use crate::compared::builds::DeclaredBuild;
use crate::compared::configs::{DeclaredConfig, merge};
use crate::compared::options::override_options;
use crate::reading::context::{Context, Section};
use crate::spec::{Config, DesignFactor, Designed, DesignedTarget, Target};
use crate::text::diagnostic::Place;
use crate::text::tree::{Entry, Node, Table};

/// The targets that `[factors]` and `[design]` make.
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

    // The design rests on the factors.
    let Factors { base, all } =
        Factors::read(cx, &mut factors, entries.base.as_ref(), builds, configs)?;
    factors.finish(cx);
    let keys = design_keys(cx, &mut design, &all);
    design.finish(cx);

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

    let own_rows = design.targets.into_iter().map(|levels| Row { levels, is_folded: false });
    let folded_rows = folded.into_iter().map(|levels| Row { levels, is_folded: true });
    Some(own_rows.chain(folded_rows).collect())
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
