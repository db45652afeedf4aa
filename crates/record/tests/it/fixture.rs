//! `tests/fixtures/run-v1` has the first version of the format, and never changes: every later
//! Assay must read it as these tests say. If it is missing, `UPDATE=1` writes the sample there.

use std::path::{Path, PathBuf};

use record::{OpRole, RunDir, Status, StepKind};
use serde_json::Value;

use crate::sample;

fn fixture() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/run-v1");
    if !path.exists() && std::env::var_os("UPDATE").is_some() {
        let results = tempfile::tempdir_in(path.parent().unwrap()).unwrap();
        let run = sample::write(results.path());
        fs_err::rename(run.path(), &path).unwrap();
    }
    path
}

#[test]
fn the_first_format_reads() {
    let directory = RunDir::open(fixture()).unwrap();
    let run = directory.read_run().unwrap();
    assert_eq!((run.format.major, run.format.minor), (1, 0));
    assert_eq!((run.name.as_str(), run.status, run.seed), ("sample", Status::Complete, u64::MAX));
    assert_eq!(run.started_unix_ns, 1_795_287_731_250_000_000);
    assert_eq!(run.host.fsync.unwrap().p99_ns, 900_000);
    assert_eq!(run.id, "6f1c2a52-9d04-4b8e-8f6a-0c1d2e3f4a5b");

    let cell = directory.cell(&run.cells[0]).unwrap();
    assert!(cell.path().ends_with("cells/bundled.base/c2/r1"));
    let cell_record = cell.read().unwrap();
    let setting = &cell_record.settings[0];
    assert_eq!((&*setting.value, setting.canonical()), ("4K", "4096"));
    assert_eq!(cell_record.unmet_options.len(), 1);

    let steps = cell.read_steps().unwrap();
    let step = steps[0].step();
    assert_eq!((step.name.as_str(), step.kind, step.valid), ("l.i1", StepKind::Load, true));
    assert_eq!(
        (step.elapsed_ns, step.clients, step.rows_per_commit),
        (11_600_000_000, 2, Some(50))
    );
    let insert = &step.ops["insert"];
    assert_eq!((insert.offered, insert.skipped, insert.ok, insert.failed), (243, 1, 240, 2));
    assert_eq!(insert.errors["busy"], 5);
    // The first format has no roles: the names of kinds say what they mean.
    assert_eq!((insert.role, step.main_role), (None, None));
    assert_eq!(step.role_of("insert"), OpRole::Insert);

    let mut rows = 0;
    steps[0].for_each_interval(|row| rows += row.rows).unwrap();
    assert_eq!(rows, 12_000);
    let host = steps[0].host().unwrap();
    assert_eq!(host.column("cpu_user_ns").unwrap().values[11], Some(11_000_000_000));
    assert_eq!(host.column("server_rss_bytes").unwrap().values[11], None);
    let mut counters = 0;
    steps[0].for_each_counter(|_| counters += 1).unwrap();
    assert_eq!(counters, 24);
    let histograms = steps[0].histograms().unwrap();
    assert_eq!(histograms["insert.service"].len(), 240);
    assert_eq!(histograms["insert.response"].len(), 252);
}

#[test]
fn every_number_in_json_has_its_unit_in_its_name() {
    // Counts of what the name says, and ordinals.
    const UNITLESS: [&str; 25] = [
        "major",
        "minor",
        "seed",
        "clients",
        "client",
        "repeat",
        "count",
        "cpu_count",
        "rows",
        "rows_before",
        "rows_per_commit",
        "unexpected_rows",
        "offered",
        "skipped",
        "ok",
        "failed",
        "retried",
        // The unit of a counter is in its `name`.
        "value",
        "rounding",
        "invocation",
        "instructions",
        // A mean size.
        "row_bytes_mean",
        // Maps from names to counts: failures by class, samples by state.
        "busy",
        "fsync",
        "runnable",
    ];

    fn walk(key: &str, value: &Value, bad: &mut Vec<String>) {
        match value {
            Value::Number(_) => {
                let unit = ["_ns", "_bytes", "_per_s", "_per_event"]
                    .iter()
                    .any(|unit| key.ends_with(unit));
                if !unit && !UNITLESS.contains(&key) {
                    bad.push(key.to_owned());
                }
            }
            Value::Array(values) => values.iter().for_each(|value| walk(key, value, bad)),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| walk(key, value, bad)),
            _ => {}
        }
    }

    let run = fixture();
    let mut bad = Vec::new();
    let files = [
        "run.json",
        "cells/bundled.base/c2/r1/cell.json",
        "cells/bundled.base/c2/r1/steps/01-l.i1/step.json",
    ];
    for file in files {
        walk(
            "",
            &serde_json::from_slice(&fs_err::read(run.join(file)).unwrap()).unwrap(),
            &mut bad,
        );
    }

    // A settling action is a pair of its name and its nanoseconds, as its documentation says.
    bad.retain(|key| key != "actions");
    assert_eq!(bad, Vec::<String>::new());
}
