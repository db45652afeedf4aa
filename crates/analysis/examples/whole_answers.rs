//! Simulates tables of two equal targets with all of their costs, and counts the answers that claim
//! anything at all: a table of `docs/validation.md`, through the same code as `assay compare`.
//! `cargo xtask bench whole-answers` runs it.

#![allow(clippy::print_stdout, reason = "it prints a table")]

#[path = "../tests/it/compare/machine.rs"]
#[allow(dead_code, reason = "the tests use what this does not")]
mod machine;
#[path = "../tests/it/random.rs"]
mod random;

use std::collections::BTreeMap;
use std::process::ExitCode;

use analysis::compare::{CompareOptions, Effects, compare, costs};
use analysis::explain::{Answer, explain};
use analysis::figures::{Figures, Row};
use machine::{BASE, Random, started};

/// Simulated runs for each figure.
const RUNS: u32 = 400;

const STEPS: usize = 6;

const REPEATS: [u32; 3] = [3, 5, 10];

/// The fewest repeats for which the accepted share holds. A cost that takes one of two values by
/// chance takes the same one in all of three repeats too often.
const JUDGED_REPEATS: u32 = 5;

const TARGET: &str = "new.base";

/// The accepted share of answers that claim something.
const ERROR_RATE: f64 = 0.05;

/// The reason why the costs of an operation differ from repeat to repeat.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    /// Each cost has noise of its own.
    Independent,
    /// All costs of a cell depend on one level: that of the machine's other load.
    Correlated,
    /// Reads and syncs are few: about three in a step.
    FewCounts,
    /// Most steps read nothing in most repeats.
    Zeros,
    /// Syncs, writes and instructions of an operation are nearly the same in each repeat.
    Exact,
    /// A checkpoint falls into one step of three, and triples what it writes.
    Checkpoints,
    /// Student's t with three degrees of freedom.
    HeavyTails,
    /// Each group of costs has the noise of another shape.
    Mixed,
}

const SHAPES: [(&str, Shape); 8] = [
    ("noise of 1% in time, 3% in costs, each by itself", Shape::Independent),
    ("costs depend on one level of 5% for each cell", Shape::Correlated),
    ("three reads and syncs in a step", Shape::FewCounts),
    ("no reads in most steps", Shape::Zeros),
    ("writes, syncs and instructions are exact within 0.01%", Shape::Exact),
    ("a checkpoint in one step of three", Shape::Checkpoints),
    ("heavy tails", Shape::HeavyTails),
    ("all of these", Shape::Mixed),
];

/// The operations of a step.
const OPERATIONS: f64 = 20_000.0;

/// The claims of an answer, by what they are about.
#[derive(Default)]
struct Claims {
    any: u32,
    by_part: BTreeMap<&'static str, u32>,
}

const PARTS: [&str; 3] = ["throughput", "own CPU", "costs"];

/// Returns the number of events with this mean (Knuth), or its approximation by the normal.
fn poisson(mean: f64, random: &mut Random) -> f64 {
    if mean > 30.0 {
        return (mean + mean.sqrt() * random.normal()).round().max(0.0);
    }

    let limit = (-mean).exp();
    let (mut count, mut product) = (0.0, random.uniform());
    while product > limit {
        product *= random.uniform();
        count += 1.0;
    }
    count
}

impl Shape {
    /// Returns the factor by which noise of this size changes a value.
    fn noise(self, size: f64, random: &mut Random) -> f64 {
        let deviation = match self {
            Self::HeavyTails | Self::Mixed => random.student3(),
            _ => random.normal(),
        };
        (size * deviation).exp()
    }

    fn is(self, shape: Self) -> bool {
        self == shape || self == Self::Mixed
    }

    /// Returns the metrics of one step of a cell whose level is `level`.
    fn metrics(self, step: usize, level: f64, random: &mut Random) -> BTreeMap<&'static str, f64> {
        let level = if self.is(Self::Correlated) { level } else { 0.0 };
        let exact: f64 = if self.is(Self::Exact) { 0.0001 } else { 0.03 };
        let with_level = |value: f64, size: f64, random: &mut Random| {
            value * level.exp() * self.noise(size, random)
        };

        let own_cpu = with_level(40.0, 0.01, random);
        let server_cpu = own_cpu * 0.8 * self.noise(0.01, random);
        let cycles = with_level(120_000.0, 0.02, random);
        let instructions = 150_000.0 * self.noise(exact.min(0.01), random);

        let read_mean = if self.is(Self::Zeros) && !step.is_multiple_of(3) {
            0.3
        } else if self.is(Self::FewCounts) {
            3.0
        } else {
            4_000.0
        };
        let reads = poisson(read_mean, random) / OPERATIONS;
        let read_size = 16.0 * self.noise(0.03, random);

        let has_checkpoint = self.is(Self::Checkpoints) && random.uniform() < 0.33;
        let written = if has_checkpoint { 3.0 } else { 1.0 } * self.noise(exact, random);
        let sync_mean = if self.is(Self::FewCounts) { 3.0 } else { 20_000.0 };
        let syncs = match self {
            Self::Exact => self.noise(exact, random),
            _ => poisson(sync_mean, random) / sync_mean,
        };

        BTreeMap::from([
            ("qps", with_level(5_000.0, 0.01, random)),
            ("own_cpu_us_per_op", own_cpu),
            ("instructions_per_op", instructions),
            ("cpupq", with_level(45.0, 0.03, random)),
            ("server_cpu_us_per_op", server_cpu),
            ("client_cpu_us_per_op", own_cpu * 0.2 * self.noise(0.01, random)),
            ("cycles_per_op", cycles),
            ("ipc", instructions / cycles),
            ("cache_misses_per_op", with_level(300.0, 0.05, random)),
            ("branch_misses_per_op", with_level(500.0, 0.03, random)),
            ("tlb_misses_per_op", with_level(90.0, 0.05, random)),
            ("cs/o", with_level(1.5, 0.03, random)),
            ("r/o", reads),
            ("rKB/o", reads * read_size),
            ("wKB/o", 4.0 * written),
            ("fsyncs_per_commit", syncs),
            ("w_amp", 8.0 * written * self.noise(exact, random)),
            ("rareqsz", read_size),
            ("wareqsz", 12.0 * self.noise(0.03, random)),
            ("rawait", with_level(0.2, 0.1, random)),
            ("wawait", with_level(0.4, 0.1, random)),
            ("aqu-sz", with_level(1.1, 0.1, random)),
            ("util%", with_level(30.0, 0.05, random)),
        ])
    }

    fn measure(self, repeats: u32, random: &mut Random) -> Figures {
        let mut figures = Figures::default();
        for repeat in 1..=repeats {
            for (number, target) in [BASE, TARGET].into_iter().enumerate() {
                let level = 0.05 * random.normal();
                for step in 0..STEPS {
                    let metrics = self.metrics(step, level, random);
                    figures.rows.push(row(target, repeat, step, metrics));
                }
                // Odd repeats begin with the base, even ones with the target.
                let place = if repeat % 2 == 1 { number } else { 1 - number };
                let seconds = 86_400 + 100 * u64::from(repeat) + 40 * place as u64;
                figures.begun.push(started(target, repeat, seconds));
            }
        }
        figures
    }
}

fn row(target: &str, repeat: u32, step: usize, metrics: BTreeMap<&'static str, f64>) -> Row {
    Row {
        seconds: 4.0,
        metrics: metrics.into_iter().map(|(name, value)| (name, Some(value))).collect(),
        ..machine::row(target, repeat, &format!("s{step}"), 1.0)
    }
}

fn claims(shape: Shape, repeats: u32) -> Claims {
    let mut random = Random::new(u64::from(repeats));
    let mut claims = Claims::default();

    for _ in 0..RUNS {
        let figures = shape.measure(repeats, &mut random);
        let options = CompareOptions {
            base: BASE.to_owned(),
            metrics: costs(&figures),
            ..CompareOptions::default()
        };
        let compared = compare(&figures, &options);
        let findings = explain(&figures, &compared);
        let answer = Answer::new(&figures, &compared, &Effects::default(), &findings);

        let of_steps = answer.targets.iter().any(|target| target.largest().is_some());
        let parts = [of_steps, answer.hidden_cost.is_some(), !answer.shown_costs.is_empty()];
        for (part, is_claimed) in PARTS.into_iter().zip(parts) {
            *claims.by_part.entry(part).or_default() += u32::from(is_claimed);
        }
        claims.any += u32::from(parts.contains(&true));
    }
    claims
}

fn main() -> ExitCode {
    println!(
        "Two equal targets, {STEPS} steps with all of their costs: in how many % of the runs the answer claims \
         anything, and by what.\n"
    );
    println!("| costs | repeats | anything | {} |", PARTS.join(" | "));
    println!("|---|---|---|{}", "---|".repeat(PARTS.len()));

    let percent = |count: u32| format!("{:.1}", 100.0 * f64::from(count) / f64::from(RUNS));
    let most = ERROR_RATE + 3.0 * (ERROR_RATE * (1.0 - ERROR_RATE) / f64::from(RUNS)).sqrt();
    let mut is_kept = true;
    for (name, shape) in SHAPES {
        for repeats in REPEATS {
            let claims = claims(shape, repeats);
            let parts = PARTS.map(|part| percent(claims.by_part[part]));
            println!("| {name} | {repeats} | {} | {} |", percent(claims.any), parts.join(" | "));
            let is_judged = repeats >= JUDGED_REPEATS;
            is_kept &= !is_judged || f64::from(claims.any) / f64::from(RUNS) <= most;
        }
    }

    if is_kept {
        ExitCode::SUCCESS
    } else {
        println!("\nmore than 5% of the answers about equal targets claim something");
        ExitCode::FAILURE
    }
}
