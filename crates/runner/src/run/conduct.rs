//! Measures the cells of a run one after the other, and finishes its record.

use std::time::{Duration, SystemTime};

use load::Clock as _;
use plan::{Plan, Reuse};
use record::{CellKey, Run, RunDir, Status};
use words::size_text;

use super::disk_floor;
use crate::cells::{group, isolated, life};
use crate::ground::events::{MatrixProgress, NameLengths};
use crate::ground::failure::AndCleanUp as _;
use crate::ground::host::free_bytes;
use crate::ground::lock::Lock;
use crate::ground::request::RunRequest;
use crate::ground::time::unix_now_ns;
use crate::matrix::failures::Failures;
use crate::matrix::growth::{GrowingRun, Growth};
use crate::matrix::incomplete::IncompleteCells;
use crate::matrix::{Matrix, Task, max_rates, steps_of_variants};
use crate::prepare::estimate;
use crate::session::RunSession;

/// A run whose record is open, with the cells to measure.
pub(crate) struct OpenRun {
    pub(crate) directory: RunDir,
    pub(crate) run: Run,
    pub(crate) matrix: Matrix,
    /// The source of further cells.
    pub(crate) growth: Growth,
    /// Keeps other processes out of the run's directory.
    pub(crate) lock: Lock,
}

/// The end of a run. The run's directory stays locked until this is dropped, so that a report can
/// be written into it.
pub struct RunOutcome {
    /// The run's directory.
    pub directory: RunDir,
    /// The run as it is recorded.
    pub run: Run,
    /// The way in which the run ended.
    pub end: RunEnd,
    _locks: Vec<Lock>,
}

/// The way in which a run ended.
pub enum RunEnd {
    /// Cells were measured.
    Measured(MeasuredCells),
    /// All cells were complete.
    WasComplete,
    /// All cells were complete, but the record did not say so yet.
    BecameComplete,
    /// All cells that the filters select were complete.
    NothingMatches,
}

/// The cells of an invocation.
pub struct MeasuredCells {
    /// The cells that this invocation measured or left out.
    pub cells: Vec<CellKey>,
    /// These cells are complete, but other cells of the run are not.
    pub is_part: bool,
    /// The plan compares one target with itself.
    pub is_against_itself: bool,
    /// Says which cells of the run are not complete, if any.
    pub incomplete: Option<String>,
}

impl RunOutcome {
    /// Returns the outcome of a run in which nothing was measured.
    pub(crate) fn unchanged(directory: RunDir, run: Run, end: RunEnd, lock: Lock) -> Self {
        Self { directory, run, end, _locks: vec![lock] }
    }
}

/// Measures the cells of the matrix and finishes the record.
pub(crate) fn conduct(
    request: &RunRequest,
    mut session: RunSession<'_>,
    open: OpenRun,
) -> anyhow::Result<RunOutcome> {
    let OpenRun { directory, mut run, matrix, growth, lock } = open;
    let events = session.events;
    session.invocation = run.invocations.len() as u32;

    events.say(&matrix.summary(session.plan()));
    let began_ns = session.clock.now();
    events.run_begins(&run, &directory, &session.clock)?;

    // A search decides by itself when to stop.
    let failures = Failures::new(request.keeps_going || run.search.is_some());
    let mut rounds = Rounds { growth, began_ns, measured: Vec::new(), failures };
    let result = rounds.run(&mut session, &directory, &mut run, matrix, &request.only);

    // The other ranks end here, before the record does.
    drop(session.ranks.take());

    let status = *result.as_ref().unwrap_or(&Status::Failed);
    let incomplete = IncompleteCells::of(&directory, &run);

    let elapsed_ns = session.clock.now().saturating_sub(began_ns);
    end_record(&mut run, status, &incomplete, rounds.failures, elapsed_ns);
    let written = directory.write_run(&run);
    events.run_ends();

    // The record tells which cells are missing only if the run ended well: say it here otherwise.
    if let (Err(_), Ok(incomplete)) = (&result, &incomplete)
        && let Some(text) = incomplete.text(&directory, &run)
    {
        events.say(&text);
    }

    // A record that cannot be written ended the run: that is reported, not that its end cannot be
    // recorded either.
    let incomplete = result.and(incomplete).and_clean_up(written.map_err(Into::into))?;

    let measured = MeasuredCells {
        is_part: status == Status::Complete && run.status != Status::Complete,
        cells: rounds.measured,
        is_against_itself: session.plan().against_itself,
        incomplete: incomplete.text(&directory, &run),
    };

    let locks = std::iter::once(lock).chain(session.lock).collect();
    Ok(RunOutcome { directory, run, end: RunEnd::Measured(measured), _locks: locks })
}

/// Records how an invocation ended, and the run with it.
fn end_record(
    run: &mut Run,
    status: Status,
    incomplete: &anyhow::Result<IncompleteCells>,
    failures: Failures,
    elapsed_ns: u64,
) {
    let now = unix_now_ns();
    if let Some(invocation) = run.invocations.last_mut() {
        invocation.status = status;
        invocation.ended_unix_ns = Some(now);
        invocation.left_out = failures.left_out;
        invocation.elapsed_ns = Some(elapsed_ns);
    }

    run.status = match (incomplete, status) {
        (Ok(incomplete), Status::Complete) if incomplete.failed > 0 => Status::Failed,
        (Ok(incomplete), Status::Complete) if incomplete.missing > 0 => Status::Incomplete,
        (Ok(_), status) => status,
        (Err(_), _) => Status::Failed,
    };

    // Cells of an incomplete run may still be measured, so it has not ended.
    run.ended_unix_ns = if run.status == Status::Incomplete { None } else { Some(now) };
}

/// The rounds of an invocation: a growing run adds cells after each, any other run has only one.
struct Rounds {
    growth: Growth,
    /// The time at which the invocation began.
    began_ns: u64,
    /// The cells that were measured or left out.
    measured: Vec<CellKey>,
    failures: Failures,
}

impl Rounds {
    /// Measures the cells of the matrix, and then those that a growing run adds; before and after
    /// them the disk, if the plan says so.
    fn run(
        &mut self,
        session: &mut RunSession<'_>,
        directory: &RunDir,
        run: &mut Run,
        matrix: Matrix,
        only: &[String],
    ) -> anyhow::Result<Status> {
        disk_floor::measure(session, directory, run)?;
        let status = self.run_rounds(session, directory, run, matrix, only)?;
        disk_floor::measure(session, directory, run)?;
        Ok(status)
    }

    /// Measures round after round: first the highest rates, then the cells that waited for them, then
    /// what a growing run adds.
    fn run_rounds(
        &mut self,
        session: &mut RunSession<'_>,
        directory: &RunDir,
        run: &mut Run,
        mut matrix: Matrix,
        only: &[String],
    ) -> anyhow::Result<Status> {
        let mut cells_without_rate = max_rates::take_waiting(session.plan(), &mut matrix);
        let mut has_failed = false;
        loop {
            self.measured.extend(matrix.tasks.iter().map(|task| task.reference.key.clone()));
            match self.run_cells(session, directory, &mut matrix)? {
                Status::Interrupted => return Ok(Status::Interrupted),
                status => has_failed |= status == Status::Failed,
            }

            let elapsed = Duration::from_nanos(session.clock.now().saturating_sub(self.began_ns));
            let growing =
                GrowingRun { file: &mut session.file, directory, run, events: session.events };
            if !cells_without_rate.is_empty() {
                matrix = max_rates::fix(growing, &cells_without_rate)?;
                // Cells whose highest rate no cell measured are left out.
                has_failed |= matrix.tasks.len() < cells_without_rate.len();
                cells_without_rate.clear();
                continue;
            }

            match self.growth.extend(growing, only, elapsed)? {
                Some(more) => matrix = more,
                None if has_failed => return Ok(Status::Failed),
                None => return Ok(Status::Complete),
            }
        }
    }

    /// Measures each cell, also after a failure, except those that are left out. Only a record that
    /// cannot be written ends the run.
    fn run_cells(
        &mut self,
        session: &RunSession<'_>,
        directory: &RunDir,
        matrix: &mut Matrix,
    ) -> anyhow::Result<Status> {
        let mut progress = MatrixProgress {
            number: 0,
            count: matrix.cell_count,
            complete: matrix.complete_count,
            failed: 0,
            time_left: Duration::ZERO,
            since: SystemTime::now(),
            names: name_lengths(session.plan(), &matrix.tasks),
        };

        let mut next = 0;
        while next < matrix.tasks.len() {
            if session.is_stopped() {
                return Ok(Status::Interrupted);
            }

            let group = matrix.group_at(next, session.plan().turns.is_some());
            next = group.end;
            for index in group.clone() {
                tell_begin(session, matrix, index, &mut progress);
            }
            warn_of_low_disk_space(session, &matrix.tasks[group.clone()]);

            let began = SystemTime::now();
            let statuses = match &matrix.tasks[group.clone()] {
                [task] => vec![run_cell(session, directory, task)?],
                tasks => group::run(session, directory, tasks)?,
            };
            // Cells that take turns last as long as the group, in which each works for its share.
            let took = began.elapsed().unwrap_or_default() / group.len() as u32;

            // A failure may leave out tasks after this group, but none of it.
            for (index, status) in group.zip(&statuses) {
                let ended = EndedCell { index, status: *status, took };
                self.end_cell(session, directory, matrix, &ended, &mut progress)?;
            }

            if statuses.contains(&Status::Interrupted) {
                return Ok(Status::Interrupted);
            }

            let is_last_of_repeat = matrix.is_last_of_repeat(next - 1);
            if is_last_of_repeat && session.plan().reuse == Reuse::Repeat {
                session.remove_databases();
            }
        }

        progress.time_left = Duration::ZERO;
        session.events.cells_ended(&progress);
        Ok(if progress.failed > 0 { Status::Failed } else { Status::Complete })
    }

    /// Notes the end of a cell, and what follows from it for the cells after it.
    fn end_cell(
        &mut self,
        session: &RunSession<'_>,
        directory: &RunDir,
        matrix: &mut Matrix,
        ended: &EndedCell,
        progress: &mut MatrixProgress,
    ) -> anyhow::Result<()> {
        let task = &matrix.tasks[ended.index];
        // If the run was interrupted before, the cell is missing, and a resumed run measures it.
        if ended.status == Status::Interrupted && !directory.cell(&task.reference)?.exists() {
            return Ok(());
        }
        directory.end_cell(&task.reference)?;

        match ended.status {
            Status::Complete => {
                let (cell, estimate) = (task.cell, task.estimate.time);
                matrix.pace.observe(cell, ended.took, estimate);
                progress.complete += 1;
            }
            Status::Interrupted => {}
            Status::Failed | Status::Incomplete => {
                progress.failed += 1;
                let cell = directory.cell(&task.reference)?;
                self.failures.tell(session.events, &cell)?;
                self.failures.leave_out(session.events, &cell, matrix, ended.index)?;
            }
        }

        Ok(())
    }
}

/// A cell that was measured, by its index in the matrix.
struct EndedCell {
    index: usize,
    status: Status,
    took: Duration,
}

/// Tells that a cell begins, with the progress so far.
fn tell_begin(
    session: &RunSession<'_>,
    matrix: &Matrix,
    index: usize,
    progress: &mut MatrixProgress,
) {
    let task = &matrix.tasks[index];
    progress.number = task.number;
    progress.time_left = matrix.time_left(index);
    progress.since = SystemTime::now();
    session.events.cell_begins(&task.reference, progress);
}

/// Returns the lengths of the names in some tasks.
fn name_lengths(plan: &Plan, tasks: &[Task]) -> NameLengths {
    let length = |name: &String| name.chars().count();
    let steps = steps_of_variants(plan).into_iter().flat_map(|variant| variant.steps);
    let targets = tasks.iter().map(|task| length(&task.reference.key.target));

    NameLengths {
        step: steps.map(|name| length(&name)).max().unwrap_or(0),
        target: targets.max().unwrap_or(0),
    }
}

/// Measures one cell. A library runs in a process of its own.
fn run_cell(session: &RunSession<'_>, directory: &RunDir, task: &Task) -> anyhow::Result<Status> {
    if isolated::has_own_process(session, task.cell) {
        isolated::run(session, directory, &task.reference, task.cell, None)
    } else {
        life::run(session, directory, &task.reference, task.cell, None)
    }
}

/// Warns if the disk may be too small for cells that are measured at the same time. The run
/// continues: a full disk fails only the cell.
fn warn_of_low_disk_space(session: &RunSession<'_>, tasks: &[Task]) {
    let cells_at_once = tasks.iter().map(|task| &task.cell);
    let needed = estimate::of_cells(session.plan(), cells_at_once, None).disk_bytes;
    let cells = if tasks.len() == 1 { "this cell needs" } else { "these cells need" };

    if let Some(free) = free_bytes(&session.data_root)
        && free < needed
    {
        let text = format!(
            "{cells} about {}, but `{}` has only {} free",
            size_text(needed),
            session.data_root.display(),
            size_text(free)
        );
        session.events.warn(Some("host::little-disk"), &text);
    }
}
