//! Effects whose cause is known, on real engines: does `assay compare` name it? And targets that are equal: does it name one?
//!
//! Each plan of `causes/` has two targets and five repeats, and is run and compared as a user would. Beside neighbors a
//! finding may say that it can't tell, but not name another cause.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use fs_err as fs;
use serde_json::Value;

use super::Setup;
use crate::builds::{self, ASSAY_BUILDS};
use crate::workspace::{Workspace, output, succeeds};

/// A difference between two targets, and the kinds of finding that name its cause.
struct Effect {
    name: &'static str,
    plan: &'static str,
    expected: &'static [&'static str],
    /// Kinds that are true of other steps.
    also: &'static [&'static str],
    /// What has to be fetched.
    spec: Option<&'static str>,
}

macro_rules! effect {
    ($name:literal, $expected:expr, $also:expr, $spec:expr) => {
        Effect {
            name: $name,
            plan: include_str!(concat!("causes/", $name, ".toml")),
            expected: &$expected,
            also: &$also,
            spec: $spec,
        }
    };
}

const EFFECTS: [Effect; 9] = [
    effect!("synchronous-commit", ["fsyncs"], [], None),
    effect!("sqlite-synchronous", ["fsyncs"], [], None),
    effect!("flush-log", ["fsyncs"], [], None),
    // A load waits for pages that are written back to make room.
    effect!("small-cache", ["reads"], ["locks", "writes"], None),
    effect!("jit", ["cpu"], [], None),
    effect!("no-index", ["cpu"], [], None),
    effect!("cpus", ["processor_wait"], [], None),
    // Its threads pass each commit on to each other: that is waiting for threads, or fsyncs shared by fewer commits.
    effect!(
        "log-writer-threads",
        ["locks", "fsyncs", "handover", "hidden_cost"],
        [],
        Some("debian:sid/mysql-server-core")
    ),
    // What reads for compaction is in the background: clients see its stalls.
    effect!(
        "compaction-readahead",
        ["reads", "write_stalls", "locks", "stall"],
        [],
        Some("rocksdb@8.6")
    ),
];

const EQUAL: Effect = effect!("equal", [], [], None);

/// Kinds of finding that name a cause of a change.
const CAUSES: [&str; 11] = [
    "cpu",
    "processor_wait",
    "reads",
    "writes",
    "fsyncs",
    "locks",
    "handover",
    "write_stalls",
    "stall",
    "level_shift",
    "hidden_cost",
];

/// Tries all effects while nothing else runs; false when one is not named, or equal targets have a cause.
pub fn quiet(setup: &Setup) -> Result<bool> {
    all(setup, true)
}

/// The same while other programs use 80 % of the processors: no wrong cause, and six of the effects named.
pub fn busy(setup: &Setup) -> Result<bool> {
    let done = AtomicBool::new(false);
    let neighbors = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        for seed in 0..neighbors {
            let done = &done;
            scope.spawn(move || burn(seed as u64, done));
        }
        let kept = all(setup, false);
        done.store(true, Ordering::Relaxed);
        kept
    })
}

/// Uses 80 % of a processor on average, in turns of 20 to 180 ms, until `done`.
fn burn(seed: u64, done: &AtomicBool) {
    let mut state = seed + 1;
    while !done.load(Ordering::Relaxed) {
        // The multiplier of Knuth's MMIX: what matters is that turns have no period.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let turn = Duration::from_millis(20 + (state >> 33) % 160);
        let began = now();
        while began.elapsed() < turn {
            std::hint::spin_loop();
        }
        std::thread::sleep(turn / 4);
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "how long to burn, not a measured time"
)]
fn now() -> Instant {
    Instant::now()
}

fn all(setup: &Setup, every_one: bool) -> Result<bool> {
    let (mut named, mut wrong) = (0, 0);
    for effect in &EFFECTS {
        let found = measure(setup, effect)?;
        let is_named = found
            .causes
            .iter()
            .any(|kind| effect.expected.contains(&kind.as_str()));
        let others = found.causes.iter().filter(|kind| {
            // Less or more CPU goes with nearly every change: as a finding of its own it is no wrong cause.
            let mut true_ones = effect.expected.iter().chain(effect.also);
            !true_ones.any(|it| it == kind) && *kind != "hidden_cost"
        });
        let others: Vec<&str> = others.map(String::as_str).collect();
        named += usize::from(is_named);
        wrong += usize::from(!others.is_empty());
        println!(
            "{:<22} {:<10} others: {}",
            effect.name,
            if is_named { "named" } else { "not named" },
            if others.is_empty() {
                "none".to_owned()
            } else {
                others.join(", ")
            }
        );
        for title in &found.titles {
            println!("    {title}");
        }
    }
    let (mut false_causes, mut false_tables) = (0, 0);
    for _ in 0..setup.round_count {
        let found = measure(setup, &EQUAL)?;
        false_causes += usize::from(!found.causes.is_empty());
        false_tables += usize::from(found.is_shown);
        for title in &found.titles {
            println!("    equal: {title}");
        }
    }
    println!(
        "{named} of {} effects named, {wrong} with another cause; {} runs of equal targets: {false_causes} with a cause, \
         {false_tables} with a verdict",
        EFFECTS.len(),
        setup.round_count
    );
    let enough = if every_one { EFFECTS.len() } else { 6 };
    Ok(named >= enough && wrong == 0 && false_causes == 0)
}

/// What a comparison says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// Kinds of the findings that name a cause.
    causes: Vec<String>,
    titles: Vec<String>,
    /// Some step is shown to be faster or slower.
    is_shown: bool,
}

fn measure(setup: &Setup, effect: &Effect) -> Result<Found> {
    let workspace = Workspace::here();
    let assay = &setup.programs()?.assay;
    let place = tempfile::tempdir()?;
    let builds = std::env::var_os(ASSAY_BUILDS).map_or_else(
        || workspace.target_directory().map(|it| it.join("builds")),
        |it| Ok(it.into()),
    )?;
    let command = |arguments: &[&str]| {
        let mut command = Command::new(assay);
        command.args(arguments).env(ASSAY_BUILDS, &builds);
        command
    };
    if let Some(spec) = effect.spec {
        output(&mut command(&["fetch", spec]))?;
    }
    let mut plan = effect.plan.to_owned();
    if plan.contains("@MARIADB@") {
        plan = plan.replace("@MARIADB@", &builds::mariadb(&workspace)?);
    }
    let path = |name: &str| place.path().join(name).display().to_string();
    let (plan_path, results) = (path(&format!("{}.toml", effect.name)), path("results"));
    fs::write(&plan_path, plan)?;
    let mut run = command(&[
        "run",
        &plan_path,
        "--results",
        &results,
        "--data",
        &path("data"),
    ]);
    run.stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    anyhow::ensure!(succeeds(&mut run)?, "the run of `{}` failed", effect.name);
    let run = only_entry(Path::new(&results))?;
    let compared = output(&mut command(&["compare", &run, "--format", "json"]))?;
    let compared = serde_json::from_str(&compared).context("the comparison is no JSON")?;
    Ok(found(&compared))
}

fn only_entry(folder: &Path) -> Result<String> {
    let entry = fs::read_dir(folder)?
        .next()
        .context("the run left no record")??;
    Ok(entry.path().display().to_string())
}

/// Reads `assay compare --format json`.
fn found(compared: &Value) -> Found {
    let texts = |rows: &Value, key: &str| -> Vec<String> {
        let rows = rows.as_array().into_iter().flatten();
        rows.filter_map(|row| Some(row[key].as_str()?.to_owned()))
            .collect()
    };
    let mut causes = texts(&compared["findings"], "kind");
    causes.retain(|kind| CAUSES.contains(&kind.as_str()));
    let of_throughput = compared["rows"].as_array().into_iter().flatten();
    let of_throughput: Vec<Value> = of_throughput
        .filter(|row| row["metric"] == "throughput")
        .cloned()
        .collect();
    let verdicts = texts(&Value::from(of_throughput), "verdict");
    Found {
        causes,
        titles: texts(&compared["findings"], "title"),
        is_shown: verdicts.iter().any(|it| it == "faster" || it == "slower"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn causes_are_read_and_what_names_none_is_not_one() {
        let compared = json!({
            "rows": [
                {"metric": "throughput", "verdict": "too_noisy"},
                {"metric": "cpupq", "verdict": "slower"},
            ],
            "findings": [
                {"kind": "fsyncs", "title": "b: slower: fsyncs"},
                {"kind": "host_busy", "title": "b: slower: too busy"},
            ],
        });
        let found = found(&compared);
        assert_eq!(found.causes, ["fsyncs"]);
        assert_eq!(found.titles.len(), 2);
        assert!(!found.is_shown);
    }
}
