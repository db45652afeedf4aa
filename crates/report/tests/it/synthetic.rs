//! Figures of a run that never was: made by rule, so that they are the same on every machine.

use std::collections::BTreeMap;

use analysis::{
    figures::{
        Buckets, ClientEnd, ConcurrentChange, ExactStep, Fairness, Figures, OpFigures, OpSeries,
        Pending, Percentiles, ProfiledStep, Quality, Row, Series, SettleAction, SettleWork, Shift,
        Sla, SlaHistory, Stall, UnfinishedCell, WorstResponse,
    },
    settings::RunSettings,
};
use record::{
    Build, CellRef, Counter, Failure, FileHash, FsyncLatency, Host, Plan, ResolvedValue, Run,
    Setting, Settle, Status, Step, StepKind, StepProfile, StepWork, Target, Warning,
};
use report::{CellRecord, Source};
use words::{Stacks, WorkCalls, WorkFunction, WorkGraph, WorkPart, WorkRole};

/// The size of a run.
#[derive(Clone, Copy)]
pub struct Size {
    pub targets: usize,
    pub clients: usize,
    pub seconds: usize,
    pub steps: &'static [(&'static str, StepKind, f64)],
}

/// The ten steps of the Insert Benchmark: name, kind, requested rows per second and client.
pub const ALL_STEPS: &[(&str, StepKind, f64)] = &[
    ("l.i0", StepKind::Load, 0.0),
    ("l.x", StepKind::Index, 0.0),
    ("l.i1", StepKind::Load, 0.0),
    ("l.i2", StepKind::Load, 0.0),
    ("settle", StepKind::Settle, 0.0),
    ("qr100", StepKind::Query, 100.0),
    ("qp100", StepKind::Query, 100.0),
    ("qr500", StepKind::Query, 500.0),
    ("qp500", StepKind::Query, 500.0),
    ("qr1000", StepKind::Query, 1000.0),
    ("qp1000", StepKind::Query, 1000.0),
];

/// Enough to have each thing once.
pub const SMALL: Size = Size {
    targets: 2,
    clients: 2,
    seconds: 3,
    steps: &[
        ("l.i0", StepKind::Load, 0.0),
        ("l.x", StepKind::Index, 0.0),
        ("qr100", StepKind::Query, 100.0),
    ],
};

/// Returns a reproducible fraction of one.
pub fn noise(seed: u64) -> f64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

fn op_series(size: Size, seed: u64, per_second: f64, rows_each: u64, stall: bool) -> OpSeries {
    let mut series = OpSeries::default();
    let stalled =
        |second: usize| stall && size.seconds > 20 && (second % 97 == 40 || second % 97 == 41);
    for client in 0..size.clients {
        series.ok_by_client.push(
            (0..size.seconds)
                .map(|second| {
                    let swing =
                        0.85 + 0.3 * noise(seed * 7919 + (client * size.seconds + second) as u64);
                    if stalled(second) {
                        0
                    } else {
                        (per_second / size.clients as f64 * swing).round() as u64
                    }
                })
                .collect(),
        );
    }
    let rows = |ok: &Vec<u64>| ok.iter().map(|ok| ok * rows_each).collect();
    series.rows_by_client = series.ok_by_client.iter().map(rows).collect();
    for second in 0..size.seconds {
        let ok: u64 = series.ok_by_client.iter().map(|client| client[second]).sum();
        series.ok.push(ok);
        series.rows.push(ok * rows_each);
        series.failed.push(0);
        let worst = 3000.0 + 9000.0 * noise(seed * 31 + second as u64).powi(4);
        let after = second > 0 && stalled(second - 1) && !stalled(second);
        series.service_us_max.push(match (stalled(second), after) {
            (true, _) => 0.0,
            (_, true) => 2_000_000.0,
            _ => worst,
        });
        series.response_us_max.push(match (stalled(second), after) {
            (true, _) => 0.0,
            (_, true) => 2_100_000.0,
            _ => worst * 1.1,
        });
    }
    series
}

fn op(series: &OpSeries, rows_each: u64, scheduled: bool) -> OpFigures {
    let count: u64 = series.ok.iter().sum();
    let seconds = series.ok.len() as f64;
    let times = |factor: f64| {
        let max = series.response_us_max.iter().copied().fold(0.0, f64::max);
        let max = if factor == 1.0 {
            series.service_us_max.iter().copied().fold(0.0, f64::max)
        } else {
            max
        };
        Percentiles {
            p50: 212.0 * factor,
            p90: 480.0 * factor,
            p95: 610.0 * factor,
            p99: 1350.0 * factor,
            p99_9: 3900.0 * factor,
            p99_99: 8100.0 * factor,
            max,
            mean: 251.5 * factor,
        }
    };
    let buckets = |slow: u64, max_us: f64| {
        let (tail, one) = (slow / 3, slow.min(1));
        Buckets {
            counts: [
                count - count / 4 - slow,
                count / 4,
                slow - tail - one,
                tail,
                0,
                0,
                0,
                one,
                0,
                0,
            ],
            max_seconds: max_us / 1e6,
        }
    };
    let slow = count / 50;
    let factor = if scheduled { 1.3 } else { 1.0 };
    let (service_us, response_us) = (times(1.0), times(factor));
    OpFigures {
        count,
        rows: count * rows_each,
        failed: 0,
        skipped: u64::from(scheduled),
        retried: 2,
        rolled_back: 0,
        offered: count + u64::from(scheduled),
        per_second: count as f64 / seconds,
        rows_per_second: (count * rows_each) as f64 / seconds,
        scheduled,
        errors: BTreeMap::from([("busy".to_string(), 2)]),
        service_buckets: buckets(slow, service_us.max),
        response_buckets: buckets(if scheduled { slow * 2 } else { slow }, response_us.max),
        service_curve: curve(&service_us, count),
        response_curve: curve(&response_us, count),
        service_us,
        response_us,
    }
}

/// Returns a curve through the percentiles: a point for each sixteenth of a nine.
fn curve(times: &Percentiles, count: u64) -> Vec<(f64, f64)> {
    let end = (count as f64).log10();
    let known = [
        (0.0, times.p50 / 3.0),
        (0.3, times.p50),
        (1.0, times.p90),
        (2.0, times.p99),
        (3.0, times.p99_9),
        (end.max(3.5), times.max),
    ];
    let at = |nines: f64| {
        let next = known.iter().position(|(at, _)| *at > nines).unwrap_or(known.len() - 1).max(1);
        let ((from, low), (to, high)) = (known[next - 1], known[next]);
        low * (high / low).powf((nines - from) / (to - from))
    };
    let inner = (0..).map(|step| f64::from(step) / 16.0).take_while(|nines| *nines < end);
    inner.map(|nines| (nines, at(nines))).chain([(end, times.max)]).collect()
}

/// The properties that distinguish a row.
struct SyntheticStep<'a> {
    size: Size,
    target: usize,
    name: &'a str,
    kind: StepKind,
    /// The requested rate per client.
    rate: f64,
    seed: u64,
}

impl SyntheticStep<'_> {
    /// The speed of the target relative to the first one's.
    fn speed(&self) -> f64 {
        1.0 + 0.12 * (self.target as f64) - 0.35 * f64::from(self.target % 5 == 1)
    }

    fn rows_asked(&self) -> f64 {
        self.rate * self.size.clients as f64
    }

    /// The share of the requested rate that is achieved.
    fn achieved(&self) -> f64 {
        if self.target % 5 == 1 && self.rate >= 100.0 { 0.9 } else { 1.0 }
    }

    fn inserts(&self) -> f64 {
        match self.kind {
            StepKind::Load => 700.0 * self.speed(),
            StepKind::Query => self.rows_asked() / 50.0 * self.achieved(),
            StepKind::Index | StepKind::Settle => 0.0,
        }
    }

    /// Inserted or indexed rows per second.
    fn rows_per_second(&self) -> f64 {
        match self.kind {
            StepKind::Load => self.inserts() * 50.0,
            StepKind::Index => 1_250_000.0 * self.speed(),
            StepKind::Query => self.rows_asked() * self.achieved(),
            StepKind::Settle => 0.0,
        }
    }

    fn queries_per_second(&self) -> f64 {
        if self.kind == StepKind::Query { 9000.0 * self.speed() } else { 0.0 }
    }

    fn add_operations(&self, row: &mut Row) {
        let mut add =
            |kind: &str, per_second: f64, rows_each: u64, scheduled: bool, stall: bool| {
                let seed = self.seed + kind.len() as u64;
                let of_kind = op_series(self.size, seed, per_second, rows_each, stall);
                row.ops.insert(kind.to_string(), op(&of_kind, rows_each, scheduled));
                row.series.ops.insert(kind.to_string(), of_kind);
            };

        let inserts = self.inserts();
        let stalls = self.target.is_multiple_of(3);
        match self.kind {
            StepKind::Load => {
                add("insert", inserts, 50, false, false);
                if self.name != "l.i0" {
                    add("delete", inserts, 50, false, false);
                }
            }
            StepKind::Query => {
                add("insert", inserts.max(2.0), 50, true, stalls);
                add("delete", inserts.max(2.0), 50, true, stalls);
                add("query", 9000.0 * self.speed(), 10, false, stalls);
            }
            StepKind::Index => add("index", 1.0, 1, false, false),
            StepKind::Settle => {}
        }
    }

    fn host(&self) -> BTreeMap<String, Vec<Option<f64>>> {
        let column = |low: f64, high: f64, salt: u64| -> Vec<Option<f64>> {
            (0..self.size.seconds)
                .map(|second| Some(low + (high - low) * noise(self.seed * salt + second as u64)))
                .collect()
        };
        BTreeMap::from([
            ("cpu_user_ns".to_string(), column(2.0e9, 2.6e9, 3)),
            ("cpu_system_ns".to_string(), column(0.5e9, 0.8e9, 5)),
            ("cpu_idle_ns".to_string(), column(4.5e9, 5.5e9, 7)),
            ("disk_read_bytes".to_string(), column(0.0, 4e7, 11)),
            ("disk_write_bytes".to_string(), column(5e7, 2e8, 13)),
        ])
    }

    fn metrics(&self, config: &str) -> BTreeMap<&'static str, Option<f64>> {
        let (ips, qps) = (self.rows_per_second(), self.queries_per_second());
        let per_second = if qps > 0.0 { qps } else { ips };
        let per = |value: f64| Some(value / self.speed());
        BTreeMap::from([
            ("ips", Some(ips)),
            ("qps", Some(qps)),
            ("dps", (self.kind == StepKind::Query).then_some(ips)),
            ("rps", Some(1043.0)),
            ("rmbps", Some(18.25)),
            ("wps", Some(5120.4)),
            ("wmbps", Some(101.9)),
            ("rpq", per(0.029)),
            ("rkbpq", per(0.53)),
            ("wpi", per(0.146)),
            ("wkbpi", per(2.98)),
            ("csps", Some(61_200.0)),
            ("cpups", Some(37.4)),
            ("cspq", per(1.75)),
            ("cpupq", per(85.5)),
            ("dbgb1", Some(7.912)),
            ("dbgb2", Some(9.004)),
            // An embedded engine has no process of its own.
            ("rss", (config != "embedded").then_some(0.751)),
            ("server_cpu_us_per_op", (config != "embedded").then_some(61.2)),
            ("client_cpu_us_per_op", Some(4.31)),
            ("fsyncs_per_commit", (self.kind != StepKind::Index).then_some(1.02)),
            ("write_amplification", per(11.25)),
            ("debt_dead_rows", Some(12_345.0)),
            ("debt_redo_mb", Some(96.5)),
            ("maxop", Some(0.123)),
            ("p50", Some(per_second * 1.01)),
            ("p99", (self.size.seconds > 10).then_some(per_second * 0.8)),
        ])
    }

    fn sla(&self) -> Sla {
        Sla {
            kind: "insert".to_string(),
            role: None,
            target: self.rows_asked(),
            achieved: self.rows_asked() * self.achieved(),
            met: self.achieved() >= 0.95,
            history: Some(history(self.rows_asked(), self.achieved() < 1.0)),
        }
    }

    fn quality(&self) -> Quality {
        let is_query = self.kind == StepKind::Query;
        let rate = if is_query { self.queries_per_second() } else { self.rows_per_second() };
        quality(self.kind, rate, self.target == 0 && is_query)
    }
}

fn row(
    size: Size,
    target: usize,
    target_name: &str,
    (name, kind, rate): (&str, StepKind, f64),
    seed: u64,
) -> Row {
    let step = SyntheticStep { size, target, name, kind, rate, seed };
    let (build, config) = target_name.split_once('.').unwrap();
    let mut row = Row {
        cell: record::CellKey::new(target_name, None, size.clients as u32, 1),
        build: build.to_string(),
        config: config.to_string(),
        engine: "postgres".to_string(),
        engine_version: "17.2".to_string(),
        workload: "insert".to_string(),
        step: name.to_string(),
        kind,
        reported: true,
        main_op: match kind {
            StepKind::Load | StepKind::Index => Some("insert".to_string()),
            StepKind::Query => Some("query".to_string()),
            StepKind::Settle => None,
        },
        status: Status::Complete,
        valid: true,
        counters: BTreeMap::from([
            ("checkpoint_count".to_string(), 3.0),
            ("wal_bytes".to_string(), 123_456_789.0 + seed as f64),
        ]),
        ..Row::default()
    };
    if kind == StepKind::Settle {
        return Row { seconds: 12.3, settled: Some(settled()), ..row };
    }

    step.add_operations(&mut row);
    row.series.host = step.host();
    Row {
        seconds: size.seconds as f64,
        metrics: step.metrics(config),
        sla: (kind == StepKind::Query).then(|| step.sla()),
        fairness: (kind == StepKind::Load).then(fairness),
        quality: matches!(kind, StepKind::Load | StepKind::Query).then(|| step.quality()),
        ..row
    }
}

fn fairness() -> Fairness {
    Fairness {
        fastest_seconds: 57.25,
        fastest_client: 1,
        slowest_seconds: 60.5,
        slowest_client: 0,
        abs_seconds: 3.25,
        pct: 3.25 / 57.25 * 100.0,
        clients: vec![end(0, 60.5), end(1, 57.25)],
    }
}

fn end(client: u32, seconds: f64) -> ClientEnd {
    ClientEnd { client, seconds }
}

/// Returns a minute in which the rate is missed in three seconds, or in none.
fn history(asked: f64, missed: bool) -> SlaHistory {
    SlaHistory {
        seconds: 60,
        met_seconds: if missed { 57 } else { 60 },
        met_pct: if missed { 95.0 } else { 100.0 },
        worst_second: if missed { 0.0 } else { asked },
        first_missed_second: missed.then_some(17),
        longest_miss_seconds: if missed { 2 } else { 0 },
        longest_miss_from: missed.then_some(40),
        worst_response: Some(WorstResponse { second: 42, us: 2_100_000.0 }),
    }
}

/// Returns a minute that is even, or with a stall and then with a lower level.
fn quality(kind: StepKind, rate: f64, stalled: bool) -> Quality {
    let moved = |name: &str, of_engine, unit: &str, during: f64, otherwise: f64| ConcurrentChange {
        name: name.to_string(),
        of_engine,
        unit: unit.to_string(),
        during,
        otherwise,
        ratio: (otherwise > 0.0).then(|| during / otherwise),
        unusual: 12.5,
    };
    let stall = || Stall {
        from_second: 40,
        seconds: 2,
        lowest: 0.0,
        response_us_max: Some(2_100_000.0),
        concurrent_changes: vec![
            moved("disk_write_bytes", false, "bytes/s", 4e8, 5e7),
            moved("checkpoint_count", true, "/s", 1.0, 0.0),
        ],
    };
    let shift = || Shift {
        second: 45,
        before: rate,
        after: rate * 0.75,
        concurrent_changes: vec![moved("disk_read_count", false, "/s", 910.0, 40.0)],
    };
    let seconds = if stalled { 2 } else { 0 };
    Quality {
        kind: if kind == StepKind::Load { "insert" } else { "query" }.to_string(),
        seconds: 60,
        zero_seconds: seconds,
        worst_second: if stalled { 0.0 } else { rate * 0.85 },
        median: rate,
        usual: rate,
        cv: Some(0.081),
        thickness: Some(0.244),
        p1_of_median: Some(if stalled { 0.0 } else { 0.86 }),
        below_half_median_seconds: seconds,
        longest_stall_seconds: Some(seconds),
        stalled_seconds: Some(seconds),
        stalled_pct: None,
        worst_response: Some(WorstResponse { second: 42, us: 2_100_000.0 }),
        stall_count: usize::from(stalled),
        stalls: stalled.then(stall).into_iter().collect(),
        shift_count: usize::from(stalled),
        shifts: stalled.then(shift).into_iter().collect(),
    }
}

fn settled() -> SettleWork {
    SettleWork {
        seconds: 9.51,
        written_bytes: Some(125_829_120.0),
        actions: vec![SettleAction { what: "CHECKPOINT".to_string(), seconds: 9.51 }],
        pending: vec![Pending {
            name: "wal_since_checkpoint_bytes".to_string(),
            role: Some(record::Role::CheckpointAgeBytes),
            before: Some(73_400_320.0),
            after: Some(0.0),
        }],
    }
}

/// Returns names of targets: the first is the base.
pub fn target_names(count: usize) -> Vec<String> {
    let configs = ["base", "embedded", "a16", "big-wal", "a26", "lz4", "zstd"];
    (0..count)
        .map(|index| format!("pg{}.{}", 15 + index / configs.len(), configs[index % configs.len()]))
        .collect()
}

/// Returns the figures: in the last target's first index step a check does not hold, and one target
/// more failed.
pub fn figures(size: Size) -> Figures {
    let mut figures = Figures::default();
    for (target, name) in target_names(size.targets).iter().enumerate() {
        for (number, step) in size.steps.iter().enumerate() {
            figures.rows.push(row(size, target, name, *step, (target * 100 + number + 1) as u64));
        }
    }
    let last = target_names(size.targets).pop().unwrap();
    if let Some(row) =
        figures.rows.iter_mut().find(|row| row.cell.target == last && row.step == "l.x")
    {
        row.valid = false;
        row.reasons =
            vec!["rows in index `pdc` of `pi1`: 19999998 found, 20000000 expected".to_string()];
    }
    // One more target: its server died in the second step.
    let mut first = row(size, size.targets, "pg99.broken", size.steps[0], 7777);
    first.warnings.push(Warning {
        code: "step::too-short".to_string(),
        text: "the step took 3 s: figures of less than 10 s say little".to_string(),
    });
    let mut second = row(size, size.targets, "pg99.broken", size.steps[1], 8888);
    second.status = Status::Failed;
    second.valid = false;
    second.reasons = vec!["the server ended: signal 9".to_string()];
    figures.rows.extend([first, second]);
    figures.unfinished.push(UnfinishedCell {
        run: 0,
        cell: record::CellKey::new("pg99.broken", None, size.clients as u32, 1),
        status: Some(Status::Failed),
        causes: vec!["step `l.x` failed".to_string(), "the server ended: signal 9".to_string()],
    });
    let Source { run, cells } = source(size);
    let cells = cells.into_iter().map(|record| record.cell).collect();
    figures.settings = RunSettings::new(run, cells).all(0);
    figures
}

/// Adds a second repeat of each valid row, with nearly the same CPU, and a profile: other targets
/// than the first spend more in `plan` and have no `copy`.
pub fn add_profiles(figures: &mut Figures) {
    let base = figures.rows[0].cell.target.clone();
    let mut second: Vec<Row> = figures.rows.clone();
    second.retain(|row| row.valid);
    for row in figures.rows.iter_mut().filter(|row| row.valid) {
        let is_base = row.cell.target == base;
        let cpu_us = if is_base { 100.0 } else { 150.0 };
        row.metrics.insert("server_cpu_us_per_op", Some(cpu_us));
        let mut stacks = Stacks::default();
        let mut add = |stack: &str, samples| stacks.add(stack.split(';'), samples);
        add("postgres;main;execute", 2000);
        add("postgres;main;execute;write_[k]", 2000);
        add("postgres;main;plan;estimate", if is_base { 1000 } else { 6000 });
        add("postgres;main;execute;[postgres]", 1000);
        add("postgres;main;execute;rare", 4);
        if is_base {
            add("postgres;main;execute;copy", 4000);
        } else {
            add("postgres;main;execute;<copy2>", 4000);
        }
        figures.profiled.push(ProfiledStep {
            row: Row {
                cell: record::CellKey { kind: words::CellKind::Profiled, ..row.cell.clone() },
                series: Series::default(),
                ..row.clone()
            },
            profile: StepProfile {
                event: "cycles".to_string(),
                call_graph: "fp".to_string(),
                samples: stacks.total(),
                unknown: 1000,
                ..StepProfile::default()
            },
            stacks,
        });
    }
    for mut row in second {
        let cpu_us = if row.cell.target == base { 100.0 } else { 150.0 };
        let cpu_us = Some(cpu_us * (1.0 + 1e-6));
        row.metrics.insert("server_cpu_us_per_op", cpu_us);
        row.cell.repeat = 2;
        figures.rows.push(row);
    }
}

/// Adds two exact cells of each target with its first query step: other targets than the first
/// spend more instructions in `estimate`, which `plan` calls.
pub fn add_exact(figures: &mut Figures) {
    let base = figures.rows[0].cell.target.clone();
    let is_query = |row: &&Row| row.valid && row.step == "qr100";
    let rows: Vec<Row> = figures.rows.iter().filter(is_query).cloned().collect();
    for row in rows {
        for repeat in 1..=2 {
            let mut graph = graph(if row.cell.target == base { 20_000 } else { 23_000 });
            // Cells differ a little.
            graph.functions[0].own += u64::from(repeat);
            // The base reads its pages itself.
            if row.cell.target == base {
                graph.calls[3].count *= 3;
            }
            let operations = [("query".to_string(), OPERATIONS)].into();
            let key = record::CellKey { clients: 1, repeat, ..row.cell.clone() };
            figures.exact.push(ExactStep {
                row: Row {
                    cell: record::CellKey { kind: words::CellKind::Exact, ..key },
                    series: Series::default(),
                    ..row.clone()
                },
                work: StepWork {
                    missing: None,
                    tool: "valgrind-3.19.0".to_string(),
                    warmup_operations: 200,
                    operations,
                    parts: vec![WorkPart {
                        role: WorkRole::Serving,
                        name: "query".to_string(),
                        operations: vec!["query".to_string()],
                        instructions: graph.total(),
                        events: BTreeMap::new(),
                    }],
                },
                graphs: [(WorkRole::Serving, graph)].into(),
            });
        }
    }
}

/// The operations that an exact cell counts.
const OPERATIONS: u64 = 1000;

/// Returns the functions of a query, whose `estimate` executes this many instructions.
fn graph(estimate: u64) -> WorkGraph {
    let own = [
        ("serve", 1000),
        ("execute", 30_000),
        ("plan", 4000),
        ("estimate", estimate),
        ("pread64", 10),
    ];
    let function = |(name, own): (&str, u64)| WorkFunction {
        name: name.to_string(),
        object: if name == "pread64" { "libc.so.6" } else { "postgres" }.to_string(),
        own: own * OPERATIONS,
    };
    let calls = |caller, callee, inclusive: u64| WorkCalls {
        caller,
        callee,
        count: OPERATIONS,
        inclusive: inclusive * OPERATIONS,
    };
    WorkGraph {
        functions: own.map(function).to_vec(),
        calls: vec![
            calls(0, 1, 30_010),
            calls(0, 2, 4000 + estimate),
            calls(2, 3, estimate),
            calls(1, 4, 10),
        ],
    }
}

/// Returns a target without declared settings.
pub fn target(name: &str, engine: &str) -> Target {
    let (build, config) = name.split_once('.').unwrap();
    Target {
        name: name.to_string(),
        build: build.to_string(),
        config: config.to_string(),
        engine: engine.to_string(),
        set: Vec::new(),
        declared: Vec::new(),
        factors: Vec::new(),
        files: Vec::new(),
    }
}

/// Returns the run of the figures.
pub fn source(size: Size) -> Source {
    let mut names = target_names(size.targets);
    names.push("pg99.broken".to_string());
    let set = vec![("shared_buffers".to_string(), "4GB".to_string())];
    let targets: Vec<Target> =
        names.iter().map(|name| Target { set: set.clone(), ..target(name, "postgres") }).collect();
    let cells = targets.iter().map(|target| cell(target, size)).collect();
    let mut builds: Vec<&str> = targets.iter().map(|target| target.build.as_str()).collect();
    builds.dedup();

    let run = Run {
        assay: record::Assay { version: "0.1.0".to_string(), ..record::Assay::default() },
        status: Status::Complete,
        name: "postgres-round-6".to_string(),
        started_unix_ns: 1_795_287_731_000_000_000,
        ended_unix_ns: Some(1_795_291_331_000_000_000),
        command: ["assay", "run", "postgres-round-6.toml"].map(str::to_string).to_vec(),
        plan: plan(),
        seed: 42,
        host: host(),
        builds: builds.into_iter().map(build).collect(),
        base: names[0].clone(),
        cells: targets.iter().map(|target| cell_ref(target, size)).collect(),
        targets,
        warnings: vec![Warning {
            code: "host::swap-in-use".to_string(),
            text: "312 MiB of swap are in use: turn swap off, or what is measured is the swap"
                .to_string(),
        }],
        ..Run::default()
    };
    Source { run, cells }
}

fn plan() -> Plan {
    Plan {
        path: Some("postgres-round-6.toml".to_string()),
        text: "name = \"postgres-round-6\"\nclients = [8]\n\n[workload.insert]\ninitial-rows = \"20M\"   # per table\n"
            .to_string(),
        sets: vec!["workload.insert.write-rows=40M".to_string()],
        resolved: vec![ResolvedValue {
            key: "workload.insert.initial-rows".to_string(),
            value: "20M".to_string(),
            origin: "plan:5:16".to_string(),
        }],
        ..Plan::default()
    }
}

fn host() -> Host {
    let facts = [
        ("cpu_model", "AMD EPYC 7B13"),
        ("kernel", "6.1.0-26-amd64"),
        ("filesystem", "xfs, noatime"),
    ];
    Host {
        facts: facts.map(|(name, value)| (name.to_string(), value.to_string())).to_vec(),
        cpu_count: 8,
        memory_total_bytes: 33_285_996_544,
        fsync: Some(FsyncLatency {
            count: 500,
            p50_ns: 812_300,
            p99_ns: 2_931_000,
            max_ns: 11_020_000,
        }),
    }
}

fn build(name: &str) -> Build {
    Build {
        name: name.to_string(),
        engine: "postgres".to_string(),
        version: name.trim_start_matches("pg").to_string() + ".2",
        source: format!("/opt/{name}"),
        files: vec![FileHash {
            path: format!("/opt/{name}/bin/postgres"),
            size_bytes: 9_876_543,
            sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".to_string(),
        }],
        commit: None,
    }
}

fn cell_ref(target: &Target, size: Size) -> CellRef {
    CellRef {
        key: record::CellKey::new(&target.name.clone(), None, size.clients as u32, 1),
        workload: "insert".to_string(),
        path: format!("cells/{}/c{}/r1", target.name, size.clients),
    }
}

fn cell(target: &Target, size: Size) -> CellRecord {
    let setting = |name: &str, value: &str| Setting {
        source: Some("configuration file".to_string()),
        ..Setting::new(name, value)
    };
    let broken = target.name == "pg99.broken";
    CellRecord {
        cell: record::Cell {
            key: record::CellKey::new(&target.name.clone(), None, size.clients as u32, 1),
            engine: target.engine.clone(),

            status: if broken { Status::Failed } else { Status::Complete },
            failure: broken.then(|| Failure {
                causes: vec!["the server ended: signal 9".to_string()],
                help: Some("look for the out-of-memory killer in the kernel's log".to_string()),
                log_tail: vec!["LOG:  database system is ready to accept connections".to_string()],
            }),
            settings: vec![
                setting(
                    "autovacuum_vacuum_scale_factor",
                    if target.config == "base" { "0.2" } else { "0.05" },
                ),
                setting("shared_buffers", "4GB"),
            ],
            ..record::Cell::default()
        },
        steps: vec![Step {
            name: "settle".to_string(),
            kind: StepKind::Settle,
            settle: Some(Settle {
                actions: vec![
                    ("VACUUM (ANALYZE) pi1".to_string(), 9_100_000_000),
                    ("CHECKPOINT".to_string(), 410_000_000),
                ],
                pending_before: Vec::new(),
                pending_after: vec![Counter::gauge("dirty_bytes", 8192.0)],
            }),
            ..Step::default()
        }],
    }
}

/// Returns the same for each number of clients and each variant of the workload.
pub fn matrix_of(size: Size, clients: &[u32], variants: &[&str]) -> Figures {
    let once = figures(size);
    let mut figures = Figures { settings: once.settings.clone(), ..Figures::default() };
    for variant in variants {
        for &clients in clients {
            let factor = f64::from(clients).sqrt();
            figures.rows.extend(once.rows.iter().cloned().map(|mut row| {
                row.cell.variant = Some(variant.to_string());
                row.cell.clients = clients;
                for name in ["ips", "qps"] {
                    let value = row.metrics.get_mut(name);
                    if let Some(Some(value)) = value {
                        *value *= factor;
                    }
                }
                row
            }));
            let unfinished = once.unfinished.iter().cloned().map(|mut cell| {
                cell.cell.variant = Some(variant.to_string());
                cell.cell.clients = clients;
                cell
            });
            figures.unfinished.extend(unfinished);
        }
    }
    figures
}
