//! `assay export`: writes the results of runs for other tools.

mod latencies;
mod output;
mod profiles;

use std::cell::Cell;
use std::path::Path;

use analysis::compat::{Recorded, refuse_copies};
use analysis::{compare::Effects, distinct, figures::Row};
use inquiry::compare::{self, Answer, CompareRequest};
use inquiry::reading::{SetAsideCounts, unknown_step};
use record::{RecordError, Run, RunDir, StepReader, StepState};
use report::{ComparedRun, Comparison, Form, LatencyTable, ProfileForm, SecondTable};
use runner::failure::{Errors, UsageError};
use runner::matrix::only::CellFilters;

use crate::cli::{ExportArgs, ExportFormat, ExportTable};
use crate::damages::{say_damages, say_help_for_damage};
use crate::exit::{Exit, report_error};
use crate::output::{eprint_line, print, print_note};
use output::{Sink, file_name, is_directory, write_file, write_to};

/// Writes the results of runs in the format that `args` names.
pub fn export(args: &ExportArgs) -> anyhow::Result<Exit> {
    let is_of_tables = matches!(args.format, ExportFormat::Csv | ExportFormat::Parquet);
    if !is_of_tables && (!args.tables.is_empty() || args.partition.is_some()) {
        return Err(UsageError::new(
            "`--table` and `--partition` need `--format csv` or `--format parquet`",
            Some("remove them, or choose one of these formats".into()),
        )
        .into());
    }

    let output = args.output.as_deref();
    // Profiles of all forms are selected and merged in the same way.
    let profile_form = match args.format {
        ExportFormat::Csv => return export_tables(args, Form::Csv),
        ExportFormat::Parquet => return export_tables(args, Form::Parquet),
        ExportFormat::Benchstat => return Selection::new(args)?.write_benchmarks(output),
        ExportFormat::Hdr => return Selection::new(args)?.write_latencies(output),
        ExportFormat::Folded => ProfileForm::Folded,
        ExportFormat::Pprof => ProfileForm::Pprof,
        ExportFormat::Firefox => ProfileForm::Firefox,
    };
    Selection::new(args)?.write_profiles(profile_form, output)
}

/// Writes the tables that `args` names.
fn export_tables(args: &ExportArgs, form: Form) -> anyhow::Result<Exit> {
    if !args.only.is_empty() && args.tables.contains(&ExportTable::Verdicts) {
        return Err(UsageError::new(
            "`--only` can't select rows of the table `verdicts`, whose comparisons need all cells",
            Some("export this table without `--only`".into()),
        )
        .into());
    }

    match &args.partition {
        Some(directory) => write_partitions(args, form, directory),
        None => Selection::new(args)?.write_tables(&args.tables, form, args.output.as_deref()),
    }
}

/// The runs and steps to export.
struct Selection {
    directories: Vec<RunDir>,
    runs: Vec<Run>,
    /// Names of steps; empty: all.
    steps: Vec<String>,
    only: CellFilters,
    /// A step was damaged.
    saw_damage: Cell<bool>,
}

/// The contents of all tables except those of seconds.
struct Figures {
    rows: Vec<Row>,
    /// The comparison of the targets, if a table needs it.
    answers: Option<Vec<Answer>>,
}

/// Returns whether a row is of this engine; without an engine, each row is.
fn is_of_engine(row: &Row, engine: Option<&str>) -> bool {
    engine.is_none_or(|engine| row.engine == engine)
}

impl Selection {
    fn new(args: &ExportArgs) -> anyhow::Result<Self> {
        let opened: Result<Vec<_>, _> = args.runs.iter().map(RunDir::open).collect();
        let directories = opened?;

        // Nobody would notice in a table that a measurement counts twice.
        let recorded = Recorded::read(&directories)?;
        refuse_copies(&recorded).map_err(UsageError::from)?;

        let runs: Vec<Run> = recorded.into_iter().map(|recorded| recorded.run).collect();
        let cells: Vec<_> = runs.iter().flat_map(|run| run.cells.clone()).collect();

        let selection = Self {
            directories,
            runs,
            steps: args.steps.clone(),
            only: CellFilters::new(&args.only, &cells)?,
            saw_damage: Cell::new(false),
        };

        selection.check_steps()?;
        Ok(selection)
    }

    /// Selects all steps of one run.
    fn whole_run(path: &Path) -> Result<Self, RecordError> {
        let directory = RunDir::open(path)?;
        Ok(Self {
            runs: vec![directory.read_run()?],
            directories: vec![directory],
            steps: Vec::new(),
            only: CellFilters::default(),
            saw_damage: Cell::new(false),
        })
    }

    /// Checks that the runs have the selected steps.
    fn check_steps(&self) -> anyhow::Result<()> {
        if self.steps.is_empty() {
            return Ok(());
        }

        let mut known: Vec<String> = Vec::new();
        for (directory, run) in self.directories.iter().zip(&self.runs) {
            for cell in &run.cells {
                let steps = directory.cell(cell)?.read_steps()?;
                let planned = run.workloads.iter().flat_map(|of| &of.steps);
                for name in planned.chain(steps.iter().map(|step| &step.step().name)) {
                    if !known.contains(name) {
                        known.push(name.clone());
                    }
                }
            }
        }

        match self.steps.iter().find(|step| !known.contains(step)) {
            Some(unknown) => {
                let known = known.iter().map(String::as_str).collect();
                Err(unknown_step(unknown, known).into())
            }
            None => Ok(()),
        }
    }

    /// Returns whether a step is selected.
    fn has(&self, row: &Row) -> bool {
        let mut cells = self.runs[row.run].cells.iter();
        (self.steps.is_empty() || self.steps.contains(&row.step))
            && cells.all(|cell| cell.key != row.cell || self.only.matches(cell))
    }

    /// Returns references to the runs.
    fn runs(&self) -> Vec<&Run> {
        self.runs.iter().collect()
    }

    /// Calls `take` with each selected step.
    fn each(
        &self,
        mut take: impl FnMut(&StepReader, Row) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let paths: Vec<&Path> = self.directories.iter().map(RunDir::path).collect();
        let before = SetAsideCounts::of(&paths);

        analysis::figures::for_each_row(&self.directories, |step, row| {
            if row.damaged || step.state() == StepState::Missing {
                before.refuse_changes(&paths)?;
            }

            if row.damaged || step.is_lost() {
                self.saw_damage.set(true);
                eprint_line!("error: {}", report::terminal_text(&row.reasons.join("; ")));
            }

            if self.has(&row) {
                take(step, row)?;
            }

            Ok(())
        })
    }

    /// Returns the exit code of an export that was written.
    fn exit(&self) -> Exit {
        if !self.saw_damage.get() {
            return Exit::Ok;
        }
        say_help_for_damage();
        Exit::Failed
    }

    /// Returns the selected steps without their series of seconds.
    fn rows(&self) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        self.each(|_, mut row| {
            row.series = analysis::figures::Series::default();
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Reads the contents of these tables.
    fn figures(&self, tables: &[ExportTable]) -> anyhow::Result<Figures> {
        let of_rows = [ExportTable::Steps, ExportTable::Metrics];
        let takes_rows = tables.iter().any(|table| of_rows.contains(table));
        let rows = if takes_rows { self.rows()? } else { Vec::new() };

        let mut answers = None;
        if tables.contains(&ExportTable::Verdicts) {
            let recorded = Recorded::read(&self.directories)?;
            let request = CompareRequest { steps: self.steps.clone(), ..CompareRequest::default() };
            answers = Some(compare::answers(&self.directories, &recorded, &request, &print_note)?);
        }

        // `rows` has already reported damage.
        for answer in answers.iter().flatten().filter(|_| !takes_rows) {
            let is_damaged = say_damages(&answer.figures);
            self.saw_damage.set(self.saw_damage.get() || is_damaged);
        }

        Ok(Figures { rows, answers })
    }

    /// Writes a table into a sink: all of it, or only the rows of one engine.
    fn write_table(
        &self,
        (table, form): (ExportTable, Form),
        figures: &Figures,
        engine: Option<&str>,
        sink: Sink,
    ) -> anyhow::Result<Sink> {
        let runs = self.runs();
        let rows = figures.rows.iter().filter(|row| is_of_engine(row, engine));

        match (table, &figures.answers) {
            (ExportTable::Steps, _) => Ok(report::step_table(rows, &runs, form, sink)?),
            (ExportTable::Metrics, _) => Ok(report::metric_table(rows, &runs, form, sink)?),
            (ExportTable::Verdicts, None) => Ok(sink),
            (ExportTable::Verdicts, Some(answers)) => {
                self.write_verdicts(answers, engine, form, sink)
            }
            (ExportTable::Seconds, _) => {
                // Rows of seconds are too many to be kept: each step is written as it is read.
                let mut seconds = SecondTable::new(form, &runs, sink)?;
                self.each(|step, row| {
                    if is_of_engine(&row, engine) {
                        seconds.add(&row, step.step().started_unix_ns)?;
                    }
                    Ok(())
                })?;
                Ok(seconds.finish()?)
            }
            (ExportTable::Latencies, _) => {
                let mut latencies = LatencyTable::new(form, &runs, sink)?;
                self.each(|step, row| {
                    if is_of_engine(&row, engine) {
                        latencies.add(&row, &step.histograms()?)?;
                    }
                    Ok(())
                })?;
                Ok(latencies.finish()?)
            }
        }
    }

    fn write_verdicts(
        &self,
        answers: &[Answer],
        engine: Option<&str>,
        form: Form,
        sink: Sink,
    ) -> anyhow::Result<Sink> {
        // The table has no column for the path of a run.
        let unnamed: Vec<_> =
            self.runs.iter().map(|run| ComparedRun { name: String::new(), run }).collect();
        let effects = Effects::default();
        let comparisons = answers.iter().map(|answer| Comparison {
            run: &answer.shown,
            runs: &unnamed,
            figures: &answer.figures,
            compared: &answer.compared,
            effects: &effects,
            findings: &[],
        });
        let comparisons: Vec<Comparison<'_>> = comparisons.collect();

        Ok(report::verdict_table(&comparisons, engine, form, sink)?)
    }

    fn write_tables(
        &self,
        tables: &[ExportTable],
        form: Form,
        output: Option<&Path>,
    ) -> anyhow::Result<Exit> {
        let tables = match tables {
            [] => &[ExportTable::Steps],
            tables => tables,
        };
        if tables.len() > 1 && !output.is_some_and(is_directory) {
            return Err(UsageError::new(
                "several tables need a directory, since each is written to its own file",
                Some("name a directory: `-o DIR/`".into()),
            )
            .into());
        }

        let figures = self.figures(tables)?;
        for &table in tables {
            let name = file_name(table.name(), form);
            write_to(output, &name, form == Form::Parquet, |sink| {
                self.write_table((table, form), &figures, None, sink)
            })?;
        }

        Ok(self.exit())
    }

    /// Writes the tables of the only run, one file for each table and engine.
    fn write_partition(
        &self,
        tables: &[ExportTable],
        form: Form,
        directory: &Path,
    ) -> anyhow::Result<()> {
        let run = &self.runs[0];
        let mut tables = match tables {
            [] => vec![ExportTable::Steps, ExportTable::Metrics, ExportTable::Verdicts],
            tables => tables.to_owned(),
        };

        // A run without anything to compare still has its other tables.
        if !has_comparison(run) {
            tables.retain(|table| *table != ExportTable::Verdicts);
        }

        let figures = self.figures(&tables)?;
        let engines = distinct(run.targets.iter().map(|target| target.engine.as_str()));
        let file = file_name(&run.id, form);
        for table in tables {
            for engine in &engines {
                let directory = directory
                    .join(format!("table={}", table.name()))
                    // A record may name anything, which must not lead elsewhere.
                    .join(format!("engine={}", engine.replace(['/', '\0'], "_")))
                    .join(format!("date={}", report::day(run.started_unix_ns)));

                fs_err::create_dir_all(&directory)?;
                write_file(&directory.join(&file), |sink| {
                    self.write_table((table, form), &figures, Some(engine), sink)
                })?;
            }
        }

        Ok(())
    }

    fn write_benchmarks(&self, output: Option<&Path>) -> anyhow::Result<Exit> {
        let benchmarks = report::benchmarks(&self.runs(), &self.rows()?);
        for left_out in &benchmarks.left_out {
            eprint_line!("warning: left out: {left_out}");
        }
        if benchmarks.result_count == 0 {
            eprint_line!(
                "error: the runs have no valid result, so nothing was written\n\
                 help: `assay show RUN` says why each step is invalid"
            );
            return Ok(Exit::Invalid);
        }

        write_to(output, "benchmarks.txt", false, |mut sink| {
            sink.write_all(benchmarks.text.as_bytes())?;
            Ok(sink)
        })?;

        Ok(self.exit())
    }
}

/// Writes the tables of each run into a directory that many runs share. Leaves out runs that can't
/// be read, with an error.
fn write_partitions(args: &ExportArgs, form: Form, directory: &Path) -> anyhow::Result<Exit> {
    let mut errors = Vec::new();
    let mut readable: Vec<(&Path, Selection)> = Vec::new();
    for path in &args.runs {
        let selection = match Selection::whole_run(path) {
            Ok(selection) => selection,
            Err(error) => {
                errors.push(left_out(path, error.into()));
                continue;
            }
        };

        // The files of a run are named by its id, so one would overwrite the other.
        let id = &selection.runs[0].id;
        if let Some((first, _)) = readable.iter().find(|(_, known)| known.runs[0].id == *id) {
            let (first, second) = (first.display(), path.display());
            return Err(UsageError::new(
                format!("`{first}` and `{second}` are the same run, `{id}`"),
                Some("give each run once".into()),
            )
            .into());
        }

        readable.push((path, selection));
    }

    let mut exit = Exit::Ok;
    let mut is_written = false;
    for (path, selection) in readable {
        match selection.write_partition(&args.tables, form, directory) {
            Ok(()) => is_written = true,
            Err(error) if error.chain().any(|cause| cause.is::<RecordError>()) => {
                errors.push(left_out(path, error));
            }
            Err(error) => return Err(error),
        }

        exit = exit.max(selection.exit());
    }

    if !is_written {
        Errors::combine(errors)?;
        return Ok(exit);
    }

    for error in &errors {
        report_error(error);
        exit = Exit::Failed;
    }

    print(&format!("{}\n", directory.display()))?;
    Ok(exit)
}

/// Returns the error that a run is left out.
fn left_out(path: &Path, error: anyhow::Error) -> anyhow::Error {
    error.context(format!("run `{}` is left out", path.display()))
}

/// Returns true if a run has a target besides its base.
fn has_comparison(run: &Run) -> bool {
    let mut targets = distinct(run.cells.iter().map(|cell| cell.key.target.as_str()));
    let count = targets.len();
    targets.retain(|target| *target != run.base);
    !targets.is_empty() && targets.len() < count
}
