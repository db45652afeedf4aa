//! Parquet files of plain columns, written and read in batches: memory does not grow with their length.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
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
    /// Microseconds since 1970 UTC, which readers show as a date with its time.
    Time,
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
    /// Of a column of integers, or of times.
    Integer(i64),
    /// Of a column of numbers.
    Number(f64),
    /// Of a column of booleans.
    Boolean(bool),
    /// Of a column of texts.
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
    /// The values that are there.
    pub(crate) values: Values,
    /// For each row whether one is (Parquet's definition level); `None`: in each.
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

    /// Writes the rows, and forgets them.
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

/// Writes a table row by row. Parquet's own writer fills a buffer, whatever the table goes to.
pub struct TableWriter<W> {
    sink: W,
    encoder: SerializedFileWriter<Vec<u8>>,
    columns: Vec<Rows>,
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
            columns: columns.iter().map(Rows::new).collect(),
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

/// Reads some columns of a table, batch by batch.
pub(crate) struct TableReader {
    path: PathBuf,
    file: SerializedFileReader<std::fs::File>,
    /// The positions in the file of what is read, and whether its values may be absent.
    wanted: Vec<(usize, bool)>,
    group: usize,
    rows_left: usize,
    readers: Vec<ColumnReader>,
}

impl TableReader {
    /// Opens a table, to read these columns.
    pub(crate) fn open(path: &Path, columns: &[ColumnSpec]) -> Result<Self, RecordError> {
        let file = fs_err::File::open(path)
            .map_err(RecordError::io("open", path))?
            .into_file();
        let file = SerializedFileReader::new(file).map_err(|error| read_error(path, error))?;
        let mut table = Self {
            path: path.to_owned(),
            file,
            wanted: Vec::new(),
            group: 0,
            rows_left: 0,
            readers: Vec::new(),
        };
        table.select(columns)?;
        Ok(table)
    }

    /// The columns that the file has and this module knows how to read.
    pub(crate) fn columns(&self) -> Vec<ColumnSpec> {
        let columns = self.schema().columns().iter().filter_map(|column| {
            Some(ColumnSpec {
                name: column.name().to_owned(),
                holds: match column.physical_type() {
                    Physical::INT64 => ColumnType::Integer,
                    Physical::DOUBLE => ColumnType::Number,
                    Physical::BOOLEAN => ColumnType::Boolean,
                    Physical::BYTE_ARRAY => ColumnType::Text,
                    _ => return None,
                },
                optional: column.self_type().is_optional(),
            })
        });
        columns.collect()
    }

    fn schema(&self) -> &SchemaDescriptor {
        self.file.metadata().file_metadata().schema_descr()
    }

    /// A note that the writer left.
    pub(crate) fn note(&self, key: &str) -> Option<&str> {
        let notes = self.file.metadata().file_metadata().key_value_metadata()?;
        notes.iter().find(|note| note.key == key)?.value.as_deref()
    }

    /// Chooses what [`next_batch`](Self::next_batch) reads; the file may have more columns than these.
    pub(crate) fn select(&mut self, columns: &[ColumnSpec]) -> Result<(), RecordError> {
        let there = self.columns();
        self.wanted.clear();
        for column in columns {
            let mut all = self.schema().columns().iter();
            let position = all.position(|it| it.name() == column.name);
            let Some(position) = position.filter(|_| there.contains(column)) else {
                let what = format!("it has no column `{}` of the right type", column.name);
                return Err(RecordError::damaged(&self.path, what));
            };
            self.wanted.push((position, column.optional));
        }
        Ok(())
    }

    /// The next rows, column by column in the order of the selection; `None` at the end.
    pub(crate) fn next_batch(&mut self) -> Result<Option<Vec<Rows>>, RecordError> {
        // The parquet library asserts some things of what it reads. A file with a right checksum that violates them was
        // written wrong or forged, and is as damaged as any other.
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.read_batch())) {
            Ok(batch) => batch.map_err(|error| read_error(&self.path, error)),
            Err(_) => {
                let what = "its structure contradicts itself";
                Err(RecordError::damaged(&self.path, what))
            }
        }
    }

    /// The next values of the selection, each of whose columns has one in each row; `None` at the end.
    pub(crate) fn next_values<const N: usize>(
        &mut self,
    ) -> Result<Option<[Values; N]>, RecordError> {
        let batch = self.next_batch()?;
        let values = batch.map(|batch| batch.into_iter().map(|rows| rows.values).collect());
        Ok(values.map(|values: Vec<_>| values.try_into().expect("so many were selected")))
    }

    /// A text of the table.
    pub(crate) fn text<'a>(&self, text: &'a ByteArray) -> Result<&'a str, RecordError> {
        text.as_utf8()
            .map_err(|error| read_error(&self.path, error))
    }

    fn read_batch(&mut self) -> Result<Option<Vec<Rows>>, ParquetError> {
        while self.rows_left == 0 {
            if self.group >= self.file.num_row_groups() {
                return Ok(None);
            }
            let group = self.file.get_row_group(self.group)?;
            self.group += 1;
            self.rows_left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            let readers = self.wanted.iter();
            let readers = readers.map(|(position, _)| group.get_column_reader(*position));
            self.readers = readers.collect::<Result<_, _>>()?;
        }
        let count = self.rows_left.min(ROWS_PER_BATCH);
        self.rows_left -= count;
        let readers = self.readers.iter_mut().zip(&self.wanted);
        let batch = readers.map(|(reader, (_, optional))| read_rows(reader, *optional, count));
        batch.collect::<Result<_, _>>().map(Some)
    }
}

fn read_rows(
    reader: &mut ColumnReader,
    optional: bool,
    count: usize,
) -> Result<Rows, ParquetError> {
    let mut defined = optional.then(Vec::new);
    let there = &mut defined;
    let values = match reader {
        ColumnReader::Int64ColumnReader(it) => Values::Integer(read(it, count, there)?),
        ColumnReader::DoubleColumnReader(it) => Values::Number(read(it, count, there)?),
        ColumnReader::BoolColumnReader(it) => Values::Boolean(read(it, count, there)?),
        ColumnReader::ByteArrayColumnReader(it) => Values::Text(read(it, count, there)?),
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
    let there = match defined {
        Some(levels) if levels.len() != count => None,
        Some(levels) => Some(levels.iter().filter(|&&level| level == 1).count()),
        None => Some(count),
    };
    match there == Some(values.len()) {
        true => Ok(values),
        false => Err(General(
            "a column with more or fewer values than rows".into(),
        )),
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
