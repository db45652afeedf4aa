//! Combines the curves of rows into the charts of a step.

use std::collections::BTreeMap;

use analysis::figures::{Figures, Row};
use record::CellKey;

use crate::model::matrix::{Matrix, StepHead};
use crate::printers::page::curve::{ChartPlace, Curve, Curves, RowCurve, bucket_of};
use crate::printers::page::encode;
use crate::printers::page::turns::RatioChart;

/// The maximum size of all curves, so that a report of many targets can still be mailed.
const BYTES_MAX: usize = 16_000_000;

/// The maximum number of points of a curve. It is halved until the report is small enough.
const POINTS_MAX: usize = 2000;
/// The minimum: fewer points say nothing.
const POINTS_MIN: usize = 60;

#[derive(Clone, Debug)]
pub(crate) struct Chart<'c> {
    pub place: ChartPlace,
    /// The title, with the unit.
    pub title: &'c str,
    /// The scale is logarithmic at first.
    pub logarithmic: bool,
    /// A curve for each line; a line has the same color in the whole report.
    pub curves: Vec<(usize, &'c Curve)>,
    /// The curves of parts, each with its line and name; empty if unknown or equal to the whole.
    pub parts: Vec<(usize, &'c str, &'c Curve)>,
    /// The name of the parts: `each client`.
    pub parts_are: &'static str,
}

/// Finds the curves of a row.
pub(crate) struct Index<'c>(BTreeMap<RowKey<'c>, &'c Curves>);

/// Identifies a row: run, cell, step.
type RowKey<'c> = (usize, &'c CellKey, &'c str);

impl<'c> Index<'c> {
    /// Returns an index of `curves`, which are in the order of the figures' rows.
    pub(crate) fn new(figures: &'c Figures, curves: &'c [Curves]) -> Self {
        let keys = figures.rows.iter().map(key);
        Self(keys.zip(curves).collect())
    }

    pub(crate) fn of(&self, row: &'c Row) -> Option<&'c Curves> {
        self.0.get(&key(row)).copied()
    }
}

fn key(row: &Row) -> RowKey<'_> {
    (row.run, &row.cell, &row.step)
}

/// The curves of each line in one chart.
type LineCurves<'c> = Vec<(usize, &'c RowCurve)>;

/// Returns the charts of a step, sorted by place.
pub(crate) fn of_step<'c>(
    matrix: &Matrix<'c>,
    index: &Index<'c>,
    step: StepHead<'c>,
) -> Vec<Chart<'c>> {
    let mut charts: BTreeMap<(ChartPlace, usize, &str), LineCurves<'_>> = BTreeMap::new();
    for (number, line) in matrix.lines.iter().enumerate() {
        let curves = line.row(step.name).and_then(|row| index.of(row));
        for drawn in curves.iter().flat_map(|curves| &curves.drawn) {
            let chart = charts.entry((drawn.place, drawn.order, drawn.title.as_str()));
            chart.or_default().push((number, drawn));
        }
    }

    let mut made: Vec<Chart<'_>> = Vec::new();
    for ((place, _, title), drawn) in charts {
        // One second makes no line, and tables have its figure.
        let has_line = drawn.iter().any(|(_, drawn)| drawn.whole.seconds > 1);
        if !has_line || !drawn.iter().any(|(_, drawn)| drawn.moved) {
            continue;
        }

        let chart = chart(place, title, &drawn);
        // Engines with different names for the same thing share a chart.
        match made.iter_mut().find(|known| (known.place, known.title) == (place, title)) {
            Some(known) => known.curves.extend(chart.curves),
            None => made.push(chart),
        }
    }
    made
}

fn chart<'c>(place: ChartPlace, title: &'c str, drawn: &[(usize, &'c RowCurve)]) -> Chart<'c> {
    let mut parts = Vec::new();
    for (line, drawn) in drawn {
        parts.extend(drawn.parts.iter().map(|(name, curve)| (*line, name.as_str(), curve)));
    }

    Chart {
        place,
        title,
        logarithmic: drawn.iter().any(|(_, drawn)| drawn.logarithmic),
        curves: drawn.iter().map(|(line, drawn)| (*line, &drawn.whole)).collect(),
        parts,
        parts_are: drawn.first().map_or("", |(_, drawn)| drawn.parts_are),
    }
}

/// The maximum number of points per curve in a report. The many parts of lines and counters of the
/// engine have a quarter of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget(usize);

impl Budget {
    /// Returns the largest budget that keeps the charts of all steps small enough.
    pub(crate) fn of<'c>(
        charts: impl Iterator<Item = &'c Chart<'c>> + Clone,
        ratios: impl Iterator<Item = &'c RatioChart<'c>> + Clone,
    ) -> Self {
        let mut budget = Self(POINTS_MAX);
        let size = |budget: Self| {
            let of_charts = charts.clone().map(|chart| budget.size(chart));
            of_charts.chain(ratios.clone().map(|chart| chart.size(budget))).sum::<usize>()
        };

        while size(budget) > BYTES_MAX && budget.0 / 2 >= POINTS_MIN {
            budget.0 /= 2;
        }

        budget
    }

    fn size(self, chart: &Chart<'_>) -> usize {
        let (bucket, bucket_of_parts) = (self.bucket(chart), self.bucket_of_parts(chart));
        let wholes = chart.curves.iter().map(|(_, curve)| encode::size(curve, bucket));
        let parts = chart
            .parts
            .iter()
            .map(|(_, name, curve)| name.len() + encode::size(curve, bucket_of_parts));
        wholes.sum::<usize>() + parts.sum::<usize>()
    }

    /// Returns the maximum number of points of a curve of ratios. Single blocks are noisy, so that
    /// many points would hide what changes.
    pub(crate) fn ratio_points(self) -> usize {
        self.0 / 10
    }

    /// Returns the seconds per bucket of the chart's curves.
    fn bucket(self, chart: &Chart<'_>) -> usize {
        let points_max = match chart.place {
            ChartPlace::Engine => self.0 / 4,
            _ => self.0,
        };
        bucket(points_max, chart.curves.iter().map(|(_, curve)| *curve))
    }

    fn bucket_of_parts(self, chart: &Chart<'_>) -> usize {
        bucket(self.0 / 4, chart.parts.iter().map(|(_, _, curve)| *curve))
    }
}

/// Returns the seconds per bucket, so that no curve has more than `points_max` points.
fn bucket<'c>(points_max: usize, curves: impl Iterator<Item = &'c Curve>) -> usize {
    let buckets = curves.map(|curve| bucket_of(curve.seconds, points_max).max(curve.bucket));
    buckets.max().unwrap_or(1)
}

/// A chart in the format of the page.
pub(crate) struct Plot {
    /// The title, with the unit.
    pub title: String,
    /// A note for readers about the curves; may be empty.
    pub note: String,
    /// The scale is logarithmic at first.
    pub is_logarithmic: bool,
    /// The curves as JSON for a script element.
    pub data: String,
    /// The name of the parts, and their curves as JSON.
    pub parts: Option<(&'static str, String)>,
}

impl Chart<'_> {
    /// Returns the chart with as many points as the budget allows; `k` in its data is the seconds
    /// per bucket.
    pub(crate) fn plot(&self, budget: Budget) -> Plot {
        let bucket = budget.bucket(self);
        let wholes = self.curves.iter().map(|(line, curve)| (*line, None, *curve));
        let parts = self.parts.iter().map(|(line, name, curve)| (*line, Some(*name), *curve));
        let has_parts = !self.parts.is_empty();

        Plot {
            title: self.title.to_string(),
            note: match bucket {
                1 => String::new(),
                _ => format!("smallest and largest second of every {bucket}"),
            },
            is_logarithmic: self.logarithmic,
            data: list("", wholes, bucket),
            parts: has_parts
                .then(|| (self.parts_are, list("", parts, budget.bucket_of_parts(self)))),
        }
    }
}

/// Returns curves as JSON: their lines, the names of parts, and their points. `head` has more
/// fields of the object, with a comma after each.
pub(crate) fn list<'c>(
    head: &str,
    curves: impl Iterator<Item = (usize, Option<&'c str>, &'c Curve)>,
    bucket: usize,
) -> String {
    let mut out = format!("{{{head}\"k\":{bucket},\"s\":[");

    for (at, (line, part, curve)) in curves.enumerate() {
        if at > 0 {
            out.push(',');
        }
        encode::curve(&mut out, line, part, curve, bucket);
    }
    out.push_str("]}");

    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printers::page::seconds::tests::row;

    fn figures() -> Figures {
        let mut figures = Figures::default();
        for (target, values) in [("a.b", [1.0, 2.0]), ("c.d", [3.0, 4.0])] {
            let mut row = row(&[("disk_read_count", &values.map(Some))]);
            row.cell.target = target.into();
            figures.rows.push(row);
        }
        figures
    }

    #[test]
    fn lines_share_a_chart_and_keep_their_numbers() {
        let figures = figures();
        let curves: Vec<Curves> = figures.rows.iter().map(Curves::of).collect();
        let run = record::Run::default();
        let matrix = Matrix::new(&run, &figures);
        let index = Index::new(&figures, &curves);
        let charts = of_step(&matrix, &index, matrix.steps[0]);
        assert_eq!(charts.len(), 1);
        assert_eq!(charts[0].title, "reads per second");
        let budget = Budget::of(charts.iter(), std::iter::empty());
        assert_eq!(budget, Budget(POINTS_MAX));
        assert_eq!(charts[0].plot(budget).data, r#"{"k":1,"s":[[0,2,[1,2]],[1,2,[3,4]]]}"#);
    }

    #[test]
    fn many_curves_have_fewer_points() {
        let values: Vec<Option<f64>> =
            (0..3600).map(|second| Some(f64::from(second % 7))).collect();
        let curve = Curve::new(&values);
        let chart = |place| Chart {
            place,
            title: "t",
            logarithmic: false,
            curves: (0..28).map(|line| (line, &curve)).collect(),
            parts: (0..224).map(|part| (part / 8, "client 1", &curve)).collect(),
            parts_are: "each client",
        };
        let charts: Vec<Chart<'_>> = (0..10)
            .flat_map(|_| {
                let counters = std::iter::repeat_n(ChartPlace::Engine, 40);
                [ChartPlace::Load; 6].into_iter().chain(counters)
            })
            .map(|place| Chart {
                parts: if place == ChartPlace::Load { chart(place).parts } else { Vec::new() },
                ..chart(place)
            })
            .collect();
        let budget = Budget::of(charts.iter(), std::iter::empty());
        let plots = charts.iter().map(|chart| chart.plot(budget));
        let size: usize =
            plots.map(|plot| plot.data.len() + plot.parts.map_or(0, |(_, data)| data.len())).sum();
        assert!(size <= BYTES_MAX, "{size}");
        assert!(size > BYTES_MAX / 8, "{size}: thinned more than needed");
    }
}
