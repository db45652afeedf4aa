//! `assay run`: works through the cells of a plan, one after the other, and records each before the next begins; and
//! goes on with a run that did not come to its end.

mod against_itself;
mod cell;
mod conductor;
mod display;
pub mod isolated;
mod lock;
mod matrix;
mod only;
mod pace;
mod resume;
pub mod running;
mod step;
mod stop;
pub mod subject;
mod tables;
mod workplace;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use analysis::compat::host_differences;
use analysis::{CompareOptions, Figures};
use plan::{Engine, Plan};
use probe::HostContext;
use record::{CellRef, Failure, RecordError, Run, RunDir, Status, Target, WorkloadSteps};
use report::Curves;

use crate::cli::{DATA, RunArgs};
use crate::commands;
use crate::live::{self, About, Event, Live};
use crate::outcome::{Exit, UsageError, failure_of, report_error};
use crate::output::{print, style};
use crate::plan_file::{self, PlanFile};
use crate::{locate, preflight, version};
use conductor::{Conductor, unix_now_ns};
use display::{Display, Outlook};
use matrix::Matrix;
use only::Only;
use workplace::Workplace;

pub use display::free_bytes;
pub use matrix::factors;
pub use pace::about;

/// Runs a plan, or goes on with a run.
pub fn run(args: &RunArgs) -> anyhow::Result<Exit> {
    let bind = |address: &String| live::bind(address, args.place.listen_anywhere);
    let listener = args.place.listen.as_ref().map(bind).transpose()?;
    match &args.resume {
        None => begin(args, listener),
        Some(directory) => go_on(args, directory, listener),
    }
}

fn begin(args: &RunArgs, listener: Option<TcpListener>) -> anyhow::Result<Exit> {
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
    let data_root = match (&args.place.data, &file.plan.data_dir) {
        (Some(given), _) => given.clone(),
        (None, Some(planned)) => PathBuf::from(planned),
        (None, None) => args.place.results.join(DATA),
    };
    let cells_to_run = matrix.tasks.iter().map(|task| task.cell);
    let located = locate::locate(&file, cells_to_run, Some(&data_root))?.builds;
    let needs = needs(&file.plan, &matrix, &data_root);
    let mut place = Workplace::take(args, &args.place.results, needs)?;
    for text in preflight::not_applicable(&file.plan, |cell| only.matches(cell)) {
        place.warn("target::not-applicable", text);
    }
    let mut run = describe(&file, located, cells, started_unix_ns)?;
    run.host = place.host.clone();
    run.warnings.clone_from(&place.warnings);
    run.invocations
        .push(place.invocation(args, started_unix_ns));
    let directory = RunDir::create(&args.place.results, &run).map_err(unusable)?;
    let _lock = lock::run_directory(directory.path())?;
    conduct(args, &file, &directory, run, place, matrix, listener)
}

/// Returns the error for a directory of results that can't be made; a full disk is nobody's mistake.
fn unusable(error: RecordError) -> anyhow::Error {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    match &error {
        RecordError::Io { source, .. } if matches!(source.kind(), QuotaExceeded | StorageFull) => {
            error.into()
        }
        _ => {
            let Failure { causes, help, .. } = failure_of(&error.into());
            UsageError::new(causes.join(": "), help).into()
        }
    }
}

/// Measures those cells of a run that are missing or failed.
fn go_on(args: &RunArgs, path: &Path, listener: Option<TcpListener>) -> anyhow::Result<Exit> {
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
    if Unfinished::of(&directory, &run)? == Unfinished::default() {
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
        Display::new(args.place.quiet).say(&format!(
            "the cells that match are complete; {} others are not",
            matrix.cell_count - matrix.complete_count
        ));
        print(&format!("{}\n", path.display()))?;
        return Ok(Exit::Ok);
    }
    let before = run.invocations.last().cloned();
    let data_root = match (&args.place.data, &before) {
        (Some(given), _) => given.clone(),
        (None, Some(before)) => PathBuf::from(&before.data_dir),
        (None, None) => {
            anyhow::bail!("the record does not say where databases were made: give `--data`")
        }
    };
    let cells_to_run = matrix.tasks.iter().map(|task| task.cell);
    let located = locate::locate(&file, cells_to_run, Some(&data_root))?.builds;
    resume::refuse_other_builds(&run.builds, &located)?;
    let mut place = Workplace::take(args, path, needs(&file.plan, &matrix, &data_root))?;
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
    conduct(args, &file, &directory, run, place, matrix, listener)
}

/// A run of which every cell is complete; `run.json` need not say so yet.
fn already_complete(args: &RunArgs, directory: &RunDir, mut run: Run) -> anyhow::Result<Exit> {
    Display::new(args.place.quiet).say(&format!(
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

fn needs<'a>(plan: &Plan, matrix: &Matrix, data_dir: &'a Path) -> HostContext<'a> {
    let estimate = matrix.estimate();
    HostContext {
        data_dir,
        needed_bytes: Some(estimate.disk_bytes),
        local_server: locate::has_local_server(plan, matrix.tasks.iter().map(|task| task.cell)),
        connections: estimate.connections,
        working: estimate.working,
        fsync: None,
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
    listener: Option<TcpListener>,
) -> anyhow::Result<Exit> {
    place.display.say(&matrix.picture(&file.plan));
    let live = watched(listener, &run, directory, &place)?;
    let conductor = Conductor {
        file,
        directory,
        invocation: run.invocations.len() as u32,
        data_root: place.data_root.clone(),
        executable: version::own_path()?,
        clock: place.clock.clone(),
        stop: Arc::clone(&place.stop),
        display: place.display,
        live,
    };
    let result = run_cells(&conductor, &mut matrix);
    let status = *result.as_ref().unwrap_or(&Status::Failed);
    let now = unix_now_ns();
    if let Some(invocation) = run.invocations.last_mut() {
        (invocation.status, invocation.ended_unix_ns) = (status, Some(now));
    }
    let unfinished = Unfinished::of(directory, &run);
    run.status = match (&unfinished, status) {
        (Ok(unfinished), Status::Complete) if unfinished.failed > 0 => Status::Failed,
        (Ok(unfinished), Status::Complete) if unfinished.missing > 0 => Status::Incomplete,
        (Ok(_), status) => status,
        (Err(_), _) => Status::Failed,
    };
    run.ended_unix_ns = (run.status != Status::Incomplete).then_some(now);
    let written = directory.write_run(&run);
    conductor.display.finish();
    if let (Err(_), Ok(unfinished)) = (&result, &unfinished) {
        unfinished.say(&conductor.display, directory, &run);
    }
    // A record that can't be written is why the run ended: that is said, not that its end can't be recorded either.
    result?;
    let unfinished = unfinished?;
    written?;
    let (figures, curves) = analysis::figures_and(std::slice::from_ref(directory), Curves::take)?;
    let report = write_report(directory, &figures, &curves);
    if !args.place.quiet {
        print(&report::tables_brief(&run, &figures, style()))?;
        if file.plan.against_itself {
            print(&noise(&run, &figures))?;
        }
    }
    if let Some(report) = report {
        let report = std::path::absolute(&report).unwrap_or(report);
        let say = |text: String| conductor.display.say(&text);
        say(format!("report: {}", file_url(&report)));
    }
    if run.status == Status::Complete {
        for next in next_commands(directory, &run) {
            conductor.display.say(&format!("next: {next}"));
        }
    }
    unfinished.say(&conductor.display, directory, &run);
    let is_part = status == Status::Complete && run.status != Status::Complete;
    let exit = exit_of(&run, &figures, is_part.then_some(&matrix));
    print(&format!("{}\n", directory.path().display()))?;
    Ok(exit)
}

/// Answers from now on who watches the run at `listener`.
fn watched(
    listener: Option<TcpListener>,
    run: &Run,
    directory: &RunDir,
    place: &Workplace,
) -> anyhow::Result<Live> {
    let Some(listener) = listener else {
        return Ok(Live::default());
    };
    let address = listener.local_addr()?;
    let live = live::serve(listener, About::new(run, directory), place.clock.clone())?;
    place.display.say(&format!(
        "live: http://{address}/ and, for Prometheus, http://{address}/metrics"
    ));
    Ok(live)
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

/// Returns the address of a file, as browsers and terminals take it.
fn file_url(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    let part = |byte: &u8| match byte {
        b'/' | b'-' | b'_' | b'.' | b'~' => char::from(*byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let path: String = bytes.map(part).collect();
    format!("file://{path}")
}

/// Returns the commands that tell more about a complete run.
fn next_commands(directory: &RunDir, run: &Run) -> [String; 2] {
    let path = directory.path().display();
    let tables = format!("`assay show {path}` has all tables");
    let repeats = run.cells.iter().map(|cell| cell.key.repeat).max();
    let more = |repeats: u32, why: &str| {
        let resume = resume_command(directory, run);
        format!("`{resume} --repeats {repeats}` {why}")
    };
    match repeats.unwrap_or(1) {
        _ if run.cells.iter().all(|cell| cell.key.target == run.base) => [
            tables,
            format!("`assay compare {path} LATER-RUN --by-run` compares a later run with it"),
        ],
        1 => [more(5, "adds the repeats that verdicts need"), tables],
        repeats => [
            format!("`assay compare {path}` also shows what each operation costs"),
            more(
                2 * repeats,
                "measures as often again, for narrower intervals",
            ),
        ],
    }
}

/// Returns the command that goes on with a run. A plan with a password, which is not recorded, is given again.
fn resume_command(directory: &RunDir, run: &Run) -> String {
    let path = directory.path().display();
    let plan = match run.plan.password_removed {
        true => " PLAN",
        false => "",
    };
    format!("assay run --resume {path}{plan}")
}

/// Cells of a run that are not complete.
#[derive(Default, PartialEq)]
struct Unfinished {
    failed: usize,
    missing: usize,
}

impl Unfinished {
    /// Counts them.
    fn of(directory: &RunDir, run: &Run) -> anyhow::Result<Self> {
        let mut unfinished = Self::default();
        for cell in &run.cells {
            match matrix::status(directory, cell)? {
                Some(Status::Complete) => {}
                Some(Status::Failed) => unfinished.failed += 1,
                None | Some(Status::Incomplete | Status::Interrupted) => unfinished.missing += 1,
            }
        }
        Ok(unfinished)
    }

    fn say(&self, display: &Display, directory: &RunDir, run: &Run) {
        let parts: Vec<String> = [(self.failed, "failed"), (self.missing, "missing")]
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if !parts.is_empty() {
            display.say(&format!(
                "of {} cells {}: `{}` measures what is not complete",
                run.cells.len(),
                parts.join(" and "),
                resume_command(directory, run)
            ));
        }
    }
}

/// Returns what a run of a target against itself says of the machine.
fn noise(run: &Run, figures: &Figures) -> String {
    let options = CompareOptions {
        base: run.base.clone(),
        metrics: Vec::new(),
        ..CompareOptions::default()
    };
    let compared = analysis::compare(figures, &options);
    format!("\n{}", report::noise_floor(&compared, style()))
}

/// Returns how good the results of a run are, as an exit code. `measured` is what this invocation was to measure: where it
/// is all that is complete, its results count, and not what else the run lacks.
fn exit_of(run: &Run, figures: &Figures, measured: Option<&Matrix>) -> Exit {
    let is_measured = |row: &analysis::Row| {
        measured.is_none_or(|matrix| {
            let mut tasks = matrix.tasks.iter();
            tasks.any(|task| task.reference.key == row.cell)
        })
    };
    let mut rows = figures.rows.iter().filter(|row| is_measured(row));
    match run.status {
        Status::Interrupted => Exit::Interrupted,
        Status::Incomplete | Status::Failed if measured.is_none() => Exit::Failed,
        // What the record says of itself is not enough: it may contradict itself.
        _ if rows.any(|row| !row.valid) => Exit::Invalid,
        _ => Exit::Ok,
    }
}

/// Measures each cell, however the one before ended; only a record that can't be written ends them all.
fn run_cells(conductor: &Conductor<'_>, matrix: &mut Matrix) -> anyhow::Result<Status> {
    let mut cells = live::Cells {
        count: matrix.cell_count,
        complete: matrix.complete_count,
        ..live::Cells::default()
    };
    for index in 0..matrix.tasks.len() {
        if conductor.is_stopped() {
            return Ok(Status::Interrupted);
        }
        let time_left = matrix.time_left(index);
        let task = &matrix.tasks[index];
        let outlook = Outlook {
            number: task.number,
            count: matrix.cell_count,
            failed: cells.failed,
            time_left,
            since: SystemTime::now(),
        };
        conductor.display.begin_cell(&task.reference, outlook);
        cells.left_s = time_left.as_secs_f64();
        conductor.live.tell(|| Event::Cells(cells));
        conductor
            .live
            .tell(|| Event::Cell(task.reference.key.clone()));
        warn_of_little_room(conductor, task);
        let began = SystemTime::now();
        // A library shares an address space with nothing else.
        let plan = conductor.plan();
        let run = match plan.builds[plan.targets[task.cell.target].build].engine {
            Engine::RocksDb => isolated::run,
            _ => cell::run,
        };
        match run(conductor, &task.reference, task.cell)? {
            Status::Complete => {
                let (cell, estimate) = (task.cell, task.estimate.time);
                let took = began.elapsed().unwrap_or_default();
                matrix.pace.saw(cell, took, estimate);
                cells.complete += 1;
            }
            Status::Interrupted => return Ok(Status::Interrupted),
            Status::Failed | Status::Incomplete => cells.failed += 1,
        }
    }
    cells.left_s = 0.0;
    conductor.live.tell(|| Event::Cells(cells));
    Ok(if cells.failed > 0 {
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
            factors: [build.factors.as_slice(), &config.factors].concat(),
            files: config.files.clone(),
        })
    });
    let targets = targets.collect::<anyhow::Result<_>>()?;
    Ok(Run {
        id: crate::host::random_id()?,
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
