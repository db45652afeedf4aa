//! Tables and charts of a key-value run that never was: an old version that has neither statistics
//! nor a name for each figure, and a new one that stalls.

use std::collections::{BTreeMap, BTreeSet};

use analysis::figures::{
    CounterSeries, Figures, Level, Lsm, OpFigures, OpSeries, Percentiles, Row, Series, Sla,
};
use record::{Role, Run, Settle, Status, Step, StepKind, Warning};
use report::{CellRecord, Form, Source, csv, metric_table, steps_with_table, tables, tables_brief};

use crate::synthetic::target;
use crate::{PLAIN, WIDE, check_once, column, html, page};

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

/// Returns the activity of the tree in a step: with statistics and columns for blobs, or without.
fn tree(is_new: bool, is_writing: bool) -> Lsm {
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
        ("cf-l0-file-count-limit-delays-with-ongoing-compaction", 211.0),
    ];
    let level = |number, files, mb: f64| Level {
        number,
        files: Some(files),
        bytes: Some(mb * 1_048_576.0),
        score: is_new.then_some(mb / 512.0),
        read_bytes: is_new.then_some(count(mb * 4e6)),
        written_bytes: is_new.then_some(count(mb * 3e6)),
        rounding_bytes: 0.1 * 1_073_741_824.0,
        compaction_seconds: is_new.then_some(count(1.5)),
        compaction_count: is_new.then_some(count(files)),
    };
    Lsm {
        stalls: stalls.map(|(reason, of)| (reason.to_string(), count(of))).into(),
        stall_seconds: [("pending-compaction-bytes", 2.75), ("unknown", 0.25)]
            .into_iter()
            .filter(|_| is_writing)
            .map(|(reason, seconds)| (reason.to_string(), seconds))
            .collect(),
        levels: if is_new {
            vec![level(0, 3.0, 12.0), level(5, 20.0, 40.5), level(6, 310.0, 640.0)]
        } else {
            vec![level(0, 0.0, 0.0), level(1, 2.0, 4.0), level(6, 333.0, 688.25)]
        },
        ..Lsm::default()
    }
}

/// Returns the metrics of the tree of [`tree`].
fn tree_metrics(is_new: bool, is_writing: bool) -> Vec<(&'static str, Option<f64>)> {
    let count = |of: f64| if is_writing { of } else { 0.0 };
    vec![
        ("w_amp", is_writing.then_some(1.0)),
        ("w_amp_settled", is_writing.then_some(1.5)),
        ("wal_amp", None),
        ("r_amp", (is_new && !is_writing).then_some(1.4)),
        ("s_amp", Some(1.125)),
        ("flush_gb", Some(count(0.75))),
        ("compaction_write_gb", Some(count(2.5))),
        ("compaction_read_gb", Some(count(2.625))),
        ("wal_gb", Some(0.0)),
        ("c_wsecs", Some(count(13.5))),
        ("c_csecs", Some(count(9.25))),
        ("c_wgb_settled", Some(count(4.75))),
        ("c_wsecs_settled", Some(count(21.5))),
        ("c_csecs_settled", Some(count(16.25))),
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
        ("c_wgb", Some(count(3.25))),
        ("c_mbps", Some(count(277.3))),
        ("b_rgb", is_new.then_some(0.0)),
        ("b_wgb", is_new.then_some(0.0)),
        ("uptime", Some(12.0)),
    ]
}

fn gauge(role: Role, values: [f64; SECONDS]) -> CounterSeries {
    CounterSeries { cumulative: false, values: values.map(Some).to_vec(), role: Some(role) }
}

/// Returns the counters of a tree that is written to: work piles up, and then writes stall.
fn tree_counters() -> BTreeMap<String, CounterSeries> {
    let mut pending = [4e7; SECONDS];
    pending[5] = 8e8;
    let mut stalled = [0.0; SECONDS];
    stalled[6] = 3.0;
    let stall_seconds = CounterSeries { cumulative: true, ..gauge(Role::StallSeconds, stalled) };
    BTreeMap::from([
        ("pending_compaction_bytes".to_string(), gauge(Role::PendingCompactionBytes, pending)),
        ("stall_seconds".to_string(), stall_seconds),
        ("level_file_count.0".to_string(), gauge(Role::LevelFileCount, [2.0; SECONDS])),
    ])
}

fn row(target: usize, (step, kind, main, base_rate): (&str, StepKind, &'static str, f64)) -> Row {
    let is_new = target == 1;
    let is_beside = step.ends_with("whilewriting");
    let is_writing = is_beside || kind == StepKind::Load;
    let per_second = base_rate * if is_new { 1.2 } else { 1.0 };
    let puts = if is_new { 4993.0 } else { 4400.0 };
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
    if is_beside {
        add("put", op(puts, 1, true));
    }
    if is_writing {
        series.engine = tree_counters();
    }

    let mut lsm = tree(is_new, is_writing);
    lsm.settled = step == "overwrite";
    if is_beside && !is_new {
        lsm.coarse = BTreeSet::from(["w_amp", "w_amp_settled", "c_wgb"]);
    }

    let (ips, qps) = match kind {
        StepKind::Load => (Some(per_second), None),
        _ => (is_beside.then_some(puts), Some(per_second)),
    };
    let mut metrics: BTreeMap<&'static str, Option<f64>> =
        words::METRICS.iter().map(|metric| (metric.name, None)).collect();
    metrics.extend(tree_metrics(is_new, is_writing));
    metrics.extend([
        ("ips", ips),
        ("qps", qps),
        ("o/s", Some(per_second)),
        ("mb_sec", Some(per_second * rows_each as f64 * 420.0 / 1_048_576.0)),
        ("usec_op", Some(1e6 / per_second)),
        ("maxop", Some(0.25)),
        ("client_cpu_us_per_op", Some(2.1)),
        ("client_cpu_us_per_write", is_writing.then_some(1.5)),
        ("client_cpu_us_per_read", (kind == StepKind::Query).then_some(2.0)),
    ]);
    let sla = is_beside.then(|| Sla {
        kind: "put".to_string(),
        role: None,
        target: 4993.2,
        achieved: puts,
        met: puts > 4743.0,
        history: None,
    });
    Row { kind, ops, metrics, lsm: Some(lsm), sla, series, ..complete_row(target, step, main) }
}

/// Returns a row without figures.
fn complete_row(target: usize, step: &str, main: &str) -> Row {
    Row {
        cell: record::CellKey::new(TARGETS[target], None, 1, 1),
        build: TARGETS[target].split('.').next().unwrap().to_string(),
        config: "leveled".to_string(),
        engine: "rocksdb".to_string(),
        engine_version: "RocksDB".to_string(),
        workload: "kv".to_string(),
        step: step.to_string(),
        main_op: Some(main.to_string()),
        reported: true,
        status: Status::Complete,
        seconds: SECONDS as f64,
        valid: true,
        ..Row::default()
    }
}

fn figures() -> Figures {
    let rows = (0..TARGETS.len()).flat_map(|target| STEPS.map(|step| row(target, step)));
    Figures { rows: rows.collect(), ..Figures::default() }
}

fn run() -> Run {
    Run {
        name: "rocksdb-versions".to_string(),
        status: Status::Complete,
        base: TARGETS[0].to_string(),
        targets: TARGETS.map(|name| target(name, "rocksdb")).to_vec(),
        ..Run::default()
    }
}

#[test]
fn the_tables_of_a_key_value_run() {
    let mut figures = figures();
    // Those of two steps show each thing once.
    figures
        .rows
        .retain(|row| matches!(row.step.as_str(), "multireadrandom" | "fwdrangewhilewriting"));
    insta::assert_snapshot!(tables(&run(), &figures, PLAIN));
}

#[test]
fn reads_of_trees_that_were_not_alike_are_warned_of() {
    let mut figures = figures();
    let text = "the targets began this read-only step with different trees";
    assert!(!tables_brief(&run(), &figures, WIDE).contains(text));
    // A step that also writes makes its own.
    for row in figures.rows.iter_mut().filter(|row| row.cell.target == TARGETS[1]) {
        row.metrics.insert("l0_files_begin", Some(3.0));
    }
    let tables = tables_brief(&run(), &figures, WIDE);
    let (_, warning) = tables.split_once(text).expect("a warning");
    let line = warning.lines().next().unwrap();
    assert!(
        line.ends_with(
            "[lsm::other-tree] (multireadrandom: r6.leveled 2 levels with 0 L0 files, r10.leveled 2 levels with 3 L0 files)"
        ),
        "{line}"
    );
}

#[test]
fn throughput_shows_units_and_stalls_are_next_to_it() {
    insta::assert_snapshot!(tables_brief(&run(), &figures(), PLAIN));
}

#[test]
fn an_invalid_step_shows_its_stalls_and_is_marked() {
    let mut figures = figures();
    for row in figures.rows.iter_mut().filter(|row| row.step == "overwrite") {
        row.valid = false;
        row.reasons = vec!["9 keys found, 10 expected".to_string()];
    }
    let text = tables(&run(), &figures, PLAIN);
    let (_, stalled) = text.split_once("Write stalls: percent").unwrap();
    let line = stalled.lines().find(|line| line.starts_with("r6.leveled"));
    assert!(line.unwrap().trim_end().ends_with("25.0!"), "{line:?}");
    let (_, overwrite) = text.split_once("━━ overwrite ━").unwrap();
    let (_, levels) = overwrite.split_once("levels at the end of the step").unwrap();
    assert!(levels.lines().nth(4).unwrap().contains('!'), "{levels}");
}

/// Returns the table with this title in the part of a step, up to the next blank line.
fn table_of(text: &str, step: &str, title: &str) -> Option<String> {
    let (_, section) = text.split_once(&format!("━━ {step} ━"))?;
    let section = section.split("━━ ").next()?;
    let (_, table) = section.split_once(title)?;
    Some(table.split("\n\n").next()?.to_string())
}

#[test]
fn a_step_that_was_only_read_says_nothing_of_flushes_and_stalls() {
    let mut figures = figures();
    let text = tables(&run(), &figures, WIDE);
    let work = table_of(&text, "multireadrandom", "LSM tree: amplification").unwrap();
    assert!(work.contains("r_amp") && work.contains("s_amp"), "{work}");
    assert!(!work.contains("comp_write") && !work.contains("wal"), "{work}");
    let state = table_of(&text, "multireadrandom", "LSM tree: pending").unwrap();
    assert!(!state.contains("stall") && state.contains("levels"), "{state}");
    let (_, stalled) = text.split_once("Write stalls: percent").unwrap();
    let stalled = stalled.split("\n\n").next().unwrap();
    assert!(!stalled.contains("multireadrandom") && stalled.contains("overwrite"));
    assert!(
        table_of(&text, "overwrite", "what flushes and compactions did")
            .unwrap()
            .contains("comp_write")
    );
    // Without the cost of reading, the table is empty. A continued compaction is shown.
    let reads = |row: &&mut Row| row.step == "multireadrandom";
    for row in figures.rows.iter_mut().filter(reads) {
        row.metrics.insert("r_amp", None);
    }
    let text = tables(&run(), &figures, WIDE);
    assert_eq!(table_of(&text, "multireadrandom", "LSM tree: ampl"), None);
    for row in figures.rows.iter_mut().filter(reads) {
        row.metrics.insert("compaction_read_gb", Some(0.5));
    }
    let text = tables(&run(), &figures, WIDE);
    let work = table_of(&text, "multireadrandom", "what flushes and compactions did");
    assert!(work.unwrap().contains("0.500"));
}

#[test]
fn the_summary_of_a_step_that_settles_has_what_settling_did() {
    let text = tables(&run(), &figures(), WIDE);
    let column = |step: &str, head: &str| {
        let table = table_of(&text, step, "Summary as in db_bench").unwrap();
        let (heads, rows) = table.split_once("──").unwrap();
        let heads: Vec<&str> = heads.lines().last().unwrap().split_whitespace().collect();
        let row = rows.lines().find(|line| line.starts_with("r10")).unwrap();
        let row: Vec<String> = row.split_whitespace().map(str::to_owned).collect();
        let at = heads.iter().position(|known| *known == head).unwrap();
        (row[at].clone(), table)
    };
    assert_eq!(column("overwrite", "w_amp").0, "1.50");
    assert_eq!(column("overwrite", "c_wgb").0, "4.750");
    assert_eq!(column("fillseq", "w_amp").0, "1.00");
    assert_eq!(column("fillseq", "c_wgb").0, "3.250");
    let (_, table) = column("overwrite", "w_amp");
    assert!(table.contains("as in db_bench"), "{table}");
    assert!(!column("fillseq", "w_amp").1.contains("as in db_bench;"));
}

#[test]
fn a_table_is_of_the_steps_for_which_it_has_figures() {
    let steps = |name| steps_with_table(&run(), &figures(), name);
    assert_eq!(steps("stalled"), ["fillseq", "fwdrangewhilewriting", "overwrite"]);
    assert!(steps("replication").is_empty());
}

#[test]
fn a_summary_of_steps_in_turns_leaves_out_times_by_the_library_s_clock() {
    let mut figures = figures();
    for row in &mut figures.rows {
        row.turns = Some(8);
        for name in ["c_wsecs", "c_wsecs_settled", "uptime"] {
            row.metrics.insert(name, None);
        }
    }

    let text = tables(&run(), &figures, WIDE);
    let table = table_of(&text, "overwrite", "Summary as in db_bench").unwrap();
    let (heads, notes) = table.split_once("──").unwrap();
    assert!(!heads.contains("c_wsecs") && !heads.contains("uptime"), "{heads}");
    assert!(notes.contains("c_wgb, w_amp, c_csecs include the settling"), "{notes}");
    assert!(notes.contains("(c_wsecs, uptime) is n/a in turns"), "{notes}");
    let levels = table_of(&text, "overwrite", "LSM tree: levels").unwrap();
    assert!(levels.contains("time is n/a in turns: the library's clock runs on"), "{levels}");
}

#[test]
fn a_figure_that_may_be_rounding_is_marked() {
    let text = tables(&run(), &figures(), WIDE);
    let table = table_of(&text, "fwdrangewhilewriting", "what flushes and").unwrap();
    let line = |target: &str| table.lines().find(|line| line.starts_with(target)).unwrap();
    assert!(line("r6").contains("1.00~") && line("r6").contains("1.50~"));
    assert!(!line("r10").contains('~'));
    assert!(table.contains("~ more than 5% of it may be rounding"), "{table}");
    // A figure that cannot be stood behind has that mark.
    let mut figures = figures();
    for row in &mut figures.rows {
        row.valid = false;
    }
    let text = tables(&run(), &figures, WIDE);
    let table = table_of(&text, "fwdrangewhilewriting", "what flushes and").unwrap();
    assert!(!table.contains("may be the rounding"), "{table}");
}

#[test]
fn an_unfinished_settling_is_reported_with_its_step_and_target() {
    let gave_up = Warning {
        code: "settle::not-over".to_string(),
        text: "compaction went on after 600 s: 812 MB are pending".to_string(),
    };
    let mut figures = figures();
    let drain = Row {
        step: "drain".to_string(),
        kind: StepKind::Settle,
        main_op: None,
        lsm: None,
        sla: None,
        ops: BTreeMap::new(),
        warnings: vec![gave_up.clone()],
        ..figures.rows[0].clone()
    };
    figures.rows.insert(1, drain);
    figures.rows.last_mut().unwrap().warnings =
        vec![Warning { text: "compaction went on after 300 s".to_string(), ..gave_up.clone() }];
    for text in [tables(&run(), &figures, PLAIN), tables_brief(&run(), &figures, PLAIN)] {
        let (_, known) = text.split_once("Problems and warnings").unwrap();
        let known: String = known.split_whitespace().collect::<Vec<_>>().join(" ");
        for told in [
            "812 MB are pending [settle::not-over] (r6.leveled drain)",
            "after 300 s [settle::not-over] (r10.leveled overwrite)",
        ] {
            assert!(known.contains(told), "{known}");
        }
    }
    // A settling at the end of a measured step is as much a settling as one in a step of its own.
    let overwrite = Step {
        name: "overwrite".to_string(),
        kind: StepKind::Load,
        settle: Some(Settle {
            actions: vec![("wait for compaction".to_string(), 300_000_000_000)],
            ..Settle::default()
        }),
        warnings: vec![gave_up],
        ..Step::default()
    };
    figures.rows.retain(|row| row.kind != StepKind::Settle);
    let source =
        |steps| Source { run: run(), cells: vec![CellRecord { steps, ..CellRecord::default() }] };
    let report = html(&[source(vec![overwrite])], &figures);
    let (_, settling) = report.split_once("id=\"step-settling\"").unwrap();
    let settling = settling.split("</section>").next().unwrap();
    for told in ["overwrite", "wait for compaction", "812 MB are pending"] {
        assert!(settling.contains(told), "{settling}");
    }
    assert!(!html(&[source(vec![Step::default()])], &figures).contains("step-settling"));
}

/// Three groups of microbenchmarks, in another order than they are shown in, and a step that loads.
#[test]
fn tests_have_a_table_of_throughput_beside_that_of_other_steps() {
    let names = [
        ("prepare", None),
        ("update-index", Some("write")),
        ("read-only-count", Some("range-2")),
        ("points-notcovered-si", Some("point")),
        ("hot-points", Some("point")),
    ];
    let of_group = |row: &Row, (name, group): (&str, Option<&str>)| {
        let mut row = Row {
            step: name.to_string(),
            group: group.map(str::to_owned),
            lsm: None,
            ..row.clone()
        };
        if group.is_some() {
            row.kind = StepKind::Query;
            row.main_op = Some("event".to_string());
            row.metrics.insert("qps", Some(1000.0));
        } else {
            row.main_op = Some("insert".to_string());
        }
        row
    };
    let rows = figures().rows;
    let loads = rows.iter().filter(|row| row.step == "fillseq");
    let figures = Figures {
        rows: loads.flat_map(|row| names.map(|name| of_group(row, name))).collect(),
        ..Figures::default()
    };
    let text = tables_brief(&run(), &figures, PLAIN);
    let places = [
        "Throughput: rows/s inserted",
        "Throughput of tests: queries/s",
        "r10.leveled relative to r6.leveled",
    ]
    .map(|title| text.find(title).unwrap_or_else(|| panic!("no `{title}` in {text}")));
    assert!(places.is_sorted(), "{places:?}");
    let tests = &text[places[1]..places[2]];
    for test in ["hot-points", "notcovered-si", "read-only"] {
        assert!(tests.contains(test), "{tests}");
    }
    assert!(!tests.contains("prepare"));
    let report = page(run(), &figures);
    check_once(&report, &["summary", "summary-tests", "compared-tests"]);
    assert!(tables(&run(), &figures, PLAIN).contains("Metrics; an operation is one query"));
    let csv = csv(&run(), &figures);
    assert!(csv.contains(",update-index,write,query,"), "{csv}");
}

#[test]
fn engines_without_a_tree_have_no_tables_of_trees() {
    let mut figures = figures();
    for row in &mut figures.rows {
        row.lsm = None;
    }
    let text = tables(&run(), &figures, PLAIN);
    assert!(!text.contains("LSM") && !text.contains("stall"), "{text}");
    let report = page(run(), &figures);
    assert!(!report.contains("id=\"lsm-") && !report.contains("id=\"stalled\""));
}

#[test]
fn a_report_draws_write_stalls_next_to_throughput() {
    let report = page(run(), &figures());
    check_once(
        &report,
        &[
            "stalled",
            "lsm-work-overwrite",
            "lsm-state-overwrite",
            "lsm-stalls-overwrite",
            "lsm-levels-overwrite",
            "lsm-summary-overwrite",
        ],
    );
    let (_, section) = report.split_once("id=\"step-overwrite\"").unwrap();
    let place = |what: &str| section.find(what).unwrap_or_else(|| panic!("no `{what}`"));
    let charts = [
        "overwrite put: puts per second",
        "overwrite writes stalled, seconds per second",
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
fn csv_has_what_a_step_is_about_and_the_table_of_figures_the_reasons_of_stalls() {
    let text = csv(&run(), &figures());
    let of = |name: &str| column(&text, name)[..4].to_vec();
    assert_eq!(of("main_op"), ["put", "multiget", "scan", "put"]);
    assert_eq!(of("stall_pct"), ["25", "0", "25", "25"]);
    assert_eq!(of("w_amp_bytes_per_byte"), ["1", "", "1", "1"]);
    assert_eq!(of("l0_files_count"), ["3", "0", "3", "3"]);

    let rows = figures().rows;
    let text = metric_table(&rows, &[&run()], Form::Csv, Vec::new()).unwrap();
    let text = String::from_utf8(text).unwrap();
    let (metrics, values) = (column(&text, "metric"), column(&text, "value"));
    let of = |name: &str| {
        let named = metrics.iter().zip(&values);
        let values = named.filter(|(metric, _)| *metric == name);
        values.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    let stalls = of("write_stall_pending_compaction_bytes_delays_count");
    assert_eq!(stalls[..4], ["12585", "0", "12585", "12585"]);
    // What is not applicable has no line.
    assert_eq!(of("w_amp_bytes_per_byte")[..3], ["1"; 3]);
    assert!(!values.iter().any(String::is_empty), "{text}");
}
