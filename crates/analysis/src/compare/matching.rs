//! Matches the repeats of a base with those of a target. Noise that lasts longer than a repeat
//! cancels out between two that ran next to each other, so pairs show smaller changes.

use super::mean::{Pair, mean};
use super::reason::{Absence, Reason};
use super::samples::{OrderSpan, Samples, Side, TimedSample};
use super::{Pairing, Sample};
use crate::order::distinct;

/// The values of a target with its name.
#[derive(Clone, Copy)]
pub(super) struct NamedSide<'s> {
    pub name: &'s str,
    pub side: &'s Side,
}

/// The values of a base and of a target.
#[derive(Clone)]
pub(super) struct BothSides {
    pub base: Side,
    pub target: Side,
}

/// The values that are compared with each other.
pub(super) struct Matched {
    pub pairing: Pairing,
    /// The pairs of [`Pairing::Paired`], in the order of machines and, on each, of time; empty for
    /// other pairings.
    pub pairs: Vec<Pair>,
    /// The number of machines that measured the values that count.
    pub machine_count: usize,
    pub base: Vec<Sample>,
    pub values: Vec<Sample>,
    /// The standard deviation that rounding adds to the logarithm of a ratio.
    pub rounding: f64,
    pub reasons: Vec<Reason>,
}

impl Matched {
    /// Matches repeats that ran next to each other, if base and target took turns on each machine:
    /// each pair ended before the next one began.
    pub fn new(samples: &Samples<'_>, base: NamedSide<'_>, target: NamedSide<'_>) -> Self {
        let (base_values, values) = (&base.side.values, &target.side.values);
        let mut matched = Self {
            pairing: Pairing::Independent,
            pairs: Vec::new(),
            machine_count: machine_count(base_values.iter().chain(values)),
            base: base_values.iter().map(|value| value.sample).collect(),
            values: values.iter().map(|value| value.sample).collect(),
            rounding: (mean_square(base.side) + mean_square(target.side)).sqrt(),
            reasons: Vec::new(),
        };

        if base_values.len().min(values.len()) < 2 {
            matched.pairing = Pairing::Single;
            return matched;
        }

        if are_of_different_runs(&matched.base, &matched.values) {
            matched.compare_runs();
            return matched;
        }

        let Some(turns) = Turns::find(base_values, values) else {
            return matched;
        };

        // Pairing is not worth the loss of half of the repeats.
        if turns.pairs.len() < 3 && (turns.pairs.len() < 2 || !turns.unpaired.is_empty()) {
            return matched;
        }

        let has_partner = |sample: &Sample| {
            turns.pairs.iter().any(|pair| pair.base.sample.is_of_repeat_of(sample))
        };
        matched.base.retain(has_partner);
        matched.values.retain(has_partner);

        for Unpaired { is_of_base, sample, why } in &turns.unpaired {
            let name = if *is_of_base { base.name } else { target.name };
            let repeat = samples.repeat_name(name, sample.run, sample.repeat);
            matched.reasons.push(Reason::Absent { repeat, why: why.clone() });
        }

        matched.pairing = Pairing::Paired;
        matched.machine_count = machine_count(turns.pairs.iter().map(|pair| &pair.base));
        matched.pairs = with_times(&turns.pairs);
        matched
    }
}

/// The fewest runs of each side that are compared with each other.
const RUNS_MIN: usize = 3;

/// Returns whether no run has values of both sides.
pub(super) fn are_of_different_runs(base: &[Sample], values: &[Sample]) -> bool {
    !base.iter().any(|base| values.iter().any(|value| value.run == base.run))
}

impl Matched {
    /// Makes each run one value. All repeats of a run share its night, its load and the state of its
    /// machine, so they say nothing about how runs differ; too few runs have no interval.
    fn compare_runs(&mut self) {
        let runs = [&self.base, &self.values].map(|side| means_of_runs(side));
        let fewest = runs.iter().map(Vec::len).min().unwrap_or_default();
        if fewest < RUNS_MIN {
            self.pairing = Pairing::Single;
            self.reasons.push(Reason::OtherRuns { run_count: fewest });
            return;
        }

        [self.base, self.values] = runs;
    }
}

/// Returns the geometric mean of each run, as that of its first repeat. Values that have no logarithm
/// are compared otherwise, so they stay as they are.
fn means_of_runs(values: &[Sample]) -> Vec<Sample> {
    if values.iter().any(|value| value.value <= 0.0) {
        return values.to_vec();
    }

    let mut means = Vec::new();
    for run in distinct(values.iter().map(|value| value.run)) {
        let of_run: Vec<&Sample> = values.iter().filter(|value| value.run == run).collect();
        let logarithms: Vec<f64> = of_run.iter().map(|value| value.value.ln()).collect();
        means.push(Sample { value: mean(&logarithms).exp(), ..*of_run[0] });
    }
    means
}

fn machine_count<'v>(values: impl Iterator<Item = &'v TimedSample>) -> usize {
    distinct(values.map(|value| value.block.machine)).len()
}

/// Returns the mean square of the rounding errors of the values.
fn mean_square(side: &Side) -> f64 {
    let squares = side.values.iter().map(|value| value.rounding.powi(2));
    squares.sum::<f64>() / side.values.len().max(1) as f64
}

/// A repeat of a base and the repeat of a target that ran next to it.
#[derive(Clone, Copy)]
struct TimedPair {
    base: TimedSample,
    value: TimedSample,
}

/// A repeat without a partner.
struct Unpaired {
    is_of_base: bool,
    sample: Sample,
    why: Absence,
}

impl Unpaired {
    /// Returns a repeat that has no partner among those of the other target.
    fn new(is_of_base: bool, value: &TimedSample, others: &[TimedSample]) -> Self {
        let why = Absence::without_partner(value, others);
        Self { is_of_base, sample: value.sample, why }
    }
}

impl Absence {
    /// Returns why a repeat has no partner among those of the other target.
    pub(super) fn without_partner(value: &TimedSample, others: &[TimedSample]) -> Self {
        match others.iter().find(|other| other.sample.is_of_repeat_of(&value.sample)) {
            Some(other) => Self::MeasuredApart { is_in_turns: value.in_turns || other.in_turns },
            None => Self::Unpaired,
        }
    }
}

/// The repeats of a base and a target that took turns.
struct Turns {
    /// The pairs in the order of machines and, on each, of time. Machines measure at the same
    /// time, and their clocks differ.
    pairs: Vec<TimedPair>,
    unpaired: Vec<Unpaired>,
}

impl Turns {
    /// Returns the repeats in their order; `None` if base and target did not take turns on a
    /// machine.
    fn find(base: &[TimedSample], values: &[TimedSample]) -> Option<Self> {
        let mut turns = Self::partners(base, values);
        turns.sort();
        turns.were_taken().then_some(turns)
    }

    /// Returns pairs of one repeat that one invocation measured.
    fn partners(base: &[TimedSample], values: &[TimedSample]) -> Self {
        let mut turns = Self { pairs: Vec::new(), unpaired: Vec::new() };

        for base in base {
            let partner = values.iter().find(|value| {
                value.sample.is_of_repeat_of(&base.sample) && value.block == base.block
            });
            match partner {
                Some(value) => turns.pairs.push(TimedPair { base: *base, value: *value }),
                None => turns.unpaired.push(Unpaired::new(true, base, values)),
            }
        }

        for value in values {
            if !turns.pairs.iter().any(|pair| pair.value.index == value.index) {
                turns.unpaired.push(Unpaired::new(false, value, base));
            }
        }
        turns
    }

    /// Sorts pairs by their times, or by their positions if a record has no times.
    fn sort(&mut self) {
        let have_times = self.have_times();
        self.pairs.sort_by_key(|pair| (pair.machine(), pair.first(have_times)));
    }

    /// Returns whether each pair on a machine ended before the next one began.
    fn were_taken(&self) -> bool {
        let have_times = self.have_times();
        self.pairs.chunk_by(|a, b| a.machine() == b.machine()).all(|pairs| {
            pairs.windows(2).all(|two| two[0].last(have_times) < two[1].first(have_times))
        })
    }

    fn have_times(&self) -> bool {
        self.pairs.iter().all(|pair| pair.base.begun.is_some() && pair.value.begun.is_some())
    }
}

impl TimedPair {
    /// Returns the value whose time is that of the target. Targets that took turns within the step
    /// were measured at the same time, though one was started before the other.
    fn timed_as(&self) -> &TimedSample {
        if self.base.in_turns && self.value.in_turns { &self.base } else { &self.value }
    }

    fn machine(&self) -> usize {
        self.base.block.machine
    }

    fn first(&self, have_times: bool) -> u64 {
        let [base, value] = self.spans(have_times);
        base.first.min(value.first)
    }

    fn last(&self, have_times: bool) -> u64 {
        let [base, value] = self.spans(have_times);
        base.last.max(value.last)
    }

    /// Returns the times of base and target, or their positions without times.
    fn spans(&self, have_times: bool) -> [OrderSpan; 2] {
        [self.base, self.value]
            .map(|value| value.begun.filter(|_| have_times).unwrap_or(value.index))
    }
}

/// Returns the pairs with the times at which their cells began, or their positions if the record
/// has no times.
fn with_times(pairs: &[TimedPair]) -> Vec<Pair> {
    let values = pairs.iter().flat_map(|pair| [pair.base, pair.value]);
    // `None` is the least: one cell without a time takes away the start.
    let start = values.map(|value| value.begun.map(|times| times.first)).min().flatten();

    let timed = pairs.iter().map(|pair| Pair {
        base: pair.base.sample.value,
        value: pair.value.sample.value,
        base_at: time_since(start, &pair.base),
        at: time_since(start, pair.timed_as()),
        block: pair.base.block,
    });
    timed.collect()
}

/// Returns the seconds since `start`, or the position if there are no times.
fn time_since(start: Option<u64>, value: &TimedSample) -> f64 {
    match (start, value.begun) {
        (Some(start), Some(times)) => (times.mean - start) as f64 / 1e9,
        _ => value.index.mean as f64,
    }
}

/// Returns the ratio of each combination of two targets relative to the mean of all combinations,
/// as pairs; `None` if a combination lacks one of the repeats `samples`. The time between the two
/// repeats of a pair is relative to the mean too.
pub(super) fn deviations(samples: &[Sample], combinations: &[BothSides]) -> Option<Vec<Vec<Pair>>> {
    let mut timed = Vec::new();
    for sample in samples {
        for sides in combinations {
            let base = sides.base.of_repeat(sample)?;
            timed.push(TimedPair { base, value: sides.target.of_repeat(sample)? });
        }
    }

    // One call, so that all times have the same start.
    let pairs = with_times(&timed);

    let mut rounds: Vec<&[Pair]> = pairs.chunks(combinations.len().max(1)).collect();
    rounds.sort_by(|a, b| {
        let by_machine = a[0].block.machine.cmp(&b[0].block.machine);
        by_machine.then(start_of(a).total_cmp(&start_of(b)))
    });

    let mut deviations = vec![Vec::new(); combinations.len()];
    for round in rounds {
        let of_round = relative_to_mean(round);
        for (pair, deviations) in of_round.into_iter().zip(&mut deviations) {
            deviations.push(pair);
        }
    }
    Some(deviations)
}

fn start_of(round: &[Pair]) -> f64 {
    round.iter().map(|pair| pair.base_at).fold(f64::MAX, f64::min)
}

/// Returns the pairs of one repeat relative to their mean.
fn relative_to_mean(round: &[Pair]) -> Vec<Pair> {
    let ln_ratio = mean_over(round, ln_ratio_of);
    let delay = mean_over(round, |pair| pair.at - pair.base_at);
    let level = mean_over(round, |pair| f64::midpoint(pair.base.ln(), pair.value.ln()));
    let at = mean_over(round, |pair| pair.base_at);

    let relative = round.iter().map(|pair| Pair {
        base: level.exp(),
        value: (level + ln_ratio_of(pair) - ln_ratio).exp(),
        base_at: at,
        at: at + (pair.at - pair.base_at) - delay,
        block: pair.block,
    });
    relative.collect()
}

fn ln_ratio_of(pair: &Pair) -> f64 {
    (pair.value / pair.base).ln()
}

fn mean_over(round: &[Pair], figure: impl Fn(&Pair) -> f64) -> f64 {
    round.iter().map(figure).sum::<f64>() / round.len() as f64
}
