//! Puts the values of many runs together to series: one for each step, target, load and metric.

use std::collections::HashMap;

use super::summary::{RunSummary, StepSummary, geometric_mean};
use crate::compat::Work;

/// The subject of a series.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeriesKey {
    /// The plan's name.
    pub plan: String,
    /// The number of the work among those of the plan, from 1: other rows are another series.
    pub work: usize,
    /// The target.
    pub target: String,
    /// The workload's variant, if the plan has variants.
    pub variant: Option<String>,
    /// The number of clients.
    pub clients: u32,
    /// The step.
    pub step: String,
    /// The metric.
    pub metric: String,
}

impl SeriesKey {
    /// Returns whether two series are of the same step and metric, of whichever targets.
    pub(super) fn is_same_step_as(&self, other: &Self) -> bool {
        Self { target: String::new(), ..self.clone() }
            == Self { target: String::new(), ..other.clone() }
    }

    /// Returns the target with its load, the step and the metric: `pg.a c8 qr100 throughput`.
    pub fn text(&self) -> String {
        let variant = self.variant.as_ref().map_or(String::new(), |variant| format!(" {variant}"));
        let metric = crate::compare::metric_label(&self.metric);
        format!("{}{variant} c{} {} {metric}", self.target, self.clients, self.step)
    }
}

/// A step in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryPoint {
    /// The index of the run.
    pub run: usize,
    /// The geometric mean of its valid repeats, as comparisons use it.
    pub mean: f64,
    /// The least value.
    pub low: f64,
    /// The greatest value.
    pub high: f64,
    /// The number of valid repeats.
    pub repeats: usize,
}

impl HistoryPoint {
    fn new(run: usize, values: &[f64]) -> Self {
        Self {
            run,
            mean: geometric_mean(values),
            low: values.iter().copied().fold(f64::INFINITY, f64::min),
            high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            repeats: values.len(),
        }
    }
}

/// The order of a series' points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistoryOrder {
    /// The time at which runs started.
    #[default]
    Time,
    /// The version of the target's build, then the time.
    Version,
    /// The time of the commit that the target's build was made from, then the time. Builds of no
    /// commit come first.
    Commit,
}

/// A series, before its levels are known.
#[derive(Clone, Debug, Default)]
pub(super) struct RawSeries {
    pub key: SeriesKey,
    pub unit: String,
    pub points: Vec<HistoryPoint>,
}

/// Returns the series of runs, which are in the order of their start.
pub(super) fn collect(
    runs: &[RunSummary],
    order: HistoryOrder,
    metrics: &[String],
) -> Vec<RawSeries> {
    let works = works(runs);

    // Where the series of each key is in `all`.
    let mut places: HashMap<SeriesKey, usize> = HashMap::new();
    let mut all: Vec<RawSeries> = Vec::new();
    for (run, summary) in runs.iter().enumerate() {
        for step in &summary.steps {
            for (metric, values) in &step.values {
                let is_wanted = metrics.is_empty() || metrics.contains(metric);
                let is_usable = |value: &f64| value.is_finite() && *value > 0.0;
                if !is_wanted || values.is_empty() || !values.iter().all(is_usable) {
                    continue;
                }

                let key = key_of(summary, works[run], step, metric);
                let place = *places.entry(key).or_insert_with_key(|key| {
                    all.push(RawSeries {
                        key: key.clone(),
                        unit: unit(metric, &step.unit),
                        points: Vec::new(),
                    });
                    all.len() - 1
                });
                all[place].points.push(HistoryPoint::new(run, values));
            }
        }
    }

    for series in &mut all {
        sort(series, runs, order);
    }
    all
}

/// Sorts the points of a series, which are in the order of their runs.
fn sort(series: &mut RawSeries, runs: &[RunSummary], order: HistoryOrder) {
    let target_of = |point: &HistoryPoint| runs[point.run].target(&series.key.target);

    match order {
        HistoryOrder::Time => {}
        HistoryOrder::Version => series.points.sort_by_cached_key(|point| {
            let version = target_of(point).map(|target| target.version.as_str());
            (version_key(version.unwrap_or_default()), point.run)
        }),
        HistoryOrder::Commit => series.points.sort_by_cached_key(|point| {
            let committed = target_of(point).and_then(|target| target.committed_unix_s);
            (committed, point.run)
        }),
    }
}

fn key_of(run: &RunSummary, work: usize, step: &StepSummary, metric: &str) -> SeriesKey {
    SeriesKey {
        plan: run.plan.clone(),
        work,
        target: step.target.clone(),
        variant: step.variant.clone(),
        clients: step.clients,
        step: step.step.clone(),
        metric: metric.to_owned(),
    }
}

fn unit(metric: &str, throughput: &str) -> String {
    if metric == crate::compare::THROUGHPUT {
        return throughput.to_owned();
    }
    words::Metric::named(metric).map_or("", |known| known.unit).to_owned()
}

/// Returns the number of each run's work among those of its plan, from 1.
fn works(runs: &[RunSummary]) -> Vec<usize> {
    let mut known: HashMap<&str, Vec<&Work>> = HashMap::new();
    let mut numbers = Vec::new();
    for run in runs {
        let of_plan = known.entry(&run.plan).or_default();
        let same = of_plan.iter().rposition(|work| work.is_same_as(&run.work));
        let place = same.unwrap_or(of_plan.len());

        if same.is_none() {
            of_plan.push(&run.work);
        } else {
            // The newest version knows all of its defaults.
            of_plan[place] = &run.work;
        }

        numbers.push(place + 1);
    }
    numbers
}

/// Returns the parts of a version, so that 10.2 comes after 9.11.
fn version_key(version: &str) -> Vec<(u64, String)> {
    let mut parts = Vec::new();
    let mut rest = version;
    while !rest.is_empty() {
        let text_end = rest.find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len());
        let (text, after) = rest.split_at(text_end);
        let digits_end = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());

        let (digits, after) = after.split_at(digits_end);
        parts.push((digits.parse().unwrap_or(u64::MAX), text.to_owned()));

        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::TargetFacts;

    #[test]
    fn versions_are_in_the_order_of_their_numbers() {
        let mut versions = ["10.2.1", "9.11.2", "10.10.1", "9.2", "10.2"];
        versions.sort_by_key(|version| version_key(version));
        assert_eq!(versions, ["9.2", "9.11.2", "10.2", "10.2.1", "10.10.1"]);
    }

    #[test]
    fn points_can_be_in_the_order_of_commits_whenever_they_were_measured() {
        let measured = |committed_unix_s: Option<i64>| {
            let target =
                TargetFacts { name: "t".into(), committed_unix_s, ..TargetFacts::default() };
            let step = StepSummary {
                target: "t".into(),
                step: "scan".into(),
                values: [("throughput".to_owned(), vec![100.0])].into(),
                ..StepSummary::default()
            };
            RunSummary { targets: vec![target], steps: vec![step], ..RunSummary::default() }
        };
        let runs = [Some(30), Some(10), None, Some(20)].map(measured);
        let order = |order| {
            let series = collect(&runs, order, &[]);
            series[0].points.iter().map(|point| point.run).collect::<Vec<usize>>()
        };
        assert_eq!(order(HistoryOrder::Commit), [2, 1, 3, 0]);
        assert_eq!(order(HistoryOrder::Time), [0, 1, 2, 3]);
    }
}
