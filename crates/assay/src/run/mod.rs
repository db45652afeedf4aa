//! `assay run`: works through the cells of a plan, one after the other, and records each before the next begins; and
//! goes on with a run that did not come to its end.

mod against_itself;
mod cell;
mod display;
pub mod isolated;
mod lock;
mod matrix;
mod only;
mod pace;
mod resume;
mod step;
mod stop;
mod subject;
mod tables;
mod target;
mod workplace;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use analysis::compat::host_differences;
use analysis::{CompareOptions, Figures};
use anyhow::Context;
use load::SystemClock;
use plan::Plan;
use record::{CellRef, RecordError, Run, RunDir, Status, Target, WorkloadSteps};
use report::Curves;

use crate::cli::RunArgs;
use crate::commands;
use crate::host::Needs;
use crate::outcome::{Exit, UsageError, causes_of, report_error};
use crate::output::{print, style};
use crate::plan_file::{self, PlanFile};
use crate::{locate, preflight};
use display::{Display, Outlook};
use matrix::Matrix;
use only::Only;
use workplace::Workplace;

/// What all cells of a run share.
struct Conductor<'a> {
    file: &'a PlanFile,
    directory: &'a RunDir,
    /// Which invocation of the run this is, from 1.
    invocation: u32,
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

/// Runs a plan, or goes on with a run.
pub fn run(args: &RunArgs) -> anyhow::Result<Exit> {
    match &args.resume {
        None => begin(args),
        Some(directory) => go_on(args, directory),
    }
}

fn begin(args: &RunArgs) -> anyhow::Result<Exit> {
    let started_unix_ns = unix_now_ns();
    let mut file = plan_file::read(&args.plan)?;
    let planned = matrix::references(&file.plan);
    let only = Only::new(&args.only, &planned)?;
    if args.aa {
        file = against_itself::plan(&file, &args.plan, &planned, &only)?;
    }
    preflight::refuse_what_cannot_run(&file)?;
    file.keep_files()?;
    let mut cells = matrix::references(&file.plan);
    cells.retain(|cell| match args.aa {
        true => against_itself::matches(&only, &file.plan, cell),
        false => only.matches(cell),
    });
    let matrix = Matrix::begin(&file.plan, &cells)?;
    let data_root = match (&args.data, &file.plan.data_dir) {
        (Some(given), _) => given.clone(),
        (None, Some(planned)) => PathBuf::from(planned),
        (None, None) => args.results.join("data"),
    };
    let cells_to_run = matrix.tasks.iter().map(|task| task.cell);
    let located = locate::locate(&file, cells_to_run, Some(&data_root))?.builds;
    let needs = needs(&file.plan, &matrix);
    let mut place = Workplace::take(args, &data_root, &args.results, needs)?;
    for text in preflight::not_applicable(&file.plan, |cell| only.matches(cell)) {
        place.warn("target::not-applicable", text);
    }
    let mut run = describe(&file, located, cells, started_unix_ns)?;
    run.host = place.host.clone();
    run.warnings.clone_from(&place.warnings);
    run.invocations
        .push(place.invocation(args, started_unix_ns));
    let directory = RunDir::create(&args.results, &run).map_err(unusable)?;
    let _lock = lock::run_directory(directory.path())?;
    conduct(args, &file, &directory, run, place, matrix)
}

/// Returns the error for a directory of results that can't be made; a full disk is nobody's mistake.
fn unusable(error: RecordError) -> anyhow::Error {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let help = error.help();
    match &error {
        RecordError::Io { source, .. } if matches!(source.kind(), QuotaExceeded | StorageFull) => {
            error.into()
        }
        _ => UsageError::new(causes_of(&error.into()).join(": "), help).into(),
    }
}

/// Measures those cells of a run that are missing or failed.
fn go_on(args: &RunArgs, path: &Path) -> anyhow::Result<Exit> {
    let started_unix_ns = unix_now_ns();
    let resume::Opened {
        directory,
        mut run,
        lock: _lock,
    } = resume::open(path)?;
    resume::refuse_needless_plan(&run.plan, &args.plan)?;
    let file = match args.repeats {
        None => None,
        Some(repeats) => {
            let mut file = resume::plan(&run.plan, &args.plan)?;
            resume::add_repeats(&mut file.plan, &mut run.cells, repeats, &args.only)?;
            Some(file)
        }
    };
    let only = Only::new(&args.only, &run.cells)?;
    if is_complete(&directory, &run)? {
        return already_complete(args, &directory, run);
    }
    let mut file = match file {
        Some(file) => file,
        None => resume::plan(&run.plan, &args.plan)?,
    };
    resume::cover_repeats(&mut file.plan, &run.cells);
    preflight::refuse_what_cannot_run(&file)?;
    let matrix = Matrix::go_on(&file.plan, &run.cells, &directory, &only)?;
    if matrix.tasks.is_empty() {
        Display::new(args.quiet).say(&format!(
            "the cells that match are complete; {} others are not",
            matrix.cell_count - matrix.complete_count
        ));
        print(&format!("{}\n", path.display()))?;
        return Ok(Exit::Ok);
    }
    let before = run.invocations.last().cloned();
    let data_root = match (&args.data, &before) {
        (Some(given), _) => given.clone(),
        (None, Some(before)) => PathBuf::from(&before.data_dir),
        (None, None) => {
            anyhow::bail!("the record does not say where databases were made: give `--data`")
        }
    };
    let cells_to_run = matrix.tasks.iter().map(|task| task.cell);
    let located = locate::locate(&file, cells_to_run, Some(&data_root))?.builds;
    resume::refuse_other_builds(&run.builds, &located)?;
    let mut place = Workplace::take(args, &data_root, path, needs(&file.plan, &matrix))?;
    let mut invocation = place.invocation(args, started_unix_ns);
    invocation.host_differences = host_differences(&run.host, &place.host);
    let number = run.invocations.len() + 1;
    if let Some(what) = resume::other_machine(before.as_ref(), &invocation) {
        place.warn(
            "resume::other-machine",
            format!(
                "the machine of invocation {number} is not what it was when the run began: {what}"
            ),
        );
    }
    if run.assay != invocation.assay {
        let text = format!(
            "assay {} continues, in invocation {number}, a run that assay {} began: figures may differ for that reason",
            invocation.assay, run.assay
        );
        place.warn("resume::other-assay", text);
    }
    // The same remark on the machine, with other numbers in it, is none.
    let is_new = |code: &str| {
        code.starts_with("resume::") || run.warnings.iter().all(|known| known.code != code)
    };
    let new: Vec<_> = place
        .warnings
        .iter()
        .filter(|warning| is_new(&warning.code))
        .cloned()
        .collect();
    run.warnings.extend(new);
    run.invocations.push(invocation);
    (run.status, run.ended_unix_ns) = (Status::Incomplete, None);
    directory.write_run(&run)?;
    conduct(args, &file, &directory, run, place, matrix)
}

/// A run of which every cell is complete; `run.json` need not say so yet.
fn already_complete(args: &RunArgs, directory: &RunDir, mut run: Run) -> anyhow::Result<Exit> {
    Display::new(args.quiet).say(&format!(
        "all {} cells of `{}` are complete: nothing is left to be measured",
        run.cells.len(),
        directory.path().display()
    ));
    if run.status != Status::Complete {
        // It was killed between its last cell and its end.
        let mut ended_unix_ns = None;
        for cell in &run.cells {
            ended_unix_ns = ended_unix_ns.max(directory.cell(cell)?.read()?.ended_unix_ns);
        }
        (run.status, run.ended_unix_ns) = (Status::Complete, ended_unix_ns);
        directory.write_run(&run)?;
        match analysis::figures_and(std::slice::from_ref(directory), Curves::take) {
            Ok((figures, curves)) => {
                write_report(directory, &figures, &curves);
            }
            Err(error) => {
                report_error(&error.into());
            }
        }
    }
    print(&format!("{}\n", directory.path().display()))?;
    Ok(Exit::Ok)
}

fn is_complete(directory: &RunDir, run: &Run) -> anyhow::Result<bool> {
    for cell in &run.cells {
        if matrix::status(directory, cell)? != Some(Status::Complete) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn needs(plan: &Plan, matrix: &Matrix) -> Needs {
    let estimate = matrix.estimate();
    Needs {
        disk_bytes: Some(estimate.disk_bytes),
        local_server: locate::has_local_server(plan, matrix.tasks.iter().map(|task| task.cell)),
        connections: estimate.connections,
        working: estimate.working,
    }
}

/// Measures what is to be measured and closes the record.
fn conduct(
    args: &RunArgs,
    file: &PlanFile,
    directory: &RunDir,
    mut run: Run,
    place: Workplace,
    mut matrix: Matrix,
) -> anyhow::Result<Exit> {
    place.display.say(&matrix.picture(&file.plan));
    let conductor = Conductor {
        file,
        directory,
        invocation: run.invocations.len() as u32,
        data_root: place.data_root.clone(),
        executable: std::env::current_exe().context("this program's own path is not known")?,
        clock: place.clock.clone(),
        stop: Arc::clone(&place.stop),
        display: place.display,
    };
    let result = run_cells(&conductor, &mut matrix);
    let status = *result.as_ref().unwrap_or(&Status::Failed);
    let now = unix_now_ns();
    if let Some(invocation) = run.invocations.last_mut() {
        (invocation.status, invocation.ended_unix_ns) = (status, Some(now));
    }
    let mut unfinished = Unfinished::default();
    let counted = unfinished.count(directory, &run);
    run.status = match (&counted, status) {
        (Ok(()), Status::Complete) if unfinished.failed > 0 => Status::Failed,
        (Ok(()), Status::Complete) if unfinished.missing > 0 => Status::Incomplete,
        (Ok(()), status) => status,
        (Err(_), _) => Status::Failed,
    };
    run.ended_unix_ns = (run.status != Status::Incomplete).then_some(now);
    let written = directory.write_run(&run);
    conductor.display.finish();
    if result.is_err() {
        unfinished.say(&conductor.display, directory, &run);
    }
    // A record that can't be written is why the run ended: that is said, not that its end can't be recorded either.
    result?;
    counted?;
    written?;
    let (figures, curves) = analysis::figures_and(std::slice::from_ref(directory), Curves::take)?;
    let report = write_report(directory, &figures, &curves);
    if !args.quiet {
        print(&report::tables_brief(&run, &figures, style()))?;
        if file.plan.against_itself {
            print(&noise(&run, &figures))?;
        }
    }
    if let Some(report) = report {
        conductor
            .display
            .say(&format!("report: {}", report.display()));
    }
    if run.status == Status::Complete {
        conductor
            .display
            .say(&format!("next: {}", next_command(directory, &run)));
    }
    unfinished.say(&conductor.display, directory, &run);
    let exit = if status == Status::Complete && run.status != Status::Complete {
        exit_of_part(&figures, &matrix)
    } else {
        exit_of(&run, &figures)
    };
    print(&format!("{}\n", directory.path().display()))?;
    Ok(exit)
}

/// Returns where the report is. The record is complete: a report that can't be written now can be made again.
fn write_report(directory: &RunDir, figures: &Figures, curves: &[Curves]) -> Option<PathBuf> {
    let output = directory.path().join("report.html");
    let directories = std::slice::from_ref(directory);
    match commands::report::write_report(directories, figures, curves, &[], &output) {
        Ok(()) => Some(output),
        Err(error) => {
            report_error(&error);
            None
        }
    }
}

/// Returns the command that tells more about a complete run.
fn next_command(directory: &RunDir, run: &Run) -> String {
    let path = directory.path().display();
    let has_others = run.cells.iter().any(|cell| cell.key.target != run.base);
    match run.cells.iter().any(|cell| cell.key.repeat > 1) {
        _ if !has_others => format!("`assay show {path}` has all tables"),
        true => format!("`assay compare {path}` also shows what each operation costs"),
        false if run.plan.password_removed => {
            format!(
                "`assay run --resume {path} PLAN --repeats 5` adds the repeats that verdicts need"
            )
        }
        false => {
            format!("`assay run --resume {path} --repeats 5` adds the repeats that verdicts need")
        }
    }
}

/// Cells of a run that are not complete.
#[derive(Default)]
struct Unfinished {
    failed: usize,
    missing: usize,
}

impl Unfinished {
    fn count(&mut self, directory: &RunDir, run: &Run) -> anyhow::Result<()> {
        for cell in &run.cells {
            match matrix::status(directory, cell)? {
                Some(Status::Complete) => {}
                Some(Status::Failed) => self.failed += 1,
                None | Some(Status::Incomplete | Status::Interrupted) => self.missing += 1,
            }
        }
        Ok(())
    }

    fn say(&self, display: &Display, directory: &RunDir, run: &Run) {
        let parts: Vec<String> = [(self.failed, "failed"), (self.missing, "missing")]
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !parts.is_empty() {
            let plan = if run.plan.password_removed {
                " PLAN"
            } else {
                ""
            };
            display.say(&format!(
                "of {} cells {}: `assay run --resume {}{plan}` measures what is not complete",
                run.cells.len(),
                parts.join(" and "),
                directory.path().display()
            ));
        }
    }
}

/// Returns what a run of a target against itself says of the machine.
pub fn noise(run: &Run, figures: &Figures) -> String {
    let options = CompareOptions {
        base: run.base.clone(),
        metrics: Vec::new(),
        ..CompareOptions::default()
    };
    let compared = analysis::compare(figures, &options);
    format!("\n{}", report::noise_floor(&compared, style()))
}

/// Returns how good the results of a run are, as an exit code.
pub fn exit_of(run: &Run, figures: &Figures) -> Exit {
    match run.status {
        Status::Interrupted => Exit::Interrupted,
        // What the record says of itself is not enough: it may contradict itself.
        Status::Complete if figures.rows.iter().any(|row| !row.valid) => Exit::Invalid,
        Status::Complete => Exit::Ok,
        Status::Incomplete | Status::Failed => Exit::Failed,
    }
}

/// The exit code of an invocation that measured all that it was to measure, of a run that lacks cells all the same.
fn exit_of_part(figures: &Figures, matrix: &Matrix) -> Exit {
    let is_measured = |row: &analysis::Row| {
        let mut tasks = matrix.tasks.iter();
        tasks.any(|task| task.reference.key == row.cell)
    };
    let mut rows = figures.rows.iter().filter(|row| is_measured(row));
    if rows.any(|row| !row.valid) {
        Exit::Invalid
    } else {
        Exit::Ok
    }
}

/// Measures each cell, however the one before ended; only a record that can't be written ends them all.
fn run_cells(conductor: &Conductor<'_>, matrix: &mut Matrix) -> anyhow::Result<Status> {
    let mut failed = 0;
    for index in 0..matrix.tasks.len() {
        if conductor.is_stopped() {
            return Ok(Status::Interrupted);
        }
        let time_left = matrix.time_left(index);
        let task = &matrix.tasks[index];
        let outlook = Outlook {
            number: task.number,
            count: matrix.cell_count,
            failed,
            time_left,
            since: SystemTime::now(),
        };
        conductor.display.begin_cell(&task.reference, outlook);
        warn_of_little_room(conductor, task);
        let began = SystemTime::now();
        match cell::run(conductor, &task.reference, task.cell)? {
            Status::Complete => {
                let (cell, estimate) = (task.cell, task.estimate.time);
                let took = began.elapsed().unwrap_or_default();
                matrix.pace.saw(cell, took, estimate);
            }
            Status::Interrupted => return Ok(Status::Interrupted),
            Status::Failed | Status::Incomplete => failed += 1,
        }
    }
    Ok(if failed > 0 {
        Status::Failed
    } else {
        Status::Complete
    })
}

/// A full disk is the cell's own failure, and may leave room for the next.
fn warn_of_little_room(conductor: &Conductor<'_>, task: &matrix::Task) {
    let needed = task.estimate.disk_bytes;
    if let Some(free) = display::free_bytes(&conductor.data_root)
        && free < needed
    {
        conductor.display.warn(&format!(
            "warning[host::little-disk]: this cell needs about {:.1} GB, and `{}` has {:.1} GB left",
            needed as f64 / 1e9,
            conductor.data_root.display(),
            free as f64 / 1e9
        ));
    }
}

/// The record of a run that has not begun.
fn describe(
    file: &PlanFile,
    builds: Vec<record::Build>,
    cells: Vec<CellRef>,
    started_unix_ns: u64,
) -> anyhow::Result<Run> {
    let plan = &file.plan;
    let targets = plan.targets.iter().map(|target| {
        let (build, config) = (&plan.builds[target.build], &plan.configs[target.config]);
        Ok(Target {
            name: target.name.clone(),
            build: build.name.clone(),
            config: config.name.clone(),
            engine: build.engine.name().into(),
            set: config.declared(),
            declared: file.declared(config)?,
            files: config.files.clone(),
        })
    });
    let targets = targets.collect::<anyhow::Result<_>>()?;
    Ok(Run {
        assay: crate::version::ASSAY.clone(),
        name: plan.name.clone(),
        started_unix_ns,
        command: std::env::args().map(|arg| words::redact(&arg)).collect(),
        plan: file.to_record(),
        seed: plan.seed,
        builds,
        targets,
        base: plan.targets[plan.base].name.clone(),
        cells,
        workloads: plan
            .variants
            .iter()
            .map(|variant| WorkloadSteps {
                workload: variant.workload.name().into(),
                variant: variant.name.clone(),
                steps: cell::step_names(&variant.workload),
            })
            .collect(),
        ..Run::default()
    })
}

/// Nanoseconds since 1970 UTC.
fn unix_now_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}
