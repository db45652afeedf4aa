//! A table for other tools: typed columns with units in their names, and lines.

use std::borrow::Cow;
use std::io::{self, Write};

use record::{ColumnSpec, ColumnType, Run, TableWriter};

use crate::model::text::printable;

/// The file format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text with a header line and one line per row; values that are not applicable are empty.
    Csv,
    /// Columns; values that are not applicable are null.
    Parquet,
}

/// The version of all tables. It changes if a column is renamed, removed or changes its meaning,
/// but not for a new column, since columns are read by name.
const SCHEMA_VERSION: &str = "1";

/// Returns the metadata of a file: the table, its version, and its runs.
fn notes(table: &str, runs: &[&Run]) -> Vec<(String, String)> {
    let described = runs.iter().map(|run| {
        serde_json::json!({
            "run_id": run.id,
            "name": run.name,
            "base": run.base,
            "started_unix_ns": run.started_unix_ns,
            "format": run.format.to_string(),
            "assay": run.assay,
        })
    });

    [
        ("table", table.to_owned()),
        ("schema_version", SCHEMA_VERSION.to_owned()),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("runs", serde_json::Value::from_iter(described).to_string()),
    ]
    .map(|(key, value)| (format!("assay.{key}"), value))
    .into()
}

/// A value of a line; `None` if it is not applicable or unknown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SheetValue {
    Text(Option<String>),
    Integer(Option<u64>),
    Number(Option<f64>),
    Boolean(Option<bool>),
    /// Nanoseconds since 1970 UTC.
    Time(Option<u64>),
}

impl SheetValue {
    /// Returns a text; `None` if it is empty.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(Some(text.into()).filter(|text| !text.is_empty()))
    }

    /// Returns a count.
    pub(crate) fn count(count: impl Into<u64>) -> Self {
        Self::Integer(Some(count.into()))
    }

    /// Returns a number; `None` if it is not finite.
    pub(crate) fn number(value: Option<f64>) -> Self {
        Self::Number(value.filter(|value| value.is_finite()))
    }

    /// Returns the value of a count or a number.
    pub(crate) fn as_number(&self) -> Option<f64> {
        match *self {
            Self::Integer(count) => count.map(|count| count as f64),
            Self::Number(number) => number,
            _ => None,
        }
    }

    fn holds(&self) -> ColumnType {
        match self {
            Self::Text(_) => ColumnType::Text,
            Self::Integer(_) => ColumnType::Integer,
            Self::Number(_) => ColumnType::Number,
            Self::Boolean(_) => ColumnType::Boolean,
            Self::Time(_) => ColumnType::Time,
        }
    }

    fn recorded(&self) -> record::Value<'_> {
        let recorded = match self {
            Self::Text(text) => text.as_deref().map(record::Value::Text),
            Self::Integer(value) => value.map(integer),
            Self::Time(ns) => ns.map(|ns| integer(ns / 1000)),
            Self::Number(value) => value.map(record::Value::Number),
            Self::Boolean(value) => value.map(record::Value::Boolean),
        };
        recorded.unwrap_or(record::Value::Absent)
    }

    /// Formats a value with all digits.
    fn written(&self) -> Cow<'_, str> {
        let written = match self {
            Self::Text(text) => return text.as_deref().unwrap_or_default().into(),
            Self::Integer(value) => value.map(|value| value.to_string()),
            Self::Number(value) => value.map(|value| value.to_string()),
            Self::Boolean(value) => value.map(|value| value.to_string()),
            Self::Time(ns) => ns.map(|ns| time(ns).strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()),
        };
        written.unwrap_or_default().into()
    }
}

/// Returns a text that neither a terminal nor a spreadsheet executes. Unprintable characters
/// become U+FFFD, and `'` precedes what would be a formula. Line breaks and tabs are kept.
fn harmless(text: &str) -> String {
    let is_kept = |letter: &char| matches!(letter, '\n' | '\t') || printable(*letter).is_some();
    let shown: String =
        text.chars().map(|letter| if is_kept(&letter) { letter } else { '\u{fffd}' }).collect();

    let begins_formula = shown.trim_start().starts_with(['=', '+', '-', '@']);
    let is_numbers = || shown.split(' ').all(|word| word.parse::<f64>().is_ok());
    if begins_formula && !is_numbers() { format!("'{shown}") } else { shown }
}

fn integer(value: u64) -> record::Value<'static> {
    record::Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Converts nanoseconds since 1970 UTC.
fn time(unix_ns: u64) -> jiff::Timestamp {
    jiff::Timestamp::from_nanosecond(unix_ns.into()).unwrap_or_default()
}

/// Returns the date in UTC: `2026-11-21`.
pub fn day(unix_ns: u64) -> String {
    time(unix_ns).strftime("%Y-%m-%d").to_string()
}

/// A line of a table: each value with the name of its column.
pub(crate) type SheetLine = Vec<(Cow<'static, str>, SheetValue)>;

/// Returns a line, or a part of one, from fixed columns.
pub(crate) fn fixed<const N: usize>(columns: [(&'static str, SheetValue); N]) -> SheetLine {
    columns.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

/// A writer of a table.
pub(crate) enum Sheet<W: Write> {
    Csv(Box<csv::Writer<W>>),
    Parquet(Box<TableWriter<W>>),
}

impl<W: Write> Sheet<W> {
    /// Begins a table with the columns of `like`. CSV cannot store the table's name and runs.
    pub(crate) fn new(
        form: Form,
        table: &str,
        like: &SheetLine,
        runs: &[&Run],
        sink: W,
    ) -> io::Result<Self> {
        let columns: Vec<ColumnSpec> =
            like.iter().map(|(name, value)| ColumnSpec::optional(&**name, value.holds())).collect();
        match form {
            Form::Csv => {
                let mut writer = csv::Writer::from_writer(sink);
                writer
                    .write_record(columns.iter().map(|column| &column.name))
                    .map_err(csv_error)?;
                Ok(Self::Csv(Box::new(writer)))
            }
            Form::Parquet => {
                let sheet = TableWriter::new(sink, &columns, &notes(table, runs))?;
                Ok(Self::Parquet(Box::new(sheet)))
            }
        }
    }

    /// Adds a line.
    pub(crate) fn push(&mut self, line: &SheetLine) -> io::Result<()> {
        match self {
            Self::Csv(writer) => {
                for (_, value) in line {
                    let written = match value {
                        SheetValue::Text(text) => {
                            harmless(text.as_deref().unwrap_or_default()).into()
                        }
                        value => value.written(),
                    };
                    writer.write_field(&*written).map_err(csv_error)?;
                }
                writer.write_record(None::<&str>).map_err(csv_error)
            }
            Self::Parquet(sheet) => sheet.push(line.iter().map(|(_, value)| value.recorded())),
        }
    }

    /// Writes the rest, and returns the sink.
    pub(crate) fn finish(self) -> io::Result<W> {
        match self {
            Self::Csv(writer) => writer
                .into_inner()
                .map_err(|error| io::Error::new(error.error().kind(), error.to_string())),
            Self::Parquet(sheet) => sheet.finish(),
        }
    }
}

/// Returns the text of a table that was written into memory.
pub(crate) fn csv_text(written: io::Result<Vec<u8>>) -> String {
    String::from_utf8(written.expect("memory takes what is written"))
        .expect("only text was written")
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
        assert_eq!(SheetValue::number(Some(f64::NAN)), SheetValue::Number(None));
        assert_eq!(SheetValue::number(None).written(), "");
        assert_eq!(SheetValue::number(Some(0.1 + 0.2)).written(), "0.30000000000000004");
        assert_eq!(SheetValue::number(Some(12.0)).written(), "12");
        assert_eq!(SheetValue::text("").written(), "");
        let time = SheetValue::Time(Some(1_795_287_731_250_000_999));
        assert_eq!(time.written(), "2026-11-21T19:02:11.250000Z");
        assert_eq!(day(1_795_287_731_250_000_999), "2026-11-21");
    }

    #[test]
    fn csv_holds_neither_escapes_nor_formulas_but_all_numbers() {
        let texts = [
            ("=cmd|'/c calc'!A1", "'=cmd|'/c calc'!A1"),
            ("+1+1", "'+1+1"),
            ("-x", "'-x"),
            (" @sum", "' @sum"),
            ("-2.5 1e3", "-2.5 1e3"),
            ("a\u{1b}[31m\r\u{7}\u{9b}\u{202e}b", "a\u{fffd}[31m\u{fffd}\u{fffd}\u{fffd}\u{fffd}b"),
            ("two\nlines", "two\nlines"),
        ];
        for (text, expected) in texts {
            assert_eq!(harmless(text), expected);
        }
        let line = fixed([("a", SheetValue::text("=1+1")), ("b", SheetValue::number(Some(-1.5)))]);
        let mut sheet = Sheet::new(Form::Csv, "", &line, &[], Vec::new()).unwrap();
        sheet.push(&line).unwrap();
        assert_eq!(csv_text(sheet.finish()), "a,b\n'=1+1,-1.5\n");
    }

    #[test]
    fn a_closed_pipe_is_reported_as_such() {
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
            let line = |value: u64| fixed([("a", SheetValue::count(value))]);
            let written = Sheet::new(form, "", &line(0), &[], Gone).and_then(|mut sheet| {
                for value in 0..1_000_000 {
                    sheet.push(&line(value))?;
                }
                sheet.finish()
            });
            let error = written.err().expect("nobody reads it");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{form:?}");
        }
    }
}
