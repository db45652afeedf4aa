//! CPU profiles: the cost of each function per operation, and the functions whose cost changed.
//!
//! A profile says which share of the samples was in a function. The share times the step's CPU per
//! operation, as the repeats without a profiler measured it, is the function's cost.
//! `docs/profiles.md` explains the intervals.

mod changes;
mod cost;

use std::borrow::Cow;

use record::{CellKey, StepProfile};
use serde::Serialize;
use words::{CellKind, Stacks};

use crate::figures::index::{RowIndex, TargetPlace};
use crate::figures::{Figures, ProfiledStep, Row, throughput};
use crate::order::distinct;
use crate::parallel::map_parallel;
use changes::difference;
use cost::{DISPERSION, Mean, TargetProfile};

/// Profiles with fewer samples than this show no change: a short step has phases, of which few
/// samples see one or another.
const SAMPLES_MIN_TOTAL: u64 = 100;

/// The costs of functions in one step of a target and of its base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedProfile {
    /// The target's cells, in all repeats.
    pub cell: CellKey,
    /// The step.
    pub step: String,
    /// The base's profile.
    pub base: ProfileTotals,
    /// The target's profile.
    pub target: ProfileTotals,
    /// The functions that were compared, which the error rate covers.
    pub function_count: usize,
    /// The number of those whose change is shown.
    pub shown_count: usize,
    /// The functions with the largest changes: first those whose change is shown.
    pub functions: Vec<FunctionDifference>,
    /// The function in which most of the step's change is; `None` if no function has much of it.
    pub named: Option<NamedFunction>,
}

/// The function in which most of a step's change is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedFunction {
    /// The name of the function.
    pub name: String,
    /// The nearest function around it that both targets have.
    pub caller: Option<String>,
    /// The change of its cost, with all functions that it calls, in microseconds per operation.
    pub difference_us: f64,
}

/// The profile of a step of one target, in all profiled repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProfileTotals {
    /// CPU of the profiled processes per operation, in microseconds, in the repeats without a
    /// profiler.
    pub cpu_us_per_op: f64,
    /// The standard error of `cpu_us_per_op`; 0 with one repeat.
    pub cpu_us_per_op_error: f64,
    /// The event that was sampled.
    pub event: String,
    /// The way in which callers were found: `fp`, `dwarf` or `lbr`.
    pub call_graph: String,
    /// The number of samples.
    pub samples: u64,
    /// The variance of a share of the samples over that of counting.
    pub dispersion: f64,
    /// The share of samples in functions without a symbol.
    pub unknown_share: f64,
    /// The share of samples that were dropped.
    pub lost_share: f64,
    /// Operations per second with the profiler, relative to those without it.
    pub relative_throughput: Option<f64>,
}

impl ProfileTotals {
    /// Returns true if the samples can show a change. One measured repeat says nothing about the
    /// noise of CPU.
    pub fn is_enough(&self) -> bool {
        self.samples >= SAMPLES_MIN_TOTAL && self.cpu_us_per_op_error > 0.0
    }
}

/// The cost of a function in two targets, in microseconds of CPU per operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionDifference {
    /// The name of the function.
    pub name: String,
    /// The function alone.
    pub own: CostDifference,
    /// The function with all functions that it calls.
    pub inclusive: CostDifference,
}

/// A cost in two targets, in microseconds per operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CostDifference {
    /// In the base.
    pub base_us: f64,
    /// In the target.
    pub target_us: f64,
    /// The target's minus the base's.
    pub difference_us: f64,
    /// The half-width of the interval around the difference, which holds for all functions
    /// together.
    pub margin_us: f64,
    /// The interval excludes 0, and there are enough samples and repeats to say so.
    pub is_shown: bool,
}

/// The repeats of a step of a target.
struct ProfileRepeats<'a> {
    /// Those with a profiler that are valid and have samples.
    profiled: Vec<&'a ProfiledStep>,
    /// Those without a profiler that are valid.
    measured: Vec<&'a Row>,
}

impl<'a> ProfileRepeats<'a> {
    fn of(figures: &'a Figures, index: &RowIndex<'a>, profiled: TargetPlace<'_>) -> Self {
        let has_samples = |step: &&ProfiledStep| step.row.valid && step.stacks.total() > 0;
        let steps = figures.profiled.iter().filter(|step| TargetPlace::of(&step.row) == profiled);
        let rows = index.rows(profiled.place, profiled.target);
        Self {
            profiled: steps.filter(has_samples).collect(),
            measured: rows.filter(|row| row.valid).collect(),
        }
    }

    /// Returns the CPU time per operation of the repeats without a profiler; `None` if no repeat
    /// knows it.
    fn cpu_us(&self) -> Option<Mean> {
        let costs: Vec<f64> = self.measured.iter().filter_map(|row| profiled_cpu_us(row)).collect();
        Mean::of(&costs)
    }

    /// Returns the figures of the profile; `None` without samples or without a measured cost.
    fn totals(&self) -> Option<ProfileTotals> {
        let cpu = self.cpu_us()?;
        let first = &self.profiled.first()?.profile;
        let samples = self.sum(|profile| profile.samples);
        let lost = self.sum(|profile| profile.lost);

        let with = mean_throughput(self.profiled.iter().map(|step| &step.row));
        let without = mean_throughput(self.measured.iter().copied());

        Some(ProfileTotals {
            cpu_us_per_op: cpu.value,
            cpu_us_per_op_error: cpu.variance.sqrt(),
            event: first.event.clone(),
            call_graph: first.call_graph.clone(),
            samples,
            // Several profiled repeats show by themselves how much they differ.
            dispersion: if self.profiled.len() == 1 { DISPERSION } else { 1.0 },
            unknown_share: self.sum(|profile| profile.unknown) as f64 / samples.max(1) as f64,
            lost_share: lost as f64 / (samples + lost).max(1) as f64,
            relative_throughput: with.zip(without).map(|(with, without)| with / without),
        })
    }

    fn sum(&self, count: impl Fn(&StepProfile) -> u64) -> u64 {
        self.profiled.iter().map(|step| count(&step.profile)).sum()
    }
}

fn mean_throughput<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<f64> {
    let rates: Vec<f64> = rows.filter_map(throughput).collect();
    Some(Mean::of(&rates)?.value)
}

/// Compares the profiles of all targets with those of `base`, step by step. At most `error_rate` of
/// equal steps show a function that changed.
pub(super) fn compare_profiles(
    figures: &Figures,
    index: &RowIndex<'_>,
    base: &str,
    error_rate: f64,
) -> Vec<ComparedProfile> {
    let reported = figures.profiled.iter().filter(|step| step.row.reported);
    let mut places = distinct(reported.map(|step| TargetPlace::of(&step.row)));
    places.retain(|profiled| profiled.target != base);

    let compared = map_parallel(&places, |&profiled| {
        let of_base = TargetPlace { target: base, ..profiled };
        let of_base = TargetProfile::read(&ProfileRepeats::of(figures, index, of_base))?;
        let of_target = TargetProfile::read(&ProfileRepeats::of(figures, index, profiled))?;

        Some(difference(
            profiled.cell(CellKind::Measured),
            profiled.place.step,
            &of_base,
            &of_target,
            error_rate,
        ))
    });
    compared.into_iter().flatten().collect()
}

/// Returns the cost of the CPU time of the profiled processes per operation: of the server, or of
/// the whole process with an embedded engine.
pub fn profiled_cpu_us(row: &Row) -> Option<f64> {
    let embedded = || {
        let background = row.metric("background_cpu_us_per_op").unwrap_or(0.0);
        Some(row.metric("own_cpu_us_per_op")? + background)
    };
    row.metric("server_cpu_us_per_op").or_else(embedded)
}

/// The profile of a step of a target, all its profiled repeats together.
#[derive(Clone, Debug)]
pub struct MergedProfile<'a> {
    /// The target's cells, in all repeats.
    pub cell: CellKey,
    /// The step.
    pub step: String,
    /// The figures of the profile; `None` if no repeat without a profiler is valid.
    pub totals: Option<ProfileTotals>,
    /// The samples per second of each busy processor.
    pub frequency_hz: u32,
    /// The samples.
    pub stacks: Cow<'a, Stacks>,
}

/// Returns the profiles of all steps that are valid and have samples, in the order of the plan.
pub fn merged_profiles(figures: &Figures) -> Vec<MergedProfile<'_>> {
    let index = RowIndex::new(figures);
    let mut all = Vec::new();
    for profiled in distinct(figures.profiled.iter().map(|step| TargetPlace::of(&step.row))) {
        let repeats = ProfileRepeats::of(figures, &index, profiled);
        let Some((first, others)) = repeats.profiled.split_first() else {
            continue;
        };

        let mut stacks = Cow::Borrowed(&first.stacks);
        for other in others {
            stacks.to_mut().merge(&other.stacks);
        }
        all.push(MergedProfile {
            cell: profiled.cell(CellKind::Measured),
            step: profiled.place.step.to_owned(),
            totals: repeats.totals(),
            frequency_hz: first.profile.frequency_hz,
            stacks,
        });
    }
    all
}

#[cfg(test)]
mod tests;
