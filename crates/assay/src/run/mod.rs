//! `assay run`: measures the cells of a plan one after the other, and records each before the next
//! begins; also resumes a run that did not finish.

mod against_itself;
mod cell;
pub mod cell_run;
mod conductor;
mod context;
mod display;
mod failures;
pub mod find;
mod incomplete;
pub mod isolated;
mod lock;
mod matrix;
mod next;
mod pace;
mod profiling;
pub mod ranks;
pub mod replication;
mod resume;
pub mod runners;
mod step;
pub mod stop;
mod tables;
mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use analysis::compare::CompareOptions;
use analysis::compat::host_differences;
use analysis::figures::Figures;
use plan::Plan;
use probe::HostContext;
use record::{
    CellKey, CellRef, Failure, RateSearch, RecordError, Run, RunDir, Status, Target, WorkloadSteps,
};
use report::Curves;
use words::EngineHome;

use self::ranks::LoadRanks;
use crate::cli::{DATA, PlanArgs, RunArgs};
use crate::commands;
use crate::live::{self, Event, Listener, Live, RunInfo};
use crate::only::CellFilters;
use crate::outcome::{Exit, UsageError, failure_of, report_error};
use crate::output::{print, style};
use crate::plan_file::{self, PlanFile};
use crate::{estimate, locate, memory, preflight, version};
use conductor::{Conductor, unix_now_ns};
use context::RunContext;
use display::{Display, MatrixProgress};
use failures::Failures;
use incomplete::IncompleteCells;
use load::{Clock as _, SystemClock};
use matrix::{Matrix, Task};
use next::next_commands;

pub use display::free_bytes;
pub use matrix::{factors, matching, references};
pub use pace::about;

/// Runs a plan, or resumes a run.
pub fn run(args: &RunArgs) -> anyhow::Result<Exit> {
    let job = ::ranks::Ranks::join()
        .map_err(|error| UsageError::new(error.to_string(), Some(error.help().into())))?;
    let Some(job) = job else {
        return run_with(args, None);
    };
    let (clock, stop) = (SystemClock::begin(), stop::watch_under_mpirun()?);
    if job.rank() > 0 {
        return ranks::serve(job, clock, &stop);
    }
    run_with(args, Some(LoadRanks::join(job, clock, stop)?))
}

/// Runs a plan, or resumes a run, with the load made by `ranks`.
fn run_with(args: &RunArgs, ranks: Option<LoadRanks>) -> anyhow::Result<Exit> {
    let bind = |address: &String| live::bind(address, args.place.listen_anywhere);
    let listener = args.place.listen.as_ref().map(bind).transpose()?;
    match &args.resume {
        None => begin(args, listener, ranks),
        Some(directory) => resume_run(args, directory, listener, ranks),
    }
}

fn begin(
    args: &RunArgs,
    listener: Option<Listener>,
    ranks: Option<LoadRanks>,
) -> anyhow::Result<Exit> {
    let started_unix_ns = unix_now_ns();
    let mut file = plan_file::read(&with_repeats(&args.plan, args.repeats))?;
    if args.profile && file.plan.profile.repeats == 0 {
        file = plan_file::with_sets(&file, vec!["profile.repeats=1".into()])?;
    }
    if let Some(search) = &args.search {
        file = find::first_plan(&file, search)?;
    }
    let planned = matrix::references(&file.plan);
    let only = CellFilters::new(&args.only, &planned)?;
    if args.aa {
        file = against_itself::plan(&file, &args.plan, &planned, &only)?;
    }
    preflight::reject_impossible(&file)?;
    file.keep_files()?;
    let mut cells = matrix::references(&file.plan);
    cells.retain(|cell| {
        if args.aa { against_itself::matches(&only, &file.plan, cell) } else { only.matches(cell) }
    });
    if let Some(search) = &args.search {
        find::refuse_without_replicas(&file.plan, search, &cells)?;
    }
    let matrix = Matrix::begin(&file.plan, &cells)?;
    let data_root = match (&args.place.data, &file.plan.data_dir) {
        (Some(given), _) => given.clone(),
        (None, Some(planned)) => PathBuf::from(planned),
        (None, None) => args.place.results.join(DATA),
    };
    let cells_to_run = matrix.tasks.iter().map(|task| task.cell);
    if ranks.is_some() {
        refuse_load_ranks(&file.plan, &matrix.tasks)?;
    }
    let located = locate::locate(&file, cells_to_run, Some(&data_root))?.builds;
    let needs = needs(&file.plan, &matrix.tasks, &data_root, ranks.as_ref());
    let mut place = RunContext::new(args, &args.place.results, needs, ranks)?;
    for text in preflight::not_applicable(&file.plan, |cell| only.matches(cell)) {
        place.warn("target::not-applicable", text);
    }
    let targets = matrix.tasks.iter().map(|task| task.cell.target);
    let host_bytes = place.host.memory_total_bytes;
    for text in memory::oversized_caches(&file, targets, host_bytes)? {
        place.warn(memory::CACHE_CODE, text);
    }
    let mut run = describe(&file, located, cells, started_unix_ns)?;
    run.search =
        args.search.clone().map(|search| RateSearch { repeats: file.plan.repeats, ..search });
    run.host = place.host.clone();
    run.warnings.clone_from(&place.warnings);
    run.invocations.push(place.invocation(args, started_unix_ns));
    let directory = RunDir::create(&args.place.results, &run).map_err(results_dir_error)?;
    let _lock = lock::run_directory(directory.path())?;
    conduct(args, file, &directory, run, place, matrix, listener)
}

/// Returns a plan with this number of repeats, if one is given.
fn with_repeats(plan: &PlanArgs, repeats: Option<u32>) -> PlanArgs {
    let set = repeats.map(|repeats| format!("repeats={repeats}"));
    PlanArgs { sets: plan.sets.iter().cloned().chain(set).collect(), ..plan.clone() }
}

/// Returns the error for a results directory that cannot be created: a usage error, unless the disk
/// is full.
fn results_dir_error(error: RecordError) -> anyhow::Error {
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

/// Measures the cells of a run that are missing or failed.
fn resume_run(
    args: &RunArgs,
    path: &Path,
    listener: Option<Listener>,
    ranks: Option<LoadRanks>,
) -> anyhow::Result<Exit> {
    let started_unix_ns = unix_now_ns();
    let resume::LockedRun { directory, mut run, lock: _lock } = resume::open(path, args.trust)?;
    resume::refuse_redundant_plan(&run.plan, &args.plan)?;
    let file = match (args.repeats, args.profile) {
        (None, false) => None,
        (repeats, profiled) => {
            let mut file = resume::plan(&run.plan, &args.plan)?;
            let more = (repeats.unwrap_or(0), profiled);
            resume::add_repeats(&mut file.plan, &mut run.cells, more, &args.only)?;
            Some(file)
        }
    };
    let only = CellFilters::new(&args.only, &run.cells)?;
    if IncompleteCells::of(&directory, &run)? == IncompleteCells::default()
        && find::next_rates(&directory, &run, &CellFilters::default())?.is_empty()
    {
        return already_complete(args, &directory, run);
    }
    let mut file = match file {
        Some(file) => file,
        None => resume::plan(&run.plan, &args.plan)?,
    };
    resume::raise_repeats(&mut file.plan, &run.cells);
    preflight::reject_impossible(&file)?;
    if !args.trust {
        trust::refuse_foreign_builds(&file.plan)?;
    }
    let matrix = Matrix::resume(&file.plan, &run.cells, &directory, &only)?;
    if matrix.tasks.is_empty() && find::next_rates(&directory, &run, &only)?.is_empty() {
        let others = match matrix.cell_count - matrix.complete_count {
            0 => "the search for other targets has not ended".to_owned(),
            1 => "1 other cell is not".to_owned(),
            others => format!("{others} other cells are not"),
        };
        let text = format!("all matching cells are complete; {others}");
        Display::new(args.place.quiet).say(&text);
        print(&format!("{}\n", path.display()))?;
        return Ok(Exit::Ok);
    }
    let before = run.invocations.last().cloned();
    let data_root = match (&args.place.data, &before) {
        (Some(given), _) => given.clone(),
        (None, Some(before)) => PathBuf::from(&before.data_dir),
        (None, None) => {
            anyhow::bail!("the record does not name the data directory: add `--data DIR`")
        }
    };
    // A search measures further cells of all targets that match.
    let searched = match run.search {
        Some(_) => Some(matrix::matching(&file.plan, &run.cells, &only)?),
        None => None,
    };
    let tasks = searched.as_ref().unwrap_or(&matrix.tasks);
    let cells_to_run = tasks.iter().map(|task| task.cell);
    if ranks.is_some() {
        refuse_load_ranks(&file.plan, tasks)?;
    }
    let located = locate::locate(&file, cells_to_run, Some(&data_root))?.builds;
    resume::refuse_other_builds(&run.builds, &located)?;
    let needs = needs(&file.plan, tasks, &data_root, ranks.as_ref());
    let mut place = RunContext::new(args, path, needs, ranks)?;
    let mut invocation = place.invocation(args, started_unix_ns);
    invocation.host_differences = host_differences(&run.host, &place.host);
    resume::note_elapsed(&directory, &mut run)?;
    let number = run.invocations.len() + 1;
    if let Some(what) = resume::other_machine(before.as_ref(), &invocation) {
        place.warn(
            "resume::other-machine",
            format!(
                "the machine has changed between the start of the run and invocation {number}: {what}"
            ),
        );
    }
    if run.assay != invocation.assay {
        let text = format!(
            "this run was started by assay {} and is resumed by {} in invocation {number}; results may not be comparable",
            run.assay, invocation.assay
        );
        place.warn("resume::other-assay", text);
    }
    // A warning about the machine that differs only in its numbers is not new.
    let is_new = |code: &str| {
        code.starts_with("resume::") || run.warnings.iter().all(|known| known.code != code)
    };
    let new: Vec<_> =
        place.warnings.iter().filter(|warning| is_new(&warning.code)).cloned().collect();
    run.warnings.extend(new);
    run.invocations.push(invocation);
    (run.status, run.ended_unix_ns) = (Status::Incomplete, None);
    directory.write_run(&run)?;
    conduct(args, file, &directory, run, place, matrix, listener)
}

/// Ends a run of which every cell is complete, even if `run.json` does not say so yet.
fn already_complete(args: &RunArgs, directory: &RunDir, mut run: Run) -> anyhow::Result<Exit> {
    Display::new(args.place.quiet).say(&format!(
        "all {} cells of `{}` are complete: nothing to measure",
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
        match analysis::figures::figures_and(std::slice::from_ref(directory), Curves::take) {
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

/// Refuses load ranks for engines that run inside of assay: the ranks would idle.
fn refuse_load_ranks(plan: &Plan, tasks: &[Task]) -> Result<(), UsageError> {
    let is_inside = |target: &&plan::Target| {
        let engine = plan.builds[target.build].engine;
        matches!(engine, plan::Engine::Sqlite | plan::Engine::RocksDb)
    };
    let mut targets = tasks.iter().map(|task| &plan.targets[task.cell.target]);
    let Some(target) = targets.find(is_inside) else {
        return Ok(());
    };
    let engine = plan.builds[target.build].engine.name();
    let message = format!(
        "`{}` can't have load ranks: `{engine}` runs inside assay's own process",
        target.name
    );
    let help = "start assay without `mpirun`, or leave the target out with `--only`";
    Err(UsageError::new(message, Some(help.into())))
}

fn needs<'a>(
    plan: &Plan,
    tasks: &[Task],
    data_dir: &'a Path,
    ranks: Option<&LoadRanks>,
) -> HostContext<'a> {
    let shares_host = ranks.is_none_or(LoadRanks::has_server_host);
    let estimate = estimate::sum(tasks.iter().map(|task| task.estimate));
    HostContext {
        data_dir,
        needed_bytes: Some(estimate.disk_bytes),
        has_local_server: shares_host
            && locate::has_local_server(plan, tasks.iter().map(|task| task.cell)),
        connections: estimate.connections,
        active_connections: estimate.working,
        fsync: None,
    }
}

/// Measures the cells of the matrix and finishes the record.
fn conduct(
    args: &RunArgs,
    file: PlanFile,
    directory: &RunDir,
    mut run: Run,
    place: RunContext,
    matrix: Matrix,
    listener: Option<Listener>,
) -> anyhow::Result<Exit> {
    place.display.say(&matrix.summary(&file.plan));
    let began_ns = place.clock.now();
    let live = serve_live(listener, &run, directory, &place)?;
    let mut conductor = Conductor {
        file,
        directory,
        invocation: run.invocations.len() as u32,
        data_root: place.data_root.clone(),
        executable: version::own_path()?,
        clock: place.clock.clone(),
        stop: Arc::clone(&place.stop),
        display: place.display,
        live,
        ranks: place.ranks,
    };
    let mut measured = Vec::new();
    // A search decides by itself when to stop.
    let mut failures = Failures::new(args.keep_going || run.search.is_some());
    let mut progress = RunProgress { measured: &mut measured, failures: &mut failures };
    let result = run_rounds(&mut conductor, matrix, &mut run, &args.only, &mut progress);
    drop(conductor.ranks.take());
    let status = *result.as_ref().unwrap_or(&Status::Failed);
    let now = unix_now_ns();
    if let Some(invocation) = run.invocations.last_mut() {
        (invocation.status, invocation.ended_unix_ns) = (status, Some(now));
        invocation.left_out = failures.left_out;
        invocation.elapsed_ns = Some(conductor.clock.now().saturating_sub(began_ns));
    }
    let incomplete = IncompleteCells::of(directory, &run);
    run.status = match (&incomplete, status) {
        (Ok(incomplete), Status::Complete) if incomplete.failed > 0 => Status::Failed,
        (Ok(incomplete), Status::Complete) if incomplete.missing > 0 => Status::Incomplete,
        (Ok(_), status) => status,
        (Err(_), _) => Status::Failed,
    };
    run.ended_unix_ns = (run.status != Status::Incomplete).then_some(now);
    let written = directory.write_run(&run);
    conductor.display.finish();
    if let (Err(_), Ok(incomplete)) = (&result, &incomplete) {
        incomplete.say(&conductor.display, directory, &run);
    }
    // A record that cannot be written ended the run: that is reported, not that its end cannot be
    // recorded either.
    result?;
    let incomplete = incomplete?;
    written?;
    let (figures, curves) =
        analysis::figures::figures_and(std::slice::from_ref(directory), Curves::take)?;
    let report = write_report(directory, &figures, &curves);
    if !args.place.quiet {
        print(&report::tables_brief(&run, &figures, style()))?;
        if conductor.file.plan.against_itself {
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
    incomplete.say(&conductor.display, directory, &run);
    let is_part = status == Status::Complete && run.status != Status::Complete;
    let exit = exit_of(&run, &figures, is_part.then_some(&measured));
    print(&format!("{}\n", directory.path().display()))?;
    Ok(exit)
}

/// Serves the live page and metrics at `listener` from now on.
fn serve_live(
    listener: Option<Listener>,
    run: &Run,
    directory: &RunDir,
    place: &RunContext,
) -> anyhow::Result<Live> {
    let Some(listener) = listener else {
        return Ok(Live::default());
    };
    let address = listener.address();
    let live = live::serve(listener, RunInfo::new(run, directory), place.clock.clone())?;
    place
        .display
        .say(&format!("live: http://{address}/ and, for Prometheus, http://{address}/metrics"));
    Ok(live)
}

/// Returns the path of the report; `None` if it cannot be written, which is not fatal: it can be
/// made again.
fn write_report(directory: &RunDir, figures: &Figures, curves: &[Curves]) -> Option<PathBuf> {
    let directories = std::slice::from_ref(directory);
    match commands::report::write_report(directories, figures, curves, &[], None) {
        Ok(output) => Some(output),
        Err(error) => {
            report_error(&error);
            None
        }
    }
}

/// Returns the URL of a file.
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

/// Returns the noise of the machine that a run of a target against itself shows.
fn noise(run: &Run, figures: &Figures) -> String {
    let options =
        CompareOptions { base: run.base.clone(), metrics: Vec::new(), ..CompareOptions::default() };
    let compared = analysis::compare::compare(figures, &options);
    format!("\n{}", report::noise_floor(&compared, style()))
}

/// Returns the exit code for the results of a run. `measured` are the cells of this invocation: if
/// only they are complete, they count, and not what else the run lacks.
fn exit_of(run: &Run, figures: &Figures, measured: Option<&Vec<CellKey>>) -> Exit {
    let is_measured = |cell: &CellKey| measured.is_none_or(|cells| cells.contains(cell));
    let mut rows = figures.rows.iter().filter(|row| is_measured(&row.cell));
    match run.status {
        Status::Interrupted => Exit::Interrupted,
        Status::Incomplete | Status::Failed if measured.is_none() => Exit::Failed,
        // The run's own status is not enough: it may contradict its rows.
        _ if rows.any(|row| !row.valid) => Exit::Invalid,
        _ if find::has_no_answer(run, figures, is_measured) => Exit::Invalid,
        _ => Exit::Ok,
    }
}

/// The cells that this invocation measured or left out.
struct RunProgress<'a> {
    measured: &'a mut Vec<CellKey>,
    failures: &'a mut Failures,
}

/// Measures the cells of the matrix, and then those that its search adds.
fn run_rounds(
    conductor: &mut Conductor<'_>,
    mut matrix: Matrix,
    run: &mut Run,
    only: &[String],
    progress: &mut RunProgress<'_>,
) -> anyhow::Result<Status> {
    let mut has_failed = false;
    loop {
        progress.measured.extend(matrix.tasks.iter().map(|task| task.reference.key.clone()));
        match run_cells(conductor, &mut matrix, progress.failures)? {
            Status::Interrupted => return Ok(Status::Interrupted),
            status => has_failed |= status == Status::Failed,
        }
        let (file, display) = (&mut conductor.file, &conductor.display);
        match find::extend(file, conductor.directory, run, display, only)? {
            Some(more) => matrix = more,
            None if has_failed => return Ok(Status::Failed),
            None => return Ok(Status::Complete),
        }
    }
}

/// Measures each cell, also after a failure, except those that `failures` leaves out. Only a record
/// that cannot be written ends the run.
fn run_cells(
    conductor: &Conductor<'_>,
    matrix: &mut Matrix,
    failures: &mut Failures,
) -> anyhow::Result<Status> {
    let mut cells = live::CellProgress {
        count: matrix.cell_count,
        complete: matrix.complete_count,
        ..live::CellProgress::default()
    };
    let mut next = 0;
    while next < matrix.tasks.len() {
        if conductor.is_stopped() {
            return Ok(Status::Interrupted);
        }
        let index = next;
        next += 1;
        let time_left = matrix.time_left(index);
        let task = &matrix.tasks[index];
        let matrix_progress = MatrixProgress {
            number: task.number,
            count: matrix.cell_count,
            failed: cells.failed,
            time_left,
            since: SystemTime::now(),
        };
        conductor.display.begin_cell(&task.reference, matrix_progress);
        cells.left_s = time_left.as_secs_f64();
        conductor.live.send(|| Event::Cells(cells));
        conductor.live.send(|| Event::Cell(task.reference.key.clone()));
        warn_of_low_disk_space(conductor, task);
        let began = SystemTime::now();
        // A library runs in its own process.
        let plan = conductor.plan();
        let engine = plan.builds[plan.targets[task.cell.target].build].engine;
        let is_library = engine.facts().home == EngineHome::Library;
        let run = if is_library { isolated::run } else { cell::run };
        let status = run(conductor, &task.reference, task.cell)?;
        conductor.directory.end_cell(&task.reference)?;
        match status {
            Status::Complete => {
                let (cell, estimate) = (task.cell, task.estimate.time);
                let took = began.elapsed().unwrap_or_default();
                matrix.pace.observe(cell, took, estimate);
                cells.complete += 1;
            }
            Status::Interrupted => return Ok(Status::Interrupted),
            Status::Failed | Status::Incomplete => {
                cells.failed += 1;
                let directory = conductor.directory.cell(&task.reference)?;
                failures.tell(&conductor.display, &directory)?;
                failures.leave_out(&conductor.display, &directory, matrix, index)?;
            }
        }
    }
    cells.left_s = 0.0;
    conductor.live.send(|| Event::Cells(cells));
    Ok(if cells.failed > 0 { Status::Failed } else { Status::Complete })
}

/// Warns if the disk may be too small. The run continues: a full disk fails only the cell.
fn warn_of_low_disk_space(conductor: &Conductor<'_>, task: &matrix::Task) {
    let needed = task.estimate.disk_bytes;
    if let Some(free) = display::free_bytes(&conductor.data_root)
        && free < needed
    {
        conductor.display.warn(&format!(
            "warning[host::little-disk]: this cell needs about {:.1} GB, but `{}` has only {:.1} GB free",
            needed as f64 / 1e9,
            conductor.data_root.display(),
            free as f64 / 1e9
        ));
    }
}

/// Returns the record of a run that has not begun.
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
        workloads: steps_of_variants(plan),
        ..Run::default()
    })
}

/// Returns the steps of each variant of a plan.
fn steps_of_variants(plan: &Plan) -> Vec<WorkloadSteps> {
    let variants = plan.variants.iter();
    let steps = variants.map(|variant| WorkloadSteps {
        workload: variant.workload.name().into(),
        variant: variant.name.clone(),
        steps: cell::step_names(&variant.workload),
    });
    steps.collect()
}
