//! Parquet files of plain columns, written and read in batches, so that memory does not grow with
//! their length.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError::{self, EOF, General};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type};

use crate::RecordError;

/// The number of values that are kept in memory before they are written.
const VALUES_PER_GROUP: usize = 1 << 18;
/// The number of rows that are read at once.
const ROWS_PER_BATCH: usize = 4096;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A signed 64-bit integer.
    Integer,
    /// A 64-bit float.
    Number,
    /// True or false.
    Boolean,
    /// UTF-8 text.
    Text,
    /// Microseconds since 1970 UTC, which tools show as date and time.
    Time,
}

/// The definition of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// The name of the column, with its unit.
    pub name: String,
    /// The type of its values.
    pub holds: ColumnType,
    /// Values of the column may be absent.
    pub optional: bool,
}

impl ColumnSpec {
    /// Returns a column with a value in each row.
    pub fn new(name: impl Into<String>, holds: ColumnType) -> Self {
        Self { name: name.into(), holds, optional: false }
    }

    /// Returns a column whose values may be absent.
    pub fn optional(name: impl Into<String>, holds: ColumnType) -> Self {
        Self { optional: true, ..Self::new(name, holds) }
    }
}

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// No value.
    Absent,
    /// A value of a column of integers or times.
    Integer(i64),
    /// A value of a column of numbers.
    Number(f64),
    /// A value of a column of booleans.
    Boolean(bool),
    /// A value of a column of texts.
    Text(&'a str),
}

/// Values of one column.
#[derive(Debug)]
pub(crate) enum Values {
    Integer(Vec<i64>),
    Number(Vec<f64>),
    Boolean(Vec<bool>),
    Text(Vec<ByteArray>),
}

/// Some rows of one column.
#[derive(Debug)]
pub(crate) struct Rows {
    /// The values that are present.
    pub(crate) values: Values,
    /// For each row, whether a value is present (Parquet's definition level); `None` if every row
    /// has one.
    pub(crate) defined: Option<Vec<i16>>,
}

impl Rows {
    fn new(column: &ColumnSpec) -> Self {
        Self {
            values: match column.holds {
                ColumnType::Integer | ColumnType::Time => Values::Integer(Vec::new()),
                ColumnType::Number => Values::Number(Vec::new()),
                ColumnType::Boolean => Values::Boolean(Vec::new()),
                ColumnType::Text => Values::Text(Vec::new()),
            },
            defined: column.optional.then(Vec::new),
        }
    }

    /// Returns the values of a column of integers that may be absent.
    pub(crate) fn into_optional_integers(self) -> Vec<Option<i64>> {
        let (Values::Integer(present), Some(defined)) = (self.values, self.defined) else {
            unreachable!("the column has integers that may be absent")
        };
        let mut present = present.into_iter();
        defined.into_iter().map(|level| if level == 1 { present.next() } else { None }).collect()
    }

    fn push(&mut self, value: Value<'_>) {
        let is_present = !matches!(value, Value::Absent);
        if let Some(defined) = &mut self.defined {
            defined.push(i16::from(is_present));
            if !is_present {
                return;
            }
        }

        match (&mut self.values, value) {
            (Values::Integer(values), Value::Integer(value)) => values.push(value),
            (Values::Number(values), Value::Number(value)) => values.push(value),
            (Values::Boolean(values), Value::Boolean(value)) => values.push(value),
            (Values::Text(values), Value::Text(value)) => {
                // Successive texts are often equal, and then share their bytes.
                let last = values.last().filter(|last| last.data() == value.as_bytes()).cloned();
                values.push(last.unwrap_or_else(|| ByteArray::from(value)));
            }
            (_, value) => unreachable!("a table gave {value:?} to a column of another type"),
        }
    }

    /// Writes the rows, and clears them.
    fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let defined = self.defined.as_deref();
        match &mut self.values {
            Values::Integer(values) => write::<Int64Type>(column, values, defined),
            Values::Number(values) => write::<DoubleType>(column, values, defined),
            Values::Boolean(values) => write::<BoolType>(column, values, defined),
            Values::Text(values) => write::<ByteArrayType>(column, values, defined),
        }?;

        self.defined.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

fn write<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    values: &mut Vec<T::T>,
    defined: Option<&[i16]>,
) -> Result<(), ParquetError> {
    column.typed::<T>().write_batch(values, defined, None)?;
    values.clear();
    Ok(())
}

/// Writes a table row by row. Parquet's own writer only fills a buffer, so that errors of the sink
/// keep their type.
pub struct TableWriter<W> {
    sink: W,
    encoder: SerializedFileWriter<Vec<u8>>,
    columns: Vec<Rows>,
    rows: usize,
    rows_per_group: usize,
}

impl<W: Write> TableWriter<W> {
    /// Starts a table; the notes become metadata of the file.
    ///
    /// # Errors
    /// Parquet cannot have such a table.
    pub fn new(sink: W, columns: &[ColumnSpec], notes: &[(String, String)]) -> io::Result<Self> {
        Ok(Self {
            sink,
            encoder: encoder(columns, notes).map_err(io_error)?,
            columns: columns.iter().map(Rows::new).collect(),
            rows: 0,
            rows_per_group: VALUES_PER_GROUP / columns.len().max(1),
        })
    }

    /// Adds a row: one value for each column, in order.
    ///
    /// # Errors
    /// The sink fails.
    pub fn push<'a>(&mut self, row: impl IntoIterator<Item = Value<'a>>) -> io::Result<()> {
        let mut row = row.into_iter();
        for column in &mut self.columns {
            match row.next() {
                Some(value) => column.push(value),
                None => unreachable!("a row has a value for each column"),
            }
        }

        self.rows += 1;
        if self.rows < self.rows_per_group {
            return Ok(());
        }

        self.write_group()
    }

    fn write_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }

        // Cleared first: a group that cannot be written is not tried again.
        self.rows = 0;
        encode(&mut self.encoder, &mut self.columns).map_err(io_error)?;
        self.sink.write_all(&std::mem::take(self.encoder.inner_mut()))
    }

    /// Writes the remaining rows and the footer, and returns the sink.
    ///
    /// # Errors
    /// The sink fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_group()?;
        let footer = self.encoder.into_inner().map_err(io_error)?;
        self.sink.write_all(&footer)?;
        Ok(self.sink)
    }
}

fn encoder(
    columns: &[ColumnSpec],
    notes: &[(String, String)],
) -> Result<SerializedFileWriter<Vec<u8>>, ParquetError> {
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("assay").with_fields(fields).build()?;
    let notes =
        notes.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();

    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        // Parquet keeps indexes and statistics of all pages in memory until the file ends.
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(notes));

    for column in columns {
        let name = ColumnPath::from(column.name.clone());
        properties = match column.holds {
            // Most columns grow steadily or hardly change, so differences between rows are small.
            ColumnType::Integer | ColumnType::Time => {
                properties.set_column_encoding(name, Encoding::DELTA_BINARY_PACKED)
            }
            ColumnType::Text => properties.set_column_dictionary_enabled(name, true),
            ColumnType::Number | ColumnType::Boolean => properties,
        };
    }

    SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties.build()))
}

fn field(column: &ColumnSpec) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column.holds {
        ColumnType::Integer => (Physical::INT64, None),
        ColumnType::Number => (Physical::DOUBLE, None),
        ColumnType::Boolean => (Physical::BOOLEAN, None),
        ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnType::Time => {
            let since_1970_utc = LogicalType::timestamp(true, TimeUnit::MICROS);
            (Physical::INT64, Some(since_1970_utc))
        }
    };

    let repetition = if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

fn encode(
    encoder: &mut SerializedFileWriter<Vec<u8>>,
    columns: &mut [Rows],
) -> Result<(), ParquetError> {
    let mut group = encoder.next_row_group()?;
    for rows in columns {
        let Some(mut column) = group.next_column()? else {
            return Err(General("fewer columns than the schema has".into()));
        };
        rows.write(&mut column)?;
        column.close()?;
    }
    group.close()?;

    Ok(())
}

fn io_error(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

/// A column that is read.
struct SelectedColumn {
    /// The position of the column in the file.
    position: usize,
    /// Values of the column may be absent.
    optional: bool,
}

/// Reads some columns of a table, batch by batch.
pub(crate) struct TableReader {
    path: PathBuf,
    file: SerializedFileReader<std::fs::File>,
    selected: Vec<SelectedColumn>,
    group: usize,
    rows_left: usize,
    readers: Vec<ColumnReader>,
}

impl TableReader {
    /// Opens a table to read these columns.
    pub(crate) fn open(file: fs_err::File, columns: &[ColumnSpec]) -> Result<Self, RecordError> {
        let (file, path) = file.into_parts();
        let file = without_panic(|| SerializedFileReader::new(file))
            .map_err(|what| RecordError::damaged(&path, what))?;

        let mut table =
            Self { path, file, selected: Vec::new(), group: 0, rows_left: 0, readers: Vec::new() };

        table.select(columns)?;
        Ok(table)
    }

    /// Returns the error for a file with contents that no Assay writes.
    pub(crate) fn damaged(&self, what: String) -> RecordError {
        RecordError::damaged(&self.path, what)
    }

    /// Refuses a table of more than `rows_max` rows: a file of a few bytes may claim to have any
    /// number, and its reader keeps them all.
    pub(crate) fn limit_rows(&self, rows_max: u64) -> Result<(), RecordError> {
        let mut rows: u64 = 0;
        for group in self.file.metadata().row_groups() {
            rows = rows.saturating_add(u64::try_from(group.num_rows()).unwrap_or(u64::MAX));
        }

        if rows > rows_max {
            let what = format!("it has {rows} rows, of at most {rows_max}");
            return Err(RecordError::damaged(&self.path, what));
        }

        Ok(())
    }

    /// Returns the columns of the file that this module can read.
    pub(crate) fn columns(&self) -> Vec<ColumnSpec> {
        let mut columns = Vec::new();
        for column in self.schema().columns() {
            let holds = match column.physical_type() {
                Physical::INT64 => ColumnType::Integer,
                Physical::DOUBLE => ColumnType::Number,
                Physical::BOOLEAN => ColumnType::Boolean,
                Physical::BYTE_ARRAY => ColumnType::Text,
                _ => continue,
            };
            let optional = column.self_type().is_optional();
            columns.push(ColumnSpec { name: column.name().to_owned(), holds, optional });
        }

        columns
    }

    fn schema(&self) -> &SchemaDescriptor {
        self.file.metadata().file_metadata().schema_descr()
    }

    /// Returns a note of the writer.
    pub(crate) fn note(&self, key: &str) -> Option<&str> {
        let notes = self.file.metadata().file_metadata().key_value_metadata()?;
        notes.iter().find(|note| note.key == key)?.value.as_deref()
    }

    /// Selects the columns that [`next_batch`](Self::next_batch) reads; the file may have more.
    pub(crate) fn select(&mut self, columns: &[ColumnSpec]) -> Result<(), RecordError> {
        let available = self.columns();
        self.selected.clear();
        for column in columns {
            let mut all = self.schema().columns().iter();
            let position = all.position(|known| known.name() == column.name);
            let Some(position) = position.filter(|_| available.contains(column)) else {
                let what = format!("it has no column `{}` of the right type", column.name);
                return Err(RecordError::damaged(&self.path, what));
            };
            self.selected.push(SelectedColumn { position, optional: column.optional });
        }

        Ok(())
    }

    /// Reads the next rows, column by column in the order of the selection; returns `None` at the
    /// end.
    pub(crate) fn next_batch(&mut self) -> Result<Option<Vec<Rows>>, RecordError> {
        without_panic(|| self.read_batch()).map_err(|what| self.damaged(what))
    }

    /// Reads the next values of a selection of columns without absent values; returns `None` at the
    /// end.
    pub(crate) fn next_values<const N: usize>(
        &mut self,
    ) -> Result<Option<[Values; N]>, RecordError> {
        let batch = self.next_batch()?;
        let values: Option<Vec<Values>> =
            batch.map(|batch| batch.into_iter().map(|rows| rows.values).collect());
        Ok(values.map(|values| values.try_into().expect("the selection has N columns")))
    }

    /// Converts a text of the table.
    pub(crate) fn text<'a>(&self, text: &'a ByteArray) -> Result<&'a str, RecordError> {
        text.as_utf8().map_err(|error| self.damaged(error.to_string()))
    }

    fn read_batch(&mut self) -> Result<Option<Vec<Rows>>, ParquetError> {
        while self.rows_left == 0 {
            if self.group >= self.file.num_row_groups() {
                return Ok(None);
            }
            let group = self.file.get_row_group(self.group)?;
            self.group += 1;
            self.rows_left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            self.readers.clear();
            for column in &self.selected {
                self.readers.push(group.get_column_reader(column.position)?);
            }
        }

        let count = self.rows_left.min(ROWS_PER_BATCH);
        self.rows_left -= count;

        let mut batch = Vec::with_capacity(self.readers.len());
        for (reader, column) in self.readers.iter_mut().zip(&self.selected) {
            batch.push(read_rows(reader, column.optional, count)?);
        }

        Ok(Some(batch))
    }
}

fn read_rows(
    reader: &mut ColumnReader,
    optional: bool,
    count: usize,
) -> Result<Rows, ParquetError> {
    let mut defined = optional.then(Vec::new);
    let levels = &mut defined;

    let values = match reader {
        ColumnReader::Int64ColumnReader(column) => Values::Integer(read(column, count, levels)?),
        ColumnReader::DoubleColumnReader(column) => Values::Number(read(column, count, levels)?),
        ColumnReader::BoolColumnReader(column) => Values::Boolean(read(column, count, levels)?),
        ColumnReader::ByteArrayColumnReader(column) => Values::Text(read(column, count, levels)?),
        _ => return Err(General("a column of a type that no table has".into())),
    };

    Ok(Rows { values, defined })
}

fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    count: usize,
    defined: &mut Option<Vec<i16>>,
) -> Result<Vec<T::T>, ParquetError> {
    let mut values = Vec::with_capacity(count);
    let mut rows = 0;
    while rows < count {
        let (read, _, _) =
            reader.read_records(count - rows, defined.as_mut(), None, &mut values)?;
        if read == 0 {
            return Err(EOF("a column with fewer values than rows".into()));
        }
        rows += read;
    }

    let present = match defined {
        Some(levels) if levels.len() != count => None,
        Some(levels) => Some(levels.iter().filter(|&&level| level == 1).count()),
        None => Some(count),
    };
    if present == Some(values.len()) {
        Ok(values)
    } else {
        Err(General("a column with more or fewer values than rows".into()))
    }
}

/// Calls the parquet library, and returns what is wrong with the file. The library panics if a file
/// violates some of its assumptions. With a correct checksum such a file was written wrong or
/// forged, and counts as damaged.
fn without_panic<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("its structure contradicts itself".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens `/dev/full`, which refuses every byte like a full disk.
    fn full_disk() -> fs_err::File {
        fs_err::OpenOptions::new().write(true).open("/dev/full").unwrap()
    }

    #[track_caller]
    fn check_full(error: &RecordError) {
        assert_eq!(error.to_string(), "cannot write `/dev/full`");
        let source = std::error::Error::source(error).unwrap().to_string();
        assert!(source.contains("No space left on device"), "{source}");
        assert!(error.help().unwrap().contains("free some space"));
    }

    fn table(holds: ColumnType) -> TableWriter<fs_err::File> {
        TableWriter::new(full_disk(), &[ColumnSpec::new("second", holds)], &[]).unwrap()
    }

    fn with_path(error: io::Error) -> RecordError {
        RecordError::io("write", std::path::Path::new("/dev/full"))(error)
    }

    #[test]
    fn a_full_disk_fails_the_table_and_names_the_file() {
        let mut table = table(ColumnType::Integer);
        table.push([Value::Integer(1)]).unwrap();
        check_full(&with_path(table.finish().unwrap_err()));
    }

    #[test]
    fn a_full_disk_is_reported_while_rows_are_written() {
        let mut table = table(ColumnType::Number);
        let error =
            (0..2 * VALUES_PER_GROUP).find_map(|row| table.push([Value::Number(row as f64)]).err());
        check_full(&with_path(error.unwrap()));
    }

    #[test]
    fn a_full_disk_fails_the_latency_log_and_names_the_file() {
        let mut log = crate::files::LatencyLogWriter::new(full_disk(), 0);
        log.write(0, std::time::Duration::ZERO, "insert.service", &crate::latency_histogram())
            .unwrap();
        check_full(&log.finish().unwrap_err());
    }
}
