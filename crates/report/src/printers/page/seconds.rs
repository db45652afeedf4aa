//! Columns of seconds for charts.

use std::collections::BTreeMap;

use analysis::figures::Row;

/// The columns of a host, second by second.
pub(super) type HostColumns = BTreeMap<String, Vec<Option<f64>>>;

/// Bytes in a megabyte, as metrics count them.
pub(super) const MIB: f64 = 1_048_576.0;

/// The minimum length of a last second that is drawn: a rate of a shorter one says nothing.
const LAST_SECOND_MIN: f64 = 0.1;

/// Returns the length of the last second, if it is incomplete.
fn last_second(row: &Row, seconds: usize) -> Option<f64> {
    let part = row.seconds - (seconds.checked_sub(1)? as f64);
    (part > 0.0 && part < 1.0).then_some(part)
}

/// Returns the rates of each second. An incomplete last second is scaled, so that the end of a step
/// does not look like a drop.
pub(super) fn rates(row: &Row, mut done: Vec<Option<f64>>) -> Vec<Option<f64>> {
    let part = last_second(row, done.len());
    if let (Some(part), Some(last)) = (part, done.last_mut()) {
        let is_long_enough = part >= LAST_SECOND_MIN;
        *last = last.filter(|_| is_long_enough).map(|count| count / part);
    }
    done
}

/// Returns the samples of each second, without a last second that is too short.
pub(super) fn sampled(row: &Row, mut values: Vec<Option<f64>>) -> Vec<Option<f64>> {
    let is_short = last_second(row, values.len()).is_some_and(|part| part < LAST_SECOND_MIN);
    if is_short && let Some(last) = values.last_mut() {
        *last = None;
    }
    values
}

pub(super) fn counts(values: &[u64]) -> Vec<Option<f64>> {
    values.iter().map(|value| Some(*value as f64)).collect()
}

/// Returns the sum of existing columns, divided; `None` in a second in which one of them is
/// missing.
pub(super) fn sum(row: &Row, names: &[&str], divisor: f64) -> Vec<Option<f64>> {
    sum_of(&row.series.host, names, divisor)
}

/// Like [`sum`], but for the columns of any host.
pub(super) fn sum_of(host: &HostColumns, names: &[&str], divisor: f64) -> Vec<Option<f64>> {
    let columns = names.iter().filter_map(|name| host.get(*name));
    added(columns.collect(), divisor)
}

/// Returns the sum of columns divided by `divisor`; `None` in seconds in which a column has no
/// value.
pub(super) fn added(columns: Vec<&Vec<Option<f64>>>, divisor: f64) -> Vec<Option<f64>> {
    let seconds = columns.iter().map(|column| column.len()).max().unwrap_or(0);
    let sum_in = |second: usize| {
        let values = columns.iter().map(|column| column.get(second).copied().flatten());
        values.sum::<Option<f64>>().map(|sum| sum / divisor)
    };
    (0..seconds).map(sum_in).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::printers::page) fn row(columns: &[(&str, &[Option<f64>])]) -> Row {
        Row {
            cell: record::CellKey::new("a.b", None, 1, 1),
            workload: "insert".into(),
            step: "l.i0".into(),
            kind: record::StepKind::Load,
            main_op: Some("insert".into()),
            reported: true,
            status: record::Status::Complete,
            seconds: 2.0,
            valid: true,
            series: analysis::figures::Series {
                host: columns
                    .iter()
                    .map(|(name, values)| (name.to_string(), values.to_vec()))
                    .collect(),
                ..Default::default()
            },
            ..Row::default()
        }
    }

    #[test]
    fn an_incomplete_last_second_does_not_look_like_a_drop() {
        let mut row = row(&[]);
        let of = |row: &Row| rates(row, counts(&[100, 0, 25]));
        row.seconds = 3.0;
        assert_eq!(of(&row), [Some(100.0), Some(0.0), Some(25.0)]);
        row.seconds = 2.25;
        assert_eq!(of(&row), [Some(100.0), Some(0.0), Some(100.0)]);
        assert_eq!(sampled(&row, counts(&[1, 2, 3])), counts(&[1, 2, 3]));
        row.seconds = 2.0625;
        assert_eq!(of(&row), [Some(100.0), Some(0.0), None]);
        assert_eq!(sampled(&row, counts(&[1, 2, 3])), [Some(1.0), Some(2.0), None]);
    }

    #[test]
    fn a_missing_column_gives_no_curve_instead_of_zero() {
        assert!(sum(&row(&[]), &["disk_read_bytes"], 1.0).is_empty());
    }
}
