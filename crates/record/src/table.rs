//! Parquet files of plain columns, written and read in batches: memory does not grow with their length.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use crate::checksum::SummedFile;
use crate::{RecordError, StepFile};

/// Values that are kept in memory before they are written.
const VALUES_PER_GROUP: usize = 1 << 18;
/// Rows that are read at once.
const ROWS_PER_BATCH: usize = 4096;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Int32,
    Int64,
    OptionalInt64,
    Double,
    Boolean,
    Text,
}

/// A column and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnSpec {
    pub name: String,
    pub holds: ColumnType,
}

impl ColumnSpec {
    pub(crate) fn new(name: &str, holds: ColumnType) -> Self {
        Self {
            name: name.to_owned(),
            holds,
        }
    }
}

/// One value of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Int32(i32),
    Int64(i64),
    OptionalInt64(Option<i64>),
    Double(f64),
    Boolean(bool),
    Text(&'a str),
}

/// Some rows of one column.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    /// The values that are there, and for each row whether one is (Parquet's definition level).
    OptionalInt64(Vec<i64>, Vec<i16>),
    Double(Vec<f64>),
    Boolean(Vec<bool>),
    Text(Vec<ByteArray>),
}

impl Values {
    fn new(holds: ColumnType) -> Self {
        match holds {
            ColumnType::Int32 => Self::Int32(Vec::new()),
            ColumnType::Int64 => Self::Int64(Vec::new()),
            ColumnType::OptionalInt64 => Self::OptionalInt64(Vec::new(), Vec::new()),
            ColumnType::Double => Self::Double(Vec::new()),
            ColumnType::Boolean => Self::Boolean(Vec::new()),
            ColumnType::Text => Self::Text(Vec::new()),
        }
    }

    fn push(&mut self, value: Value<'_>) {
        match (self, value) {
            (Self::Int32(values), Value::Int32(value)) => values.push(value),
            (Self::Int64(values), Value::Int64(value)) => values.push(value),
            (Self::OptionalInt64(values, defined), Value::OptionalInt64(value)) => {
                defined.push(i16::from(value.is_some()));
                values.extend(value);
            }
            (Self::Double(values), Value::Double(value)) => values.push(value),
            (Self::Boolean(values), Value::Boolean(value)) => values.push(value),
            (Self::Text(values), Value::Text(value)) => {
                // Neighbours are often equal: then they share their bytes.
                let last = values
                    .last()
                    .filter(|last| last.data() == value.as_bytes())
                    .cloned();
                values.push(last.unwrap_or_else(|| ByteArray::from(value)));
            }
            (column, value) => unreachable!("the writer of a table gave {value:?} to {column:?}"),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Int32(values) => values.clear(),
            Self::Int64(values) => values.clear(),
            Self::OptionalInt64(values, defined) => {
                values.clear();
                defined.clear();
            }
            Self::Double(values) => values.clear(),
            Self::Boolean(values) => values.clear(),
            Self::Text(values) => values.clear(),
        }
    }
}

/// Writes a table row by row.
pub(crate) struct TableWriter {
    path: PathBuf,
    file: SerializedFileWriter<SummedFile>,
    columns: Vec<Values>,
    rows: usize,
    rows_per_group: usize,
}

impl TableWriter {
    /// Begins a table in an empty file.
    pub(crate) fn new(
        file: fs_err::File,
        columns: &[ColumnSpec],
        notes: &[(&str, String)],
    ) -> Result<Self, RecordError> {
        let path = file.path().to_owned();
        let error = |error| write_error(&path, error);
        let fields = columns
            .iter()
            .map(field)
            .collect::<Result<Vec<_>, _>>()
            .map_err(error)?;
        let schema = Type::group_type_builder("assay")
            .with_fields(fields)
            .build()
            .map_err(error)?;
        let notes = notes
            .iter()
            .map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()))
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
                ColumnType::Int32 | ColumnType::Int64 | ColumnType::OptionalInt64 => {
                    properties.set_column_encoding(name, Encoding::DELTA_BINARY_PACKED)
                }
                ColumnType::Text => properties.set_column_dictionary_enabled(name, true),
                ColumnType::Double | ColumnType::Boolean => properties,
            };
        }
        let file = SerializedFileWriter::new(
            SummedFile::new(file),
            Arc::new(schema),
            Arc::new(properties.build()),
        )
        .map_err(error)?;
        Ok(Self {
            file,
            columns: columns
                .iter()
                .map(|column| Values::new(column.holds))
                .collect(),
            rows: 0,
            rows_per_group: VALUES_PER_GROUP / columns.len().max(1),
            path,
        })
    }

    /// Adds a row: one value for each column, in their order.
    pub(crate) fn push<'a>(
        &mut self,
        row: impl IntoIterator<Item = Value<'a>>,
    ) -> Result<(), RecordError> {
        let mut row = row.into_iter();
        for column in &mut self.columns {
            match row.next() {
                Some(value) => column.push(value),
                None => unreachable!("a row has a value for each column"),
            }
        }
        self.rows += 1;
        if self.rows >= self.rows_per_group {
            self.write_group()
        } else {
            Ok(())
        }
    }

    fn write_group(&mut self) -> Result<(), RecordError> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        write_columns(&mut self.file, &self.columns)
            .map_err(|error| write_error(&self.path, error))?;
        self.columns.iter_mut().for_each(Values::clear);
        Ok(())
    }

    /// Writes what is left and makes the file last.
    pub(crate) fn finish(mut self) -> Result<StepFile, RecordError> {
        self.write_group()?;
        self.file
            .into_inner()
            .map_err(|error| write_error(&self.path, error))?
            .finish()
    }
}

fn field(column: &ColumnSpec) -> Result<Arc<Type>, ParquetError> {
    let (physical, repetition, logical) = match column.holds {
        ColumnType::Int32 => (Physical::INT32, Repetition::REQUIRED, None),
        ColumnType::Int64 => (Physical::INT64, Repetition::REQUIRED, None),
        ColumnType::OptionalInt64 => (Physical::INT64, Repetition::OPTIONAL, None),
        ColumnType::Double => (Physical::DOUBLE, Repetition::REQUIRED, None),
        ColumnType::Boolean => (Physical::BOOLEAN, Repetition::REQUIRED, None),
        ColumnType::Text => (
            Physical::BYTE_ARRAY,
            Repetition::REQUIRED,
            Some(LogicalType::String),
        ),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

fn write_columns(
    file: &mut SerializedFileWriter<SummedFile>,
    columns: &[Values],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for values in columns {
        let Some(mut column) = group.next_column()? else {
            return Err(ParquetError::General(
                "fewer columns than the schema has".into(),
            ));
        };
        match values {
            Values::Int32(values) => column
                .typed::<Int32Type>()
                .write_batch(values, None, None)?,
            Values::Int64(values) => column
                .typed::<Int64Type>()
                .write_batch(values, None, None)?,
            Values::OptionalInt64(values, defined) => {
                column
                    .typed::<Int64Type>()
                    .write_batch(values, Some(defined), None)?
            }
            Values::Double(values) => column
                .typed::<DoubleType>()
                .write_batch(values, None, None)?,
            Values::Boolean(values) => {
                column.typed::<BoolType>().write_batch(values, None, None)?
            }
            Values::Text(values) => column
                .typed::<ByteArrayType>()
                .write_batch(values, None, None)?,
        };
        column.close()?;
    }
    group.close()?;
    Ok(())
}

fn write_error(path: &Path, error: ParquetError) -> RecordError {
    let source = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => *io,
            Err(other) => std::io::Error::other(other),
        },
        other => std::io::Error::other(other),
    };
    RecordError::io("write", path)(source)
}

/// Reads some columns of a table, batch by batch.
pub(crate) struct TableReader {
    path: PathBuf,
    file: SerializedFileReader<std::fs::File>,
    /// Positions in the file, and types, of what is read.
    wanted: Vec<(usize, ColumnType)>,
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
                let holds = match (column.physical_type(), optional) {
                    (Physical::INT32, false) => ColumnType::Int32,
                    (Physical::INT64, false) => ColumnType::Int64,
                    (Physical::INT64, true) => ColumnType::OptionalInt64,
                    (Physical::DOUBLE, false) => ColumnType::Double,
                    (Physical::BOOLEAN, false) => ColumnType::Boolean,
                    (Physical::BYTE_ARRAY, false) => ColumnType::Text,
                    _ => return None,
                };
                Some(ColumnSpec {
                    name: column.name().to_owned(),
                    holds,
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
                    self.wanted.push((position, column.holds))
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
            for &(position, _) in &self.wanted {
                let reader = group
                    .get_column_reader(position)
                    .map_err(|error| read_error(&self.path, error))?;
                self.readers.push(reader);
            }
        }
        let rows = self.rows_left.min(ROWS_PER_BATCH);
        let mut batch = Vec::with_capacity(self.wanted.len());
        for (reader, &(_, holds)) in self.readers.iter_mut().zip(&self.wanted) {
            let values =
                read_rows(reader, holds, rows).map_err(|error| read_error(&self.path, error))?;
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
    holds: ColumnType,
    rows: usize,
) -> Result<Values, ParquetError> {
    match (reader, holds) {
        (ColumnReader::Int32ColumnReader(reader), ColumnType::Int32) => {
            required(reader, rows).map(Values::Int32)
        }
        (ColumnReader::Int64ColumnReader(reader), ColumnType::Int64) => {
            required(reader, rows).map(Values::Int64)
        }
        (ColumnReader::DoubleColumnReader(reader), ColumnType::Double) => {
            required(reader, rows).map(Values::Double)
        }
        (ColumnReader::BoolColumnReader(reader), ColumnType::Boolean) => {
            required(reader, rows).map(Values::Boolean)
        }
        (ColumnReader::ByteArrayColumnReader(reader), ColumnType::Text) => {
            required(reader, rows).map(Values::Text)
        }
        (ColumnReader::Int64ColumnReader(reader), ColumnType::OptionalInt64) => {
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
            Ok(Values::OptionalInt64(values, defined))
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

    #[test]
    fn a_full_disk_fails_the_table_and_names_the_file() {
        let mut table = TableWriter::new(
            full_disk(),
            &[ColumnSpec::new("second", ColumnType::Int32)],
            &[],
        )
        .unwrap();
        table.push([Value::Int32(1)]).unwrap();
        check_full(&table.finish().unwrap_err());
    }

    #[test]
    fn a_full_disk_is_noticed_while_rows_are_written() {
        let mut table = TableWriter::new(
            full_disk(),
            &[ColumnSpec::new("second", ColumnType::Double)],
            &[],
        )
        .unwrap();
        let error = (0..10 * VALUES_PER_GROUP)
            .find_map(|row| table.push([Value::Double(row as f64)]).err());
        check_full(&error.unwrap());
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
