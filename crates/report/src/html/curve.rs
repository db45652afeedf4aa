//! The seconds of one row as the curves of charts: thinned where there are too many, so that a report of hundreds of
//! long steps fits in memory while it is made.

use analysis::Row;

use crate::html::{engine, host, load, tree};

/// The most points that a curve keeps.
const POINTS_MAX: usize = 2000;

/// Where a chart stands in the section of its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// What the load did.
    Load,
    /// Beside it, since it explains it.
    Beside,
    /// What an operation cost, second by second.
    Cost,
    /// The host and the server.
    Host,
    /// The engine's counters.
    Engine,
}

/// A curve of values at equal distances.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    /// Seconds in a bucket: 1, or a power of two from 4 on. A bucket of one second is one point; a longer one is two, its
    /// smallest and its largest value in the order in which they came.
    pub bucket: usize,
    /// Seconds of the curve.
    pub seconds: usize,
    /// Its points; NaN where there is no value. One alone stands for all: they are equal.
    pub points: Vec<f32>,
}

impl Curve {
    /// A curve of one value for each second; `None`: there is none.
    pub(crate) fn new(values: &[Option<f64>]) -> Self {
        let points: Vec<f32> = values
            .iter()
            .map(|value| value.map_or(f32::NAN, |value| value as f32))
            .collect();
        let bucket = bucket_of(points.len(), POINTS_MAX);
        let mut curve = Self {
            bucket,
            seconds: points.len(),
            points: if bucket == 1 {
                points
            } else {
                extremes(&points, bucket)
            },
        };
        curve.points.shrink_to_fit();
        if let Some(first) = curve.points.first().map(|first| first.to_bits())
            && curve.points.iter().all(|point| point.to_bits() == first)
        {
            curve.points.truncate(1);
            curve.points.shrink_to_fit();
        }
        curve
    }

    /// How many points it has in buckets of so many seconds.
    pub(crate) fn point_count(&self, bucket: usize) -> usize {
        if bucket == 1 {
            self.seconds
        } else {
            2 * self.seconds.div_ceil(bucket)
        }
    }

    /// Whether all its points are one value.
    pub(crate) fn is_constant(&self) -> bool {
        self.points.len() == 1
    }

    /// Its points in buckets of so many seconds, a multiple of its own.
    pub(crate) fn points_in(&self, bucket: usize) -> Vec<f32> {
        match (bucket / self.bucket.max(1), self.bucket) {
            _ if self.is_constant() => vec![self.points[0]; self.point_count(bucket)],
            (1, _) => self.points.clone(),
            (_, 1) => extremes(&self.points, bucket),
            (times, _) => extremes(&self.points, 2 * times),
        }
    }
}

/// Seconds in a bucket, so that a curve of so many seconds has about `points_max` points at most.
pub(crate) fn bucket_of(seconds: usize, points_max: usize) -> usize {
    if seconds <= points_max {
        return 1;
    }
    let bucket = (2 * seconds).div_ceil(points_max.max(2));
    bucket.next_power_of_two().max(4)
}

/// The smallest and the largest value of every `length` points, in the order in which they came.
fn extremes(points: &[f32], length: usize) -> Vec<f32> {
    let mut thinned = Vec::with_capacity(2 * points.len().div_ceil(length));
    for chunk in points.chunks(length) {
        let (mut least, mut most) = ((0, f32::NAN), (0, f32::NAN));
        for (at, &value) in chunk.iter().enumerate() {
            if value.is_nan() {
                continue;
            }
            if least.1.is_nan() || value < least.1 {
                least = (at, value);
            }
            if most.1.is_nan() || value > most.1 {
                most = (at, value);
            }
        }
        if least.0 <= most.0 {
            thinned.extend([least.1, most.1]);
        } else {
            thinned.extend([most.1, least.1]);
        }
    }
    thinned
}

/// What one row adds to one chart.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    /// Where the chart stands.
    pub place: Place,
    /// Among the charts of that place; those of one order stand by their titles.
    pub order: usize,
    /// What it shows, with the unit.
    pub title: String,
    /// Times span many powers of ten: its scale is logarithmic, unless the reader wants it otherwise.
    pub logarithmic: bool,
    /// It is shown only if it is so in some row: a counter that never moved says nothing.
    pub moved: bool,
    /// Over all clients, tables or levels.
    pub whole: Curve,
    /// The same taken apart, each part with its name; empty where that is the same or not known.
    pub parts: Vec<(String, Curve)>,
    /// What the parts are: `each client`.
    pub parts_are: &'static str,
}

impl Drawn {
    /// A curve that can't be taken apart.
    pub(crate) fn whole(
        place: Place,
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

/// The curves of one row, for the charts of a report. They take a small part of the memory of its seconds.
#[derive(Clone, Debug, Default)]
pub struct Curves {
    pub(crate) drawn: Vec<Drawn>,
}

impl Curves {
    /// Makes them, and leaves the seconds where they are.
    pub fn of(row: &Row) -> Self {
        // Of a step that no table or chart has, none is asked for.
        if row.kind == record::StepKind::Settle {
            return Self::default();
        }
        let mut drawn = load::of_row(row);
        drawn.extend(tree::of_row(row));
        drawn.extend(host::of_row(row));
        drawn.extend(engine::of_row(row));
        drawn.retain(|drawn| {
            let mut points = drawn.whole.points.iter();
            points.any(|point| !point.is_nan())
        });
        Self { drawn }
    }

    /// Makes them, and drops what takes the most memory of the row's seconds: clients one by one, the host and the engine's
    /// counters.
    pub fn take(row: &mut Row) -> Self {
        let curves = Self::of(row);
        row.series.host.clear();
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
    fn what_never_changes_is_one_point_that_stands_for_all() {
        let curve = Curve::new(&values([7.0; 5000]));
        assert_eq!(curve.points, [7.0]);
        assert_eq!(curve.points_in(16), vec![7.0; curve.point_count(16)]);
    }

    #[test]
    fn a_bucket_is_no_longer_than_it_must_be() {
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
