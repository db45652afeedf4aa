//! The sizes of tables and indexes after a step, and their bloat.

use record::{Counter, Role, Step};
use serde::Serialize;

/// A part of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TablePart {
    /// The table and its indexes.
    All,
    /// The table without its indexes, if it is not one of them.
    Table,
    /// An index.
    Index(String),
}

/// The size of a table or an index after a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Size {
    /// The table's name.
    pub table: String,
    /// The part of the table.
    pub part: TablePart,
    /// The size in bytes.
    pub bytes: f64,
    /// The engine determined the size before the table's last changes.
    pub is_old: bool,
    /// Bytes for each row that was counted after the step; `None` if rows were not counted, or the
    /// size is old.
    pub bytes_per_row: Option<f64>,
    /// The growth during the step; `None` if the table or index did not exist before, or if a size
    /// is old.
    pub growth_bytes: Option<f64>,
    /// Bytes in it that hold nothing.
    pub free_bytes: Option<f64>,
    /// The share of the leaf pages that holds entries.
    pub leaf_density_percent: Option<f64>,
    /// The share of the leaf pages whose successor in key order comes earlier in the file.
    pub leaf_fragmentation_percent: Option<f64>,
}

/// Returns the sizes after a step, table by table. Empty if the engine reports none.
pub(crate) fn sizes(step: &Step) -> Vec<Size> {
    let mut sizes: Vec<Size> =
        step.counters_after.iter().filter_map(|after| size(step, after)).collect();
    sizes.sort_by(|a, b| (&a.table, &a.part).cmp(&(&b.table, &b.part)));
    sizes
}

/// Returns the size that a counter reports; `None` if the counter is not a size.
fn size(step: &Step, after: &Counter) -> Option<Size> {
    let label = after.label()?;
    let (table, part) = match (after.role?, label.split_once('.')) {
        (Role::TableBytes, _) => (label, TablePart::All),
        (Role::PartBytes | Role::OldPartBytes, Some((table, index))) => {
            (table, TablePart::Index(index.to_owned()))
        }
        (Role::PartBytes | Role::OldPartBytes, None) => (label, TablePart::Table),
        _ => return None,
    };

    // An old size says nothing about the rows of this step.
    let is_old = after.role == Some(Role::OldPartBytes);
    let bytes = (!is_old).then_some(after.value);
    let rows = rows_of(step, table);
    let before = value(&step.counters_before, after.role?, label);
    let gauge = |role| value(&step.counters_after, role, label);

    Some(Size {
        bytes: after.value,
        is_old,
        bytes_per_row: bytes.zip(rows).map(|(bytes, rows)| bytes / rows),
        growth_bytes: bytes.zip(before).map(|(bytes, before)| bytes - before),
        free_bytes: gauge(Role::FreeBytes).filter(|_| part == TablePart::All),
        leaf_density_percent: gauge(Role::LeafDensityPercent),
        leaf_fragmentation_percent: gauge(Role::LeafFragmentationPercent),
        table: table.to_owned(),
        part,
    })
}

/// Returns the size of all indexes when the step began; `None` if the engine reports none, or one from
/// before a table's last changes.
pub(crate) fn index_bytes_before(step: &Step) -> Option<f64> {
    let is_of_index = |counter: &&Counter| {
        let is_part = matches!(counter.role, Some(Role::PartBytes | Role::OldPartBytes));
        is_part && counter.label().is_some_and(|label| label.contains('.'))
    };
    let mut indexes = step.counters_before.iter().filter(is_of_index).peekable();
    indexes.peek()?;

    let current = |index: &Counter| (index.role == Some(Role::PartBytes)).then_some(index.value);
    indexes.map(current).sum()
}

/// Returns the rows that the check of a table counted; `None` if it was not checked, or is empty.
fn rows_of(step: &Step, table: &str) -> Option<f64> {
    let check =
        step.checks.iter().find(|check| check.what.strip_prefix("rows of ") == Some(table))?;
    check.found.parse().ok().filter(|rows| *rows > 0.0)
}

fn value(counters: &[Counter], role: Role, label: &str) -> Option<f64> {
    counters
        .iter()
        .find(|counter| counter.role == Some(role) && counter.label() == Some(label))
        .map(|counter| counter.value)
}

#[cfg(test)]
mod tests {
    use record::Check;

    use super::*;

    fn gauge(name: &str, value: f64, role: Role) -> Counter {
        Counter::gauge(name, value).with_role(role)
    }

    #[test]
    fn sizes_have_their_rows_growth_and_bloat() {
        let step = Step {
            counters_before: vec![gauge("each.t1.pk", 600.0, Role::PartBytes)],
            counters_after: vec![
                gauge("each.t1.pk", 1000.0, Role::PartBytes),
                gauge("each.t1.k", 500.0, Role::PartBytes),
                gauge("density.t1.pk", 90.0, Role::LeafDensityPercent),
                gauge("table.t1", 4000.0, Role::PartBytes),
                gauge("total.t1", 5500.0, Role::TableBytes),
                gauge("free.t1", 700.0, Role::FreeBytes),
                gauge("dead.t1", 9.0, Role::DeadRows),
            ],
            checks: vec![Check::new("rows of t1", 100, 100, true)],
            ..Step::default()
        };
        let found = sizes(&step);
        let parts: Vec<_> = found.iter().map(|it| (&it.part, it.bytes)).collect();
        let index = |name: &str| TablePart::Index(name.to_owned());
        let expected = [
            (&TablePart::All, 5500.0),
            (&TablePart::Table, 4000.0),
            (&index("k"), 500.0),
            (&index("pk"), 1000.0),
        ];
        assert_eq!(parts, expected);
        assert_eq!((found[0].free_bytes, found[1].free_bytes), (Some(700.0), None));
        assert_eq!(found[2].growth_bytes, None);
        assert_eq!(found[2].bytes_per_row, Some(5.0));
        assert_eq!(found[3].growth_bytes, Some(400.0));
        assert_eq!(found[3].leaf_density_percent, Some(90.0));
    }

    #[test]
    fn an_old_size_says_nothing_about_rows_or_growth() {
        let old = gauge("each.t1.pk", 1000.0, Role::OldPartBytes);
        let found = sizes(&Step {
            counters_before: vec![gauge("each.t1.pk", 600.0, Role::PartBytes)],
            counters_after: vec![old],
            checks: vec![Check::new("rows of t1", 100, 100, true)],
            ..Step::default()
        });
        assert_eq!((found[0].bytes, found[0].is_old), (1000.0, true));
        assert_eq!((found[0].bytes_per_row, found[0].growth_bytes), (None, None));
    }

    #[test]
    fn the_indexes_before_a_step_are_added_up_if_all_sizes_are_current() {
        let before = |counters: Vec<Counter>| {
            index_bytes_before(&Step { counters_before: counters, ..Step::default() })
        };
        let table = gauge("table.t1", 4000.0, Role::PartBytes);
        let pk = gauge("each.t1.pk", 600.0, Role::PartBytes);
        let k = |role| gauge("each.t1.k", 300.0, role);
        assert_eq!(before(vec![table.clone(), pk.clone(), k(Role::PartBytes)]), Some(900.0));
        assert_eq!(before(vec![table.clone(), pk, k(Role::OldPartBytes)]), None);
        assert_eq!(before(vec![table]), None);
    }
}
