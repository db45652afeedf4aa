//! The names of kinds of operation in titles, heads and charts, and their order.

use std::collections::BTreeMap;

use analysis::figures::OpFigures;
use record::StepKind;
use words::{OpChart, OpRole};

use crate::model::matrix::{Matrix, StepHead};

/// Returns the operation that a step counts: `row inserted`, `get`.
pub(crate) fn noun(step: StepHead<'_>) -> &str {
    match (step.kind, analysis::figures::noun(step.kind, step.main_op)) {
        (StepKind::Index, _) => "row indexed",
        (_, "row") => "row inserted",
        (_, noun) => noun,
    }
}

/// Returns the unit of a step's throughput.
pub(crate) fn unit(step: StepHead<'_>) -> String {
    analysis::figures::throughput_unit(step.kind, step.main_op)
}

/// Returns true if all these steps have the same unit.
pub(crate) fn count_alike(steps: &[StepHead<'_>]) -> bool {
    steps.windows(2).all(|two| unit(two[0]) == unit(two[1]))
}

/// Returns what all of these steps count: `query`, or `row` for rows that are inserted and rows that
/// are indexed, or `operation` for different things.
pub(crate) fn common_noun<'a>(steps: &[StepHead<'a>]) -> &'a str {
    let Some(first) = steps.first() else { return "operation" };

    let are_all = |wanted: &str| steps.iter().all(|step| noun(*step).starts_with(wanted));
    if are_all(noun(*first)) {
        noun(*first)
    } else if are_all("row ") {
        "row"
    } else {
        "operation"
    }
}

/// Returns true if any measured step counts something else than rows or queries.
pub(crate) fn has_other_units(matrix: &Matrix<'_>) -> bool {
    matrix.measured().any(has_other_unit)
}

fn has_other_unit(step: StepHead<'_>) -> bool {
    !matches!(noun(step), "row inserted" | "row indexed" | "query" | "step")
}

/// Returns the head of a step's column of throughput.
pub(crate) fn throughput_head(matrix: &Matrix<'_>, step: StepHead<'_>) -> String {
    let name = step_head(step.name);
    if has_other_units(matrix) { format!("{name}\n{}", unit(step)) } else { name }
}

/// The maximum length of a step's name in one line.
const HEAD_MAX: usize = 12;

/// Returns a step's name as a column header; breaks a long name into two lines.
pub(crate) fn step_head(name: &str) -> String {
    let at = match name.find("whilewriting") {
        Some(at) => Some(at).filter(|&at| at > 0),
        // After the hyphen that gives the shortest lines.
        None if name.len() > HEAD_MAX => name
            .match_indices('-')
            .map(|(at, _)| at + 1)
            .filter(|&at| at < name.len())
            .min_by_key(|&at| at.max(name.len() - at)),
        None => None,
    };

    match at {
        Some(at) => format!("{}\n{}", &name[..at], &name[at..]),
        None => name.to_string(),
    }
}

/// Returns the title of a chart of a kind's rate.
pub(crate) fn rate_title(kind: &str, role: OpRole) -> String {
    match role.facts().charted {
        OpChart::Rows => format!("{kind}: rows per second"),
        OpChart::Kind => format!("{kind}: {kind}s per second"),
        OpChart::Operations => format!("{kind}: operations per second"),
    }
}

/// Returns a latency of the successful operations by name, such as `service_us_p99.9`. `None` if
/// there were too few operations for it.
pub(crate) fn time_of(op: &OpFigures, name: &str) -> Option<f64> {
    let (times, percentile) = match name.strip_prefix("service_us_") {
        Some(percentile) => (&op.service_us, percentile),
        None => (&op.response_us, name.strip_prefix("response_us_")?),
    };
    // Columns of files have `_` in the place of a point.
    times.of_operations(&percentile.replace('_', "."), op.count)
}

/// Returns the kinds of operation of a step with their roles.
fn roles<'a>(matrix: &Matrix<'a>, step: StepHead<'a>) -> BTreeMap<&'a str, OpRole> {
    let mut roles = BTreeMap::new();
    for row in matrix.rows_of(step) {
        for kind in row.ops.keys().chain(row.series.ops.keys()) {
            roles.entry(kind.as_str()).or_insert_with(|| row.role_of(kind));
        }
    }
    roles
}

/// Returns the kinds of operation of a step, writes first.
pub(crate) fn kinds<'a>(matrix: &Matrix<'a>, step: StepHead<'a>) -> Vec<&'a str> {
    let roles = roles(matrix, step);
    let mut kinds: Vec<&str> = roles.keys().copied().collect();
    // Kinds with equal places stay in the order of their names.
    kinds.sort_by_key(|kind| roles[kind].facts().place);
    kinds
}

/// Returns the kinds of operation of a step, and separately the bookkeeping of its connections.
pub(crate) fn split_kinds<'a>(
    matrix: &Matrix<'a>,
    step: StepHead<'a>,
) -> (Vec<&'a str>, Vec<&'a str>) {
    let roles = roles(matrix, step);
    kinds(matrix, step).into_iter().partition(|kind| !roles[kind].facts().is_bookkeeping)
}

#[cfg(test)]
mod tests {
    use analysis::figures::MainOperation;

    use super::*;

    #[test]
    fn operations_have_the_names_of_what_they_do() {
        let of = |kind, main_op: Option<&str>| {
            let main_op = main_op.map(|kind| MainOperation { kind, role: OpRole::of_kind(kind) });
            let step = StepHead { name: "s", kind, main_op, group: None, reported: true };
            (noun(step).to_string(), unit(step))
        };
        let named = |noun: &str, unit: &str| (noun.to_string(), unit.to_string());
        assert_eq!(of(StepKind::Load, Some("insert")), named("row inserted", "rows/s"));
        assert_eq!(of(StepKind::Index, Some("insert")), named("row indexed", "rows/s"));
        assert_eq!(of(StepKind::Query, Some("query")), named("query", "queries/s"));
        assert_eq!(of(StepKind::Query, Some("event")), named("query", "queries/s"));
        assert_eq!(of(StepKind::Load, Some("put")), named("put", "puts/s"));
        assert_eq!(of(StepKind::Query, Some("multiget")), named("multiget", "multigets/s"));
    }

    #[test]
    fn a_long_name_of_a_step_takes_two_lines() {
        assert_eq!(step_head("fwdrangewhilewriting.2"), "fwdrange\nwhilewriting.2");
        assert_eq!(step_head("overwrite"), "overwrite");
        assert_eq!(step_head("whilewriting"), "whilewriting");
        assert_eq!(step_head("points-notcovered-si"), "points-\nnotcovered-si");
        assert_eq!(step_head("read-write-100"), "read-\nwrite-100");
        assert_eq!(step_head("update-one"), "update-one");
        assert_eq!(step_head("averylongname-"), "averylongname-");
    }
}
