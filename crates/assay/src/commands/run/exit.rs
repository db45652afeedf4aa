//! The exit code of a run.

use analysis::figures::Figures;
use inquiry::bundle::ReproductionVerdict;
use record::{CellKey, Run, Status};

use crate::exit::Exit;

/// Returns the exit code for the results of a run. `measured` are the cells of this invocation: if
/// only they are complete, they count, and not what else the run lacks.
pub(super) fn exit_of(run: &Run, figures: &Figures, measured: Option<&Vec<CellKey>>) -> Exit {
    let is_measured = |cell: &CellKey| measured.is_none_or(|cells| cells.contains(cell));
    let mut rows = figures.rows.iter().filter(|row| is_measured(&row.cell));

    match run.status {
        Status::Interrupted => Exit::Interrupted,
        Status::Incomplete | Status::Failed if measured.is_none() => Exit::Failed,
        // The run's own status is not enough: it may contradict its rows.
        _ if rows.any(|row| !row.valid) => Exit::Invalid,
        _ if runner::matrix::find::has_no_answer(run, figures, is_measured) => Exit::Invalid,
        _ => Exit::Ok,
    }
}

/// Returns the exit code of a run that repeats a finding, if it has no worse one.
pub(super) fn exit_of_repetition(outcome: &ReproductionVerdict) -> Exit {
    match outcome {
        ReproductionVerdict::Reproduced { .. } => Exit::Ok,
        ReproductionVerdict::NotReproduced { .. } => Exit::Regressed,
        ReproductionVerdict::Undecided { .. } | ReproductionVerdict::NotCompared => Exit::Invalid,
    }
}
