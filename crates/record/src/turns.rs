//! Rows of `turns.parquet`: the turns of a target within a step.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use crate::RecordError;
use crate::step_writer::integer;
use crate::table::{ColumnSpec, ColumnType, TableReader, TableWriter, Value, Values};

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
    /// What the server's processes used; `None` if that is not known, or if the engine works on the
    /// threads of the client.
    pub server: Option<ServerUse>,
    /// Operations that succeeded, by kind.
    pub ok: BTreeMap<String, u64>,
}

/// What the processes of a server used in a turn.
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
    /// Adds a row for each kind of operation.
    pub(crate) fn push_to<W: Write + Send>(&self, table: &mut TableWriter<W>) -> io::Result<()> {
        let server = self.server.map(ServerUse::values);
        let server = server.map_or([Value::Absent; 5], |values| values.map(integer));
        for (kind, ok) in &self.ok {
            let own = [
                integer(self.number.into()),
                integer(self.block.into()),
                integer(self.at_ns),
                integer(self.began_ns),
                integer(self.length_ns),
                integer(self.idle_ns),
                integer(self.client_cpu_ns),
                Value::Text(kind),
                integer(*ok),
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

    fn of_values(values: [u64; 5]) -> Self {
        let [cpu_ns, minor_faults, major_faults, voluntary_switches, involuntary_switches] = values;
        Self { cpu_ns, minor_faults, major_faults, voluntary_switches, involuntary_switches }
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
    while let Some(batch) = table.next_batch()? {
        let mut integers = Vec::new();
        let mut kinds = Vec::new();
        for column in batch {
            if column.defined.is_some() {
                integers.push(column.into_optional_integers());
                continue;
            }
            match column.values {
                Values::Text(values) => kinds = values,
                Values::Integer(values) => integers.push(values.into_iter().map(Some).collect()),
                Values::Number(_) | Values::Boolean(_) => {
                    unreachable!("a batch has the columns that were selected")
                }
            }
        }

        for (row, kind) in kinds.iter().enumerate() {
            let value = |column: usize| integers[column][row].map(|value| value.max(0) as u64);
            let required = |column: usize| value(column).unwrap_or(0);
            let number = u32::try_from(required(0)).unwrap_or(u32::MAX);
            if turns.last().is_none_or(|turn| turn.number != number) {
                let server = [8, 9, 10, 11, 12].map(value);
                turns.push(TurnRow {
                    number,
                    block: u32::try_from(required(1)).unwrap_or(u32::MAX),
                    at_ns: required(2),
                    began_ns: required(3),
                    length_ns: required(4),
                    idle_ns: required(5),
                    client_cpu_ns: required(6),
                    server: server[0]
                        .map(|_| ServerUse::of_values(server.map(Option::unwrap_or_default))),
                    ok: BTreeMap::new(),
                });
            }
            if let Some(turn) = turns.last_mut() {
                turn.ok.insert(table.text(kind)?.to_owned(), required(7));
            }
        }
    }
    Ok(turns)
}
