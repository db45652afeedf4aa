//! Tables and charts of a key-value run that never was: an old version that has neither statistics nor a name for each
//! figure, and a new one that stalls.

use std::collections::BTreeMap;

use analysis::{
    CounterSeries, Figures, Level, Lsm, OpFigures, OpSeries, Percentiles, Row, Series, Sla,
};
use record::{Run, Status, StepKind, Target};
use report::{Source, TableStyle, csv, html, tables, tables_brief};

const PLAIN: TableStyle = TableStyle {
    colour: false,
    width: Some(100),
    all_settings: false,
};

const TARGETS: [&str; 2] = ["r6.leveled", "r10.leveled"];

const SECONDS: usize = 12;

/// Name, kind, what it is about, per second.
const STEPS: [(&str, StepKind, &str, f64); 4] = [
    ("fillseq", StepKind::Load, "put", 400_000.0),
    ("multireadrandom", StepKind::Query, "multiget", 12_000.0),
    ("fwdrangewhilewriting", StepKind::Query, "scan", 50_000.0),
    ("overwrite", StepKind::Load, "put", 90_000.0),
];

fn op(per_second: f64, rows_each: u64, is_scheduled: bool) -> (OpFigures, OpSeries) {
    let ok = vec![per_second as u64; SECONDS];
    let rows: Vec<u64> = ok.iter().map(|ok| ok * rows_each).collect();
    let count = ok.iter().sum();
    let times = Percentiles {
        p50: 2.25,
        p90: 4.0,
        p95: 5.0,
        p99: 12.5,
        p99_9: 40.0,
        p99_99: 1200.0,
        max: 250_000.0,
        mean: 2.5,
    };
    let figures = OpFigures {
        count,
        rows: rows.iter().sum(),
        offered: count,
        per_second,
        rows_per_second: per_second * rows_each as f64,
        scheduled: is_scheduled,
        service_us: times.clone(),
        response_us: times,
        ..OpFigures::default()
    };
    let series = OpSeries {
        ok_by_client: vec![ok.clone()],
        rows_by_client: vec![rows.clone()],
        failed: vec![0; SECONDS],
        service_us_max: vec![900.0; SECONDS],
        response_us_max: vec![900.0; SECONDS],
        rows,
        ok,
    };
    (figures, series)
}

/// What the tree did in a step: with statistics and columns for blobs, or without.
fn tree(is_new: bool, is_writing: bool) -> (Lsm, Vec<(&'static str, Option<f64>)>) {
    let count = |of: f64| if is_writing { of } else { 0.0 };
    let stalls = [
        ("l0-file-count-limit-delays", 285.0),
        ("memtable-limit-delays", 0.0),
        ("pending-compaction-bytes-delays", 12_585.0),
        ("total-delays", 12_870.0),
        ("l0-file-count-limit-stops", 0.0),
        ("memtable-limit-stops", 22.0),
        ("pending-compaction-bytes-stops", 0.0),
        ("total-stops", 22.0),
        (
            "cf-l0-file-count-limit-delays-with-ongoing-compaction",
            211.0,
        ),
    ];
    let level = |number, files, mb: f64| Level {
        number,
        files: Some(files),
        bytes: Some(mb * 1_048_576.0),
    };
    let lsm = Lsm {
        stalls: stalls
            .map(|(reason, of)| (reason.to_string(), count(of)))
            .into(),
        levels: if is_new {
            vec![
                level(0, 3.0, 12.0),
                level(5, 20.0, 40.5),
                level(6, 310.0, 640.0),
            ]
        } else {
            vec![
                level(0, 0.0, 0.0),
                level(1, 2.0, 4.0),
                level(6, 333.0, 688.25),
            ]
        },
    };
    let metrics = vec![
        ("w_amp", is_writing.then_some(1.0)),
        ("wal_amp", is_writing.then_some(0.0)),
        ("r_amp", (is_new && !is_writing).then_some(1.4)),
        ("s_amp", Some(1.125)),
        ("flush_gb", Some(0.75)),
        ("compaction_write_gb", Some(2.5)),
        ("compaction_read_gb", Some(2.625)),
        ("wal_gb", Some(0.0)),
        ("c_wsecs", Some(13.5)),
        ("c_csecs", Some(9.25)),
        ("stall_s", Some(count(3.0))),
        ("stall%", Some(count(25.0))),
        ("Nstall", Some(count(12_892.0))),
        ("pending_max_mb", Some(count(812.0))),
        ("debt_compaction_mb", Some(count(96.5))),
        ("l0_files_begin", Some(0.0)),
        ("l0_files_max", Some(count(21.0))),
        ("l0_files", Some(count(3.0))),
        ("levels_begin", Some(2.0)),
        ("levels", Some(3.0)),
        ("lsm_files", Some(333.0)),
        ("memtable_max_mb", Some(count(64.0))),
        ("memtable_mb", Some(count(16.0))),
        ("cache_mb", is_new.then_some(4096.0)),
        ("lsm_sz", Some(0.676)),
        ("blob_sz", is_new.then_some(0.0)),
        ("c_wgb", Some(3.25)),
        ("c_mbps", Some(277.3)),
        ("b_rgb", is_new.then_some(0.0)),
        ("b_wgb", is_new.then_some(0.0)),
        ("uptime", Some(12.0)),
    ];
    (lsm, metrics)
}

fn row(target: usize, (step, kind, main, per_second): (&str, StepKind, &'static str, f64)) -> Row {
    let is_new = target == 1;
    let per_second = per_second * if is_new { 1.2 } else { 1.0 };
    let rows_each = match main {
        "put" => 1,
        _ => 10,
    };
    let mut ops = BTreeMap::new();
    let mut series = Series::default();
    let mut add = |name: &str, (figures, seconds): (OpFigures, OpSeries)| {
        ops.insert(name.to_string(), figures);
        series.ops.insert(name.to_string(), seconds);
    };
    add(main, op(per_second, rows_each, false));
    let is_beside = step.ends_with("whilewriting");
    let puts = if is_new { 4993.0 } else { 4400.0 };
    if is_beside {
        add("put", op(puts, 1, true));
    }
    let is_writing = is_beside || kind == StepKind::Load;
    let (lsm, of_tree) = tree(is_new, is_writing);
    let gauge = |values: [f64; SECONDS]| CounterSeries {
        cumulative: false,
        values: values.map(Some).to_vec(),
    };
    if is_writing {
        let mut pending = [4e7; SECONDS];
        pending[5] = 8e8;
        let mut stalled = [0.0; SECONDS];
        stalled[6] = 3.0;
        series.engine = BTreeMap::from([
            ("pending_compaction_bytes".to_string(), gauge(pending)),
            (
                "stall_seconds".to_string(),
                CounterSeries {
                    cumulative: true,
                    ..gauge(stalled)
                },
            ),
            ("level_file_count.0".to_string(), gauge([2.0; SECONDS])),
        ]);
    }
    let (ips, qps) = match kind {
        StepKind::Load => (Some(per_second), None),
        _ => (is_beside.then_some(puts), Some(per_second)),
    };
    let mut metrics: BTreeMap<&'static str, Option<f64>> = analysis::METRICS
        .into_iter()
        .map(|name| (name, None))
        .collect();
    metrics.extend(of_tree);
    metrics.extend([
        ("ips", ips),
        ("qps", qps),
        ("o/s", Some(per_second)),
        (
            "mb_sec",
            Some(per_second * rows_each as f64 * 420.0 / 1_048_576.0),
        ),
        ("usec_op", Some(1e6 / per_second)),
        ("maxop", Some(0.25)),
        ("client_cpu_us_per_op", Some(2.1)),
        ("client_cpu_us_per_write", is_writing.then_some(1.5)),
        (
            "client_cpu_us_per_read",
            (kind == StepKind::Query).then_some(2.0),
        ),
    ]);
    Row {
        run: 0,
        target: TARGETS[target].to_string(),
        build: TARGETS[target].split('.').next().unwrap().to_string(),
        config: "leveled".to_string(),
        engine: "rocksdb".to_string(),
        engine_version: "RocksDB".to_string(),
        workload: "kv".to_string(),
        variant: None,
        clients: 1,
        repeat: 1,
        step: step.to_string(),
        kind,
        main_op: Some(main.to_string()),
        status: Status::Complete,
        seconds: SECONDS as f64,
        valid: true,
        reasons: Vec::new(),
        ops,
        metrics,
        lsm: Some(lsm),
        sla: is_beside.then(|| Sla {
            kind: "put".to_string(),
            target: 4993.2,
            achieved: puts,
            met: puts > 4743.0,
        }),
        fairness: None,
        counters: BTreeMap::new(),
        series,
        warnings: Vec::new(),
    }
}

fn figures() -> Figures {
    let rows = (0..TARGETS.len()).flat_map(|target| STEPS.map(|step| row(target, step)));
    Figures {
        rows: rows.collect(),
        ..Figures::default()
    }
}

fn run() -> Run {
    Run {
        name: "rocksdb-versions".to_string(),
        status: Status::Complete,
        base: TARGETS[0].to_string(),
        targets: TARGETS
            .map(|name| Target {
                name: name.to_string(),
                build: name.split('.').next().unwrap().to_string(),
                config: "leveled".to_string(),
                engine: "rocksdb".to_string(),
                declared: Vec::new(),
                files: Vec::new(),
            })
            .to_vec(),
        ..Run::default()
    }
}

#[test]
fn the_tables_of_a_key_value_run() {
    let mut figures = figures();
    // Those of two steps show each thing once.
    figures.rows.retain(|row| {
        matches!(
            row.step.as_str(),
            "multireadrandom" | "fwdrangewhilewriting"
        )
    });
    insta::assert_snapshot!(tables(&run(), &figures, PLAIN));
}

#[test]
fn throughput_says_of_what_and_stalls_stand_beside_it() {
    insta::assert_snapshot!(tables_brief(&run(), &figures(), PLAIN));
}

#[test]
fn an_invalid_step_shows_its_stalls_and_is_marked() {
    let mut figures = figures();
    for row in figures
        .rows
        .iter_mut()
        .filter(|row| row.step == "overwrite")
    {
        row.valid = false;
        row.reasons = vec!["9 keys found, 10 expected".to_string()];
    }
    let text = tables(&run(), &figures, PLAIN);
    let (_, stalled) = text.split_once("Write stalls: percent").unwrap();
    let line = stalled.lines().find(|line| line.starts_with("r6.leveled"));
    assert!(line.unwrap().trim_end().ends_with("25.0!"), "{line:?}");
    let (_, overwrite) = text.split_once("━━ overwrite ━").unwrap();
    let (_, levels) = overwrite
        .split_once("levels when the step had ended")
        .unwrap();
    assert!(levels.lines().nth(4).unwrap().contains('!'), "{levels}");
}

#[test]
fn without_a_tree_nothing_is_said_of_one() {
    let mut figures = figures();
    for row in &mut figures.rows {
        row.lsm = None;
    }
    let text = tables(&run(), &figures, PLAIN);
    assert!(!text.contains("LSM") && !text.contains("stall"), "{text}");
    let report = html(
        &[Source {
            run: run(),
            cells: Vec::new(),
        }],
        &figures,
    );
    assert!(!report.contains("id=\"lsm-") && !report.contains("id=\"stalled\""));
}

#[test]
fn a_report_draws_what_held_writes_up_beside_throughput() {
    let source = Source {
        run: run(),
        cells: Vec::new(),
    };
    let report = html(&[source], &figures());
    for id in [
        "stalled",
        "lsm-work-overwrite",
        "lsm-state-overwrite",
        "lsm-stalls-overwrite",
        "lsm-levels-overwrite",
        "lsm-summary-overwrite",
    ] {
        assert_eq!(report.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
    }
    let (_, section) = report.split_once("id=\"step-overwrite\"").unwrap();
    let place = |what: &str| section.find(what).unwrap_or_else(|| panic!("no `{what}`"));
    let charts = [
        "overwrite put: puts per second",
        "overwrite writes held up, seconds per second",
        "overwrite compaction pending, MB",
        "overwrite files in the first level",
    ]
    .map(place);
    assert!(charts.is_sorted(), "{charts:?}");
    assert!(charts[3] < place("id=\"lsm-work-overwrite\""));
    // A step that only reads was not held up: a line of zeros would say nothing.
    assert!(!report.contains("multireadrandom writes held up"));
    assert!(report.contains("scans per second") && report.contains("multigets per second"));
}

#[test]
fn csv_has_the_reasons_of_stalls_and_what_a_step_is_about() {
    let text = csv(&figures());
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let heads = reader.headers().unwrap().clone();
    let column = |name: &str| {
        let at = heads.iter().position(|head| head == name);
        at.unwrap_or_else(|| panic!("no `{name}` in {heads:?}"))
    };
    let lines: Vec<_> = reader.records().map(Result::unwrap).collect();
    let of = |name: &str| -> Vec<&str> {
        let at = column(name);
        lines[..4].iter().map(|line| &line[at]).collect()
    };
    assert_eq!(of("main_op"), ["put", "multiget", "scan", "put"]);
    assert_eq!(
        of("write_stall_pending-compaction-bytes-delays_count"),
        ["12585", "0", "12585", "12585"]
    );
    assert_eq!(of("stall_pct"), ["25", "0", "25", "25"]);
    assert_eq!(of("w_amp_bytes_per_byte"), ["1", "", "1", "1"]);
    assert_eq!(of("l0_files_count"), ["3", "0", "3", "3"]);
}
