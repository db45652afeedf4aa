//! `assay export`: writes the results of runs for other tools.

use std::cell::Cell;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use analysis::compat::{Recorded, refuse_copies};
use analysis::distinct;
use analysis::figures::{ProfiledStep, Row};
use fs_err::File;
use record::{RecordError, Run, RunDir, StepReader, StepState};
use report::{ComparedRun, Comparison, Form, HistogramLog, ProfileForm, SecondTable};

use super::compare::{self, Answer};
use crate::cli::{CompareArgs, ExportArgs, ExportFormat, ExportTable};
use crate::only::CellFilters;
use crate::outcome::{Errors, Exit, UsageError, report_error};
use crate::output::{eprint_line, print};
use crate::runs::{
    self, SetAsideCounts, exit_of_reading, say_damages, say_help_for_damage, unknown_step,
};

type Sink = Box<dyn Write + Send>;

/// Writes the results of runs in the format that `args` names.
pub fn export(args: &ExportArgs) -> anyhow::Result<Exit> {
    let output = args.output.as_deref();
    let write_profiles = |form| Selection::new(args)?.write_profiles(form, output);
    let form = match args.format {
        ExportFormat::Csv => Form::Csv,
        ExportFormat::Parquet => Form::Parquet,
        _ if !args.tables.is_empty() || args.partition.is_some() => {
            return Err(UsageError::new(
                "`--table` and `--partition` need `--format csv` or `--format parquet`",
                Some("remove them, or choose one of these formats".into()),
            )
            .into());
        }
        ExportFormat::Benchstat => return Selection::new(args)?.write_benchmarks(output),
        ExportFormat::Hdr => return Selection::new(args)?.write_latencies(output),
        ExportFormat::Folded => return write_profiles(ProfileForm::Folded),
        ExportFormat::Pprof => return write_profiles(ProfileForm::Pprof),
        ExportFormat::Firefox => return write_profiles(ProfileForm::Firefox),
    };
    if !args.only.is_empty() && args.tables.contains(&ExportTable::Verdicts) {
        return Err(UsageError::new(
            "`--only` can't select rows of the table `verdicts`, whose comparisons need all cells",
            Some("export this table without `--only`".into()),
        )
        .into());
    }
    match &args.partition {
        Some(directory) => write_partitions(args, form, directory),
        None => Selection::new(args)?.write_tables(&args.tables, form, output),
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
    answer: Option<Answer>,
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
        let compare = || {
            let recorded = Recorded::read(&self.directories)?;
            let paths = self.directories.iter().map(|it| it.path().to_owned());
            let args = CompareArgs::with_defaults(paths.collect(), self.steps.clone());
            compare::answer(&self.directories, &recorded, &args)
        };
        let has_verdicts = tables.contains(&ExportTable::Verdicts);
        let answer = has_verdicts.then(compare).transpose()?;
        // `rows` has already reported damage.
        if let Some(answer) = answer.as_ref().filter(|_| !takes_rows) {
            let is_damaged = say_damages(&answer.figures);
            self.saw_damage.set(self.saw_damage.get() || is_damaged);
        }
        Ok(Figures { rows, answer })
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
        let is_of_engine = |row: &Row| engine.is_none_or(|engine| row.engine == engine);
        let rows = figures.rows.iter().filter(|row| is_of_engine(row));
        match (table, &figures.answer) {
            (ExportTable::Steps, _) => Ok(report::step_table(rows, &runs, form, sink)?),
            (ExportTable::Metrics, _) => Ok(report::metric_table(rows, &runs, form, sink)?),
            (ExportTable::Verdicts, None) => Ok(sink),
            (ExportTable::Verdicts, Some(answer)) => {
                let unnamed = |run| ComparedRun { name: String::new(), run };
                let runs: Vec<_> = self.runs.iter().map(unnamed).collect();
                let comparison = Comparison {
                    run: &answer.shown,
                    runs: &runs,
                    figures: &answer.figures,
                    compared: &answer.compared,
                    findings: &[],
                };
                Ok(report::verdict_table(&comparison, engine, form, sink)?)
            }
            (ExportTable::Seconds, _) => {
                let mut table = SecondTable::new(form, &runs, sink)?;
                self.each(|step, row| {
                    if is_of_engine(&row) {
                        Ok(table.add(&row, step.step().started_unix_ns)?)
                    } else {
                        Ok(())
                    }
                })?;
                Ok(table.finish()?)
            }
        }
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

    /// Writes the profiles of all selected steps into one file.
    fn write_profiles(&self, form: ProfileForm, output: Option<&Path>) -> anyhow::Result<Exit> {
        let (mut figures, _) = runs::figures(&self.directories, |row| {
            row.series = analysis::figures::Series::default();
        })?;
        let exit = exit_of_reading(&figures);
        // As in a comparison, warm-ups only count if they are asked for.
        figures
            .profiled
            .retain(|it| self.has(&it.row) && (it.row.reported || !self.steps.is_empty()));
        if figures.profiled.is_empty() {
            let cells = self.runs.iter().flat_map(|run| &run.cells);
            let profiled = cells.filter(|cell| cell.key.profiled);
            let names = distinct(profiled.map(|cell| format!("`{}`", cell.name())));
            let help = if names.is_empty() {
                "`assay run --resume RUN --profile` adds profiles to a run".into()
            } else {
                format!("profiled cells: {}", names.join(", "))
            };
            return Err(UsageError::new("no profiled step is selected", Some(help)).into());
        }
        for ProfiledStep { row, profile, stacks } in &figures.profiled {
            let why = match &profile.missing {
                _ if !row.valid => format!("invalid: {}", row.reasons.join("; ")),
                Some(why) => why.clone(),
                None if stacks.total() == 0 => "no samples".to_owned(),
                None => continue,
            };
            let (step, cell, why) = (&row.step, &row.cell, report::terminal_text(&why));
            eprint_line!("warning: left out: {step} of {} (p{}): {why}", cell.target, cell.repeat);
        }
        let profiles = analysis::compare::merged_profiles(&figures);
        if profiles.is_empty() {
            eprint_line!("error: no selected step has a profile, so nothing was written");
            return Ok(Exit::Invalid);
        }
        let is_binary = form == ProfileForm::Pprof;
        write_to(output, form.file_name(), is_binary, |sink| Ok(form.write(&profiles, sink)?))?;
        Ok(exit)
    }

    /// Writes a log for each cell.
    fn write_latencies(&self, output: Option<&Path>) -> anyhow::Result<Exit> {
        let Some(directory) = output else {
            return Err(UsageError::new(
                "`--format hdr` needs a directory, since it writes one file per cell",
                Some("name a directory: `-o DIR`".into()),
            )
            .into());
        };
        fs_err::create_dir_all(directory)?;
        let mut logs = Logs { directory, of_several_runs: self.runs.len() > 1, current: None };
        self.each(|step, row| logs.add(step, &row))?;
        logs.end()?;
        print(&format!("{}\n", directory.display()))?;
        Ok(self.exit())
    }
}

/// Writes the tables of each run into a directory that many runs share. Leaves out runs that can't
/// be read, with an error.
fn write_partitions(args: &ExportArgs, form: Form, directory: &Path) -> anyhow::Result<Exit> {
    let left_out = |path: &Path, error: anyhow::Error| {
        error.context(format!("run `{}` is left out", path.display()))
    };
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
        let id = &selection.runs[0].id;
        if let Some((first, _)) = readable.iter().find(|(_, it)| it.runs[0].id == *id) {
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

/// Writes the logs of cells, one after the other. The steps of a cell must be added together.
struct Logs<'a> {
    directory: &'a Path,
    of_several_runs: bool,
    current: Option<(String, NewFile, HistogramLog<BufWriter<File>>)>,
}

impl Logs<'_> {
    fn add(&mut self, step: &StepReader, row: &Row) -> anyhow::Result<()> {
        if row.damaged || step.state() != StepState::Finished {
            return Ok(());
        }
        let started = step.step().started_unix_ns;
        let name = self.name(row);
        if self.current.as_ref().is_none_or(|(open, ..)| *open != name) {
            self.end()?;
            let file = NewFile::new(&self.directory.join(&name));
            let sink = BufWriter::new(file.create()?);
            let title = name.trim_end_matches(".hlog");
            let log = HistogramLog::new(sink, title, started)?;
            self.current = Some((name, file, log));
        }
        let Some((_, _, log)) = &mut self.current else {
            return Ok(());
        };
        if !row.valid {
            log.say_invalid(&row.step, &row.reasons)?;
            let target = &row.cell.target;
            let reasons = row.reasons.join("; ");
            eprint_line!(
                "warning: step `{}` of `{target}` is invalid, and its log lines are tagged so: {reasons}",
                row.step
            );
        }
        let mark = (row.step.as_str(), row.valid);
        step.latencies()?.for_each_line(|line| Ok(log.add(mark, started, &line)?))
    }

    /// Ends the log that is being written.
    fn end(&mut self) -> anyhow::Result<()> {
        if let Some((_, file, log)) = self.current.take() {
            log.finish().flush()?;
            file.keep()?;
        }
        Ok(())
    }

    /// Returns the file name of a cell: `pg17.base-c8-r1.hlog`.
    fn name(&self, row: &Row) -> String {
        let run = format!("run{}-", row.run + 1);
        let variant = row.cell.variant.as_ref().map(|variant| format!("-{variant}"));
        let name = format!(
            "{}{}{}-c{}-r{}.hlog",
            if self.of_several_runs { &run } else { "" },
            row.cell.target,
            variant.unwrap_or_default(),
            row.cell.clients,
            row.cell.repeat
        );
        let in_names = |letter: char| letter.is_alphanumeric() || "._-".contains(letter);
        name.replace(|letter| !in_names(letter), "-")
    }
}

/// A file that gets its name when it is complete. If dropped before, it is removed.
struct NewFile {
    partial: PathBuf,
    path: PathBuf,
    is_kept: bool,
}

impl NewFile {
    fn new(path: &Path) -> Self {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        Self { partial: partial.into(), path: path.to_owned(), is_kept: false }
    }

    /// Creates the file under its temporary name, not through a link that others may have put there.
    fn create(&self) -> io::Result<File> {
        // A process that was killed may have left one.
        match fs_err::remove_file(&self.partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => File::create_new(&self.partial),
        }
    }

    fn keep(mut self) -> io::Result<()> {
        fs_err::rename(&self.partial, &self.path)?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_kept {
            // The error that kept it from being completed was reported.
            let _ = fs_err::remove_file(&self.partial);
        }
    }
}

/// Calls `write` with a file to write, or with stdout if `output` is `None`. In a directory the
/// file is called `name`.
fn write_to(
    output: Option<&Path>,
    name: &str,
    is_binary: bool,
    write: impl FnOnce(Sink) -> anyhow::Result<Sink>,
) -> anyhow::Result<()> {
    let Some(output) = output else {
        if is_binary && io::stdout().is_terminal() {
            return Err(UsageError::new(
                "this is a binary format, which can't be written to a terminal",
                Some("name a file: `-o FILE`".into()),
            )
            .into());
        }
        let written =
            write(Box::new(BufWriter::new(io::stdout()))).and_then(|mut sink| Ok(sink.flush()?));
        return match written {
            // A closed pipe is not an error.
            Err(error) if is_broken_pipe(&error) => Ok(()),
            // Other errors say what failed.
            Err(error) if error.is::<io::Error>() => Err(error.context("cannot write to stdout")),
            written => written,
        };
    };
    let path = if is_directory(output) {
        fs_err::create_dir_all(output)?;
        output.join(name)
    } else {
        output.to_owned()
    };
    // A device or a pipe stays what it is.
    let is_special = path.metadata().is_ok_and(|facts| !facts.is_file());
    if is_special {
        let sink = fs_err::OpenOptions::new().write(true).open(&path)?;
        write(Box::new(BufWriter::new(sink)))?.flush()?;
    } else {
        write_file(&path, write)?;
    }
    print(&format!("{}\n", path.display()))
}

/// Returns whether an output is a directory, or shall be one.
fn is_directory(output: &Path) -> bool {
    output.is_dir() || output.to_string_lossy().ends_with('/')
}

/// Lets `write` write a file, which has its name when all of it is there.
fn write_file(path: &Path, write: impl FnOnce(Sink) -> anyhow::Result<Sink>) -> anyhow::Result<()> {
    let file = NewFile::new(path);
    write(Box::new(BufWriter::new(file.create()?)))?.flush()?;
    Ok(file.keep()?)
}

/// Returns the name of a file that is written in this form.
fn file_name(name: &str, form: Form) -> String {
    let ending = match form {
        Form::Csv => "csv",
        Form::Parquet => "parquet",
    };
    format!("{name}.{ending}")
}

/// Returns true if a run has a target besides its base.
fn has_comparison(run: &Run) -> bool {
    let mut targets = distinct(run.cells.iter().map(|cell| cell.key.target.as_str()));
    let count = targets.len();
    targets.retain(|target| *target != run.base);
    !targets.is_empty() && targets.len() < count
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}
