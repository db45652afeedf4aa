//! Tables of the selected steps.

use std::path::Path;

use analysis::figures::Row;
use inquiry::compare::Answer;
use inquiry::selection::Selection;
use record::StepReader;
use report::{Form, LatencyTable, SampleTable, SecondTable};
use runner::failure::UsageError;

use super::exit_of;
use super::output::{Sink, file_name, is_directory, write_to};
use super::verdicts::{read_verdicts, write_verdicts};
use crate::cli::ExportTable;
use crate::exit::Exit;

/// The contents of all tables except those of seconds.
pub(super) struct Figures {
    rows: Vec<Row>,
    /// The comparison of the targets, if a table needs it.
    answers: Option<Vec<Answer>>,
}

/// Returns whether a row is of this engine; without an engine, each row is.
fn is_of_engine(row: &Row, engine: Option<&str>) -> bool {
    engine.is_none_or(|engine| row.engine == engine)
}

/// Reads the contents of these tables.
pub(super) fn read_figures(
    selection: &Selection,
    tables: &[ExportTable],
) -> anyhow::Result<Figures> {
    let of_rows = [ExportTable::Steps, ExportTable::Metrics];
    let takes_rows = tables.iter().any(|table| of_rows.contains(table));
    let rows = if takes_rows { selection.rows()? } else { Vec::new() };

    let mut answers = None;
    if tables.contains(&ExportTable::Verdicts) {
        // `rows` has already reported damage.
        answers = Some(read_verdicts(selection, !takes_rows)?);
    }

    Ok(Figures { rows, answers })
}

/// Writes a table into a sink: all of it, or only the rows of one engine.
pub(super) fn write_table(
    selection: &Selection,
    table: ExportTable,
    form: Form,
    figures: &Figures,
    engine: Option<&str>,
    sink: Sink,
) -> anyhow::Result<Sink> {
    let runs = selection.runs();
    let rows = figures.rows.iter().filter(|row| is_of_engine(row, engine));

    match table {
        ExportTable::Steps => Ok(report::step_table(rows, &runs, form, sink)?),
        ExportTable::Metrics => Ok(report::metric_table(rows, &runs, form, sink)?),
        ExportTable::Verdicts => match &figures.answers {
            Some(answers) => write_verdicts(selection, answers, engine, form, sink),
            // Not reached: `read_figures` reads the answers if this table is wanted.
            None => Ok(sink),
        },
        ExportTable::Seconds => {
            let mut seconds = SecondTable::new(form, &runs, sink)?;
            each_of_engine(selection, engine, |step, row| {
                seconds.add(row, step.step().started_unix_ns)?;
                Ok(())
            })?;
            Ok(seconds.finish()?)
        }
        ExportTable::Samples => {
            let mut samples = SampleTable::new(form, &runs, sink)?;
            each_of_engine(selection, engine, |step, row| {
                samples.add(row, step.step().started_unix_ns, &step.host()?)?;
                Ok(())
            })?;
            Ok(samples.finish()?)
        }
        ExportTable::Latencies => {
            let mut latencies = LatencyTable::new(form, &runs, sink)?;
            each_of_engine(selection, engine, |step, row| {
                latencies.add(row, &step.histograms()?)?;
                Ok(())
            })?;
            Ok(latencies.finish()?)
        }
    }
}

/// Calls `write` with each step of an engine, or of all, as it is read: seconds, samples and latencies
/// are too many to be kept.
///
/// # Errors
/// A record cannot be read, or `write` fails.
fn each_of_engine(
    selection: &Selection,
    engine: Option<&str>,
    mut write: impl FnMut(&StepReader, &Row) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    selection.each(|step, row| {
        if is_of_engine(&row, engine) {
            write(step, &row)?;
        }
        Ok(())
    })
}

/// Writes whole tables of all runs: one to a file or stdout, several to a directory.
pub(super) fn write_tables(
    selection: &Selection,
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

    let figures = read_figures(selection, tables)?;
    for &table in tables {
        let name = file_name(table.name(), form);
        write_to(output, &name, form == Form::Parquet, |sink| {
            write_table(selection, table, form, &figures, None, sink)
        })?;
    }

    Ok(exit_of(selection))
}
