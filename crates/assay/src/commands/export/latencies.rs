//! Latencies of each cell, second by second, as logs of HdrHistogram.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use analysis::figures::Row;
use fs_err::File;
use inquiry::selection::Selection;
use record::{StepReader, StepState};
use report::{HistogramLog, histogram_log_name};
use runner::failure::UsageError;

use super::exit_of;
use super::new_file::NewFile;
use crate::exit::Exit;
use crate::output::{eprint_line, print};

/// Writes a log for each cell.
pub(super) fn write_latencies(
    selection: &Selection,
    output: Option<&Path>,
) -> anyhow::Result<Exit> {
    let Some(directory) = output else {
        return Err(UsageError::new(
            "`--format hdr` needs a directory, since it writes one file per cell",
            Some("name a directory: `-o DIR`".into()),
        )
        .into());
    };

    fs_err::create_dir_all(directory)?;
    let mut logs = Logs { directory, of_several_runs: selection.runs.len() > 1, current: None };
    selection.each(|step, row| logs.add(step, &row))?;
    logs.end()?;

    print(&format!("{}\n", directory.display()))?;
    Ok(exit_of(selection))
}

/// Writes the logs of cells, one after the other. The steps of a cell must be added together.
struct Logs<'a> {
    directory: &'a Path,
    of_several_runs: bool,
    current: Option<OpenLog>,
}

/// A log that is being written.
struct OpenLog {
    /// The name of its file.
    name: String,
    file: NewFile,
    log: HistogramLog<BufWriter<File>>,
}

impl Logs<'_> {
    fn add(&mut self, step: &StepReader, row: &Row) -> anyhow::Result<()> {
        if row.damaged || step.state() != StepState::Finished {
            return Ok(());
        }

        let started = step.step().started_unix_ns;
        let name = histogram_log_name(row, self.of_several_runs);
        // Rows come in the order of their cells, so each log is written at once.
        if self.current.as_ref().is_none_or(|open| open.name != name) {
            self.end()?;
            let file = NewFile::new(&self.directory.join(&name));
            let sink = BufWriter::new(file.create()?);
            let title = name.trim_end_matches(".hlog");
            let log = HistogramLog::new(sink, title, started)?;
            self.current = Some(OpenLog { name, file, log });
        }

        let Some(OpenLog { log, .. }) = &mut self.current else {
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
        if let Some(OpenLog { file, log, .. }) = self.current.take() {
            log.finish().flush()?;
            file.keep()?;
        }
        Ok(())
    }
}
