//! The charts of what the engine counted.

use std::collections::BTreeMap;

use analysis::Row;
use record::Role;

use crate::html::curve::{Curve, Drawn, Place};
use crate::html::seconds::{MIB, added, sampled};
use crate::html::tree;

/// What counters of one name differ in, and so how they are made one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    /// Tables are added up.
    Tables,
    /// So are the levels of a tree.
    Levels,
    /// How much each level asks for compaction: what the most urgent one asks for is what counts.
    Scores,
    /// Reasons of write stalls: some are counted within others, and the totals are among them.
    Reasons,
}

impl Parts {
    fn of(role: Option<Role>, names: &[&str]) -> Self {
        let is_level = |name: &&str| {
            let (_, label) = name.split_once('.').unwrap_or_default();
            label.parse::<u32>().is_ok()
        };
        match role {
            Some(Role::LevelScore) => Self::Scores,
            Some(Role::WriteStallCount) => Self::Reasons,
            _ if names.iter().all(is_level) => Self::Levels,
            _ => Self::Tables,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Tables => "each table",
            Self::Levels | Self::Scores => "each level",
            Self::Reasons => "each reason",
        }
    }

    /// Those of the names that make up the whole.
    fn whole<'a>(self, names: &[&'a str]) -> Vec<&'a str> {
        let is_part = |name: &&str| {
            let is_counted_in_others =
                name.contains(".total-") || name.ends_with("-with-ongoing-compaction");
            self != Self::Reasons || !is_counted_in_others
        };
        names.iter().copied().filter(is_part).collect()
    }
}

/// What the engine counted, second by second. Counters of one name that differ in their table are made one, and shown one
/// by one on request.
pub(super) fn of_row(row: &Row) -> Vec<Drawn> {
    let mut counters: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, series) in &row.series.engine {
        let whole = name
            .split_once('.')
            .map_or(name.as_str(), |(whole, _)| whole);
        // What is since the database was opened says nothing of a second.
        let is_since_opened = matches!(series.role, Some(Role::UptimeSeconds | Role::StallPercent));
        if !tree::is_drawn(series.role) && !is_since_opened {
            counters.entry(whole).or_default().push(name);
        }
    }
    counters
        .into_iter()
        .map(|(whole, names)| of_counter(row, whole, &names))
        .collect()
}

/// One chart: counters that share a name up to its first dot.
fn of_counter(row: &Row, whole: &str, names: &[&str]) -> Drawn {
    let series = |name: &&str| row.series.engine.get(*name);
    let cumulative = names
        .iter()
        .filter_map(series)
        .any(|series| series.cumulative);
    let (unit, divisor) = match whole.rsplit_once('_') {
        Some((_, "bytes")) => ("MB", MIB),
        Some((_, "ns")) => ("ms", 1e6),
        Some((_, "ms")) => ("ms", 1.0),
        _ => ("", 1.0),
    };
    let role = names
        .iter()
        .filter_map(series)
        .find_map(|series| series.role);
    let parts_of = Parts::of(role, names);
    let whole = match parts_of {
        Parts::Scores => "level_score, largest",
        _ => whole,
    };
    let title = match (unit, cumulative) {
        ("", false) => whole.to_string(),
        ("", true) => format!("{whole} per second"),
        (unit, false) => format!("{whole}, {unit}"),
        (unit, true) => format!("{whole}, {unit} per second"),
    };
    let whole_of = parts_of.whole(names);
    let columns = whole_of.iter().filter_map(series);
    let columns = columns.map(|series| &series.values).collect();
    let values = match parts_of {
        Parts::Scores => largest(columns),
        _ => added(columns, divisor),
    };
    let values = sampled(row, values);
    let mut has_moved = moved(&values, cumulative);
    let mut parts = Vec::new();
    for name in names.iter().filter(|_| names.len() > 1) {
        let Some(series) = series(name) else {
            continue;
        };
        let part = name.split_once('.').map_or(*name, |(_, part)| part);
        let values = sampled(row, added(vec![&series.values], divisor));
        has_moved |= moved(&values, cumulative);
        parts.push((part.to_string(), Curve::new(&values)));
    }
    Drawn {
        moved: has_moved,
        parts,
        parts_are: parts_of.name(),
        ..Drawn::whole(Place::Engine, 0, title, &values)
    }
}

/// Whether a counter did anything: its growth was more than nothing, or a gauge changed.
fn moved(values: &[Option<f64>], cumulative: bool) -> bool {
    let mut values = values.iter().flatten();
    if cumulative {
        return values.any(|value| *value > 0.0);
    }
    values
        .next()
        .is_some_and(|first| values.any(|value| value != first))
}

/// The largest of columns in each second in which one of them has a value.
fn largest(columns: Vec<&Vec<Option<f64>>>) -> Vec<Option<f64>> {
    let seconds = columns.iter().map(|column| column.len()).max();
    (0..seconds.unwrap_or(0))
        .map(|second| {
            let values = columns.iter().filter_map(|column| *column.get(second)?);
            values.reduce(f64::max)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::seconds::tests::row;

    #[test]
    fn only_counters_that_moved_are_drawn_and_tables_are_added_up() {
        let counter = |cumulative, values: [f64; 2]| analysis::CounterSeries {
            cumulative,
            values: values.map(Some).to_vec(),
            role: None,
        };
        let mut row = row(&[]);
        row.series.engine = [
            ("wal_bytes", counter(true, [MIB, 2.0 * MIB])),
            ("deadlock_count", counter(true, [0.0, 0.0])),
            ("dead_rows.pi1", counter(false, [5.0, 5.0])),
            ("dead_rows.pi2", counter(false, [5.0, 7.0])),
            ("database_bytes", counter(false, [9.0, 9.0])),
        ]
        .map(|(name, series)| (name.to_string(), series))
        .into();
        let charts: Vec<Drawn> = of_row(&row)
            .into_iter()
            .filter(|drawn| drawn.moved)
            .collect();
        let drawn: Vec<_> = charts
            .iter()
            .map(|chart| (chart.title.as_str(), chart.parts.len()))
            .collect();
        assert_eq!(drawn, [("dead_rows", 2), ("wal_bytes, MB per second", 0)]);
        assert_eq!(charts[0].whole.points, [10.0, 12.0]);
        assert_eq!(charts[1].whole.points, [1.0, 2.0]);
    }

    #[test]
    fn what_can_not_be_added_up_is_made_one_another_way() {
        let counter = |cumulative, role, values: [f64; 2]| analysis::CounterSeries {
            cumulative,
            values: values.map(Some).to_vec(),
            role: Some(role),
        };
        let mut row = row(&[]);
        row.series.engine = [
            (
                "uptime_seconds",
                counter(true, Role::UptimeSeconds, [1.0, 1.0]),
            ),
            (
                "level_score.0",
                counter(false, Role::LevelScore, [1.0, 5.0]),
            ),
            (
                "level_score.1",
                counter(false, Role::LevelScore, [2.0, 3.0]),
            ),
            (
                "level_bytes.1",
                counter(false, Role::LevelBytes, [MIB, MIB]),
            ),
            (
                "level_bytes.2",
                counter(false, Role::LevelBytes, [MIB, 3.0 * MIB]),
            ),
            (
                "write_stall_count.memtable-limit-stops",
                counter(true, Role::WriteStallCount, [3.0, 0.0]),
            ),
            (
                "write_stall_count.l0-file-count-limit-delays",
                counter(true, Role::WriteStallCount, [1.0, 0.0]),
            ),
            (
                "write_stall_count.cf-l0-file-count-limit-delays-with-ongoing-compaction",
                counter(true, Role::WriteStallCount, [1.0, 0.0]),
            ),
            (
                "write_stall_count.total-delays",
                counter(true, Role::WriteStallCount, [1.0, 0.0]),
            ),
            (
                "write_stall_count.total-stops",
                counter(true, Role::WriteStallCount, [3.0, 0.0]),
            ),
        ]
        .map(|(name, series)| (name.to_string(), series))
        .into();
        let charts: Vec<Drawn> = of_row(&row)
            .into_iter()
            .filter(|drawn| drawn.moved)
            .collect();
        let drawn: Vec<_> = charts
            .iter()
            .map(|chart| (chart.title.as_str(), chart.parts_are, &chart.whole.points))
            .collect();
        let values = |first: f32, second: f32| vec![first, second];
        assert_eq!(
            drawn,
            [
                ("level_bytes, MB", "each level", &values(2.0, 4.0)),
                ("level_score, largest", "each level", &values(2.0, 5.0)),
                (
                    "write_stall_count per second",
                    "each reason",
                    &values(4.0, 0.0)
                ),
            ]
        );
    }
}
