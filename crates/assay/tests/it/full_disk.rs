//! A disk that fills up in the midst of a step.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::{POSTGRES, Place, QUICK, SQLITE, mysql, workload};
use crate::show_json::Shown;
use crate::{mysql_or_test_is_skipped, postgres_is_here_or_test_is_skipped, say_skipped};

/// A small file system of its own. Dropping it takes it away.
pub(crate) struct Disk {
    pub(crate) path: PathBuf,
}

impl Disk {
    /// `None`, after the test was called skipped, where this user may not mount.
    pub(crate) fn mount(place: &Place, mebibytes: u32) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            say_skipped("only root may mount a small file system to fill");
            return None;
        }

        let path = place.join("disk");
        fs_err::create_dir(&path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o"])
            .arg(format!("size={mebibytes}m,mode=755"))
            .args(["assay-test", path.to_str().unwrap()])
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { path }),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                say_skipped(&format!("a file system cannot be mounted: {}", said.trim()));
                None
            }
            Err(error) => {
                say_skipped(&format!("a file system cannot be mounted: {error}"));
                None
            }
        }
    }

    /// Leaves no byte of it free.
    pub(crate) fn fill(&self) -> PathBuf {
        let path = self.path.join("filler");
        let mut file = fs_err::File::create(&path).unwrap();
        for chunk in [1 << 20, 4096, 1] {
            while file.write(&vec![0; chunk]).is_ok_and(|written| written > 0) {}
        }
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

/// Returns a run that writes until the test is over with it.
fn plan(engine: &str) -> String {
    let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\"]\nstep.\"l.i1\".rows = \"100M\"";
    workload(5_000, 5_000, QUICK, steps) + engine
}

const FINISHED: [(&str, &str, bool); 2] = [("l.i0", "complete", true), ("l.x", "complete", true)];

/// The database's disk fills up: its step fails with the engine's own words, one of `words`, and
/// its results are kept.
fn the_data_disk_fills_up(target: &str, engine: &str, mebibytes: u32, words: &[&str]) {
    let place = Place::new();
    let Some(disk) = Disk::mount(&place, mebibytes) else {
        return;
    };

    let mut running = place.spawn_run(&plan(engine), &["--data", "disk/data", "--ignore-space"]);
    place.wait_for_step(&mut running, "03-l.i1");
    disk.fill();

    let failed = format!("step `l.i1` of `{target}` failed");
    let ended = running.wait().expect_code(1).expect_in_stderr(&[&failed]);
    let says = |word: &&str| ended.stderr.contains(word);
    assert!(words.iter().any(says), "none of {words:?}\n{ended}");
    assert!(place.processes().is_empty(), "{ended}");

    let shown = Shown::read(&place, &place.only_run());
    assert_eq!(shown.status(), "failed");
    assert_eq!(shown.steps(target)[..2], FINISHED);
    let row = shown.row(target, "l.i1");
    assert!(row["status"] == "failed" && row["valid"] == false, "{row}");

    let database = disk.path.join("data").join(target);
    assert!(!any_database(&database), "the database was left");
}

fn any_database(target: &Path) -> bool {
    ["sqlite", "postgres", "mysql"].iter().any(|name| target.join(name).exists())
}

#[test]
fn a_full_data_disk_fails_the_step_of_sqlite() {
    the_data_disk_fills_up("lite.base", SQLITE, 64, &["database or disk is full"]);
}

#[test]
fn a_full_data_disk_fails_the_step_of_postgres() {
    if postgres_is_here_or_test_is_skipped() {
        // A page that found no room or room for a part of it, and a segment of the log that found
        // none, which ends it.
        let words = ["Check free disk space", "No space left on device"];
        the_data_disk_fills_up("pg.base", POSTGRES, 300, &words);
    }
}

#[test]
#[ignore = "the fault is that of PostgreSQL"]
fn a_full_data_disk_fails_the_step_of_mysql() {
    if let Some(build) = mysql_or_test_is_skipped("innodb") {
        the_data_disk_fills_up("my.base", &mysql(&build, "innodb"), 400, &["is full"]);
    }
}

/// The record's disk fills up: the run ends with an error that says where, and finished steps read.
fn the_results_disk_fills_up(target: &str, engine: &str) {
    let place = Place::new();
    let Some(disk) = Disk::mount(&place, 16) else {
        return;
    };

    let mut running =
        place.spawn_run(&plan(engine), &["--results", "disk/results", "--ignore-space"]);
    let results = disk.path.join("results");
    place.wait_for_step_in(&results, &mut running, "03-l.i1");

    let filler = disk.fill();
    running.wait().expect_code(1).expect_in_stderr(&[
        "disk/results/",
        "No space left on device",
        "help: free some space, or choose another place with `--results`",
    ]);
    place.assert_nothing_is_left();

    fs_err::remove_file(filler).unwrap();
    let runs = crate::place::entries(&results);
    let shown = Shown::read(&place, &runs[0]);
    assert_eq!(shown.steps(target)[..2], FINISHED);
    assert_ne!(shown.status(), "complete");
}

#[test]
fn a_full_results_disk_ends_the_run_of_sqlite() {
    the_results_disk_fills_up("lite.base", SQLITE);
}

#[test]
#[ignore = "the fault is that of SQLite"]
fn a_full_results_disk_ends_the_run_of_postgres() {
    if postgres_is_here_or_test_is_skipped() {
        the_results_disk_fills_up("pg.base", POSTGRES);
    }
}
