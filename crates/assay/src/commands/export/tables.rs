//! Tables of the selected steps, and their verdicts.

use std::path::Path;

use analysis::compat::Recorded;
use analysis::{compare::Effects, figures::Row};
use inquiry::compare::{self, Answer, CompareRequest};
use report::{ComparedRun, Comparison, Form, LatencyTable, SecondTable};
use runner::failure::UsageError;

use super::output::{Sink, file_name, is_directory, write_to};
use super::selection::Selection;
use crate::cli::ExportTable;
use crate::damages::say_damages;
use crate::exit::Exit;
use crate::output::print_note;

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

impl Selection {
    /// Reads the contents of these tables.
    pub(super) fn figures(&self, tables: &[ExportTable]) -> anyhow::Result<Figures> {
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
    pub(super) fn write_table(
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

    /// Writes whole tables of all runs: one to a file or stdout, several to a directory.
    pub(super) fn write_tables(
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
}
