//! A cell in a process of its own: an engine that is a library shares an address space with nothing else, and its crash is
//! a failed cell.
//!
//! The cell's process is assay itself, under guard as a server is: it dies with this one, and its limits hold for the
//! library and the load together. Both processes meet in the record: this one begins `cell.json`, the other goes on from
//! there and ends it. One that ended without having done so has crashed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use engine::guard::{Ending, Guarded, Spawn};
use engine::limits::Enforced;
use load::SystemClock;
use record::{Cell, CellDir, CellRef, Failure, RunDir, Status};

use super::cell::{self, LOG_LINES};
use super::display::{Display, Outlook};
use super::{Conductor, matrix, resume, stop, target, unix_now_ns};
use crate::cli::CellArgs;
use crate::outcome::Exit;
use crate::output::print_failure;
use crate::plan_file;

/// How long the two processes wait for each other's first sign.
const MEETING: Duration = Duration::from_secs(30);
/// How the guard calls the end of a process that could not do its work and has said why.
const UNRECORDED: &str = "exit status: 1";
const TICK: Duration = Duration::from_millis(20);
/// A cell that was asked to end takes its connections down and its database; after that it is made to.
const ENDING: Duration = Duration::from_secs(60);

/// A cell's process that could not do its work, and has said why.
#[derive(Debug)]
pub(super) struct Unrecorded {
    cell: String,
}

impl std::fmt::Display for Unrecorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the process of cell `{}` could not record its end",
            self.cell
        )
    }
}

impl std::error::Error for Unrecorded {}

/// Runs a cell in another process. An error is one of this process: what the other recorded is its status.
pub(super) fn run(
    conductor: &Conductor<'_>,
    reference: &CellRef,
    cell: plan::Cell,
    directory: &CellDir,
    record: &mut Cell,
) -> anyhow::Result<Status> {
    let plan = conductor.plan();
    let planned = &plan.targets[cell.target];
    let limits = Enforced::prepare(&crate::locate::limits_of(&plan.configs[planned.config]))?;
    let here = std::env::current_dir().context("the working directory can't be found")?;
    let spawn = Spawn {
        guard_exe: &conductor.executable,
        program: &conductor.executable,
        args: arguments(conductor, reference)?,
        env: Vec::new(),
        env_remove: Vec::new(),
        input: None,
        directory: Some(&here),
        user: None,
        log: None,
        orphaned: Ending::Kill,
        remove_directory: None,
    };
    conductor.display.lend();
    let mut process = Guarded::spawn_confined(&spawn, limits.confinement())?;
    cell::record_limits(record, &limits.applied(process.pid()));
    directory.write(record)?;
    let ended = loop {
        if let Some(status) = process.wait(TICK) {
            break status.to_owned();
        }
        if conductor.is_stopped() {
            break process.stop(&[(Ending::Interrupt, ENDING)])?.1;
        }
    };
    *record = directory.read()?;
    match record.status {
        Status::Incomplete => {}
        // Somebody interrupted the cell's process alone.
        Status::Interrupted if !conductor.is_stopped() => return Ok(Status::Incomplete),
        status => return Ok(status),
    }
    if ended == UNRECORDED {
        return Err(Unrecorded {
            cell: reference.path.clone(),
        }
        .into());
    }
    let data = conductor.data_root.join(&planned.name);
    let mut log_tail = Vec::new();
    if let Some(log) = target::rocksdb_log(&data) {
        log_tail = engine::log_tail(&log, LOG_LINES);
        target::keep_log(directory, &log)?;
    }
    if !plan.keep_data {
        target::remove(&data, "rocksdb");
    }
    record.ended_unix_ns = Some(unix_now_ns());
    if conductor.is_stopped() {
        record.status = Status::Interrupted;
    } else {
        record.status = Status::Failed;
        let (ended, help) = match limits.killed_for_memory("it") {
            Some(why) => (
                format!("{ended}: {why}"),
                "give the config more `memory`, or its cache and memtables less",
            ),
            None => (
                ended,
                "the library crashed, or somebody killed the process or its guard; the other cells are not harmed",
            ),
        };
        let failure = Failure {
            causes: vec![
                format!(
                    "the process of cell `{}` ended without a record of its end",
                    reference.path
                ),
                ended,
            ],
            help: Some(help.into()),
            log_tail,
        };
        conductor
            .display
            .suspend(|| print_failure(&failure.causes, failure.help.as_deref(), &failure.log_tail));
        record.failure = Some(failure);
    }
    directory.write(record)?;
    Ok(record.status)
}

fn arguments(conductor: &Conductor<'_>, reference: &CellRef) -> anyhow::Result<Vec<OsString>> {
    let run = fs_err::canonicalize(conductor.directory.path())?;
    let outlook = conductor.display.outlook();
    let mut arguments: Vec<OsString> = vec![
        "cell".into(),
        run.into(),
        (&reference.path).into(),
        "--data".into(),
        conductor.data_root.clone().into(),
    ];
    if let Some(outlook) = outlook {
        arguments.push("--outlook".into());
        arguments.push(outlook.to_argument().into());
    }
    if conductor.display.is_quiet() {
        arguments.push("--quiet".into());
    }
    Ok(arguments)
}

/// The process of a cell. Its exit code tells whether the cell's end is recorded.
pub fn main(args: &CellArgs) -> anyhow::Result<Exit> {
    let stop = stop::watch()?;
    let directory = RunDir::open(&args.run)?;
    let run = directory.read_run()?;
    let mut file = plan_file::recorded_in_silence(&run.plan)?;
    resume::cover_repeats(&mut file.plan, &run.cells);
    let task = matrix::numbered(&file.plan, &run.cells)?
        .into_iter()
        .find(|task| task.reference.path == args.cell)
        .with_context(|| format!("`{}` has no cell `{}`", args.run.display(), args.cell))?;
    let cell_directory = directory.cell(&task.reference)?;
    let record = begun(&cell_directory)?;
    let mut display = Display::new(args.quiet);
    display.watch_disks(&args.data, &args.run);
    if let Some(outlook) = args.outlook.as_deref().and_then(Outlook::from_argument) {
        display.look_out(outlook);
    }
    let conductor = Conductor {
        file: &file,
        directory: &directory,
        invocation: record.invocation,
        data_root: args.data.clone(),
        executable: PathBuf::new(),
        clock: SystemClock::begin(),
        stop: Arc::clone(&stop),
        display,
    };
    cell::measure(&conductor, &cell_directory, record, task.cell)?;
    conductor.display.finish();
    Ok(Exit::Ok)
}

/// The record of the cell, which the other process begins when it knows of this one.
fn begun(directory: &CellDir) -> anyhow::Result<Cell> {
    // Naps are counted, not the clock looked at: that may be set meanwhile.
    let mut waited = Duration::ZERO;
    while !directory.exists() {
        if waited >= MEETING {
            anyhow::bail!(
                "nobody began the record of `{}`: a cell's process is started by `assay run`",
                directory.path().display()
            );
        }
        std::thread::sleep(TICK);
        waited += TICK;
    }
    Ok(directory.read()?)
}
