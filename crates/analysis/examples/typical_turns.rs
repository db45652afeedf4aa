//! Measures how often a comparison of targets in turns is right, by the shape of what disturbs the
//! turns: a table of `docs/validation.md`, through the same code as `assay compare`. `cargo xtask
//! bench typical-turns` runs it.

#![allow(clippy::print_stdout, reason = "it prints a table")]

#[path = "../tests/it/compare/machine.rs"]
#[allow(dead_code, reason = "the tests use what this does not")]
mod machine;
#[path = "../tests/it/random.rs"]
mod random;

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::ExitCode;

use analysis::compare::{CompareOptions, ComparedStep, THROUGHPUT, Verdict, compare};
use analysis::figures::{Figures, HalfBlock, Row, STEADINESS, TYPICAL_RATE};
use machine::{BASE, Random, started};

/// Simulated runs for each figure.
const RUNS: u32 = 1000;

/// Turns of each target in a step of four seconds.
const TURNS: u32 = 200;

/// The length of a turn, in seconds.
const TURN_SECONDS: f64 = 0.02;

/// The standard deviation of the logarithm of a turn's rate.
const TURN_NOISE: f64 = 0.04;

/// The standard deviation of the logarithm by which a start of a target differs from others.
const START_NOISE: f64 = 0.003;

/// The ratio of the target in the step that changed.
const PLANTED: f64 = 0.98;

/// The turns that a checkpoint takes.
const CHECKPOINT_TURNS: u32 = 4;

/// A disturbance of the turns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    /// Nothing but the noise of turns and starts.
    Quiet,
    /// Student's t with three degrees of freedom.
    HeavyTails,
    /// One turn of ten of either target loses half of its time or more.
    Neighbor,
    /// The same; in three repeats of ten, six turns of ten.
    BusyRepeats,
    /// Both get 20% slower until the step ends.
    Drift,
    /// The machine wanders: from turn to turn its level changes by 2%.
    Wandering,
    /// Half of the turns of either target are 5% slower.
    TwoModes,
    /// Half of the starts of either target are 3% slower, in all steps.
    ModesOfStarts,
    /// One turn of twenty of the target loses 80% of its time, and none of the base.
    StallsOfTarget,
    /// One turn of twenty of the base loses 80%, and three of the target.
    MoreStallsOfTarget,
    /// The last step has ten times the noise of turns.
    UnlikeSteps,
    /// Twelve steps, of which the last two have ten times the noise of turns and of starts.
    TwoUnlikeOfTwelve,
    /// 24 steps, of which the last three have five times the noise of turns and of starts.
    ThreeUnlikeOf24,
    /// All steps but the first have five times the noise of turns and of starts.
    OneQuietStep,
    /// Each step has twice the noise of turns and of starts that the one before has.
    GradedSteps,
    /// The starts of the last step differ ten times as much.
    UnlikeStarts,
    /// The starts of all steps but the first differ five times as much.
    OneStepOfEqualStarts,
    /// Twelve steps, in each of which each target does nothing in four turns that follow each other.
    CheckpointInEachStep,
    /// A turn has six operations, and ends with the last of them.
    LongOperations,
    /// In one repeat of three, the target does nothing in three turns of ten.
    StandsStill,
}

const SHAPES: [(&str, Shape); 20] = [
    ("noise of 4% in turns and 0.3% in starts", Shape::Quiet),
    ("heavy tails", Shape::HeavyTails),
    ("a neighbor takes half or more of one turn in ten", Shape::Neighbor),
    ("the same, and six in ten in three repeats of ten", Shape::BusyRepeats),
    ("both get 20% slower within the step", Shape::Drift),
    ("the machine wanders by 2% from turn to turn", Shape::Wandering),
    ("half of the turns are 5% slower", Shape::TwoModes),
    ("half of the starts are 3% slower", Shape::ModesOfStarts),
    ("the target stalls in one turn of 20", Shape::StallsOfTarget),
    ("the base stalls in one turn of 20, the target in three", Shape::MoreStallsOfTarget),
    ("one step of five has ten times the noise", Shape::UnlikeSteps),
    ("two steps of twelve have ten times the noise", Shape::TwoUnlikeOfTwelve),
    ("three steps of 24 have five times the noise", Shape::ThreeUnlikeOf24),
    ("four steps of five have five times the noise", Shape::OneQuietStep),
    ("each step has twice the noise of the one before", Shape::GradedSteps),
    ("the starts of one step of five differ ten times as much", Shape::UnlikeStarts),
    ("the starts of four steps of five differ five times as much", Shape::OneStepOfEqualStarts),
    ("each of twelve steps has a checkpoint of four turns", Shape::CheckpointInEachStep),
    ("six operations in a turn", Shape::LongOperations),
    ("in one repeat of three, the target stands still in three turns of ten", Shape::StandsStill),
];

impl Shape {
    /// Returns whether one target stalls more than the other.
    fn has_unequal_targets(self) -> bool {
        matches!(self, Self::StallsOfTarget | Self::MoreStallsOfTarget | Self::StandsStill)
    }

    fn step_count(self) -> usize {
        match self {
            Self::TwoUnlikeOfTwelve | Self::CheckpointInEachStep => 12,
            Self::ThreeUnlikeOf24 => 24,
            _ => 5,
        }
    }

    /// Returns how much more noise a step has than one of an ordinary table.
    fn noise_scale(self, step: usize) -> NoiseScale {
        let is_first = step == 0;
        match self {
            Self::UnlikeSteps if step == 4 => NoiseScale::both(10.0),
            Self::TwoUnlikeOfTwelve if step >= 10 => NoiseScale::both(10.0),
            Self::ThreeUnlikeOf24 if step >= 21 => NoiseScale::both(5.0),
            Self::OneQuietStep if !is_first => NoiseScale::both(5.0),
            Self::GradedSteps => NoiseScale::both(2.0_f64.powi(step as i32)),
            Self::UnlikeStarts if step == 4 => NoiseScale { of_turns: 1.0, of_starts: 10.0 },
            Self::OneStepOfEqualStarts if !is_first => NoiseScale { of_turns: 1.0, of_starts: 5.0 },
            _ => NoiseScale::both(1.0),
        }
    }
}

/// The factors of the noise of a step.
struct NoiseScale {
    of_turns: f64,
    of_starts: f64,
}

impl NoiseScale {
    fn both(factor: f64) -> Self {
        Self { of_turns: factor, of_starts: factor }
    }
}

const REPEATS: [u32; 3] = [3, 5, 10];

const TARGET: &str = "new.base";

/// A run of two targets in turns.
#[derive(Clone, Copy)]
struct Truth {
    shape: Shape,
    repeats: u32,
    /// Target / base in the first step, in each turn that nothing disturbs.
    ratio: f64,
}

impl Truth {
    fn measure(self, random: &mut Random) -> Figures {
        let mut figures = Figures::default();
        for repeat in 1..=self.repeats {
            let is_busy = random.uniform() < 0.3;
            let starts = [BASE, TARGET].map(|_| self.start(random));

            for step in 0..self.shape.step_count() {
                let machine = self.levels_of_machine(random);
                for (target, start) in [BASE, TARGET].into_iter().zip(starts) {
                    let is_changed = target == TARGET && step == 0;
                    let ratio = if is_changed { self.ratio } else { 1.0 };
                    let of_step =
                        START_NOISE * self.shape.noise_scale(step).of_starts * random.normal();
                    let rate = 10_000.0 * ratio * (start + of_step).exp();

                    let is_base = target == BASE;
                    let checkpoint = self.checkpoint(random);
                    let turns = machine.iter().zip(0..).map(|(level, number)| {
                        let own = if checkpoint.contains(&number) {
                            0.0
                        } else {
                            self.disturbed(is_base, is_busy, step, random)
                        };
                        self.turn(number, rate * level.exp() * own)
                    });
                    figures.rows.push(row(target, repeat, step, turns.collect()));
                }
            }

            for (number, target) in [BASE, TARGET].into_iter().enumerate() {
                let seconds = 86_400 + 100 * u64::from(repeat) + number as u64;
                figures.begun.push(started(target, repeat, seconds));
            }
        }
        figures
    }

    /// Returns the logarithm of what a start of a target has in all of its steps.
    fn start(self, random: &mut Random) -> f64 {
        let is_slow = self.shape == Shape::ModesOfStarts && random.uniform() < 0.5;
        if is_slow { -0.03 } else { 0.0 }
    }

    /// Returns the logarithm of what the machine does to both targets, turn by turn.
    fn levels_of_machine(self, random: &mut Random) -> Vec<f64> {
        let mut level = 0.0;
        let mut levels = Vec::new();
        for turn in 0..TURNS {
            match self.shape {
                Shape::Wandering => level += 0.02 * random.normal(),
                Shape::Drift => level = -0.2 * f64::from(turn) / f64::from(TURNS),
                _ => level = 0.05 * random.normal(),
            }
            levels.push(level);
        }
        levels
    }

    /// Returns the turns of a step in which a checkpoint lets a target do nothing.
    fn checkpoint(self, random: &mut Random) -> Range<u32> {
        if self.shape != Shape::CheckpointInEachStep {
            return 0..0;
        }
        random_turns(CHECKPOINT_TURNS, random)
    }

    /// Returns what happens to one target alone in a turn, as a factor of its rate.
    fn disturbed(self, is_base: bool, is_busy: bool, step: usize, random: &mut Random) -> f64 {
        let noise = (self.shape.noise_scale(step).of_turns * TURN_NOISE * random.normal()).exp();

        let stall_share = match (self.shape, is_base) {
            (Shape::StallsOfTarget, false) | (Shape::MoreStallsOfTarget, true) => 0.05,
            (Shape::MoreStallsOfTarget, false) => 0.15,
            _ => 0.0,
        };
        if random.uniform() < stall_share {
            return 0.2 * noise;
        }

        match self.shape {
            Shape::HeavyTails => (TURN_NOISE * random.student3()).exp(),
            Shape::Neighbor | Shape::BusyRepeats => {
                let is_so_busy = is_busy && self.shape == Shape::BusyRepeats;
                let share = if is_so_busy { 0.6 } else { 0.1 };
                let is_taken = random.uniform() < share;
                let kept = if is_taken { 0.5 * random.uniform() } else { 1.0 };
                kept * noise
            }
            Shape::StandsStill if is_busy && !is_base && random.uniform() < 0.3 => 0.0,
            Shape::TwoModes if random.uniform() < 0.5 => 0.95 * noise,
            _ => noise,
        }
    }

    fn turn(self, number: u32, rate: f64) -> HalfBlock {
        let operations_of_turn = 10_000.0 * TURN_SECONDS;
        let scale =
            if self.shape == Shape::LongOperations { 6.0 / operations_of_turn } else { 1.0 };
        let rate = scale * rate;

        // The operations in flight end after the time of the turn is up.
        let operations = (rate * TURN_SECONDS).ceil();
        let seconds = if operations > 0.0 { operations / rate } else { TURN_SECONDS };
        HalfBlock {
            block: number / 2,
            half: number % 2,
            seconds,
            operations: operations as u64,
            cpu_seconds: None,
        }
    }
}

/// Returns some turns of a step that follow each other.
fn random_turns(count: u32, random: &mut Random) -> Range<u32> {
    let first = (random.uniform() * f64::from(TURNS - count)) as u32;
    first..first + count
}

fn row(target: &str, repeat: u32, step: usize, turns: Vec<HalfBlock>) -> Row {
    let operations: u64 = turns.iter().map(|turn| turn.operations).sum();
    let seconds: f64 = turns.iter().map(|turn| turn.seconds).sum();
    let rate = operations as f64 / seconds;
    Row {
        seconds,
        turns: Some(TURNS),
        metrics: BTreeMap::from([
            ("qps", Some(rate)),
            // Of the base, only the level matters: that of the target is a multiple of it.
            (TYPICAL_RATE, Some(rate)),
            (STEADINESS, Some(1.0)),
        ]),
        half_blocks: turns,
        ..machine::row(target, repeat, &format!("s{step}"), rate)
    }
}

/// In how many of the simulated runs something is claimed, by metric.
#[derive(Default)]
struct Claims {
    /// Of steps that did not change.
    any_of_equal: BTreeMap<String, u32>,
    /// Of steps that did not change, by either rate.
    any_rate_of_equal: u32,
    /// Of the first step, that the target is slower.
    slower: BTreeMap<String, u32>,
    /// Of the first step, by either rate.
    slower_by_either: u32,
    /// The sum of the logarithms of the typical ratios of a step that did not change.
    ln_typical_sum: f64,
}

fn claims(truth: Truth) -> Claims {
    let options = CompareOptions { base: BASE.to_owned(), ..CompareOptions::default() };
    let mut random = Random::new(u64::from(truth.repeats));
    let mut claims = Claims::default();

    for _ in 0..RUNS {
        let compared = compare(&truth.measure(&mut random), &options);
        let changed: Vec<&ComparedStep> =
            compared.rows.iter().filter(|row| row.verdict.is_change()).collect();
        let is_of_equal = |row: &&ComparedStep| truth.ratio == 1.0 || row.step != "s0";
        let is_slower = |row: &&ComparedStep| row.step == "s0" && row.verdict == Verdict::Slower;

        let unchanged =
            compared.rows.iter().find(|row| row.metric == TYPICAL_RATE && row.step == "s1");
        let ratio = unchanged.and_then(|row| row.ratio);
        claims.ln_typical_sum += ratio.map_or(f64::NAN, f64::ln);

        let mut rates_of_equal = false;
        let mut slower_by_rate = false;
        for metric in [THROUGHPUT, TYPICAL_RATE, STEADINESS] {
            let is_rate = metric != STEADINESS;
            let of_metric = || changed.iter().copied().filter(|row| row.metric == metric);
            if of_metric().any(|row| is_of_equal(&row)) {
                *claims.any_of_equal.entry(metric.to_owned()).or_default() += 1;
                rates_of_equal |= is_rate;
            }
            if of_metric().any(|row| is_slower(&row)) {
                *claims.slower.entry(metric.to_owned()).or_default() += 1;
                slower_by_rate |= is_rate;
            }
        }
        claims.any_rate_of_equal += u32::from(rates_of_equal);
        claims.slower_by_either += u32::from(slower_by_rate);
    }
    claims
}

fn percent(count: u32) -> String {
    format!("{:.1}", 100.0 * f64::from(count) / f64::from(RUNS))
}

fn main() -> ExitCode {
    let has_honest_claims = print_claims();
    let has_no_luck = print_luck();
    if has_honest_claims && has_no_luck { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints the table of claims by shape; returns whether equal targets have as few as they should.
fn print_claims() -> bool {
    println!(
        "Two targets in turns, five steps unless it says otherwise. Equal targets: in how many % of the runs anything is called \
         different by throughput, typical rate, either of them, and steadiness. One step 2% slower: in how \
         many % that is shown.\n"
    );
    println!(
        "| what disturbs the turns | repeats | equal: throughput | typical rate | either | steadiness | typical ratio | 2% slower: throughput | typical rate | either |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");

    let mut is_kept = true;
    let chance = 3.0 * (0.05 * 0.95 / f64::from(RUNS)).sqrt();
    for (name, shape) in SHAPES {
        for repeats in REPEATS {
            let equal = claims(Truth { shape, repeats, ratio: 1.0 });
            let slower = claims(Truth { shape, repeats, ratio: PLANTED });
            let of_equal = |metric: &str| *equal.any_of_equal.get(metric).unwrap_or(&0);
            let of_slower = |metric: &str| percent(*slower.slower.get(metric).unwrap_or(&0));
            println!(
                "| {name} | {repeats} | {} | {} | {} | {} | {:.4} | {} | {} | {} |",
                percent(of_equal(THROUGHPUT)),
                percent(of_equal(TYPICAL_RATE)),
                percent(equal.any_rate_of_equal),
                percent(of_equal(STEADINESS)),
                (equal.ln_typical_sum / f64::from(RUNS)).exp(),
                of_slower(THROUGHPUT),
                of_slower(TYPICAL_RATE),
                percent(slower.slower_by_either),
            );
            let typical = f64::from(of_equal(TYPICAL_RATE)) / f64::from(RUNS);
            is_kept &= shape.has_unequal_targets() || typical <= 0.05 + chance;
        }
    }

    if !is_kept {
        println!("\nmore than 5% of the tables of equal targets claim another typical rate");
    }
    is_kept
}

/// A single step of two equal targets, of which only its own repeats and its turns know the noise.
#[derive(Clone, Copy)]
struct SingleStep {
    name: &'static str,
    /// The standard deviation of the logarithm by which a start differs from others.
    start_noise: f64,
    /// The correlation of a turn's noise with that of the turn before.
    correlation: f64,
    /// The number of turns, at some place in each step, in which a target does nothing.
    stalled_turns: u32,
}

/// Starts and turns do not differ but by chance.
const INDEPENDENT: SingleStep = SingleStep {
    name: "starts do not differ",
    start_noise: 0.0,
    correlation: 0.0,
    stalled_turns: 0,
};

const SINGLE_STEPS: [SingleStep; 6] = [
    INDEPENDENT,
    SingleStep { name: "starts differ as much as turns tell", start_noise: 0.003, ..INDEPENDENT },
    SingleStep { name: "starts differ four times as much", start_noise: 0.012, ..INDEPENDENT },
    SingleStep { name: "turns resemble the ones before", correlation: 0.6, ..INDEPENDENT },
    SingleStep { name: "turns make up for the ones before", correlation: -0.4, ..INDEPENDENT },
    SingleStep {
        name: "a checkpoint of four turns in each step",
        stalled_turns: CHECKPOINT_TURNS,
        ..INDEPENDENT
    },
];

const REPEATS_OF_SINGLE_STEPS: [u32; 5] = [2, 3, 4, 6, 10];

/// Repeats agree by luck if their spread is less than this share of what their turns tell.
const LUCKY_SHARE: f64 = 0.5;

impl SingleStep {
    fn measure(self, repeats: u32, random: &mut Random) -> Figures {
        let mut figures = Figures::default();
        for repeat in 1..=repeats {
            for (number, target) in [BASE, TARGET].into_iter().enumerate() {
                let rate = 10_000.0 * (self.start_noise * random.normal()).exp();
                figures.rows.push(row(target, repeat, 0, self.turns(rate, random)));

                let seconds = 86_400 + 100 * u64::from(repeat) + number as u64;
                figures.begun.push(started(target, repeat, seconds));
            }
        }
        figures
    }

    fn turns(self, rate: f64, random: &mut Random) -> Vec<HalfBlock> {
        // Each turn has the same variance, however much it resembles the one before.
        let own_share = (1.0 - self.correlation * self.correlation).sqrt();
        let mut noise = random.normal();
        let stalled = random_turns(self.stalled_turns, random);

        let mut turns = Vec::new();
        for number in 0..TURNS {
            noise = self.correlation * noise + own_share * random.normal();
            let rate =
                if stalled.contains(&number) { 0.0 } else { rate * (TURN_NOISE * noise).exp() };
            let operations = (rate * TURN_SECONDS).round();
            turns.push(HalfBlock {
                block: number / 2,
                half: number % 2,
                seconds: TURN_SECONDS,
                operations: operations as u64,
                cpu_seconds: None,
            });
        }
        turns
    }
}

/// The claims about equal targets in many runs.
#[derive(Default)]
struct Luck {
    claims: u32,
    /// The runs whose repeats agree by luck.
    lucky_runs: u32,
    claims_of_lucky_runs: u32,
    widths: Vec<f64>,
}

impl Luck {
    fn add(&mut self, compared: &ComparedStep) {
        let is_claim = compared.verdict.is_change();
        self.claims += u32::from(is_claim);

        let within = compared.error_within.unwrap_or(f64::NAN);
        if compared.spread.is_some_and(|spread| spread < LUCKY_SHARE * within) {
            self.lucky_runs += 1;
            self.claims_of_lucky_runs += u32::from(is_claim);
        }

        let interval = compared.interval;
        self.widths.extend(interval.map(|interval| (interval.high / interval.low).ln()));
    }

    fn median_width(&mut self) -> f64 {
        self.widths.sort_by(f64::total_cmp);
        self.widths[self.widths.len() / 2]
    }
}

/// Prints what becomes of repeats that agree by luck, without and with what their turns tell; returns
/// whether luck makes no more claims than it may.
fn print_luck() -> bool {
    println!(
        "\nOne step of two equal targets in turns: how often throughput is called different, among all runs \
         and among those whose repeats agree twice as well as their turns can tell. Before each slash, the \
         interval rests on the repeats alone.\n"
    );
    println!(
        "| noise | repeats | claims, % of all runs | runs that agree by luck, % | claims, % of these | interval wider by |"
    );
    println!("|---|---|---|---|---|---|");

    let mut is_kept = true;
    for step in SINGLE_STEPS {
        for repeats in REPEATS_OF_SINGLE_STEPS {
            let [mut alone, mut moderated] =
                [false, true].map(|moderate_spreads| luck(step, repeats, moderate_spreads));
            println!(
                "| {} | {repeats} | {} / {} | {} | {} / {} | {:.2} |",
                step.name,
                percent(alone.claims),
                percent(moderated.claims),
                percent(alone.lucky_runs),
                share(alone.claims_of_lucky_runs, alone.lucky_runs),
                share(moderated.claims_of_lucky_runs, moderated.lucky_runs),
                moderated.median_width() / alone.median_width(),
            );
            is_kept &= moderated.claims <= alone.claims;
        }
    }

    if !is_kept {
        println!("\nturns make claims that repeats alone do not make");
    }
    is_kept
}

fn luck(step: SingleStep, repeats: u32, moderate_spreads: bool) -> Luck {
    let options =
        CompareOptions { base: BASE.to_owned(), moderate_spreads, ..CompareOptions::default() };
    let mut random = Random::new(u64::from(repeats));
    let mut luck = Luck::default();

    for _ in 0..RUNS {
        let compared = compare(&step.measure(repeats, &mut random), &options);
        let throughput = compared.rows.iter().find(|row| row.metric == THROUGHPUT);
        luck.add(throughput.expect("the step has a throughput"));
    }
    luck
}

/// Returns a count as a percentage of another; a dash if that is zero.
fn share(count: u32, of: u32) -> String {
    if of == 0 {
        "-".to_owned()
    } else {
        format!("{:.0}", 100.0 * f64::from(count) / f64::from(of))
    }
}
