use record::{Build, DeclaredOption, OptionStatus, Setting, Target, UnmetOption};

use super::*;

fn declared(set: &[(&str, &str)]) -> Vec<DeclaredOption> {
    let option = |(name, value): &(&str, &str)| DeclaredOption {
        name: (*name).to_owned(),
        value: (*value).to_owned(),
        key: (*name).to_owned(),
        canonical: (*value).to_owned(),
        ..DeclaredOption::default()
    };
    set.iter().map(option).collect()
}

fn setting(name: &str, value: &str) -> Setting {
    Setting::new(name, value)
}

/// A run under construction. Builds are named for the part of a target's name before the dot.
struct Built {
    run: Run,
    cells: Vec<Cell>,
}

impl Built {
    fn new(engine: &str, versions: &[(&str, &str)]) -> Self {
        let build = |(name, version): &(&str, &str)| Build {
            name: name.to_string(),
            engine: engine.to_owned(),
            version: version.to_string(),
            source: String::new(),
            files: Vec::new(),
            commit: None,
        };
        let run = Run { builds: versions.iter().map(build).collect(), ..Run::default() };
        Self { run, cells: Vec::new() }
    }

    /// Adds a target with one cell.
    fn with(self, name: &str, set: &[(&str, &str)], settings: Vec<Setting>) -> Self {
        let cell = Cell { key: record::CellKey::new("", None, 1, 1), settings, ..Cell::default() };
        self.with_cells(name, set, vec![cell])
    }

    fn with_cells(mut self, name: &str, set: &[(&str, &str)], cells: Vec<Cell>) -> Self {
        let (build, config) = name.split_once('.').unwrap();
        let engine = self.run.builds.iter().find(|known| known.name == build);
        self.run.targets.push(Target {
            name: name.to_owned(),
            build: build.to_owned(),
            config: config.to_owned(),
            engine: engine.unwrap().engine.clone(),
            set: Vec::new(),
            declared: declared(set),
            factors: Vec::new(),
            files: Vec::new(),
        });
        if self.run.base.is_empty() {
            name.clone_into(&mut self.run.base);
        }
        let of_target = cells.into_iter().map(|cell| Cell {
            key: record::CellKey { target: name.to_owned(), ..cell.key.clone() },
            ..cell
        });
        self.cells.extend(of_target);
        self
    }

    fn settings(self) -> RunSettings {
        RunSettings::new(self.run, self.cells)
    }
}

fn lines(settings: &[Difference]) -> Vec<String> {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "()".into());
    settings
        .iter()
        .map(|it| {
            let mark = format!("{:?}", it.mark).to_lowercase();
            format!("{}: {} -> {} [{mark}]", it.name, shown(&it.a), shown(&it.b))
        })
        .collect()
}

#[test]
fn two_targets_that_differ_in_nothing_are_identical() {
    let of = |set: &[(&str, &str)], value: &str| {
        let built = Built::new("postgres", &[("pg", "17.2")])
            .with("pg.a", &[("work_mem", "8MB")], vec![setting("work_mem", "8MB")])
            .with("pg.b", set, vec![setting("work_mem", value)]);
        built.settings().all(0).differences.remove(0)
    };
    assert!(of(&[("work_mem", "8MB")], "8MB").identical);
    assert!(!of(&[], "4MB").identical);
    // Nobody knows whether the two are the same.
    assert!(!of(&[("work_mem", "8MB"), ("x.y", "1")], "8MB").identical);
    let two_builds = Built::new("postgres", &[("o2", "17.2"), ("o3", "17.2")])
        .with("o2.a", &[], vec![setting("work_mem", "8MB")])
        .with("o3.a", &[], vec![setting("work_mem", "8MB")]);
    assert!(!two_builds.settings().all(0).differences[0].identical);
}

#[test]
fn settings_are_compared_by_their_keys_and_by_what_values_mean() {
    let known = |name: &str, key: &str, value: &str, canonical: &str| Setting {
        key: Some(key.to_owned()),
        canonical: Some(canonical.to_owned()),
        ..setting(name, value)
    };
    let volatile = |name: &str, value: &str| Setting { volatile: true, ..setting(name, value) };
    let of_a = vec![
        known("tx_isolation", "transaction_isolation", "X", "x"),
        known("size", "size", "1M", "1048576"),
        known("log", "log", "ON", "1"),
        volatile("port", "1"),
        volatile("only_here", "/a"),
        setting("declared_path", "/a"),
        setting("old", "1"),
    ];
    let of_b = vec![
        known("transaction_isolation", "transaction_isolation", "x", "x"),
        known("size", "size", "1024K", "1048576"),
        known("log", "log", "OFF", "0"),
        volatile("port", "2"),
        volatile("declared_path", "/b"),
        setting("new", "1"),
    ];
    let settings = Built::new("mysql", &[("a", "8"), ("b", "9")])
        .with("a.c", &[("declared_path", "/a"), ("unseen", "1")], of_a)
        .with("b.c", &[("log", "OFF"), ("unseen", "2")], of_b)
        .settings()
        .all(0);
    let comparison = &settings.differences[0];
    assert_eq!(
        lines(&comparison.settings),
        [
            "declared_path: /a -> /b [declared]",
            "log: ON -> OFF [declared]",
            "unseen: 1 -> 2 [unverified]",
        ]
    );
    let names =
        |only: &[OneSidedSetting]| only.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&comparison.only_a), ["old"]);
    assert_eq!(names(&comparison.only_b), ["new"]);
}

#[test]
fn what_is_declared_and_not_had_is_of_the_first_cell_with_settings() {
    let not_had = UnmetOption {
        name: "work_mem".into(),
        declared: "1kB".into(),
        effective: Some("64kB".into()),
        status: OptionStatus::Changed,
    };
    let cell = |not_had: Vec<UnmetOption>| Cell {
        settings: vec![setting("work_mem", "64kB")],
        unmet_options: not_had,
        ..Cell::default()
    };
    let settings = Built::new("postgres", &[("pg", "17.2")])
        .with_cells("pg.a", &[], vec![Cell::default(), cell(vec![not_had]), cell(Vec::new())])
        .settings()
        .all(0);
    let ignored = &settings.targets[0].ignored;
    assert_eq!(ignored.len(), 1);
    assert_eq!(&*ignored[0].target, "pg.a");
    assert_eq!(&*ignored[0].name, "work_mem");
}

#[test]
fn a_target_that_never_came_up_is_compared_by_what_it_declares() {
    let settings = Built::new("postgres", &[("pg", "17.2")])
        .with("pg.a", &[("work_mem", "8MB")], vec![setting("work_mem", "8MB")])
        .with_cells("pg.b", &[("work_mem", "many")], vec![Cell::default()])
        .settings()
        .all(0);
    let comparison = &settings.differences[0];
    assert!(comparison.declared_only && !comparison.identical);
    assert_eq!(lines(&comparison.settings), ["work_mem: 8MB -> many [unverified]"]);
    assert_eq!(comparison.b_version, "17.2");
    assert_eq!(comparison.unmeasured, ["pg.b"]);
}

#[test]
fn unmeasured_targets_differ_from_targets_that_report_no_settings() {
    let nothing = |engine: &str, cells: Vec<Cell>| {
        let built = Built::new(engine, &[("b", "1")])
            .with_cells("b.a", &[("x", "1")], cells.clone())
            .with_cells("b.b", &[("x", "1")], cells);
        built.settings().all(0).differences.remove(0)
    };
    assert_eq!(nothing("rocksdb", Vec::new()).unmeasured, ["b.a", "b.b"].map(str::to_owned));
    let came_up = Cell { engine_version: "1".into(), ..Cell::default() };
    assert!(nothing("null", vec![came_up]).unmeasured.is_empty());
    // Of a plan before it is run nothing is measured, and nothing else is asked.
    let target = PlanTarget::default();
    assert!(target.against(&target).unmeasured.is_empty());
}

#[test]
fn targets_that_a_run_was_not_to_measure_are_not_among_those_that_differ() {
    let mut settings = Built::new("postgres", &[("pg", "17.2")])
        .with("pg.a", &[], vec![setting("fsync", "on")])
        .with_cells("pg.b", &[("fsync", "off")], Vec::new())
        .settings();
    let cell = |target: &str| record::CellRef::new(target, "insert", None, 1, 1);
    settings.run.cells = vec![cell("pg.a")];
    let all = settings.all(0);
    assert_eq!((all.differences.len(), all.targets.len()), (0, 0));
    settings.run.cells.push(cell("pg.b"));
    assert_eq!(settings.all(0).differences.len(), 1);
}

#[test]
fn engines_are_compared_with_the_first_target_of_their_own_that_came_up() {
    let mut built = Built::new("postgres", &[("pg", "17.2")])
        .with("pg.a", &[], vec![setting("fsync", "on")])
        .with("pg.b", &[], vec![setting("fsync", "on")]);
    built.run.builds.push(Build {
        name: "lite".into(),
        engine: "sqlite".into(),
        version: "3".into(),
        source: String::new(),
        files: Vec::new(),
        commit: None,
    });
    let set = [("synchronous", "normal")];
    let settings = built
        .with("lite.failed", &[], Vec::new())
        .with("lite.a", &[], vec![setting("synchronous", "2")])
        .with("lite.b", &set, vec![setting("synchronous", "1")])
        .settings();
    let pairs: Vec<(String, String)> =
        settings.all(0).differences.into_iter().map(|it| (it.a, it.b)).collect();
    let expected = [("pg.a", "pg.b"), ("lite.a", "lite.failed"), ("lite.a", "lite.b")];
    assert_eq!(pairs, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    let between = settings.between("pg.a", "lite.b").differences.remove(0);
    assert!(between.settings.is_empty() && between.only_a.is_empty() && !between.identical);
    assert_eq!(between.only_b[0].name, "synchronous");
    assert_eq!(settings.between("pg.a", "pg.z").differences, []);
}

#[test]
fn settings_that_vary_between_the_cells_of_a_target_are_listed() {
    let cell = |clients, repeat, connections: &str, socket: &str| Cell {
        key: record::CellKey::new("", Some("big"), clients, repeat),

        settings: vec![
            setting("max_connections", connections),
            Setting { volatile: true, ..setting("unix_socket_directories", socket) },
            setting("x", "1"),
        ],
        ..Cell::default()
    };
    let cells = vec![cell(1, 1, "100", "/a"), cell(1, 2, "100", "/b"), cell(256, 1, "272", "/c")];
    let settings =
        Built::new("postgres", &[("pg", "17.2")]).with_cells("pg.a", &[], cells).settings().all(0);
    let expected = [("big c1 r1", "100"), ("big c1 r2", "100"), ("big c256 r1", "272")];
    let values = expected.map(|(cell, value)| (cell.to_owned(), Some(value.to_owned())));
    assert_eq!(
        settings.targets[0].varying,
        [VaryingSetting { name: "max_connections".into(), values: values.to_vec() }]
    );
}

#[test]
fn targets_are_compared_with_as_many_clients() {
    let cell = |clients: u32| Cell {
        key: record::CellKey::new("", None, clients, 0),
        settings: vec![setting("max_connections", &(clients + 99).to_string())],
        ..Cell::default()
    };
    let of = |cells: Vec<Cell>| {
        let built = Built::new("postgres", &[("pg", "17.2")])
            .with_cells("pg.a", &[], vec![cell(1), cell(8)])
            .with_cells("pg.b", &[], cells);
        lines(&built.settings().all(0).differences[0].settings)
    };
    assert_eq!(of(vec![cell(8)]), Vec::<String>::new());
    assert_eq!(of(vec![cell(9)]), ["max_connections: 100 -> 108 [undeclared]"]);
}

#[test]
fn what_is_declared_can_be_compared_before_anything_runs() {
    let target = |name: &str, set: &[(&str, &str)]| PlanTarget {
        name: name.to_owned(),
        build: "my".to_owned(),
        engine: "mysql".to_owned(),
        declared: declared(set),
        ..PlanTarget::default()
    };
    let mut other = target("my.c", &[("Size", "2"), ("log", "OFF")]);
    other.declared[0].key = "size".into();
    let targets = [
        target("my.a", &[("size", "2"), ("log", "OFF")]),
        target("my.b", &[("size", "3"), ("log", "ON"), ("sync", "1")]),
        other,
    ];
    let differences = declared_differences(&targets, |_| Some("my.a"));
    assert_eq!(
        lines(&differences[0].settings),
        ["log: OFF -> ON [declared]", "size: 2 -> 3 [declared]", "sync: () -> 1 [declared]",]
    );
    assert!(!differences[0].identical && differences[1].identical);
    assert!(differences.iter().all(|it| it.declared_only));
    assert_eq!(differences.len(), 2);
}
