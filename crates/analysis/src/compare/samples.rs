//! Selects the values that are compared with each other: those of valid steps, with the reasons for
//! which others do not count.

use std::collections::BTreeMap;

use record::{CellKey, Status, StepKind};

use super::Sample;
use super::mean::{Block, Pair};
use super::metric::{THROUGHPUT, has_only_process_cpu, process_cpu, rounding, value};
use super::reason::{Absence, Reason, RepeatName};
use super::typical::{TurnMetric, has_few_turns};
use crate::figures::index::{NumberedRow, RowIndex, StepPlace};
use crate::figures::{
    Figures, Looks, Row, TYPICAL_CPU, TYPICAL_RATE, UnfinishedCell, run_label, step_figures,
};
use crate::order::distinct;

/// The figures, sorted for comparing.
pub(super) struct Samples<'a> {
    figures: &'a Figures,
    /// The rows by their places and targets.
    pub index: RowIndex<'a>,
    begun: BTreeMap<(usize, &'a CellKey), CellStart>,
    many_runs: bool,
}

/// The start of a cell.
#[derive(Clone, Copy)]
struct CellStart {
    /// The invocation that measured it.
    block: Block,
    /// 0 if the record does not say.
    unix_ns: u64,
}

/// A step of a target, with the place where it is compared.
#[derive(Clone, Copy)]
pub(super) struct TargetStep<'a> {
    pub place: StepPlace<'a>,
    pub target: &'a str,
}

/// The values of a target for one metric of one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    /// The values that count, by run and repeat.
    pub values: Vec<TimedSample>,
    /// The repeats that do not count, each with the reason.
    pub reasons: Vec<Reason>,
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
    /// The position of the measurement among all rows of the figures.
    pub index: OrderSpan,
    /// The invocation that measured it.
    pub block: Block,
    /// The time at which its cell began; `None` if the record does not say.
    pub begun: Option<OrderSpan>,
    /// It took turns within the step with the other targets of its repeat.
    pub in_turns: bool,
}

/// The positions of some cells in an order: the first, the last, and the mean of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OrderSpan {
    pub first: u64,
    pub mean: u64,
    pub last: u64,
}

impl OrderSpan {
    fn at(moment: u64) -> Self {
        Self { first: moment, mean: moment, last: moment }
    }

    /// Returns the span of several positions; `None` without any.
    fn of_all(spans: &[Self]) -> Option<Self> {
        let first = spans.iter().map(|span| span.first).min()?;
        let last = spans.iter().map(|span| span.last).max()?;
        // Relative to the first: nanoseconds since 1970 would overflow a sum.
        let sum: u64 = spans.iter().map(|span| span.mean - first).sum();
        Some(Self { first, mean: first + sum / spans.len() as u64, last })
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
        let ln_mean = all.iter().map(|value| value.sample.value.ln()).sum::<f64>() / count;
        let squares: f64 = all.iter().map(|value| value.rounding.powi(2)).sum();

        let positions: Vec<OrderSpan> = all.iter().map(|value| value.index).collect();
        // Clocks of several machines, or of several boots, cannot be compared.
        let of_one_block = all.iter().filter(|value| value.block == first.block);
        let times: Vec<OrderSpan> = of_one_block.filter_map(|value| value.begun).collect();
        let begun = if times.len() == all.len() { OrderSpan::of_all(&times) } else { None };

        Some(Self {
            sample: Sample { value: ln_mean.exp(), ..first.sample },
            rounding: squares.sqrt() / count,
            index: OrderSpan::of_all(&positions)?,
            block: first.block,
            begun,
            in_turns: all.iter().all(|value| value.in_turns),
        })
    }
}

impl<'a> Samples<'a> {
    pub fn new(figures: &'a Figures) -> Self {
        let mut begun = BTreeMap::new();
        for cell in &figures.begun {
            let block = Block { machine: cell.machine, run: cell.run, invocation: cell.invocation };
            let start = CellStart { block, unix_ns: cell.started_unix_ns };
            begun.insert((cell.run, &cell.cell), start);
        }

        Self {
            figures,
            index: RowIndex::new(figures),
            begun,
            many_runs: figures.rows.iter().any(|row| row.run > 0),
        }
    }

    /// Returns how often the results of the runs are looked at.
    pub fn looks(&self) -> Looks {
        self.figures.looks
    }

    /// Returns how often the results of a target are looked at. One that has no part in the last
    /// repeat was decided before: results have ended its repeats, and not the clock.
    pub fn looks_at(&self, place: StepPlace<'_>, target: &str) -> Looks {
        match self.looks() {
            Looks::TimeUp | Looks::TimeUpAgain => {}
            looks => return looks,
        }

        let cells = || self.figures.begun.iter().map(|begun| &begun.cell);
        let of_target = cells().filter(|cell| cell.target == target && cell.load() == place.load);
        let last = of_target.map(|cell| cell.repeat).max();
        let last_of_all = cells().map(|cell| cell.repeat).max();
        if last == last_of_all { self.looks() } else { Looks::Growing }
    }

    /// Returns the measured steps that are among the results, or all measured steps if none is.
    fn shown(&self) -> Vec<&'a Row> {
        let mut measured: Vec<&Row> = self.figures.rows.iter().collect();
        measured.retain(|row| row.kind != StepKind::Settle);

        if measured.iter().any(|row| row.reported) {
            measured.retain(|row| row.reported);
        }
        measured
    }

    /// Returns the places of comparisons without their steps, in the order of the figures.
    pub fn groups(&self) -> Vec<StepPlace<'a>> {
        distinct(self.shown().into_iter().map(|row| StepPlace::of(row).without_step()))
    }

    /// Returns the steps that are compared.
    pub fn steps(&self) -> Vec<&'a str> {
        distinct(self.shown().into_iter().map(|row| row.step.as_str()))
    }

    /// Returns every step of every target but the base, in the order of the figures: by variant and
    /// clients, then target, then step. Steps that are not among the results are left out,
    /// unless there are no others.
    pub fn comparisons(&self, base: &str) -> Vec<TargetStep<'a>> {
        let mut targets = distinct(self.shown().into_iter().map(|row| row.cell.target.as_str()));
        targets.retain(|target| *target != base);
        let steps = self.steps();

        let mut comparisons = Vec::new();
        for group in self.groups() {
            for &target in &targets {
                for &step in &steps {
                    let compared = TargetStep { place: StepPlace { step, ..group }, target };
                    if self.is_compared(compared, base) {
                        comparisons.push(compared);
                    }
                }
            }
        }
        comparisons
    }

    /// Returns whether a target has a step, or lacks one that the base has and the plan wants.
    fn is_compared(&self, TargetStep { place, target }: TargetStep<'_>, base: &str) -> bool {
        self.has_step(place, target)
            || (self.has_step(place, base) && self.is_planned(place, target))
    }

    fn has_step(&self, place: StepPlace<'_>, target: &str) -> bool {
        !self.index.numbered_rows(place, target).is_empty()
    }

    /// Returns whether the plan measures a target with these clients.
    fn is_planned(&self, place: StepPlace<'_>, target: &str) -> bool {
        self.has_unfinished(place, target) || self.index.has_target(place, target)
    }

    /// Returns every place of a step with each target that measured the step there, or has a cell
    /// there that did not end as planned.
    pub fn measured_at(&self, step: &'a str) -> Vec<TargetStep<'a>> {
        let of_rows = self.figures.rows.iter().map(|row| row.cell.target.as_str());
        let unfinished = self.figures.unfinished.iter().map(|cell| cell.cell.target.as_str());
        let targets = distinct(of_rows.chain(unfinished));

        let mut measured = Vec::new();
        for group in self.groups() {
            let place = StepPlace { step, ..group };
            for &target in &targets {
                if self.has_step(place, target) || self.has_unfinished(place, target) {
                    measured.push(TargetStep { place, target });
                }
            }
        }
        measured
    }

    /// Returns the cells of a target that did not end as planned.
    fn unfinished<'s>(
        &'s self,
        place: StepPlace<'s>,
        target: &'s str,
    ) -> impl Iterator<Item = &'a UnfinishedCell> + 's {
        let cells = self.figures.unfinished.iter();
        cells.filter(move |cell| cell.cell.target == target && cell.cell.load() == place.load)
    }

    fn has_unfinished(&self, place: StepPlace<'_>, target: &str) -> bool {
        self.unfinished(place, target).next().is_some()
    }

    /// Returns the targets whose threads cannot be told apart in any valid repeat, where every
    /// repeat of all these targets has the CPU of the server's whole process.
    pub fn without_threads<'t>(&self, place: StepPlace<'_>, targets: &[&'t str]) -> Vec<&'t str> {
        let mut without_threads = Vec::new();
        for &target in targets {
            let rows: Vec<&Row> = self.index.rows(place, target).filter(|row| row.valid).collect();
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
    pub fn side(&self, place: StepPlace<'_>, target: &str, metric: &str) -> Side {
        let mut side = Side::default();
        for &repeat in self.index.numbered_rows(place, target) {
            self.add_repeat(&mut side, repeat, metric);
        }

        for cell in self.unfinished(place, target) {
            let mut rows = self.index.rows(place, target);
            let has_row = rows.any(|row| row.run == cell.run && row.cell == cell.cell);
            if !has_row {
                side.invalid += 1;
                side.reasons.push(Reason::Absent {
                    repeat: self.repeat_name(target, cell.run, cell.cell.repeat),
                    why: Absence::StepMissing { status: cell.status },
                });
            }
        }

        // Tables say once which repeats have not begun, if others have.
        if !side.values.is_empty() {
            side.reasons.retain(|reason| !reason.is_of_unbegun());
        }

        side.values.sort_by_key(|value| (value.sample.run, value.sample.repeat));
        side
    }

    /// Adds the value of a repeat, or the reason for which it does not count.
    fn add_repeat(&self, side: &mut Side, repeat: NumberedRow<'a>, metric: &str) {
        let row = repeat.row;
        let measured = value(row, metric);
        let absent = |why: Absence| {
            let repeat = self.repeat_name(&row.cell.target, row.run, row.cell.repeat);
            Reason::Absent { repeat, why }
        };

        let is_valid = row.valid && row.status == Status::Complete;

        // A repeat that never has the metric is not missed for being invalid.
        if !is_valid && (measured.is_some() || metric == THROUGHPUT) {
            side.invalid += 1;
            let (status, reasons) = (row.status, row.reasons.clone());
            side.reasons.push(absent(Absence::Invalid { status, reasons }));
        } else if let Some(measured) = measured {
            side.values.push(self.timed(repeat, measured, rounding(row, metric, measured)));
        } else {
            side.not_applicable += 1;
            if let Some(needed) = step_figures::operations_needed(row, metric) {
                let metric = metric.to_owned();
                side.reasons.push(absent(Absence::TooFewOperations { metric, needed }));
            }
            if metric == TYPICAL_CPU && row.metric(TYPICAL_RATE) == Some(0.0) {
                side.reasons.push(Reason::IdleTurns);
            }
            if TurnMetric::named(metric).is_some() && has_few_turns(row) {
                side.reasons.push(Reason::FewTurns);
            }
        }
    }

    /// Returns a value of a repeat with the time of its measurement.
    fn timed(&self, repeat: NumberedRow<'a>, value: f64, rounding: f64) -> TimedSample {
        let row = repeat.row;
        let unknown = CellStart { block: Block { run: row.run, ..Block::default() }, unix_ns: 0 };
        let start = self.begun.get(&(row.run, &row.cell)).copied().unwrap_or(unknown);

        TimedSample {
            sample: Sample { run: row.run, repeat: row.cell.repeat, value },
            rounding,
            index: OrderSpan::at(repeat.number as u64),
            block: start.block,
            begun: (start.unix_ns > 0).then(|| OrderSpan::at(start.unix_ns)),
            in_turns: row.turns.is_some(),
        }
    }

    /// Returns the name of a repeat: `pg17.base, repeat 2`.
    pub fn repeat_name(&self, target: &str, run: usize, number: u32) -> RepeatName {
        // Where runs are compared, a target has the name of its run.
        let target = if self.many_runs && target != run_label(run) {
            format!("{target}, {}", run_label(run))
        } else {
            target.to_owned()
        };
        RepeatName { target, number }
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
    pub fn mean_of(sides: &[&Self]) -> Self {
        let Some((first, others)) = sides.split_first() else {
            return Self::default();
        };

        let mut rounds: Vec<Vec<TimedSample>> = Vec::new();
        for value in &first.values {
            let of_others: Option<Vec<TimedSample>> =
                others.iter().map(|side| side.of_repeat(&value.sample)).collect();
            if let Some(of_others) = of_others {
                rounds.push([vec![*value], of_others].concat());
            }
        }

        if rounds.is_empty() {
            let fewest = sides.iter().map(|side| side.values.len()).min();
            for rank in 0..fewest.unwrap_or(0) {
                rounds.push(sides.iter().map(|side| side.values[rank]).collect());
            }
        }

        Self {
            values: rounds.iter().filter_map(|round| TimedSample::of_all(round)).collect(),
            reasons: Vec::new(),
            invalid: sides.iter().map(|side| side.invalid).sum(),
            not_applicable: sides.iter().map(|side| side.not_applicable).sum(),
        }
    }

    pub fn of_repeat(&self, sample: &Sample) -> Option<TimedSample> {
        self.values.iter().find(|value| value.sample.is_of_repeat_of(sample)).copied()
    }
}
