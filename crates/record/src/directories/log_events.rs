//! The table of the events of a cell's log.

use std::io;

use words::LogEvent;

use crate::RecordError;
use crate::files::{
    ColumnSpec, ColumnType, Rows, TEXT_BYTES_MAX, TableReader, TableWriter, Value, Values,
};

fn columns() -> [ColumnSpec; 6] {
    [
        ColumnSpec::new("unix_ns", ColumnType::Integer),
        ColumnSpec::new("kind", ColumnType::Text),
        ColumnSpec::optional("duration_ns", ColumnType::Integer),
        ColumnSpec::optional("bytes", ColumnType::Integer),
        ColumnSpec::new("text", ColumnType::Text),
        ColumnSpec::new("more", ColumnType::Integer),
    ]
}

/// Returns the table of these events.
pub(crate) fn to_bytes(events: &[LogEvent]) -> io::Result<Vec<u8>> {
    to_bytes_with(events, &columns())
}

fn to_bytes_with(events: &[LogEvent], columns: &[ColumnSpec]) -> io::Result<Vec<u8>> {
    let mut table = TableWriter::new(Vec::new(), columns, &[])?;
    let optional = |value: Option<i64>| value.map_or(Value::Absent, Value::Integer);

    for event in events {
        table.push([
            Value::Integer(event.unix_ns),
            Value::Text(&event.kind),
            optional(event.duration_ns),
            optional(event.bytes),
            Value::Text(&event.text),
            Value::Integer(event.more),
        ])?;
    }

    table.finish()
}

/// More events than are recorded of any log.
const EVENTS_MAX: u64 = 1 << 20;

/// Reads the events of a table.
pub(crate) fn read(file: fs_err::File) -> Result<Vec<LogEvent>, RecordError> {
    let columns = columns();
    // The first records had no `more`.
    let [first @ .., more_column] = &columns;
    let mut table = TableReader::open(file, first)?;
    if table.columns().contains(more_column) {
        table.select(&columns)?;
    }
    table.limit_rows(EVENTS_MAX)?;

    let mut events = Vec::new();
    let mut text_bytes = 0;
    while let Some(mut batch) = table.next_batch()? {
        let more_values = batch.split_off(first.len()).pop().map(|rows| rows.values);
        let Ok([unix_ns, kind, duration_ns, bytes, text]) = <[Rows; 5]>::try_from(batch) else {
            unreachable!("a batch has the columns that were selected")
        };
        let (Values::Integer(unix_ns), Values::Text(kind), Values::Text(text)) =
            (unix_ns.values, kind.values, text.values)
        else {
            unreachable!("a batch has the columns that were selected")
        };

        let more = match more_values {
            Some(Values::Integer(more)) => more,
            _ => vec![0; unix_ns.len()],
        };

        let duration_ns = duration_ns.into_optional_integers();
        let bytes = bytes.into_optional_integers();

        for (row, unix_ns) in unix_ns.into_iter().enumerate() {
            text_bytes += (kind[row].len() + text[row].len()) as u64;
            if text_bytes > TEXT_BYTES_MAX {
                let what = format!("its texts are larger than {} MiB", TEXT_BYTES_MAX >> 20);
                return Err(table.damaged(what));
            }
            events.push(LogEvent {
                unix_ns,
                kind: table.text(&kind[row])?.to_owned(),
                duration_ns: duration_ns[row],
                bytes: bytes[row],
                more: more[row],
                text: table.text(&text[row])?.to_owned(),
            });
        }
    }

    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is read from a table.
    fn read_back(table: &[u8]) -> Vec<LogEvent> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        fs_err::write(&path, table).unwrap();
        read(crate::open_regular(&path).unwrap()).unwrap()
    }

    #[test]
    fn events_are_read_as_they_were_written() {
        let checkpoint = LogEvent {
            unix_ns: 1,
            kind: "checkpoint".into(),
            duration_ns: Some(7),
            ..LogEvent::default()
        };
        let flush = LogEvent {
            kind: "flush".into(),
            bytes: Some(9),
            more: 4,
            text: "full".into(),
            ..LogEvent::default()
        };
        let table = to_bytes(&[checkpoint.clone(), flush.clone()]).unwrap();
        assert_eq!(read_back(&table), [checkpoint, flush]);
    }

    #[test]
    fn a_table_with_more_rows_than_are_plausible_is_damage() {
        let events = [1, 2].map(|unix_ns| LogEvent { unix_ns, ..LogEvent::default() });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        fs_err::write(&path, to_bytes(&events).unwrap()).unwrap();

        let table = TableReader::open(crate::open_regular(&path).unwrap(), &columns()).unwrap();
        assert!(table.limit_rows(2).is_ok());
        let error = table.limit_rows(1).unwrap_err();
        assert!(error.to_string().contains("it has 2 rows, of at most 1"), "{error}");
    }

    #[test]
    fn events_of_records_without_more_are_read() {
        let events =
            [1, 2].map(|unix_ns| LogEvent { unix_ns, kind: "note".into(), ..LogEvent::default() });
        let table = to_bytes_with(&events, &columns()[..5]).unwrap();
        assert_eq!(read_back(&table), events);
    }
}
