//! Reads runs into [`Figures`].
//!
//! Cells are read first, one after the other, since the plan of a run says which cells there must
//! be, and a cell which steps. Steps are read last, on all processors: their seconds and samples
//! are nearly all of a record.

use std::collections::BTreeMap;

use record::{
    Cell, CellRef, LogEvent, OpRole, RecordError, Run, RunDir, Status, StepKind, StepReader,
    StepState, StepWork,
};

use super::computing::CellOfRun;
use super::loaded_cell::{LoadedCell, in_round_order};
use super::log_events;
use super::looks::Looks;
use super::machines::Machines;
use super::row::{
    CopiedDatabase, ExactStep, Figures, ProfiledStep, Row, StartedCell, UnfinishedCell,
};
use super::series::Series;
use super::step_swing::step_swing;
use crate::parallel::try_map_parallel;
use crate::settings::RunSettings;
use words::CellKind;

/// The cause of a cell that was left out.
const LEFT_OUT: &str =
    "it was left out, because an earlier cell of the same target failed before completing a step";

/// Returns all figures of some runs, in the order of their plans.
///
/// # Errors
/// A record cannot be read. A record that contradicts itself gives an invalid row instead.
pub fn figures(runs: &[RunDir]) -> Result<Figures, RecordError> {
    let (figures, _) = figures_and(runs, |_| ())?;
    Ok(figures)
}

/// Like [`figures`], but also calls `take` on each row, and returns the results in the order of the
/// rows. Several threads call it once per row, while all seconds of the row are in memory. A
/// hundred long steps take gigabytes, so `take` should drop what it does not need of `Row::series`.
///
/// # Errors
/// See [`figures`].
pub fn figures_and<T: Send>(
    runs: &[RunDir],
    take: impl Fn(&mut Row) -> T + Sync,
) -> Result<(Figures, Vec<T>), RecordError> {
    let mut reader = RunsReader::default();
    for (run, directory) in runs.iter().enumerate() {
        reader.read_run(run, directory)?;
    }

    reader.read_steps_apart()?;
    let taken = reader.compute_rows(take)?;
    Ok((reader.into_figures(), taken))
}

/// Hands over the figures of each planned step with its record, one after the other, so that they
/// need not be in memory at once. A step that is missing or damaged has no record.
///
/// # Errors
/// See [`figures`]; errors of `take` are returned.
pub fn for_each_row<E: From<RecordError>>(
    runs: &[RunDir],
    mut take: impl FnMut(&StepReader, Row) -> Result<(), E>,
) -> Result<(), E> {
    for (run, directory) in runs.iter().enumerate() {
        let record = directory.read_run()?;
        for reference in in_round_order(&record) {
            if !reference.key.kind.is_measured() {
                continue;
            }
            let loaded = LoadedCell::read(directory, &record, reference)?;
            let cell = CellOfRun { run, record: &record, cell: &loaded.cell };

            let mut steps = loaded.steps;
            for step in loaded.missing {
                steps.push(match &loaded.error {
                    Some(error) => step.damaged(error),
                    None => step,
                });
            }
            steps.sort_by_key(StepReader::number);

            for step in steps {
                let row = row_with_events(&cell, loaded.events.as_deref(), &step)?;
                take(&step, row)?;
            }
        }
    }
    Ok(())
}

/// Runs that are being read.
#[derive(Default)]
struct RunsReader {
    figures: Figures,
    machines: Machines,
    runs: Vec<LoadedRun>,
    /// The steps whose figures are not yet computed.
    steps: Vec<OpenStep>,
    /// The steps of unlimited, profiled and exact cells, which are not yet read.
    steps_apart: Vec<StepApart>,
    /// The end of each planned cell whose times are compared.
    ends: Vec<CellEnd>,
    /// The unfinished cells whose times are not compared.
    unfinished_apart: Vec<UnfinishedCell>,
}

/// A run with its cells.
struct LoadedRun {
    record: Run,
    /// The measured cells that were begun.
    cells: Vec<BegunCell>,
    /// The unlimited, profiled and exact cells.
    cells_apart: Vec<Cell>,
}

struct BegunCell {
    cell: Cell,
    /// See [`LoadedCell::events`].
    events: Option<Vec<LogEvent>>,
}

/// A step without figures.
struct OpenStep {
    /// The index of its run.
    run: usize,
    /// The index of its cell in [`LoadedRun::cells`].
    cell: usize,
    /// The index of its cell in [`RunsReader::ends`].
    end: usize,
    reader: StepReader,
}

/// A step of an unlimited, profiled or exact cell that is not read.
struct StepApart {
    /// The index of its run.
    run: usize,
    /// The index of its cell in [`LoadedRun::cells_apart`].
    cell: usize,
    reader: StepReader,
}

/// The data of a step of an unlimited, profiled or exact cell.
enum ReadApart {
    Unlimited(Box<Row>),
    Profiled(ProfiledStep),
    Exact(ExactStep),
}

struct CellEnd {
    /// The cell as an unfinished one.
    cell: UnfinishedCell,
    is_unfinished: bool,
}

impl RunsReader {
    /// Reads a run and its cells, without the figures of steps that are compared.
    fn read_run(&mut self, run: usize, directory: &RunDir) -> Result<(), RecordError> {
        let record = directory.read_run()?;

        let looks = Looks::of_run(&record);
        self.figures.looks = if run == 0 { looks } else { self.figures.looks.with(looks) };
        let effects = self.figures.effect.into_iter().chain(record.plan.effect());
        self.figures.effect = effects.reduce(f64::min);

        // Targets of several runs have the names of their runs.
        self.figures.design = record.design.clone().filter(|_| run == 0);

        let mut cells = Vec::new();
        let mut cells_apart = Vec::new();
        for reference in in_round_order(&record) {
            let loaded = LoadedCell::read(directory, &record, reference)?;
            match reference.key.kind {
                CellKind::Measured => {
                    self.add_problems(run, &record, &loaded)?;
                    let end = end_of(run, &record, reference, &loaded);
                    cells.extend(self.add_cell(&record, end, cells.len(), loaded));
                }
                CellKind::Unlimited | CellKind::Profiled | CellKind::Exact => {
                    cells_apart.push(self.add_apart(run, cells_apart.len(), loaded));
                }
            }
        }

        self.runs.push(LoadedRun { record, cells, cells_apart });
        Ok(())
    }

    /// Adds what a cell lacks, and what of it cannot be read.
    fn add_problems(
        &mut self,
        run: usize,
        record: &Run,
        loaded: &LoadedCell,
    ) -> Result<(), RecordError> {
        let cell = CellOfRun { run, record, cell: &loaded.cell };
        for step in &loaded.missing {
            self.figures.missing.push(cell.row(step)?);
            if step.is_lost() {
                self.figures.damages.extend(step.step().reasons.iter().cloned());
            }
        }

        let errors = loaded.events_error.iter().chain(&loaded.error);
        self.figures.damages.extend(errors.map(RecordError::with_causes));
        Ok(())
    }

    /// Adds the end of a cell, and its steps if it was begun. Returns the cell if it was.
    /// `number` is its index among the begun cells of its run.
    fn add_cell(
        &mut self,
        record: &Run,
        end: UnfinishedCell,
        number: usize,
        loaded: LoadedCell,
    ) -> Option<BegunCell> {
        let run = end.run;
        let is_unfinished = !loaded.is_begun || !loaded.is_whole();
        self.ends.push(CellEnd { cell: end, is_unfinished });
        if !loaded.is_begun {
            return None;
        }

        let LoadedCell { cell, events, steps, .. } = loaded;
        self.figures.begun.push(StartedCell {
            run,
            cell: cell.key.clone(),
            invocation: cell.invocation,
            machine: self.machines.number(record, cell.invocation),
            started_unix_ns: cell.started_unix_ns,
            database: cell.database.as_ref().map(CopiedDatabase::of),
        });

        let end = self.ends.len() - 1;
        for reader in steps {
            self.steps.push(OpenStep { run, cell: number, end, reader });
        }
        Some(BegunCell { cell, events })
    }

    /// Adds the steps and the end of an unlimited, profiled or exact cell, whose times are not compared, and
    /// returns the cell. `number` is its index among these cells of its run.
    fn add_apart(&mut self, run: usize, number: usize, loaded: LoadedCell) -> Cell {
        self.figures.damages.extend(loaded.error.iter().map(RecordError::with_causes));
        for step in loaded.missing.iter().filter(|step| step.is_lost()) {
            self.figures.damages.extend(step.step().reasons.iter().cloned());
        }

        if !loaded.is_whole() {
            let causes = match (&loaded.error, &loaded.cell.failure) {
                (Some(error), _) => vec![error.with_causes()],
                (None, Some(failure)) => failure.causes.clone(),
                (None, None) => Vec::new(),
            };
            self.unfinished_apart.push(UnfinishedCell {
                run,
                status: loaded.is_begun.then_some(loaded.cell.status),
                causes,
                cell: loaded.cell.key.clone(),
            });
        }

        for reader in loaded.steps {
            self.steps_apart.push(StepApart { run, cell: number, reader });
        }
        loaded.cell
    }

    /// Reads the steps of all unlimited, profiled and exact cells.
    fn read_steps_apart(&mut self) -> Result<(), RecordError> {
        let all_read = try_map_parallel(&self.steps_apart, |step| {
            let loaded = &self.runs[step.run];
            let cell = CellOfRun {
                run: step.run,
                record: &loaded.record,
                cell: &loaded.cells_apart[step.cell],
            };

            match cell.cell.key.kind {
                CellKind::Profiled => profiled_step(&cell, &step.reader).map(ReadApart::Profiled),
                CellKind::Exact => exact_step(&cell, &step.reader).map(ReadApart::Exact),
                CellKind::Unlimited | CellKind::Measured => {
                    let mut row = row_or_damage(&cell, &step.reader)?;
                    row.series = Series::default();
                    Ok(ReadApart::Unlimited(Box::new(row)))
                }
            }
        })?;

        for step in all_read {
            match step {
                ReadApart::Unlimited(row) => {
                    add_damage(&mut self.figures, &row);
                    self.figures.unlimited.push(*row);
                }
                ReadApart::Profiled(step) => {
                    add_damage(&mut self.figures, &step.row);
                    self.figures.profiled.push(step);
                }
                ReadApart::Exact(step) => {
                    add_damage(&mut self.figures, &step.row);
                    self.figures.exact.push(step);
                }
            }
        }
        Ok(())
    }

    /// Computes the rows of all steps, and returns the results of `take`.
    fn compute_rows<T: Send>(
        &mut self,
        take: impl Fn(&mut Row) -> T + Sync,
    ) -> Result<Vec<T>, RecordError> {
        let computed = try_map_parallel(&self.steps, |step| {
            let mut row = self.compute(step)?;
            let taken = take(&mut row);
            Ok((row, taken))
        })?;

        let mut all_taken = Vec::with_capacity(self.steps.len());
        for (step, (row, taken)) in self.steps.iter().zip(computed) {
            if row.damaged {
                self.ends[step.end].is_unfinished = true;
            }
            add_damage(&mut self.figures, &row);
            self.figures.rows.push(row);
            all_taken.push(taken);
        }
        Ok(all_taken)
    }

    fn compute(&self, step: &OpenStep) -> Result<Row, RecordError> {
        let loaded = &self.runs[step.run];
        let BegunCell { cell, events } = &loaded.cells[step.cell];
        let cell = CellOfRun { run: step.run, record: &loaded.record, cell };
        row_with_events(&cell, events.as_deref(), &step.reader)
    }

    /// Returns the figures with what only all rows together tell.
    fn into_figures(self) -> Figures {
        let mut figures = self.figures;
        fill_step_facts(&mut figures);

        for end in self.ends {
            if end.is_unfinished {
                figures.unfinished.push(end.cell);
            }
        }
        figures.unfinished.extend(self.unfinished_apart);

        for (run, LoadedRun { record, cells, .. }) in self.runs.into_iter().enumerate() {
            let cell_records = cells.into_iter().map(|begun| begun.cell).collect();
            figures.settings.extend(RunSettings::new(record, cell_records).all(run));
        }
        figures
    }
}

/// Adds what of a step cannot be read.
fn add_damage(figures: &mut Figures, row: &Row) {
    if row.damaged {
        figures.damages.extend(row.reasons.iter().cloned());
    }
}

/// Returns the end of a cell as that of an unfinished one.
fn end_of(run: usize, record: &Run, reference: &CellRef, loaded: &LoadedCell) -> UnfinishedCell {
    let last = record.invocations.last();
    let is_left_out = last.is_some_and(|last| last.left_out.contains(&reference.key));

    let status = match &loaded.error {
        Some(_) => Some(Status::Incomplete),
        None => loaded.is_begun.then_some(loaded.cell.status),
    };

    let causes = if is_left_out && !loaded.is_begun {
        vec![LEFT_OUT.to_owned()]
    } else if let Some(failure) = &loaded.cell.failure {
        failure.causes.clone()
    } else {
        loaded.error.iter().map(RecordError::with_causes).collect()
    };

    UnfinishedCell { run, cell: reference.key.clone(), status, causes }
}

/// Returns a step of a profiled cell. A step whose profile cannot be read has no figures either.
fn profiled_step(cell: &CellOfRun<'_>, step: &StepReader) -> Result<ProfiledStep, RecordError> {
    let (row, stacks) = match step.profile() {
        Ok(stacks) => (row_or_damage(cell, step)?, stacks),
        Err(error) => (cell.row(&step.damaged(&error))?, None),
    };

    Ok(ProfiledStep {
        profile: step.step().profile.clone().unwrap_or_default(),
        stacks: stacks.filter(|_| !row.damaged).unwrap_or_default(),
        row,
    })
}

/// Returns a step of an exact cell. A step whose functions cannot be read has no work either.
fn exact_step(cell: &CellOfRun<'_>, step: &StepReader) -> Result<ExactStep, RecordError> {
    let (row, graphs) = match step.work() {
        Ok(graphs) => (row_or_damage(cell, step)?, graphs),
        Err(error) => (cell.row(&step.damaged(&error))?, BTreeMap::new()),
    };
    if row.damaged {
        return Ok(ExactStep { row, work: StepWork::default(), graphs: BTreeMap::new() });
    }
    Ok(ExactStep { row, work: step.step().work.clone().unwrap_or_default(), graphs })
}

/// Returns the figures of one step with its part of the engine's log.
fn row_with_events(
    cell: &CellOfRun<'_>,
    events: Option<&[LogEvent]>,
    reader: &StepReader,
) -> Result<Row, RecordError> {
    let mut row = row_or_damage(cell, reader)?;
    if let Some(of_cell) = events {
        let turns = if row.damaged { Vec::new() } else { reader.turns()? };
        row.events = Some(log_events::of_step(reader.step(), &turns, of_cell));
    }
    row.swing = step_swing(cell.cell, reader.step(), &row);
    Ok(row)
}

/// Returns the figures of one step, or an empty row if a file of it is missing or damaged, also one
/// from which no figure comes: what is told of a record must not depend on who reads it.
fn row_or_damage(cell: &CellOfRun<'_>, reader: &StepReader) -> Result<Row, RecordError> {
    let mut row = match reader.verify_files().and_then(|()| cell.row(reader)) {
        Ok(row) => row,
        Err(error) => cell.row(&reader.damaged(&error))?,
    };
    if reader.state() == StepState::Unfinished && is_in_progress(cell.record, cell.cell) {
        row.reasons = vec!["it is in progress".to_owned()];
    }
    Ok(row)
}

/// Returns true if a process measures the cell now.
fn is_in_progress(run: &Run, cell: &Cell) -> bool {
    run.is_running
        && cell.status == Status::Incomplete
        && cell.invocation as usize == run.invocations.len()
}

/// The properties of a step that all cells of a plan share.
#[derive(Clone)]
struct StepFacts {
    kind: StepKind,
    main_op: Option<String>,
    main_role: Option<OpRole>,
    queries_per_event: Option<f64>,
    group: Option<String>,
    reported: bool,
}

impl StepFacts {
    fn of(row: &Row) -> Self {
        Self {
            kind: row.kind,
            main_op: row.main_op.clone(),
            main_role: row.main_operation().map(|main| main.role),
            queries_per_event: row.queries_per_event,
            group: row.group.clone(),
            reported: row.reported,
        }
    }

    fn give_to(self, row: &mut Row) {
        row.kind = self.kind;
        if let (Some(kind), Some(role)) = (&self.main_op, self.main_role) {
            row.roles.insert(kind.clone(), role);
        }
        row.main_op = self.main_op;
        row.queries_per_event = self.queries_per_event;
        row.group = self.group;
        row.reported = self.reported;
    }
}

/// The workload, variant and name of a step.
type StepName = (String, Option<String>, String);

fn step_name(row: &Row) -> StepName {
    (row.workload.clone(), row.cell.variant.clone(), row.step.clone())
}

/// Gives unreadable steps the facts of the same step in another cell.
fn fill_step_facts(figures: &mut Figures) {
    let mut known: BTreeMap<StepName, StepFacts> = BTreeMap::new();
    for row in figures.rows.iter().filter(|row| row.status == Status::Complete) {
        known.insert(step_name(row), StepFacts::of(row));
    }

    for row in figures.rows.iter_mut().chain(&mut figures.missing) {
        if row.status != Status::Incomplete {
            continue;
        }
        if let Some(facts) = known.get(&step_name(row)) {
            facts.clone().give_to(row);
        }
    }
}
