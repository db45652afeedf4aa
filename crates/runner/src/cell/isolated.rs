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
use engine::guard::{Ending, Guarded, Spawn};
use engine::limits::Enforced;
use load::SystemClock;
use record::{Cell, CellDir, CellRef, Failure, RunDir, Status};

use super::cell_run::{LOG_LINES, keep_log, remove_database};
use super::conductor::Conductor;
use super::display::Display;
use super::{cell, matrix, resume, stop};
use crate::cli::CellArgs;
use crate::engines::rocksdb::DIRECTORY;
use crate::live::{Live, Relay};
use crate::outcome::Exit;
use crate::plan_file;

/// The time that the cell's process waits for its record to begin.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// The guard's text for the exit status of a process that has reported its own failure.
const MISSING_END_STATUS: &str = "exit status: 1";
const TICK: Duration = Duration::from_millis(20);
/// The time that an interrupted cell may take to close its connections and its database before it
/// is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// A cell's process that failed to record its end, and has reported why.
#[derive(Debug, thiserror::Error)]
#[error("the process of cell `{cell}` could not record how it ended")]
struct MissingEnd {
    cell: String,
}

/// Runs a cell in another process, and records how it ended if that process could not. Its failure
/// does not end the run: only a record that cannot be written does.
pub(super) fn run(
    conductor: &Conductor<'_>,
    reference: &CellRef,
    planned: plan::Cell,
) -> anyhow::Result<Status> {
    let (directory, mut record) = cell::begin(conductor, reference, planned)?;
    match run_process(conductor, reference, planned, &directory, &mut record) {
        Ok(Some(status)) => Ok(status),
        Ok(None) => {
            let status = if conductor.is_stopped() { Status::Interrupted } else { Status::Failed };
            cell::end(conductor, &directory, record, Ok(status))
        }
        // A recording failure ends the run.
        Err(error) if error.is::<MissingEnd>() => Err(error),
        Err(error) => cell::end(conductor, &directory, record, Err(error)),
    }
}

/// Returns the cell's status as the other process recorded it; `None` if that ended without one,
/// with the reason in `record`.
fn run_process(
    conductor: &Conductor<'_>,
    reference: &CellRef,
    planned: plan::Cell,
    directory: &CellDir,
    record: &mut Cell,
) -> anyhow::Result<Option<Status>> {
    let plan = conductor.plan();
    let target = &plan.targets[planned.target];
    let relay = conductor.live.relay()?;
    let limits = Enforced::prepare(&plan.configs[target.config].limits)?;
    let here = std::env::current_dir().context("the working directory can't be found")?;
    let spawn = Spawn {
        guard_exe: &conductor.executable,
        program: &conductor.executable,
        args: arguments(conductor, reference, relay.as_ref())?,
        env: Vec::new(),
        env_remove: Vec::new(),
        input: None,
        directory: Some(&here),
        user: None,
        log: None,
        orphaned: Ending::Kill,
        remove_directory: None,
        confinement: Some(limits.confinement()),
    };
    conductor.display.finish();
    let mut process = Guarded::spawn(&spawn)?;
    record.limits = limits.applied(process.pid());
    directory.write(record)?;
    let ended = loop {
        if let Some(status) = process.wait(TICK) {
            break status.to_owned();
        }
        if conductor.is_stopped() {
            break process.stop(&[(Ending::Interrupt, STOP_TIMEOUT)])?.1;
        }
    };
    *record = directory.read()?;
    match record.status {
        Status::Incomplete => {}
        // Only the cell's process was interrupted.
        Status::Interrupted if !conductor.is_stopped() => return Ok(Some(Status::Incomplete)),
        status => return Ok(Some(status)),
    }
    let cell = &reference.path;
    if ended == MISSING_END_STATUS {
        return Err(MissingEnd { cell: cell.clone() }.into());
    }
    let home = conductor.data_root.join(&target.name);
    let log = engine::rocksdb::log_path(&home.join(DIRECTORY));
    let log_tail = engine::log_tail(&log, LOG_LINES);
    keep_log(directory, &log)?;
    if !plan.keep_data {
        remove_database(&home, DIRECTORY);
    }
    if !conductor.is_stopped() {
        let (ended, help) = match limits.killed_for_memory("it") {
            Some(why) => (
                format!("{ended}: {why}"),
                "raise the config's `memory`, or make its cache and memtables smaller",
            ),
            None => (
                ended,
                "the library crashed, or the process or its guard was killed; other cells are not affected",
            ),
        };
        let what = format!("the process of cell `{cell}` ended unexpectedly");
        record.failure =
            Some(Failure { causes: vec![what, ended], help: Some(help.into()), log_tail });
    }
    Ok(None)
}

fn arguments(
    conductor: &Conductor<'_>,
    reference: &CellRef,
    relay: Option<&Relay>,
) -> anyhow::Result<Vec<OsString>> {
    let run = fs_err::canonicalize(conductor.directory.path())?;
    let mut arguments: Vec<OsString> = vec![
        "cell".into(),
        run.into(),
        (&reference.path).into(),
        "--data".into(),
        conductor.data_root.clone().into(),
    ];
    if let Some(matrix_progress) = conductor.display.matrix_progress() {
        arguments.push("--matrix-progress".into());
        arguments.push(serde_json::to_string(&matrix_progress)?.into());
    }
    if let Some(relay) = relay {
        arguments.extend(["--live".into(), relay.path().into()]);
    }
    if conductor.display.is_quiet() {
        arguments.push("--quiet".into());
    }
    Ok(arguments)
}

/// Runs the process of a cell. Its exit code tells whether the cell's end is recorded.
pub fn main(args: &CellArgs) -> anyhow::Result<Exit> {
    let stop = stop::watch()?;
    let directory = RunDir::open(&args.run)?;
    let run = directory.read_run()?;
    let mut file = plan_file::recorded_quietly(&run.plan)?;
    resume::raise_repeats(&mut file.plan, &run.cells);
    let task = matrix::numbered(&file.plan, &run.cells)?
        .into_iter()
        .find(|task| task.reference.path == args.cell)
        .with_context(|| format!("`{}` has no cell `{}`", args.run.display(), args.cell))?;
    let cell_directory = directory.cell(&task.reference)?;
    let record = wait_for_record(&cell_directory)?;
    let mut display = Display::new(args.quiet);
    display.watch_disks(&args.data, &args.run);
    if let Some(matrix_progress) = &args.matrix_progress {
        display.set_matrix_progress(serde_json::from_str(matrix_progress)?);
    }
    let live = args.live.as_deref().map_or(Ok(Live::default()), Live::connect)?;
    let conductor = Conductor {
        file,
        directory: &directory,
        invocation: record.invocation,
        data_root: args.data.clone(),
        executable: PathBuf::new(),
        clock: SystemClock::begin(),
        stop,
        display,
        live,
        ranks: None,
    };
    cell::measure(&conductor, &cell_directory, record, task.cell)?;
    conductor.display.finish();
    Ok(Exit::Ok)
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
