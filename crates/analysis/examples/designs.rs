//! Simulates designed experiments whose effects are known: how often effects are found, and how
//! often others are claimed, beside one factor at a time at the same cost. Prints the tables of
//! `docs/statistics.md`, through the same code as `assay compare`. `cargo xtask bench designs` runs
//! it.

#![allow(clippy::print_stdout, reason = "it prints tables")]

#[path = "../tests/it/compare/machine.rs"]
#[allow(dead_code, reason = "the tests use what this does not")]
mod machine;
#[path = "../tests/it/random.rs"]
mod random;

use std::process::ExitCode;

use analysis::compare::{CompareOptions, THROUGHPUT, Verdict, compare, designed_effects};
use analysis::figures::Figures;
use design::{Kind, Request, generate};
use machine::{BASE, Drift, Noise, Random, Truth};

/// The factors of each experiment, as many as 16 targets can tell.
const FACTORS: usize = 15;
/// The number of factors that have an effect.
const REAL: usize = 3;
/// The smallest and the largest effect.
const EFFECTS: [f64; 2] = [0.03, 0.10];
/// Simulated experiments for each line.
const EXPERIMENTS: u64 = 2000;
/// The accepted share of false effects among those that are shown.
const ERROR_RATE: f64 = 0.05;
/// The standard error of a share of that many experiments, three times.
const TOLERANCE: f64 = 0.015;

/// The noise and drift of machines.
const MACHINES: [(&str, Noise, Drift); 7] = [
    ("normal", Noise::Normal, Drift::None),
    ("normal, and 10% slower in the end, steadily", Noise::Normal, Drift::Linear),
    ("normal, and a level of 5% for each repeat", Noise::Normal, Drift::Levels),
    ("neighbors: 35% for each cell, AR(1)", Noise::Normal, Drift::Neighbors),
    ("heavy tails", Noise::HeavyTailed, Drift::None),
    ("skewed", Noise::Skewed, Drift::None),
    ("one value of ten is 30% less", Noise::Outliers, Drift::None),
];

/// The way in which effects are computed.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    /// From all targets of the design.
    Design,
    /// Each target is compared with the base.
    Comparison,
}

/// An experiment that is simulated again and again.
#[derive(Clone, Copy)]
struct Experiment {
    kind: Kind,
    method: Method,
    target_count: usize,
    repeats: u32,
    noise: Noise,
    drift: Drift,
    /// The noise, relative to 1%.
    spread: f64,
    /// The number of factors that have an effect.
    real: usize,
}

/// The results of experiments.
#[derive(Default)]
struct Shown {
    real: u32,
    real_of: u32,
    wrong: u32,
    /// The sum of the shares of false effects among those that are shown.
    wrong_shares: f64,
    experiments_with_wrong: u32,
}

fn main() -> ExitCode {
    let mut is_kept = true;
    println!(
        "{FACTORS} factors, {REAL} of which have effects of 3 to 10%, {EXPERIMENTS} experiments for each line:\n\n\
         | design | repeats | noise | real effects shown, % | false ones of those shown, % | without any effect: \
         experiments that show one, % |\n|---|---|---|---|---|---|"
    );
    for spread in [1.0, 2.0, 5.0] {
        for (kind, method, target_count, repeats) in [
            (Kind::Screening, Method::Design, 16, 1),
            (Kind::Screening, Method::Design, 16, 2),
            (Kind::Screening, Method::Design, 16, 3),
            (Kind::Screening, Method::Design, 32, 1),
            (Kind::Screening, Method::Design, 32, 2),
            (Kind::OneAtATime, Method::Design, 16, 2),
            (Kind::OneAtATime, Method::Design, 16, 3),
            (Kind::OneAtATime, Method::Comparison, 16, 2),
            (Kind::OneAtATime, Method::Comparison, 16, 3),
        ] {
            let experiment = Experiment {
                kind,
                method,
                target_count,
                repeats,
                noise: Noise::Normal,
                drift: Drift::None,
                spread,
                real: REAL,
            };
            is_kept &= line(&format!("{spread}%"), experiment);
        }
    }

    println!("\nA screening of 16 targets with 3 repeats and a noise of 1%:\n");
    println!(
        "| machine | repeats | | real, % | false, % | without any effect, % |\n|---|---|---|---|---|---|"
    );
    for (name, noise, drift) in MACHINES {
        let experiment = Experiment {
            kind: Kind::Screening,
            method: Method::Design,
            target_count: 16,
            repeats: 3,
            noise,
            drift,
            spread: 1.0,
            real: REAL,
        };
        is_kept &= line(name, experiment);
    }

    if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints the line of an experiment. Returns whether false effects are as rare as they should be.
fn line(machine: &str, experiment: Experiment) -> bool {
    let with = experiment.simulate();
    let without = Experiment { real: 0, ..experiment }.simulate();
    let experiments = f64::from(EXPERIMENTS as u32);
    let false_share = with.wrong_shares / experiments;
    let false_rate = f64::from(without.experiments_with_wrong) / experiments;
    let name = match experiment.method {
        Method::Design => format!("{} of {}", experiment.kind.name(), experiment.target_count),
        Method::Comparison => "comparisons with the base".to_owned(),
    };
    println!(
        "| {name} | {} | {machine} | {:.1} | {:.1} | {:.1} |",
        experiment.repeats,
        100.0 * f64::from(with.real) / f64::from(with.real_of),
        100.0 * false_share,
        100.0 * false_rate
    );
    // Comparisons of targets have an error rate for each target.
    experiment.method == Method::Comparison
        || (false_share <= ERROR_RATE + TOLERANCE && false_rate <= ERROR_RATE + TOLERANCE)
}

impl Experiment {
    fn simulate(&self) -> Shown {
        let level_counts = [2; FACTORS];
        let request = Request {
            kind: self.kind,
            level_counts: &level_counts,
            target_count: Some(self.target_count),
            excluded: &[],
            listed: &[],
        };
        let targets = generate(&request).expect("there is such a design").targets;

        let mut shown = Shown::default();
        for number in 0..EXPERIMENTS {
            let mut random = Random::new(number);
            let effects = effects(self.real, &mut random);
            let ratios: Vec<f64> =
                targets[1..].iter().map(|levels| ratio(levels, &effects)).collect();
            let truth = Truth {
                noise: self.noise,
                drift: self.drift,
                repeats: self.repeats,
                ratios: ratios.leak(),
                spread: self.spread,
                ..Truth::default()
            };
            let figures = truth.measure(&mut random);
            let changed = match self.method {
                Method::Design => changed_by_design(figures, &targets),
                Method::Comparison => changed_alone(&figures),
            };
            shown.add(&effects, &changed);
        }
        shown
    }
}

/// Returns the logarithm of each factor's effect: the first ones have one, in either direction.
fn effects(real: usize, random: &mut Random) -> Vec<f64> {
    let [least, most] = EFFECTS;
    let effect = |factor: usize| {
        if factor >= real {
            return 0.0;
        }
        let size = (1.0 + least + (most - least) * random.uniform()).ln();
        if random.uniform() < 0.5 { -size } else { size }
    };
    (0..FACTORS).map(effect).collect()
}

fn ratio(levels: &[usize], effects: &[f64]) -> f64 {
    let sum: f64 = levels.iter().zip(effects).map(|(level, effect)| *level as f64 * effect).sum();
    sum.exp()
}

/// Returns whether each factor is shown to have an effect.
fn changed_by_design(mut figures: Figures, targets: &[Vec<usize>]) -> Vec<bool> {
    let factors = (0..FACTORS).map(|factor| record::DesignFactor {
        name: format!("f{factor}"),
        levels: vec!["0".to_owned(), "1".to_owned()],
    });
    let names = targets.iter().enumerate().map(|(index, levels)| record::DesignedTarget {
        target: name_of(index),
        levels: levels.clone(),
        is_folded: false,
    });
    figures.design = Some(record::Design {
        kind: "screening".to_owned(),
        factors: factors.collect(),
        targets: names.collect(),
    });

    let options = CompareOptions { base: BASE.to_owned(), ..CompareOptions::default() };
    let found = designed_effects(&figures, &options).expect("the figures have a design");
    let mut changed = vec![false; FACTORS];
    for row in found.rows.iter().filter(|row| row.compared.metric == THROUGHPUT) {
        changed[row.factor] = matches!(row.compared.verdict, Verdict::Faster | Verdict::Slower);
    }
    changed
}

/// Returns whether each target, which differs in one factor, is shown to differ.
fn changed_alone(figures: &Figures) -> Vec<bool> {
    let options = CompareOptions { base: BASE.to_owned(), ..CompareOptions::default() };
    let compared = compare(figures, &options);
    let is_changed = |factor: usize| {
        let mut rows = compared.rows.iter().filter(|row| row.metric == THROUGHPUT);
        let row = rows.find(|row| row.cell.target == name_of(factor + 1));
        row.is_some_and(|row| matches!(row.verdict, Verdict::Faster | Verdict::Slower))
    };
    (0..FACTORS).map(is_changed).collect()
}

/// Returns the name that a simulated machine gives a target.
fn name_of(target: usize) -> String {
    if target == 0 { BASE.to_owned() } else { format!("new{target}.base") }
}

impl Shown {
    fn add(&mut self, effects: &[f64], changed: &[bool]) {
        let (mut real, mut wrong) = (0, 0);
        for (effect, is_changed) in effects.iter().zip(changed) {
            if *effect != 0.0 {
                self.real_of += 1;
                real += u32::from(*is_changed);
            } else {
                wrong += u32::from(*is_changed);
            }
        }
        self.real += real;
        self.wrong += wrong;
        self.experiments_with_wrong += u32::from(wrong > 0);
        self.wrong_shares += f64::from(wrong) / f64::from((real + wrong).max(1));
    }
}
