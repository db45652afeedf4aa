//! With what real servers reported: PostgreSQL 17 and 18, MariaDB 10.11, MySQL 9.7.

use record::{Build, Limit, Plan, PlanFile, Target};

use super::*;

/// The config files with which the dumps were made.
const POSTGRES_FILE: &str = "\
huge_pages = try
shared_buffers = 1GB   # comment
synchronous_commit = off
wal_compression='off'
max_wal_size = 4GB
autovacuum_naptime = 10
autovacuum_vacuum_cost_delay = 1ms
log_min_duration_statement = 100
bgwriter_delay = 100ms
include_if_exists 'nothing.conf'
work_mem = 8192
";
const MARIADB_FILE: &str = "\
[mysqld]
innodb-buffer-pool-size = 10M
innodb_log_file_size=48M
innodb_io_capacity=2k
skip-log-bin
sync_binlog=0
innodb_flush_log_at_trx_commit=2
innodb_doublewrite=1
loose-innodb_log_writer_threads=OFF
max_connections = 500000
innodb_max_dirty_pages_pct = 90
skip_name_resolve
innodb_flush_method=O_DIRECT
table_open_cache=100k
innodb_lru_scan_depth=100k
optimizer_switch='mrr=on'
sql_mode=STRICT_TRANS_TABLES
slow_query_log
key_buffer_size=5
innodb_adaptive_hash_index
transaction-isolation=READ-COMMITTED
innodb_file_per_table
max_allowed_packet=12345
thread_handling=one-thread-per-connection
rocksdb_block_size=16k
plugin_load_add=ha_rocksdb
default_storage_engine=rocksdb
wait_timeout=3600
innodb_purge_threads=99
";
const MYSQL_FILE: &str = "\
[mysqld]
innodb_buffer_pool_size=64M
innodb_flush_method=O_DIRECT
loose-innodb_log_writer_threads=OFF
innodb_redo_log_capacity=10M
skip-log-bin
sync-binlog=0
";

fn dump(name: &str) -> Vec<Setting> {
    let path = format!("tests/fixtures/settings/{name}.tsv");
    let setting = |line: &str| {
        let mut parts = line.split('\t').map(str::to_owned);
        Setting {
            name: parts.next().unwrap(),
            value: parts.next().unwrap(),
            source: parts.next(),
        }
    };
    let text = fs_err::read_to_string(path).unwrap();
    text.lines().map(setting).collect()
}

fn pairs(set: &[(&str, &str)]) -> Vec<(String, String)> {
    set.iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}

/// A run under construction. Builds are named for the part of a target's name before the dot.
struct Built {
    run: Run,
    cells: Vec<Cell>,
}

impl Built {
    fn new(engine: &str, versions: &[(&str, &str)], files: &[(&str, &str)]) -> Self {
        let build = |(name, version): &(&str, &str)| Build {
            name: name.to_string(),
            engine: engine.to_owned(),
            version: version.to_string(),
            source: String::new(),
            files: Vec::new(),
        };
        let file = |(name, text): &(&str, &str)| PlanFile {
            name: name.to_string(),
            text: text.to_string(),
        };
        let run = Run {
            builds: versions.iter().map(build).collect(),
            plan: Plan {
                files: files.iter().map(file).collect(),
                ..Plan::default()
            },
            ..Run::default()
        };
        Self {
            run,
            cells: Vec::new(),
        }
    }

    /// Adds a target with one cell.
    fn with(
        self,
        name: &str,
        files: &[&str],
        set: &[(&str, &str)],
        settings: Vec<Setting>,
    ) -> Self {
        let cell = Cell {
            key: record::CellKey::new("", None, 1, 1),
            settings,
            ..Cell::default()
        };
        self.with_cells(name, files, set, vec![cell])
    }

    fn with_cells(
        mut self,
        name: &str,
        files: &[&str],
        set: &[(&str, &str)],
        cells: Vec<Cell>,
    ) -> Self {
        let (build, config) = name.split_once('.').unwrap();
        let engine = self.run.builds.iter().find(|known| known.name == build);
        self.run.targets.push(Target {
            name: name.to_owned(),
            build: build.to_owned(),
            config: config.to_owned(),
            engine: engine.unwrap().engine.clone(),
            declared: pairs(set),
            files: files.iter().map(|file| file.to_string()).collect(),
        });
        if self.run.base.is_empty() {
            name.clone_into(&mut self.run.base);
        }
        let of_target = cells.into_iter().map(|cell| Cell {
            key: record::CellKey {
                target: name.to_owned(),
                ..cell.key.clone()
            },
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

fn ignored_lines(ignored: &[Ignored]) -> Vec<String> {
    ignored
        .iter()
        .map(|it| {
            let effective = it.effective.as_deref().unwrap_or("()");
            format!("{} = {}: {effective} {:?}", it.name, it.declared, it.mark)
        })
        .collect()
}

const A1: [(&str, &str); 14] = [
    ("wal_compression", "on"),
    ("shared_buffers", "65536"),
    ("autovacuum_vacuum_scale_factor", "0.05"),
    ("full_page_writes", "off"),
    ("max_connections", "77"),
    ("wal_buffers", "-1"),
    ("log_line_prefix", "%p "),
    ("shared_preload_libraries", "auto_explain,pg_prewarm"),
    ("auto_explain.log_min_duration", "5s"),
    ("foo.bar", "1"),
    ("autovacuum_naptime", "1min"),
    ("checkpoint_timeout", "1800s"),
    ("temp_buffers", "1001kB"),
    ("effective_cache_size", "1.5GB"),
];

fn postgres() -> RunSettings {
    let versions = [("pg17", "17.2"), ("pg18", "18.1")];
    Built::new("postgres", &versions, &[("base.conf", POSTGRES_FILE)])
        .with("pg17.base", &["base.conf"], &[], dump("postgres-17.base"))
        .with("pg17.a1", &["base.conf"], &A1, dump("postgres-17.a1"))
        .with("pg18.base", &["base.conf"], &[], dump("postgres-18.base"))
        .settings()
}

#[test]
fn two_configs_of_postgresql_differ_in_what_is_declared_and_in_what_the_server_makes_of_it() {
    let settings = postgres().all(0);
    let comparison = &settings.differences[0];
    assert_eq!((&*comparison.a, &*comparison.b), ("pg17.base", "pg17.a1"));
    assert_eq!(
        lines(&comparison.settings),
        [
            "autovacuum_naptime: 10s -> 1min [declared]",
            "autovacuum_vacuum_scale_factor: 0.2 -> 0.05 [declared]",
            "checkpoint_timeout: 5min -> 30min [declared]",
            "commit_timestamp_buffers: 2MB -> 1MB [undeclared]",
            "effective_cache_size: 4GB -> 1536MB [declared]",
            "foo.bar: () -> 1 [unverified]",
            "full_page_writes: on -> off [declared]",
            "log_line_prefix: %m [%p]  -> %p  [declared]",
            "max_connections: 100 -> 77 [declared]",
            "shared_buffers: 1GB -> 512MB [declared]",
            "shared_memory_size: 1079MB -> 550MB [undeclared]",
            "shared_memory_size_in_huge_pages: 540 -> 275 [undeclared]",
            "shared_preload_libraries:  -> auto_explain,pg_prewarm [declared]",
            "subtransaction_buffers: 2MB -> 1MB [undeclared]",
            "temp_buffers: 8MB -> 1000kB [declared]",
            "transaction_buffers: 2MB -> 1MB [undeclared]",
            "wal_compression: off -> pglz [declared]",
        ]
    );
    assert!(comparison.only_a.is_empty() && !comparison.identical);
    let only_b: Vec<(&str, Mark)> = comparison
        .only_b
        .iter()
        .map(|it| (it.name.as_str(), it.mark))
        .collect();
    assert_eq!(only_b.len(), 15);
    assert!(only_b.contains(&("auto_explain.log_min_duration", Mark::Declared)));
    assert!(only_b.contains(&("auto_explain.log_wal", Mark::Undeclared)));
}

#[test]
fn postgresql_has_what_its_files_declare_however_it_is_written() {
    let settings = postgres().all(0);
    // 1001 kB are no whole number of pages; of a name with a dot that nobody knows it tells nothing.
    let [target] = settings.targets.as_slice() else {
        panic!("{:?}", settings.targets);
    };
    assert_eq!(target.target, "pg17.a1");
    assert_eq!(
        ignored_lines(&target.ignored),
        [
            "foo.bar = 1: () Unreported",
            "temp_buffers = 1001kB: 1000kB Changed",
        ]
    );
    assert!(target.varying.is_empty());
}

#[test]
fn two_versions_differ_in_defaults_and_in_what_only_one_knows() {
    let settings = postgres().all(0);
    let comparison = &settings.differences[1];
    assert_eq!(
        (&*comparison.a_version, &*comparison.b_version),
        ("17.2", "18.1")
    );
    assert_eq!(
        lines(&comparison.settings),
        [
            "effective_io_concurrency: 1 -> 16 [undeclared]",
            "log_connections: off ->  [undeclared]",
            "maintenance_io_concurrency: 10 -> 16 [undeclared]",
            "shared_memory_size: 1079MB -> 1086MB [undeclared]",
            "shared_memory_size_in_huge_pages: 540 -> 543 [undeclared]",
        ]
    );
    let names = |only: &[OneSided]| -> Vec<String> {
        only.iter().map(|setting| setting.name.clone()).collect()
    };
    assert_eq!(names(&comparison.only_a), ["ssl_ecdh_curve"]);
    assert!(names(&comparison.only_b).contains(&"io_method".to_owned()));
    assert!(comparison.ignored.is_empty());
}

#[test]
fn mariadb_changes_and_ignores_what_it_does_not_like() {
    let versions = [("maria", "10.11.18-MariaDB")];
    let files = [
        ("base.cnf", "innodb_buffer_pool_size=64M"),
        ("my.cnf", MARIADB_FILE),
    ];
    let settings = Built::new("mysql", &versions, &files)
        .with("maria.base", &["base.cnf"], &[], dump("mariadb-10.11.base"))
        .with("maria.tuned", &["my.cnf"], &[], dump("mariadb-10.11.tuned"))
        .settings()
        .all(0);
    let [target] = settings.targets.as_slice() else {
        panic!("{:?}", settings.targets);
    };
    assert_eq!(
        ignored_lines(&target.ignored),
        [
            "loose-innodb_log_writer_threads = OFF: () Unknown",
            "max_connections = 500000: 16770 Changed",
            "table_open_cache = 100k: 200 Changed",
            "key_buffer_size = 5: 0 Changed",
            "max_allowed_packet = 12345: 12288 Changed",
            "plugin_load_add = ha_rocksdb: () Unreported",
            "innodb_purge_threads = 99: 32 Changed",
        ]
    );
    let comparison = &settings.differences[0];
    let of_mark = |mark| -> Vec<&str> {
        let settings = comparison.settings.iter();
        settings
            .filter(|setting| setting.mark == mark)
            .map(|setting| setting.name.as_str())
            .collect()
    };
    // Directories, the version and second names are left out.
    assert_eq!(
        of_mark(Mark::Undeclared),
        [
            "back_log",
            "host_cache_size",
            "ignore_db_dirs",
            "innodb_io_capacity_max",
            "innodb_log_file_buffering",
            "innodb_open_files",
            "table_open_cache_instances",
            "thread_cache_size",
        ]
    );
    let declared = of_mark(Mark::Declared);
    for name in [
        "default_storage_engine",
        "tx_isolation",
        "log_slow_query",
        "sql_mode",
    ] {
        assert!(declared.contains(&name), "{name} in {declared:?}");
    }
    // Declared, and the default of the other.
    for name in ["sync_binlog", "log_bin", "innodb_doublewrite", "wait_time"] {
        assert!(!declared.contains(&name), "{name} in {declared:?}");
    }
    assert_eq!(
        of_mark(Mark::Unverified),
        ["loose-innodb_log_writer_threads", "plugin_load_add"]
    );
}

#[test]
fn mysql_has_what_its_file_declares() {
    let files = [
        ("base.cnf", "innodb_buffer_pool_size=70M"),
        ("my.cnf", MYSQL_FILE),
    ];
    let settings = Built::new("mysql", &[("my97", "9.7.0")], &files)
        .with("my97.base", &["base.cnf"], &[], dump("mysql-9.7.base"))
        .with("my97.tuned", &["my.cnf"], &[], dump("mysql-9.7.tuned"))
        .settings()
        .all(0);
    assert_eq!(settings.targets, []);
    assert_eq!(
        lines(&settings.differences[0].settings),
        [
            "innodb_buffer_pool_chunk_size: 73400320 -> 67108864 [undeclared]",
            "innodb_buffer_pool_size: 73400320 -> 67108864 [declared]",
            "innodb_redo_log_capacity: 104857600 -> 10485760 [declared]",
            "log_bin: ON -> OFF [declared]",
            "log_replica_updates: ON -> OFF [undeclared]",
            "sync_binlog: 1 -> 0 [declared]",
        ]
    );
}

fn setting(name: &str, value: &str) -> Setting {
    Setting {
        name: name.to_owned(),
        value: value.to_owned(),
        source: None,
    }
}

#[test]
fn two_targets_that_differ_in_nothing_are_identical() {
    let of = |set: &[(&str, &str)], value: &str| {
        let built = Built::new("postgres", &[("pg", "17.2")], &[])
            .with(
                "pg.a",
                &[],
                &[("work_mem", "8MB")],
                vec![setting("work_mem", "8MB")],
            )
            .with("pg.b", &[], set, vec![setting("work_mem", value)]);
        built.settings().all(0).differences.remove(0)
    };
    assert!(of(&[("work_mem", "8192kB")], "8MB").identical);
    assert!(!of(&[], "4MB").identical);
    // Nobody knows whether the two are the same.
    assert!(!of(&[("work_mem", "8192"), ("x.y", "1")], "8MB").identical);
    let two_builds = Built::new("postgres", &[("o2", "17.2"), ("o3", "17.2")], &[])
        .with("o2.a", &[], &[], vec![setting("work_mem", "8MB")])
        .with("o3.a", &[], &[], vec![setting("work_mem", "8MB")]);
    assert!(!two_builds.settings().all(0).differences[0].identical);
}

#[test]
fn a_target_that_never_came_up_is_compared_by_what_it_declares() {
    let settings = Built::new("postgres", &[("pg", "17.2")], &[("f", "a = 1\nb = 2\n")])
        .with(
            "pg.a",
            &["f"],
            &[("work_mem", "8MB")],
            vec![setting("work_mem", "8MB")],
        )
        .with_cells(
            "pg.b",
            &["f"],
            &[("work_mem", "many")],
            vec![Cell::default()],
        )
        .settings()
        .all(0);
    let comparison = &settings.differences[0];
    assert!(comparison.declared_only && !comparison.identical);
    assert_eq!(
        lines(&comparison.settings),
        ["work_mem: 8MB -> many [unverified]"]
    );
    assert_eq!(comparison.b_version, "17.2");
    assert_eq!(comparison.unmeasured, ["pg.b"]);
}

#[test]
fn targets_of_which_no_cell_was_measured_are_told_apart_from_those_that_report_nothing() {
    let nothing = |engine: &str, cells: Vec<Cell>| {
        let built = Built::new(engine, &[("b", "1")], &[])
            .with_cells("b.a", &[], &[("x", "1")], cells.clone())
            .with_cells("b.b", &[], &[("x", "1")], cells);
        built.settings().all(0).differences.remove(0)
    };
    assert_eq!(
        nothing("rocksdb", Vec::new()).unmeasured,
        ["b.a", "b.b"].map(str::to_owned)
    );
    let came_up = Cell {
        engine_version: "1".into(),
        ..Cell::default()
    };
    assert!(nothing("null", vec![came_up]).unmeasured.is_empty());
    // Of a plan before it is run nothing is measured, and nothing else is asked.
    let target = PlanTarget::default();
    assert!(target.against(&target).unmeasured.is_empty());
}

#[test]
fn targets_that_a_run_was_not_to_measure_are_not_among_those_that_differ() {
    let mut settings = Built::new("postgres", &[("pg", "17.2")], &[])
        .with("pg.a", &[], &[], vec![setting("fsync", "on")])
        .with_cells("pg.b", &[], &[("fsync", "off")], Vec::new())
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
    let mut built = Built::new("postgres", &[("pg", "17.2")], &[])
        .with("pg.a", &[], &[], vec![setting("fsync", "on")])
        .with("pg.b", &[], &[], vec![setting("fsync", "on")]);
    built.run.builds.push(Build {
        name: "lite".into(),
        engine: "sqlite".into(),
        version: "3".into(),
        source: String::new(),
        files: Vec::new(),
    });
    let set = [("synchronous", "normal")];
    let settings = built
        .with("lite.failed", &[], &[], Vec::new())
        .with("lite.a", &[], &[], vec![setting("synchronous", "2")])
        .with("lite.b", &[], &set, vec![setting("synchronous", "1")])
        .settings();
    let pairs: Vec<(String, String)> = settings
        .all(0)
        .differences
        .into_iter()
        .map(|it| (it.a, it.b))
        .collect();
    let expected = [
        ("pg.a", "pg.b"),
        ("lite.a", "lite.failed"),
        ("lite.a", "lite.b"),
    ];
    assert_eq!(pairs, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    let between = settings.between("pg.a", "lite.b").differences.remove(0);
    assert!(between.settings.is_empty() && between.only_a.is_empty() && !between.identical);
    assert_eq!(between.only_b[0].name, "synchronous");
    assert_eq!(settings.between("pg.a", "pg.z").differences, []);
}

#[test]
fn what_varies_between_the_cells_of_a_target_is_told() {
    let cell = |clients, repeat, connections: &str, socket: &str| Cell {
        key: record::CellKey::new("", Some("big"), clients, repeat),

        settings: vec![
            setting("max_connections", connections),
            setting("unix_socket_directories", socket),
            setting("x", "1"),
        ],
        ..Cell::default()
    };
    let cells = vec![
        cell(1, 1, "100", "/a"),
        cell(1, 2, "100", "/b"),
        cell(256, 1, "272", "/c"),
    ];
    let settings = Built::new("postgres", &[("pg", "17.2")], &[])
        .with_cells("pg.a", &[], &[], cells)
        .settings()
        .all(0);
    let expected = [
        ("big c1 r1", "100"),
        ("big c1 r2", "100"),
        ("big c256 r1", "272"),
    ];
    let values = expected.map(|(cell, value)| (cell.to_owned(), Some(value.to_owned())));
    assert_eq!(
        settings.targets[0].varying,
        [Varying {
            name: "max_connections".into(),
            values: values.to_vec(),
        }]
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
        let built = Built::new("postgres", &[("pg", "17.2")], &[])
            .with_cells("pg.a", &[], &[], vec![cell(1), cell(8)])
            .with_cells("pg.b", &[], &[], cells);
        lines(&built.settings().all(0).differences[0].settings)
    };
    assert_eq!(of(vec![cell(8)]), Vec::<String>::new());
    assert_eq!(
        of(vec![cell(9)]),
        ["max_connections: 100 -> 108 [undeclared]"]
    );
}

#[test]
fn limits_are_settings_too() {
    let limited = |effective: Option<&str>, reason: Option<&str>| Cell {
        settings: vec![setting("fsync", "on")],
        limits: vec![Limit {
            what: "memory".into(),
            asked: "1073741824".into(),
            effective: effective.map(str::to_owned),
            reason: reason.map(str::to_owned),
        }],
        ..Cell::default()
    };
    let of = |cell: Cell| {
        Built::new("postgres", &[("pg", "17.2")], &[])
            .with("pg.a", &[], &[], vec![setting("fsync", "on")])
            .with_cells("pg.b", &[], &[], vec![cell])
            .settings()
            .all(0)
    };
    let settings = of(limited(Some("1073737728"), None));
    let line = "limit.memory: none -> 1073741824 [declared]";
    assert_eq!(lines(&settings.differences[0].settings), [line]);
    assert_eq!(settings.targets, []);
    let settings = of(limited(None, Some("no cgroups")));
    assert!(settings.differences[0].settings.is_empty());
    let ignored = ["limit.memory = 1073741824: none Changed"];
    assert_eq!(ignored_lines(&settings.targets[0].ignored), ignored);
}

#[test]
fn what_is_declared_can_be_compared_before_anything_runs() {
    let target = |name: &str, files: &[&'static str], set: &[(&str, &str)]| PlanTarget {
        name: name.to_owned(),
        build: "my".to_owned(),
        engine: "mysql".to_owned(),
        version: String::new(),
        declared: declared("mysql", files.iter().copied(), &pairs(set)),
    };
    let file = "innodb-io-capacity=2000\nskip-log-bin\nport=1";
    let set = [
        ("innodb_io_capacity", "3k"),
        ("log_bin", "b"),
        ("sync_binlog", "1"),
    ];
    let same = [("innodb_io_capacity", "2000"), ("skip_log_bin", "")];
    let targets = [
        target("my.a", &[file], &[]),
        target("my.b", &[], &set),
        target("my.c", &[], &same),
    ];
    let differences = declared_differences(&targets, "my.a");
    assert_eq!(
        lines(&differences[0].settings),
        [
            "innodb_io_capacity: 2000 -> 3k [declared]",
            "log_bin: OFF -> ON [declared]",
            "sync_binlog: () -> 1 [declared]",
        ]
    );
    assert!(!differences[0].identical && differences[1].identical);
    assert!(differences.iter().all(|it| it.declared_only));
    assert_eq!(differences.len(), 2);
}

#[test]
fn an_options_file_of_rocksdb_declares_all_of_its_sections_but_the_first() {
    let file = "[Version]\n  rocksdb_version=9.9.3\n\n[DBOptions]\n  max_background_jobs=4\n  # none\n\
        [CFOptions \"default\"]\n  compression=kNoCompression\n";
    let set = [("block_size".to_owned(), "8K".to_owned())];
    let of = declared("rocksdb", [file], &set);
    let pairs: Vec<_> = of
        .iter()
        .map(|option| (option.name.as_str(), option.value.as_str()))
        .collect();
    assert_eq!(
        pairs,
        [
            ("max_background_jobs", "4"),
            ("compression", "kNoCompression"),
            ("block_size", "8K"),
        ]
    );
}

/// As 6.0 and 10.10 report them: not in one order, and not the same.
const UNIVERSAL: [&str; 2] = [
    "{allow_trivial_move=true;stop_style=kCompactionStopStyleTotalSize;compression_size_percent=-1;\
     max_size_amplification_percent=200;max_merge_width=20;min_merge_width=2;size_ratio=10;}",
    "{allow_trivial_move=true; incremental=false;stop_style=kCompactionStopStyleTotalSize;\
     compression_size_percent=-1;max_read_amp=-1;max_size_amplification_percent=50;max_merge_width=20;\
     min_merge_width=2;size_ratio=10}",
];
const UNIVERSAL_NAME: &str = "[CFOptions] compaction_options_universal";

#[test]
fn of_options_that_an_option_is_made_of_each_is_compared() {
    let declared = |percent: &str| {
        format!("{{size_ratio=10;min_merge_width=2;max_size_amplification_percent={percent};x=1}}")
    };
    let [old, new] = ["200", "50"].map(declared);
    let option = "compaction_options_universal";
    let versions = [("v6", "6.0.1"), ("v10", "10.10.1")];
    let built = Built::new("rocksdb", &versions, &[])
        .with(
            "v6.a",
            &[],
            &[(option, &old)],
            vec![setting(UNIVERSAL_NAME, UNIVERSAL[0])],
        )
        .with(
            "v6.b",
            &[],
            &[(option, &new)],
            vec![setting(UNIVERSAL_NAME, UNIVERSAL[0])],
        )
        .with(
            "v10.b",
            &[],
            &[(option, &new)],
            vec![setting(UNIVERSAL_NAME, UNIVERSAL[1])],
        )
        .with(
            "v10.none",
            &[],
            &[],
            vec![setting(UNIVERSAL_NAME, UNIVERSAL[1])],
        );
    let settings = built.settings().all(0);
    let [same, declared, undeclared] = settings.differences.as_slice() else {
        panic!("{:?}", settings.differences);
    };
    assert_eq!(lines(&same.settings), [] as [&str; 0]);
    let name = format!("{UNIVERSAL_NAME}.max_size_amplification_percent: 200 -> 50");
    assert_eq!(lines(&declared.settings), [format!("{name} [declared]")]);
    // All that is declared differs from nothing; what does not differ is not told for that.
    assert_eq!(lines(&undeclared.settings), [format!("{name} [declared]")]);
    for comparison in [declared, undeclared] {
        assert_eq!(comparison.only_a, []);
        let only_b = [("incremental", "false"), ("max_read_amp", "-1")];
        let only_b = only_b.map(|(field, value)| OneSided {
            name: format!("{UNIVERSAL_NAME}.{field}"),
            value: value.to_owned(),
            mark: Mark::Undeclared,
        });
        assert_eq!(comparison.only_b, only_b);
    }
    // A target has what it declares in whatever order; of the rest nothing is said.
    let ignored: Vec<Vec<String>> = settings
        .targets
        .iter()
        .map(|target| ignored_lines(&target.ignored))
        .collect();
    let percent = "compaction_options_universal.max_size_amplification_percent = 50: 200 Changed";
    let unreported = "compaction_options_universal.x = 1: () Unreported";
    assert_eq!(
        ignored,
        [
            vec![unreported],
            vec![percent, unreported],
            vec![unreported]
        ]
    );
}

#[test]
fn of_options_that_a_plan_sets_together_those_are_told_that_differ() {
    let target = |name: &str, set: &[(&str, &str)]| PlanTarget {
        name: name.to_owned(),
        build: "r".to_owned(),
        engine: "rocksdb".to_owned(),
        version: String::new(),
        declared: declared("rocksdb", [], &pairs(set)),
    };
    let cache = "block_based_table_factory.block_cache";
    let targets = [
        target("r.a", &[(cache, "{capacity=1G;num_shard_bits=6}")]),
        target("r.b", &[(cache, "{num_shard_bits=6; capacity=1024M;}")]),
        target(
            "r.c",
            &[(cache, "{id=HyperClockCache;capacity=2G;num_shard_bits=6}")],
        ),
        target("r.d", &[(cache, "2G")]),
    ];
    let differences = declared_differences(&targets, "r.a");
    assert!(differences[0].identical);
    assert_eq!(
        lines(&differences[1].settings),
        [
            format!("{cache}.capacity: 1G -> 2G [declared]"),
            format!("{cache}.id: () -> HyperClockCache [declared]"),
        ]
    );
    // A value that can't be taken apart is told as it is.
    assert_eq!(
        lines(&differences[2].settings),
        [format!(
            "{cache}: {{capacity=1G;num_shard_bits=6}} -> 2G [declared]"
        )]
    );
}
