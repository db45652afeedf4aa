//! Compares how assay measured in two runs: its clock, and options that cost time themselves.

use std::collections::BTreeSet;

use record::{FactDifference, Run, Target};

use super::{Facts, Recorded};

/// The fact of the host that names assay's clock.
pub const CLOCK: &str = "assay_clock";

/// The key of a plan that counts system calls, which makes the engine slower.
const SYSTEM_CALLS: &str = "system-calls";

/// The name of the fact that says which tool measured: tools count times, errors and samples of the
/// host differently.
const MEASURED_BY: &str = "measured by";

/// The source of settings that assay itself makes.
const SOURCE: &str = "assay";

/// Options of a config that are not settings of the engine, each with its default.
const CONFIG_OPTIONS: [(&str, &str); 4] =
    [("statistics", "false"), ("memory", ""), ("cpus", ""), ("cpu-quota", "")];

/// Returns the values of [`CONFIG_OPTIONS`] of a target that are not the default, in the plan's
/// notation.
pub fn declared(run: &Run, target: &Target) -> Facts {
    let value = |config: &str, key: &str| {
        let key = format!("config.{}.{config}.{key}", target.engine);
        let mut values = run.plan.resolved.iter();
        values.find(|value| value.key == key)
    };

    // The config, then the configs that it extends.
    let mut configs = vec![target.config.clone()];
    while let Some(parent) = configs.last().and_then(|last| value(last, "extends")) {
        let parent = parent.value.trim_matches('"').to_owned();
        if configs.contains(&parent) {
            break;
        }
        configs.push(parent);
    }

    let declared = CONFIG_OPTIONS.iter().filter_map(|(key, default)| {
        let declared = configs.iter().find_map(|config| value(config, key))?;
        (declared.value != *default).then(|| ((*key).to_owned(), declared.value.clone()))
    });
    declared.collect()
}

/// Returns the differences between how two runs measured.
pub fn differences(first: &Recorded, other: &Recorded) -> Vec<FactDifference> {
    let shared = &engines(first) & &engines(other);
    let mut own = BTreeSet::new();
    for (_, cell) in first.cells.iter().chain(&other.cells) {
        if !shared.contains(&cell.engine) {
            continue;
        }
        let made = cell.settings.iter().filter(|setting| setting.source.as_deref() == Some(SOURCE));
        own.extend(made.map(|setting| (&cell.engine, &setting.name)));
    }

    let facts = |recorded: &Recorded| -> Facts {
        let settings = own.iter().map(|(engine, name)| {
            let values = values(recorded, engine, name);
            ((*name).clone(), values)
        });
        let mut host = recorded.run.host.facts.iter();
        let clock = host.find(|(name, _)| name == CLOCK).cloned();
        let mut planned = recorded.run.plan.resolved.iter();
        let calls = planned.find(|value| value.key == SYSTEM_CALLS);
        let counted = calls.map_or("off", |value| value.value.trim_matches('"'));

        let system_calls = (SYSTEM_CALLS.to_owned(), counted.to_owned());
        let tool = (MEASURED_BY.to_owned(), measured_by(&recorded.run));
        settings.chain(clock).chain([system_calls, tool]).collect()
    };

    let mut differences = super::differences(&facts(first), &facts(other));
    // Records without a clock are not compared.
    differences.retain(|fact| fact.first.is_some() && fact.now.is_some());
    differences
}

/// Returns the tools that measured a run.
fn measured_by(run: &Run) -> String {
    match &run.imported {
        Some(imported) => imported.tools.join(" and "),
        None => "assay".to_owned(),
    }
}

/// Returns the engines whose settings are known: one that never started has none.
fn engines(recorded: &Recorded) -> BTreeSet<String> {
    let known = recorded.cells.iter().filter(|(_, cell)| !cell.settings.is_empty());
    known.map(|(_, cell)| cell.engine.clone()).collect()
}

/// Returns the distinct values of a setting in the cells. Older versions may lack it.
fn values(recorded: &Recorded, engine: &str, name: &str) -> String {
    let cells = recorded.cells.iter().map(|(_, cell)| cell);
    let of_engine = cells.filter(|cell| cell.engine == engine && !cell.settings.is_empty());

    let distinct: BTreeSet<&str> = of_engine
        .map(|cell| {
            let mut settings = cell.settings.iter();
            let setting = settings.find(|setting| setting.name == name);
            setting.map_or("not set", |setting| &setting.value)
        })
        .collect();
    distinct.into_iter().collect::<Vec<_>>().join(" and ")
}
