//! Parquet files of plain columns, written and read in batches: memory does not grow with their length.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};

use crate::RecordError;

/// Values that are kept in memory before they are written.
const VALUES_PER_GROUP: usize = 1 << 18;
/// Rows that are read at once.
const ROWS_PER_BATCH: usize = 4096;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// 64 bits with a sign.
    Integer,
    /// A double.
    Number,
    /// True or false.
    Boolean,
    /// UTF-8.
    Text,
}

/// A column and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Its name, with its unit.
    pub name: String,
    /// What it holds.
    pub holds: ColumnType,
    /// Its values may be absent.
    pub optional: bool,
}

impl ColumnSpec {
    /// A column that has a value in each row.
    pub fn new(name: impl Into<String>, holds: ColumnType) -> Self {
        Self {
            name: name.into(),
            holds,
            optional: false,
        }
    }

    /// A column whose values may be absent.
    pub fn optional(name: impl Into<String>, holds: ColumnType) -> Self {
        Self {
            optional: true,
            ..Self::new(name, holds)
        }
    }
}

/// One value of a row.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// There is none.
    Absent,
    /// Of a column of integers.
    Integer(i64),
    /// Of a column of numbers.
    Number(f64),
    /// Of a column of booleans.
    Boolean(bool),
    /// Of a column of texts.
    Text(&'a str),
}

/// Some rows of one column.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    Integer(Vec<i64>),
    /// The values that are there, and for each row whether one is (Parquet's definition level).
    OptionalInteger(Vec<i64>, Vec<i16>),
    Number(Vec<f64>),
    Boolean(Vec<bool>),
    Text(Vec<ByteArray>),
}

/// Rows of one column that are to be written.
struct Kept {
    /// The values that are there.
    values: Values,
    /// For each row whether one is; `None`: in each.
    defined: Option<Vec<i16>>,
}

impl Kept {
    fn new(column: &ColumnSpec) -> Self {
        Self {
            values: match column.holds {
                ColumnType::Integer => Values::Integer(Vec::new()),
                ColumnType::Number => Values::Number(Vec::new()),
                ColumnType::Boolean => Values::Boolean(Vec::new()),
                ColumnType::Text => Values::Text(Vec::new()),
            },
            defined: column.optional.then(Vec::new),
        }
    }

    fn push(&mut self, value: Value<'_>) {
        let is_there = !matches!(value, Value::Absent);
        if let Some(defined) = &mut self.defined {
            defined.push(i16::from(is_there));
            if !is_there {
                return;
            }
        }
        match (&mut self.values, value) {
            (Values::Integer(values), Value::Integer(value)) => values.push(value),
            (Values::Number(values), Value::Number(value)) => values.push(value),
            (Values::Boolean(values), Value::Boolean(value)) => values.push(value),
            (Values::Text(values), Value::Text(value)) => {
                // Neighbours are often equal: then they share their bytes.
                let last = values
                    .last()
                    .filter(|last| last.data() == value.as_bytes())
                    .cloned();
                values.push(last.unwrap_or_else(|| ByteArray::from(value)));
            }
            (_, value) => unreachable!("a table gave {value:?} to a column of another type"),
        }
    }

    fn write(&self, column: &mut SerializedColumnWriter<'_>) -> Result<usize, ParquetError> {
        let defined = self.defined.as_deref();
        match &self.values {
            Values::Integer(values) | Values::OptionalInteger(values, _) => {
                let writer = column.typed::<Int64Type>();
                writer.write_batch(values, defined, None)
            }
            Values::Number(values) => {
                let writer = column.typed::<DoubleType>();
                writer.write_batch(values, defined, None)
            }
            Values::Boolean(values) => {
                let writer = column.typed::<BoolType>();
                writer.write_batch(values, defined, None)
            }
            Values::Text(values) => {
                let writer = column.typed::<ByteArrayType>();
                writer.write_batch(values, defined, None)
            }
        }
    }

    fn clear(&mut self) {
        if let Some(defined) = &mut self.defined {
            defined.clear();
        }
        match &mut self.values {
            Values::Integer(values) | Values::OptionalInteger(values, _) => values.clear(),
            Values::Number(values) => values.clear(),
            Values::Boolean(values) => values.clear(),
            Values::Text(values) => values.clear(),
        }
    }
}

/// Writes a table row by row. Parquet's own writer fills a buffer, whatever the table goes to.
pub struct TableWriter<W> {
    sink: W,
    encoder: SerializedFileWriter<Vec<u8>>,
    columns: Vec<Kept>,
    rows: usize,
    rows_per_group: usize,
}

impl<W: Write> TableWriter<W> {
    /// Begins a table; the notes are the file's metadata.
    ///
    /// # Errors
    /// What can't be a table.
    pub fn new(sink: W, columns: &[ColumnSpec], notes: &[(String, String)]) -> io::Result<Self> {
        Ok(Self {
            sink,
            encoder: encoder(columns, notes).map_err(io_error)?,
            columns: columns.iter().map(Kept::new).collect(),
            rows: 0,
            rows_per_group: VALUES_PER_GROUP / columns.len().max(1),
        })
    }

    /// Adds a row: one value for each column, in their order.
    ///
    /// # Errors
    /// The sink's.
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
        self.rows = 0;
        encode(&mut self.encoder, &mut self.columns).map_err(io_error)?;
        self.sink
            .write_all(&std::mem::take(self.encoder.inner_mut()))
    }

    /// Writes what is left, and returns what it was written into.
    ///
    /// # Errors
    /// The sink's.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_group()?;
        let rest = self.encoder.into_inner().map_err(io_error)?;
        self.sink.write_all(&rest)?;
        Ok(self.sink)
    }
}

fn encoder(
    columns: &[ColumnSpec],
    notes: &[(String, String)],
) -> Result<SerializedFileWriter<Vec<u8>>, ParquetError> {
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Type::group_type_builder("assay")
        .with_fields(fields)
        .build()?;
    let notes = notes
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .collect();
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        // What indexes and statistics would say of each page is kept in memory until the file ends.
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(notes));
    for column in columns {
        let name = ColumnPath::from(column.name.clone());
        properties = match column.holds {
            // Differences of neighbours are small: most columns grow steadily, or hardly change.
            ColumnType::Integer => {
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
    };
    let repetition = match column.optional {
        true => Repetition::OPTIONAL,
        false => Repetition::REQUIRED,
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

fn encode(
    encoder: &mut SerializedFileWriter<Vec<u8>>,
    columns: &mut [Kept],
) -> Result<(), ParquetError> {
    let mut group = encoder.next_row_group()?;
    for kept in columns {
        let Some(mut column) = group.next_column()? else {
            return Err(ParquetError::General(
                "fewer columns than the schema has".into(),
            ));
        };
        kept.write(&mut column)?;
        column.close()?;
        kept.clear();
    }
    group.close()?;
    Ok(())
}

fn io_error(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

/// Reads some columns of a table, batch by batch.
pub(crate) struct TableReader {
    path: PathBuf,
    file: SerializedFileReader<std::fs::File>,
    /// What is read, with its positions in the file.
    wanted: Vec<(usize, ColumnSpec)>,
    group: usize,
    rows_left: usize,
    readers: Vec<ColumnReader>,
}

impl TableReader {
    /// Opens a table.
    pub(crate) fn open(path: &Path) -> Result<Self, RecordError> {
        let file = fs_err::File::open(path)
            .map_err(RecordError::io("open", path))?
            .into_file();
        let file = SerializedFileReader::new(file).map_err(|error| read_error(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            wanted: Vec::new(),
            group: 0,
            rows_left: 0,
            readers: Vec::new(),
        })
    }

    /// The columns that the file has and this module knows how to read.
    pub(crate) fn columns(&self) -> Vec<ColumnSpec> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        schema
            .columns()
            .iter()
            .filter_map(|column| {
                let optional = column.self_type().is_optional();
                let holds = match column.physical_type() {
                    Physical::INT64 => ColumnType::Integer,
                    Physical::DOUBLE if !optional => ColumnType::Number,
                    Physical::BOOLEAN if !optional => ColumnType::Boolean,
                    Physical::BYTE_ARRAY if !optional => ColumnType::Text,
                    _ => return None,
                };
                Some(ColumnSpec {
                    name: column.name().to_owned(),
                    holds,
                    optional,
                })
            })
            .collect()
    }

    /// A note that the writer left.
    pub(crate) fn note(&self, key: &str) -> Option<&str> {
        let notes = self.file.metadata().file_metadata().key_value_metadata()?;
        notes.iter().find(|note| note.key == key)?.value.as_deref()
    }

    /// Chooses what [`next_batch`](Self::next_batch) reads; the file may have more columns than these.
    pub(crate) fn select(&mut self, columns: &[ColumnSpec]) -> Result<(), RecordError> {
        let there = self.columns();
        let schema = self.file.metadata().file_metadata().schema_descr();
        self.wanted.clear();
        for column in columns {
            let position = schema
                .columns()
                .iter()
                .position(|candidate| candidate.name() == column.name);
            match position {
                Some(position) if there.contains(column) => {
                    self.wanted.push((position, column.clone()))
                }
                _ => {
                    let what = format!("it has no column `{}` of the right type", column.name);
                    return Err(RecordError::damaged(&self.path, what));
                }
            }
        }
        Ok(())
    }

    /// The next rows, column by column in the order of the selection, and how many; `None` at the end.
    pub(crate) fn next_batch(&mut self) -> Result<Option<(usize, Vec<Values>)>, RecordError> {
        let path = self.path.clone();
        guarded(&path, || self.read_batch())
    }

    fn read_batch(&mut self) -> Result<Option<(usize, Vec<Values>)>, RecordError> {
        while self.rows_left == 0 {
            if self.group >= self.file.num_row_groups() {
                return Ok(None);
            }
            let group = self
                .file
                .get_row_group(self.group)
                .map_err(|error| read_error(&self.path, error))?;
            self.group += 1;
            self.rows_left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            self.readers.clear();
            for (position, _) in &self.wanted {
                let reader = group
                    .get_column_reader(*position)
                    .map_err(|error| read_error(&self.path, error))?;
                self.readers.push(reader);
            }
        }
        let rows = self.rows_left.min(ROWS_PER_BATCH);
        let mut batch = Vec::with_capacity(self.wanted.len());
        for (reader, (_, column)) in self.readers.iter_mut().zip(&self.wanted) {
            let values =
                read_rows(reader, column, rows).map_err(|error| read_error(&self.path, error))?;
            batch.push(values);
        }
        self.rows_left -= rows;
        Ok(Some((rows, batch)))
    }
}

/// The parquet library asserts some things of what it reads. A file with a right checksum that violates them was
/// written wrong or forged, and is as damaged as any other.
fn guarded<T>(
    path: &Path,
    read: impl FnOnce() -> Result<T, RecordError>,
) -> Result<T, RecordError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(RecordError::damaged(
            path,
            "its structure contradicts itself",
        ))
    })
}

fn read_rows(
    reader: &mut ColumnReader,
    column: &ColumnSpec,
    rows: usize,
) -> Result<Values, ParquetError> {
    match (reader, column.holds) {
        (ColumnReader::Int64ColumnReader(reader), ColumnType::Integer) if !column.optional => {
            required(reader, rows).map(Values::Integer)
        }
        (ColumnReader::DoubleColumnReader(reader), ColumnType::Number) => {
            required(reader, rows).map(Values::Number)
        }
        (ColumnReader::BoolColumnReader(reader), ColumnType::Boolean) => {
            required(reader, rows).map(Values::Boolean)
        }
        (ColumnReader::ByteArrayColumnReader(reader), ColumnType::Text) => {
            required(reader, rows).map(Values::Text)
        }
        (ColumnReader::Int64ColumnReader(reader), ColumnType::Integer) => {
            let (mut values, mut defined) = (Vec::new(), Vec::new());
            while defined.len() < rows {
                let (read, _, _) = reader.read_records(
                    rows - defined.len(),
                    Some(&mut defined),
                    None,
                    &mut values,
                )?;
                check_progress(read)?;
            }
            let there = defined.iter().filter(|&&level| level == 1).count();
            if there != values.len() || defined.len() != rows {
                return Err(ParquetError::General(
                    "a column with more or fewer values than rows".into(),
                ));
            }
            Ok(Values::OptionalInteger(values, defined))
        }
        _ => Err(ParquetError::General(
            "a column of another type than the schema says".into(),
        )),
    }
}

fn required<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
) -> Result<Vec<T::T>, ParquetError> {
    let mut values = Vec::with_capacity(rows);
    while values.len() < rows {
        let (read, _, _) = reader.read_records(rows - values.len(), None, None, &mut values)?;
        check_progress(read)?;
    }
    Ok(values)
}

fn check_progress(read: usize) -> Result<(), ParquetError> {
    if read == 0 {
        Err(ParquetError::EOF(
            "a column with fewer values than rows".into(),
        ))
    } else {
        Ok(())
    }
}

fn read_error(path: &Path, error: ParquetError) -> RecordError {
    RecordError::damaged(path, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `/dev/full` refuses every byte as a full disk does.
    fn full_disk() -> fs_err::File {
        fs_err::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    }

    #[track_caller]
    fn check_full(error: &RecordError) {
        assert_eq!(error.to_string(), "cannot write `/dev/full`");
        let source = std::error::Error::source(error).unwrap().to_string();
        assert!(source.contains("No space left on device"), "{source}");
        assert!(error.help().unwrap().contains("make space"));
    }

    fn table(holds: ColumnType) -> TableWriter<fs_err::File> {
        TableWriter::new(full_disk(), &[ColumnSpec::new("second", holds)], &[]).unwrap()
    }

    fn named(error: io::Error) -> RecordError {
        RecordError::io("write", Path::new("/dev/full"))(error)
    }

    #[test]
    fn a_full_disk_fails_the_table_and_names_the_file() {
        let mut table = table(ColumnType::Integer);
        table.push([Value::Integer(1)]).unwrap();
        check_full(&named(table.finish().unwrap_err()));
    }

    #[test]
    fn a_full_disk_is_noticed_while_rows_are_written() {
        let mut table = table(ColumnType::Number);
        let error =
            (0..2 * VALUES_PER_GROUP).find_map(|row| table.push([Value::Number(row as f64)]).err());
        check_full(&named(error.unwrap()));
    }

    #[test]
    fn a_full_disk_fails_the_latency_log_and_names_the_file() {
        let mut log = crate::latency_log::LatencyLogWriter::new(full_disk(), 0);
        log.write(
            0,
            std::time::Duration::ZERO,
            "insert.service",
            &crate::latency_histogram(),
        )
        .unwrap();
        check_full(&log.finish().unwrap_err());
    }
}
