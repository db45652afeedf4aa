//! Resumes a run: measures its cells that are missing or failed, and those that are added to it.

use std::path::{Path, PathBuf};

use analysis::compat::host_differences;
use record::{CellKey, Invocation, Run, RunDir, Status};

use super::begin::{design_record, needs, refuse_data_root, refuse_load_ranks, target_records};
use super::conduct::{OpenRun, RunEnd, RunOutcome, conduct};
use super::machine::Machine;
use super::recorded_run::{self, LockedRun};
use crate::cells::keep_points::require_databases;
use crate::ground::events::Events;
use crate::ground::failure::UsageError;
use crate::ground::lock::Lock;
use crate::ground::request::{ExactRequest, RepeatsRequest, RunRequest, SIMULATE};
use crate::ground::time::unix_now_ns;
use crate::matrix::growth::Growth;
use crate::matrix::incomplete::IncompleteCells;
use crate::matrix::only::CellFilters;
use crate::matrix::repeats::{self, MoreRepeats, raise_repeats};
use crate::matrix::{self, Matrix, Task};
use crate::prepare::plan_file::{self, PlanFile};
use crate::prepare::{commits, locate, preflight, trust};
use crate::remote::LoadRanks;
use crate::session::RunSession;
use crate::steps::exact;
use words::CellKind;

/// The key of a plan that adds the opposite targets to those of its design.
const FOLD_OVER: &str = "design.fold-over";

/// Measures the cells of a run that are missing or failed.
pub fn resume(
    request: &RunRequest,
    path: &Path,
    events: &dyn Events,
    ranks: Option<LoadRanks>,
) -> anyhow::Result<RunOutcome> {
    let started_unix_ns = unix_now_ns();

    // Cells are added first: a run that was complete may have something to measure again.
    let LockedRun { directory, mut run, lock } = recorded_run::open(path, request.is_trusted)?;

    let more = if request.folds_over {
        Some(fold_over(request, &mut run, events)?)
    } else {
        add_repeats(request, &directory, &mut run, events)?
    };

    let growth = growth(request, &run, more.as_ref())?;
    let only = CellFilters::new(&request.only, &run.cells)?;

    if is_complete(&directory, &run, &growth)? {
        return already_complete(directory, run, lock, events);
    }

    let mut file = plan_of(request, &run, more, events)?;
    if let Growth::UntilDecided(until_decided) = growth {
        file.plan.until_decided = Some(until_decided);
    }

    let matrix = Matrix::resume(&file.plan, &run.cells, &directory, &only)?;
    if matrix.tasks.is_empty() && !growth.goes_on(&directory, &run, &only)? {
        events.say(&nothing_matches(&matrix));
        return Ok(RunOutcome::unchanged(directory, run, RunEnd::NothingMatches, lock));
    }

    // The builds must be those that the run began with.
    let before = run.invocations.last().cloned();
    let data_root = data_root(request, before.as_ref())?;
    let request = &with_databases(request, before.as_ref());
    // A growing run measures cells of its targets later, even if none is missing now.
    let growing = growing_cells(&file, &run, &growth, &only)?;
    let tasks = growing.as_ref().unwrap_or(&matrix.tasks);
    refuse_data_root(request, &file.plan, tasks, &data_root)?;
    if ranks.is_some() {
        refuse_load_ranks(&file.plan, tasks)?;
    }

    let cells_to_run = tasks.iter().map(|task| task.cell);
    let located = locate::locate(&file, cells_to_run, Some(&data_root), None, events)?.builds;
    recorded_run::refuse_other_builds(&run.builds, &located)?;

    let needs = needs(&file.plan, tasks, &data_root, ranks.as_ref());
    let session = RunSession::start(request, events, file, &data_root, path, ranks)?;
    require_databases(&session, &run, tasks.iter().map(|task| task.cell))?;
    let mut machine = Machine::inspect(&session, needs)?;
    let mut invocation = machine.invocation(&session, request, started_unix_ns);
    invocation.host_differences = host_differences(&run.host, &machine.host);

    recorded_run::note_elapsed(&directory, &mut run)?;
    warn_of_changes(&session, &mut machine, &run, before.as_ref(), &invocation);

    add_warnings(&mut run, &machine);
    run.invocations.push(invocation);
    run.status = Status::Incomplete;
    run.ended_unix_ns = None;
    directory.write_run(&run)?;

    conduct(request, session, OpenRun { directory, run, matrix, growth, lock })
}

/// Adds the opposite targets to a run's design, with as many repeats as the others have. Returns the
/// plan with them.
fn fold_over(request: &RunRequest, run: &mut Run, events: &dyn Events) -> anyhow::Result<PlanFile> {
    recorded_run::refuse_redundant_plan(&run.plan, &request.plan)?;
    let Some(design) = &run.design else {
        let message = "the run has no design, so there are no opposite targets (fold-over)";
        let help = "`assay augment` is for plans with `[factors]`";
        return Err(UsageError::new(message, Some(help.into())).into());
    };
    if design.targets.iter().any(|target| target.is_folded) {
        let help = "add repeats with `assay run --resume RUN --repeats N`";
        return Err(UsageError::new(
            "the run already has the opposite targets (fold-over)",
            Some(help.into()),
        )
        .into());
    }

    let file = recorded_run::plan(&run.plan, &request.plan, events)?;
    let mut file = plan_file::with_set_instead(&file, FOLD_OVER, "true")?;
    raise_repeats(&mut file.plan, &run.cells);
    // In a full design, each target has its opposite.
    if file.plan.targets.len() == run.targets.len() {
        let message = "the design already has all opposite targets (fold-over)";
        return Err(UsageError::new(message, None).into());
    }

    let mut new = matrix::references(&file.plan);
    new.retain(|cell| !run.targets.iter().any(|target| target.name == cell.key.target));
    run.cells.extend(new);
    run.plan = file.to_record();
    run.targets = target_records(&file)?;
    run.design = file.plan.designed.as_ref().map(design_record);

    Ok(file)
}

/// Adds the repeats that the request asks for to the cells of a run. Returns the plan with them;
/// `None` if there are none to add.
fn add_repeats(
    request: &RunRequest,
    directory: &RunDir,
    run: &mut Run,
    events: &dyn Events,
) -> anyhow::Result<Option<PlanFile>> {
    recorded_run::refuse_redundant_plan(&run.plan, &request.plan)?;
    if request.repeats.is_none() && !request.is_profiled && request.exact.is_none() {
        return Ok(None);
    }

    let mut file = recorded_run::plan(&run.plan, &request.plan, events)?;
    if request.repeats == Some(RepeatsRequest::UntilDecided) && file.plan.until_decided.is_none() {
        let value = RepeatsRequest::UntilDecided.plan_value();
        file = plan_file::with_set_instead(&file, "repeats", &value)?;
        run.is_open_ended = true;
        run.plan = file.to_record();
    }

    if let Some(exact) = request.exact {
        exact::require_tool()?;
        if let Some(simulated) = with_simulation(&file, run, exact)? {
            file = simulated;
            run.plan = file.to_record();
        }
    }

    let had_pairs = has_pairs(directory, run)?;

    let count = run.cells.len();

    let more = MoreRepeats {
        repeats: match request.repeats {
            Some(RepeatsRequest::Count(repeats)) => repeats,
            Some(RepeatsRequest::UntilDecided) | None => 0,
        },
        is_profiled: request.is_profiled,
        is_exact: request.exact.is_some(),
    };

    repeats::add_repeats(&mut file.plan, &mut run.cells, more, &request.only)?;
    // Whoever adds repeats after a comparison may have chosen to by what it showed.
    let has_more = run.cells[count..].iter().any(|cell| cell.key.kind.is_measured());
    run.is_open_ended |= has_more && had_pairs;

    Ok(Some(file))
}

/// Returns the plan with what the exact cells are to simulate; `None` if they do so anyway. The
/// exact cells of a run are compared with each other, so all of them simulate the same.
fn with_simulation(
    file: &PlanFile,
    run: &Run,
    exact: ExactRequest,
) -> anyhow::Result<Option<PlanFile>> {
    let Some(simulate) = exact.simulate.filter(|given| *given != file.plan.exact.simulate) else {
        return Ok(None);
    };
    if run.cells.iter().any(|cell| cell.key.kind == CellKind::Exact) {
        let recorded = file.plan.exact.simulate.name();
        let message = format!(
            "the run has exact cells that simulate `{recorded}`, so others cannot simulate `{}`",
            simulate.name()
        );
        let help = "begin another run, or leave out the value of `--exact`";
        return Err(UsageError::new(message, Some(help.into())).into());
    }

    let value = exact.simulate_value().unwrap_or_default();
    plan_file::with_set_instead(file, SIMULATE, &value).map(Some)
}

/// Returns whether a target was measured more than once, so that its comparison could be looked at:
/// a single repeat shows nothing from which one could choose whether to continue.
fn has_pairs(directory: &RunDir, run: &Run) -> anyhow::Result<bool> {
    let mut complete: Vec<&CellKey> = Vec::new();
    for cell in run.cells.iter().filter(|cell| cell.key.kind.is_measured()) {
        if matrix::status(directory, cell)? != Some(Status::Complete) {
            continue;
        }
        if complete.iter().any(|known| known.is_repeat_of(&cell.key)) {
            return Ok(true);
        }
        complete.push(&cell.key);
    }

    Ok(false)
}

/// Returns what adds cells to a run. A request for a number of repeats adds no others. `more` is
/// the plan with added repeats.
fn growth(request: &RunRequest, run: &Run, more: Option<&PlanFile>) -> anyhow::Result<Growth> {
    let mut growth = match more {
        Some(file) => Growth::of(&file.plan, run),
        // The plan is needed only if it may add cells.
        None if run.is_open_ended || run.search.is_some() => {
            Growth::of(&plan_file::recorded_quietly(&run.plan)?.plan, run)
        }
        None => Growth::Fixed,
    };

    let has_count = matches!(request.repeats, Some(RepeatsRequest::Count(_)));
    if has_count && matches!(growth, Growth::UntilDecided(_)) {
        growth = Growth::Fixed;
    }

    if let Some(time) = request.time {
        let Growth::UntilDecided(until_decided) = &mut growth else {
            let message = "`--time` is only for runs that add repeats until all is decided";
            let help = "remove it, or add `--repeats until-decided`";
            return Err(UsageError::new(message, Some(help.into())).into());
        };
        until_decided.time = time;
    }

    Ok(growth)
}

/// Returns true if all cells are complete and no more are added.
fn is_complete(directory: &RunDir, run: &Run, growth: &Growth) -> anyhow::Result<bool> {
    let incomplete = IncompleteCells::of(directory, run)?;
    Ok(incomplete == IncompleteCells::default()
        && !growth.goes_on(directory, run, &CellFilters::default())?)
}

/// Returns the recorded plan with all repeats of the run. Refuses what cannot run, and builds that
/// strangers could have changed.
fn plan_of(
    request: &RunRequest,
    run: &Run,
    known: Option<PlanFile>,
    events: &dyn Events,
) -> anyhow::Result<PlanFile> {
    let mut file = match known {
        Some(file) => file,
        None => recorded_run::plan(&run.plan, &request.plan, events)?,
    };

    raise_repeats(&mut file.plan, &run.cells);
    commits::use_recorded(&mut file, &run.builds)?;
    preflight::reject_impossible(&file)?;

    if !request.is_trusted {
        trust::refuse_recorded_plan(&file.plan)?;
    }

    Ok(file)
}

/// Says why nothing is measured although the run is not complete.
fn nothing_matches(matrix: &Matrix) -> String {
    let others = match matrix.cell_count - matrix.complete_count {
        0 => "the run of other targets has not ended".to_owned(),
        1 => "1 other cell is not".to_owned(),
        others => format!("{others} other cells are not"),
    };

    format!("all matching cells are complete; {others}")
}

/// Returns the directory for databases: the given one, or that of the invocation before.
fn data_root(request: &RunRequest, before: Option<&Invocation>) -> anyhow::Result<PathBuf> {
    match (&request.data, before) {
        (Some(given), _) => Ok(given.clone()),
        (None, Some(before)) => Ok(PathBuf::from(&before.data_dir)),
        (None, None) => {
            anyhow::bail!("the record does not name the data directory: add `--data DIR`")
        }
    }
}

/// Returns the request with the directory of kept databases: the given one, or that of the
/// invocation before.
fn with_databases(request: &RunRequest, before: Option<&Invocation>) -> RunRequest {
    let mut request = request.clone();
    if request.reuse.is_none() {
        let recorded = before.and_then(|invocation| invocation.databases_dir.as_ref());
        request.reuse = recorded.map(PathBuf::from);
    }

    request
}

/// Returns the cells whose targets a growing run may measure further; `None` if it does not grow.
fn growing_cells(
    file: &PlanFile,
    run: &Run,
    growth: &Growth,
    only: &CellFilters,
) -> anyhow::Result<Option<Vec<Task>>> {
    let mut tasks = matrix::numbered(&file.plan, &run.cells)?;
    match growth {
        Growth::Fixed => return Ok(None),
        Growth::Search(_) => tasks.retain(|task| only.matches(&task.reference)),
        // Pairs need the base as well.
        Growth::UntilDecided(_) => tasks.retain(|task| {
            only.matches(&task.reference) || run.is_base(&task.reference.key.target)
        }),
    }

    Ok(Some(tasks))
}

/// Warns about another machine or another assay than that of the invocations before.
fn warn_of_changes(
    session: &RunSession<'_>,
    machine: &mut Machine,
    run: &Run,
    before: Option<&Invocation>,
    invocation: &Invocation,
) {
    let number = run.invocations.len() + 1;

    if let Some(what) = recorded_run::other_machine(before, invocation) {
        let text = format!(
            "the machine has changed between the start of the run and invocation {number}: {what}"
        );
        machine.warn(session, "resume::other-machine", text);
    }

    if run.assay != invocation.assay {
        let text = format!(
            "this run was started by assay {} and is resumed by {} in invocation {number}; results may not be comparable",
            run.assay, invocation.assay
        );
        machine.warn(session, "resume::other-assay", text);
    }
}

/// Adds the warnings of this invocation to those of the run. A warning about the machine that
/// differs only in its numbers is not new.
fn add_warnings(run: &mut Run, machine: &Machine) {
    let mut new = machine.warnings.clone();
    new.retain(|warning| {
        let is_known = run.warnings.iter().any(|known| known.code == warning.code);
        warning.code.starts_with("resume::") || !is_known
    });
    run.warnings.extend(new);
}

/// Ends a run of which every cell is complete, even if `run.json` does not say so yet.
fn already_complete(
    directory: RunDir,
    mut run: Run,
    lock: Lock,
    events: &dyn Events,
) -> anyhow::Result<RunOutcome> {
    events.say(&format!(
        "all {} cells of `{}` are complete: nothing to measure",
        run.cells.len(),
        directory.path().display()
    ));
    if run.status == Status::Complete {
        return Ok(RunOutcome::unchanged(directory, run, RunEnd::WasComplete, lock));
    }

    // It was killed between its last cell and its end.
    let mut ended_unix_ns = None;
    for cell in &run.cells {
        ended_unix_ns = ended_unix_ns.max(directory.cell(cell)?.read()?.ended_unix_ns);
    }
    run.status = Status::Complete;
    run.ended_unix_ns = ended_unix_ns;
    directory.write_run(&run)?;
    Ok(RunOutcome::unchanged(directory, run, RunEnd::BecameComplete, lock))
}
