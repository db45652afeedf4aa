//! The floor of the disk of the databases, which a run measures before its first cell and after its
//! last.

use probe::{FLOOR_DEPTH_MAX, FloorRequest};
use record::{Run, RunDir, Warning};

use crate::ground::failure::failure_of;
use crate::ground::host;
use crate::session::RunSession;

/// The code of the warning about a disk that cannot be measured.
const UNKNOWN: &str = "host::no-disk-floor";

/// Measures the floor of the disk of the databases, if the plan says so, and records it. A disk
/// that cannot be measured is a warning, because the cells still can be.
///
/// # Errors
/// The record cannot be written.
pub(crate) fn measure(
    session: &RunSession<'_>,
    directory: &RunDir,
    run: &mut Run,
) -> anyhow::Result<()> {
    if !session.plan().disk_floor || session.is_stopped() {
        return Ok(());
    }

    let request =
        FloorRequest { depths: client_counts(run), ..FloorRequest::new(&session.data_root) };
    let seconds = request.time_total().as_secs();
    session.events.say(&format!("measuring the disk of the databases: {seconds} s"));

    match host::disk_floor(&request, &session.stop) {
        Ok(Some(floor)) => {
            if let Some(invocation) = run.invocations.last_mut() {
                invocation.disk_floors.push(floor);
            }
        }
        // The run is interrupted.
        Ok(None) => return Ok(()),
        Err(error) => {
            let causes = failure_of(&error).causes.join(": ");
            let warning =
                Warning::new(UNKNOWN, format!("the floor of the disk is unknown: {causes}"));
            // The disk is measured before and after the cells: one warning is enough.
            if !run.warnings.contains(&warning) {
                session.events.warn(Some(UNKNOWN), &warning.text);
                run.warnings.push(warning);
            }
        }
    }

    Ok(directory.write_run(run)?)
}

/// Returns the numbers of clients of a run's cells, the smallest first. Each has one query in
/// progress, so that they are the depths at which engines read.
fn client_counts(run: &Run) -> Vec<u32> {
    let mut counts: Vec<u32> = run.cells.iter().map(|cell| cell.key.clients).collect();
    counts.retain(|count| *count <= FLOOR_DEPTH_MAX);
    counts.sort_unstable();
    counts.dedup();
    counts
}
