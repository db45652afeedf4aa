//! The charts of a log-structured merge tree that explain throughput; they are next to it.

use analysis::figures::{CounterSeries, Row};
use record::Role;

use crate::printers::page::curve::{ChartPlace, RowCurve};
use crate::printers::page::seconds::{MIB, sampled};

/// The charts: the title, the role of the counter, and the divisor.
const DRAWN: [(&str, Role, f64); 3] = [
    ("writes stalled, seconds per second", Role::StallSeconds, 1.0),
    ("compaction pending, MB", Role::PendingCompactionBytes, MIB),
    ("files in the first level", Role::LevelFileCount, 1.0),
];

/// Returns true if only this module draws a counter. The files of the first level are also drawn
/// with those of all levels.
pub(super) fn is_drawn(role: Option<Role>) -> bool {
    matches!(role, Some(Role::StallSeconds | Role::PendingCompactionBytes))
}

/// Returns the charts of the tree, second by second.
pub(super) fn of_row(row: &Row) -> Vec<RowCurve> {
    if row.lsm.is_none() {
        return Vec::new();
    }

    let mut all = Vec::new();
    for (order, (title, role, divisor)) in DRAWN.into_iter().enumerate() {
        let is_drawn = |(name, series): &(&String, &CounterSeries)| {
            // Each level has a counter; `.0` is the first level.
            let is_first = role != Role::LevelFileCount || name.ends_with(".0");
            series.role == Some(role) && is_first
        };
        let Some((_, series)) = row.series.engine.iter().find(is_drawn) else {
            continue;
        };

        let values: Vec<Option<f64>> =
            series.values.iter().map(|value| value.map(|value| value / divisor)).collect();

        // A counter that is always zero says nothing.
        let moved = values.iter().flatten().any(|value| *value > 0.0);
        all.push(RowCurve {
            moved,
            ..RowCurve::whole(ChartPlace::Beside, order, title, &sampled(row, values))
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printers::page::seconds::tests::row;

    #[test]
    fn write_stalls_are_drawn_only_if_there_are_any() {
        let gauge = |role, values: [f64; 2]| CounterSeries {
            cumulative: false,
            values: values.map(Some).to_vec(),
            role: Some(role),
        };
        let mut of_tree_row = row(&[]);
        of_tree_row.lsm = Some(analysis::figures::Lsm::default());
        of_tree_row.series.engine = [
            ("stall_seconds", gauge(Role::StallSeconds, [0.25, 0.0])),
            ("pending_bytes", gauge(Role::PendingCompactionBytes, [MIB, 2.0 * MIB])),
            ("level_file_count.0", gauge(Role::LevelFileCount, [0.0, 0.0])),
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
                ("writes stalled, seconds per second", true, &vec![0.25, 0.0]),
                ("compaction pending, MB", true, &vec![1.0, 2.0]),
                ("files in the first level", false, &vec![0.0]),
            ]
        );
        of_tree_row.lsm = None;
        assert!(of_row(&of_tree_row).is_empty());
    }
}
