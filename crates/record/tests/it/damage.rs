use std::path::{Path, PathBuf};

use record::{RecordError, RunDir, StepReader, StepState};
use serde_json::Value;

use crate::sample;

const SERIES: [&str; 4] = ["intervals.parquet", "host.parquet", "counters.parquet", "latency.hlog"];

fn step_directory(run: &RunDir) -> PathBuf {
    run.cell(&sample::cell_ref()).unwrap().path().join("steps/01-l.i1")
}

fn read_all(run: &RunDir) -> Result<(), RecordError> {
    let cell = run.cell(&run.read_run()?.cells[0])?;
    cell.read()?;
    cell.read_steps()?.iter().try_for_each(read_series)
}

fn read_series(step: &StepReader) -> Result<(), RecordError> {
    step.host()?;
    step.for_each_interval(|_| ())?;
    step.for_each_counter(|_| ())?;
    step.histograms()?;
    step.latencies()?.merged()?;
    Ok(())
}

#[track_caller]
fn check_names(error: &RecordError, path: &Path) {
    assert_eq!(error.path(), path, "{error}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
}

#[test]
fn a_truncated_or_changed_file_is_named() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    for name in SERIES {
        let path = step_directory(&run).join(name);
        let whole = fs_err::read(&path).unwrap();
        fs_err::write(&path, &whole[..whole.len() / 2]).unwrap();
        let error = read_all(&run).unwrap_err();
        check_names(&error, &path);
        assert!(error.help().unwrap().contains("copy the run directory again"));

        let mut changed = whole.clone();
        changed[whole.len() / 3] ^= 0x10;
        fs_err::write(&path, &changed).unwrap();
        let error = read_all(&run).unwrap_err();
        check_names(&error, &path);
        assert!(error.to_string().contains("checksum"), "{error}");

        fs_err::remove_file(&path).unwrap();
        let error = read_all(&run).unwrap_err();
        check_names(&error, &path);
        fs_err::write(&path, &whole).unwrap();
    }
    read_all(&run).unwrap();
}

#[test]
fn truncated_json_is_named() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let cell = run.cell(&sample::cell_ref()).unwrap();
    let files = [run.path().join("run.json"), cell.path().join("cell.json")];
    for path in files {
        let whole = fs_err::read(&path).unwrap();
        fs_err::write(&path, &whole[..whole.len() - 5]).unwrap();
        let error = read_all(&run).unwrap_err();
        check_names(&error, &path);
        assert!(matches!(error, RecordError::Damaged { .. }));
        fs_err::write(&path, &whole).unwrap();
    }
}

#[test]
fn a_cell_is_complete_while_all_of_its_steps_are_there_and_undamaged() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let cell = run.cell(&sample::cell_ref()).unwrap();
    assert!(cell.is_complete().unwrap());
    let directory = step_directory(&run);
    for name in SERIES.into_iter().chain(["step.json"]) {
        let path = directory.join(name);
        let whole = fs_err::read(&path).unwrap();
        fs_err::write(&path, &whole[..whole.len() - 5]).unwrap();
        assert!(!cell.is_complete().unwrap(), "{name} is cut");
        fs_err::remove_file(&path).unwrap();
        assert!(!cell.is_complete().unwrap(), "{name} is gone");
        fs_err::write(&path, &whole).unwrap();
        assert!(cell.is_complete().unwrap(), "{name} is back");
    }
    fs_err::rename(&directory, results.path().join("elsewhere")).unwrap();
    assert!(!cell.is_complete().unwrap());
    let missing = cell.missing_steps(&cell.read().unwrap(), &cell.read_steps().unwrap());
    assert!(missing[0].is_lost());
    let missing: Vec<_> = missing
        .iter()
        .map(|step| (step.number(), step.step().name.as_str(), step.state()))
        .collect();
    assert_eq!(missing, [(1, "l.i1", StepState::Missing)]);
}

#[test]
fn a_step_without_a_readable_step_json_is_damaged_and_says_so() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let path = step_directory(&run).join("step.json");
    for damage in [Some("{"), None] {
        match damage {
            Some(text) => fs_err::write(&path, text).unwrap(),
            None => fs_err::remove_file(&path).unwrap(),
        }
        let cell = run.cell(&sample::cell_ref()).unwrap();
        let step = &cell.read_steps().unwrap()[0];
        assert_eq!((step.state(), step.step().name.as_str()), (StepState::Damaged, "l.i1"));
        let reasons = step.step().reasons.join("");
        assert!(reasons.contains(path.to_str().unwrap()), "{reasons}");
        step.for_each_interval(|row| panic!("{row:?}")).unwrap();
    }
}

/// Makes the checksums of the JSON files of the sample right again, as a forger would.
fn sum_again(run: &RunDir) {
    let cell = run.cell(&sample::cell_ref()).unwrap();
    let step = std::path::PathBuf::from("steps/01-l.i1/step.json");
    let paths =
        [cell.path().join(&step), cell.path().join("cell.json"), run.path().join("run.json")];
    let names = ["", step.to_str().unwrap(), "cells/bundled.base/c2/r1/cell.json"];
    let mut inner: Vec<u8> = Vec::new();
    for (path, name) in paths.iter().zip(names) {
        let mut value: Value = serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap();
        value.as_object_mut().unwrap().remove("crc32");
        if !name.is_empty() {
            let mut files = value["files"].as_array_mut().unwrap().iter_mut();
            let file = files.find(|file| file["name"] == *name).unwrap();
            file["size_bytes"] = inner.len().into();
            file["crc32"] = format!("{:08x}", crc32fast::hash(&inner)).into();
        }
        let text = serde_json::to_string_pretty(&value).unwrap() + "\n";
        let sum = crc32fast::hash(text.as_bytes());
        let body = text.strip_suffix("\n}\n").unwrap();
        inner = format!("{body},\n  \"crc32\": \"{sum:08x}\"\n}}\n").into_bytes();
        fs_err::write(path, &inner).unwrap();
    }
}

/// A checksum cannot find nonsense that a writer wrote; reading it must end with an error or with
/// data.
#[test]
fn nonsense_with_a_correct_checksum_does_not_panic() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let directory = step_directory(&run);
    let step_file = directory.join("step.json");
    let step_text = fs_err::read_to_string(&step_file).unwrap();
    for name in SERIES {
        let path = directory.join(name);
        let whole = fs_err::read(&path).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 40 + 1) {
            let mut changed = whole.clone();
            changed[at] ^= 0x55;
            fs_err::write(&path, &changed).unwrap();
            let sum = |bytes: &[u8]| format!("{:08x}", crc32fast::hash(bytes));
            fs_err::write(&step_file, step_text.replace(&sum(&whole), &sum(&changed))).unwrap();
            sum_again(&run);
            if let Err(error) = read_all(&RunDir::open(run.path()).unwrap()) {
                assert!(error.path().starts_with(&directory), "{error}");
                assert!(!error.path().ends_with("step.json"), "{error}");
            }
        }
        fs_err::write(&path, &whole).unwrap();
    }
}

#[test]
fn the_error_of_a_directory_without_a_run_says_what_to_give() {
    let results = tempfile::tempdir().unwrap();
    for (path, what) in [
        (results.path().to_owned(), "it has no `run.json`"),
        (results.path().join("x"), "not exist"),
    ] {
        let error = RunDir::open(&path).unwrap_err();
        check_names(&error, &path);
        assert!(error.to_string().contains(what), "{error}");
        assert!(error.help().unwrap().contains("assay run"));
    }
}

#[test]
fn the_error_of_a_newer_major_format_says_which_assay_reads_it() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let forge = |format: &str, text: &str| {
        fs_err::write(run.path().join("run.json"), format!("{{\"format\": {format}, {text}}}"))
            .unwrap();
        RunDir::open(run.path()).unwrap_err()
    };
    // Only these two keys are in every version.
    let error =
        forge(r#"{"major": 2, "minor": 3}"#, r#""assay": {"version": "7.1.0"}, "status": [1]"#);
    assert!(
        error.to_string().ends_with("has format 2.3, but this Assay reads formats 1.x"),
        "{error}"
    );
    assert!(error.help().unwrap().contains("Assay 7.1.0 or newer"));
    let error = forge(r#"{"major": 2, "minor": 3}"#, r#""x": 1"#);
    assert_eq!(error.help().unwrap(), "read it with a newer Assay");
    let error = forge(r#"{"major": 0, "minor": 9}"#, r#""assay": {"version": "0.0.1"}"#);
    assert!(error.help().unwrap().contains("of the version that wrote it, 0.0.1"));
}

#[test]
fn a_newer_minor_format_is_read_without_its_new_fields() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let path = run.path().join("run.json");
    let mut json: Value = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
    json["format"]["minor"] = 99.into();
    json["moon_phase"] = "full".into();
    fs_err::write(&path, json.to_string()).unwrap();
    sum_again(&run);
    let read = RunDir::open(run.path()).unwrap().read_run().unwrap();
    let expected = record::Run { files: read.files.clone(), ..sample::run() };
    assert_eq!(record::Run { format: record::FORMAT, ..read }, expected);
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let results = tempfile::tempdir().unwrap();
    let file = results.path().join("file");
    fs_err::write(&file, "").unwrap();
    let error = RunDir::create(&file.join("results"), &sample::run()).unwrap_err();
    check_names(&error, &file.join("results"));
}
