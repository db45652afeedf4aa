//! Tests verdicts on real engines with known changes: an extension of PostgreSQL, a library that
//! MariaDB preloads and one around RocksDB burn a known time in each operation of one of two
//! targets, and runs that add repeats until they are decided must show it. Between equal targets,
//! nothing may be shown.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::Setup;
use super::planted_libraries::{Libraries, PlantedEngine};
use super::run::{Run, Verdict, verdicts};

/// The target without a change. Its build and its config have the same name.
const PLAIN: &str = "plain.plain";
/// The share of runs that may show a change that is not there, or rule out one that is.
const WRONG_SHARE: f64 = 0.05;
/// The smallest change that matters between equal targets: the default of plans.
const EFFECT_OF_EQUAL: f64 = 0.03;

/// The metrics in which a change of speed is looked for, and those of CPU time.
const RATES: [&str; 2] = ["throughput", "typical_rate"];
const CPU: [&str; 2] = ["own_cpu_us_per_op", "typical_cpu_us_per_op"];

/// A change that is planted, and where it is looked for.
pub struct Case {
    title: &'static str,
    engine: PlantedEngine,
    steps: Steps,
    /// The share by which an operation of the changed target takes more CPU time, of client and
    /// engine together; 0: equal targets.
    effect: f64,
    /// The time of a run.
    minutes: usize,
    /// The share of runs that must show the change.
    shown_share: f64,
}

/// The workload, and the step that is changed.
#[derive(Clone, Copy)]
enum Steps {
    /// Five tests of sysbench. Each statement is changed, which slows `point-query` most.
    FiveTests,
    /// Each commit of an insert or a delete in the Insert Benchmark's `l.i1`.
    Inserts,
    /// Each read of `readrandom`.
    ReadRandom,
}

/// The cases of a machine at rest.
pub const AT_REST: [Case; 6] = [
    Case {
        title: "PostgreSQL, one of five tests with 1% more CPU time",
        engine: PlantedEngine::Postgres,
        steps: Steps::FiveTests,
        effect: 0.01,
        minutes: 10,
        shown_share: 0.8,
    },
    Case {
        title: "PostgreSQL, one of five tests with 3% more CPU time",
        engine: PlantedEngine::Postgres,
        steps: Steps::FiveTests,
        effect: 0.03,
        minutes: 3,
        shown_share: 0.9,
    },
    Case {
        title: "PostgreSQL, inserts and deletes with 10% more CPU time",
        engine: PlantedEngine::Postgres,
        steps: Steps::Inserts,
        effect: 0.10,
        minutes: 10,
        shown_share: 0.8,
    },
    Case {
        title: "MariaDB, one of five tests with 1% more CPU time",
        engine: PlantedEngine::MariaDb,
        steps: Steps::FiveTests,
        effect: 0.01,
        minutes: 10,
        shown_share: 0.8,
    },
    Case {
        title: "RocksDB, reads with 1% more CPU time",
        engine: PlantedEngine::RocksDb,
        steps: Steps::ReadRandom,
        effect: 0.01,
        minutes: 10,
        shown_share: 0.8,
    },
    EQUAL,
];

/// The cases of a machine on which other programs work.
pub const BESIDE_OTHERS: [Case; 3] = [
    Case {
        title: "PostgreSQL, one of five tests with 2% more CPU time",
        engine: PlantedEngine::Postgres,
        steps: Steps::FiveTests,
        effect: 0.02,
        minutes: 10,
        shown_share: 0.8,
    },
    Case {
        title: "RocksDB, reads with 2% more CPU time",
        engine: PlantedEngine::RocksDb,
        steps: Steps::ReadRandom,
        effect: 0.02,
        minutes: 10,
        shown_share: 0.8,
    },
    EQUAL,
];

const EQUAL: Case = Case {
    title: "PostgreSQL, equal targets",
    engine: PlantedEngine::Postgres,
    steps: Steps::FiveTests,
    effect: 0.0,
    minutes: 10,
    shown_share: 0.0,
};

/// Runs each case as often as the setup says. Returns false if too few runs show a change, or too
/// many show a wrong one.
pub fn run(setup: &Setup, cases: &[Case]) -> Result<bool> {
    let mut measured: Vec<MeasuredCase<'_>> = Vec::new();
    for case in cases.iter().filter(|case| case.title.contains(&setup.only)) {
        let libraries = Libraries::new(setup, case.engine)?;
        measured.push(MeasuredCase { case, libraries, outcomes: Outcomes::default() });
    }
    // The cases in turn: a machine that is busy for a while is busy for all of them.
    for _ in 0..setup.round_count {
        for MeasuredCase { case, libraries, outcomes } in &mut measured {
            let trial = Trial::of(setup, case, libraries)?;
            trial.print(case);
            outcomes.add(case, &trial);
        }
    }

    let mut passed = true;
    for MeasuredCase { case, outcomes, .. } in &measured {
        passed &= outcomes.print(case);
    }
    Ok(passed)
}

/// A case, with what its runs need and how they ended.
struct MeasuredCase<'c> {
    case: &'c Case,
    libraries: Libraries,
    outcomes: Outcomes,
}

/// The numbers of a case's runs, by how they ended.
#[derive(Default)]
struct Outcomes {
    run_count: usize,
    /// Runs that show the planted change in throughput or in typical turns.
    shown: usize,
    /// Runs that show it there or in CPU time.
    shown_with_cpu: usize,
    /// Runs that show a change in the other direction, or between equal targets, or that rule out
    /// the planted change.
    wrong: usize,
    minutes: f64,
    /// Short runs of equal targets, from which the CPU time of an operation is known.
    equal_run_count: usize,
    /// Those of them that show a change in any metric.
    equal_runs_with_change: usize,
}

impl Outcomes {
    fn add(&mut self, case: &Case, trial: &Trial) {
        let of = |metrics: [&'static str; 2]| {
            trial.verdicts.iter().filter(move |row| metrics.contains(&row.metric.as_str()))
        };
        let is_slower = |row: &Verdict| row.word == "slower";
        let is_wrong = |row: &Verdict| {
            if case.effect > 0.0 {
                row.word == "faster" || row.word == "equal"
            } else {
                row.is_change()
            }
        };

        self.run_count += 1;
        self.minutes += trial.minutes;
        let is_shown = of(RATES).any(is_slower);
        self.shown += usize::from(is_shown);
        self.shown_with_cpu += usize::from(is_shown || of(CPU).any(is_slower));
        self.wrong += usize::from(of(RATES).any(is_wrong));

        if let Some(changes) = &trial.changes_of_equal {
            self.equal_run_count += 1;
            self.equal_runs_with_change += usize::from(!changes.is_empty());
        }
    }

    /// Prints the sum. Returns whether it is good enough.
    fn print(&self, case: &Case) -> bool {
        let Self { run_count, shown, shown_with_cpu, wrong, minutes, .. } = *self;
        let mean_minutes = minutes / run_count as f64;
        println!(
            "{}: {run_count} runs of {mean_minutes:.1} minutes: {shown} show the change in throughput or \
             in typical turns, {shown_with_cpu} there or in CPU time; {wrong} wrong",
            case.title
        );
        if self.equal_run_count > 0 {
            println!(
                "  of {} short runs of equal targets before these, {} show a change in any metric",
                self.equal_run_count, self.equal_runs_with_change
            );
        }

        let share = |count: usize| count as f64 / run_count as f64;
        // Few runs have no share as small as the bound: one of them may be wrong.
        let is_right = share(wrong) <= WRONG_SHARE || (run_count < 40 && wrong <= 1);
        let is_enough = share(shown_with_cpu) >= case.shown_share;
        is_right && is_enough
    }
}

/// One run of a case.
struct Trial {
    /// Those of the steps that the case changes, in [`RATES`] and [`CPU`].
    verdicts: Vec<Verdict>,
    minutes: f64,
    /// The changes that a short run of two equal targets showed before; `None` if there was none.
    changes_of_equal: Option<Vec<Verdict>>,
}

impl Trial {
    /// Measures the CPU time of an operation, plants the change, and compares both targets until
    /// they are decided.
    #[expect(clippy::disallowed_methods, reason = "minutes of a run, not a measured time")]
    fn of(setup: &Setup, case: &Case, libraries: &Libraries) -> Result<Self> {
        let plain = libraries.compile("plain", 0.0, 0.0)?;
        let mut burn_ns = 0.0;
        let mut changes_of_equal = None;
        if case.effect > 0.0 {
            let run = Run::of(setup, &plan(case, libraries, &plain, &plain, "repeats = 3"))?;
            burn_ns = case.effect * operation_ns(&run, case.engine, case.steps)?;

            let mut changes = verdicts(&run.json("compare")?)?;
            changes.retain(Verdict::is_change);
            changes_of_equal = Some(changes);
        }
        let (statement_ns, commit_ns) = match case.steps {
            Steps::Inserts => (0.0, burn_ns),
            Steps::FiveTests | Steps::ReadRandom => (burn_ns, 0.0),
        };
        let changed = libraries.compile("changed", statement_ns, commit_ns)?;

        // With a larger effect, a run would end as soon as all steps are equal within that.
        let effect = if case.effect > 0.0 { case.effect } else { EFFECT_OF_EQUAL };
        let repeats =
            format!("repeats = \"until decided\"\ntime = \"{}m\"\neffect = {effect}", case.minutes);
        let began = std::time::Instant::now();
        let run = Run::of(setup, &plan(case, libraries, &plain, &changed, &repeats))?;
        let minutes = began.elapsed().as_secs_f64() / 60.0;

        let mut verdicts = verdicts(&run.json("compare")?)?;
        verdicts.retain(|row| {
            let is_looked_at = case.effect == 0.0 || row.step == case.steps.step();
            is_looked_at && [RATES, CPU].concat().contains(&row.metric.as_str())
        });
        Ok(Self { verdicts, minutes, changes_of_equal })
    }

    fn print(&self, case: &Case) {
        print!("  {}: {:.1} min", case.title, self.minutes);
        print_verdicts(&self.verdicts);
        println!();

        if let Some(changes) = &self.changes_of_equal {
            print!("    equal targets before: {} changes", changes.len());
            print_verdicts(changes);
            println!();
        }
    }
}

fn print_verdicts(verdicts: &[Verdict]) {
    for Verdict { step, metric, word, ratio } in verdicts {
        print!("; {step} {metric} {:.3} {word}", ratio.unwrap_or(f64::NAN));
    }
}

impl Steps {
    /// Returns the step in which a change is looked for.
    fn step(self) -> &'static str {
        match self {
            Self::FiveTests => "point-query",
            Self::Inserts => "l.i1",
            Self::ReadRandom => "readrandom",
        }
    }
}

/// Returns the CPU time of an operation of the only client, there and in the engine, in
/// nanoseconds. On a quiet machine it is nearly the time of an operation. On a busy one, that time
/// has waits, of which a share would be a larger change.
fn operation_ns(run: &Run, engine: PlantedEngine, steps: Steps) -> Result<f64> {
    let step = run.step(steps.step())?;
    // A library works on the threads of its client.
    let threads: &[&str] = match engine {
        PlantedEngine::Postgres | PlantedEngine::MariaDb => {
            &["client_user_ns", "client_system_ns", "server_ns"]
        }
        PlantedEngine::RocksDb => &["client_user_ns", "client_system_ns"],
    };
    let cpu_ns: Option<f64> = threads.iter().map(|name| step["cpu"][name].as_f64()).sum();
    let cpu_ns = cpu_ns.context("the step's record lacks CPU times")?;
    let counts = step["ops"].as_object().context("the step's record has no operations")?;
    let operation_count: f64 = counts.values().filter_map(|count| count["ok"].as_f64()).sum();
    ensure!(operation_count > 0.0, "the step did no operations");
    Ok(cpu_ns / operation_count)
}

/// Returns a plan as `assay versus --load repeat` writes it, for two targets that differ in their
/// library.
fn plan(case: &Case, libraries: &Libraries, plain: &Path, changed: &Path, repeats: &str) -> String {
    let workload = workload_table(case.steps);
    let mut targets = libraries.target_tables(plain, changed);
    if matches!(case.engine, PlantedEngine::RocksDb) {
        targets += ONE_LOAD_FOR_BOTH_BUILDS;
    }
    format!(
        r#"
name = "planted"
base = "{PLAIN}"
clients = [1]
turns = "auto"
placement = "shuffled"
reuse = "repeat"
{repeats}
{workload}
checks = "off"
{targets}"#
    )
}

/// Two libraries share no load by themselves.
const ONE_LOAD_FOR_BOTH_BUILDS: &str = r#"
[[target]]
builds = ["plain"]
[[target]]
builds = ["changed"]
load-with = "plain.plain"
"#;

/// Returns the table of the workload.
fn workload_table(steps: Steps) -> &'static str {
    match steps {
        Steps::FiveTests => FIVE_TESTS,
        Steps::Inserts => INSERTS,
        Steps::ReadRandom => READ_RANDOM,
    }
}

/// Five tests of sysbench, as long as in a plan of `assay versus`.
const FIVE_TESTS: &str = r#"
[workload.sysbench]
tables = 1
rows = "200k"
warmup = "300ms"
read-time = "1s"
write-time = "1s"
steps = [
    "load", "settle", "point-query", "random-points.range100", "read-only.range100", "update-index", "insert",
]"#;

/// The Insert Benchmark up to the first step that inserts and deletes.
const INSERTS: &str = r#"
[workload.insert]
initial-rows = "100k"
write-rows = "100k"
steps = ["l.i0", "l.x", "l.i1"]"#;

/// Random reads of a database that fits in memory.
const READ_RANDOM: &str = r#"
[workload.kv]
keys = "500k"
key-size = 20
value-size = 400
read-time = "1s"
steps = ["fillseq", "flush", "drain", "readrandom"]"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(word: &str) -> Trial {
        let verdict = |metric: &str, word: &str| Verdict {
            step: "point-query".into(),
            metric: metric.into(),
            word: word.into(),
            ratio: Some(0.97),
        };
        Trial {
            verdicts: vec![verdict("throughput", word), verdict("own_cpu_us_per_op", "slower")],
            minutes: 1.0,
            changes_of_equal: Some(vec![verdict("wkbpi", "slower")]),
        }
    }

    #[test]
    fn a_planted_change_must_be_shown_and_not_ruled_out() {
        let [planted, .., equal] = &AT_REST;
        for (word, shown, wrong, wrong_if_equal) in [
            ("slower", 1, 0, 1),
            ("faster", 0, 1, 1),
            ("equal", 0, 1, 0),
            ("too noisy to say", 0, 0, 0),
        ] {
            let mut outcomes = Outcomes::default();
            outcomes.add(planted, &trial(word));
            assert_eq!((outcomes.shown, outcomes.wrong), (shown, wrong), "{word}");
            assert_eq!(outcomes.shown_with_cpu, 1);
            assert_eq!((outcomes.equal_run_count, outcomes.equal_runs_with_change), (1, 1));

            let mut outcomes = Outcomes::default();
            outcomes.add(equal, &trial(word));
            assert_eq!(outcomes.wrong, wrong_if_equal, "{word}");
        }
    }
}
