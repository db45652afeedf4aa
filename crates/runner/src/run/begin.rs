//! Begins a run: reads its plan, refuses what cannot run, and creates its record.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plan::{Plan, Reuse, Workload};
use probe::HostContext;
use record::{CellRef, Failure, GroupBase, RateSearch, RecordError, Run, RunDir, Target};

use super::conduct::{OpenRun, RunOutcome, conduct};
use super::machine::Machine;
use crate::cells::keep_points::require_databases;
use crate::ground::events::Events;
use crate::ground::failure::{UsageError, failure_of};
use crate::ground::request::{DATA, PlanRequest, RunRequest, SIMULATE};
use crate::ground::time::unix_now_ns;
use crate::ground::{host, lock};
use crate::matrix::decided::REPEATS_WITH_VERDICT;
use crate::matrix::growth::Growth;
use crate::matrix::loaders::with_loader;
use crate::matrix::only::CellFilters;
use crate::matrix::pace::about;
use crate::matrix::{self, Matrix, Task, against_itself, find, max_rates};
use crate::prepare::estimate::{self, Estimate};
use crate::prepare::plan_file::{self, PlanFile};
use crate::prepare::{commits, data_place, locate, memory, overridden, preflight};
use crate::remote::LoadRanks;
use crate::session::RunSession;
use crate::steps::exact;

/// Begins a run of a plan and measures its cells.
pub fn begin(
    request: &RunRequest,
    events: &dyn Events,
    ranks: Option<LoadRanks>,
) -> anyhow::Result<RunOutcome> {
    let started_unix_ns = unix_now_ns();
    let PlannedRun { mut file, only, cells } = plan_run(request, events)?;

    let matrix = Matrix::begin(&file.plan, &cells)?;

    // Everything that can be refused is, before anything is created.
    let data_root = data_root(request, &file.plan);
    refuse_data_root(request, &file.plan, &matrix.tasks, &data_root)?;
    refuse_turns(&file.plan, request.search.is_some(), ranks.is_some())?;
    if ranks.is_some() {
        refuse_load_ranks(&file.plan, &matrix.tasks)?;
    }

    let cells_to_run: Vec<plan::Cell> =
        matrix.tasks.iter().flat_map(|task| with_loader(&file.plan, task.cell)).collect();

    // Located after that: a build may be of a commit that is built only here.
    commits::build(&mut file, cells_to_run.iter().copied(), events)?;
    let located =
        locate::locate(&file, cells_to_run.into_iter(), Some(&data_root), None, events)?.builds;

    let needs = needs(&file.plan, &matrix.tasks, &data_root, ranks.as_ref());
    let session = RunSession::start(request, events, file, &data_root, &request.results, ranks)?;
    let mut machine = Machine::inspect(&session, needs)?;
    warn_of_plan(&session, &mut machine, &matrix, &only)?;

    let mut run = describe(request, &session.file, located, cells, started_unix_ns)?;
    run.host = machine.host.clone();
    run.warnings.clone_from(&machine.warnings);
    run.invocations.push(machine.invocation(&session, request, started_unix_ns));

    require_databases(&session, &run, matrix.tasks.iter().map(|task| task.cell))?;

    let directory = RunDir::create(&request.results, &run).map_err(results_dir_error)?;
    let lock = lock::run_directory(directory.path())?;

    let growth = Growth::of(session.plan(), &run);
    conduct(request, session, OpenRun { directory, run, matrix, growth, lock })
}

/// A plan with the cells of it that a run measures.
struct PlannedRun {
    file: PlanFile,
    only: CellFilters,
    cells: Vec<CellRef>,
}

/// Reads the plan of a run, with the changes that the request makes. Refuses what cannot run.
fn plan_run(request: &RunRequest, events: &dyn Events) -> anyhow::Result<PlannedRun> {
    let mut file = plan_file::read(&plan_request(request), events)?;
    if request.is_profiled && file.plan.profile.repeats == 0 {
        file = plan_file::with_sets(&file, vec!["profile.repeats=1".into()])?;
    }

    if let Some(exact) = request.exact {
        let simulate = exact.simulate_value();
        let mut sets = Vec::from_iter(simulate.map(|value| format!("{SIMULATE}={value}")));
        if file.plan.exact.repeats == 0 {
            sets.push(format!("exact.repeats={}", plan::EXACT_REPEATS));
        }
        file = plan_file::with_sets(&file, sets)?;
    }

    if request.reuse.is_some() && file.plan.reuse != Reuse::Always {
        file = plan_file::with_sets(&file, vec!["reuse=true".into()])?;
    }

    if let Some(search) = &request.search {
        file = find::first_plan(&file, search)?;
    }

    // Filters select cells of the plan as it is written, not of the twin that `--aa` adds.
    let planned = matrix::references(&file.plan);
    let only = CellFilters::new(&request.only, &planned)?;
    if request.is_against_itself {
        file = against_itself::plan(&file, &request.plan, &planned, &only)?;
    }

    preflight::reject_impossible(&file)?;
    if file.plan.exact.repeats > 0 {
        exact::require_tool()?;
    }
    // An edit of the plan's files during the run has no effect from here on.
    file.keep_files()?;

    let mut cells = matrix::references(&file.plan);
    if request.is_against_itself {
        cells.retain(|cell| against_itself::matches(&only, &file.plan, cell));
    } else {
        cells.retain(|cell| only.matches(cell));
    }
    if let Some(search) = &request.search {
        find::refuse_without_replicas(&file.plan, search, &cells)?;
    }

    Ok(PlannedRun { file, only, cells })
}

/// Returns the plan of a request, with its repeats and their time if they are given.
fn plan_request(request: &RunRequest) -> PlanRequest {
    let mut plan = request.plan.clone();
    if let Some(repeats) = request.repeats {
        plan.sets.push(format!("repeats={}", repeats.plan_value()));
    }

    if let Some(time) = request.time {
        plan.sets.push(format!("time={}ms", time.as_millis()));
    }

    plan
}

/// Returns the directory for databases: as the request or the plan says, or else in the results.
fn data_root(request: &RunRequest, plan: &Plan) -> PathBuf {
    match (&request.data, &plan.data_dir) {
        (Some(given), _) => given.clone(),
        (None, Some(planned)) => PathBuf::from(planned),
        (None, None) => request.results.join(DATA),
    }
}

/// Refuses a directory in which a run cannot make its databases, and one whose disk is far too small
/// for them, unless the request insists.
pub fn refuse_data_root(
    request: &RunRequest,
    plan: &Plan,
    tasks: &[Task],
    data_root: &Path,
) -> Result<(), UsageError> {
    data_place::refuse_unusable(data_root, data_place::help_of_place(request, data_root))?;
    if request.ignores_space {
        return Ok(());
    }
    data_place::refuse_little_space(data_root, estimate_of(plan, tasks).loaded_bytes)
}

/// Returns what some cells need together.
fn estimate_of(plan: &Plan, tasks: &[Task]) -> Estimate {
    estimate::of_cells(plan, tasks.iter().map(|task| &task.cell), None)
}

/// Warns if the fewest repeats with a verdict are not expected to end in time. The matrix has the
/// first repeat.
fn warn_of_little_time(session: &RunSession<'_>, matrix: &Matrix, time: Duration) {
    let needed = REPEATS_WITH_VERDICT * matrix.time_left(0);

    if needed > time {
        let text = format!(
            "the time, {}, may be too short: verdicts need at least {REPEATS_WITH_VERDICT} repeats, which take {}",
            about(time),
            about(needed)
        );
        session.events.warn(None, &text);
    }
}

/// Warns about targets and times that allow no verdict, and about caches that are too large for
/// this machine.
fn warn_of_plan(
    session: &RunSession<'_>,
    machine: &mut Machine,
    matrix: &Matrix,
    only: &CellFilters,
) -> anyhow::Result<()> {
    for text in preflight::not_applicable(session.plan(), |cell| only.matches(cell)) {
        machine.warn(session, "target::not-applicable", text);
    }

    if let Some(until_decided) = session.plan().until_decided {
        warn_of_little_time(session, matrix, until_decided.time);
    }

    let targets = || matrix.tasks.iter().map(|task| task.cell.target);
    for text in overridden::overridden_options(&session.file, targets())? {
        machine.warn(session, overridden::OVERRIDDEN_CODE, text);
    }

    let host_memory =
        memory::HostMemory { bytes: machine.host.memory_total_bytes, of: "this host" };
    for text in memory::oversized_caches(&session.file, targets(), host_memory)? {
        machine.warn(session, memory::CACHE_CODE, text);
    }

    Ok(())
}

/// Returns the error for a results directory that cannot be created: a usage error, unless the disk
/// is full.
fn results_dir_error(error: RecordError) -> anyhow::Error {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};

    let is_full = match &error {
        RecordError::Io { source, .. } => matches!(source.kind(), QuotaExceeded | StorageFull),
        _ => false,
    };
    if is_full {
        return error.into();
    }

    let Failure { causes, help, .. } = failure_of(&error.into());
    UsageError::new(causes.join(": "), help).into()
}

/// Refuses load ranks where each cell cannot make its own database; for engines that run inside of
/// assay, because the ranks would idle; and for steps whose clients have to agree on the numbers of
/// rows, because ranks share nothing.
pub fn refuse_load_ranks(plan: &Plan, tasks: &[Task]) -> Result<(), UsageError> {
    if plan.from.is_some() || !plan.keep_after.is_empty() {
        let message = "with load ranks, each cell makes its own database: `from` and `keep-after` are not possible";
        let help = "start assay without `mpirun`, or remove these keys";
        return Err(UsageError::new(message, Some(help.into())));
    }
    refuse_shared_numbers(plan, tasks)?;

    let is_inside = |target: &&plan::Target| {
        let facts = plan.builds[target.build].engine.facts();
        !facts.is_server() && facts.stores_data
    };

    let mut targets = tasks.iter().map(|task| &plan.targets[task.cell.target]);
    let Some(target) = targets.find(is_inside) else {
        return Ok(());
    };

    let engine = plan.builds[target.build].engine.name();
    let message = format!(
        "`{}` cannot have load ranks: `{engine}` runs inside assay's own process",
        target.name
    );
    let help = "start assay without `mpirun`, or leave the target out with `--only`";
    Err(UsageError::new(message, Some(help.into())))
}

fn refuse_shared_numbers(plan: &Plan, tasks: &[Task]) -> Result<(), UsageError> {
    for task in tasks {
        let Workload::Transactions(transactions) = &plan.variants[task.cell.variant].workload
        else {
            continue;
        };
        if let Some(step) = transactions.step_with_shared_numbers() {
            let message = format!(
                "step `{step}` cannot have load ranks: all its clients take the numbers of rows from one place"
            );
            let help = "start assay without `mpirun`, or remove the step";
            return Err(UsageError::new(message, Some(help.into())));
        }
    }
    Ok(())
}

/// Refuses turns where the targets don't run the same cells, or other processes make the load.
fn refuse_turns(plan: &Plan, is_search: bool, has_ranks: bool) -> Result<(), UsageError> {
    if plan.turns.is_none() || !(is_search || has_ranks) {
        return Ok(());
    }

    let why = if is_search {
        "a search measures each target at rates of its own"
    } else {
        "load ranks cannot wait for their turn yet"
    };

    let message = format!("the targets cannot take turns: {why}");
    Err(UsageError::new(message, Some("remove `turns` from the plan".into())))
}

/// Returns what these cells need from the machine.
pub fn needs<'a>(
    plan: &Plan,
    tasks: &[Task],
    data_dir: &'a Path,
    ranks: Option<&LoadRanks>,
) -> HostContext<'a> {
    // A host on which no server runs cannot be short of its memory or connections.
    let shares_host = ranks.is_none_or(LoadRanks::has_server_host);
    let estimate = estimate_of(plan, tasks);

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

/// Returns the record of a run that has not begun.
fn describe(
    request: &RunRequest,
    file: &PlanFile,
    builds: Vec<record::Build>,
    cells: Vec<CellRef>,
    started_unix_ns: u64,
) -> anyhow::Result<Run> {
    let plan = &file.plan;
    Ok(Run {
        id: host::random_id()?,
        assay: request.assay.clone(),
        name: plan.name.clone(),
        started_unix_ns,
        command: request.command.clone(),
        plan: file.to_record(),
        seed: plan.seed,
        builds,
        targets: target_records(file)?,
        base: plan.targets[plan.base].name.clone(),
        bases: bases(plan),
        design: plan.designed.as_ref().map(design_record),
        cells,
        workloads: matrix::steps_of_variants(plan),
        is_open_ended: plan.until_decided.is_some(),
        is_time_up: false,
        max_rates: max_rates::given(file),
        search: request.search.clone().map(|search| RateSearch { repeats: plan.repeats, ..search }),
        ..Run::default()
    })
}

/// Returns the bases of engines and builds.
fn bases(plan: &Plan) -> Vec<GroupBase> {
    let bases = plan.bases.iter().map(|base| GroupBase {
        group: base.group.clone(),
        target: plan.targets[base.target].name.clone(),
    });
    bases.collect()
}

/// Returns the records of a plan's targets.
pub fn target_records(file: &PlanFile) -> anyhow::Result<Vec<Target>> {
    let plan = &file.plan;
    let mut targets = Vec::new();
    for target in &plan.targets {
        let build = &plan.builds[target.build];
        let config = &plan.configs[target.config];
        targets.push(Target {
            name: target.name.clone(),
            build: build.name.clone(),
            config: config.name.clone(),
            engine: build.engine.name().into(),
            set: config.declared(),
            declared: file.declared(config)?,
            factors: [build.factors.as_slice(), &config.factors].concat(),
            files: config.files.clone(),
        });
    }

    Ok(targets)
}

/// Returns the record of a design.
pub fn design_record(designed: &plan::Designed) -> record::Design {
    let factors = designed.factors.iter().map(|factor| record::DesignFactor {
        name: factor.name.clone(),
        levels: factor.levels.clone(),
    });

    let targets = designed.targets.iter().map(|target| record::DesignedTarget {
        target: target.target.clone(),
        levels: target.levels.clone(),
        is_folded: target.is_folded,
    });

    record::Design {
        kind: designed.kind.name().to_owned(),
        factors: factors.collect(),
        targets: targets.collect(),
    }
}
