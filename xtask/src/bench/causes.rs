//! Effects whose cause is known, on real engines: does `assay compare` name it? And targets that are equal: does it name one?
//!
//! Each plan of `causes/` has two targets and five repeats, and is run and compared as a user would. Beside neighbors a
//! finding may say that it can't tell, but not name another cause.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use fs_err as fs;
use serde_json::Value;

use super::Setup;
use super::run::{Run, fetch, mariadb};

/// Where the plans are. The head of each names the kinds of finding that are expected, those that are true of other steps,
/// and the build that has to be fetched.
const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bench/causes");
/// The plan whose targets are equal.
const EQUAL: &str = "equal.toml";

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
    all(setup, usize::MAX)
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
        let kept = all(setup, 6);
        done.store(true, Ordering::Relaxed);
        kept
    })
}

/// Uses 80 % of a processor on average, in turns of 20 to 180 ms, until `done`.
#[expect(
    clippy::disallowed_methods,
    reason = "how long to burn, not a measured time"
)]
fn burn(seed: u64, done: &AtomicBool) {
    let mut state = seed + 1;
    while !done.load(Ordering::Relaxed) {
        // The multiplier of Knuth's MMIX: what matters is that turns have no period.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let turn = Duration::from_millis(20 + (state >> 33) % 160);
        let began = Instant::now();
        while began.elapsed() < turn {
            std::hint::spin_loop();
        }
        std::thread::sleep(turn / 4);
    }
}

fn all(setup: &Setup, at_least: usize) -> Result<bool> {
    let mut names: Vec<String> = fs::read_dir(PLANS)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    names.sort();
    names.retain(|name| name != EQUAL);
    let (mut named, mut wrong) = (0, 0);
    for name in &names {
        let plan = fs::read_to_string(Path::new(PLANS).join(name))?;
        for build in head(&plan, "Build") {
            fetch(setup, build)?;
        }
        let (expected, also) = (head(&plan, "Expected"), head(&plan, "True of other steps"));
        let found = measure(setup, &plan)?;
        let causes = found.causes.iter().map(String::as_str);
        let (right, mut others): (Vec<&str>, Vec<&str>) =
            causes.partition(|kind| expected.contains(kind));
        // Less or more CPU goes with nearly every change: as a finding of its own it is no wrong cause.
        others.retain(|kind| !also.contains(kind) && *kind != "hidden_cost");
        named += usize::from(!right.is_empty());
        wrong += usize::from(!others.is_empty());
        println!("{name:<26} named: {right:?}, others: {others:?}");
        found.print_titles();
    }
    let equal = fs::read_to_string(Path::new(PLANS).join(EQUAL))?;
    let (mut false_causes, mut false_tables) = (0, 0);
    for _ in 0..setup.round_count {
        let found = measure(setup, &equal)?;
        false_causes += usize::from(!found.causes.is_empty());
        false_tables += usize::from(found.is_shown);
        println!("{EQUAL}");
        found.print_titles();
    }
    let (count, rounds) = (names.len(), setup.round_count);
    println!("{named} of {count} effects named, {wrong} with another cause");
    println!(
        "{rounds} runs of equal targets: {false_causes} with a cause, {false_tables} with a verdict"
    );
    Ok(named >= at_least.min(count) && wrong == 0 && false_causes == 0)
}

/// The words of a line at a plan's head.
fn head<'a>(plan: &'a str, label: &str) -> Vec<&'a str> {
    let line = |line: &'a str| {
        line.strip_prefix("# ")?
            .strip_prefix(label)?
            .strip_prefix(": ")
    };
    let words = plan.lines().find_map(line).unwrap_or_default();
    words.split_whitespace().collect()
}

/// What a comparison says.
struct Found {
    /// Kinds of the findings that name a cause.
    causes: Vec<String>,
    titles: Vec<String>,
    /// Some step is shown to be faster or slower.
    is_shown: bool,
}

impl Found {
    fn print_titles(&self) {
        for title in &self.titles {
            println!("    {title}");
        }
    }
}

fn measure(setup: &Setup, plan: &str) -> Result<Found> {
    let mut plan = plan.to_owned();
    if plan.contains("@MARIADB@") {
        plan = plan.replace("@MARIADB@", &mariadb(setup)?);
    }
    Ok(found(&Run::of(setup, &plan)?.json("compare")?))
}

/// Reads `assay compare --format json`.
fn found(compared: &Value) -> Found {
    let all = |list: &str| compared[list].as_array().cloned().unwrap_or_default();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let findings = all("findings");
    let mut causes: Vec<String> = findings.iter().map(|row| text(row, "kind")).collect();
    causes.retain(|kind| CAUSES.contains(&kind.as_str()));
    Found {
        causes,
        titles: findings.iter().map(|row| text(row, "title")).collect(),
        is_shown: all("rows").iter().any(|row| {
            let is_change = ["faster", "slower"].contains(&text(row, "verdict").as_str());
            row["metric"] == "throughput" && is_change
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_head_of_a_plan_is_read() {
        let plan = "# Why.\n# Expected: reads stall\nclients = [1]\n";
        assert_eq!(head(plan, "Expected"), ["reads", "stall"]);
        assert!(head(plan, "Build").is_empty());
        for entry in fs::read_dir(PLANS).unwrap() {
            let path = entry.unwrap().path();
            let expected = head(&fs::read_to_string(&path).unwrap(), "Expected").len();
            assert_eq!(expected == 0, path.ends_with(EQUAL), "{}", path.display());
        }
    }

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
