//! The columns of a step's tables, and the conversion of counts to their values.

use crate::files::{ColumnSpec, ColumnType, Value};

/// The key of the note in `host.parquet` that lists the columns that only grow, as a JSON array.
pub(crate) const CUMULATIVE_NOTE: &str = "assay.cumulative";

/// Returns the first columns of every sample.
pub(crate) fn sample_columns() -> [ColumnSpec; 2] {
    [ColumnSpec::new("second", ColumnType::Integer), ColumnSpec::new("at_ns", ColumnType::Integer)]
}

pub(crate) fn interval_columns() -> [ColumnSpec; 9] {
    [
        ColumnSpec::new("second", ColumnType::Integer),
        ColumnSpec::new("client", ColumnType::Integer),
        ColumnSpec::new("kind", ColumnType::Text),
        ColumnSpec::new("ok", ColumnType::Integer),
        ColumnSpec::new("failed", ColumnType::Integer),
        ColumnSpec::new("retried", ColumnType::Integer),
        ColumnSpec::new("rows", ColumnType::Integer),
        ColumnSpec::new("service_ns_max", ColumnType::Integer),
        ColumnSpec::new("response_ns_max", ColumnType::Integer),
    ]
}

pub(crate) fn counter_columns() -> [ColumnSpec; 5] {
    [
        ColumnSpec::new("second", ColumnType::Integer),
        ColumnSpec::new("at_ns", ColumnType::Integer),
        ColumnSpec::new("name", ColumnType::Text),
        ColumnSpec::new("value", ColumnType::Number),
        ColumnSpec::new("cumulative", ColumnType::Boolean),
    ]
}

pub(crate) fn profile_columns() -> [ColumnSpec; 3] {
    [
        ColumnSpec::new("depth", ColumnType::Integer),
        ColumnSpec::new("frame", ColumnType::Text),
        ColumnSpec::new("samples", ColumnType::Integer),
    ]
}

/// Converts a count or a time, none of which reaches 2^63.
pub(crate) fn integer(value: u64) -> Value<'static> {
    Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Converts a number that the writer wrote, which is never negative.
pub(crate) fn unsigned<T: TryFrom<i64> + Default>(value: i64) -> T {
    T::try_from(value).unwrap_or_default()
}
