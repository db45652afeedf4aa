//! Runs the cells of a group at the same time, each on its own thread.

use std::sync::Arc;

use anyhow::Context;
use plan::TurnLength;
use record::{RunDir, Status};

use super::{isolated, keep_points, life};
use crate::matrix::Task;
use crate::session::RunSession;
use crate::turns::conductor::Conductor;
use crate::turns::events::SeatedEvents;
use crate::turns::link::TableEnd;
use crate::turns::seat::Seat;
use crate::turns::table::Table;

/// Measures cells that take turns, and returns how each ended. Only a record that cannot be written
/// is an error.
pub fn run(
    session: &RunSession<'_>,
    directory: &RunDir,
    tasks: &[Task],
) -> anyhow::Result<Vec<Status>> {
    let plan = session.plan();
    let repeat = tasks.first().map_or(0, |task| task.cell.repeat);

    let cells: Vec<plan::Cell> = tasks.iter().map(|task| task.cell).collect();
    let table = Arc::new(Table::new(&keep_points::loaders_of(session, directory, &cells)?));
    let conductor = Conductor {
        table: &table,
        clock: &session.clock,
        is_stopped: &|| session.is_stopped(),
        seed: plan.seed ^ u64::from(repeat) << 32,
        length: plan.turns.unwrap_or(TurnLength::Auto),
    };

    let (shared, events) = (session.shared(), session.events);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, task) in tasks.iter().enumerate() {
            let table = Arc::clone(&table);
            let spawned = std::thread::Builder::new()
                .name(format!("cell-{}", number + 1))
                .spawn_scoped(scope, move || {
                    // The first cell is shown as it would be without the others.
                    let events = SeatedEvents::new(events, &task.reference.key, number == 0);
                    let session = RunSession::of_seated_cell(&shared, &events);
                    run_seated(&session, directory, task, PlaceAtTable { table, number })
                });
            threads.push(spawned);
        }

        // A cell without a thread never begins.
        for (number, spawned) in threads.iter().enumerate() {
            if spawned.is_err() {
                table.leave(number);
            }
        }

        conductor.conduct();

        let mut statuses = Vec::new();
        for spawned in threads {
            let thread = spawned.context("cannot create the thread of a cell")?;
            let status = thread.join();
            statuses.push(status.map_err(|_| anyhow::anyhow!("the thread of a cell panicked"))??);
        }

        Ok(statuses)
    })
}

/// The place of a cell at its table.
struct PlaceAtTable {
    table: Arc<Table>,
    number: usize,
}

/// Measures one cell of a group.
fn run_seated(
    session: &RunSession<'_>,
    directory: &RunDir,
    task: &Task,
    place: PlaceAtTable,
) -> anyhow::Result<Status> {
    let PlaceAtTable { table, number } = place;

    let (reference, cell) = (&task.reference, task.cell);
    if isolated::has_own_process(session, cell) {
        let end = TableEnd::new(table, number)?;
        let status = if session.is_stopped() {
            Ok(Status::Interrupted)
        } else {
            isolated::run(session, directory, reference, cell, Some(&end))
        };
        end.cut();
        return status;
    }

    let seat = Seat::take(table, number, &session.clock);
    if session.is_stopped() {
        return Ok(Status::Interrupted);
    }
    life::run(session, directory, reference, cell, Some(&seat))
}
