//! What assay itself is made to do beside measuring, and what it measures by: told where runs did not have the same, since
//! it has a cost of its own.

use std::collections::BTreeSet;

use record::{Cell, Run, Target};

/// The fact of the host that is assay's own choice: what it reads the time from.
pub const CLOCK: &str = "assay_clock";

/// Settings of a cell that come from assay, which uses an engine so, have this source.
const SOURCE: &str = "assay";

/// What a config may have beside the settings of its engine, and the value that is as good as none.
const OF_CONFIGS: [(&str, &str); 3] = [("statistics", "false"), ("memory", ""), ("cpus", "")];

/// What of it a target has by its config, in the plan's notation: what the library counts, and limits.
pub fn declared(run: &Run, target: &Target) -> Vec<(String, String)> {
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

/// In what the way of measuring was another one: the name, what it was in the first run, and what it is in the other.
pub fn differences(
    (first, first_cells): (&Run, &[Cell]),
    (run, cells): (&Run, &[Cell]),
) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let clock = |run: &Run| {
        let mut facts = run.host.facts.iter();
        facts
            .find(|(name, _)| name == CLOCK)
            .map(|(_, value)| value.clone())
    };
    // An older record that does not tell it says nothing.
    if let (Some(was), Some(is)) = (clock(first), clock(run))
        && was != is
    {
        found.push((CLOCK.to_owned(), was, is));
    }
    let engines: BTreeSet<&str> = cells.iter().map(|cell| cell.engine.as_str()).collect();
    for engine in engines {
        let [was, is] = [first_cells, cells].map(|cells| of_engine(cells, engine));
        // Of an engine that never came up nothing is known.
        if was.is_empty() || is.is_empty() {
            continue;
        }
        let own = |cells: &[&Cell]| -> BTreeSet<String> {
            let settings = cells.iter().flat_map(|cell| &cell.settings);
            settings
                .filter(|setting| setting.source.as_deref() == Some(SOURCE))
                .map(|setting| setting.name.clone())
                .collect()
        };
        for name in own(&was).union(&own(&is)) {
            let (was, is) = (values(&was, name), values(&is, name));
            if was != is {
                found.push((name.clone(), was, is));
            }
        }
    }
    found
}

/// The cells of an engine that report settings.
fn of_engine<'a>(cells: &'a [Cell], engine: &str) -> Vec<&'a Cell> {
    let is_known = |cell: &&Cell| cell.engine == engine && !cell.settings.is_empty();
    cells.iter().filter(is_known).collect()
}

/// Each value that a setting has in some cells, once. The version that wrote some of them may not have known it.
fn values(cells: &[&Cell], name: &str) -> String {
    let of_cell = |cell: &&Cell| {
        let mut settings = cell.settings.iter();
        settings
            .find(|setting| setting.name == name)
            .map_or("not set".to_owned(), |setting| setting.value.clone())
    };
    let distinct: BTreeSet<String> = cells.iter().map(of_cell).collect();
    distinct.into_iter().collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use record::{ResolvedValue, Setting};

    use super::*;

    fn cell(engine: &str, settings: &[(&str, &str, Option<&str>)]) -> Cell {
        let settings = settings.iter().map(|(name, value, source)| Setting {
            source: source.map(str::to_owned),
            ..Setting::new(*name, *value)
        });
        Cell {
            engine: engine.to_owned(),
            settings: settings.collect(),
            ..Cell::default()
        }
    }

    const CACHE: (&str, &str, Option<&str>) = ("block_size", "8192", Some("config"));
    const PERF: (&str, &str, Option<&str>) = ("perf_level", "disable", Some(SOURCE));

    fn told(was: &[Cell], is: &[Cell]) -> Vec<String> {
        let run = Run::default();
        let found = differences((&run, was), (&run, is));
        let text = |(name, was, is): &(String, String, String)| format!("{name}: {was} -> {is}");
        found.iter().map(text).collect()
    }

    #[test]
    fn settings_that_assay_made_are_told_where_they_differ() {
        let (with, without) = (
            cell("rocksdb", &[CACHE, PERF]),
            cell("rocksdb", &[("block_size", "4096", Some("config"))]),
        );
        let both = [with.clone(), with.clone()];
        assert_eq!(told(&both, &both[..1]), [""; 0]);
        let one = std::slice::from_ref(&without);
        assert_eq!(told(one, &both), ["perf_level: not set -> disable"]);
        let mixed = [with.clone(), without];
        assert_eq!(
            told(&both, &mixed),
            ["perf_level: disable -> disable and not set"]
        );
        // What never came up has no settings; another engine has others.
        assert_eq!(told(&[cell("rocksdb", &[])], &both), [""; 0]);
        assert_eq!(told(&[cell("sqlite", &[CACHE])], &both), [""; 0]);
    }

    #[test]
    fn another_clock_is_told() {
        let run = |clock: &str| {
            let mut run = Run::default();
            run.host.facts = vec![(CLOCK.to_owned(), clock.to_owned())];
            run
        };
        let (was, is) = (run("tsc"), run("clock_gettime"));
        assert_eq!(
            differences((&was, &[]), (&is, &[])),
            [(CLOCK.into(), "tsc".into(), "clock_gettime".into())]
        );
        assert_eq!(differences((&was, &[]), (&was, &[])), []);
        assert_eq!(differences((&was, &[]), (&Run::default(), &[])), []);
    }

    #[test]
    fn a_config_has_what_those_have_that_it_extends() {
        let target = Target {
            name: "rocks.small".into(),
            build: "rocks".into(),
            config: "small".into(),
            engine: "rocksdb".into(),
            set: Vec::new(),
            declared: Vec::new(),
            files: Vec::new(),
        };
        let with = |values: &[(&str, &str)]| {
            let mut run = Run::default();
            run.plan.resolved = values
                .iter()
                .map(|(key, value)| ResolvedValue {
                    key: format!("config.rocksdb.{key}"),
                    value: (*value).into(),
                    origin: "plan:1:1".into(),
                })
                .collect();
            declared(&run, &target)
        };
        let own = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(with(&[("base.statistics", "true")]), []);
        let extends = ("small.extends", "\"base\"");
        assert_eq!(
            with(&[
                ("base.statistics", "true"),
                extends,
                ("small.cpus", "\"0\"")
            ]),
            [own("statistics", "true"), own("cpus", "\"0\"")]
        );
        let over = ("small.statistics", "false");
        assert_eq!(with(&[("base.statistics", "true"), extends, over]), []);
    }
}
