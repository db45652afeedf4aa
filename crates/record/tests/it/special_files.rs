//! Links, pipes, devices, sockets, folders and huge files in the place of the files of a record:
//! each is told, and none is followed, waited for or read.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use record::{RecordError, RunDir, StepState};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::sample;

/// The files of the sample that are read.
fn files(run: &Path) -> Vec<PathBuf> {
    let cell = run.join(sample::cell_ref().path);
    let step = cell.join("steps/01-l.i1");
    let series = ["intervals.parquet", "host.parquet", "counters.parquet", "latency.hlog"];
    let mut files = vec![run.join("run.json"), cell.join("cell.json"), step.join("step.json")];
    files.extend(series.map(|name| step.join(name)));
    files
}

/// Returns what is told of a run that cannot be read.
fn refusal(path: &Path) -> String {
    let read = || -> Result<String, RecordError> {
        let run = RunDir::open(path)?;
        let cell = run.cell(&sample::cell_ref())?;
        cell.read()?;
        let step = &cell.read_steps()?[0];
        if step.state() == StepState::Damaged {
            return Ok(step.step().reasons.join("; "));
        }
        step.host()?;
        step.for_each_interval(|_| ())?;
        step.for_each_counter(|_| ())?;
        step.latencies()?.merged()?;
        Ok(String::new())
    };
    read().unwrap_or_else(|error| error.with_causes())
}

fn make_pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn no_special_file_is_read_in_the_place_of_a_file() {
    // The path of a socket has at most 107 bytes.
    let results = tempfile::tempdir_in("/tmp").unwrap();
    let run = sample::write(results.path());
    let elsewhere = results.path().join("elsewhere");

    for path in files(run.path()) {
        fs_err::rename(&path, &elsewhere).unwrap();
        let told = |what: &str| {
            let refusal = refusal(run.path());
            assert!(refusal.contains(what), "{}: {refusal}", path.display());
            if path.is_dir() {
                fs_err::remove_dir(&path).unwrap();
            } else {
                fs_err::remove_file(&path).unwrap();
            }
        };

        // A link to the file's own contents is none of the record either.
        for target in ["/dev/zero", "/nowhere", elsewhere.to_str().unwrap()] {
            symlink(target, &path).unwrap();
            told("it is a symbolic link");
        }

        make_pipe(&path);
        told("it is a pipe");
        drop(UnixListener::bind(&path).unwrap());
        told("it is a socket");
        fs_err::create_dir(&path).unwrap();
        told("it is a directory");

        let huge = fs_err::File::create(&path).unwrap();
        huge.set_len(1 << 42).unwrap();
        told(
            if path.ends_with("run.json")
                || path.ends_with("cell.json")
                || path.ends_with("step.json")
            {
                "it is larger than 64 MiB"
            } else {
                "it has 4398046511104 bytes, but `step.json` says"
            },
        );

        fs_err::rename(&elsewhere, &path).unwrap();
    }
    assert_eq!(refusal(run.path()), "");
}

#[test]
fn a_link_in_the_place_of_a_folder_is_not_followed() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let elsewhere = results.path().join("elsewhere");
    for folder in ["cells", "cells/bundled.base", "cells/bundled.base/c2/r1/steps"] {
        let path = run.path().join(folder);
        fs_err::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        let refusal = refusal(run.path());
        assert!(refusal.contains("it is a symbolic link, not a directory"), "{folder}: {refusal}");
        assert!(
            run.begin_cell(&sample::cell_ref()).is_err() || folder.ends_with("steps"),
            "{folder}"
        );
        fs_err::remove_file(&path).ok();
        fs_err::rename(&elsewhere, &path).unwrap();
    }
}

#[test]
fn a_run_may_be_given_as_a_link() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let latest = results.path().join("latest");
    symlink(run.path(), &latest).unwrap();
    assert_eq!(refusal(&latest), "");
}

#[test]
fn a_prepared_link_is_replaced_and_not_written_through() {
    let results = tempfile::tempdir().unwrap();
    let run = sample::write(results.path());
    let precious = results.path().join("precious");
    fs_err::write(&precious, "mine").unwrap();
    for name in ["run.json", "run.json.tmp"] {
        let path = run.path().join(name);
        let _ = fs_err::remove_file(&path);
        symlink(&precious, &path).unwrap();
        run.write_run(&sample::run()).unwrap();
        assert_eq!(fs_err::read_to_string(&precious).unwrap(), "mine");
        assert_eq!(refusal(run.path()), "");
    }
    symlink(&precious, run.path().join("report.html")).unwrap();
    record::replace_file(run.path(), "report.html", b"<!DOCTYPE html>").unwrap();
    assert_eq!(fs_err::read_to_string(&precious).unwrap(), "mine");
    assert!(run.path().join("report.html").symlink_metadata().unwrap().is_file());
}
