//! `assay export`: what runs came to, for other tools.

use std::cell::Cell;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use analysis::Row;
use analysis::compat::{Recorded, refuse_copies};
use fs_err::File;
use record::{RecordError, RunDir, StepReader, StepState};
use report::{About, ExportedRun, Form, HistogramLog, SecondTable};

use crate::cli::{ExportArgs, ExportFormat};
use crate::outcome::{Exit, UsageError};
use crate::output::{complain, print};
use crate::runs::PutAside;

type Sink = Box<dyn Write + Send>;

/// Writes what is asked for.
pub fn export(args: &ExportArgs) -> anyhow::Result<Exit> {
    let asked = Asked::new(args)?;
    let output = args.output.as_deref();
    match (args.format, args.seconds) {
        (ExportFormat::Csv, false) => asked.write_steps(Form::Csv, output, "steps.csv"),
        (ExportFormat::Csv, true) => asked.write_seconds(Form::Csv, output, "seconds.csv"),
        (ExportFormat::Parquet, false) => asked.write_steps(Form::Parquet, output, "steps.parquet"),
        (ExportFormat::Parquet, true) => {
            asked.write_seconds(Form::Parquet, output, "seconds.parquet")
        }
        (_, true) => Err(UsageError::new(
            "only tables are written second by second",
            Some("leave out `--seconds`, or use `--format csv` or `--format parquet`".into()),
        )
        .into()),
        (ExportFormat::Benchstat, false) => asked.write_benchmarks(output),
        (ExportFormat::Hdr, false) => asked.write_latencies(output),
    }
}

/// The runs, and what of them.
struct Asked {
    directories: Vec<RunDir>,
    runs: Vec<ExportedRun>,
    /// Names of steps; empty: all.
    steps: Vec<String>,
    /// A step was damaged.
    saw_damage: Cell<bool>,
}

impl Asked {
    fn new(args: &ExportArgs) -> anyhow::Result<Self> {
        let directories = args
            .runs
            .iter()
            .map(RunDir::open)
            .collect::<Result<Vec<_>, _>>()?;
        let runs = directories.iter().map(|directory| {
            // Also of `.`: the name says which run it is, where that lies says nothing to others.
            let path = fs_err::canonicalize(directory.path())?;
            let name = path.file_name().unwrap_or_default();
            Ok(ExportedRun {
                run: directory.read_run()?,
                directory: name.to_string_lossy().into_owned(),
            })
        });
        let asked = Self {
            runs: runs.collect::<anyhow::Result<_>>()?,
            directories,
            steps: args.steps.clone(),
            saw_damage: Cell::new(false),
        };
        // In a table a measurement that stands twice would count twice, and nobody sees it.
        let recorded = Recorded::read(&asked.directories)?;
        refuse_copies(&recorded).map_err(UsageError::from)?;
        asked.check_steps()?;
        Ok(asked)
    }

    /// A step that is named is there.
    fn check_steps(&self) -> anyhow::Result<()> {
        if self.steps.is_empty() {
            return Ok(());
        }
        let mut there: Vec<String> = Vec::new();
        for (directory, exported) in self.directories.iter().zip(&self.runs) {
            for cell in &exported.run.cells {
                let steps = directory.cell(cell)?.read_steps()?;
                let planned = exported.run.workloads.iter().flat_map(|of| &of.steps);
                for name in planned.chain(steps.iter().map(|step| &step.step().name)) {
                    if !there.contains(name) {
                        there.push(name.clone());
                    }
                }
            }
        }
        match self.steps.iter().find(|step| !there.contains(step)) {
            Some(unknown) => Err(UsageError::new(
                format!("there is no step `{unknown}`"),
                Some(format!("steps here: {}", there.join(", "))),
            )
            .into()),
            None => Ok(()),
        }
    }

    fn about(&self) -> About<'_> {
        About {
            runs: &self.runs,
            assay_version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// Hands over each step that was asked for, one after the other.
    fn each(
        &self,
        mut take: impl FnMut(&StepReader, Row) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let paths: Vec<&Path> = self.directories.iter().map(RunDir::path).collect();
        let before = PutAside::count(&paths);
        analysis::each_row(&self.directories, |step, row| {
            if row.damaged || step.state() == StepState::Missing {
                before.refuse_more(&paths).map_err(Stop::Taking)?;
            }
            if row.damaged {
                self.saw_damage.set(true);
                complain!("error: {}", report::terminal_text(&row.reasons.join("; ")));
            }
            if self.steps.is_empty() || self.steps.contains(&row.step) {
                take(step, row).map_err(Stop::Taking)
            } else {
                Ok(())
            }
        })
        .map_err(anyhow::Error::from)
    }

    /// How an export ends that was written.
    fn exit(&self) -> Exit {
        match self.saw_damage.get() {
            true => Exit::Failed,
            false => Exit::Ok,
        }
    }

    /// All of them, without what they did second by second.
    fn rows(&self) -> anyhow::Result<Vec<Row>> {
        let mut rows = Vec::new();
        self.each(|_, mut row| {
            row.series = analysis::Series::default();
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    fn write_steps(&self, form: Form, output: Option<&Path>, name: &str) -> anyhow::Result<Exit> {
        let rows = self.rows()?;
        write_to(output, name, form == Form::Parquet, |sink| {
            Ok(report::step_table(&rows, &self.about(), form, sink)?)
        })?;
        Ok(self.exit())
    }

    fn write_seconds(&self, form: Form, output: Option<&Path>, name: &str) -> anyhow::Result<Exit> {
        write_to(output, name, form == Form::Parquet, |sink| {
            let mut table = SecondTable::new(form, self.about(), sink)?;
            self.each(|step, row| Ok(table.add(&row, step.step().started_unix_ns)?))?;
            Ok(table.finish()?)
        })?;
        Ok(self.exit())
    }

    fn write_benchmarks(&self, output: Option<&Path>) -> anyhow::Result<Exit> {
        let benchmarks = report::benchmarks(&self.runs, &self.rows()?);
        for left_out in &benchmarks.left_out {
            complain!("warning: left out, {left_out}");
        }
        if benchmarks.result_count == 0 {
            complain!("error: there is no valid result, and nothing was written");
            return Ok(Exit::Invalid);
        }
        write_to(output, "benchmarks.txt", false, |mut sink| {
            sink.write_all(benchmarks.text.as_bytes())?;
            Ok(sink)
        })?;
        Ok(self.exit())
    }

    /// Writes a log for each cell.
    fn write_latencies(&self, output: Option<&Path>) -> anyhow::Result<Exit> {
        let Some(directory) = output else {
            return Err(UsageError::new(
                "HdrHistogram logs are one file for each cell",
                Some("name a directory for them: `-o DIR`".into()),
            )
            .into());
        };
        fs_err::create_dir_all(directory)?;
        let mut logs = Logs {
            directory,
            of_several_runs: self.runs.len() > 1,
            current: None,
        };
        self.each(|step, row| logs.add(step, &row))?;
        logs.end()?;
        print(&format!("{}\n", directory.display()))?;
        Ok(self.exit())
    }
}

/// Why a walk over steps ended early.
#[derive(Debug)]
enum Stop {
    Reading(RecordError),
    Taking(anyhow::Error),
}

impl From<RecordError> for Stop {
    fn from(error: RecordError) -> Self {
        Self::Reading(error)
    }
}

impl From<Stop> for anyhow::Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Reading(error) => error.into(),
            Stop::Taking(error) => error,
        }
    }
}

/// The logs of cells, of which one is being written. Steps of a cell come one after the other.
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
            let sink = BufWriter::new(File::create(&file.partial)?);
            let title = name.trim_end_matches(".hlog");
            let log = HistogramLog::new(sink, title, started)?;
            self.current = Some((name, file, log));
        }
        let Some((_, _, log)) = &mut self.current else {
            return Ok(());
        };
        if !row.valid {
            log.say_invalid(&row.step, &row.reasons)?;
            let cell = &row.cell.target;
            let reasons = row.reasons.join("; ");
            complain!(
                "warning: `{}` of {cell} is invalid, as its tags say: {reasons}",
                row.step
            );
        }
        step.latencies()?
            .each_line(|line| {
                let added = log.add((&row.step, row.valid), started, &line);
                added.map_err(|error| Stop::Taking(error.into()))
            })
            .map_err(anyhow::Error::from)
    }

    /// Ends the log that is being written.
    fn end(&mut self) -> anyhow::Result<()> {
        if let Some((_, file, log)) = self.current.take() {
            log.finish().flush()?;
            file.keep()?;
        }
        Ok(())
    }

    /// The file of a cell: `pg17.base-c8-r1.hlog`.
    fn name(&self, row: &Row) -> String {
        let run = format!("run{}-", row.run + 1);
        let variant = row
            .cell
            .variant
            .as_ref()
            .map(|variant| format!("-{variant}"));
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

/// A file that has its name when all of it is there. Dropped before, it is removed.
struct NewFile {
    partial: PathBuf,
    path: PathBuf,
    is_kept: bool,
}

impl NewFile {
    fn new(path: &Path) -> Self {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        Self {
            partial: partial.into(),
            path: path.to_owned(),
            is_kept: false,
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
            // Why it is not whole is told already.
            let _ = fs_err::remove_file(&self.partial);
        }
    }
}

/// Lets `write` write a file, or stdout where none is named. A directory gets a file of that name in it.
fn write_to(
    output: Option<&Path>,
    name: &str,
    is_binary: bool,
    write: impl FnOnce(Sink) -> anyhow::Result<Sink>,
) -> anyhow::Result<()> {
    let Some(output) = output else {
        if is_binary && io::stdout().is_terminal() {
            return Err(UsageError::new(
                "Parquet is not for a terminal",
                Some("name a file: `-o FILE`".into()),
            )
            .into());
        }
        let written =
            write(Box::new(BufWriter::new(io::stdout()))).and_then(|mut sink| Ok(sink.flush()?));
        return match written {
            // A reader that has gone is no error.
            Err(error) if is_broken_pipe(&error) => Ok(()),
            // Others say what they are about.
            Err(error) if error.is::<io::Error>() => Err(error.context("stdout can't be written")),
            written => written,
        };
    };
    let ends_as_directory = output.to_string_lossy().ends_with('/');
    let path = if output.is_dir() || ends_as_directory {
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
        let file = NewFile::new(&path);
        write(Box::new(BufWriter::new(File::create(&file.partial)?)))?.flush()?;
        file.keep()?;
    }
    print(&format!("{}\n", path.display()))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
    })
}
