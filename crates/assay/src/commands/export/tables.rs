//! Tables of the selected steps.

use std::path::Path;

use analysis::figures::Row;
use inquiry::compare::Answer;
use inquiry::selection::Selection;
use report::{Form, LatencyTable, SecondTable};
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
    (table, form): (ExportTable, Form),
    figures: &Figures,
    engine: Option<&str>,
    sink: Sink,
) -> anyhow::Result<Sink> {
    let runs = selection.runs();
    let rows = figures.rows.iter().filter(|row| is_of_engine(row, engine));

    match (table, &figures.answers) {
        (ExportTable::Steps, _) => Ok(report::step_table(rows, &runs, form, sink)?),
        (ExportTable::Metrics, _) => Ok(report::metric_table(rows, &runs, form, sink)?),
        (ExportTable::Verdicts, None) => Ok(sink),
        (ExportTable::Verdicts, Some(answers)) => {
            write_verdicts(selection, answers, engine, form, sink)
        }
        (ExportTable::Seconds, _) => {
            // Rows of seconds are too many to be kept: each step is written as it is read.
            let mut seconds = SecondTable::new(form, &runs, sink)?;
            selection.each(|step, row| {
                if is_of_engine(&row, engine) {
                    seconds.add(&row, step.step().started_unix_ns)?;
                }
                Ok(())
            })?;
            Ok(seconds.finish()?)
        }
        (ExportTable::Latencies, _) => {
            let mut latencies = LatencyTable::new(form, &runs, sink)?;
            selection.each(|step, row| {
                if is_of_engine(&row, engine) {
                    latencies.add(&row, &step.histograms()?)?;
                }
                Ok(())
            })?;
            Ok(latencies.finish()?)
        }
    }
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
            write_table(selection, (table, form), &figures, None, sink)
        })?;
    }

    Ok(exit_of(selection))
}
