//! The charts of a log-structured merge tree that explain those of throughput: they stand beside them.

use crate::html::charts::{MIB, rows, sampled};
use crate::html::series::{Chart, Curve};
use crate::matrix::{Matrix, StepHead};

/// What is drawn: the title, the engine's counter, what it is divided by.
const DRAWN: [(&str, &str, f64); 4] = [
    ("writes held up, seconds per second", "stall_seconds", 1.0),
    (
        "writes held up, seconds per second",
        "rocksdb_stall_us",
        1e6,
    ),
    ("compaction pending, MB", "pending_compaction_bytes", MIB),
    ("files in the first level", "level_file_count.0", 1.0),
];

/// Whether a counter is drawn here alone. The files of the first level are also drawn among those of all.
pub(super) fn is_drawn(name: &str) -> bool {
    let mut drawn = DRAWN.iter().map(|(_, counter, _)| *counter);
    name != "level_file_count.0" && drawn.any(|counter| counter == name)
}

/// What the tree did, second by second: one chart of each thing that any line's engine tells, unless it was nothing in
/// every second.
pub(super) fn of_tree(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Chart> {
    let mut charts: Vec<Chart> = Vec::new();
    for (title, counter, divisor) in DRAWN {
        let curves = rows(matrix, step).filter_map(|(colour, line, row)| {
            row.lsm.as_ref()?;
            let series = row.series.engine.get(counter)?;
            let values = series.values.iter();
            let values = values.map(|value| value.map(|value| value / divisor));
            Some(Curve {
                label: matrix.label(line),
                colour,
                values: sampled(row, values.collect()),
            })
        });
        let curves: Vec<Curve> = curves.collect();
        // Engines that call one thing by two names share a chart.
        match charts.iter_mut().find(|chart| chart.title == title) {
            Some(chart) => chart.curves.extend(curves),
            None => charts.push(Chart::whole(title, curves)),
        }
    }
    charts.retain(|chart| {
        let mut values = chart.curves.iter().flat_map(|curve| &curve.values);
        !chart.is_empty() && values.any(|value| value.is_some_and(|value| value > 0.0))
    });
    charts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::charts::tests::row;

    #[test]
    fn what_held_writes_up_is_drawn_and_nothing_is_not() {
        let gauge = |values: [f64; 2]| analysis::CounterSeries {
            cumulative: false,
            values: values.map(Some).to_vec(),
        };
        let mut of_tree_row = row(&[]);
        of_tree_row.lsm = Some(analysis::Lsm::default());
        of_tree_row.series.engine = [
            ("stall_seconds", gauge([0.25, 0.0])),
            ("pending_compaction_bytes", gauge([MIB, 2.0 * MIB])),
            ("level_file_count.0", gauge([0.0, 0.0])),
        ]
        .map(|(name, series)| (name.to_string(), series))
        .into();
        let mut other = row(&[]);
        other.target = "c.d".into();
        other.series.engine = [("pending_compaction_bytes".to_string(), gauge([1.0, 1.0]))].into();
        let figures = analysis::Figures {
            rows: vec![of_tree_row, other],
            ..Default::default()
        };
        let run = record::Run::default();
        let matrix = Matrix::new(&run, &figures);
        let charts = of_tree(&matrix, matrix.steps[0]);
        let drawn: Vec<_> = charts
            .iter()
            .map(|chart| {
                (
                    chart.title.as_str(),
                    chart.curves.len(),
                    &chart.curves[0].values,
                )
            })
            .collect();
        assert_eq!(
            drawn,
            [
                (
                    "writes held up, seconds per second",
                    1,
                    &vec![Some(0.25), Some(0.0)]
                ),
                ("compaction pending, MB", 1, &vec![Some(1.0), Some(2.0)]),
            ]
        );
    }
}
