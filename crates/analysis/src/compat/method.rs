//! What assay itself is made to do beside measuring, and what it measures by: told where runs did not have the same, since
//! it has a cost of its own.

use std::collections::BTreeSet;

use record::{FactDifference, Run, Target};

use super::{Facts, Recorded};

/// The fact of the host that is assay's own choice: what it reads the time from.
pub const CLOCK: &str = "assay_clock";

/// Settings of a cell that come from assay, which uses an engine so, have this source.
const SOURCE: &str = "assay";

/// What a config may have beside the settings of its engine, and the value that is as good as none.
const OF_CONFIGS: [(&str, &str); 3] = [("statistics", "false"), ("memory", ""), ("cpus", "")];

/// Returns what of it a target has by its config, in the plan's notation: what the library counts, and limits.
pub fn declared(run: &Run, target: &Target) -> Facts {
    let value = |config: &str, key: &str| {
        let key = format!("config.{}.{config}.{key}", target.engine);
        let mut values = run.plan.resolved.iter();
        values.find(|value| value.key == key)
    };
    // What a config extends comes after it; none extends itself.
    let mut line = vec![target.config.clone()];
    while let Some(parent) = line.last().and_then(|last| value(last, "extends")) {
        let parent = parent.value.trim_matches('"').to_owned();
        if line.contains(&parent) {
            break;
        }
        line.push(parent);
    }
    let declared = OF_CONFIGS.iter().filter_map(|(key, none)| {
        let given = line.iter().find_map(|config| value(config, key))?;
        (given.value != *none).then(|| ((*key).to_owned(), given.value.clone()))
    });
    declared.collect()
}

/// Returns in what the way of measuring was another one.
pub fn differences(first: &Recorded, other: &Recorded) -> Vec<FactDifference> {
    let engines = |recorded: &Recorded| -> BTreeSet<String> {
        // Of an engine that never came up nothing is known.
        let known = recorded
            .cells
            .iter()
            .filter(|(_, cell)| !cell.settings.is_empty());
        known.map(|(_, cell)| cell.engine.clone()).collect()
    };
    let shared = &engines(first) & &engines(other);
    let mut own = BTreeSet::new();
    for (_, cell) in first.cells.iter().chain(&other.cells) {
        let settings = cell.settings.iter();
        let settings = settings.filter(|_| shared.contains(&cell.engine));
        let made = settings.filter(|setting| setting.source.as_deref() == Some(SOURCE));
        own.extend(made.map(|setting| (&cell.engine, &setting.name)));
    }
    let facts = |recorded: &Recorded| -> Facts {
        let settings = own.iter();
        let settings = settings.map(|(engine, name)| {
            let values = values(recorded, engine, name);
            ((*name).clone(), values)
        });
        let mut host = recorded.run.host.facts.iter();
        let clock = host.find(|(name, _)| name == CLOCK).cloned();
        settings.chain(clock).collect()
    };
    let mut differences = super::differences(&facts(first), &facts(other));
    // A record that does not tell its clock says nothing.
    differences.retain(|it| it.first.is_some() && it.now.is_some());
    differences
}

/// Each value that a setting has in some cells, once. The version that wrote some of them may not have known it.
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
