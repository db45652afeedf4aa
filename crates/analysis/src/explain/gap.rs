//! The largest differences in cost of targets that were measured once, in the order of the time
//! that they cost. Without repeats they are no verdicts, and no causes.

use record::StepKind;
use serde::Serialize;

use super::case::{Case, Pair};
use super::case_facts::CaseFacts;
use super::cause::only_reads;
use super::evidence::evidence_title;
use super::finding::Evidence;
use super::fsync_counts::FSYNCS;
use super::thresholds::{GAP_COUNT, GAP_CPU, GAP_OF_TIME};
use crate::compare::Verdict;
use crate::order::{distinct, grouped, sort_largest_first};

/// A cost of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cost {
    /// CPU time of the connections, in client and server.
    Cpu,
    /// Reads from storage.
    Reads,
    /// Writes to storage.
    Writes,
    /// Fsyncs for each commit.
    Fsyncs,
}

impl Cost {
    const ALL: [Self; 4] = [Self::Cpu, Self::Reads, Self::Writes, Self::Fsyncs];

    /// Returns the metric of the time that the cost takes in an operation.
    fn time_metric(self) -> &'static str {
        match self {
            Self::Cpu => crate::compare::OWN_CPU,
            Self::Reads => "op_read_us",
            Self::Writes => "op_write_us",
            Self::Fsyncs => "op_fsync_us",
        }
    }

    /// Returns the metrics that count the cost, the preferred one first. CPU counts as time.
    fn counts(self) -> &'static [&'static str] {
        match self {
            Self::Cpu => &[],
            Self::Reads => &["rpq", "own_read_kb_per_op"],
            Self::Writes => &["own_write_kb_per_op"],
            Self::Fsyncs => &FSYNCS,
        }
    }
}

/// A large difference in a cost between a target and the base, in a step that was measured once.
#[derive(Clone, Debug, PartialEq)]
pub struct CostGap {
    /// The step.
    pub case: CaseFacts,
    /// The cost.
    pub cost: Cost,
    /// The metric of the figures.
    pub metric: &'static str,
    /// The figures: microseconds of CPU, or a count, per operation.
    pub figures: Pair,
    /// The difference in time, relative to the time of the faster target's operation.
    pub size: f64,
}

/// The large differences in one cost.
#[derive(Clone, Debug, PartialEq)]
pub struct CostGaps {
    /// Each target with its largest difference, the largest first; at least one.
    pub gaps: Vec<CostGap>,
}

impl CostGaps {
    pub(super) fn new(gaps: &[Gap<'_>]) -> Self {
        let cost_gaps = gaps.iter().map(|gap| CostGap {
            case: gap.case.facts(),
            cost: gap.cost,
            metric: gap.metric,
            figures: gap.figures,
            size: gap.size,
        });
        Self { gaps: cost_gaps.collect() }
    }
}

/// A [`CostGap`] of a case.
pub(super) struct Gap<'a> {
    pub case: &'a Case<'a>,
    cost: Cost,
    metric: &'static str,
    figures: Pair,
    size: f64,
}

impl<'a> Gap<'a> {
    /// Returns the difference in a cost, if it is large enough to be listed.
    fn new(case: &'a Case<'a>, cost: Cost) -> Option<Self> {
        // Nobody waits for a row to be indexed.
        if case.side.rows[0].kind == StepKind::Index {
            return None;
        }

        let is_of_writes = matches!(cost, Cost::Writes | Cost::Fsyncs);
        if is_of_writes && only_reads(case) {
            return None;
        }

        let us = match cost {
            Cost::Cpu => case.own_cpu()?,
            _ => case.metric(cost.time_metric())?,
        };

        let (metric, figures) = match cost {
            Cost::Cpu => (cost.time_metric(), us),
            _ => cost.counts().iter().find_map(|metric| Some((*metric, case.metric(metric)?)))?,
        };

        let fastest_us = case.base.time_us().min(case.side.time_us());
        let gap = Self { case, cost, metric, figures, size: us.growth().abs() / fastest_us };
        let factor_min = if cost == Cost::Cpu { GAP_CPU } else { GAP_COUNT };

        let is_one_direction = us.growth() * figures.growth() > 0.0;
        let is_large = gap.size >= GAP_OF_TIME && figures.factor() >= factor_min;
        (is_large && is_one_direction).then_some(gap)
    }

    /// Returns the gap as a figure of a finding.
    pub(super) fn evidence(&self) -> Evidence {
        let title = evidence_title(self.metric);

        let name = format!("{title} of {} in {}", self.case.who(), self.case.place());
        let unit = match self.cost {
            Cost::Cpu => "us/op",
            Cost::Reads | Cost::Writes if self.metric.contains("_kb_") => "KB/op",
            Cost::Reads | Cost::Writes => "/op",
            Cost::Fsyncs => "/commit",
        };
        Evidence::new(&name, unit, self.figures)
    }
}

/// Returns the cases of targets that have no verdicts, because they were measured once.
pub(super) fn single<'a>(cases: &'a [Case<'a>]) -> Vec<&'a Case<'a>> {
    // A target with verdicts has causes there, though its load may have been measured once.
    let is_of_several = |case: &&Case<'_>| {
        let verdict = case.compared.verdict;
        verdict.is_change() || matches!(verdict, Verdict::Equal | Verdict::TooNoisy)
    };

    let with_verdicts = distinct(cases.iter().filter(is_of_several).map(Case::who));
    let mut single: Vec<&Case<'_>> = cases.iter().collect();

    single.retain(|case| {
        case.compared.verdict == Verdict::Single && !with_verdicts.contains(&case.who())
    });
    single
}

/// Returns the large differences of each cost that has any, the largest first: each target with its
/// largest.
pub(super) fn by_cost<'a>(cases: &'a [Case<'a>]) -> Vec<Vec<Gap<'a>>> {
    let single = single(cases);
    let mut by_cost = Vec::new();

    for cost in Cost::ALL {
        let all = single.iter().filter_map(|case| Gap::new(case, cost));

        let mut gaps = Vec::new();
        for (_, of_target) in grouped(all.map(|gap| (gap.case.who(), gap))) {
            gaps.extend(of_target.into_iter().max_by(|a, b| a.size.total_cmp(&b.size)));
        }

        sort_largest_first(&mut gaps, |item| item.size);
        if !gaps.is_empty() {
            by_cost.push(gaps);
        }
    }

    sort_largest_first(&mut by_cost, |gaps| gaps[0].size);
    by_cost
}
