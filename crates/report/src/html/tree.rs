//! The charts of a log-structured merge tree that explain those of throughput: they stand beside them.

use analysis::Row;

use crate::html::curve::{Drawn, Place};
use crate::html::seconds::{MIB, sampled};

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

/// What the tree did, second by second; engines that call one thing by two names share a chart.
pub(super) fn of_row(row: &Row) -> Vec<Drawn> {
    let drawn = DRAWN
        .iter()
        .enumerate()
        .filter_map(|(order, (title, counter, divisor))| {
            row.lsm.as_ref()?;
            let series = row.series.engine.get(*counter)?;
            let values = series.values.iter();
            let values: Vec<_> = values
                .map(|value| value.map(|value| value / divisor))
                .collect();
            // What was nothing in every second of every row says nothing.
            let moved = values.iter().flatten().any(|value| *value > 0.0);
            Some(Drawn {
                moved,
                ..Drawn::whole(Place::Beside, order, *title, &sampled(row, values))
            })
        });
    let mut drawn: Vec<Drawn> = drawn.collect();
    drawn.dedup_by(|second, first| second.title == first.title);
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::seconds::tests::row;

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
        let drawn = of_row(&of_tree_row);
        let drawn: Vec<_> = drawn
            .iter()
            .map(|drawn| (drawn.title.as_str(), drawn.moved, &drawn.whole.points))
            .collect();
        assert_eq!(
            drawn,
            [
                ("writes held up, seconds per second", true, &vec![0.25, 0.0]),
                ("compaction pending, MB", true, &vec![1.0, 2.0]),
                ("files in the first level", false, &vec![0.0]),
            ]
        );
        of_tree_row.lsm = None;
        assert!(of_row(&of_tree_row).is_empty());
    }
}
