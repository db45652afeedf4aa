//! The tables of one step, in the order in which a terminal and exports by name show them.

use super::{classic, lsm, metrics, quality, times, turns};
use crate::model::matrix::{Matrix, StepHead};
use crate::model::operations::split_kinds;
use crate::model::table::Table;

/// Returns the short tables of a step.
pub(crate) fn short(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    let mut tables = vec![
        metrics::metrics(matrix, step),
        metrics::costs(matrix, step),
        metrics::time(matrix, step),
        metrics::upkeep(matrix, step),
        metrics::replication(matrix, step),
        quality::spread(matrix, step),
    ];

    tables.extend(lsm::tables(matrix, step));
    tables
}

/// Returns the longer tables of a step.
pub(crate) fn details(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    let (kinds, _) = split_kinds(matrix, step);
    let mut tables = quality::details(matrix, step);
    tables.push(times::accounting(matrix, step));
    tables.push(times::buckets(matrix, step, &kinds));
    tables.push(times::percentiles(matrix, step, &kinds));
    tables.push(turns::totals(matrix, step));
    tables
}

/// Returns all tables of a step that are not empty.
pub(crate) fn all(matrix: &Matrix<'_>, step: StepHead<'_>) -> Vec<Table> {
    let mut tables = short(matrix, step);
    tables.extend(details(matrix, step));
    tables.extend(metrics::of_host(matrix, step));
    tables.push(classic::counters(matrix, step));
    tables.retain(|table| !table.is_empty());
    tables
}
