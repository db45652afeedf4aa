//! Which kinds of operation a step is about, and who does them. What is counted of them, rows or operations, the kind of
//! step says.

use record::{Step, StepKind};

pub(crate) const INSERT: &str = "insert";
pub(crate) const DELETE: &str = "delete";
pub(crate) const QUERY: &str = "query";
pub(crate) const PUT: &str = "put";
pub(crate) const EVENT: &str = "event";

/// Kinds that give the engine new data.
const WRITING: [&str; 2] = [INSERT, PUT];

/// Kinds that read keys and values: their rows are keys that were found, and entries that were passed.
const READING: [&str; 3] = ["get", "multiget", "scan"];

/// Whether operations of this kind read keys and values.
fn reads_keys(kind: &str) -> bool {
    READING.contains(&kind)
}

/// Whether the rows of operations of this kind are what was read.
pub(crate) fn reads(kind: &str) -> bool {
    kind == QUERY || reads_keys(kind)
}

/// Whether operations of this kind are of keys and values, all of one size.
pub(crate) fn is_key_value(kind: &str) -> bool {
    kind == PUT || reads_keys(kind)
}

/// Whether a rate of this kind is one of rows, or keys, rather than of operations.
pub(crate) fn has_rate_in_rows(kind: &str) -> bool {
    WRITING.contains(&kind)
}

/// The kind that gives the engine new data in a step: what a load is about, or what runs beside the queries.
pub(crate) fn writing(step: &Step) -> Option<&str> {
    match step.kind {
        StepKind::Load => step.main_operation(),
        StepKind::Index => Some(INSERT),
        StepKind::Query | StepKind::Settle => WRITING
            .into_iter()
            .find(|kind| step.ops.contains_key(*kind)),
    }
}

/// How much of what it is about a step did: in load steps rows, in query steps operations, or queries where these are
/// counted. What an index step indexed is not counted by an operation.
pub(crate) fn done(step: &Step) -> Option<f64> {
    let ops = step.ops.get(step.main_operation()?)?;
    match step.kind {
        StepKind::Load => Some(ops.rows as f64),
        StepKind::Query => Some(ops.ok as f64 * queries_each(step)),
        StepKind::Index | StepKind::Settle => None,
    }
}

/// Queries that one operation of a query step's main kind stands for.
pub(crate) fn queries_each(step: &Step) -> f64 {
    step.queries_per_event
        .filter(|_| step.kind == StepKind::Query)
        .unwrap_or(1.0)
}

/// The role of the connections that do operations of this kind.
pub(crate) fn role_of(kind: &str) -> &str {
    match kind {
        PUT => "write",
        kind if reads_keys(kind) => "read",
        kind => kind,
    }
}

/// Returns what one operation of a step is called, as it stands after `per`.
pub fn noun(kind: StepKind, main_op: Option<&str>) -> &str {
    match (kind, main_op) {
        (StepKind::Settle, _) => "step",
        (StepKind::Index, _) | (StepKind::Load, Some(INSERT) | None) => "row",
        // Of events their queries are counted.
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
