//! Checks that tables have enough rows for what the plan does with them.

use super::PATH;
use super::step_values::StepRead;
use crate::reading::context::{Context, Field};
use crate::reading::quantity::COUNT;
use crate::spec::{InsertStepKind, WriteEnd};
use crate::text::diagnostic::Place;
use crate::text::wording::code;

/// With a delete per insert, a table needs the rows of at least this many commits, so that deletes
/// that run ahead of inserts do not empty it.
const COMMITS_IN_TABLE: u64 = 10;

/// Reports more partitions than there are rows, and partitions of an unknown number of rows.
pub(super) fn check_partitions(
    cx: &mut Context<'_>,
    partitions: &Field<u32>,
    initial_rows: &Field<u64>,
    write_rows: &Field<u64>,
    steps: &[StepRead],
) {
    if partitions.value == 0 {
        return;
    }

    let timed = steps.iter().find(|read| {
        matches!(read.step.kind, InsertStepKind::Write { until: WriteEnd::Time(_), .. })
    });
    if let Some(StepRead { step, .. }) = timed {
        let message = format!(
            "partitions need a known number of rows, but step {} runs for a time",
            code(&step.name)
        );
        cx.error("plan::conflict", partitions.place, message)
            .label("each partition holds the same number of rows")
            .help("give the step `rows` instead of `time`, or remove `partitions`");
        return;
    }

    let total_rows = initial_rows.value + write_rows.value;
    let are_trusted = partitions.trusted && initial_rows.trusted && write_rows.trusted;
    if are_trusted && u64::from(partitions.value) > total_rows {
        let message = format!(
            "`{PATH}.partitions` is {}, but a table has only {total_rows} rows",
            partitions.value
        );
        cx.error("plan::conflict", partitions.place, message)
            .label("more partitions than rows")
            .also(initial_rows.place, "rows loaded")
            .also(write_rows.place, "rows written")
            .help(format!("use at most {total_rows} partitions, or more rows"));
    }
}

/// Reports tables that deletes could empty, if there are deletes. `deleters` connections delete
/// from one table.
pub(super) fn check_dry(
    cx: &mut Context<'_>,
    steps: &[StepRead],
    deleters: u32,
    delete_per_insert: &Field<bool>,
) {
    if !delete_per_insert.value {
        return;
    }

    let load = steps.iter().find(|read| read.step.kind.is_load());
    let largest = steps.iter().filter(|read| deletes(read.step.kind));
    let largest = largest.max_by_key(|read| read.rows_per_commit.value);
    let (Some(loaded), Some(largest)) = (load.and_then(|read| read.rows.as_ref()), largest) else {
        return;
    };

    let per_commit = &largest.rows_per_commit;
    let needed = COMMITS_IN_TABLE * u64::from(per_commit.value) * u64::from(deleters);
    let are_trusted = loaded.trusted && per_commit.trusted && delete_per_insert.trusted;
    if !are_trusted || loaded.value >= needed {
        return;
    }

    let clients = match deleters {
        1 => String::new(),
        _ => format!(", for each of {deleters} clients"),
    };
    let message = format!(
        "a table of {} rows is too small for step {}, which deletes {} rows at a time{clients}",
        loaded.value,
        code(&largest.step.name),
        per_commit.value
    );

    // Whichever of the three the plan sets is marked, and the other two beside it.
    let marked = loaded.place.or(per_commit.place).or(delete_per_insert.place);
    cx.error("plan::conflict", marked, message)
        .label(format!(
            "expected at least {} rows, enough for {COMMITS_IN_TABLE} commits",
            COUNT.format(needed)
        ))
        .help(format!(
            "load more rows, commit fewer at a time, or set `{PATH}.delete-per-insert = false`"
        ))
        .also(unless_marked(per_commit.place, marked), "rows per commit")
        .also(unless_marked(delete_per_insert.place, marked), "each insert comes with a delete");
}

/// Returns whether a step deletes a row for each that it inserts.
fn deletes(kind: InsertStepKind) -> bool {
    matches!(kind, InsertStepKind::Write { .. } | InsertStepKind::Query { .. })
}

fn unless_marked(place: Place, marked: Place) -> Place {
    if place == marked { Place::Nowhere } else { place }
}
