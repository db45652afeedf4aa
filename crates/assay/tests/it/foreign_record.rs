//! Runs that another user could have written, or has prepared.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::forged::change_json;
use crate::place::{Place, QUICK, SQLITE, workload};

/// Returns a complete run of SQLite.
fn measured(place: &Place) -> PathBuf {
    let workload = workload(500, 500, QUICK, "steps = [\"l.i0\"]");
    let plan = format!("{workload}{SQLITE}[config.sqlite.next]\n");
    place.run(&plan, &[]).expect_code(0).run_directory()
}

fn is_root_or_test_is_skipped() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        crate::say_skipped("only root can give files to another user");
    }
    is_root
}

/// Gives a file or folder to another user.
fn give_away(path: &Path) {
    fs_err::os::unix::fs::chown(path, Some(7002), Some(7002)).unwrap();
}

#[test]
fn a_run_that_another_user_owns_is_resumed_only_with_trust() {
    if !is_root_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let run = measured(&place);
    let path = run.to_str().unwrap();
    let cell = run.join("cells/lite.base/c1/r1");
    fs_err::remove_dir_all(cell.join("steps")).unwrap();

    for given_away in [run.clone(), run.join("run.json"), cell.clone(), cell.join("cell.json")] {
        give_away(&given_away);
        let refused = place.assay(&["run", "--resume", path]).expect_code(2);
        let what = format!("`{}` belongs to another user, 7002", given_away.display());
        refused.expect_in_stderr(&["won't resume `", &what, "add `--trust`"]);
        fs_err::os::unix::fs::chown(&given_away, Some(0), Some(0)).unwrap();
    }

    give_away(&run);
    place.assay(&["run", "--resume", path, "--trust"]).expect_code(0);
    place.assay(&["show", path]).expect_code(0);
}

#[test]
fn a_build_that_others_can_write_to_is_not_run_by_a_resume() {
    if !crate::postgres_is_here_or_test_is_skipped() {
        return;
    }
    let place = Place::new();
    let bin = place.join("build/bin");
    fs_err::create_dir_all(&bin).unwrap();

    // The server's user says there that it ran.
    let said = place.join("said");
    fs_err::create_dir(&said).unwrap();
    fs_err::set_permissions(&said, Permissions::from_mode(0o777)).unwrap();
    let real = engine::postgres::locate("distribution").unwrap().bin_dir;
    for program in ["postgres", "initdb"] {
        let path = bin.join(program);
        let (real, said) = (real.display(), said.display());
        let text = format!("#!/bin/sh\ntouch {said}/ran\nexec {real}/{program} \"$@\"\n");
        fs_err::write(&path, text).unwrap();
        fs_err::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }

    let pg = format!(
        "[build.pg]\npostgres = \"{}\"\n[config.postgres.base]\n",
        place.join("build").display()
    );
    let plan = format!("{}{pg}", workload(500, 500, QUICK, "steps = [\"l.i0\"]"));
    let run = place.run(&plan, &[]).expect_code(0).run_directory();
    let path = run.to_str().unwrap();
    assert!(said.join("ran").exists());

    fs_err::remove_dir_all(run.join("cells/pg.base/c1/r1/steps")).unwrap();
    fs_err::remove_file(said.join("ran")).unwrap();
    fs_err::set_permissions(&bin, Permissions::from_mode(0o757)).unwrap();
    let refused = place.assay(&["run", "--resume", path]).expect_code(2);
    refused.expect_in_stderr(&["won't run the build `pg`: other users can write to `"]);
    assert!(!said.join("ran").exists());
    place.assay(&["run", "--resume", path, "--trust"]).expect_code(0);
}

#[test]
fn a_link_in_the_place_of_a_report_is_not_followed() {
    let place = Place::new();
    let run = measured(&place);
    let report = run.join("report.html");
    let precious = place.join("NOTES");
    fs_err::write(&precious, "mine").unwrap();
    fs_err::remove_file(&report).unwrap();
    symlink(&precious, &report).unwrap();
    place.assay(&["report", run.to_str().unwrap()]).expect_code(0);
    assert_eq!(fs_err::read_to_string(&precious).unwrap(), "mine");
    assert!(report.symlink_metadata().unwrap().is_file());

    // Nor are those in a folder that the user names.
    let logs = place.join("logs");
    fs_err::create_dir(&logs).unwrap();
    symlink(&precious, logs.join("steps.csv.partial")).unwrap();
    let args = ["export", run.to_str().unwrap(), "--format", "csv", "-o"];
    let output = logs.join("steps.csv");
    place.assay(&[&args[..], &[output.to_str().unwrap()]].concat()).expect_code(0);
    assert_eq!(fs_err::read_to_string(&precious).unwrap(), "mine");
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_told_by_every_command() {
    let place = Place::new();
    let run = measured(&place);
    let path = run.to_str().unwrap();
    let cell = run.join("cells/lite.base/c1/r1");
    let step = cell.join("steps/01-l.i0");
    let files =
        ["step.json", "host.parquet", "intervals.parquet", "latency.hlog", "latency_total.hlog"];
    let files = files.map(|name| step.join(name)).into_iter().chain([cell.join("cell.json")]);
    for file in files {
        let aside = place.join("aside");
        fs_err::rename(&file, &aside).unwrap();
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, mode, 0).unwrap();

        let html = place.join("x.html");
        for args in [
            &["show", path][..],
            &["compare", path],
            &["report", path, "-o", html.to_str().unwrap()],
            &["export", path, "--format", "csv"],
        ] {
            let told = place.assay(args).expect_code(1);
            told.expect_in_stderr(&["it is a pipe, not a regular file"]);
        }

        let listed = place.assay(&["ls"]).expect_code(1);
        listed.expect_in_stdout(&["damaged: ", "it is a pipe, not a regular file"]);
        fs_err::remove_file(&file).unwrap();
        fs_err::rename(&aside, &file).unwrap();
    }
}

#[test]
fn no_command_hands_the_escapes_of_a_record_to_the_terminal() {
    const HOSTILE: &str = "\u{1b}[31mred\u{202e}\u{9b}";

    let place = Place::new();
    let run = measured(&place);
    let path = run.to_str().unwrap();
    for target in ["lite.base", "lite.next"] {
        let file = run.join("cells").join(target).join("c1/r1/steps/01-l.i0/step.json");
        change_json(&file, |step| {
            step["valid"] = false.into();
            step["reasons"] = [HOSTILE].as_slice().into();
        });
    }

    let mut told_count = 0;
    for args in [
        &["show", path, "--all"][..],
        &["show", path, "--format", "json"],
        &["show", path, "--format", "csv"],
        &["compare", path],
        &["compare", path, "--gate"],
        &["export", path, "--format", "csv"],
        &["export", path, "--format", "benchstat"],
        &["ls", "--all"],
    ] {
        let ended = place.assay(args);
        for text in [&ended.stdout, &ended.stderr] {
            assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{args:?}: {text:?}");
            told_count += text.matches("[31mred").count();
        }
    }

    // The reasons themselves are told.
    assert!(told_count >= 4, "{told_count}");
}
