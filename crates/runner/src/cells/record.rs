//! The record of a cell: its beginning and its end.

use record::{Cell, CellDir, CellRef, RecordError, RunDir, Status};

use crate::ground::failure::failure_of;
use crate::ground::time::unix_now_ns;
use crate::matrix::step_names;
use crate::remote::LostRank;
use crate::session::RunSession;

/// Begins the record of a cell, without writing it.
pub fn begin(
    session: &RunSession<'_>,
    run: &RunDir,
    reference: &CellRef,
    cell: plan::Cell,
) -> anyhow::Result<(CellDir, Cell)> {
    let plan = session.plan();
    let target = &plan.targets[cell.target];
    let build = &plan.builds[target.build];

    let record = Cell {
        key: reference.key.clone(),
        build: build.name.clone(),
        config: plan.configs[target.config].name.clone(),
        engine: build.engine.name().into(),
        workload: reference.workload.clone(),
        started_unix_ns: unix_now_ns(),
        invocation: session.invocation,
        steps: step_names(&plan.variants[cell.variant].workload),
        ..Cell::default()
    };

    Ok((run.begin_cell(reference)?, record))
}

/// Records how a cell ended.
pub fn end(
    session: &RunSession<'_>,
    directory: &CellDir,
    mut record: Cell,
    result: anyhow::Result<Status>,
) -> anyhow::Result<Status> {
    record.status = match &result {
        Ok(status) => *status,
        Err(error) if session.is_stopped() && !error.is::<LostRank>() => Status::Interrupted,
        // The engine's own failure, which is recorded already, says more.
        Err(error) => {
            record.failure.get_or_insert_with(|| failure_of(error));
            Status::Failed
        }
    };

    record.ended_unix_ns = Some(unix_now_ns());

    let written = directory.write(&record);

    if let Err(error) = result
        && error.chain().any(|cause| cause.is::<RecordError>())
    {
        // A recording failure ends the run, which reports it.
        return Err(error);
    }

    written?;
    Ok(record.status)
}
