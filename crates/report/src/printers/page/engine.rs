//! The charts of the engine's counters.

use std::collections::BTreeMap;

use analysis::figures::{CounterSeries, Row};
use record::Role;
use words::WaitView;

use crate::printers::page::curve::{ChartPlace, Curve, RowCurve};
use crate::printers::page::seconds::{MIB, added, sampled};
use crate::printers::page::tree;

/// The beginning of the names of replicas.
const REPLICA: &str = "replica_";

/// The parts in which counters with a common name differ, which determine how they are combined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CounterParts {
    /// Tables: values are added.
    Tables,
    /// Levels of a tree: values are added.
    Levels,
    /// Compaction scores of levels: the maximum is shown.
    Scores,
    /// Reasons of write stalls: some include others, and totals are among them.
    Reasons,
}

impl CounterParts {
    fn of(role: Option<Role>, names: &[&str]) -> Self {
        let is_level = |name: &&str| {
            name.split_once('.').is_some_and(|(_, label)| label.parse::<u32>().is_ok())
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

    /// Returns the names whose values make up the whole.
    fn whole<'a>(self, names: &[&'a str]) -> Vec<&'a str> {
        let mut whole = names.to_vec();
        if self == Self::Reasons {
            whole.retain(|name| {
                !name.contains(".total-") && !name.ends_with("-with-ongoing-compaction")
            });
        }
        whole
    }
}

/// Returns the engine's counters, second by second. Counters that differ only in their table are
/// combined, and shown separately on request.
pub(super) fn of_row(row: &Row) -> Vec<RowCurve> {
    let mut counters: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, series) in &row.series.engine {
        // States of sessions have a chart of their own.
        let is_sample_count = WaitView::ALL.iter().any(|view| view.samples() == name);
        let is_state = is_sample_count || WaitView::of_gauge(name).is_some();

        // Values since the database was opened say nothing about a second.
        let is_since_opened = matches!(series.role, Some(Role::UptimeSeconds | Role::StallPercent));
        if tree::is_drawn(series.role) || is_since_opened || is_state {
            continue;
        }

        let whole = match name.split_once('.') {
            // The parts of a replica have nothing in common.
            Some((whole, _)) if !whole.starts_with(REPLICA) => whole,
            _ => name.as_str(),
        };
        counters.entry(whole).or_default().push(name);
    }
    counters.into_iter().map(|(whole, names)| of_counter(row, whole, &names)).collect()
}

/// The unit in which counters are drawn.
#[derive(Clone, Copy)]
struct DrawnUnit {
    /// Empty for a plain number.
    name: &'static str,
    /// The counter's unit is divided by this.
    divisor: f64,
}

impl DrawnUnit {
    /// Returns the unit of a counter, whose name ends with the unit in which it counts.
    fn of(name: &str) -> Self {
        match name.rsplit_once('_') {
            Some((_, "bytes")) => Self { name: "MB", divisor: MIB },
            Some((_, "ns")) => Self { name: "ms", divisor: 1e6 },
            Some((_, "ms")) => Self { name: "ms", divisor: 1.0 },
            _ => Self { name: "", divisor: 1.0 },
        }
    }
}

/// Returns the chart of counters that share a name up to its first dot.
fn of_counter(row: &Row, whole: &str, names: &[&str]) -> RowCurve {
    let found: Vec<(&str, &CounterSeries)> =
        names.iter().filter_map(|name| Some((*name, row.series.engine.get(*name)?))).collect();
    let is_cumulative = found.iter().any(|(_, series)| series.cumulative);
    let role = found.iter().find_map(|(_, series)| series.role);
    let counter_parts = CounterParts::of(role, names);
    let unit = DrawnUnit::of(whole);

    let names_of_whole = counter_parts.whole(names);
    let columns: Vec<&Vec<Option<f64>>> = found
        .iter()
        .filter(|(name, _)| names_of_whole.contains(name))
        .map(|(_, series)| &series.values)
        .collect();
    let combined = match counter_parts {
        CounterParts::Scores => largest(columns),
        _ => added(columns, unit.divisor),
    };
    let values = sampled(row, combined);

    // Parts may move while the whole does not: rows that move from one table to another.
    let mut has_moved = moved(&values, is_cumulative);
    let mut parts = Vec::new();
    if names.len() > 1 {
        for (name, series) in found {
            let part = name.split_once('.').map_or(name, |(_, part)| part);
            let part_values = sampled(row, added(vec![&series.values], unit.divisor));
            has_moved |= moved(&part_values, is_cumulative);
            parts.push((part.to_string(), Curve::new(&part_values)));
        }
    }

    let subject = match counter_parts {
        CounterParts::Scores => "level_score, largest",
        _ => whole,
    };

    RowCurve {
        moved: has_moved,
        parts,
        parts_are: counter_parts.name(),
        ..RowCurve::whole(ChartPlace::Engine, 0, title(subject, unit, is_cumulative), &values)
    }
}

fn title(subject: &str, unit: DrawnUnit, is_cumulative: bool) -> String {
    let mut title = subject.to_string();
    if !unit.name.is_empty() {
        title += &format!(", {}", unit.name);
    }
    if is_cumulative {
        title += " per second";
    }
    title
}

/// Returns true if a counter grew or a gauge changed.
fn moved(values: &[Option<f64>], cumulative: bool) -> bool {
    let mut known = values.iter().flatten();
    if cumulative {
        known.any(|value| *value > 0.0)
    } else {
        known.next().is_some_and(|first| known.any(|value| value != first))
    }
}

/// Returns the maximum of columns in each second; `None` without any value.
fn largest(columns: Vec<&Vec<Option<f64>>>) -> Vec<Option<f64>> {
    let seconds = columns.iter().map(|column| column.len()).max().unwrap_or(0);
    let largest_in =
        |second: usize| columns.iter().filter_map(|column| *column.get(second)?).reduce(f64::max);
    (0..seconds).map(largest_in).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printers::page::seconds::tests::row;

    fn row_with(counters: &[(&str, bool, Option<Role>, [f64; 2])]) -> Row {
        let mut row = row(&[]);
        for (name, cumulative, role, values) in counters {
            let series = analysis::figures::CounterSeries {
                cumulative: *cumulative,
                values: values.map(Some).to_vec(),
                role: *role,
            };
            row.series.engine.insert(name.to_string(), series);
        }
        row
    }

    /// Returns the titles of charts that moved, what their parts are and how many, and their
    /// points.
    fn drawn(row: &Row) -> Vec<(String, &'static str, usize, Vec<f32>)> {
        let charts = of_row(row).into_iter().filter(|drawn| drawn.moved);
        charts
            .map(|drawn| (drawn.title, drawn.parts_are, drawn.parts.len(), drawn.whole.points))
            .collect()
    }

    #[test]
    fn only_counters_that_moved_are_drawn_and_tables_are_added_up() {
        let row = row_with(&[
            ("wal_bytes", true, None, [MIB, 2.0 * MIB]),
            ("deadlock_count", true, None, [0.0, 0.0]),
            ("dead_rows.pi1", false, None, [5.0, 5.0]),
            ("dead_rows.pi2", false, None, [5.0, 7.0]),
            ("database_bytes", false, None, [9.0, 9.0]),
        ]);
        let wal = "wal_bytes, MB per second".to_string();
        assert_eq!(
            drawn(&row),
            [
                ("dead_rows".into(), "each table", 2, vec![10.0, 12.0]),
                (wal, "each table", 0, vec![1.0, 2.0]),
            ]
        );
    }

    #[test]
    fn each_counter_of_a_replica_has_its_own_chart_and_unit() {
        let row = row_with(&[
            ("replica_1.cpu_user_ns", true, None, [1e6, 2e6]),
            ("replica_1.lag_ms", false, None, [5.0, 70.0]),
            ("replica_1.replayed_bytes", false, None, [0.0, MIB]),
        ]);
        let charts = drawn(&row).into_iter();
        let charts: Vec<_> = charts.map(|(title, _, _, points)| (title, points)).collect();
        assert_eq!(
            charts,
            [
                ("replica_1.cpu_user_ns, ms per second".into(), vec![1.0, 2.0]),
                ("replica_1.lag_ms, ms".into(), vec![5.0, 70.0]),
                ("replica_1.replayed_bytes, MB".into(), vec![0.0, 1.0]),
            ]
        );
    }

    #[test]
    fn what_can_not_be_added_up_is_made_one_another_way() {
        let [score, bytes, stalls] =
            [Role::LevelScore, Role::LevelBytes, Role::WriteStallCount].map(Some);
        let row = row_with(&[
            ("uptime_seconds", true, Some(Role::UptimeSeconds), [1.0, 1.0]),
            ("level_score.0", false, score, [1.0, 5.0]),
            ("level_score.1", false, score, [2.0, 3.0]),
            ("level_bytes.1", false, bytes, [MIB, MIB]),
            ("level_bytes.2", false, bytes, [MIB, 3.0 * MIB]),
            ("write_stall_count.memtable-limit-stops", true, stalls, [3.0, 0.0]),
            ("write_stall_count.l0-file-count-limit-delays", true, stalls, [1.0, 0.0]),
            (
                "write_stall_count.cf-l0-file-count-limit-delays-with-ongoing-compaction",
                true,
                stalls,
                [1.0, 0.0],
            ),
            ("write_stall_count.total-delays", true, stalls, [1.0, 0.0]),
            ("write_stall_count.total-stops", true, stalls, [3.0, 0.0]),
        ]);
        let stalls = "write_stall_count per second".to_string();
        assert_eq!(
            drawn(&row),
            [
                ("level_bytes, MB".into(), "each level", 2, vec![2.0, 4.0]),
                ("level_score, largest".into(), "each level", 2, vec![2.0, 5.0]),
                (stalls, "each reason", 5, vec![4.0, 0.0]),
            ]
        );
    }
}
