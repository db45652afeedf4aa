//! What kinds of operation are called in titles, heads and charts, and in which order they stand.

use analysis::OpFigures;
use record::StepKind;

use crate::matrix::{Matrix, StepHead};

/// Kinds in the order in which they are shown: what writes before what reads. Others follow by their names.
const ORDER: [&str; 8] = [
    "insert", "put", "delete", "query", "event", "get", "multiget", "scan",
];

/// Kinds of operation that connections need to know where they are. They are counted like all others; nobody compares
/// engines by them.
const BOOKKEEPING: [&str; 2] = ["get_min", "get_max"];

/// What is counted as an operation in a step: `row inserted`, `get`.
pub(crate) fn noun(step: StepHead<'_>) -> &str {
    match (step.kind, analysis::noun(step.kind, step.main_op)) {
        (StepKind::Index, _) => "row indexed",
        (_, "row") => "row inserted",
        (_, noun) => noun,
    }
}

/// The unit of a step's throughput.
pub(crate) fn unit(step: StepHead<'_>) -> String {
    analysis::throughput_unit(step.kind, step.main_op)
}

/// Whether all of these steps count the same.
pub(crate) fn count_alike(steps: &[StepHead<'_>]) -> bool {
    steps.windows(2).all(|two| unit(two[0]) == unit(two[1]))
}

/// Whether a step is about something else than the rows and queries of the field.
fn is_of_its_own(step: StepHead<'_>) -> bool {
    !matches!(
        noun(step),
        "row inserted" | "row indexed" | "query" | "step"
    )
}

/// The title of a table of throughput: where steps count other things than the field's, each says so in its head.
pub(crate) fn throughput_title(
    matrix: &Matrix<'_>,
    group: Option<&str>,
    steps: &[StepHead<'_>],
) -> String {
    let units = if matrix.measured().any(is_of_its_own) {
        ""
    } else if group.is_some() && steps.iter().all(|step| noun(*step) == "query") {
        ": queries/s"
    } else {
        ": rows/s inserted in load steps, rows/s indexed in index steps, queries/s in query steps"
    };
    match group {
        Some(group) => format!("{group}: throughput{}", units.replacen(':', ",", 1)),
        None => format!("Throughput{units}"),
    }
}

/// The head of a step's column of throughput.
pub(crate) fn throughput_head(matrix: &Matrix<'_>, step: StepHead<'_>) -> String {
    let name = step_head(step.name);
    if matrix.measured().any(is_of_its_own) {
        format!("{name}\n{}", unit(step))
    } else {
        name
    }
}

/// Letters beyond which a step's name is broken in two.
const HEAD_MAX: usize = 12;

/// A step's name as the head of a column: long ones in two lines.
pub(crate) fn step_head(name: &str) -> String {
    let at = match name.find("whilewriting") {
        Some(at) => Some(at).filter(|&at| at > 0),
        // After the hyphen that leaves the shorter line.
        None if name.len() > HEAD_MAX => {
            let hyphens = name.match_indices('-').map(|(at, _)| at + 1);
            hyphens
                .filter(|&at| at < name.len())
                .min_by_key(|&at| at.max(name.len() - at))
        }
        None => None,
    };
    at.map_or_else(
        || name.to_string(),
        |at| format!("{}\n{}", &name[..at], &name[at..]),
    )
}

/// What a rate of a kind counts, many of them.
pub(crate) fn counted(kind: &str) -> &str {
    match kind {
        "insert" => "rows",
        "put" => "puts",
        "event" => "events",
        _ => "rows or keys",
    }
}

/// Whether rows are counted of a kind in charts: in others operations.
pub(crate) fn counts_rows(kind: &str) -> bool {
    matches!(kind, "insert" | "delete")
}

/// What is done per second of a kind.
pub(crate) fn rate_title(kind: &str) -> String {
    match kind {
        "put" | "get" | "multiget" | "scan" | "event" => format!("{kind}: {kind}s per second"),
        kind if counts_rows(kind) => format!("{kind}: rows per second"),
        kind => format!("{kind}: operations per second"),
    }
}

/// Names of percentiles in the order of [`analysis::Percentiles::values`].
pub(crate) const PERCENTILES: [&str; 8] =
    ["p50", "p90", "p95", "p99", "p99.9", "p99.99", "max", "mean"];

/// Returns one of the times of the operations that succeeded by its name, such as `service_us_p99.9`.
pub(crate) fn time_of(op: &OpFigures, name: &str) -> Option<f64> {
    let (times, name) = match name.strip_prefix("service_us_") {
        Some(name) => (&op.service_us, name),
        None => (&op.response_us, name.strip_prefix("response_us_")?),
    };
    let name = name.replace('_', ".");
    let at = PERCENTILES.iter().position(|known| *known == name)?;
    (op.count > 0).then(|| times.values()[at])
}

/// Whether a kind is of those.
pub(crate) fn is_bookkeeping(kind: &str) -> bool {
    BOOKKEEPING.contains(&kind)
}

/// Where a kind stands among the others; those of one place stand by their names.
pub(crate) fn place(kind: &str) -> usize {
    let known = ORDER.iter().position(|known| *known == kind);
    known.unwrap_or(ORDER.len() + usize::from(is_bookkeeping(kind)))
}

/// The kinds of operation of a step, those that write first.
pub(crate) fn kinds<'a>(matrix: &Matrix<'a>, step: StepHead<'a>) -> Vec<&'a str> {
    let mut kinds: Vec<&str> = Vec::new();
    for row in matrix.rows_of(step) {
        kinds.extend(row.ops.keys().map(String::as_str));
        kinds.extend(row.series.ops.keys().map(String::as_str));
    }
    kinds.sort_by_key(|kind| (place(kind), *kind));
    kinds.dedup();
    kinds
}

/// The same in two lists: what the step is about, and what its connections do beside it.
pub(crate) fn kinds_apart<'a>(
    matrix: &Matrix<'a>,
    step: StepHead<'a>,
) -> (Vec<&'a str>, Vec<&'a str>) {
    kinds(matrix, step)
        .into_iter()
        .partition(|kind| !is_bookkeeping(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_the_names_of_what_they_do() {
        let of = |kind, main_op| {
            let step = StepHead {
                name: "s",
                kind,
                main_op,
                group: None,
                reported: true,
            };
            (noun(step).to_string(), unit(step))
        };
        let named = |noun: &str, unit: &str| (noun.to_string(), unit.to_string());
        assert_eq!(
            of(StepKind::Load, Some("insert")),
            named("row inserted", "rows/s")
        );
        assert_eq!(
            of(StepKind::Index, Some("insert")),
            named("row indexed", "rows/s")
        );
        assert_eq!(
            of(StepKind::Query, Some("query")),
            named("query", "queries/s")
        );
        assert_eq!(
            of(StepKind::Query, Some("event")),
            named("query", "queries/s")
        );
        assert_eq!(of(StepKind::Load, Some("put")), named("put", "puts/s"));
        assert_eq!(
            of(StepKind::Query, Some("multiget")),
            named("multiget", "multigets/s")
        );
    }

    #[test]
    fn a_long_name_of_a_step_takes_two_lines() {
        assert_eq!(
            step_head("fwdrangewhilewriting.2"),
            "fwdrange\nwhilewriting.2"
        );
        assert_eq!(step_head("overwrite"), "overwrite");
        assert_eq!(step_head("whilewriting"), "whilewriting");
        assert_eq!(step_head("points-notcovered-si"), "points-\nnotcovered-si");
        assert_eq!(step_head("read-write-100"), "read-\nwrite-100");
        assert_eq!(step_head("update-one"), "update-one");
        assert_eq!(step_head("averylongname-"), "averylongname-");
    }
}
