//! Compares targets with a base: how much each step changed, and how certain that is.
//!
//! ```text
//! Figures ─► samples ─► matching ─► estimate ─► draft ─► verdict ─► Compared
//!            values     pairs that  ratio with  a row    decides a
//!            that       took turns  its error   without  family
//!            count                              verdict  together
//! ```
//!
//! * [`compare()`] returns [`Compared`], with a [`ComparedStep`] for each step, target and metric:
//!   its ratio, [`Interval`] and [`Verdict`].
//! * [`effects()`] compares the levels of factors: [`Effects`]. [`designed_effects`] does so for
//!   the targets of a design.
//! * [`gate()`] accepts or refuses a change by its verdicts: [`Gate`].
//! * [`noise_floor`] says which changes a machine can show: [`NoiseFloor`].
//! * [`interval_parts`] says why an interval is as wide as it is.
//! * [`Requirement`]s are bounds that take the place of a base.
//! * [`ComparedWork`] is how much work an operation is, and how exact that is.
//! * [`ComparedProfile`], [`ComparedWaits`], [`ComparedSystemCalls`] and [`ComparedPlans`] say where a
//!   change is: in which functions, states of sessions, system calls, and plans.
//!
//! A comparison has no verdict of its own. With many comparisons some look like changes by chance,
//! so a family of them is decided together, and every row waits as a draft until all are there.
//! Logarithms of ratios are compared rather than values, because noise is a share of a value.
//! The same figures always give the same verdicts. What a comparison says about itself is a value
//! (`reason`, `note`), so no sentence is ever taken apart again.
//!
//! `docs/statistics.md` explains the computations, what they rest on, and where they fail.

mod amounts;
mod anova;
mod borrowed;
mod client_cpu;
mod concerned;
pub(crate) mod databases;
mod decision;
mod designed;
mod difference;
mod draft;
mod drift;
mod effects;
pub(crate) mod equality;
mod estimate;
pub(crate) mod family;
mod gate;
mod groups;
mod halves;
mod in_tables;
pub(crate) mod initial_tree;
mod looks;
mod matching;
mod mean;
mod metric;
mod noise;
mod note;
mod overall;
mod plans;
mod power;
mod prior;
mod profile;
mod reason;
mod requirement;
mod samples;
mod shared_noise;
mod shown;
pub(crate) mod student;
mod system_calls;
mod tiny;
mod trigamma;
mod typical;
mod verdict;
mod waits;
mod why;
mod work;

use std::fmt;

use record::CellKey;
use serde::Serialize;
use words::fixed;

use crate::figures::index::StepPlace;
use crate::figures::{Looks, Row};
use crate::order::distinct;
use power::PowerAnalysis;

pub use anova::VarianceShare;
pub use borrowed::NotBorrowed;
pub(crate) use client_cpu::is_same_sum;
pub use decision::{CHANGE_ADVISED_MAX, Decision, REPEATS_ADVISED_MAX};
pub use designed::{
    Clarity, DesignedEffects, HalfNormal, InteractionEffect, MixedInteraction, designed_effects,
};
pub(crate) use difference::Difference;
pub use effects::{CombinationEffect, Deviation, Effect, Effects, effects};
pub use gate::{
    Gate, Judged, Thresholds, WORK, gate, gate_interval, gate_of, judged, judged_work,
    repeats_to_judge, room_to_threshold,
};
pub use groups::{BaseGroup, groups_by_base};
pub use initial_tree::{InitialTree, TreeDifference};
pub use mean::mean_of_samples;
pub(crate) use metric::{
    CLIENT_CPU, RESPONSE_TIMES, has_only_process_cpu, has_verdict, process_cpu,
};
pub use metric::{
    OWN_CPU, THROUGHPUT, VERDICT_METRICS, costs, is_device_column, metric_label, more_is_better,
};
pub use noise::{DetectableEffect, NoiseFloor, StepNoise, noise_floor};
pub use overall::Overall;
pub use plans::{ComparedPlans, PlanDifference};
pub use power::{POWER, REPEATS_CAP};
pub use profile::{
    ComparedProfile, CostDifference, FunctionDifference, MergedProfile, NamedFunction,
    ProfileTotals, merged_profiles, profiled_cpu_us,
};
pub use requirement::{Bound, GivenUnit, Requirement, RequirementResult, RequirementVerdict};
pub use system_calls::{ComparedSystemCalls, SystemCallDifference};
pub use tiny::NOTHING;
pub use verdict::compare;
pub use waits::{ComparedWaits, StateDifference};
pub use why::{FamilyCount, IntervalParts, interval_parts};
pub(crate) use work::plain_function_name;
pub use work::{
    CallKind, ChangedCalls, ChangedFunction, ComparedCalls, ComparedPart, ComparedWork,
    FunctionWork, TargetWork, WorkChanges, WorkShift, WorkVerdict, target_work,
};

/// The options of a comparison.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// The target that others are compared to: `build.config`.
    pub base: String,
    /// The least relative change that matters: 0.03 is 3%.
    pub effect: f64,
    /// The rate of errors over all comparisons of a family. At most this share of the changes that
    /// are shown is expected to be false. If nothing changed, this is the probability that any
    /// change is shown, at most.
    pub error_rate: f64,
    /// The spread of each comparison is moderated by what other comparisons and its turns know about
    /// noise. Otherwise each rests on its own repeats alone: simulations compare the two.
    pub moderate_spreads: bool,
    /// Metrics to compare in addition to [`VERDICT_METRICS`]: names for
    /// [`words::Metric::named`].
    pub metrics: Vec<String>,
    /// Metrics to compare as well, and to show with their verdicts.
    pub shown_metrics: Vec<String>,
    /// Bounds that every target has to keep, the base as well.
    pub requirements: Vec<Requirement>,
    /// The steps to show; all steps if there are none. All are compared, so that no step has
    /// another verdict because others are not shown.
    pub steps: Vec<String>,
}

/// The smallest change that matters, where neither a plan nor the user says which: 3%.
pub const EFFECT: f64 = 0.03;

impl CompareOptions {
    /// Returns whether comparisons of a step are shown.
    fn shows(&self, step: &str) -> bool {
        self.steps.is_empty() || self.steps.iter().any(|shown| shown == step)
    }

    /// Returns [`VERDICT_METRICS`], then `others` and [`Self::shown_metrics`], each once.
    fn all_metrics<'a>(&'a self, others: &'a [String]) -> Vec<&'a str> {
        let verdicts = VERDICT_METRICS.iter().map(|(metric, _)| *metric);
        let others = others.iter().chain(&self.shown_metrics).map(String::as_str);
        distinct(verdicts.chain(others))
    }
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self {
            base: String::new(),
            effect: EFFECT,
            error_rate: 0.05,
            moderate_spreads: true,
            metrics: vec!["cpupq".to_owned()],
            shown_metrics: Vec::new(),
            requirements: Vec::new(),
            steps: Vec::new(),
        }
    }
}

/// All comparisons with one base.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Compared {
    /// The target that others are compared to.
    pub base: String,
    /// The least relative change that matters.
    pub effect: f64,
    /// The rate of errors over all comparisons of a family. Each of [`VERDICT_METRICS`] is a
    /// family; so are the [`costs`] of an operation, the columns of disks, and each other metric.
    pub error_rate: f64,
    /// Metrics in addition to [`VERDICT_METRICS`] whose verdicts are shown.
    pub shown_metrics: Vec<String>,
    /// The results of [`CompareOptions::requirements`].
    pub requirements: Vec<RequirementResult>,
    /// One for each target but the base, step and metric: by variant and clients, then target,
    /// then step, then metric, in the order of the figures.
    pub rows: Vec<ComparedStep>,
    /// The mean ratio of each target but the base over all steps, in the order of the figures.
    pub overall: Vec<Overall>,
    /// The comparisons of throughput that can have a verdict, of the target that has the most: the
    /// family of the error rates.
    pub comparison_count: usize,
    /// The cells that are missing or failed, so that the verdicts may change; `None` if all are
    /// complete.
    pub unfinished: Option<String>,
    /// Notes on all comparisons.
    pub notes: Vec<String>,
    /// The times at which the results are looked at.
    pub looks: Looks,
    /// The costs of functions, in steps that were profiled.
    pub profiles: Vec<ComparedProfile>,
    /// The time of sessions in each state, in steps with repeats whose engine says what its
    /// sessions wait for.
    pub waits: Vec<ComparedWaits>,
    /// The system calls of an operation, in steps with repeats that counted them.
    pub system_calls: Vec<ComparedSystemCalls>,
    /// The statements whose plans differ.
    pub plans: Vec<ComparedPlans>,
    /// Exact work, in steps with exact cells.
    pub work: Vec<ComparedWork>,
}

impl Compared {
    /// Returns whether exact work was compared, and nothing else.
    pub fn is_work_alone(&self) -> bool {
        self.rows.is_empty() && !self.work.is_empty()
    }
}

/// One metric in one step of a target, compared with the base.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComparedStep {
    /// The target's cells that are compared, in all repeats.
    pub cell: CellKey,
    /// The workload.
    pub workload: String,
    /// The step.
    pub step: String,
    /// The group of the benchmark's tables that shows it.
    pub group: Option<String>,
    /// [`THROUGHPUT`], or a name for [`words::Metric::named`].
    pub metric: String,
    /// Larger values are better.
    pub more_is_better: bool,
    /// The base's values that count, by run and repeat.
    pub base_values: Vec<Sample>,
    /// The target's values that count.
    pub values: Vec<Sample>,
    /// Target / base: for pairs, the geometric mean of their ratios; otherwise the ratio of the
    /// geometric means.
    pub ratio: Option<f64>,
    /// The interval that holds the true ratio, with the confidence at which its verdict was decided:
    /// that of [`Self::equality`] if it is [`Verdict::Equal`], else that of its family. `None`
    /// without repeats.
    pub interval: Option<Interval>,
    /// The interval by which a change for the worse is ruled out: its two ends have an error rate of
    /// 5% each. `None` without repeats.
    #[serde(skip)]
    pub equality: Option<Interval>,
    /// The error rate at which its family shows changes; `None` without repeats.
    #[serde(skip)]
    pub family_level: Option<f64>,
    /// The repeats that are compared with each other.
    pub pairing: Pairing,
    /// The machines that measured the values.
    pub machines: ComparedMachines,
    /// The verdict.
    pub verdict: Verdict,
    /// The probability that chance alone shows a change at least as large, before the number of
    /// comparisons is taken into account.
    pub p_value: Option<f64>,
    /// The spread of repeats: the standard deviation of the logarithm of one repeat's ratio (0.01
    /// is about 1%).
    pub spread: Option<f64>,
    /// The spread on which the interval rests, if the other comparisons of this metric lent it
    /// some of what they know about noise, or its turns show more noise than its repeats; `None` if it
    /// rests on the spread of its repeats alone.
    pub moderated: Option<ModeratedSpread>,
    /// The total repeats per target that show a change of `effect` in [`POWER`] of all cases; at
    /// most [`REPEATS_CAP`], which means that or more. `None` if unknown, or if the figures
    /// are too coarse for any number of repeats.
    pub repeats_needed: Option<u32>,
    /// Notes: repeats that were left out, differences between base and target, and why a ratio,
    /// interval or verdict is missing.
    pub reasons: Vec<String>,
    /// The standard error of the logarithm of one repeat's ratio, as the turns of that repeat tell:
    /// the root mean square over the repeats. `None` without turns.
    #[serde(skip)]
    pub error_within: Option<f64>,
    /// The repeats agree too well for luck, so that the error of their turns counts for nothing.
    #[serde(skip)]
    pub contradicts_turns: bool,
    /// The reason why it borrows nothing about its spread; `None` if it does, or was not asked to.
    #[serde(skip)]
    pub not_borrowed: Option<NotBorrowed>,
    /// The times at which its results are looked at.
    #[serde(skip)]
    pub looks: Looks,
}

impl ComparedStep {
    /// Returns where its targets are compared.
    pub(crate) fn place(&self) -> StepPlace<'_> {
        StepPlace { workload: &self.workload, load: self.cell.load(), step: &self.step }
    }

    /// Returns whether another comparison is of the same step of the same target, whatever its metric.
    pub(crate) fn compares_the_same(&self, other: &Self) -> bool {
        self.cell.target == other.cell.target && self.place() == other.place()
    }

    /// Returns the smallest relative change that these repeats show in [`POWER`] of all cases: 0.03
    /// is 3%. `None` if there is no interval, or the figures are too coarse.
    pub fn detectable(&self) -> Option<f64> {
        self.repeats_needed?;
        let power = self.family_power()?;
        match self.machines.ratio_spread {
            Some(spread) => power.effect(self.machines.count as u32, spread),
            None => power.effect(self.repeats(), self.interval_spread()?),
        }
    }

    /// Returns the smallest relative change that would be shown in [`POWER`] of all cases if
    /// repeats were added to these, up to `repeats` in total. `None` if there is no interval, if
    /// the figures are too coarse, or if machines differ, so that repeats alone don't help.
    pub fn detectable_with(&self, repeats: u32) -> Option<f64> {
        self.repeats_needed?;
        if self.machines.ratio_spread.is_some() {
            return None;
        }
        self.family_power()?.with_added_repeats().effect(repeats, self.interval_spread()?)
    }

    /// Returns true if every value of one side is above every value of the other.
    fn is_apart(&self) -> bool {
        let base = self.base_values.iter().map(|sample| sample.value);
        let values = self.values.iter().map(|sample| sample.value);
        let (base_min, base_max) = bounds(base);
        let (min, max) = bounds(values);
        min > base_max || max < base_min
    }

    /// Returns the total repeats per target with which `power` shows a change of `effect` in
    /// [`POWER`] of all cases, up to [`REPEATS_CAP`]; `None` without repeats. If each machine
    /// counts as one value, this assumes more machines with as many repeats each.
    fn repeats_for(&self, effect: f64, power: PowerAnalysis) -> Option<u32> {
        let Some(spread) = self.machines.ratio_spread else {
            return Some(power.repeats(effect, self.interval_spread()?));
        };
        let machines = power.repeats(effect, spread);
        let repeats = (machines * self.repeats()).div_ceil(self.machines.count as u32);
        Some(repeats.min(REPEATS_CAP))
    }

    /// Returns whether its base and its target were measured, but never by the same run.
    pub fn is_of_different_runs(&self) -> bool {
        !self.values.is_empty()
            && !self.base_values.is_empty()
            && matching::are_of_different_runs(&self.base_values, &self.values)
    }

    /// Returns the number of repeats that both have.
    pub fn repeats(&self) -> u32 {
        self.values.len().min(self.base_values.len()) as u32
    }

    /// Returns the power to show a change among those of its family.
    fn family_power(&self) -> Option<PowerAnalysis> {
        Some(self.power(self.family_level?))
    }

    /// Returns the power where a comparison is decided at this level.
    fn power(&self, level: f64) -> PowerAnalysis {
        PowerAnalysis {
            level,
            looks: self.looks,
            pairing: self.pairing,
            own_freedom: self.own_freedom(),
            borrowed_freedom: self.borrowed_freedom(),
        }
    }

    /// Returns the spread of one repeat's ratio on which the interval rests.
    fn interval_spread(&self) -> Option<f64> {
        self.moderated.map(|moderated| moderated.spread).or(self.spread)
    }

    /// Returns the degrees of freedom of its own repeats; zero if the spread is not moderated.
    fn own_freedom(&self) -> f64 {
        self.moderated.map_or(0.0, |moderated| moderated.freedom - moderated.borrowed_freedom)
    }

    /// Returns the degrees of freedom that other comparisons lent it.
    fn borrowed_freedom(&self) -> f64 {
        self.moderated.map_or(0.0, |moderated| moderated.borrowed_freedom)
    }
}

/// Returns the least and the largest of some values.
fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), value| {
        (min.min(value), max.max(value))
    })
}

/// A spread that is moderated by those of other comparisons, or by the noise of turns
/// (`docs/statistics.md`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModeratedSpread {
    /// The standard deviation of the logarithm of one repeat's ratio.
    pub spread: f64,
    /// The degrees of freedom of the interval.
    pub freedom: f64,
    /// Those of them that come from other comparisons.
    pub borrowed_freedom: f64,
}

/// The machines that measured the values of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ComparedMachines {
    /// The number of machines.
    pub count: usize,
    /// The share of the variance of single values that is between machines; `None` with one
    /// machine, or without pairs.
    pub variance_share: Option<VarianceShare>,
    /// The standard deviation of the logarithm of one machine's ratio, if ratios differ between
    /// machines, so that each machine counts as one value; `None` if each repeat does.
    pub ratio_spread: Option<f64>,
}

/// One value of a target in one repeat.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The index of the run, from 0.
    pub run: usize,
    /// The repeat in that run, from 1.
    pub repeat: u32,
    /// The value, in the metric's unit.
    pub value: f64,
}

impl Sample {
    /// Returns whether it is of the same repeat as another target's.
    pub(crate) fn is_of_repeat_of(&self, other: &Self) -> bool {
        self.run == other.run && self.repeat == other.repeat
    }

    /// Returns whether it is of the repeat that a row is of.
    pub(crate) fn is_of(&self, row: &Row) -> bool {
        self.run == row.run && self.repeat == row.cell.repeat
    }
}

/// The interval of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// The confidence: 1 less the error rate, or more. It takes the number of comparisons into
    /// account, so that the interval excludes 1 exactly where the verdict is faster or slower.
    pub confidence: f64,
}

impl Interval {
    /// Formats the ratio, or one of the bounds, with as many digits as the interval allows: two to
    /// four. Bounds from two repeats may be extreme, so values below 0.001 or above 1000 are
    /// cut.
    pub fn digits_of(&self, ratio: f64) -> String {
        const LEAST: f64 = 0.001;
        const MOST: f64 = 1000.0;
        if ratio < LEAST {
            return format!("<{LEAST}");
        }
        if ratio > MOST {
            return format!(">{MOST}");
        }

        let decimals = match self.high - self.low {
            width if width < 0.02 => 3,
            width if width < 1.0 => 2,
            width if width < 10.0 => 1,
            _ => 0,
        };

        let decimals_for =
            |digits: f64| (digits - 1.0 - ratio.log10().floor()).clamp(0.0, 3.0) as usize;
        let decimals = decimals.min(decimals_for(4.0)).max(decimals_for(2.0));

        let mut texts = (decimals..=3).map(|decimals| fixed(ratio, decimals));
        let text = texts.next().unwrap_or_default();

        // An interval that excludes 1 must not round to 1.
        let looks_like_1 = |text: &String| text.trim_end_matches('0') == "1.";
        if self.contains(1.0) || !looks_like_1(&text) {
            return text;
        }

        texts.find(|text| !looks_like_1(text)).unwrap_or(text)
    }

    /// Returns whether the interval contains `ratio`.
    pub fn contains(&self, ratio: f64) -> bool {
        self.low <= ratio && ratio <= self.high
    }
}

/// The repeats that are compared with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairing {
    /// Each repeat of the target with the repeat of the base that ran next to it.
    Paired,
    /// All repeats of the target with all repeats of the base, because they did not take turns.
    Independent,
    /// Base or target was measured only once.
    #[default]
    Single,
}

/// The verdict of a comparison. For costs, less is faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A change for the better is shown.
    Faster,
    /// A change for the worse is shown.
    Slower,
    /// No change is shown, and one that matters is ruled out: equal within `effect`.
    Equal,
    /// No change is shown, but a change that matters is possible.
    TooNoisy,
    /// There is no second repeat to tell a change from noise.
    Single,
    /// No repeat of the base, or of the target, is valid.
    Invalid,
    /// There is nothing to compare, or no ratio.
    #[default]
    NotComparable,
}

impl Verdict {
    /// Returns whether a change is shown.
    pub fn is_change(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }

    /// Returns true if a change is shown, and false if repeats show none; `None` where nothing can say, as
    /// for a single run.
    pub(crate) fn shows_change(self) -> Option<bool> {
        match self {
            Self::Faster | Self::Slower => Some(true),
            Self::Equal | Self::TooNoisy => Some(false),
            Self::Single | Self::Invalid | Self::NotComparable => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Equal => "equal",
            Self::TooNoisy => "too noisy to say",
            Self::Single => "single run",
            Self::Invalid => "invalid",
            Self::NotComparable => "not comparable",
        })
    }
}
