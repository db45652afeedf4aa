//! A cell from beginning to end, in the order in which it happens.
//!
//! ```text
//! start ─► describe ─► prepare ─► make tables ─► steps ─► drop tables ─► stop ─► keep log ─► remove
//!    ▲                                                                     │
//!    └────────── open again, if the load has options of its own ◄──────────┘
//! ```
//!
//! A cell that makes a database to keep goes this way twice: once to make it, and once on a copy
//! ([`kept`]).
//!
//! Everything that is begun is ended, however the steps went: tables are dropped, servers are
//! stopped, logs are kept, and databases are removed. If something fails there too, the earlier
//! error is the one that is reported ([`AndCleanUp`](crate::ground::failure::AndCleanUp)).

use engine::Engine;
use load::Clock as _;
use record::{Cell, CellDir, CellRef, RunDir, Status};
use words::CellKind;

use super::cell_run::{CellRun, EngineLog};
use super::keep_points::{self, KeepPoint, KeepPoints};
use super::kept::{self, Kept, Origin};
use super::record::{begin, end};
use crate::ground::failure::{AndCleanUp as _, LOG_LINES, failure_of};
use crate::ground::time::unix_now_ns;
use crate::remote::{CellOrder, LoadRanks};
use crate::session::RunSession;
use crate::steps::exact::{Counting, Tool};
use crate::steps::{Commands, StepRunner};
use crate::targets::engines;
use crate::targets::running::{Leftovers, NextOpening, RunningTarget, Stopped};
use crate::targets::site::CellSite;
use crate::targets::workloads::StepEngine;
use crate::turns::{Frozen, Seat};

/// Runs a cell in this process and records how it ended; with a `seat`, the cell takes turns with
/// others. Its failure does not end the run: only a record that cannot be written does.
pub fn run(
    session: &RunSession<'_>,
    run: &RunDir,
    reference: &CellRef,
    planned: plan::Cell,
    seat: Option<&Seat>,
) -> anyhow::Result<Status> {
    let (directory, record) = begin(session, run, reference, planned)?;
    directory.write(&record)?;
    measure(session, run, &directory, record, planned, seat)
}

/// Runs a cell whose record has begun, in this process, and records how it ended.
pub fn measure(
    session: &RunSession<'_>,
    run: &RunDir,
    directory: &CellDir,
    mut record: Cell,
    planned: plan::Cell,
    seat: Option<&Seat>,
) -> anyhow::Result<Status> {
    let result = Tool::of(session.plan(), planned).and_then(|tool| {
        let site = CellSite::new(session, run, directory, &mut record, planned);
        live(&mut CellRun::new(site, seat, tool.as_ref()))
    });
    end(session, directory, record, result)
}

/// Runs the steps of a cell on its target, and leaves nothing behind.
fn live(cell: &mut CellRun<'_>) -> anyhow::Result<Status> {
    if cell.tool.is_some() {
        // The load is counted, too.
        return run_target(cell);
    }

    let KeepPoints { begin, later } = KeepPoints::of(&cell.site)?;

    if let Some(status) = begin_with_database(cell, begin.as_ref())? {
        return Ok(status);
    }
    for point in &later {
        if let Some(status) = make_and_keep(cell, point)? {
            return Ok(status);
        }
    }

    if cell.site.part.steps.is_empty() {
        return Ok(Status::Complete);
    }
    run_target(cell)
}

/// Lets a cell begin its steps with a kept database, which the cell makes if there is none. Returns the
/// status of the steps that make it if they did not complete.
fn begin_with_database(
    cell: &mut CellRun<'_>,
    begin: Option<&KeepPoint>,
) -> anyhow::Result<Option<Status>> {
    let found = begin.and_then(|point| point.find(&mut cell.site));
    if found.is_none() {
        keep_points::refuse_without_database(&cell.site, begin)?;
    }

    let Some(point) = begin else {
        return Ok(None);
    };
    if let Some(entry) = found {
        kept::use_copy(&mut cell.site, entry, Origin::Before)?;
    } else if let Some(status) = make_and_keep(cell, point)? {
        return Ok(Some(status));
    }

    // Other cells of the group wait for the database.
    if let Some(seat) = cell.seat {
        seat.has_database()?;
    }
    Ok(None)
}

/// Runs the steps that make a database, keeps it, and lets the cell continue with a copy. If
/// another cell has kept such a database, the cell continues with a copy of that one. Returns the
/// status of the steps if they did not complete.
fn make_and_keep(cell: &mut CellRun<'_>, point: &KeepPoint) -> anyhow::Result<Option<Status>> {
    cell.begin_making(point.steps);
    let target = start_target(cell)?;
    let leftovers = target.leftovers();

    let made = make(cell, point, target, &leftovers);

    // The database is kept as a copy, and the steps that follow have another one.
    let removed = cell.remove(leftovers);
    match made.and_clean_up(removed)? {
        Made::Kept(kept) => {
            let Kept { entry, origin } = *kept;
            kept::use_copy(&mut cell.site, entry, origin)?;
            Ok(None)
        }
        Made::Ended(status) => Ok(Some(status)),
    }
}

/// The end of the steps that make a database.
enum Made {
    Kept(Box<Kept>),
    /// The steps did not complete.
    Ended(Status),
}

/// Runs the steps that make a database on a target, and keeps it.
fn make(
    cell: &mut CellRun<'_>,
    point: &KeepPoint,
    target: Box<dyn RunningTarget>,
    leftovers: &Leftovers,
) -> anyhow::Result<Made> {
    match run_openings(cell, target)? {
        Status::Complete => Ok(Made::Kept(Box::new(point.keep_or_find(cell, leftovers)?))),
        status => Ok(Made::Ended(status)),
    }
}

/// Starts the target of a cell, runs the steps on it, and leaves nothing behind.
fn run_target(cell: &mut CellRun<'_>) -> anyhow::Result<Status> {
    let target = start_target(cell)?;
    let leftovers = target.leftovers();

    let result = run_openings(cell, target);

    // A failed cell must leave no files either.
    let removed = cell.remove(leftovers);
    result.and_clean_up(removed)
}

/// Starts the target of a cell on its site, and notes how long that took.
fn start_target(cell: &mut CellRun<'_>) -> anyhow::Result<Box<dyn RunningTarget>> {
    let began_ns = cell.site.session.clock.now();
    let target = engines::of(cell.site.build().engine).start(&mut cell.site)?;
    cell.note_start(cell.site.session.clock.now().saturating_sub(began_ns));
    Ok(target)
}

/// Runs all steps. Some targets are opened once for the load and again for the rest.
fn run_openings(
    cell: &mut CellRun<'_>,
    mut target: Box<dyn RunningTarget>,
) -> anyhow::Result<Status> {
    loop {
        let Opening { status, next } = run_opening(cell, target)?;
        // Steps on what a failed load left behind would measure something else.
        match next {
            Some(next) if status == Status::Complete => target = next.open(&mut cell.site)?,
            Some(_) | None => return Ok(status),
        }
    }
}

/// The end of the steps of an opened target, and the next opening, if there is one.
struct Opening {
    status: Status,
    next: Option<Box<dyn NextOpening>>,
}

/// Runs the steps of a target that was started or opened, stops it, and keeps its log.
fn run_opening(
    cell: &mut CellRun<'_>,
    mut target: Box<dyn RunningTarget>,
) -> anyhow::Result<Opening> {
    let result = match sit_down(cell, target.engine()) {
        Ok(()) => run_on(cell, &mut *target),
        Err(error) => Err(error),
    };

    // A stopped target has no processes to freeze.
    let unseated = match cell.seat {
        Some(seat) => seat.set_target(Frozen::default()),
        None => Ok(()),
    };
    let result = result.and_clean_up(unseated);

    if let Some(failure) = &mut cell.site.record.failure
        && failure.log_tail.is_empty()
    {
        failure.log_tail = target.engine().log_tail(LOG_LINES);
    }

    let log = EngineLog::of(target.engine());
    let Stopped { result: stopped, next } = target.stop(ended(&result));

    // Now the log has all of its lines.
    let kept = cell.keep_log_and_events(log);
    let status = result.and_clean_up(kept)?;
    if status == Status::Complete {
        stopped?;
    }

    Ok(Opening { status, next })
}

/// Lets the processes of a running target rest between its turns, if it takes turns.
fn sit_down(cell: &mut CellRun<'_>, engine: &dyn Engine) -> anyhow::Result<()> {
    let Some(seat) = cell.seat else {
        return Ok(());
    };

    let target = Frozen::of(engine, cell.site.session.plan().idle)?;
    if let Some(how) = target.how() {
        cell.site.record.frozen_by = Some(how);
    }

    seat.set_target(target)
}

/// Runs the steps of a running target.
fn run_on(cell: &mut CellRun<'_>, target: &mut dyn RunningTarget) -> anyhow::Result<Status> {
    cell.describe(target.engine())?;
    target.prepare(&mut cell.site)?;

    // From here on there may be tables, which must not stay in a server of others.
    let made = target.make_tables(&mut cell.site);
    let result = made.and_then(|()| run_steps(cell, target));
    let dropped = target.drop_tables(&mut cell.site, ended(&result));
    let result = result.and_clean_up(dropped);

    let stopped = target.stop_replicas(&mut cell.site, ended(&result));
    // A replica that does not stop spoils only a cell that is otherwise complete.
    match result? {
        Status::Complete => stopped.map(|()| Status::Complete),
        status => Ok(status),
    }
}

/// Returns how steps ended, unless with an error.
fn ended(result: &anyhow::Result<Status>) -> Option<Status> {
    result.as_ref().ok().copied()
}

/// Runs the steps of the workload on the target, with load ranks if there are any.
fn run_steps(cell: &mut CellRun<'_>, target: &mut dyn RunningTarget) -> anyhow::Result<Status> {
    match &cell.site.session.ranks {
        Some(ranks) => run_ranked_steps(cell, target, ranks),
        None => run_steps_here(cell, target),
    }
}

/// Runs the steps while load ranks are connected to the target.
fn run_ranked_steps(
    cell: &mut CellRun<'_>,
    target: &mut dyn RunningTarget,
    ranks: &LoadRanks,
) -> anyhow::Result<Status> {
    let plan = cell.site.session.file.to_record();
    let begun = ranks.begin_cell(|share| CellOrder {
        plan: plan.clone(),
        target: cell.site.planned.target,
        variant: cell.site.planned.variant,
        clients: cell.site.planned.clients,
        is_unlimited: cell.site.planned.kind == CellKind::Unlimited,
        nonce: cell.site.nonce(),
        share,
        url: cell.site.url.clone(),
    });

    let result = begun.and_then(|()| run_steps_here(cell, target));

    // `mpirun` interrupts this process when another rank dies, and that is no interruption.
    let alive = if cell.site.session.is_stopped() { ranks.check_alive() } else { Ok(()) };
    if let Err(error) = alive {
        // Before the server is stopped: `mpirun` kills this process soon.
        cell.site.record.failure = Some(failure_of(&error));
        cell.site.record.status = Status::Failed;
        cell.site.record.ended_unix_ns = Some(unix_now_ns());
        cell.site.directory.write(cell.site.record)?;
        return Err(error);
    }

    result.and_clean_up(ranks.end_cell())
}

/// Returns the commands that the plan wants around each step, with what they may know of the cell;
/// `None` if there are none.
fn commands_around_steps(
    cell: &CellRun<'_>,
    leftovers: &Leftovers,
) -> anyhow::Result<Option<Commands>> {
    let planned = &cell.site.session.plan().step_commands;
    if planned.before.is_none() && planned.after.is_none() {
        return Ok(None);
    }

    let folder = fs_err::canonicalize(cell.site.directory.path())?;
    let mut variables = vec![
        ("ASSAY_TARGET".into(), (&cell.site.record.key.target).into()),
        ("ASSAY_CELL".into(), (&folder).into()),
    ];

    variables.extend(leftovers.data.iter().map(|data| ("ASSAY_DATA".into(), data.into())));
    variables.extend(cell.site.url.iter().map(|url| ("ASSAY_URL".into(), url.into())));

    Ok(Some(Commands::new(planned, &folder, variables)))
}

/// Runs the steps one after the other, until one does not complete.
fn run_steps_here(
    cell: &mut CellRun<'_>,
    target: &mut dyn RunningTarget,
) -> anyhow::Result<Status> {
    let leftovers = target.leftovers();
    let mut steps = target.steps(&cell.site)?;
    kept::begin_on_copy(&mut cell.site, &*steps.engine, &mut *steps.runner, &leftovers)?;

    let commands = commands_around_steps(cell, &leftovers)?;
    let planned_steps = cell.site.workload().steps();
    let part = steps.part.clone();
    let counting = counting_of(cell, &*steps.engine)?;

    let mut step_runner = StepRunner::new(
        cell.site.session,
        &*steps.engine,
        &mut *steps.runner,
        cell.site.workload().policy(),
        cell.site.planned,
        cell.site.notes().clone(),
        cell.seat,
    )?;
    if let Some(counting) = counting {
        step_runner.count_work(counting);
    }

    step_runner.run_around_steps(commands);

    for number in part {
        if let Some(why) = step_runner.not_applicable(number) {
            cell.leave_out(planned_steps[number].name, why)?;
            continue;
        }

        let step = step_runner.run(cell.site.directory, number, &planned_steps[number])?;

        cell.note_step(&step);
        match step.status {
            Status::Complete => {}
            Status::Interrupted => return Ok(Status::Interrupted),
            Status::Failed | Status::Incomplete => {
                note_failed_step(cell, step);
                return Ok(Status::Failed);
            }
        }

        // A step that is complete in spite of the signal is kept, and no other begins.
        if cell.site.session.is_stopped() {
            return Ok(Status::Interrupted);
        }
    }

    cell.note_state(&*steps.runner);
    Ok(Status::Complete)
}

/// Returns what counts the work of the steps; `None` for a cell that is timed.
fn counting_of(cell: &CellRun<'_>, engine: &dyn StepEngine) -> anyhow::Result<Option<Counting>> {
    let Some(tool) = cell.tool else {
        return Ok(None);
    };

    let exact = cell.site.session.plan().exact;
    Ok(Some(Counting::of(engine, cell.site.build(), tool, &cell.site.home(), exact)?))
}

/// Records why a step failed as the reason why its cell did.
fn note_failed_step(cell: &mut CellRun<'_>, step: record::Step) {
    let mut failure = step.failure.unwrap_or_default();
    let what = format!("step `{}` of `{}` failed", step.name, cell.site.record.key.target);
    failure.causes.insert(0, what);
    cell.site.record.failure = Some(failure);
}
