//! A cell in its own process: an engine that is a library shares its address space with nothing
//! else, and its crash is a failed cell.
//!
//! The cell's process is assay itself, guarded like a server: it dies with this one, and its limits
//! apply to the library and the load together. Both processes share the record: this one begins
//! `cell.json`, the other continues and ends it. A process that ends without having done so has
//! crashed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use engine::Wrapper as _;
use engine::guard::{Ending, Guarded, ProgramEnd, Spawn};
use engine::limits::Enforced;
use plan::Config;
use record::{Cell, CellDir, CellRef, Failure, RunDir, Status};
use words::{CellKind, EngineHome};

use super::life::measure;
use super::record::{begin, end};
use crate::databases::Databases;
use crate::ground::events::{Events, Relay};
use crate::ground::failure::LOG_LINES;
use crate::ground::stop;
use crate::matrix;
use crate::matrix::repeats::raise_repeats;
use crate::prepare::{commits, plan_file};
use crate::session::RunSession;
use crate::steps::exact::{self, Tool};
use crate::targets::engines::{self, libraries};
use crate::targets::site::{keep_log, remove_database};
use crate::turns::{Frozen, LinkPipes, Seat, TableEnd};

/// The hidden command by which this program runs one cell in a process of its own:
/// `cell RUN CELL --data DIR [--reuse DIR]`, and then the arguments of [`Relay`].
pub const CELL_COMMAND: &str = "cell";

/// The time that the cell's process waits for its record to begin.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// The exit code of a process that has reported its own failure.
const MISSING_END_CODE: i32 = 1;
const TICK: Duration = Duration::from_millis(20);
/// The time that an interrupted cell may take to close its connections and its database before it
/// is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// A cell of a run that another process has begun.
#[derive(Clone, Debug)]
pub struct CellRequest {
    /// The run directory.
    pub run: PathBuf,
    /// The cell's directory in it.
    pub cell: String,
    /// The directory for databases.
    pub data: PathBuf,
    /// The pipes to the table at which the cell takes turns; `None` if it is measured alone.
    pub pipes: Option<LinkPipes>,
    /// The folder of databases that cells share; `None`: they share none.
    pub reuse: Option<PathBuf>,
}

/// A cell's process that failed to record its end, and has reported why.
#[derive(Debug, thiserror::Error)]
#[error("the process of cell `{cell}` could not record how it ended")]
struct MissingEnd {
    cell: String,
}

/// Returns whether a cell is measured in a process of its own.
pub fn has_own_process(session: &RunSession<'_>, planned: plan::Cell) -> bool {
    let plan = session.plan();
    match plan.builds[plan.targets[planned.target].build].home() {
        EngineHome::Library => true,
        // Only a process of its own runs under a tool that counts its instructions.
        EngineHome::Bundled => planned.kind == CellKind::Exact,
        EngineHome::Server => false,
    }
}

/// Runs a cell in another process, and records how it ended if that process could not. Its failure
/// does not end the run: only a record that cannot be written does.
pub fn run(
    session: &RunSession<'_>,
    run: &RunDir,
    reference: &CellRef,
    planned: plan::Cell,
    table: Option<&TableEnd>,
) -> anyhow::Result<Status> {
    let (directory, mut record) = begin(session, run, reference, planned)?;
    let ended = run_process(session, run, reference, planned, &directory, &mut record, table);

    // The tool leaves files that no later cell needs.
    if planned.kind == CellKind::Exact {
        let target = &session.plan().targets[planned.target];
        remove_database(&session.data_root.join(&target.name), exact::FOLDER);
    }

    match ended {
        Ok(Some(status)) => Ok(status),
        Ok(None) => {
            let status = if session.is_stopped() { Status::Interrupted } else { Status::Failed };
            end(session, &directory, record, Ok(status))
        }
        // A recording failure ends the run.
        Err(error) if error.is::<MissingEnd>() => Err(error),
        Err(error) => end(session, &directory, record, Err(error)),
    }
}

/// Returns the cell's status as the other process recorded it; `None` if that ended without one,
/// with the reason in `record`.
fn run_process(
    session: &RunSession<'_>,
    run: &RunDir,
    reference: &CellRef,
    planned: plan::Cell,
    directory: &CellDir,
    record: &mut Cell,
    table: Option<&TableEnd>,
) -> anyhow::Result<Option<Status>> {
    let plan = session.plan();
    let target = &plan.targets[planned.target];

    let relay = session.events.hand_over()?;
    let config = &plan.configs[target.config];
    let limits = Enforced::prepare(&config.limits)?;
    let mut arguments = arguments(session, run, reference, &relay)?;
    arguments.extend(table.map(TableEnd::arguments).unwrap_or_default());

    let command = command(session, planned, &target.name, arguments)?;

    let mut process = spawn(session, command, config, &limits)?;

    // The process rests at once: other targets may have their turns now.
    if let Some(table) = table {
        let frozen = Frozen::of_process(&process, plan.idle)?;
        record.frozen_by = frozen.how();
        table.set_process(frozen);
    }

    // The other process waits for this record, which it ends.
    record.limits = limits.applied(process.pid());
    directory.write(record)?;

    let ended = wait(session, &mut process, table)?;

    *record = directory.read()?;
    match record.status {
        Status::Incomplete => {}
        // Only the cell's process was interrupted.
        Status::Interrupted if !session.is_stopped() => return Ok(Some(Status::Incomplete)),
        status => return Ok(Some(status)),
    }

    // Callgrind ends with the same code if a signal reaches it while it opens a pipe to `vgdb`.
    let may_be_of_tool = planned.kind == CellKind::Exact && session.is_stopped();
    if ended.code() == Some(MISSING_END_CODE) && !may_be_of_tool {
        return Err(MissingEnd { cell: reference.path.clone() }.into());
    }

    // It crashed, so this process keeps its log and removes its database.
    let home = session.data_root.join(&target.name);
    let engine = plan.builds[target.build].engine;
    let folder = engines::database_folder(engine);
    let mut log_tail = Vec::new();
    if let Some(log) = libraries::log_path(engine, &home.join(folder)) {
        log_tail = engine::log_tail(&log, LOG_LINES);
        keep_log(directory, &log)?;
    }
    if !plan.keep_data {
        remove_database(&home, folder);
    }

    if !session.is_stopped() {
        record.failure = Some(crash(&reference.path, ended, &limits, log_tail));
    }

    Ok(None)
}

/// A program and its arguments.
struct CellCommand {
    program: PathBuf,
    args: Vec<OsString>,
}

/// Returns the command of a cell's process, which runs under callgrind if the cell is exact.
fn command(
    session: &RunSession<'_>,
    planned: plan::Cell,
    target: &str,
    args: Vec<OsString>,
) -> anyhow::Result<CellCommand> {
    let executable = &session.executable;
    let Some(tool) = Tool::of(session.plan(), planned)? else {
        return Ok(CellCommand { program: executable.clone(), args });
    };

    let folder = exact::begin_folder(&session.data_root.join(target))?;
    let mut command = tool.command(&folder).into_iter();
    let program = command.next().context("the tool has no program")?;

    let args = command.chain([executable.into()]).chain(args);
    Ok(CellCommand { program: program.into(), args: args.collect() })
}

/// Starts the process of a cell, which dies with this one.
fn spawn(
    session: &RunSession<'_>,
    command: CellCommand,
    config: &Config,
    limits: &Enforced,
) -> anyhow::Result<Guarded> {
    let here = std::env::current_dir().context("the working directory cannot be found")?;

    Ok(Guarded::spawn(&Spawn {
        guard_exe: &session.executable,
        program: &command.program,
        args: command.args,
        env: Vec::new(),
        program_env: &config.env,
        env_remove: Vec::new(),
        input: None,
        directory: Some(&here),
        user: None,
        log: None,
        orphaned: Ending::Kill,
        remove_directory: None,
        confinement: Some(limits.confinement()),
    })?)
}

/// Waits until the process of a cell ends, and asks it to if the run is interrupted. Returns its
/// exit status.
fn wait(
    session: &RunSession<'_>,
    process: &mut Guarded,
    table: Option<&TableEnd>,
) -> anyhow::Result<ProgramEnd> {
    loop {
        if let Some(status) = process.wait(TICK) {
            return Ok(status);
        }

        if session.is_stopped() {
            return interrupt(process, table);
        }

        if let Some(table) = table {
            table.let_work()?;
        }
    }
}

/// Interrupts the process of a cell, and kills it if it does not end in time. Returns its exit
/// status.
fn interrupt(process: &mut Guarded, table: Option<&TableEnd>) -> anyhow::Result<ProgramEnd> {
    process.signal(Ending::Interrupt);

    // Counts ticks instead of reading the clock, which may be set meanwhile.
    let mut waited = Duration::ZERO;
    while waited < STOP_TIMEOUT {
        if let Some(status) = process.wait(TICK) {
            return Ok(status);
        }
        waited += TICK;

        // A cell that waits for its turn sees the interruption only when it gets one.
        if let Some(table) = table {
            // A process that no longer listens is about to end.
            let _ = table.let_work();
        }
    }
    Ok(process.stop(&[])?.1)
}

/// Returns the failure of a cell whose process ended without recording it.
fn crash(cell: &str, ended: ProgramEnd, limits: &Enforced, log_tail: Vec<String>) -> Failure {
    let (ended, help) = match limits.killed_for_memory("it") {
        Some(why) => (
            format!("{ended}: {why}"),
            "raise the config's `memory`, or make its cache and memtables smaller",
        ),
        None => (
            ended.to_string(),
            "the library crashed, or the process or its guard was killed; other cells are not affected",
        ),
    };

    let what = format!("the process of cell `{cell}` ended unexpectedly");
    Failure { causes: vec![what, ended], help: Some(help.into()), log_tail }
}

/// Returns the arguments of the process of a cell.
fn arguments(
    session: &RunSession<'_>,
    run: &RunDir,
    reference: &CellRef,
    relay: &Relay,
) -> anyhow::Result<Vec<OsString>> {
    let run = fs_err::canonicalize(run.path())?;
    let own: [OsString; 5] = [
        CELL_COMMAND.into(),
        run.into(),
        (&reference.path).into(),
        "--data".into(),
        session.data_root.clone().into(),
    ];

    let mut arguments = Vec::from(own);
    if let Some(databases) = &session.databases {
        arguments.extend(["--reuse".into(), databases.root().into()]);
    }
    arguments.extend(relay.arguments.iter().cloned());
    Ok(arguments)
}

/// Runs the cell whose record another process begins: see [`CELL_COMMAND`]. An error means that the
/// end of the cell is not recorded.
///
/// # Errors
/// The request names no cell of a run, or the record cannot be written.
pub fn run_cell(request: &CellRequest, events: &dyn Events) -> anyhow::Result<()> {
    let stop = stop::watch()?;
    let directory = RunDir::open(&request.run)?;
    let run = directory.read_run()?;

    let mut file = plan_file::recorded_quietly(&run.plan)?;
    raise_repeats(&mut file.plan, &run.cells);
    commits::use_recorded(&mut file, &run.builds)?;

    let task = matrix::numbered(&file.plan, &run.cells)?
        .into_iter()
        .find(|task| task.reference.path == request.cell)
        .with_context(|| format!("`{}` has no cell `{}`", request.run.display(), request.cell))?;

    // The other process has written this cell's limits into its record.
    let cell_directory = directory.cell(&task.reference)?;
    let record = wait_for_record(&cell_directory)?;
    events.places_known(&request.data, &request.run);
    let databases = request.reuse.as_deref().map(Databases::at);
    let session =
        RunSession::of_cell(events, file, record.invocation, &request.data, databases, stop)?;

    let seat = match &request.pipes {
        Some(pipes) => Some(Seat::linked(pipes, &session.clock)?),
        None => None,
    };

    measure(&session, &directory, &cell_directory, record, task.cell, seat.as_ref())?;

    events.run_ends();
    Ok(())
}

/// Waits for the cell's record, which the other process begins after it started this one.
fn wait_for_record(directory: &CellDir) -> anyhow::Result<Cell> {
    // Counts sleeps instead of reading the clock, which may be set meanwhile.
    let mut waited = Duration::ZERO;
    while !directory.exists() {
        if waited >= START_TIMEOUT {
            anyhow::bail!(
                "`{}` has no record: only `assay run` starts a cell's process",
                directory.path().display()
            );
        }

        std::thread::sleep(TICK);
        waited += TICK;
    }

    Ok(directory.read()?)
}
