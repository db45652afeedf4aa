//! A small run with a value in every field.

use std::collections::BTreeMap;
use std::path::Path;

use record::{
    AchievedRate, AloneStep, Assay, Build, BuiltCommit, BuiltPatch, Cell, CellDir, CellRef, Check,
    Connection, ConnectionState, Counter, Cpu, DeclaredOption, Design, DesignFactor,
    DesignedTarget, DiskFloor, FORMAT, FactDifference, Failure, FileHash, FsyncLatency, GroupBase,
    HomeRows, Host, HostColumn, ImportedFile, ImportedRun, ImportedStep, IntervalRow, Invocation,
    IoMode, IoRate, Limit, LoadPause, MaxRate, OpPause, OpRole, Ops, OptionStatus, Plan, PlanFile,
    RateSearch, ReadFloor, ResolvedValue, Role, Run, RunDir, ServerHost, Setting, SettingRole,
    Settle, Status, Step, StepKind, StorageSize, SyncFloor, SyncPlace, Target, UnmetOption,
    Warning, WorkloadSteps, latency_histogram,
};

pub const HOST_COLUMNS: [HostColumn<'static>; 2] = [
    HostColumn { name: "cpu_user_ns", cumulative: true },
    HostColumn { name: "server_rss_bytes", cumulative: false },
];

/// Seconds of the sample's step.
pub const SECONDS: u32 = 12;

pub fn cell_ref() -> CellRef {
    CellRef::new("bundled.base", "insert", None, 2, 1)
}

fn assay() -> Assay {
    Assay {
        version: "0.1.0".into(),
        git_hash: Some("9587cafd32a1".into()),
        git_dirty: Some(false),
        profile: Some("release".into()),
    }
}

fn max_rate() -> MaxRate {
    MaxRate {
        step: "tpcb".into(),
        variant: Some("procedure".into()),
        clients: 4,
        max_per_s: 5432.118,
        percent: 70.0,
        rate_per_s: 3802.0,
        achieved: vec![AchievedRate {
            target: "pg.base".into(),
            variant: Some("statements".into()),
            per_s: 5432.1179,
        }],
    }
}

pub fn run() -> Run {
    Run {
        format: FORMAT,
        id: "6f1c2a52-9d04-4b8e-8f6a-0c1d2e3f4a5b".into(),
        assay: assay(),
        status: Status::Complete,
        name: "sample".into(),
        started_unix_ns: 1_795_287_731_250_000_000,
        ended_unix_ns: Some(1_795_287_799_000_000_000),
        command: vec!["assay".into(), "run".into()],
        plan: plan(),
        seed: u64::MAX,
        host: host(),
        builds: vec![Build {
            name: "bundled".into(),
            engine: "sqlite".into(),
            version: "3.50.0".into(),
            source: "bundled".into(),
            files: vec![FileHash { path: "lib".into(), size_bytes: 1, sha256: "00".into() }],
            commit: Some(commit()),
        }],
        targets: vec![target()],
        base: "bundled.base".into(),
        bases: vec![GroupBase { group: "sqlite".into(), target: "bundled.base".into() }],
        design: Some(Design {
            kind: "full".into(),
            factors: vec![DesignFactor {
                name: "jit".into(),
                levels: vec!["off".into(), "on".into()],
            }],
            targets: vec![DesignedTarget {
                target: "bundled.base".into(),
                levels: vec![0],
                is_folded: false,
            }],
        }),
        cells: vec![cell_ref()],
        workloads: vec![WorkloadSteps {
            workload: "insert".into(),
            variant: None,
            steps: vec!["l.i1".into()],
            alone: Some(AloneStep { step: "l.i1".into(), in_sequence: None }),
        }],
        warnings: vec![Warning { code: "host::swap-in-use".into(), text: "swap is in use".into() }],
        imported: Some(ImportedRun {
            tools: vec!["sysbench 1.0.20".into()],
            source: "old.tar.xz".into(),
            files: 1,
            bytes: 4096,
        }),
        max_rates: vec![max_rate()],
        search: Some(RateSearch {
            step: "l.i1".into(),
            p99_ms: Some(20.0),
            lag_ms: None,
            rate_max: Some(5e3),
            tolerance: 0.05,
            repeats: 1,
        }),
        invocations: vec![invocation()],
        is_open_ended: true,
        is_time_up: true,
        is_running: false,
        files: Vec::new(),
    }
}

fn commit() -> BuiltCommit {
    BuiltCommit {
        stored: "rocksdb-0123456789ab-01234567".into(),
        repository: "/src/rocksdb".into(),
        hash: "0123456789abcdef0123456789abcdef01234567".into(),
        described: "v9.9.3-1-g0123456789ab".into(),
        subject: "Read ahead".into(),
        committed_unix_s: 1_795_287_731,
        make: "make shared_lib".into(),
        gives: "librocksdb.so".into(),
        patch: Some(BuiltPatch { name: "fix.diff".into(), sha256: "00".into() }),
        compilers: [("c++".into(), "c++ 12.2.0".into())].into(),
        flags: [("CXXFLAGS".into(), "-O1".into())].into(),
        duration_ms: 1,
    }
}

fn plan() -> Plan {
    Plan {
        path: Some("sample.toml".into()),
        text: "name = \"sample\"\n".into(),
        sets: vec!["repeats=1".into()],
        resolved: vec![ResolvedValue {
            key: "repeats".into(),
            value: "1".into(),
            origin: "--set".into(),
        }],
        password_removed: true,
        files: vec![PlanFile { name: "base.conf".into(), text: "a = 1\n".into() }],
    }
}

fn host() -> Host {
    Host {
        facts: vec![("kernel".into(), "6.1.0".into())],
        cpu_count: 2,
        memory_total_bytes: 8 << 30,
        fsync: Some(FsyncLatency {
            count: 100,
            p50_ns: 200_000,
            p99_ns: 900_000,
            max_ns: 1_000_000,
        }),
    }
}

fn target() -> Target {
    Target {
        name: "bundled.base".into(),
        build: "bundled".into(),
        config: "base".into(),
        engine: "sqlite".into(),
        set: vec![("synchronous".into(), "normal".into())],
        declared: vec![DeclaredOption {
            name: "synchronous".into(),
            value: "normal".into(),
            key: "synchronous".into(),
            canonical: "1".into(),
            optional: true,
            role: Some(SettingRole::Durability),
        }],
        factors: Vec::new(),
        files: vec!["base.conf".into()],
    }
}

fn invocation() -> Invocation {
    Invocation {
        started_unix_ns: 1_795_287_731_250_000_000,
        ended_unix_ns: Some(1_795_287_799_000_000_000),
        elapsed_ns: Some(67_750_000_000),
        status: Status::Complete,
        assay: assay(),
        command: vec!["assay".into(), "run".into()],
        only: vec!["bundled.*".into()],
        data_dir: "/data".into(),
        databases_dir: Some("/databases".into()),
        boot_id: Some("b".into()),
        host_differences: vec![FactDifference {
            name: "kernel".into(),
            first: Some("6.1.0".into()),
            now: None,
        }],
        left_out: Vec::new(),
        client_hosts: Vec::new(),
        fsync: Some(FsyncLatency::default()),
        disk_floors: vec![disk_floor()],
    }
}

fn disk_floor() -> DiskFloor {
    let rate = IoRate { count: 9, requests_per_s: 4.5, p50_ns: 200, p99_ns: 300, max_ns: 400 };
    DiskFloor {
        measured_unix_ns: 1_795_287_731_300_000_000,
        file_bytes: 1 << 30,
        reads: vec![ReadFloor { depth: 8, block_bytes: 4096, mode: IoMode::Direct, rate }],
        syncs: vec![SyncFloor {
            place: SyncPlace::Append,
            block_bytes: 4096,
            mode: IoMode::Buffered,
            rate,
        }],
        notes: vec!["direct writes that append: the file system refuses them".into()],
    }
}

pub fn cell() -> Cell {
    Cell {
        run: run().id,
        files: Vec::new(),
        key: record::CellKey::new("bundled.base", None, 2, 1),
        build: "bundled".into(),
        config: "base".into(),
        engine: "sqlite".into(),
        engine_version: "3.50.0".into(),
        workload: "insert".into(),

        status: Status::Complete,
        failure: Some(Failure {
            causes: vec!["a".into(), "b".into()],
            help: Some("c".into()),
            log_tail: vec!["d".into()],
        }),
        started_unix_ns: 1_795_287_732_000_000_000,
        ended_unix_ns: Some(1_795_287_798_000_000_000),
        embedded: true,
        has_host_metrics: true,
        frozen_by: Some("control group of version 2".into()),
        server_host: ServerHost::Remote,
        server_user: Some("postgres".into()),
        invocation: 1,
        tables_left: vec!["pi1".into()],
        procedures_left: vec!["assay_tpcb".into()],
        limits: vec![Limit {
            what: "memory".into(),
            asked: "1073741824".into(),
            effective: Some("1073741824".into()),
            reason: Some("swap is not limited".into()),
        }],
        settings: vec![Setting {
            name: "page_size".into(),
            value: "4K".into(),
            source: Some("default".into()),
            key: Some("block_size".into()),
            canonical: Some("4096".into()),
            volatile: true,
            role: Some(SettingRole::CacheSize),
        }],
        unmet_options: vec![UnmetOption {
            name: "synchronous".into(),
            declared: "normal".into(),
            effective: Some("2".into()),
            status: OptionStatus::Changed,
        }],
        database: None,
        steps: vec!["l.i1".into()],
        not_applicable: Vec::new(),
    }
}

fn counters(value: f64) -> Vec<Counter> {
    vec![
        Counter::cumulative("wal_bytes", value).with_role(Role::LogBytes),
        Counter { rounding: 0.5, ..Counter::gauge("dead_rows", 7.5) },
    ]
}

fn inserts() -> Ops {
    Ops {
        role: Some(OpRole::Insert),
        offered: 243,
        skipped: 1,
        ok: 240,
        failed: 2,
        retried: 3,
        retried_ns: Some(4_500_000),
        rows: 12_000,
        rolled_back: 0,
        unexpected_rows: 0,
        errors: BTreeMap::from([("busy".into(), 5)]),
        error_examples: BTreeMap::from([("busy".into(), "database is locked".into())]),
        rate_target_ops_per_s: Some(20.25),
    }
}

fn connection(client: u32) -> Connection {
    Connection {
        client,
        role: "insert".into(),
        started_ns: 0,
        ended_ns: 11_500_000_000 + u64::from(client) * 100_000_000,
        cpu_user_ns: 100,
        cpu_system_ns: 50,
        cpu_wait_ns: Some(7),
        events: record::ProcessorEvents {
            instructions: Some(1_000),
            ..record::ProcessorEvents::default()
        },
        server_thread: Some(record::ThreadUse {
            cpu_ns: 60,
            cpu_wait_ns: 8,
            events: record::ProcessorEvents::default(),
        }),
        states: [(ConnectionState::Fsync, 3), (ConnectionState::Runnable, 97)].into(),
        rows: 6000,
        ok: 120,
    }
}

fn command() -> record::StepCommand {
    record::StepCommand {
        key: "before-step".into(),
        command: "sync".into(),
        exit_code: Some(0),
        ended: "exit status: 0".into(),
        took_ns: 7,
        output: "done\n".into(),
        output_bytes: 5,
    }
}

fn settle() -> Settle {
    Settle {
        actions: vec![("CHECKPOINT".into(), 77)],
        pending_before: counters(2.0),
        pending_after: counters(1.0),
    }
}

fn homes() -> HomeRows {
    HomeRows {
        table: "warehouse".into(),
        rows: 10,
        rule: "spread".into(),
        least_per_client: 2,
        most_per_client: 3,
    }
}

fn check() -> Check {
    Check {
        what: "rows of pi1".into(),
        expected: "13000".into(),
        found: "13000".into(),
        holds: true,
        left_out: None,
    }
}

fn pause() -> OpPause {
    OpPause { think_ns_mean: 12_000_000_000, keying_ns: 18_000_000_000 }
}

pub fn step() -> Step {
    Step {
        name: "l.i1".into(),
        cell: cell().key,
        number: 1,
        lag_at_most_ns: Some(1_000_000_000),
        turns: Some(2),
        kind: StepKind::Load,
        main_op: Some("insert".into()),
        main_role: Some(OpRole::Insert),
        queries_per_event: Some(14.5),
        commits_per_event: Some(1.0),
        deletes_per_event: Some(1.0),
        scanned_rows_per_event: Some(30_000_000),
        per_minute: Some("new orders per minute".into()),
        homes: vec![homes()],
        pauses: [("new_order".to_owned(), pause())].into(),
        group: Some("write".into()),
        unreported: true,
        status: Status::Complete,
        failure: None,
        valid: true,
        reasons: vec![],
        started_unix_ns: 1_795_287_733_000_000_000,
        elapsed_ns: 11_600_000_000,
        time_given_ns: Some(11_600_000_000),
        clients: 2,
        rows_before: 1000,
        rows_per_commit: Some(50),
        row_bytes_mean: Some(47.0),
        data_bytes: Some(611_000),
        insert_rate_target_rows_per_s: Some(1012.5),
        connections: vec![connection(0), connection(1)],
        ops: BTreeMap::from([("insert".into(), inserts())]),
        warm_up_ops: BTreeMap::from([("insert".into(), inserts())]),
        ranks: Vec::new(),
        profile: None,
        work: None,
        system_calls: None,
        held_up: vec![LoadPause { from_ns: 3_000_000_000, to_ns: 3_400_000_000 }],
        cpu: Cpu {
            client_user_ns: 200,
            client_system_ns: 100,
            assay_ns: 400,
            server_ns: Some(5),
            host_ns: 600,
        },
        counters_before: counters(10.0),
        counters_after: counters(1e15),
        counters_end: counters(2e15),
        storage: Some(StorageSize { data_bytes: 3 << 30, log_bytes: 1 << 29 }),
        checks: vec![check()],
        checks_ns: 5,
        catch_up_ns: None,
        settle: Some(settle()),
        plans: vec![record::StatementPlan {
            statement: "select min(transactionid) from pi1".into(),
            digest: "7a".into(),
            plan: "SEARCH pi1".into(),
            error: None,
        }],
        commands: vec![command()],
        imported: Some(imported()),
        warnings: vec![],
        files: vec![],
    }
}

pub fn intervals(second: u32) -> Vec<IntervalRow<'static>> {
    (0..2)
        .map(|client| IntervalRow {
            second,
            client,
            kind: "insert",
            ok: 10,
            failed: u64::from(second == 3),
            retried: u64::from(second % 4 == 3),
            rows: 500,
            service_ns_max: 2_000_000 + u64::from(client),
            response_ns_max: 2_000_100 + u64::from(second),
        })
        .collect()
}

pub fn host_values(second: u32) -> [Option<i64>; 2] {
    [Some(i64::from(second) * 1_000_000_000), second.is_multiple_of(2).then_some(1 << 20)]
}

/// Writes the series of the step, but does not finish it.
pub fn measure(cell: &CellDir) -> record::StepWriter {
    let mut writer = cell.begin_step(1, "l.i1", &HOST_COLUMNS).unwrap();
    writer.started(step().started_unix_ns);
    for second in 0..SECONDS {
        writer.intervals(&intervals(second)).unwrap();
        let at_ns = i64::from(second) * 1_000_000_000 + 5;
        writer.host(0, second, at_ns, &host_values(second)).unwrap();
        writer.counters(second, at_ns, &counters(f64::from(second))).unwrap();
        let mut service = latency_histogram();
        service.record_n(1_000_000, 10).unwrap();
        service.record_n(2_000_000, 10).unwrap();
        writer.latency(second, "insert.service", &service).unwrap();
        service.record(40_000_000_000).unwrap();
        writer.latency(second, "insert.response", &service).unwrap();
    }
    writer
}

/// Begins the cell of the sample, with its record.
pub fn begin(run: &RunDir) -> CellDir {
    let cell = run.begin_cell(&cell_ref()).unwrap();
    cell.write(&Cell { status: Status::Incomplete, ..self::cell() }).unwrap();
    cell
}

/// Writes the whole sample.
pub fn write(results: &Path) -> RunDir {
    let directory = RunDir::create(results, &run()).unwrap();
    let cell = begin(&directory);
    cell.write_text("server.conf", "synchronous = normal\n").unwrap();
    measure(&cell).finish(&step()).unwrap();
    cell.write(&self::cell()).unwrap();
    directory.end_cell(&cell_ref()).unwrap();
    directory.write_run(&run()).unwrap();
    directory
}

fn imported() -> ImportedStep {
    let times = BTreeMap::from([("p95".to_owned(), 1340.0)]);
    ImportedStep {
        tool: "sysbench 1.0.20".into(),
        files: vec![ImportedFile {
            path: "sb.o.scan".into(),
            format: "sysbench".into(),
            lines: 44,
            bytes: 4096,
            crc32: "0badcafe".into(),
        }],
        metrics: BTreeMap::from([("qps".to_owned(), 12.5)]),
        times_us: BTreeMap::from([("event".to_owned(), times)]),
        buckets: BTreeMap::from([("event".to_owned(), [1; 10])]),
    }
}
