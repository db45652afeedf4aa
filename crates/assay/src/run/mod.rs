//! `assay run`: works through the cells of a plan, one after the other, and records each before the next begins.

mod cell;
mod display;
mod sampling;
mod step;
mod stop;
mod target;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use load::SystemClock;
use plan::Plan;
use record::{CellRef, FsyncLatency, Host, ResolvedValue, Run, RunDir, Status, Target, Warning};

use crate::cli::RunArgs;
use crate::host::{self, Needs};
use crate::outcome::{Exit, UsageError, report_error};
use crate::plan_file::{self, PlanFile};
use crate::{builds, preflight, results};
use display::Display;

/// What all cells of a run share.
struct Conductor<'a> {
    file: &'a PlanFile,
    directory: &'a RunDir,
    /// Where databases are made.
    data_root: PathBuf,
    /// This program, which guards servers when it is told to.
    executable: PathBuf,
    clock: SystemClock,
    stop: Arc<AtomicBool>,
    display: Display,
}

impl Conductor<'_> {
    fn plan(&self) -> &Plan {
        &self.file.plan
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Runs a plan.
pub fn run(args: &RunArgs) -> anyhow::Result<Exit> {
    let started_unix_ns = unix_now_ns();
    let file = plan_file::read(&args.plan)?;
    preflight::refuse_what_cannot_run(&file)?;
    let located = builds::locate(&file.plan)?;
    let stop = stop::watch()?;
    let data_root = data_root(&file.plan, args)?;
    let _lock = lock(&data_root)?;
    let display = Display::new(args.quiet);
    display.say(&format!(
        "data in {}, results in {}",
        data_root.display(),
        args.results.display()
    ));
    let estimate = preflight::estimate(&file.plan);
    let needs = Needs {
        disk_bytes: Some(estimate.disk_bytes),
        local_server: builds::has_local_server(&file.plan),
        connections: estimate.connections,
    };
    let findings = host::look(&data_root, needs)?;
    let mut run = describe(&file, located, started_unix_ns);
    run.host = Host {
        facts: findings.facts.facts.clone(),
        cpu_count: findings.facts.cpu_count,
        memory_total_bytes: findings.facts.memory_total_bytes,
        fsync: findings.fsync.map(|fsync| FsyncLatency {
            count: fsync.count,
            p50_ns: fsync.p50_ns,
            p99_ns: fsync.p99_ns,
            max_ns: fsync.max_ns,
        }),
    };
    for warning in findings.warnings {
        display.warn(&format!("warning[{}]: {}", warning.code, warning.text));
        run.warnings.push(Warning {
            code: warning.code.into(),
            text: warning.text,
        });
    }
    let clock = SystemClock::begin();
    run.host
        .facts
        .push(("assay_clock".into(), clock.source().into()));
    let directory = RunDir::create(&args.results, &run)?;
    let conductor = Conductor {
        file: &file,
        directory: &directory,
        data_root,
        executable: std::env::current_exe().context("this program's own path is not known")?,
        clock,
        stop,
        display,
    };
    run.status = run_cells(&conductor, &run.cells)?;
    run.ended_unix_ns = Some(unix_now_ns());
    directory.write_run(&run)?;
    conductor.display.finish();
    if !args.quiet {
        results::print(&results::brief(&directory)?)?;
    }
    let output = directory.path().join("report.html");
    // The record is complete: a report that can't be written now can be made again.
    if let Err(error) = results::write_report(std::slice::from_ref(&directory), &output) {
        report_error(&error);
    }
    let exit = results::exit_of(&directory)?;
    results::print(&format!("{}\n", directory.path().display()))?;
    Ok(exit)
}

fn run_cells(conductor: &Conductor<'_>, cells: &[CellRef]) -> anyhow::Result<Status> {
    let mut status = Status::Complete;
    for (number, (reference, cell)) in cells.iter().zip(conductor.plan().cells()).enumerate() {
        if conductor.is_stopped() {
            return Ok(Status::Interrupted);
        }
        conductor
            .display
            .begin_cell(reference, number + 1, cells.len());
        match cell::run(conductor, reference, cell)? {
            Status::Complete => {}
            Status::Interrupted => return Ok(Status::Interrupted),
            Status::Failed | Status::Incomplete => status = Status::Failed,
        }
    }
    Ok(status)
}

/// The record of a run that has not begun.
fn describe(file: &PlanFile, builds: Vec<record::Build>, started_unix_ns: u64) -> Run {
    let plan = &file.plan;
    Run {
        assay_version: env!("CARGO_PKG_VERSION").into(),
        name: plan.name.clone(),
        started_unix_ns,
        command: std::env::args().map(|arg| plan::redact(&arg)).collect(),
        plan: record::Plan {
            path: file.path.as_ref().map(|path| path.display().to_string()),
            text: plan::redact(&file.text),
            sets: file.sets.iter().map(|set| plan::redact(set)).collect(),
            resolved: plan
                .resolved
                .iter()
                .map(|resolved| ResolvedValue {
                    key: resolved.key.clone(),
                    value: resolved.value.clone(),
                    origin: plan_file::origin(resolved.origin),
                })
                .collect(),
        },
        seed: plan.seed,
        builds,
        targets: plan
            .targets
            .iter()
            .map(|target| Target {
                name: target.name.clone(),
                build: plan.builds[target.build].name.clone(),
                config: plan.configs[target.config].name.clone(),
                engine: builds::engine_name(plan.builds[target.build].engine).into(),
                declared: plan.configs[target.config].set.clone(),
            })
            .collect(),
        base: plan.targets[plan.base].name.clone(),
        cells: plan
            .cells()
            .iter()
            .map(|cell| {
                let variant = &plan.variants[cell.variant];
                CellRef::new(
                    &plan.targets[cell.target].name,
                    variant.workload.name(),
                    variant.name.as_deref(),
                    cell.clients,
                    cell.repeat,
                )
            })
            .collect(),
        ..Run::default()
    }
}

fn data_root(plan: &Plan, args: &RunArgs) -> anyhow::Result<PathBuf> {
    let configured = args
        .data
        .clone()
        .or_else(|| plan.data_dir.as_ref().map(PathBuf::from));
    let path = configured.unwrap_or_else(|| args.results.join("data"));
    fs_err::create_dir_all(&path).map_err(|error| {
        UsageError::new(
            format!("the data directory can't be made: {error}"),
            Some("choose a directory that can be written with `--data`".into()),
        )
    })?;
    Ok(fs_err::canonicalize(&path)?)
}

/// Keeps other runs out of the same data directory, for as long as the file is open.
fn lock(data_root: &Path) -> anyhow::Result<fs_err::File> {
    let path = data_root.join(".assay.lock");
    let file = fs_err::File::create(&path).context("the data directory can't be locked")?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(
        |_| {
            UsageError::new(
                format!(
                    "another run of assay uses the data directory `{}`",
                    data_root.display()
                ),
                Some("wait for it, or give another directory with `--data`".into()),
            )
        },
    )?;
    Ok(file)
}

/// Nanoseconds since 1970 UTC.
fn unix_now_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}
