//! The charts of a step, put together from the curves of its rows.

use std::collections::BTreeMap;

use analysis::{Figures, Row};

use crate::html::curve::{Curve, Curves, Drawn, Place, bucket_of};
use crate::html::encode::{self, Fineness};
use crate::matrix::{Matrix, StepHead};

/// What all curves together should not exceed, so that a report of many targets can still be mailed.
const BYTES_MAX: usize = 16_000_000;

/// The most points of curves: of the load, of the host, of the engine's counters, of parts; and the letters of a point.
/// The first of these that keeps a report small enough is taken.
const LADDER: [([usize; 4], usize); 7] = [
    ([2000, 2000, 2000, 2000], 3),
    ([2000, 1000, 1000, 500], 3),
    ([2000, 1000, 500, 500], 2),
    ([1000, 500, 500, 250], 2),
    ([1000, 500, 250, 130], 2),
    ([500, 250, 130, 130], 2),
    ([250, 130, 70, 70], 2),
];

/// One chart.
#[derive(Clone, Debug)]
pub(crate) struct Chart<'c> {
    /// Where it stands.
    pub place: Place,
    /// What it shows, with the unit.
    pub title: &'c str,
    /// Its scale is logarithmic, unless the reader wants it otherwise.
    pub logarithmic: bool,
    /// A curve for each line, which has the same colour in the whole report.
    pub curves: Vec<(usize, &'c Curve)>,
    /// The same taken apart; empty where that is the same or not known.
    pub parts: Vec<(usize, &'c str, &'c Curve)>,
    /// What the parts are: `each client`.
    pub parts_are: &'static str,
}

/// Finds the curves of a row.
pub(crate) struct Index<'c>(BTreeMap<Key<'c>, &'c Curves>);

/// What tells rows apart: run, target, variant, clients, repeat, step.
type Key<'c> = (usize, &'c str, Option<&'c str>, u32, u32, &'c str);

impl<'c> Index<'c> {
    /// `curves` are those of the figures' rows, in their order.
    pub(crate) fn new(figures: &'c Figures, curves: &'c [Curves]) -> Self {
        let keys = figures.rows.iter().map(key);
        Self(keys.zip(curves).collect())
    }

    fn of(&self, row: &'c Row) -> Option<&'c Curves> {
        self.0.get(&key(row)).copied()
    }
}

fn key(row: &Row) -> Key<'_> {
    (
        row.run,
        &row.cell.target,
        row.cell.variant.as_deref(),
        row.cell.clients,
        row.cell.repeat,
        &row.step,
    )
}

/// What each line adds to one chart.
type OfLines<'c> = Vec<(usize, &'c Drawn)>;

/// The charts of a step, place by place.
pub(crate) fn of_step<'c>(
    matrix: &Matrix<'c>,
    index: &Index<'c>,
    step: StepHead<'c>,
) -> Vec<Chart<'c>> {
    let mut charts: BTreeMap<(Place, usize, &str), OfLines<'_>> = BTreeMap::new();
    for (number, line) in matrix.lines.iter().enumerate() {
        let curves = line.row(step.name).and_then(|row| index.of(row));
        for drawn in curves.iter().flat_map(|curves| &curves.drawn) {
            let chart = charts.entry((drawn.place, drawn.order, drawn.title.as_str()));
            chart.or_default().push((number, drawn));
        }
    }
    let mut made: Vec<Chart<'_>> = Vec::new();
    for ((place, _, title), drawn) in charts {
        // One second makes no line, and its figure is in the tables.
        let has_line = drawn.iter().any(|(_, drawn)| drawn.whole.seconds > 1);
        if !has_line || !drawn.iter().any(|(_, drawn)| drawn.moved) {
            continue;
        }
        let curves = drawn.iter().map(|(line, drawn)| (*line, &drawn.whole));
        let parts = drawn.iter().flat_map(|(line, drawn)| {
            let parts = drawn.parts.iter();
            parts.map(|(name, curve)| (*line, name.as_str(), curve))
        });
        let (curves, parts) = (curves.collect(), parts.collect());
        // Engines that call one thing by two names share a chart.
        match made
            .iter_mut()
            .find(|chart| (chart.place, chart.title) == (place, title))
        {
            Some(chart) => chart.curves.extend::<Vec<_>>(curves),
            None => made.push(Chart {
                place,
                title,
                logarithmic: drawn.iter().any(|(_, drawn)| drawn.logarithmic),
                curves,
                parts,
                parts_are: drawn.first().map_or("", |(_, drawn)| drawn.parts_are),
            }),
        }
    }
    made
}

/// How many points the curves of a report may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    points_max: [usize; 4],
    width: usize,
}

impl Budget {
    /// The most with which these charts stay small enough.
    pub(crate) fn of<'c>(charts: impl Iterator<Item = &'c Chart<'c>> + Clone) -> Self {
        let rungs = LADDER
            .iter()
            .map(|&(points_max, width)| Self { points_max, width });
        let fits = |budget: &Self| {
            let size: usize = charts.clone().map(|chart| budget.size(chart)).sum();
            size <= BYTES_MAX
        };
        let (points_max, width) = LADDER[LADDER.len() - 1];
        rungs
            .into_iter()
            .find(fits)
            .unwrap_or(Self { points_max, width })
    }

    fn size(&self, chart: &Chart<'_>) -> usize {
        let (wholes, parts) = (self.fineness(chart), self.fineness_of_parts(chart));
        let curves = chart.curves.iter();
        let curves = curves.map(|(_, curve)| encode::size(curve, wholes));
        let of_parts = chart.parts.iter();
        let of_parts = of_parts.map(|(_, name, curve)| name.len() + encode::size(curve, parts));
        curves.sum::<usize>() + of_parts.sum::<usize>()
    }

    /// How finely the curves of a chart are written.
    pub(crate) fn fineness(&self, chart: &Chart<'_>) -> Fineness {
        let points_max = match chart.place {
            Place::Load | Place::Beside | Place::Cost => self.points_max[0],
            Place::Host => self.points_max[1],
            Place::Engine => self.points_max[2],
        };
        self.with(points_max, chart.curves.iter().map(|(_, curve)| *curve))
    }

    /// The same of their parts.
    pub(crate) fn fineness_of_parts(&self, chart: &Chart<'_>) -> Fineness {
        self.with(
            self.points_max[3],
            chart.parts.iter().map(|(_, _, curve)| *curve),
        )
    }

    fn with<'c>(&self, points_max: usize, curves: impl Iterator<Item = &'c Curve>) -> Fineness {
        let bucket = curves
            .map(|curve| bucket_of(curve.seconds, points_max).max(curve.bucket))
            .max();
        Fineness {
            bucket: bucket.unwrap_or(1),
            width: self.width,
        }
    }
}

/// The curves of a chart as JSON for a script element: `k` seconds in a bucket, `w` letters for a point, the curves.
pub(crate) fn json(chart: &Chart<'_>, budget: Budget) -> String {
    let wholes = chart
        .curves
        .iter()
        .map(|(line, curve)| (*line, None, *curve));
    list(wholes, budget.fineness(chart))
}

/// The same of their parts.
pub(crate) fn json_of_parts(chart: &Chart<'_>, budget: Budget) -> String {
    let parts = chart
        .parts
        .iter()
        .map(|(line, name, curve)| (*line, Some(*name), *curve));
    list(parts, budget.fineness_of_parts(chart))
}

fn list<'c>(
    curves: impl Iterator<Item = (usize, Option<&'c str>, &'c Curve)>,
    fineness: Fineness,
) -> String {
    let Fineness { bucket, width } = fineness;
    let mut out = format!("{{\"k\":{bucket},\"w\":{width},\"s\":[");
    for (at, (line, part, curve)) in curves.enumerate() {
        if at > 0 {
            out.push(',');
        }
        encode::curve(&mut out, line, part, curve, fineness);
    }
    out.push_str("]}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::seconds::tests::row;

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
        let budget = Budget::of(charts.iter());
        assert_eq!((budget.points_max, budget.width), LADDER[0]);
        assert_eq!(
            json(&charts[0], budget),
            r#"{"k":1,"w":3,"s":[[0,2,0,1,262143,"AAAAAB"],[1,2,0,3,262145,"AAAAAB"]]}"#
        );
    }

    #[test]
    fn many_curves_have_fewer_points() {
        let values: Vec<Option<f64>> = (0..3600)
            .map(|second| Some(f64::from(second % 7)))
            .collect();
        let curve = Curve::new(&values);
        let chart = |place| Chart {
            place,
            title: "t",
            logarithmic: false,
            curves: (0..28).map(|line| (line, &curve)).collect(),
            parts: (0..224)
                .map(|part| (part / 8, "client 1", &curve))
                .collect(),
            parts_are: "each client",
        };
        let charts: Vec<Chart<'_>> = (0..10)
            .flat_map(|_| {
                let counters = std::iter::repeat_n(Place::Engine, 40);
                [Place::Load; 6].into_iter().chain(counters)
            })
            .map(|place| Chart {
                parts: if place == Place::Load {
                    chart(place).parts
                } else {
                    Vec::new()
                },
                ..chart(place)
            })
            .collect();
        let budget = Budget::of(charts.iter());
        let size: usize = charts.iter().map(|chart| json(chart, budget).len()).sum();
        let parts: usize = charts
            .iter()
            .map(|chart| json_of_parts(chart, budget).len())
            .sum();
        assert!(size + parts <= BYTES_MAX, "{size} {parts}");
        assert!(
            size + parts > BYTES_MAX / 8,
            "{size} {parts}: thinned more than needed"
        );
    }
}
