//! A table as a Parquet file: every column may have nulls, rows are written in groups.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use super::sheet::{Column, Holds, Value};

/// Values that are kept in memory before they are written.
const VALUES_PER_GROUP: usize = 1 << 20;

/// The values of one column that are there, and for each row whether one is (Parquet's definition level).
struct Kept {
    values: Values,
    defined: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Number(Vec<f64>),
    Boolean(Vec<bool>),
}

impl Kept {
    fn new(holds: Holds) -> Self {
        let values = match holds {
            Holds::Text => Values::Text(Vec::new()),
            Holds::Integer => Values::Integer(Vec::new()),
            Holds::Number => Values::Number(Vec::new()),
            Holds::Boolean => Values::Boolean(Vec::new()),
        };
        Self {
            values,
            defined: Vec::new(),
        }
    }

    fn push(&mut self, value: &Value) {
        self.defined
            .push(i16::from(!matches!(value, Value::Absent)));
        match (&mut self.values, value) {
            (_, Value::Absent) => {}
            (Values::Text(values), Value::Text(text)) => {
                // Neighbours are often equal: then they share their bytes.
                let last = values.last().filter(|last| last.data() == text.as_bytes());
                values.push(last.cloned().unwrap_or_else(|| text.as_str().into()));
            }
            (Values::Integer(values), Value::Integer(value)) => {
                values.push(i64::try_from(*value).unwrap_or(i64::MAX));
            }
            (Values::Number(values), Value::Number(value)) => values.push(*value),
            (Values::Boolean(values), Value::Boolean(value)) => values.push(*value),
            (_, value) => unreachable!("a table gave {value:?} to a column of another type"),
        }
    }

    fn clear(&mut self) {
        self.defined.clear();
        match &mut self.values {
            Values::Text(values) => values.clear(),
            Values::Integer(values) => values.clear(),
            Values::Number(values) => values.clear(),
            Values::Boolean(values) => values.clear(),
        }
    }
}

/// A file that is being written.
pub(crate) struct ParquetSheet<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Kept>,
    rows: usize,
    rows_per_group: usize,
}

impl<W: Write + Send> ParquetSheet<W> {
    /// Begins a file with these columns; the notes are its metadata.
    pub(super) fn new(columns: &[Column], notes: &[(String, String)], sink: W) -> io::Result<Self> {
        let fields: Result<Vec<_>, _> = columns.iter().map(field).collect();
        let schema = Type::group_type_builder("assay")
            .with_fields(fields.map_err(io_error)?)
            .build()
            .map_err(io_error)?;
        let notes = notes
            .iter()
            .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
            .collect();
        let mut properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_compression(Compression::SNAPPY)
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_key_value_metadata(Some(notes));
        for column in columns {
            let path = ColumnPath::from(column.name.clone());
            properties = match column.holds {
                Holds::Text => properties.set_column_dictionary_enabled(path, true),
                // Neighbours differ little.
                Holds::Integer => {
                    properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
                }
                Holds::Number | Holds::Boolean => properties,
            };
        }
        let file = SerializedFileWriter::new(sink, Arc::new(schema), Arc::new(properties.build()))
            .map_err(io_error)?;
        Ok(Self {
            file,
            columns: columns
                .iter()
                .map(|column| Kept::new(column.holds))
                .collect(),
            rows: 0,
            rows_per_group: VALUES_PER_GROUP / columns.len().max(1),
        })
    }

    /// Adds a row: one value for each column, in their order.
    pub(super) fn push(&mut self, row: &[Value]) -> io::Result<()> {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value);
        }
        self.rows += 1;
        if self.rows >= self.rows_per_group {
            self.write_group()
        } else {
            Ok(())
        }
    }

    fn write_group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        write_columns(&mut self.file, &self.columns).map_err(io_error)?;
        self.columns.iter_mut().for_each(Kept::clear);
        Ok(())
    }

    /// Writes what is left; what it was written into.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.write_group()?;
        self.file.into_inner().map_err(io_error)
    }
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column.holds {
        Holds::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Holds::Integer => (Physical::INT64, None),
        Holds::Number => (Physical::DOUBLE, None),
        Holds::Boolean => (Physical::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

fn write_columns<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: &[Kept],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for kept in columns {
        let Some(mut column) = group.next_column()? else {
            return Err(ParquetError::General(
                "fewer columns than the schema has".into(),
            ));
        };
        let defined = Some(&kept.defined[..]);
        match &kept.values {
            Values::Text(values) => column
                .typed::<ByteArrayType>()
                .write_batch(values, defined, None)?,
            Values::Integer(values) => column
                .typed::<Int64Type>()
                .write_batch(values, defined, None)?,
            Values::Number(values) => column
                .typed::<DoubleType>()
                .write_batch(values, defined, None)?,
            Values::Boolean(values) => column
                .typed::<BoolType>()
                .write_batch(values, defined, None)?,
        };
        column.close()?;
    }
    group.close()?;
    Ok(())
}

/// What the file was written into failed, mostly.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
