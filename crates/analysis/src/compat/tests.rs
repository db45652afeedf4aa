//! Tests of what makes runs comparable.

use record::{ResolvedValue, Setting};

use super::*;

fn recorded(run: &Run) -> Recorded {
    Recorded { run: run.clone(), cells: Vec::new() }
}

fn all<const N: usize>(runs: [&Run; N]) -> [Recorded; N] {
    runs.map(recorded)
}

fn run(rows: &str, origin: &str, version: &str, cache: &str) -> Run {
    Run {
        plan: record::Plan {
            resolved: vec![ResolvedValue {
                key: "workload.insert.initial-rows".into(),
                value: rows.into(),
                origin: origin.into(),
            }],
            ..record::Plan::default()
        },
        builds: vec![Build {
            name: "pg".into(),
            engine: "postgres".into(),
            version: version.into(),
            source: "/opt".into(),
            files: Vec::new(),
            commit: None,
        }],
        targets: vec![Target {
            name: "pg.base".into(),
            build: "pg".into(),
            config: "base".into(),
            engine: "postgres".into(),
            set: vec![("cache".into(), cache.into())],
            declared: Vec::new(),
            factors: Vec::new(),
            files: Vec::new(),
        }],
        ..Run::default()
    }
}

#[test]
fn runs_of_other_work_are_not_compared() {
    let first = run("20M", "plan:1:1", "17.2", "1GB");
    assert!(refuse_other_work(&all([&first, &run("20M", "--set", "17.3", "2GB")])).is_ok());
    let other = run("40M", "plan:1:1", "17.2", "1GB");
    let message = refuse_other_work(&all([&first, &other])).unwrap_err().to_string();
    assert!(message.ends_with("`workload.insert.initial-rows` 20M -> 40M"), "{message}");
    // A default that one version does not know yet is no other work; what was asked for is.
    let mut without = first.clone();
    without.plan.resolved.clear();
    let default = run("20M", "default", "17.2", "1GB");
    assert!(refuse_other_work(&all([&without, &default])).is_ok());
    assert!(refuse_other_work(&all([&without, &first])).is_err());
}

#[test]
fn only_the_same_target_is_repeated() {
    let first = run("1", "default", "17.2", "1GB");
    let refused = |other: Run| {
        let refused = refuse_other_targets(&all([&first, &other]));
        refused.err().map(|error| error.to_string())
    };
    assert_eq!(refused(first.clone()), None);
    let version = refused(run("1", "default", "17.3", "1GB")).unwrap();
    assert!(version.contains("runs 1 and 2: `version` 17.2 -> 17.3"), "{version}");
    let config = refused(run("1", "default", "17.2", "2GB")).unwrap();
    assert!(config.contains("`cache` 1GB -> 2GB"), "{config}");
    let mut other_name = run("1", "default", "17.3", "1GB");
    other_name.targets[0].name = "pg.next".into();
    assert_eq!(refused(other_name), None);
}

#[test]
fn notes_name_the_targets_that_changed_between_runs() {
    let first = run("1", "default", "17.2", "1GB");
    assert_eq!(changes(&all([&first, &first])), Vec::<String>::new());
    let mut first = first;
    let mut next = first.targets[0].clone();
    next.name = "pg.next".into();
    first.targets.push(next);
    let mut second = first.clone();
    second.builds[0].version = "17.3".into();
    let mut third = first.clone();
    third.targets[1].set.clear();
    for setting in ["a", "b", "c", "d", "e", "f"] {
        let setting = (setting.to_owned(), "1".to_owned());
        third.targets[0].set.push(setting);
    }
    // What one of them has not is not compared.
    let mut fourth = second.clone();
    fourth.targets.remove(0);
    assert_eq!(
        changes(&all([&first, &second, &third, &fourth])),
        [
            "None of `pg.base`, `pg.next` is the same in run 2 as in run 1: `version` 17.2 -> 17.3.",
            "Target `pg.base` is not the same in run 3 as in run 1: `a` none -> 1, `b` none -> 1, `c` none -> 1, \
             `d` none -> 1 and 2 more.",
            "Target `pg.next` is not the same in run 3 as in run 1: `cache` 1GB -> none.",
            "Target `pg.next` is not the same in run 4 as in run 1: `version` 17.2 -> 17.3.",
        ]
    );
}

#[test]
fn another_way_of_measuring_is_no_difference_of_the_machine() {
    let first = run("1", "default", "17.2", "1GB");
    let mut other = first.clone();
    other.host.facts = vec![(method::CLOCK.into(), "system".into())];
    let mut known = first.clone();
    known.host.facts = vec![(method::CLOCK.into(), "tsc".into())];
    let setting = record::Setting {
        source: Some("assay".into()),
        ..record::Setting::new("perf_level", "disable")
    };
    let of_other = Cell { settings: vec![setting], ..Cell::default() };
    let mut of_first = of_other.clone();
    of_first.settings[0].value = "enable_count".into();
    let reference = CellRef::new("pg.base", "insert", None, 1, 1);
    let with = |run: Run, cell: Cell| Recorded { run, cells: vec![(reference.clone(), cell)] };
    assert_eq!(
        notes(&[with(known, of_first), with(other, of_other)], |_| true),
        [
            "Run 2 was measured in another way than run 1: `assay_clock` tsc -> system, `perf_level` enable_count -> disable. \
             Its cost may cause the differences."
        ]
    );
}

#[test]
fn a_library_that_counts_is_no_repeat_of_one_that_does_not() {
    let first = run("1", "default", "17.2", "1GB");
    let mut counts = first.clone();
    counts.plan.resolved.push(ResolvedValue {
        key: "config.postgres.base.statistics".into(),
        value: "true".into(),
        origin: "plan:9:1".into(),
    });
    let refused = refuse_other_targets(&all([&first, &counts])).unwrap_err();
    let message = refused.to_string();
    assert!(message.ends_with("`statistics` none -> true"), "{message}");
}

#[test]
fn another_machine_version_and_seed_have_notes() {
    let first = run("1", "default", "17.2", "1GB");
    assert_eq!(notes(&all([&first, &first]), |_| true), Vec::<String>::new());
    let mut other = first.clone();
    other.host.facts = vec![("cpu_model".into(), "Z".into())];
    (other.assay.version, other.seed) = ("9".into(), 7);
    let notes = notes(&all([&first, &other]), |_| true);
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes[0].contains("`cpu_model` unknown -> Z"), "{notes:?}");
}

#[test]
fn another_machine_of_the_same_kind_has_a_note_only_where_runs_are_compared() {
    let on = |id: &str, cpu: &str, memory: &str| {
        let facts = [(HOST_ID, id), ("cpu_model", cpu), ("memory_total_bytes", memory)];
        let mut run = run("1", "default", "17.2", "1GB");
        run.host.facts = facts.map(|(name, value)| (name.into(), value.into())).into();
        run
    };
    let (first, same) = (on("a", "Z", "134900000000"), on("b", "Z", "134899000000"));
    assert_eq!(check_repeats(&all([&first, &same])).unwrap(), [""; 0]);
    assert_eq!(
        check_by_run(&all([&first, &same])).unwrap(),
        [
            "The machine of run 2 is not that of run 1: `host_id` a -> b. It may cause the differences."
        ]
    );
    let other = on("c", "Y", "67000000000");
    assert_eq!(
        check_repeats(&all([&first, &other, &same, &other])).unwrap(),
        [
            "The machine of runs 2 and 4 is not that of run 1: `cpu_model` Z -> Y, `memory_total_bytes` 134900000000 -> \
             67000000000. It may cause the differences."
        ]
    );
}

#[test]
fn only_what_lasts_is_compared() {
    let host = |facts: &[(&str, &str)]| Host {
        facts: facts.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
        ..Host::default()
    };
    let first = host(&[("cpu_model", "A"), ("memory_available_bytes", "1"), ("gone", "x")]);
    let now = host(&[("cpu_model", "B"), ("memory_available_bytes", "2"), ("new", "y")]);
    assert_eq!(host_differences(&first, &first), []);
    let found: Vec<String> = host_differences(&first, &now)
        .iter()
        .map(|one| format!("{} {:?} {:?}", one.name, one.first, one.now))
        .collect();
    assert_eq!(
        found,
        [r#"cpu_model Some("A") Some("B")"#, r#"gone Some("x") None"#, r#"new None Some("y")"#,]
    );
}

fn cell(engine: &str, settings: &[(&str, &str, Option<&str>)]) -> Cell {
    let settings = settings.iter().map(|(name, value, source)| Setting {
        source: source.map(str::to_owned),
        ..Setting::new(*name, *value)
    });
    Cell { engine: engine.to_owned(), settings: settings.collect(), ..Cell::default() }
}

const CACHE: (&str, &str, Option<&str>) = ("block_size", "8192", Some("config"));
const PERF: (&str, &str, Option<&str>) = ("perf_level", "disable", Some("assay"));

fn measured(was: &[Cell], is: &[Cell]) -> String {
    let with = |cells: &[Cell]| Recorded {
        run: Run::default(),
        cells: cells
            .iter()
            .map(|cell| (CellRef::new("x", "kv", None, 1, 1), cell.clone()))
            .collect(),
    };
    differences_text(&method::differences(&with(was), &with(is)), "unknown")
}

#[test]
fn settings_made_by_assay_have_a_note_if_they_differ() {
    let (with, without) = (
        cell("rocksdb", &[CACHE, PERF]),
        cell("rocksdb", &[("block_size", "4096", Some("config"))]),
    );
    let both = [with.clone(), with.clone()];
    assert_eq!(measured(&both, &both[..1]), "");
    let one = std::slice::from_ref(&without);
    assert_eq!(measured(one, &both), "`perf_level` not set -> disable");
    let mixed = [with.clone(), without];
    assert_eq!(measured(&both, &mixed), "`perf_level` disable -> disable and not set");
    // What never came up has no settings; another engine has others.
    assert_eq!(measured(&[cell("rocksdb", &[])], &both), "");
    assert_eq!(measured(&[cell("sqlite", &[CACHE])], &both), "");
}

#[test]
fn another_clock_has_a_note() {
    let run = |clock: &str| {
        let mut run = Run::default();
        run.host.facts = vec![(method::CLOCK.to_owned(), clock.to_owned())];
        run
    };
    let (was, is) = (run("tsc"), run("clock_gettime"));
    let of = |was: &Run, is: &Run| {
        differences_text(&method::differences(&recorded(was), &recorded(is)), "unknown")
    };
    assert_eq!(of(&was, &is), "`assay_clock` tsc -> clock_gettime");
    assert_eq!(of(&was, &was), "");
    assert_eq!(of(&was, &Run::default()), "");
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
        factors: Vec::new(),
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
        let declared = method::declared(&run, &target);
        declared.into_iter().collect::<Vec<_>>()
    };
    let own = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(with(&[("base.statistics", "true")]), []);
    let extends = ("small.extends", "\"base\"");
    assert_eq!(
        with(&[("base.statistics", "true"), extends, ("small.cpus", "\"0\"")]),
        [own("cpus", "\"0\""), own("statistics", "true")]
    );
    let over = ("small.statistics", "false");
    assert_eq!(with(&[("base.statistics", "true"), extends, over]), []);
}
