//! Tests findings on real engines: `assay compare` must name the known cause of an effect, and none
//! between equal targets.
//!
//! Each plan of `causes/` has two targets and five repeats, and is run and compared as a user
//! would. On a busy machine a finding may say that it cannot tell, but must not name another cause.

use std::path::Path;

use anyhow::Result;
use fs_err as fs;
use serde_json::Value;

use super::run::{Run, fetch, mariadb, verdicts};
use super::{Setup, neighbor};

/// The folder of the plans. The comments at the top of each name the expected kinds of findings,
/// kinds that are true of other steps, and the build to fetch.
const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bench/causes");
/// The plan whose targets are equal.
const EQUAL: &str = "equal.toml";

/// The kinds of findings that name a cause of a change.
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

/// Tests all effects while nothing else runs. Returns false if a cause is not named, or equal
/// targets have one.
pub fn quiet(setup: &Setup) -> Result<bool> {
    test_all(setup, usize::MAX)
}

/// Tests all effects while other threads use 80% of the processors. No cause may be wrong, and six
/// must be named.
pub fn busy(setup: &Setup) -> Result<bool> {
    neighbor::beside(0.8, || test_all(setup, 6))
}

/// Tests all effects, at least `named_min` of which must be named.
fn test_all(setup: &Setup, named_min: usize) -> Result<bool> {
    let mut names = Vec::new();
    for entry in fs::read_dir(PLANS)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != EQUAL {
            names.push(name);
        }
    }
    names.sort();

    let (mut named, mut misnamed) = (0, 0);
    for name in &names {
        let plan = fs::read_to_string(Path::new(PLANS).join(name))?;
        for build in head(&plan, "Build") {
            fetch(setup, build)?;
        }

        let (expected, elsewhere) = (head(&plan, "Expected"), head(&plan, "True of other steps"));
        let comparison = measure(setup, &plan)?;
        let causes = comparison.causes.iter().map(String::as_str);
        let (right, mut wrong): (Vec<&str>, Vec<&str>) =
            causes.partition(|kind| expected.contains(kind));
        // Nearly every change also changes the CPU time, so such a finding is not wrong.
        wrong.retain(|kind| !elsewhere.contains(kind) && *kind != "hidden_cost");

        named += usize::from(!right.is_empty());
        misnamed += usize::from(!wrong.is_empty());
        println!("{name:<26} right: {right:?}, wrong: {wrong:?}");
        comparison.print_titles();
    }

    // Where nothing differs, nothing may be found.
    let equal = fs::read_to_string(Path::new(PLANS).join(EQUAL))?;
    let (mut false_causes, mut false_verdicts) = (0, 0);
    for _ in 0..setup.round_count {
        let comparison = measure(setup, &equal)?;
        false_causes += usize::from(!comparison.causes.is_empty());
        false_verdicts += usize::from(comparison.has_verdict);
        println!("{EQUAL}");
        comparison.print_titles();
    }

    let (count, rounds) = (names.len(), setup.round_count);
    println!("{named} of {count} effects with the right cause, {misnamed} with a wrong one");
    println!(
        "{rounds} runs of equal targets: {false_causes} with a cause, {false_verdicts} with a verdict"
    );
    Ok(named >= named_min.min(count) && misnamed == 0 && false_causes == 0)
}

/// Returns the words of a labeled comment at the top of a plan.
fn head<'a>(plan: &'a str, label: &str) -> Vec<&'a str> {
    let line = |line: &'a str| line.strip_prefix("# ")?.strip_prefix(label)?.strip_prefix(": ");
    let words = plan.lines().find_map(line).unwrap_or_default();
    words.split_whitespace().collect()
}

struct Comparison {
    /// The kinds of findings that name a cause.
    causes: Vec<String>,
    titles: Vec<String>,
    /// Some step has the verdict faster or slower.
    has_verdict: bool,
}

impl Comparison {
    fn print_titles(&self) {
        for title in &self.titles {
            println!("    {title}");
        }
    }
}

/// Runs a plan, and compares its targets.
fn measure(setup: &Setup, plan: &str) -> Result<Comparison> {
    let mut plan = plan.to_owned();
    if plan.contains("@MARIADB@") {
        plan = plan.replace("@MARIADB@", &mariadb(setup)?);
    }
    comparison(&Run::of(setup, &plan)?.json("compare")?)
}

/// Reads `assay compare --format json`.
fn comparison(json: &Value) -> Result<Comparison> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let findings = json["findings"].as_array().cloned().unwrap_or_default();
    let mut causes: Vec<String> = findings.iter().map(|row| text(row, "kind")).collect();
    causes.retain(|kind| CAUSES.contains(&kind.as_str()));
    Ok(Comparison {
        causes,
        titles: findings.iter().map(|row| text(row, "title")).collect(),
        has_verdict: verdicts(json)?
            .iter()
            .any(|verdict| verdict.metric == "throughput" && verdict.is_change()),
    })
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
    fn only_findings_that_name_a_cause_are_causes() {
        let json = json!({
            "compared": {"rows": [
                {"step": "l.i1", "metric": "throughput", "verdict": "too noisy to say"},
                {"step": "l.i1", "metric": "cpupq", "verdict": "slower"},
            ]},
            "findings": [
                {"kind": "fsyncs", "title": "b: slower: fsyncs"},
                {"kind": "host_busy", "title": "b: slower: too busy"},
            ],
        });
        let comparison = comparison(&json).unwrap();
        assert_eq!(comparison.causes, ["fsyncs"]);
        assert_eq!(comparison.titles.len(), 2);
        assert!(!comparison.has_verdict);
    }
}
