use std::os::unix::fs::PermissionsExt as _;

use record::{
    Cell, CellKey, CellRef, IntervalRow, OpKind, OpRole, Ops, RecordError, Run, RunDir, ServerUse,
    Status, Step, StepKind, StepState, TurnRow,
};

use crate::sample;
use words::{CellKind, WorkCalls, WorkFunction, WorkGraph, WorkRole};

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_record_reads_back_as_written() {
    let results = temporary();
    let written = sample::write(results.path());
    let run = RunDir::open(written.path()).unwrap();
    let read = run.read_run().unwrap();
    let listed: Vec<&str> = read.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(listed, ["cells/bundled.base/c2/r1/cell.json"]);
    assert_eq!(Run { files: vec![], ..read }, sample::run());
    let cell = run.cell(&run.read_run().unwrap().cells[0]).unwrap();
    assert!(cell.exists());
    let read = cell.read().unwrap();
    let listed: Vec<&str> = read.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(listed, ["steps/01-l.i1/step.json"]);
    assert_eq!(Cell { files: vec![], ..read }, sample::cell());
    assert_eq!(
        fs_err::read_to_string(cell.path().join("server.conf")).unwrap(),
        "synchronous = normal\n"
    );

    let steps = cell.read_steps().unwrap();
    assert_eq!(steps.len(), 1);
    let step = &steps[0];
    assert_eq!((step.number(), step.state()), (1, StepState::Finished));
    assert_eq!(step.step().files.len(), 5);
    assert_eq!(Step { files: vec![], ..step.step().clone() }, sample::step());

    let mut written = (0..sample::SECONDS).flat_map(sample::intervals);
    step.for_each_interval(|row| assert_eq!(Some(*row), written.next())).unwrap();
    assert_eq!(written.next(), None);

    let host = step.host().unwrap();
    assert_eq!(host.seconds, (0..sample::SECONDS).collect::<Vec<_>>());
    assert_eq!(host.at_ns[3], 3_000_000_005);
    let rss = host.column("server_rss_bytes").unwrap();
    assert!(!rss.cumulative && host.column("cpu_user_ns").unwrap().cumulative);
    assert_eq!(rss.values[..3], [Some(1 << 20), None, Some(1 << 20)]);
    assert!(host.column("no_such_bytes").is_none());

    let mut counters = Vec::new();
    step.for_each_counter(|row| {
        counters.push((row.at_ns, row.name.to_owned(), row.value, row.cumulative))
    })
    .unwrap();
    assert_eq!(counters.len(), 2 * sample::SECONDS as usize);
    let last = &counters[counters.len() - 2];
    assert_eq!(*last, (11_000_000_005, "wal_bytes".to_owned(), 11.0, true));
    assert!(!counters[1].3);

    let histograms = step.histograms().unwrap();
    assert_eq!(histograms.keys().collect::<Vec<_>>(), ["insert.response", "insert.service"]);
    assert_eq!(histograms, step.latencies().unwrap().merged().unwrap());
    let service = &histograms["insert.service"];
    assert_eq!(service.len(), 20 * u64::from(sample::SECONDS));
    assert!(service.equivalent(service.value_at_quantile(0.5), 1_000_000));
    assert!(
        histograms["insert.response"]
            .equivalent(histograms["insert.response"].max(), 40_000_000_000)
    );
}

#[test]
fn the_latency_log_is_a_standard_interval_log() {
    let results = temporary();
    let run = sample::write(results.path());
    let cell = run.cell(&sample::cell_ref()).unwrap();
    let text = fs_err::read_to_string(cell.path().join("steps/01-l.i1/latency.hlog")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "#[Histogram log format version 1.3]");
    assert!(lines[1].contains("nanoseconds"), "{}", lines[1]);
    assert_eq!(lines[2], "#[StartTime: 1795287733.000 (seconds since epoch)]");
    assert_eq!(lines[3], "#[BaseTime: 1795287733.000 (seconds since epoch)]");
    assert!(lines[4].starts_with("\"StartTimestamp\""));
    // The compressed V2 format starts with `HISTFAAAA` in base64.
    assert!(lines[5].starts_with("Tag=insert.service,0.000,1.000,"), "{}", lines[5]);
    assert!(lines[5].contains(",HISTFAAAA"), "{}", lines[5]);
    assert!(lines[28].starts_with("Tag=insert.response,11.000,1.000,"), "{}", lines[28]);
    assert_eq!(lines.len(), 29);
}

#[test]
fn many_row_groups_are_read_in_order() {
    let results = temporary();
    let run = RunDir::create(results.path(), &sample::run()).unwrap();
    let cell = sample::begin(&run);
    let mut writer = cell.begin_step(1, "l.i0", &[]).unwrap();
    let row = |i: u32| IntervalRow {
        second: i / 3,
        client: i % 3,
        kind: ["insert", "delete", "query"][i as usize % 3],
        ok: u64::from(i),
        service_ns_max: u64::from(i) << 24,
        ..IntervalRow::default()
    };

    let count = 100_000;
    for second in 0..count / 100 {
        let rows: Vec<IntervalRow<'_>> = (second * 100..(second + 1) * 100).map(row).collect();
        writer.intervals(&rows).unwrap();
    }
    writer.finish(&sample::step()).unwrap();

    let steps = cell.read_steps().unwrap();
    let mut read = 0;
    let check = |interval: &IntervalRow<'_>| {
        assert_eq!(*interval, row(read));
        read += 1;
    };
    steps[0].for_each_interval(check).unwrap();
    assert_eq!(read, count);
}

#[test]
fn a_step_without_data_reads_as_empty() {
    let results = temporary();
    let run = RunDir::create(results.path(), &sample::run()).unwrap();
    let cell = sample::begin(&run);
    cell.begin_step(1, "settle", &sample::HOST_COLUMNS).unwrap().finish(&Step::default()).unwrap();
    let step = &cell.read_steps().unwrap()[0];
    step.for_each_interval(|row| panic!("{row:?}")).unwrap();
    step.for_each_counter(|row| panic!("{row:?}")).unwrap();
    assert_eq!(step.host().unwrap().columns.len(), 2);
    assert!(step.host().unwrap().columns[0].values.is_empty());
    assert!(step.histograms().unwrap().is_empty());
}

#[test]
fn each_client_host_has_samples_of_its_own() {
    let results = temporary();
    let run = sample::write(results.path());
    let cell = sample::begin(&run);
    let mut writer = cell.begin_step(1, "l.i1", &sample::HOST_COLUMNS).unwrap();
    writer.host(0, 0, 5, &sample::host_values(0)).unwrap();
    writer.host(3, 7, 7_000_000_005, &[Some(1), None]).unwrap();
    writer.finish(&sample::step()).unwrap();
    let step = &cell.read_steps().unwrap()[0];
    assert!(step.is_whole());
    assert_eq!(step.host().unwrap().seconds, [0]);
    let client = step.host_of(3).unwrap();
    assert_eq!((client.seconds, client.at_ns), (vec![7], vec![7_000_000_005]));
    assert_eq!(client.columns.len(), 2);
    assert_eq!(client.columns[0].values, [Some(1)]);
    assert_eq!(step.host_of(2).unwrap(), record::HostSeries::default());
    let file = cell.path().join("steps/01-l.i1/host.rank3.parquet");
    fs_err::write(file, "").unwrap();
    assert!(!step.is_whole() && step.host_of(3).is_err());
}

#[test]
fn a_new_run_is_incomplete_and_has_a_new_directory() {
    let results = temporary();
    let run = Run { name: "a/b c".into(), ..sample::run() };
    let first = RunDir::create(results.path(), &run).unwrap();
    let second = RunDir::create(results.path(), &run).unwrap();
    assert_eq!(first.path().file_name().unwrap(), "20261121T190211Z-a-b-c");
    assert_eq!(second.path().file_name().unwrap(), "20261121T190211Z-a-b-c-2");
    assert_eq!(first.read_run().unwrap().status, Status::Incomplete);
}

#[test]
fn a_step_that_was_never_finished_is_incomplete_and_empty() {
    let results = temporary();
    let run = RunDir::create(results.path(), &sample::run()).unwrap();
    let cell = sample::begin(&run);
    // Dropped without `finish`, as if the process was killed.
    drop(sample::measure(&cell));
    let steps = cell.read_steps().unwrap();
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0].state(), StepState::Unfinished);
    assert!(!steps[0].is_whole());
    assert_eq!(
        (steps[0].step().name.as_str(), steps[0].step().status),
        ("l.i1", Status::Incomplete)
    );
    assert!(!steps[0].step().valid && !steps[0].step().reasons.is_empty());
    steps[0].for_each_interval(|row| panic!("{row:?}")).unwrap();
    assert_eq!(steps[0].host().unwrap(), record::HostSeries::default());
    assert!(steps[0].histograms().unwrap().is_empty());
}

#[test]
fn a_cell_that_is_started_again_keeps_the_earlier_attempt() {
    let results = temporary();
    let run = sample::write(results.path());
    for attempt in 1..=2 {
        let cell = run.begin_cell(&sample::cell_ref()).unwrap();
        assert!(!cell.exists() && cell.read_steps().unwrap().is_empty());
        cell.write(&sample::cell()).unwrap();
        let kept = run.path().join(format!("cells/bundled.base/c2/r1.attempt-{attempt}"));
        assert!(kept.join("cell.json").exists());
    }
    assert!(run.path().join("cells/bundled.base/c2/r1.attempt-1/steps/01-l.i1/step.json").exists());
    let begun = run.started_cells().unwrap();
    let names: Vec<&str> =
        begun.iter().map(|cell| cell.path().file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["r1", "r1.attempt-1", "r1.attempt-2"]);
}

#[test]
fn a_run_without_cells_has_started_none() {
    let results = temporary();
    let run = RunDir::create(results.path(), &sample::run()).unwrap();
    assert!(run.started_cells().unwrap().is_empty());
}

#[test]
fn steps_are_read_in_the_order_of_their_numbers() {
    let results = temporary();
    let run = RunDir::create(results.path(), &sample::run()).unwrap();
    let cell = sample::begin(&run);
    for number in [2, 101, 10, 1] {
        let step = Step { name: format!("s-{number}"), ..Step::default() };
        cell.begin_step(number, &step.name, &[]).unwrap().finish(&step).unwrap();
    }
    let names: Vec<String> =
        cell.read_steps().unwrap().iter().map(|step| step.step().name.clone()).collect();
    assert_eq!(names, ["s-1", "s-2", "s-10", "s-101"]);
}

#[test]
fn what_the_format_can_not_store_is_refused() {
    let results = temporary();
    let run = RunDir::create(results.path(), &sample::run()).unwrap();
    let cell = sample::begin(&run);
    for name in ["", "../x", "a/b", ".hidden", "x.partial"] {
        assert!(
            matches!(cell.begin_step(1, name, &[]), Err(RecordError::Unrecordable { .. })),
            "{name}"
        );
        assert!(
            matches!(cell.write_text(name, ""), Err(RecordError::Unrecordable { .. })),
            "{name}"
        );
    }
    let mut writer = cell.begin_step(1, "l.i0", &sample::HOST_COLUMNS).unwrap();
    let error = writer.host(0, 0, 0, &[None]).unwrap_err().to_string();
    assert!(error.contains("1 value of the host in 2 columns"), "{error}");
    let error = writer.latency(0, "a b", &record::latency_histogram()).unwrap_err().to_string();
    assert!(error.contains("the tag `a b`"), "{error}");
    writer.finish(&sample::step()).unwrap();
    assert!(cell.begin_step(1, "l.i0", &[]).is_err());

    let mut step = sample::step();
    step.counters_before[0].value = f64::NAN;
    let error = cell.begin_step(2, "l.x", &[]).unwrap().finish(&step).unwrap_err();
    assert!(error.to_string().contains("a value that JSON cannot hold"), "{error}");
    assert_eq!(cell.read_steps().unwrap()[1].state(), StepState::Unfinished);
}

#[test]
fn a_cell_that_leads_out_of_the_run_is_refused() {
    let results = temporary();
    let run = RunDir::create(results.path(), &sample::run()).unwrap();
    for path in ["", "../elsewhere", "/etc", "cells/../../x"] {
        let cell = CellRef { path: path.into(), ..sample::cell_ref() };
        assert!(run.cell(&cell).is_err(), "{path}");
        assert!(run.begin_cell(&cell).is_err(), "{path}");
    }
}

#[test]
fn each_cell_has_its_own_directory() {
    let path = |variant, clients, repeat| {
        CellRef::new("pg15.base", "insert", variant, clients, repeat).path
    };
    assert_eq!(path(None, 8, 1), "cells/pg15.base/c8/r1");
    assert_eq!(path(Some("a/b"), 8, 2), "cells/pg15.base/a-b/c8/r2");
    assert_eq!(
        CellRef::new("../x.y", "insert", None, 1, 1).path,
        "cells/-./x.y/c1/r1".replace("./", ".-")
    );
}

#[test]
fn a_writer_can_be_handed_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<record::StepWriter>();
    is_send::<record::RunDir>();
}

#[test]
fn the_main_operation_is_recorded_or_follows_from_the_kind() {
    let of = |kind, main_op: Option<&str>| {
        let main_op = main_op.map(str::to_owned);
        let step = Step { kind, main_op, ..Step::default() };
        step.main_operation().map(str::to_owned)
    };
    let said = |text: &str| Some(text.to_owned());
    assert_eq!(of(StepKind::Load, None), said("insert"));
    assert_eq!(of(StepKind::Index, None), said("insert"));
    assert_eq!(of(StepKind::Query, None), said("query"));
    assert_eq!(of(StepKind::Settle, None), None);
    assert_eq!(of(StepKind::Load, Some("put")), said("put"));
    assert_eq!(of(StepKind::Query, Some("get")), said("get"));
}

#[test]
fn a_recorded_role_is_stronger_than_the_name_of_a_kind() {
    let mut step = Step { kind: StepKind::Query, ..Step::default() };
    step.set_main_operation(OpKind::new("stock_level", OpRole::Query));
    step.ops.insert("insert".to_owned(), Ops::of_role(OpRole::Delete));

    let text = serde_json::to_string(&step).unwrap();
    let step: Step = serde_json::from_str(&text).unwrap();
    assert_eq!(step.main_role(), Some(OpRole::Query));
    assert_eq!(step.role_of("insert"), OpRole::Delete);
    assert_eq!(step.role_of("event"), OpRole::Event);
    assert_eq!(step.role_of("payment"), OpRole::Unknown);

    // A newer Assay may know roles that this one does not.
    let text = text.replace(r#""delete""#, r#""merge""#);
    let step: Step = serde_json::from_str(&text).unwrap();
    assert_eq!(step.role_of("insert"), OpRole::Unknown);
}

#[test]
fn a_profile_reads_back_as_written_and_is_checked_for_damage() {
    let results = temporary();
    let cells = [CellKind::Measured, CellKind::Profiled].map(|kind| {
        let key = CellKey { kind, ..CellKey::new("a.x", None, 1, 1) };
        CellRef::of(key, "insert")
    });
    let cells = cells.to_vec();
    assert_eq!(cells[1].name(), "a.x/c1/p1");
    let run = Run { cells, ..Run::default() };
    let directory = RunDir::create(results.path(), &run).unwrap();

    let mut stacks = words::Stacks::default();
    stacks.add(["postgres", "main", "heap_insert"], 7);
    stacks.add(["postgres", "main"], 2);

    for cell in &run.cells {
        let cell_dir = directory.begin_cell(cell).unwrap();
        cell_dir.write(&Cell { key: cell.key.clone(), ..Cell::default() }).unwrap();
        let mut step = cell_dir.begin_step(1, "l.i0", &[]).unwrap();
        if cell.key.kind == CellKind::Profiled {
            step.profile(&stacks).unwrap();
        }
        step.finish(&Step::default()).unwrap();
    }

    let directory = RunDir::open(directory.path()).unwrap();
    let cells = directory.read_run().unwrap().cells;
    assert_eq!(cells, run.cells);
    let step = |cell: &CellRef| {
        let steps = directory.cell(cell).unwrap().read_steps();
        steps.unwrap().remove(0)
    };
    assert_eq!(step(&cells[0]).profile().unwrap(), None);

    let profiled = step(&cells[1]);
    assert_eq!(profiled.profile().unwrap(), Some(stacks));
    assert!(profiled.is_whole());

    let path = profiled.path().join("profile.parquet");
    let mut bytes = fs_err::read(&path).unwrap();
    bytes[9] ^= 1;
    fs_err::write(&path, bytes).unwrap();
    assert!(!profiled.is_whole());
    assert!(profiled.profile().is_err());
}

#[test]
fn the_status_of_an_engine_reads_back_and_is_bounded() {
    let results = temporary();
    let run = RunDir::create(results.path(), &sample::run()).unwrap();
    let cell = sample::begin(&run);
    let texts = ["", "Log sequence number 7\n", &"\u{e4}".repeat(1 << 20)];
    for (number, text) in (1..).zip(texts) {
        let mut step = cell.begin_step(number, "l.i0", &[]).unwrap();
        if !text.is_empty() {
            step.engine_status(text).unwrap();
        }
        step.finish(&Step::default()).unwrap();
    }
    let steps = cell.read_steps().unwrap();
    assert_eq!(steps[0].engine_status().unwrap(), None);
    assert_eq!(steps[1].engine_status().unwrap().unwrap(), texts[1]);
    let cut = steps[2].engine_status().unwrap().unwrap();
    assert!(cut.ends_with("\u{e4}\n[cut by assay: 1048576 more bytes]\n"));
    assert_eq!(cut.find('\n'), Some(1 << 20));
    assert!(steps[1].is_whole());
    fs_err::write(steps[1].path().join("engine_status.txt"), "other").unwrap();
    assert!(steps[1].engine_status().is_err());
}

#[test]
fn other_users_cannot_enter_the_directory_of_a_run() {
    let results = temporary();
    let run = RunDir::create(results.path(), &sample::run()).unwrap();
    let mode = fs_err::metadata(run.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
}

#[test]
fn turns_read_back_as_written() {
    let results = temporary();
    let cell = CellRef::of(CellKey::new("a.x", None, 1, 1), "insert");
    let run = Run { cells: vec![cell.clone()], ..Run::default() };
    let directory = RunDir::create(results.path(), &run).unwrap();
    let ops = |counts: &[(&str, u64)]| {
        counts.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect()
    };
    let turns = [
        TurnRow {
            number: 0,
            block: 0,
            at_ns: 5,
            began_ns: 0,
            length_ns: 100_000_000,
            idle_ns: 7,
            client_cpu_ns: 40_000_000,
            server: Some(ServerUse {
                cpu_ns: 50_000_000,
                minor_faults: 1,
                major_faults: 2,
                voluntary_switches: 3,
                involuntary_switches: 4,
            }),
            ok: ops(&[("delete", 10), ("insert", 11)]),
        },
        TurnRow { number: 3, block: 1, ok: ops(&[("insert", 0)]), ..TurnRow::default() },
        // No operation has ended in it.
        TurnRow { number: 4, block: 2, length_ns: 20_000_000, ..TurnRow::default() },
    ];

    let cell_dir = directory.begin_cell(&cell).unwrap();
    cell_dir.write(&Cell { key: cell.key.clone(), ..Cell::default() }).unwrap();
    for (number, name) in [(1, "with"), (2, "without")] {
        let mut step = cell_dir.begin_step(number, name, &[]).unwrap();
        if name == "with" {
            step.turns(&turns).unwrap();
        }
        step.finish(&Step::default()).unwrap();
    }

    let steps = directory.cell(&cell).unwrap().read_steps().unwrap();
    assert_eq!(steps[0].turns().unwrap(), turns);
    assert!(steps[0].is_whole());
    assert_eq!(steps[1].turns().unwrap(), []);
}

#[test]
fn the_work_of_a_step_reads_back_as_written() {
    let results = temporary();
    let key = CellKey { kind: CellKind::Exact, ..CellKey::new("a.x", None, 1, 1) };
    let cell = CellRef::of(key, "insert");
    assert_eq!(cell.name(), "a.x/c1/x1");
    let run = Run { cells: vec![cell.clone()], ..Run::default() };
    let directory = RunDir::create(results.path(), &run).unwrap();

    let function = |name: &str, own| WorkFunction { name: name.into(), object: "db".into(), own };
    let serving = WorkGraph {
        functions: vec![function("main", 7), function("insert", 40)],
        calls: vec![WorkCalls { caller: 0, callee: 1, count: 3, inclusive: 40 }],
    };
    let background = WorkGraph { functions: vec![function("flush", 9)], calls: Vec::new() };
    let graphs = [(WorkRole::Serving, serving), (WorkRole::Background, background)].into();

    let cell_dir = directory.begin_cell(&cell).unwrap();
    cell_dir.write(&Cell { key: cell.key.clone(), ..Cell::default() }).unwrap();
    let mut step = cell_dir.begin_step(1, "l.i0", &[]).unwrap();
    step.work(&graphs).unwrap();
    step.finish(&Step::default()).unwrap();

    let read = RunDir::open(directory.path()).unwrap().cell(&cell).unwrap().read_steps().unwrap();
    assert_eq!(read[0].work().unwrap(), graphs);
}
