//! The results of steps as points of trends over many runs.

use analysis::compare::Sample;
use analysis::figures::{Figures, throughput};
use record::CellKey;

use super::comparison::mean_of;
use super::matrix::StepHead;
use super::operations::unit;
use super::worth::comparable;

/// The most points of one run: a record from elsewhere may have any number of steps.
const POINTS_MAX: usize = 5_000;

/// The metrics of trends.
pub const TREND_METRICS: [TrendMetric; 3] =
    [TrendMetric::Throughput, TrendMetric::OwnCpu, TrendMetric::ResponseP99];

/// A metric of trends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrendMetric {
    /// Operations per second.
    Throughput,
    /// The CPU of the server and the clients per operation.
    OwnCpu,
    /// The 99th percentile of response times.
    ResponseP99,
}

impl TrendMetric {
    /// Returns the name in addresses, which is that of the metric.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => analysis::compare::THROUGHPUT,
            Self::OwnCpu => "own_cpu_us_per_op",
            Self::ResponseP99 => "response_p99",
        }
    }

    /// Returns the title.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Throughput => "Throughput",
            Self::OwnCpu => "Own CPU per operation",
            Self::ResponseP99 => "Response time, p99",
        }
    }
}

/// A step of a target, over all repeats of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPoint {
    /// The target, the variant and the clients; the repeat is 0.
    pub cell: CellKey,
    /// The step.
    pub step: String,
    /// The unit of throughput: `rows/s`.
    pub unit: String,
    /// The number of repeats that count.
    pub repeats: usize,
    /// The values of [`TREND_METRICS`]; `None` where no repeat has one.
    pub values: [Option<Spread>; TREND_METRICS.len()],
}

/// The values of some repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean, as comparisons use it.
    pub mean: f64,
    /// The least value.
    pub low: f64,
    /// The greatest value.
    pub high: f64,
}

/// Returns the results of all reported steps, over their valid repeats.
pub fn step_points(figures: &Figures) -> Vec<StepPoint> {
    let mut points: Vec<StepPoint> = Vec::new();
    let mut samples: Vec<[Vec<Sample>; TREND_METRICS.len()]> = Vec::new();

    for row in figures.rows.iter().filter(|row| row.reported && comparable(row)) {
        let cell = row.cell.all_repeats();
        let known = points.iter().position(|point| point.cell == cell && point.step == row.step);

        let place = known.unwrap_or_else(|| {
            points.push(StepPoint {
                cell,
                step: row.step.clone(),
                unit: unit(StepHead::of(row)),
                repeats: 0,
                values: [None; TREND_METRICS.len()],
            });
            samples.push(Default::default());
            points.len() - 1
        });
        if place >= POINTS_MAX {
            points.truncate(POINTS_MAX);
            break;
        }

        points[place].repeats += 1;
        for (metric, values) in TREND_METRICS.iter().zip(&mut samples[place]) {
            let value = match metric {
                TrendMetric::Throughput => throughput(row),
                other => row.metric(other.name()),
            };
            let finite = value.filter(|value| value.is_finite());
            values.extend(finite.map(|value| Sample {
                run: row.run,
                repeat: row.cell.repeat,
                value,
            }));
        }
    }

    for (point, samples) in points.iter_mut().zip(&samples) {
        for (value, samples) in point.values.iter_mut().zip(samples) {
            *value = spread(samples);
        }
    }

    points.retain(|point| point.values[0].is_some());
    points
}

fn spread(samples: &[Sample]) -> Option<Spread> {
    let values = || samples.iter().map(|sample| sample.value);
    Some(Spread {
        mean: mean_of(samples)?,
        low: values().fold(f64::INFINITY, f64::min),
        high: values().fold(f64::NEG_INFINITY, f64::max),
    })
}

#[cfg(test)]
mod tests {
    use analysis::figures::Row;
    use record::{Status, StepKind};

    use super::*;

    fn row(repeat: u32, qps: f64, valid: bool) -> Row {
        Row {
            cell: CellKey::new("pg.base", None, 8, repeat),
            step: "qr100".into(),
            kind: StepKind::Query,
            main_op: Some("query".into()),
            metrics: [("qps", Some(qps)), ("own_cpu_us_per_op", None)].into(),
            status: Status::Complete,
            valid,
            reported: true,
            ..Row::default()
        }
    }

    #[test]
    fn a_point_is_the_mean_and_the_range_of_the_valid_repeats() {
        let rows = vec![row(1, 100.0, true), row(2, 400.0, true), row(3, 9.0, false)];
        let figures = Figures { rows, ..Figures::default() };
        let [point] = &step_points(&figures)[..] else { panic!("it is one step") };
        assert_eq!((point.repeats, point.unit.as_str()), (2, "queries/s"));
        let throughput = point.values[0].unwrap();
        assert!((throughput.mean - 200.0).abs() < 1e-9, "{throughput:?}");
        assert_eq!((throughput.low, throughput.high), (100.0, 400.0));
        assert_eq!(point.values[1], None);
    }
}
