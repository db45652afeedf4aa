//! Judges requirements: bounds on the metrics of a step, such as a response time below 5 ms. A
//! bound takes the place of the base, so that repeats, machines and the number of requirements
//! count as in comparisons.

use std::fmt;

use record::CellKey;
use serde::Serialize;

use super::estimate::Estimate;
use super::mean::{Pair, shown_mean};
use super::reason::Reason;
use super::samples::{Samples, Side, TargetStep, TimedSample};
use super::{CompareOptions, Interval, Sample, family};

/// A bound that a metric of a step has to keep.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Requirement {
    /// The requirement as it was given: `qr100 response_p99 < 5ms`.
    pub text: String,
    /// The step.
    pub step: String,
    /// [`super::THROUGHPUT`], or a name for [`words::Metric::named`].
    pub metric: String,
    /// The kind of bound.
    pub bound: Bound,
    /// The bound's value, in the metric's unit.
    pub value: f64,
    /// The unit of the bound as it was given; `None` if it is the metric's.
    #[serde(skip)]
    pub given_unit: Option<GivenUnit>,
}

/// A unit of time in which a bound was given.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenUnit {
    /// The name: `ms`.
    pub name: String,
    /// The number of the metric's units that it has.
    pub size: f64,
}

/// The kinds of bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Below the value.
    #[default]
    Below,
    /// The value or less.
    AtMost,
    /// Above the value.
    Above,
    /// The value or more.
    AtLeast,
}

impl Bound {
    /// Returns whether a figure keeps the bound.
    fn is_kept_by(self, figure: f64, value: f64) -> bool {
        match self {
            Self::Below => figure < value,
            Self::AtMost => figure <= value,
            Self::Above => figure > value,
            Self::AtLeast => figure >= value,
        }
    }
}

/// The result of a requirement for one target, variant and number of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RequirementResult {
    /// The requirement.
    #[serde(flatten)]
    pub requirement: Requirement,
    /// The target's cells, in all repeats.
    #[serde(flatten)]
    pub cell: CellKey,
    /// The workload.
    pub workload: String,
    /// The values of the repeats that count.
    pub values: Vec<Sample>,
    /// The geometric mean of the values, or the arithmetic mean if one of them is not above zero;
    /// `None` without values.
    pub mean: Option<f64>,
    /// The interval of the mean; `None` without repeats, and if a value is not above zero.
    pub interval: Option<Interval>,
    /// The verdict.
    pub verdict: RequirementVerdict,
    /// Notes: repeats that were left out, and why there is no verdict.
    pub reasons: Vec<String>,
}

/// The verdict on a requirement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequirementVerdict {
    /// The whole interval keeps the bound.
    Met,
    /// The whole interval is beyond the bound.
    Missed,
    /// The bound is within the interval.
    TooNoisy,
    /// There is no second repeat, so there is no interval.
    Single,
    /// No repeat is valid.
    Invalid,
    /// The target does not have the step or the metric.
    #[default]
    NotApplicable,
}

impl fmt::Display for RequirementVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::TooNoisy => "too noisy to say",
            Self::Single => "single run",
            Self::Invalid => "invalid",
            Self::NotApplicable => "not applicable",
        })
    }
}

/// A result whose verdict depends on the number of requirements.
struct Undecided {
    result: RequirementResult,
    /// The ratio of the mean and the bound.
    estimate: Option<Estimate>,
}

/// Judges each requirement for each target, variant and number of clients. Requirements are a
/// family of comparisons.
pub(super) fn judge(samples: &Samples<'_>, options: &CompareOptions) -> Vec<RequirementResult> {
    let mut undecided = Vec::new();
    for requirement in &options.requirements {
        for step in samples.measured_at(&requirement.step) {
            undecided.push(draft(samples, step, requirement));
        }
    }

    let estimates = undecided.iter().filter_map(|draft| draft.estimate.as_ref());
    let p_values: Vec<f64> = estimates.map(Estimate::p_value).collect();
    let level = family::level(&p_values, options.error_rate);
    undecided.into_iter().map(|draft| draft.decided(level)).collect()
}

fn draft(
    samples: &Samples<'_>,
    TargetStep { place, target }: TargetStep<'_>,
    requirement: &Requirement,
) -> Undecided {
    let looks = samples.looks();
    let Side { mut values, mut reasons, invalid, .. } =
        samples.side(place, target, &requirement.metric);
    let figures: Vec<f64> = values.iter().map(|value| value.sample.value).collect();
    let samples: Vec<Sample> = values.iter().map(|value| value.sample).collect();

    let has_repeats = figures.len() > 1;
    let has_ratio = requirement.value > 0.0 && figures.iter().all(|figure| *figure > 0.0);

    let mut estimate = None;
    if has_repeats && has_ratio {
        // The bound is the base of each pair, so that the ratio is that of the value to it.
        values.sort_by_key(TimedSample::machine_and_order);
        let rounding = values.iter().map(|value| value.rounding).fold(0.0, f64::max);
        let pairs: Vec<Pair> = values.iter().map(|value| value.beside(requirement.value)).collect();
        let of_pairs = Estimate::of_pairs(&pairs, rounding);
        estimate = Some(of_pairs.for_looks(looks));
    } else if has_repeats {
        reasons.push(Reason::NoRatioToBound);
    }

    let (variant, clients) = place.load;
    let result = RequirementResult {
        requirement: requirement.clone(),
        cell: CellKey::new(target, variant, clients, 0),
        workload: place.workload.to_owned(),
        values: samples,
        mean: shown_mean(&figures),
        interval: None,
        verdict: match figures.len() {
            0 if invalid > 0 => RequirementVerdict::Invalid,
            0 => RequirementVerdict::NotApplicable,
            1 => RequirementVerdict::Single,
            _ => by_each(requirement, &figures),
        },
        reasons: reasons.iter().map(Reason::to_string).collect(),
    };
    Undecided { result, estimate }
}

/// Returns the verdict on figures without an interval: whether all of them keep the bound, or none.
fn by_each(requirement: &Requirement, figures: &[f64]) -> RequirementVerdict {
    let is_kept = |figure: &f64| requirement.bound.is_kept_by(*figure, requirement.value);
    match figures.iter().filter(|figure| is_kept(figure)).count() {
        0 => RequirementVerdict::Missed,
        kept if kept == figures.len() => RequirementVerdict::Met,
        _ => RequirementVerdict::TooNoisy,
    }
}

impl Undecided {
    /// Returns the result at the level of all requirements.
    fn decided(self, level: f64) -> RequirementResult {
        let Self { mut result, estimate } = self;
        let Some(estimate) = estimate else {
            return result;
        };

        let Requirement { bound, value, .. } = result.requirement;
        let (low, high) = estimate.interval(level);
        result.interval =
            Some(Interval { low: low * value, high: high * value, confidence: 1.0 - level });

        let keep = [low, high].map(|ratio| bound.is_kept_by(ratio, 1.0));
        result.verdict = match keep {
            [true, true] => RequirementVerdict::Met,
            [false, false] => RequirementVerdict::Missed,
            _ => RequirementVerdict::TooNoisy,
        };

        result
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use record::{Status, StepKind};

    use super::*;
    use crate::compare::compare;
    use crate::figures::{Figures, OpFigures, Percentiles, Row};

    /// Returns a repeat of the step `qr100` whose queries took `us` at the 99th percentile.
    fn repeat(repeat: u32, us: f64, count: u64) -> Row {
        let times = Percentiles { p99: us, ..Percentiles::default() };
        let queries = OpFigures { count, response_us: times, ..OpFigures::default() };
        Row {
            cell: CellKey::new("pg.base", None, 1, repeat),
            workload: "insert".into(),
            step: "qr100".into(),
            kind: StepKind::Query,
            main_op: Some("query".into()),
            reported: true,
            status: Status::Complete,
            valid: true,
            ops: BTreeMap::from([("query".to_owned(), queries)]),
            ..Row::default()
        }
    }

    fn judged_rows(rows: Vec<Row>, bound: Bound, us: f64) -> RequirementResult {
        let requirement = Requirement {
            text: "qr100 response_p99".into(),
            step: "qr100".into(),
            metric: "response_p99:query".into(),
            bound,
            value: us,
            ..Requirement::default()
        };
        let options = CompareOptions {
            base: "pg.base".into(),
            requirements: vec![requirement],
            ..CompareOptions::default()
        };
        let figures = Figures { rows, ..Figures::default() };
        compare(&figures, &options).requirements.remove(0)
    }

    fn judged(times: &[f64], bound: Bound, us: f64) -> RequirementVerdict {
        let rows = times.iter().zip(1..).map(|(us, number)| repeat(number, *us, 1000));
        judged_rows(rows.collect(), bound, us).verdict
    }

    #[test]
    fn the_whole_interval_has_to_keep_the_bound() {
        use RequirementVerdict::{Met, Missed, Single, TooNoisy};
        let times = [4100.0, 4200.0, 4050.0, 4150.0];
        assert_eq!(judged(&times, Bound::Below, 5000.0), Met);
        assert_eq!(judged(&times, Bound::AtLeast, 5000.0), Missed);
        assert_eq!(judged(&times, Bound::Below, 4130.0), TooNoisy);
        assert_eq!(judged(&times, Bound::Below, 3000.0), Missed);
        assert_eq!(judged(&times, Bound::Above, 3000.0), Met);
        // All three are below the bound, but so far apart that the mean may be above it.
        assert_eq!(judged(&[1000.0, 2500.0, 4900.0], Bound::Below, 5000.0), TooNoisy);
        assert_eq!(judged(&times[..1], Bound::Below, 5000.0), Single);
    }

    #[test]
    fn the_interval_has_the_unit_of_the_metric() {
        let rows = [4000.0, 4100.0, 4050.0].iter().zip(1..);
        let rows = rows.map(|(us, number)| repeat(number, *us, 1000)).collect();
        let result = judged_rows(rows, Bound::Below, 5000.0);
        let interval = result.interval.unwrap();
        assert!(interval.contains(result.mean.unwrap()));
        assert!(interval.low > 3900.0 && interval.high < 4200.0, "{interval:?}");
    }

    #[test]
    fn without_a_ratio_every_repeat_counts() {
        use RequirementVerdict::{Met, Missed, TooNoisy};
        assert_eq!(judged(&[0.0, 0.0], Bound::AtMost, 0.0), Met);
        assert_eq!(judged(&[0.0, 0.0], Bound::Below, 0.0), Missed);
        assert_eq!(judged(&[0.0, 7000.0], Bound::Below, 5000.0), TooNoisy);
    }

    #[test]
    fn invalid_repeats_and_too_few_operations_are_not_judged_and_say_why() {
        let mut rows = vec![repeat(1, 4000.0, 1000), repeat(2, 4000.0, 1000)];
        for row in &mut rows {
            row.valid = false;
            row.reasons = vec!["wrong data".into()];
        }
        let result = judged_rows(rows, Bound::Below, 5000.0);
        assert_eq!(result.verdict, RequirementVerdict::Invalid);
        assert!(result.reasons[0].contains("wrong data"), "{:?}", result.reasons);

        let rows = vec![repeat(1, 4000.0, 99), repeat(2, 4000.0, 99)];
        let result = judged_rows(rows, Bound::Below, 5000.0);
        assert_eq!(result.verdict, RequirementVerdict::NotApplicable);
        assert!(result.reasons[0].contains("100 operations"), "{:?}", result.reasons);
    }

    #[test]
    fn a_target_that_did_not_reach_the_step_is_invalid() {
        let rows = vec![repeat(1, 4000.0, 1000), repeat(2, 4000.0, 1000)];
        let unfinished = crate::figures::UnfinishedCell {
            run: 0,
            cell: CellKey::new("pg.other", None, 1, 1),
            status: Some(Status::Failed),
            causes: Vec::new(),
        };
        let figures = Figures { rows, unfinished: vec![unfinished], ..Figures::default() };
        let options = CompareOptions {
            base: "pg.base".into(),
            requirements: vec![Requirement {
                step: "qr100".into(),
                metric: "response_p99".into(),
                value: 5000.0,
                ..Requirement::default()
            }],
            ..CompareOptions::default()
        };
        let results = compare(&figures, &options).requirements;
        let verdicts: Vec<_> =
            results.iter().map(|it| (it.cell.target.as_str(), it.verdict)).collect();
        let expected =
            [("pg.base", RequirementVerdict::Met), ("pg.other", RequirementVerdict::Invalid)];
        assert_eq!(verdicts, expected);
    }
}
