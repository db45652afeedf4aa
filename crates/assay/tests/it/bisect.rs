//! Searches for the commit that changed a step, in repositories whose history each test makes.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::commits::CommitPlace;
use crate::place::{Ended, Running, comes_about, entries};
use crate::rocksdb_or_test_is_skipped;

/// A library with RocksDB's C API, whose writes count to `SLOW` first.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
void rocksdb_write(void *db, void *options, void *batch, char **error) {
    void (*write)(void *, void *, void *, char **) = dlsym(RTLD_NEXT, "rocksdb_write");
    for (volatile int count = 0; count < SLOW; count++);
    write(db, options, batch, error);
}
"#;

/// To count so far makes a write many times as slow.
const SECONDS: u32 = 50_000;
/// To count so far is about as much work as all else that a write does.
const WORK: u32 = 2_000;

/// Compares the work of a few operations.
const BY_WORK: [&str; 10] = [
    "--metric",
    "work",
    "--set",
    "workload.kv.keys=200",
    "--set",
    "exact.repeats=2",
    "--set",
    "exact.operations=100",
    "--set",
    "exact.warmup=20",
];

/// The CPU time of an operation, which other tests disturb less than throughput.
const OWN_CPU: &str = "own_cpu_us_per_op";
const BY_CPU: [&str; 2] = ["--metric", OWN_CPU];

/// Compares the size of the data, which other tests do not disturb.
const BY_SIZE: [&str; 2] = ["--metric", "dbgb1"];

/// The kind of a commit.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Same,
    /// Does not compile.
    Broken,
    /// Writes count to this number from here on.
    Slow(u32),
}

/// A repository with a commit of each kind, in this order, and a plan with its recipe.
struct History {
    place: CommitPlace,
    /// The hashes of the commits, the oldest first.
    hashes: Vec<String>,
}

impl History {
    fn new(kinds: &[Kind]) -> Option<Self> {
        let libraries = rocksdb_or_test_is_skipped()?;
        let place = CommitPlace::new();
        let mut slow = 0;
        let mut hashes = Vec::new();
        for (number, kind) in kinds.iter().enumerate() {
            if let Kind::Slow(count) = kind {
                slow = *count;
            }
            let broken = if *kind == Kind::Broken { "not C\n" } else { "" };
            let text = format!("#define SLOW {slow}\n/* {number} */\n{LIBRARY}{broken}");
            hashes.push(place.commit(&format!("change {number}"), &[("library.c", &text)]));
        }

        let plan = format!(
            "name = \"search\"\nbase = \"mine.default\"\n[workload.kv]\nkeys = 4000\nsteps = [\"fillseq\"]\n\
             [build.mine]\ngit = \"repository\"\nengine = \"rocksdb\"\nref = \"main\"\n\
             make = '''sh build.sh '{}' '''\ngives = \"librocksdb.so\"\n",
            libraries[0].display()
        );
        fs_err::write(place.join("plan.toml"), plan).unwrap();
        Some(Self { place, hashes })
    }

    fn search_args(&self, more: &[&str]) -> Vec<String> {
        let (good, bad) = (self.hashes.first().unwrap(), self.hashes.last().unwrap());
        let all = ["bisect", "plan.toml", "--git", "repository", "--good", good, "--bad", bad];
        let rest = ["--step", "fillseq"];
        all.iter().chain(&rest).chain(more).map(|text| (*text).to_owned()).collect()
    }

    fn search(&self, more: &[&str]) -> Ended {
        let args = self.search_args(more);
        self.place.assay(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Compiles the library of the last commit.
    fn library_of_last_commit(&self, real: &Path) -> PathBuf {
        let folder = self.place.join("mine");
        fs_err::create_dir(&folder).unwrap();
        let library = folder.join("librocksdb.so.9.9.3");
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-o"]).arg(&library);
        compile.arg(self.place.join("repository/library.c"));
        compile.arg("-Wl,--no-as-needed").arg(real);
        compile.arg(format!("-Wl,-rpath,{}", real.parent().unwrap().display()));
        assert!(compile.status().unwrap().success());
        library
    }

    /// Returns the sentence about a change that came with a commit.
    fn changed_in(&self, number: usize, metric: &str) -> String {
        format!("fillseq changed in {} change {number}: {metric} ", &self.hashes[number][..12])
    }

    /// Returns the directory of the only search.
    fn directory(&self) -> PathBuf {
        let results = entries(&self.place.join("results"));
        let mut searches = results.into_iter().filter(|path| path.join("bisect.json").is_file());
        searches.next().expect("there is a search")
    }
}

fn log(directory: &Path) -> Value {
    serde_json::from_slice(&fs_err::read(directory.join("bisect.json")).unwrap()).unwrap()
}

/// Returns the number of trials that have a result.
fn trial_count(directory: &Path) -> usize {
    let log = log(directory);
    let trials = log["trials"].as_array().unwrap();
    trials.iter().filter(|trial| !trial["result"].is_null()).count()
}

/// Interrupts a search as soon as one trial has ended, and returns how it ended.
fn interrupted_after_a_trial(place: &CommitPlace, mut running: Running) -> Ended {
    let results = place.join("results");
    let has_trial = |path: &PathBuf| path.join("bisect.json").is_file() && trial_count(path) > 0;

    // A trial of exact work takes a minute beside other tests.
    let has_compared_the_ends = comes_about(600, || {
        running.must_run("its second trial");
        results.is_dir() && entries(&results).iter().any(has_trial)
    });
    assert!(has_compared_the_ends, "no trial ended within 600 s");

    running.signal(Signal::INT);
    running.wait().expect_code(130)
}

/// Searches a history for the commit that stayed slow by a metric, and finds it in at most so many
/// trials.
fn the_slow_commit_is_found(metric: &str, kinds: &[Kind], slow: usize, trials_max: usize) {
    let Some(history) = History::new(kinds) else {
        return;
    };

    // The slow ones are many times as slow, and a busy machine may seem to differ by less.
    let ended = history.search(&["--metric", metric, "--threshold", "50"]).expect_code(0);
    let ended = ended.expect_in_stdout(&[
        &history.changed_in(slow, metric),
        "A second trial, with new servers and databases, confirms the change.",
        "does not build",
    ]);
    let directory = history.directory();
    assert!(trial_count(&directory) <= trials_max, "{ended}");
    assert_eq!(log(&directory)["unusable"].as_object().unwrap().len(), 1, "{ended}");
}

#[test]
fn the_slow_one_of_12_commits_is_found_among_broken_ones_and_one_that_was_reverted() {
    let mut kinds = [Kind::Same; 12];
    (kinds[2], kinds[3]) = (Kind::Slow(SECONDS), Kind::Slow(0));
    // The first halving meets one of them.
    (kinds[5], kinds[10]) = (Kind::Broken, Kind::Broken);
    kinds[8] = Kind::Slow(SECONDS);
    // The ends, four halvings, and the confirmation; skipped commits may cost one more.
    the_slow_commit_is_found(OWN_CPU, &kinds, 8, 7);
}

#[test]
#[ignore = "the search is that of fewer commits"]
fn the_slow_one_of_32_commits_is_found_among_broken_ones_and_one_that_was_reverted() {
    let mut kinds = [Kind::Same; 32];
    (kinds[5], kinds[6]) = (Kind::Slow(SECONDS), Kind::Slow(0));
    (kinds[15], kinds[20]) = (Kind::Broken, Kind::Broken);
    kinds[18] = Kind::Slow(SECONDS);
    // The ends, five halvings, and the confirmation; skipped commits may cost one more.
    the_slow_commit_is_found("throughput", &kinds, 18, 8);
}

#[test]
fn an_interrupted_search_goes_on_where_it_was() {
    let mut kinds = [Kind::Same; 4];
    kinds[2] = Kind::Slow(SECONDS);
    let Some(history) = History::new(&kinds) else {
        return;
    };
    let args = history.search_args(&BY_CPU);

    let running = history.place.spawn(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let ended = interrupted_after_a_trial(&history.place, running);
    let directory = history.directory();
    let name = directory.to_str().unwrap();
    ended.expect_in_stderr(&["`assay bisect --resume ", " --trust` continues"]);

    // The commands that build commits come with the log, as those of a run come with its record.
    let untrusted = history.place.assay(&["bisect", "--resume", name]).expect_code(2);
    untrusted.expect_in_stderr(&["the recorded plan has `make`", "add `--trust`"]);

    let resume = ["bisect", "--resume", name, "--trust"];
    let resumed = history.place.assay(&resume).expect_code(0);
    let resumed = resumed.expect_in_stdout(&[&history.changed_in(2, OWN_CPU)]);
    assert!(!resumed.stderr.contains("the ends, "), "{resumed}");

    // Nothing is left to measure, and a changed plan would be another search.
    let again = history.place.assay(&resume).expect_code(0);
    assert!(!again.stderr.contains("trial "), "{again}");
    fs_err::write(history.place.join("plan.toml"), "name = \"other\"\n").unwrap();
    let changed = history.place.assay(&resume).expect_code(2);
    changed.expect_in_stderr(&["has changed since the search began"]);
}

#[test]
fn a_search_ends_if_a_candidate_that_was_measured_can_not_be_used_any_more() {
    let Some(libraries) = rocksdb_or_test_is_skipped() else {
        return;
    };
    let Some(history) = History::new(&[Kind::Same, Kind::Slow(SECONDS)]) else {
        return;
    };
    let place = &history.place;
    let slow = history.library_of_last_commit(&libraries[0]);

    let copies = ["a", "b", "c"].map(|name| {
        let folder = place.join(name);
        fs_err::create_dir(&folder).unwrap();
        let copy = folder.join("librocksdb.so.9.9.3");
        fs_err::copy(if name == "c" { &slow } else { &libraries[0] }, &copy).unwrap();
        copy
    });
    let builds = copies.each_ref().map(|copy| format!("dir:{}", copy.display())).join(",");
    let search = ["bisect", "plan.toml", "--builds", &builds, "--step", "fillseq"];
    // A busy machine may seem to differ by less.
    let search = [&search[..], &BY_CPU, &["--threshold", "50"]].concat();

    let running = place.spawn(&search);
    interrupted_after_a_trial(place, running);

    // The newer end is measured with the candidate between the ends.
    fs_err::write(&copies[2], "no library").unwrap();
    let directory = history.directory();
    let resumed = ["bisect", "--resume", directory.to_str().unwrap(), "--trust"];
    let failed = place.assay(&resumed).expect_code(2);
    assert!(!failed.stderr.contains("skipped"), "{failed}");

    fs_err::copy(&slow, &copies[2]).unwrap();
    let ended = place.assay(&resumed).expect_code(0);
    ended.expect_in_stdout(&["fillseq changed in"]);
}

#[test]
fn equal_ends_show_no_change() {
    let Some(history) = History::new(&[Kind::Same; 3]) else {
        return;
    };
    let by_work = [&BY_WORK[..], &["--threshold", "50"]].concat();

    let none = history.search(&by_work).expect_code(4);
    let none = none.expect_in_stdout(&[
        "fillseq does not differ between",
        "`--explore` measures",
        "chart: ",
    ]);

    let chart = fs_err::read_to_string(history.directory().join("bisect.svg")).unwrap();
    let ends = [0, 2].map(|at| log(&history.directory())["candidates"][at]["title"].clone());
    for end in ends {
        // A long title is cut.
        let hash = end.as_str().unwrap().split(' ').next().unwrap();
        assert!(chart.contains(hash), "no {hash} in the chart\n{none}");
    }
}

/// Judges a candidate as a step of `git bisect run` does.
struct Judge {
    history: History,
    /// The build that is known to be good.
    good: String,
    /// The build of the last commit.
    slow: String,
}

impl Judge {
    /// Returns a judge of a history whose last commit is slow.
    fn new(slow: u32) -> Option<Self> {
        let libraries = rocksdb_or_test_is_skipped()?;
        let history = History::new(&[Kind::Same, Kind::Slow(slow)])?;
        let good = format!("dir:{}", libraries[0].display());
        let slow = format!("dir:{}", history.library_of_last_commit(&libraries[0]).display());
        Some(Self { history, good, slow })
    }

    fn judge(&self, candidate: &str, step: &str, more: &[&str]) -> Ended {
        let builds = ["--good", &self.good, "--candidate", candidate];
        let rest = ["--step", step, "--threshold", "50"];
        let all = [&["bisect", "plan.toml", "--predicate"], &builds[..], &rest[..], more].concat();
        self.history.place.assay(&all)
    }
}

#[test]
fn a_predicate_ends_with_the_exit_codes_of_git_bisect() {
    let Some(judge) = Judge::new(SECONDS) else {
        return;
    };
    // On a busy machine, no time decides that two builds are equal.
    judge.judge(&judge.good, "fillseq", &BY_SIZE).expect_code(0);
    judge.judge(&judge.slow, "fillseq", &BY_CPU).expect_code(1);
    judge.judge("dir:/nowhere", "fillseq", &[]).expect_code(125);
    judge.judge(&judge.good, "nosuch", &[]).expect_code(255);
}

#[test]
#[ignore = "the judgment is that of CPU time, and the work that of exact cells"]
fn a_predicate_by_work_finds_a_commit_that_does_more() {
    if let Some(judge) = Judge::new(WORK) {
        judge.judge(&judge.slow, "fillseq", &BY_WORK).expect_code(1);
    }
}
