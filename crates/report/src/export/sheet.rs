//! A table for other tools: columns of one type each, whose names have their units, and lines one after another.

use std::borrow::Cow;
use std::io::{self, Write};

use record::{ColumnSpec, ColumnType, Run, TableWriter};

/// What a table is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text with a head and one line per row; what is not applicable is empty.
    Csv,
    /// Columns; what is not applicable is null.
    Parquet,
}

/// A run that is exported.
#[derive(Clone, Debug)]
pub struct ExportedRun {
    /// Its record.
    pub run: Run,
    /// The name of its directory, without where that is.
    pub directory: String,
}

/// What a table is about: Parquet has it as metadata of the file.
#[derive(Clone, Debug)]
pub struct About<'a> {
    /// The runs that it is made of, in their order: column `run` counts them from 1.
    pub runs: &'a [ExportedRun],
    /// The version of assay that writes it.
    pub assay_version: &'a str,
}

impl About<'_> {
    /// Keys and values of the file's metadata. `table` says which table it is.
    pub(super) fn notes(&self, table: &str) -> Vec<(String, String)> {
        let runs: Vec<_> = self
            .runs
            .iter()
            .map(|exported| {
                let run = &exported.run;
                serde_json::json!({
                    "name": run.name,
                    "directory": exported.directory,
                    "base": run.base,
                    "started_unix_ns": run.started_unix_ns,
                    "format": run.format.to_string(),
                    "assay": run.assay,
                })
            })
            .collect();
        vec![
            ("assay.table".into(), table.into()),
            ("assay.version".into(), self.assay_version.into()),
            (
                "assay.runs".into(),
                serde_json::Value::from(runs).to_string(),
            ),
        ]
    }

    /// The name of a run's plan.
    pub(super) fn run_name(&self, run: usize) -> Value {
        let name = self.runs.get(run).map(|exported| &exported.run.name);
        name.map_or(Value::Absent, |name| Value::Text(name.clone()))
    }
}

/// One value of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(u64),
    Number(f64),
    Boolean(bool),
    /// Not applicable, or not known.
    Absent,
}

impl Value {
    /// A text; one that is empty says nothing.
    pub(crate) fn text(text: &str) -> Self {
        if text.is_empty() {
            Self::Absent
        } else {
            Self::Text(text.to_owned())
        }
    }

    /// A number, if it is there and is one.
    pub(crate) fn number(value: Option<f64>) -> Self {
        value
            .filter(|value| value.is_finite())
            .map_or(Self::Absent, Self::Number)
    }

    fn recorded(&self) -> record::Value<'_> {
        match self {
            Self::Text(text) => record::Value::Text(text),
            Self::Integer(value) => {
                record::Value::Integer(i64::try_from(*value).unwrap_or(i64::MAX))
            }
            Self::Number(value) => record::Value::Number(*value),
            Self::Boolean(value) => record::Value::Boolean(*value),
            Self::Absent => record::Value::Absent,
        }
    }

    /// Every digit that a number has: rounding is for people.
    fn written(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Integer(value) => value.to_string().into(),
            Self::Number(value) => value.to_string().into(),
            Self::Boolean(value) => value.to_string().into(),
            Self::Absent => "".into(),
        }
    }
}

/// A column, of which each value may be absent.
pub(crate) fn column(name: impl Into<String>, holds: ColumnType) -> ColumnSpec {
    ColumnSpec::optional(name, holds)
}

/// A table that is being written.
pub(crate) enum Sheet<W: Write> {
    Csv(Box<csv::Writer<W>>),
    Parquet(Box<TableWriter<W>>),
}

impl<W: Write> Sheet<W> {
    /// Begins a table with these columns; a text has no place for the notes.
    pub(crate) fn new(
        form: Form,
        columns: &[ColumnSpec],
        notes: &[(String, String)],
        sink: W,
    ) -> io::Result<Self> {
        match form {
            Form::Csv => {
                let mut writer = csv::Writer::from_writer(sink);
                writer
                    .write_record(columns.iter().map(|column| &column.name))
                    .map_err(csv_error)?;
                Ok(Self::Csv(Box::new(writer)))
            }
            Form::Parquet => {
                let sheet = TableWriter::new(sink, columns, notes)?;
                Ok(Self::Parquet(Box::new(sheet)))
            }
        }
    }

    /// Adds a line: one value for each column, in their order.
    pub(crate) fn push(&mut self, line: &[Value]) -> io::Result<()> {
        match self {
            Self::Csv(writer) => {
                for value in line {
                    let written = value.written();
                    writer.write_field(&*written).map_err(csv_error)?;
                }
                writer.write_record(None::<&str>).map_err(csv_error)
            }
            Self::Parquet(sheet) => sheet.push(line.iter().map(Value::recorded)),
        }
    }

    /// Writes what is left; what it was written into.
    pub(crate) fn finish(self) -> io::Result<W> {
        match self {
            Self::Csv(writer) => writer
                .into_inner()
                .map_err(|error| io::Error::new(error.error().kind(), error.to_string())),
            Self::Parquet(sheet) => sheet.finish(),
        }
    }
}

fn csv_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_is_absent_and_others_have_all_their_digits() {
        assert_eq!(Value::number(Some(f64::NAN)), Value::Absent);
        assert_eq!(Value::number(None).written(), "");
        assert_eq!(
            Value::number(Some(0.1 + 0.2)).written(),
            "0.30000000000000004"
        );
        assert_eq!(Value::Number(12.0).written(), "12");
        assert_eq!(Value::text("").written(), "");
    }

    #[test]
    fn a_reader_that_has_gone_is_told_as_such() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for form in [Form::Csv, Form::Parquet] {
            let columns = [column("a", ColumnType::Integer)];
            let written = Sheet::new(form, &columns, &[], Gone).and_then(|mut sheet| {
                for value in 0..1_000_000 {
                    sheet.push(&[Value::Integer(value)])?;
                }
                sheet.finish()
            });
            let error = written.err().expect("nobody reads it");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{form:?}");
        }
    }
}
