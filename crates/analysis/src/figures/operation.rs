//! Knows what the operations of a step are for, by their roles: which of them a step is about, and
//! which connections do them.

use record::{OpRole, Step, StepKind};
use words::plural_of;

/// The kind of operation that a step is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MainOperation<'a> {
    /// The name of the kind.
    pub kind: &'a str,
    /// The meaning of the kind.
    pub role: OpRole,
}

/// Returns the kind that gives the engine new data in a step: the main operation of a load, or the
/// writes that run with the queries.
pub(crate) fn writing(step: &Step) -> Option<&str> {
    match step.kind {
        StepKind::Load | StepKind::Index => step.main_operation(),
        StepKind::Query | StepKind::Settle => {
            let mut kinds = step.ops.keys().map(String::as_str);
            kinds.find(|kind| step.role_of(kind).has_rate_in_rows())
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

/// Returns the role of the connections that are made for operations of a kind.
pub(crate) fn connection_role<'k>(step: &Step, kind: &'k str) -> &'k str {
    step.role_of(kind).connection(kind)
}

/// Returns the kinds of operations that share a requested rate of one kind: this one, and those that
/// its clients mix with it.
pub(crate) fn kinds_of_rate<'s>(step: &'s Step, kind: &str) -> Vec<&'s str> {
    let role = step.role_of(kind);
    let mut kinds = Vec::new();
    for other in step.ops.keys().map(String::as_str) {
        let is_mixed = match role {
            OpRole::Transaction => step.role_of(other) == role,
            _ if role.reads_keys() => !has_own_connections(step, other, kind),
            _ => false,
        };
        if other == kind || is_mixed {
            kinds.push(other);
        }
    }
    kinds
}

/// Returns whether a step has connections that are made for operations of a kind, and not for those
/// of `main`.
fn has_own_connections(step: &Step, kind: &str, main: &str) -> bool {
    let role = connection_role(step, kind);
    let mut connections = step.connections.iter();
    role != connection_role(step, main) && connections.any(|connection| connection.role == role)
}

/// Returns a sum over all operations of a role; `None` if no connection does them.
pub(crate) fn sum_of_role(
    step: &Step,
    role: OpRole,
    count: impl Fn(&record::Ops) -> u64,
) -> Option<u64> {
    // A damaged record may have any numbers.
    step.ops_of(role).map(|(_, ops)| count(ops)).reduce(u64::saturating_add)
}

/// Returns the name of one operation of a step, as in `per query`.
pub fn noun(kind: StepKind, main: Option<MainOperation<'_>>) -> &str {
    match (kind, main) {
        (StepKind::Settle, _) => "step",
        (StepKind::Index, _) | (StepKind::Load, None) => "row",
        (StepKind::Query, None) => "query",
        (StepKind::Load | StepKind::Query, Some(main)) => main.role.noun(main.kind),
    }
}

/// Returns the unit of a step's throughput.
pub fn throughput_unit(kind: StepKind, main: Option<MainOperation<'_>>) -> String {
    format!("{}/s", plural_of(noun(kind, main)))
}
