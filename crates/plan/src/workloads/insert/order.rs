//! Checks that each step comes after what it needs.

use super::{Kind, PATH};
use crate::reading::context::{Context, Field};
use crate::spec::{INDEX_NAMES, Query};
use crate::text::diagnostic::{Diagnostic, Place, Severity};
use crate::text::wording::{code, list};
use crate::workloads::step::{self, StepName, StepNames};

/// A step in the plan's list, with its place.
type PlacedStep = (StepName<Kind>, Place);

/// Reports steps that come before what they need.
pub(super) fn check_order(cx: &mut Context<'_>, names: &StepNames<Kind>, indexes: &Field<u32>) {
    if !step::check_load(cx, names, Kind::Load, "tables") {
        cx.error("plan::step-order", names.place, "no step loads the tables")
            .label("`l.i0` is missing")
            .help("start the list with `l.i0`, which creates the tables and loads the first rows");
    }
    step::check_once(cx, names, Kind::Load, "the tables are loaded");
    step::check_once(cx, names, Kind::Index, "the indexes exist");

    if indexes.value < INDEX_NAMES.len() as u32 {
        check_indexes(cx, &names.value, indexes);
    }
    if indexes.value > 0 {
        check_before_indexes(cx, &names.value);
    }
}

/// Reports the first range query and the first write before `l.x`.
fn check_before_indexes(cx: &mut Context<'_>, steps: &[PlacedStep]) {
    let index_at = steps.iter().position(|(step, _)| step.kind == Kind::Index);
    let before = &steps[..index_at.unwrap_or(steps.len())];

    let scan = before
        .iter()
        .find(|(step, _)| matches!(step.kind, Kind::Query { query: Query::Range, .. }));
    if let Some(step) = scan {
        report_before_indexes(cx, steps, step, "scans");
    }

    // Writes without indexes are faster, which may be what the plan is for.
    let write =
        before.iter().find(|(step, _)| matches!(step.kind, Kind::FirstWrite | Kind::SecondWrite));
    if let Some(step) = write {
        report_before_indexes(cx, steps, step, "maintains").severity = Severity::Warning;
    }
}

fn report_before_indexes<'c>(
    cx: &'c mut Context<'_>,
    steps: &[PlacedStep],
    (step, place): &PlacedStep,
    does: &str,
) -> &'c mut Diagnostic {
    let index_place = steps.iter().find(|(step, _)| step.kind == Kind::Index).map(|step| step.1);

    let help = match index_place {
        Some(_) => "move `l.x` before it",
        None => "add `l.x` before it",
    };

    let message = format!("step {} comes before the indexes that it {does}", code(&step.name));
    cx.error("plan::step-order", *place, message)
        .label("there are no secondary indexes yet")
        .also(index_place.unwrap_or(Place::Nowhere), "creates the indexes")
        .help(help)
}

/// Reports steps that need indexes in a plan without any, and range queries that are left out
/// without their index.
fn check_indexes(cx: &mut Context<'_>, steps: &[PlacedStep], indexes: &Field<u32>) {
    let mut needing = steps.iter().filter(|(step, _)| step.kind.needs_indexes());
    if indexes.value > 0 {
        if needing.any(|(step, _)| step.kind != Kind::Index) {
            warn_of_left_out_queries(cx, indexes);
        }
        return;
    }

    for (step, place) in needing {
        let does = if step.kind == Kind::Index { "creates" } else { "scans" };
        let message =
            format!("step {} {does} secondary indexes, but there are none", code(&step.name));
        cx.error("plan::conflict", *place, message)
            .label("needs a secondary index")
            .also(indexes.place, "no secondary indexes")
            .help(format!("remove the step, or raise `{PATH}.secondary-indexes`"));
    }
}

fn warn_of_left_out_queries(cx: &mut Context<'_>, indexes: &Field<u32>) {
    let (existing, missing) = INDEX_NAMES.split_at(indexes.value as usize);
    let message = format!("range queries scan only {}", list(existing));
    cx.warning("plan::left-out", indexes.place, message)
        .label(format!("queries of {} are left out", list(missing)))
        .help(format!("to scan all indexes, set it to {}", INDEX_NAMES.len()));
}

/// Reports queries without writes that would run while the engine still purges or compacts after
/// earlier steps.
pub(super) fn check_debt(cx: &mut Context<'_>, names: &StepNames<Kind>) {
    let mut writer: Option<&PlacedStep> = None;
    for placed in &names.value {
        let (step, place) = placed;

        match step.kind {
            Kind::Settle => writer = None,
            Kind::Query { rate: 0.0, .. } => {
                let Some((before, before_place)) = writer.take() else {
                    continue;
                };

                let (name, before) = (code(&step.name), code(&before.name));
                let message =
                    format!("step {name} comes before the engine has caught up with {before}");
                cx.error("plan::step-order", *place, message)
                    .label(format!("would also measure work that {before} left behind"))
                    .also(*before_place, "leaves work behind")
                    .help("add `settle` before it");
            }
            _ => writer = Some(placed),
        }
    }
}
