//! A cell in a process of its own: an engine that is a library shares an address space with nothing else, and its crash is
//! a failed cell.
//!
//! The cell's process is assay itself, under guard as a server is: it dies with this one, and its limits hold for the
//! library and the load together. Both processes meet in the record: this one begins `cell.json`, the other goes on from
//! there and ends it. One that ended without having done so has crashed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use engine::guard::{Ending, Guarded, Spawn};
use engine::limits::Enforced;
use load::SystemClock;
use record::{Cell, CellDir, CellRef, Failure, RunDir, Status};

use super::conductor::Conductor;
use super::display::Display;
use super::running::{LOG_LINES, keep_log, remove_database};
use super::{cell, matrix, resume, stop};
use crate::cli::CellArgs;
use crate::engines::rocksdb::DIRECTORY;
use crate::live::{Live, Relay};
use crate::outcome::Exit;
use crate::plan_file;

/// How long the two processes wait for each other's first sign.
const MEETING: Duration = Duration::from_secs(30);
/// How the guard calls the end of a process that could not do its work and has said why.
const UNRECORDED: &str = "exit status: 1";
const TICK: Duration = Duration::from_millis(20);
/// A cell that was asked to end takes its connections down and its database; after that it is made to.
const ENDING: Duration = Duration::from_secs(60);

/// A cell's process that could not do its work, and has said why.
#[derive(Debug, thiserror::Error)]
#[error("the process of cell `{cell}` could not record its end")]
struct Unrecorded {
    cell: String,
}

/// Runs a cell in another process, and records how it ended where that could not. Its failure is not the run's: only a
/// record that can't be written is.
pub(super) fn run(
    conductor: &Conductor<'_>,
    reference: &CellRef,
    planned: plan::Cell,
) -> anyhow::Result<Status> {
    let (directory, mut record) = cell::begin(conductor, reference, planned)?;
    match run_process(conductor, reference, planned, &directory, &mut record) {
        Ok(Some(status)) => Ok(status),
        Ok(None) => {
            let status = match conductor.is_stopped() {
                true => Status::Interrupted,
                false => Status::Failed,
            };
            cell::end(conductor, &directory, record, Ok(status))
        }
        // Not the cell's failure but the run's.
        Err(error) if error.is::<Unrecorded>() => Err(error),
        Err(error) => cell::end(conductor, &directory, record, Err(error)),
    }
}

/// Returns what the other process recorded as the cell's status; `None` where it ended before, and why it did is in
/// `record`.
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
            break process.stop(&[(Ending::Interrupt, ENDING)])?.1;
        }
    };
    *record = directory.read()?;
    match record.status {
        Status::Incomplete => {}
        // Somebody interrupted the cell's process alone.
        Status::Interrupted if !conductor.is_stopped() => return Ok(Some(Status::Incomplete)),
        status => return Ok(Some(status)),
    }
    let cell = &reference.path;
    if ended == UNRECORDED {
        return Err(Unrecorded { cell: cell.clone() }.into());
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
                "give the config more `memory`, or its cache and memtables less",
            ),
            None => (
                ended,
                "the library crashed, or somebody killed the process or its guard; the other cells are not harmed",
            ),
        };
        let what = format!("the process of cell `{cell}` ended without a record of its end");
        record.failure = Some(Failure {
            causes: vec![what, ended],
            help: Some(help.into()),
            log_tail,
        });
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
    if let Some(outlook) = conductor.display.outlook() {
        arguments.push("--outlook".into());
        arguments.push(serde_json::to_string(&outlook)?.into());
    }
    if let Some(relay) = relay {
        arguments.extend(["--live".into(), relay.path().into()]);
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
    if let Some(outlook) = &args.outlook {
        display.look_out(serde_json::from_str(outlook)?);
    }
    let live = args
        .live
        .as_deref()
        .map_or(Ok(Live::default()), Live::through)?;
    let conductor = Conductor {
        file: &file,
        directory: &directory,
        invocation: record.invocation,
        data_root: args.data.clone(),
        executable: PathBuf::new(),
        clock: SystemClock::begin(),
        stop,
        display,
        live,
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
