//! Selects the values that are compared with each other: those of valid steps, and of repeats that
//! ran side by side.

use std::collections::BTreeMap;

use record::{CellKey, Status, StepKind};

use super::mean::{Block, Pair};
use super::metric::{THROUGHPUT, has_only_process_cpu, process_cpu, rounding, value};
use super::{Pairing, Sample};
use crate::figures::{Figures, Row, UnfinishedCell, run_label, step_figures};
use crate::order::distinct;

/// The workload, load and step of a comparison: all but its target and metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place<'a> {
    pub workload: &'a str,
    /// See [`CellKey::load`].
    pub load: (Option<&'a str>, u32),
    pub step: &'a str,
}

/// The figures, sorted for comparing.
pub(super) struct Samples<'a> {
    figures: &'a Figures,
    rows: BTreeMap<(Place<'a>, &'a str), Vec<(usize, &'a Row)>>,
    /// The invocation that measured each cell, and the time at which the cell began.
    begun: BTreeMap<(usize, &'a CellKey), (Block, u64)>,
    many_runs: bool,
}

/// The values of a target for one metric of one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    /// The values that count, by run and repeat.
    pub values: Vec<TimedSample>,
    /// The repeats that do not count, each with the reason.
    pub reasons: Vec<String>,
    /// The number of repeats that are invalid or ended before the step.
    pub invalid: usize,
    /// The number of repeats in which the metric is not applicable.
    pub not_applicable: usize,
}

/// A value and the time of its measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedSample {
    pub sample: Sample,
    /// The rounding error, as a share of the value.
    pub rounding: f64,
    /// Its position among all rows of the figures.
    index: OrderSpan,
    /// The invocation that measured it.
    block: Block,
    /// The time at which its cell began; `None` if the record does not say.
    begun: Option<OrderSpan>,
}

/// The positions of some cells in an order: the first, the last, and the mean of all.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OrderSpan {
    first: u64,
    mean: u64,
    last: u64,
}

impl OrderSpan {
    fn at(moment: u64) -> Self {
        Self { first: moment, mean: moment, last: moment }
    }

    /// Returns the span of several positions.
    fn of_all(all: impl Iterator<Item = Self> + Clone) -> Option<Self> {
        let first = all.clone().map(|it| it.first).min()?;
        let count = all.clone().count() as u64;
        let mean = all.clone().map(|it| it.mean - first).sum::<u64>() / count;
        Some(Self { first, mean: first + mean, last: all.map(|it| it.last).max()? })
    }
}

impl TimedSample {
    /// Returns a key that sorts values by machine and, on each, by their order.
    pub fn machine_and_order(&self) -> (usize, u64) {
        (self.block.machine, self.index.first)
    }

    /// Returns a pair of a fixed value, as the base, and this one.
    pub fn beside(&self, fixed: f64) -> Pair {
        let at = self.index.first as f64;
        Pair { base: fixed, value: self.sample.value, base_at: at, at, block: self.block }
    }

    /// Returns the geometric mean of the values of several targets in one repeat.
    fn of_all(all: &[Self]) -> Option<Self> {
        let first = all.first()?;
        let count = all.len() as f64;
        let ln_mean = all.iter().map(|it| it.sample.value.ln()).sum::<f64>() / count;
        let has_times = |it: &Self| it.block == first.block && it.begun.is_some();
        let begun = all.iter().all(has_times);
        let moments = || OrderSpan::of_all(all.iter().filter_map(|it| it.begun));
        Some(Self {
            sample: Sample { value: ln_mean.exp(), ..first.sample },
            rounding: all.iter().map(|it| it.rounding.powi(2)).sum::<f64>().sqrt() / count,
            index: OrderSpan::of_all(all.iter().map(|it| it.index))?,
            block: first.block,
            begun: begun.then(moments).flatten(),
        })
    }
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
    pub reasons: Vec<String>,
}

impl<'a> Samples<'a> {
    pub fn new(figures: &'a Figures) -> Self {
        let mut samples = Self {
            figures,
            rows: BTreeMap::new(),
            begun: BTreeMap::new(),
            many_runs: figures.rows.iter().any(|row| row.run > 0),
        };
        for (index, row) in figures.rows.iter().enumerate() {
            let rows = samples.rows.entry((place(row), &row.cell.target)).or_default();
            rows.push((index, row));
        }
        for cell in &figures.begun {
            let block = Block { machine: cell.machine, run: cell.run, invocation: cell.invocation };
            let begun = (block, cell.started_unix_ns);
            samples.begun.insert((cell.run, &cell.cell), begun);
        }
        samples
    }

    /// Returns the measured steps that are among the results, or all measured steps if none is.
    fn shown(&self) -> impl Iterator<Item = &'a Row> + use<'a> {
        let figures = self.figures;
        let measured = || {
            let rows = figures.rows.iter();
            rows.filter(|row| row.kind != StepKind::Settle)
        };
        let has_results = measured().any(|row| row.reported);
        measured().filter(move |row| row.reported || !has_results)
    }

    /// Returns the places of comparisons without their steps, in the order of the figures.
    pub fn groups(&self) -> Vec<Place<'a>> {
        distinct(self.shown().map(|row| place(row).without_step()))
    }

    /// Returns the steps that are compared.
    pub fn steps(&self) -> Vec<&'a str> {
        distinct(self.shown().map(|row| row.step.as_str()))
    }

    /// Returns every step of every target but the base, in the order of the figures: by variant and
    /// clients, then target, then step. Steps that are not among the results are left out,
    /// unless there are no others.
    pub fn comparisons(&self, base: &str) -> Vec<(Place<'a>, &'a str)> {
        let targets = distinct(self.shown().map(|row| row.cell.target.as_str()));
        let (groups, steps) = (self.groups(), self.steps());
        let mut comparisons = Vec::new();
        for group in groups {
            for &target in targets.iter().filter(|target| **target != base) {
                let places = steps.iter().map(|step| Place { step, ..group });
                let compared = places.filter(|place| {
                    let has = |target: &str| !self.numbered_rows(*place, target).is_empty();
                    has(target) || (has(base) && self.is_planned(*place, target))
                });
                comparisons.extend(compared.map(|place| (place, target)));
            }
        }
        comparisons
    }

    /// Returns every place of a step with each target that measured the step there, or has a cell
    /// there that did not end as planned.
    pub fn measured_at(&self, step: &'a str) -> Vec<(Place<'a>, &'a str)> {
        let of_rows = self.figures.rows.iter().map(|row| row.cell.target.as_str());
        let unfinished = self.figures.unfinished.iter().map(|it| it.cell.target.as_str());
        let targets = distinct(of_rows.chain(unfinished));
        let mut places = Vec::new();
        for group in self.groups() {
            let place = Place { step, ..group };
            let is_there = |target: &&str| {
                !self.numbered_rows(place, target).is_empty()
                    || self.unfinished(place, target).next().is_some()
            };
            places.extend(targets.iter().copied().filter(is_there).map(|target| (place, target)));
        }
        places
    }

    /// Returns whether the plan measures a target with these clients.
    fn is_planned(&self, place: Place<'a>, target: &'a str) -> bool {
        self.unfinished(place, target).next().is_some()
            || self.rows.keys().any(|(other, name)| {
                *name == target && other.without_step() == place.without_step()
            })
    }

    /// Returns the cells of a target that did not end as planned.
    fn unfinished(
        &self,
        place: Place<'a>,
        target: &str,
    ) -> impl Iterator<Item = &'a UnfinishedCell> {
        let cells = self.figures.unfinished.iter();
        cells.filter(move |it| it.cell.target == target && it.cell.load() == place.load)
    }

    /// Returns the rows of a target.
    pub fn rows(&self, place: Place<'a>, target: &str) -> impl Iterator<Item = &'a Row> + '_ {
        self.numbered_rows(place, target).iter().map(|(_, row)| *row)
    }

    fn numbered_rows(&self, place: Place<'a>, target: &str) -> &[(usize, &'a Row)] {
        // The key borrows from the figures; the base's name may come from elsewhere.
        self.rows
            .range((place, "")..)
            .take_while(|((at, _), _)| *at == place)
            .find(|((_, name), _)| *name == target)
            .map_or(&[], |(_, rows)| rows)
    }

    /// Returns the targets whose threads can't be told apart in any valid repeat, where every
    /// repeat of all these targets has the CPU of the server's whole process.
    pub fn without_threads<'t>(&self, place: Place<'_>, targets: &[&'t str]) -> Vec<&'t str> {
        let mut without_threads = Vec::new();
        for &target in targets {
            let rows: Vec<&Row> = self.rows(place, target).filter(|row| row.valid).collect();
            if rows.iter().any(|row| process_cpu(row).is_none()) {
                return Vec::new();
            }
            if !rows.is_empty() && rows.iter().all(|row| has_only_process_cpu(row)) {
                without_threads.push(target);
            }
        }
        without_threads
    }

    /// Returns the values of a target for a metric.
    pub fn side(&self, place: Place<'a>, target: &str, metric: &str) -> Side {
        let mut side = Side::default();
        for &(index, row) in self.numbered_rows(place, target) {
            let measured = value(row, metric);
            let valid = row.valid && row.status == Status::Complete;
            if !valid && (measured.is_some() || metric == THROUGHPUT) {
                side.invalid += 1;
                let reason = if row.reasons.is_empty() {
                    ended(Some(row.status)).to_owned()
                } else {
                    row.reasons.join("; ")
                };
                let name = self.repeat_name(target, row.run, row.cell.repeat);
                side.reasons.push(format!("{name} is left out: {reason}"));
            } else if let Some(value) = measured {
                let (run, repeat) = (row.run, row.cell.repeat);
                let unknown = Block { run, ..Block::default() };
                let begun = self.begun.get(&(run, &row.cell)).copied();
                let (block, ns) = begun.unwrap_or((unknown, 0));
                side.values.push(TimedSample {
                    sample: Sample { run, repeat, value },
                    rounding: rounding(row, metric, value),
                    index: OrderSpan::at(index as u64),
                    block,
                    begun: (ns > 0).then(|| OrderSpan::at(ns)),
                });
            } else {
                side.not_applicable += 1;
                let name = self.repeat_name(target, row.run, row.cell.repeat);
                let needed = step_figures::operations_needed(row, metric);
                side.reasons.extend(needed.map(|needed| {
                    format!("{name} is left out: {metric} needs at least {needed} operations")
                }));
            }
        }
        for cell in self.unfinished(place, target) {
            let mut rows = self.rows(place, target);
            let has_row = rows.any(|row| (row.run, &row.cell) == (cell.run, &cell.cell));
            if !has_row {
                side.invalid += 1;
                let name = self.repeat_name(target, cell.run, cell.cell.repeat);
                let ended = match cell.status {
                    Some(Status::Complete) => "has lost a part of its record",
                    status => ended(status),
                };
                side.reasons.push(format!("{name} does not have the step: its cell {ended}"));
            }
        }
        side.values.sort_by_key(|value| (value.sample.run, value.sample.repeat));
        side
    }

    /// Returns the name of a repeat: `pg17.base, repeat 2`.
    fn repeat_name(&self, target: &str, run: usize, repeat: u32) -> String {
        // Where runs are compared, a target has the name of its run.
        if self.many_runs && target != run_label(run) {
            format!("{target}, {}, repeat {repeat}", run_label(run))
        } else {
            format!("{target}, repeat {repeat}")
        }
    }

    /// Pairs repeats that ran next to each other, if base and target took turns on each machine:
    /// each pair ended before the next one began.
    pub fn matched(&self, base_name: &str, base: &Side, target: &str, side: &Side) -> Matched {
        let all = |side: &Side| side.values.iter().map(|value| value.sample).collect();
        let mut matched = Matched {
            pairing: Pairing::Independent,
            pairs: Vec::new(),
            machine_count: 0,
            base: all(base),
            values: all(side),
            rounding: (mean_square(base) + mean_square(side)).sqrt(),
            reasons: Vec::new(),
        };
        let machines = |values: &mut dyn Iterator<Item = &TimedSample>| {
            distinct(values.map(|value| value.block.machine)).len()
        };
        matched.machine_count = machines(&mut base.values.iter().chain(&side.values));
        if base.values.len().min(side.values.len()) < 2 {
            matched.pairing = Pairing::Single;
            return matched;
        }
        let Some((pairs, unpaired)) = pair_turns(&base.values, &side.values) else {
            return matched;
        };
        // Pairing is not worth the loss of half of the repeats.
        if pairs.len() < 3 && (pairs.len() < 2 || !unpaired.is_empty()) {
            return matched;
        }
        matched.pairing = Pairing::Paired;
        let partners: Vec<(usize, u32)> =
            pairs.iter().map(|(base, _)| (base.sample.run, base.sample.repeat)).collect();
        let paired = |sample: &Sample| partners.contains(&(sample.run, sample.repeat));
        matched.base.retain(paired);
        matched.values.retain(paired);
        for (is_of_base, sample) in unpaired {
            let name = if is_of_base { base_name } else { target };
            let name = self.repeat_name(name, sample.run, sample.repeat);
            matched
                .reasons
                .push(format!("{name} is left out: the other target has no repeat next to it"));
        }
        matched.machine_count = machines(&mut pairs.iter().map(|(base, _)| base));
        matched.pairs = with_times(&pairs);
        matched
    }
}

impl Side {
    /// Returns whether no repeat has the metric, not even an invalid one.
    pub fn has_nothing(&self) -> bool {
        self.values.is_empty() && self.invalid == 0
    }

    /// Returns the geometric mean of several targets in each repeat that all of them have. A zero
    /// makes the mean zero. Without common repeats, as in different runs, it combines the first
    /// values of all targets, then the second ones, and so on.
    pub fn mean_of(sides: &[Self]) -> Self {
        let [first, others @ ..] = sides else {
            return Self::default();
        };
        let mut rounds: Vec<Vec<TimedSample>> = Vec::new();
        for value in &first.values {
            let values = others.iter().map(|side| side.of_repeat(&value.sample));
            let Some(values) = values.collect::<Option<Vec<TimedSample>>>() else {
                continue;
            };
            rounds.push([vec![*value], values].concat());
        }
        if rounds.is_empty() {
            let fewest = sides.iter().map(|side| side.values.len()).min();
            for rank in 0..fewest.unwrap_or(0) {
                rounds.push(sides.iter().map(|side| side.values[rank]).collect());
            }
        }
        Self {
            values: rounds.iter().filter_map(|it| TimedSample::of_all(it)).collect(),
            reasons: Vec::new(),
            invalid: sides.iter().map(|side| side.invalid).sum(),
            not_applicable: sides.iter().map(|side| side.not_applicable).sum(),
        }
    }

    fn of_repeat(&self, sample: &Sample) -> Option<TimedSample> {
        let mut values = self.values.iter();
        let is_same =
            |it: &&TimedSample| (it.sample.run, it.sample.repeat) == (sample.run, sample.repeat);
        values.find(is_same).copied()
    }
}

/// Returns the ratio of each combination of two targets relative to the mean of all combinations,
/// as pairs. All combinations have the repeats `samples`. The time between the two repeats of a
/// pair is relative to the mean too.
pub(super) fn deviations(samples: &[Sample], sides: &[(Side, Side)]) -> Option<Vec<Vec<Pair>>> {
    let mut deviations = vec![Vec::new(); sides.len()];
    let mut rounds = Vec::new();
    for sample in samples {
        let of_round = sides
            .iter()
            .map(|(base, side)| Some((base.of_repeat(sample)?, side.of_repeat(sample)?)));
        rounds.push(of_round.collect::<Option<Vec<(TimedSample, TimedSample)>>>()?);
    }
    // One call, so that all times have the same start.
    let pairs = with_times(&rounds.concat());
    let mut rounds: Vec<&[Pair]> = pairs.chunks(sides.len().max(1)).collect();
    let start = |round: &&[Pair]| round.iter().map(|pair| pair.base_at).fold(f64::MAX, f64::min);
    rounds.sort_by(|a, b| {
        let by_machine = a[0].block.machine.cmp(&b[0].block.machine);
        by_machine.then(start(a).total_cmp(&start(b)))
    });
    for round in rounds {
        let mean = |figure: &dyn Fn(&Pair) -> f64| {
            round.iter().map(figure).sum::<f64>() / round.len() as f64
        };
        let ratio = |pair: &Pair| (pair.value / pair.base).ln();
        let (ln_ratio, delay) = (mean(&ratio), mean(&|pair| pair.at - pair.base_at));
        let level = mean(&|pair| f64::midpoint(pair.base.ln(), pair.value.ln()));
        let at = mean(&|pair| pair.base_at);
        for (pair, deviations) in round.iter().zip(&mut deviations) {
            deviations.push(Pair {
                base: level.exp(),
                value: (level + ratio(pair) - ln_ratio).exp(),
                base_at: at,
                at: at + (pair.at - pair.base_at) - delay,
                block: pair.block,
            });
        }
    }
    Some(deviations)
}

/// Returns the mean square of the rounding errors of the values.
fn mean_square(side: &Side) -> f64 {
    let squares = side.values.iter().map(|value| value.rounding.powi(2));
    squares.sum::<f64>() / side.values.len().max(1) as f64
}

fn place(row: &Row) -> Place<'_> {
    Place { workload: &row.workload, load: row.cell.load(), step: &row.step }
}

impl Place<'_> {
    /// Returns the place without its step.
    fn without_step(self) -> Self {
        Self { step: "", ..self }
    }
}

/// Returns the end of an unfinished cell.
fn ended(status: Option<Status>) -> &'static str {
    match status {
        None => "was never started",
        Some(Status::Failed) => "failed",
        Some(Status::Interrupted) => "was interrupted",
        Some(Status::Incomplete) => "did not finish",
        Some(Status::Complete) => "is not valid",
    }
}

/// The pairs, and the samples without a partner, each with `true` if it is the base's.
type Turns = (Vec<(TimedSample, TimedSample)>, Vec<(bool, Sample)>);

/// Returns the pairs in the order of machines and, on each, of time; `None` if base and target did
/// not take turns on a machine. Machines measure at the same time, and their clocks differ.
fn pair_turns(base: &[TimedSample], values: &[TimedSample]) -> Option<Turns> {
    let are_partners = |a: &TimedSample, b: &TimedSample| {
        (a.sample.run, a.sample.repeat, a.block) == (b.sample.run, b.sample.repeat, b.block)
    };
    let mut pairs: Vec<(TimedSample, TimedSample)> = Vec::new();
    let mut unpaired = Vec::new();
    for base_value in base {
        match values.iter().find(|value| are_partners(base_value, value)) {
            Some(value) => pairs.push((*base_value, *value)),
            None => unpaired.push((true, base_value.sample)),
        }
    }
    let others = values.iter().filter(|value| {
        let has_pair = |(_, paired): &(TimedSample, TimedSample)| paired.index == value.index;
        !pairs.iter().any(has_pair)
    });
    unpaired.extend(others.map(|value| (false, value.sample)));

    let have_times =
        pairs.iter().all(|(base, value)| base.begun.is_some() && value.begun.is_some());
    let at = |value: &TimedSample| match value.begun.filter(|_| have_times) {
        Some(times) => times,
        None => value.index,
    };
    let first = |(base, value): &(TimedSample, TimedSample)| at(base).first.min(at(value).first);
    let last = |(base, value): &(TimedSample, TimedSample)| at(base).last.max(at(value).last);
    let machine = |(base, _): &(TimedSample, TimedSample)| base.block.machine;
    pairs.sort_by_key(|pair| (machine(pair), first(pair)));
    let mut of_machines = pairs.chunk_by(|a, b| machine(a) == machine(b));
    let took_turns =
        of_machines.all(|pairs| pairs.windows(2).all(|two| last(&two[0]) < first(&two[1])));
    took_turns.then_some((pairs, unpaired))
}

/// Returns the pairs with the times at which their cells began, or their positions if the record
/// has no times.
fn with_times(pairs: &[(TimedSample, TimedSample)]) -> Vec<Pair> {
    let both = || pairs.iter().flat_map(|(base, value)| [base, value]);
    let start = both().map(|value| value.begun.map(|times| times.first)).min();
    let at = |value: &TimedSample| match (start.flatten(), value.begun) {
        (Some(start), Some(times)) => (times.mean - start) as f64 / 1e9,
        _ => value.index.mean as f64,
    };
    let pair = |(base, value): &(TimedSample, TimedSample)| Pair {
        base: base.sample.value,
        value: value.sample.value,
        base_at: at(base),
        at: at(value),
        block: base.block,
    };
    pairs.iter().map(pair).collect()
}
