//! Takes an interval apart: the quantities that make it as wide as it is.

use super::looks::Evidence;
use super::metric::{family_of, has_verdict, part_of};
use super::typical::TurnMetric;
use super::{Compared, ComparedStep, Pairing, Verdict, equality};
use crate::order::distinct;

/// The quantities behind the interval of one comparison.
#[derive(Clone, Debug)]
pub struct IntervalParts<'c> {
    /// The comparison, which has an interval.
    pub row: &'c ComparedStep,
    /// The spread of the logarithm of one repeat's ratio on which the interval rests.
    pub spread: f64,
    /// The standard error of the mean. It is larger than the spread says where figures are rounded,
    /// or the machine may have drifted.
    pub error: f64,
    /// The number of standard errors from the ratio to either end of the interval.
    pub standard_error_count: f64,
    /// The error rate of the interval.
    pub level: f64,
    /// The comparisons of the target that share its family's error rate, and how many of them show a
    /// change. An interval that shows that both are equal shares with none.
    pub family: Option<FamilyCount>,
}

/// The comparisons of one target in a family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FamilyCount {
    /// The error rate that they share.
    pub error_rate: f64,
    /// The comparisons.
    pub comparison_count: usize,
    /// Those that show a change.
    pub shown_count: usize,
}

/// The share of a repeat's variance that its own turns explain, from which longer steps help.
const LONGER_STEPS_HELP: f64 = 0.5;

impl ComparedStep {
    /// Returns whether longer steps make its interval narrower, as more repeats do. `None` if its
    /// turns don't tell.
    pub fn longer_steps_help(&self) -> Option<bool> {
        let within = self.error_within.filter(|_| !self.contradicts_turns)?;
        let share_within = (within / self.spread?).powi(2);
        Some(share_within >= LONGER_STEPS_HELP)
    }
}

/// Returns the parts of all intervals of a step, in the order of the comparisons.
pub fn interval_parts<'c>(compared: &'c Compared, step: &str) -> Vec<IntervalParts<'c>> {
    let rows = compared.rows.iter().filter(|row| row.step == step && is_told(compared, row));
    rows.filter_map(|row| parts(compared, row)).collect()
}

/// Returns whether a comparison has a table of its own.
fn is_told(compared: &Compared, row: &ComparedStep) -> bool {
    has_verdict(&row.metric)
        || TurnMetric::named(&row.metric).is_some()
        || compared.shown_metrics.contains(&row.metric)
}

fn parts<'c>(compared: &'c Compared, row: &'c ComparedStep) -> Option<IntervalParts<'c>> {
    let interval = row.interval?;
    let is_equal = row.verdict == Verdict::Equal;
    let level = if is_equal { equality::LEVEL } else { row.family_level? };

    let spread = row.interval_spread()?;
    let reach = (interval.high / interval.low).ln() / 2.0;
    let (error, standard_error_count) = match freedom(row) {
        Some(freedom) => {
            let evidence = Evidence { count: f64::from(row.repeats()), freedom };
            let count = row.looks.quantile(level, evidence);
            (reach / count, count)
        }
        None => {
            let error = spread / f64::from(row.repeats()).sqrt();
            (error, reach / error)
        }
    };

    Some(IntervalParts {
        row,
        spread,
        error,
        standard_error_count,
        level,
        family: (!is_equal).then(|| family_count(compared, row)),
    })
}

/// Returns the degrees of freedom of pairs; `None` for two samples, and where each machine counts as
/// one value.
fn freedom(row: &ComparedStep) -> Option<f64> {
    if row.pairing != Pairing::Paired || row.machines.ratio_spread.is_some() {
        return None;
    }
    let own = f64::from(row.repeats()) - 1.0;
    Some(row.moderated.map_or(own, |moderated| moderated.freedom))
}

/// Counts the comparisons that were decided together with this one.
fn family_count(compared: &Compared, row: &ComparedStep) -> FamilyCount {
    let family = family_of(&row.metric);
    let mut members: Vec<&ComparedStep> = compared.rows.iter().collect();
    members.retain(|other| {
        other.cell.target == row.cell.target
            && other.p_value.is_some()
            && family_of(&other.metric) == family
    });

    let parts = distinct(members.iter().map(|member| part_of(&member.metric)));
    members.retain(|member| part_of(&member.metric) == part_of(&row.metric));

    FamilyCount {
        error_rate: compared.error_rate / parts.len() as f64,
        comparison_count: members.len(),
        shown_count: members.iter().filter(|member| member.verdict.is_change()).count(),
    }
}
