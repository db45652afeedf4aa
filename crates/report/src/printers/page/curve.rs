//! The seconds of one row as curves of charts. Long curves are thinned, so that a report of
//! hundreds of long steps fits in memory.

use analysis::figures::Row;

use crate::printers::page::turns::TurnGroups;
use crate::printers::page::{engine, host, load, tree, waits};

/// The maximum number of points of a curve.
const POINTS_MAX: usize = 2000;

/// The place of a chart in the section of its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ChartPlace {
    Load,
    /// Next to the load, because it explains the load.
    Beside,
    /// The cost of an operation, second by second.
    Cost,
    /// The host and the server.
    Host,
    /// The engine's counters.
    Engine,
}

/// A curve of equidistant values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    /// Seconds per bucket: 1, or a power of two from 4 on. A bucket of one second is one point. A
    /// longer bucket is two points, its minimum and maximum in their order.
    pub bucket: usize,
    /// The length in seconds.
    pub seconds: usize,
    /// The points; NaN is a gap. A single point represents a constant curve.
    pub points: Vec<f32>,
}

impl Curve {
    /// Returns a curve with one value for each second; `None` is a gap.
    pub(crate) fn new(values: &[Option<f64>]) -> Self {
        let points: Vec<f32> =
            values.iter().map(|value| value.map_or(f32::NAN, |value| value as f32)).collect();
        let bucket = bucket_of(points.len(), POINTS_MAX);
        let mut curve = Self {
            bucket,
            seconds: points.len(),
            points: if bucket == 1 { points } else { extremes(&points, bucket) },
        };

        // Many counters never change. Bits are compared, because NaN equals nothing.
        let first = curve.points.first().map(|first| first.to_bits());
        if curve.points.iter().all(|point| Some(point.to_bits()) == first) {
            curve.points.truncate(1);
        }
        curve.points.shrink_to_fit();
        curve
    }

    /// Returns the number of points in buckets of this many seconds.
    pub(crate) fn point_count(&self, bucket: usize) -> usize {
        if bucket == 1 { self.seconds } else { 2 * self.seconds.div_ceil(bucket) }
    }

    /// Returns true if all points are equal.
    pub(crate) fn is_constant(&self) -> bool {
        self.points.len() == 1
    }

    /// Returns the points in buckets of this many seconds, a multiple of its own.
    pub(crate) fn points_in(&self, bucket: usize) -> Vec<f32> {
        if self.is_constant() {
            return vec![self.points[0]; self.point_count(bucket)];
        }

        match (bucket / self.bucket.max(1), self.bucket) {
            (1, _) => self.points.clone(),
            (_, 1) => extremes(&self.points, bucket),
            // Each bucket of the curve has two points already.
            (times, _) => extremes(&self.points, 2 * times),
        }
    }
}

/// Returns the seconds per bucket with which a curve has at most `points_max` points.
pub(crate) fn bucket_of(seconds: usize, points_max: usize) -> usize {
    if seconds <= points_max {
        return 1;
    }
    let bucket = (2 * seconds).div_ceil(points_max.max(2));
    bucket.next_power_of_two().max(4)
}

/// Returns the minimum and the maximum of every `length` points, in their order.
fn extremes(points: &[f32], length: usize) -> Vec<f32> {
    let mut thinned = Vec::with_capacity(2 * points.len().div_ceil(length));
    for chunk in points.chunks(length) {
        let (mut least_at, mut least) = (0, f32::NAN);
        let (mut most_at, mut most) = (0, f32::NAN);

        for (at, &value) in chunk.iter().enumerate() {
            if value.is_nan() {
                continue;
            }
            if least.is_nan() || value < least {
                (least_at, least) = (at, value);
            }
            if most.is_nan() || value > most {
                (most_at, most) = (at, value);
            }
        }

        thinned.extend(if least_at <= most_at { [least, most] } else { [most, least] });
    }
    thinned
}

/// The curve of one row in one chart.
#[derive(Clone, Debug)]
pub(crate) struct RowCurve {
    pub place: ChartPlace,
    /// The rank among the charts of that place; equal ranks are sorted by title.
    pub order: usize,
    /// The title, with the unit.
    pub title: String,
    /// The scale is logarithmic at first, since times span many powers of ten.
    pub logarithmic: bool,
    /// The chart is shown only if this is true in some row: a constant counter says nothing.
    pub moved: bool,
    /// The curve over all clients, tables or levels.
    pub whole: Curve,
    /// The curve of each part with its name; empty if unknown or equal to the whole.
    pub parts: Vec<(String, Curve)>,
    /// The name of the parts: `each client`.
    pub parts_are: &'static str,
}

impl RowCurve {
    /// Returns a curve without parts.
    pub(crate) fn whole(
        place: ChartPlace,
        order: usize,
        title: impl Into<String>,
        values: &[Option<f64>],
    ) -> Self {
        Self {
            place,
            order,
            title: title.into(),
            logarithmic: false,
            moved: true,
            whole: Curve::new(values),
            parts: Vec::new(),
            parts_are: "",
        }
    }
}

/// The curves of one row for the charts of a report. They need much less memory than the seconds.
#[derive(Clone, Debug, Default)]
pub struct Curves {
    pub(crate) drawn: Vec<RowCurve>,
    /// The throughput in groups of turns; empty without turns.
    pub(crate) turns: TurnGroups,
}

impl Curves {
    /// Makes the curves of a row, and leaves the row unchanged.
    pub fn of(row: &Row) -> Self {
        // Settle steps have no tables or charts.
        if row.kind == record::StepKind::Settle {
            return Self::default();
        }

        let mut drawn = load::of_row(row);
        drawn.extend(tree::of_row(row));
        drawn.extend(host::of_row(row));
        drawn.extend(engine::of_row(row));
        drawn.extend(waits::of_row(row));

        drawn.retain(|drawn| drawn.whole.points.iter().any(|point| !point.is_nan()));
        Self { drawn, turns: TurnGroups::of(&row.half_blocks) }
    }

    /// Makes the curves of a row, and drops the largest series of the row: single clients, the host
    /// and the engine's counters.
    pub fn take(row: &mut Row) -> Self {
        let curves = Self::of(row);

        row.series.host.clear();
        row.series.client_hosts.clear();
        row.series.engine.clear();

        for op in row.series.ops.values_mut() {
            op.ok_by_client = Vec::new();
            op.rows_by_client = Vec::new();
        }

        curves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: impl IntoIterator<Item = f64>) -> Vec<Option<f64>> {
        values.into_iter().map(Some).collect()
    }

    #[test]
    fn thinning_keeps_the_worst_and_the_best_second_however_often_it_is_done() {
        let mut seconds = vec![50.0; 3600];
        seconds[1234] = 0.0;
        seconds[2345] = 9000.0;
        let curve = Curve::new(&values(seconds));
        assert_eq!((curve.bucket, curve.points.len()), (4, 1800));
        for bucket in [4, 8, 16, 64] {
            let points = curve.points_in(bucket);
            assert_eq!(points.len(), curve.point_count(bucket));
            let at = |wanted| points.iter().position(|point| *point == wanted).unwrap();
            assert_eq!(at(0.0) / 2, 1234 / bucket);
            assert_eq!(at(9000.0) / 2, 2345 / bucket);
        }
    }

    #[test]
    fn a_short_step_is_kept_second_by_second() {
        let curve = Curve::new(&values([0.0, 12.0, 0.5]));
        assert_eq!((curve.bucket, curve.points), (1, vec![0.0, 12.0, 0.5]));
    }

    #[test]
    fn a_bucket_without_a_value_stays_a_gap() {
        let points = extremes(&[f32::NAN, f32::NAN, 3.0, 1.0], 2);
        assert!(points[0].is_nan() && points[1].is_nan());
        assert_eq!(points[2..], [3.0, 1.0]);
    }

    #[test]
    fn a_constant_curve_is_a_single_point() {
        let curve = Curve::new(&values([7.0; 5000]));
        assert_eq!(curve.points, [7.0]);
        assert_eq!(curve.points_in(16), vec![7.0; curve.point_count(16)]);
    }

    #[test]
    fn a_bucket_is_not_longer_than_necessary() {
        assert_eq!(bucket_of(2000, 2000), 1);
        assert_eq!(bucket_of(2001, 2000), 4);
        assert_eq!(bucket_of(3600, 400), 32);
        for seconds in [2001, 3600, 86_400] {
            for points_max in [200, 480, 2000] {
                let bucket = bucket_of(seconds, points_max);
                assert!(2 * seconds.div_ceil(bucket) <= points_max);
            }
        }
    }
}
