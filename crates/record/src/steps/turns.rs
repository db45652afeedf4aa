//! Rows of `turns.parquet`: the turns of a target within a step.

use std::collections::BTreeMap;
use std::io::{self, Write};

use parquet::data_type::ByteArray;
use serde::{Deserialize, Serialize};

use super::columns::integer;
use crate::RecordError;
use crate::files::{ColumnSpec, ColumnType, Rows, TableReader, TableWriter, Value, Values};

/// One turn of a target within a step: rows of `turns.parquet`, one for each kind of operation.
/// While another target has its turn, this one's clock stands still.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRow {
    /// The number of the turn in the step, from 0, over all targets.
    pub number: u32,
    /// The block that the turn belongs to, from 0. Each target has two turns in a block, and the
    /// second half of a block mirrors the first: `a b b a`.
    pub block: u32,
    /// The time since the first turn of the step, by the host's clock.
    pub at_ns: u64,
    /// The time since the step began, by the target's clock.
    pub began_ns: u64,
    /// The length of the turn, by the same clock.
    pub length_ns: u64,
    /// The time from then until the last operation in flight had ended.
    pub idle_ns: u64,
    /// The CPU time of the connections' threads in the client.
    pub client_cpu_ns: u64,
    /// The resources that the server's processes used; `None` if these are not known, or if the
    /// engine works on the threads of the client.
    pub server: Option<ServerUse>,
    /// Operations that succeeded, by kind.
    pub ok: BTreeMap<String, u64>,
}

/// The resources that a server's processes used in a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerUse {
    /// CPU time.
    pub cpu_ns: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults that read from a disk.
    pub major_faults: u64,
    /// Switches of threads that waited for something.
    pub voluntary_switches: u64,
    /// Switches of threads that could have gone on.
    pub involuntary_switches: u64,
}

impl TurnRow {
    /// Adds a row for each kind of operation; one with an empty kind for a turn in which no
    /// operation has ended, such as one within the creation of an index.
    pub(crate) fn push_to<W: Write + Send>(&self, table: &mut TableWriter<W>) -> io::Result<()> {
        let server = match self.server {
            Some(server) => server.values().map(integer),
            None => [Value::Absent; 5],
        };

        let mut counts: Vec<(&str, u64)> =
            self.ok.iter().map(|(kind, ok)| (kind.as_str(), *ok)).collect();
        if counts.is_empty() {
            counts.push(("", 0));
        }

        for (kind, ok) in counts {
            let own = [
                integer(self.number.into()),
                integer(self.block.into()),
                integer(self.at_ns),
                integer(self.began_ns),
                integer(self.length_ns),
                integer(self.idle_ns),
                integer(self.client_cpu_ns),
                Value::Text(kind),
                integer(ok),
            ];
            table.push(own.into_iter().chain(server))?;
        }

        Ok(())
    }
}

impl ServerUse {
    /// Returns the values in the order of their columns.
    fn values(self) -> [u64; 5] {
        [
            self.cpu_ns,
            self.minor_faults,
            self.major_faults,
            self.voluntary_switches,
            self.involuntary_switches,
        ]
    }
}

pub(crate) fn turn_columns() -> [ColumnSpec; 14] {
    [
        ColumnSpec::new("turn", ColumnType::Integer),
        ColumnSpec::new("block", ColumnType::Integer),
        ColumnSpec::new("at_ns", ColumnType::Integer),
        ColumnSpec::new("began_ns", ColumnType::Integer),
        ColumnSpec::new("length_ns", ColumnType::Integer),
        ColumnSpec::new("idle_ns", ColumnType::Integer),
        ColumnSpec::new("client_cpu_ns", ColumnType::Integer),
        ColumnSpec::new("kind", ColumnType::Text),
        ColumnSpec::new("ok", ColumnType::Integer),
        ColumnSpec::optional("server_cpu_ns", ColumnType::Integer),
        ColumnSpec::optional("server_minor_faults", ColumnType::Integer),
        ColumnSpec::optional("server_major_faults", ColumnType::Integer),
        ColumnSpec::optional("server_voluntary_switches", ColumnType::Integer),
        ColumnSpec::optional("server_involuntary_switches", ColumnType::Integer),
    ]
}

/// Reads all turns of a table with [`turn_columns`].
pub(crate) fn read(table: &mut TableReader) -> Result<Vec<TurnRow>, RecordError> {
    let mut turns: Vec<TurnRow> = Vec::new();
    while let Some(columns) = table.next_batch()? {
        let batch = TurnBatch::of(columns);
        for (row, kind) in batch.kinds.iter().enumerate() {
            let turn = batch.turn(row);
            // A turn has a row for each kind of operation.
            if turns.last().is_none_or(|last| last.number != turn.number) {
                turns.push(turn);
            }

            let kind = table.text(kind)?;
            if let Some(last) = turns.last_mut()
                && !kind.is_empty()
            {
                let ok = batch.count("ok", row).unwrap_or(0);
                last.ok.insert(kind.to_owned(), ok);
            }
        }
    }

    Ok(turns)
}

/// Some rows of `turns.parquet`, with their columns by name.
struct TurnBatch {
    integers: BTreeMap<String, Vec<Option<i64>>>,
    kinds: Vec<ByteArray>,
}

impl TurnBatch {
    /// Takes columns in the order of [`turn_columns`].
    fn of(columns: Vec<Rows>) -> Self {
        let mut batch = Self { integers: BTreeMap::new(), kinds: Vec::new() };
        for (spec, column) in turn_columns().into_iter().zip(columns) {
            if spec.optional {
                batch.integers.insert(spec.name, column.into_optional_integers());
                continue;
            }

            match column.values {
                Values::Text(kinds) => batch.kinds = kinds,
                Values::Integer(values) => {
                    batch.integers.insert(spec.name, values.into_iter().map(Some).collect());
                }
                Values::Number(_) | Values::Boolean(_) => {
                    unreachable!("a batch has the columns that were selected")
                }
            }
        }

        batch
    }

    /// Returns the value of a column in a row, if it is present.
    fn count(&self, column: &str, row: usize) -> Option<u64> {
        let value = *self.integers.get(column)?.get(row)?;
        value.map(|value| value.max(0) as u64)
    }

    /// Returns the turn of a row, without its operations.
    fn turn(&self, row: usize) -> TurnRow {
        let count = |column| self.count(column, row).unwrap_or(0);
        let number = |column| u32::try_from(count(column)).unwrap_or(u32::MAX);

        TurnRow {
            number: number("turn"),
            block: number("block"),
            at_ns: count("at_ns"),
            began_ns: count("began_ns"),
            length_ns: count("length_ns"),
            idle_ns: count("idle_ns"),
            client_cpu_ns: count("client_cpu_ns"),
            server: self.server(row),
            ok: BTreeMap::new(),
        }
    }

    fn server(&self, row: usize) -> Option<ServerUse> {
        let count = |column| self.count(column, row).unwrap_or(0);
        Some(ServerUse {
            cpu_ns: self.count("server_cpu_ns", row)?,
            minor_faults: count("server_minor_faults"),
            major_faults: count("server_major_faults"),
            voluntary_switches: count("server_voluntary_switches"),
            involuntary_switches: count("server_involuntary_switches"),
        })
    }
}
