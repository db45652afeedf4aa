//! Knows the kinds of operations: which a step is about, which connections do them, and whether
//! rows or operations count.

use record::{Step, StepKind};

pub(crate) const INSERT: &str = "insert";
pub(crate) const DELETE: &str = "delete";
pub(crate) const QUERY: &str = "query";
pub(crate) const PUT: &str = "put";
pub(crate) const EVENT: &str = "event";

/// Kinds that give the engine new data.
const WRITING: [&str; 2] = [INSERT, PUT];

/// Kinds that read keys and values: their rows are found keys and passed entries.
const READING: [&str; 3] = ["get", "multiget", "scan"];

/// Returns whether operations of this kind read keys and values.
fn reads_keys(kind: &str) -> bool {
    READING.contains(&kind)
}

/// Returns whether the rows of this kind of operation are rows that were read.
pub(crate) fn reads(kind: &str) -> bool {
    kind == QUERY || reads_keys(kind)
}

/// Returns whether operations of this kind have keys and values, all of one size.
pub(crate) fn is_key_value(kind: &str) -> bool {
    kind == PUT || reads_keys(kind)
}

/// Returns whether a rate of this kind counts rows or keys rather than operations.
pub(crate) fn has_rate_in_rows(kind: &str) -> bool {
    WRITING.contains(&kind)
}

/// Returns the kind that gives the engine new data in a step: the main operation of a load, or the
/// writes that run with the queries.
pub(crate) fn writing(step: &Step) -> Option<&str> {
    match step.kind {
        StepKind::Load => step.main_operation(),
        StepKind::Index => Some(INSERT),
        StepKind::Query | StepKind::Settle => {
            WRITING.into_iter().find(|kind| step.ops.contains_key(*kind))
        }
    }
}

/// Returns the work of a step: rows in load steps, and operations, or queries if these are counted,
/// in query steps. `None` in index steps, whose rows no operation counts.
pub(crate) fn done(step: &Step) -> Option<f64> {
    let ops = step.ops.get(step.main_operation()?)?;
    match step.kind {
        StepKind::Load => Some(ops.rows as f64),
        StepKind::Query => Some(ops.ok as f64 * queries_each(step)),
        StepKind::Index | StepKind::Settle => None,
    }
}

/// Returns the number of queries in one operation of a query step's main kind.
pub(crate) fn queries_each(step: &Step) -> f64 {
    step.queries_per_event.filter(|_| step.kind == StepKind::Query).unwrap_or(1.0)
}

/// Returns the role of the connections that do operations of this kind.
pub(crate) fn role_of(kind: &str) -> &str {
    match kind {
        PUT => "write",
        kind if reads_keys(kind) => "read",
        kind => kind,
    }
}

/// Returns the name of one operation of a step, as in `per query`.
pub fn noun(kind: StepKind, main_op: Option<&str>) -> &str {
    match (kind, main_op) {
        (StepKind::Settle, _) => "step",
        (StepKind::Index, _) | (StepKind::Load, Some(INSERT) | None) => "row",
        // For events, their queries are counted.
        (StepKind::Query, None | Some(EVENT)) => "query",
        (_, Some(kind)) => kind,
    }
}

/// Returns the unit of a step's throughput.
pub fn throughput_unit(kind: StepKind, main_op: Option<&str>) -> String {
    match noun(kind, main_op) {
        "query" => "queries/s".to_owned(),
        noun => format!("{noun}s/s"),
    }
}
