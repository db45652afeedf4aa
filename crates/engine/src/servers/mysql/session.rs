//! The hot path, which sends a message and reads its reply with reused buffers.
//!
//! `start` copies the statement's header into the output buffer. Each parameter is appended in
//! binary. `execute` adds the length, writes once, and parses the reply in the read buffer. Nothing
//! is allocated once the buffers have grown to the size of the largest message. As in the servers'
//! own clients, only a statement's first execution sends the types of parameters, and MariaDB omits
//! unchanged definitions of columns.

use std::ops::Range;

use super::connection::{Connection, ResultColumns};
use super::dates::Dates;
use super::packet::{self, Done, HEADER_BYTES, kind};
use super::{Address, row};
use crate::contract::{Interrupt, KeptRow, Outcome, ParamType, Rows, Session, Statement, Table};
use crate::error::Error;
use crate::net::stream::Stream;
use crate::servers::sql_kind::Client;

/// The server's reply to a statement to prepare.
struct PrepareReply {
    id: u32,
    column_count: u16,
    param_count: u16,
}

/// A result with rows.
struct RowsResult {
    outcome: Outcome,
    /// Another result follows: a procedure may return several.
    has_next: bool,
}

/// The start of the message that executes a statement.
struct Headers {
    /// The message before the parameters, including their types.
    with_types: Box<[u8]>,
    /// The message before the parameters, without their types.
    plain: Box<[u8]>,
}

impl Headers {
    fn new(id: u32, params: &[ParamType]) -> Self {
        let mut plain = vec![0; HEADER_BYTES];
        plain.push(packet::COM_STMT_EXECUTE);

        plain.extend_from_slice(&id.to_le_bytes());
        // No cursor, one execution.
        plain.extend_from_slice(&[0, 1, 0, 0, 0]);

        if params.is_empty() {
            return Self { with_types: plain.clone().into(), plain: plain.into() };
        }

        // The bitmap of NULL parameters, which are none, and a flag for the types.
        plain.resize(plain.len() + params.len().div_ceil(8), 0);
        let mut with_types = plain.clone();
        plain.push(0);
        with_types.push(1);

        for param in params {
            let kind = match param {
                ParamType::Int4 => kind::LONG,
                ParamType::Int8 => kind::LONGLONG,
                ParamType::Timestamp => kind::DATETIME,
                ParamType::Text => kind::VAR_STRING,
            };
            with_types.extend_from_slice(&[kind, 0]);
        }

        Self { with_types: with_types.into(), plain: plain.into() }
    }
}

/// A statement that the server has prepared.
struct Prepared {
    headers: Headers,
    /// The server knows the types.
    is_bound: bool,
    param_count: u16,
    /// The last known type and flags of the first returned column.
    first_column: (u8, u16),
    /// The types and flags of all returned columns: the last known ones if it keeps its first row.
    columns: Vec<(u8, u16)>,
    /// Each execution keeps its first row.
    keeps_row: bool,
    /// The table that the statement inserts into, as an index into [`MysqlSession::last_keys`].
    inserts_into: Option<usize>,
}

/// A connection to MySQL or MariaDB, for one thread.
pub struct MysqlSession {
    connection: Connection,
    statements: Vec<Prepared>,
    /// The message of the current operation.
    message: Vec<u8>,
    /// The statement of the message, unless it is text.
    current: usize,
    is_text: bool,
    bound_count: u16,
    dates: Dates,
    /// The tables that the session inserted into, and the largest key assigned in each.
    last_keys: Vec<(String, Option<i64>)>,
    /// The interval between assigned keys, queried once.
    key_step: Option<i64>,
    /// The first row of the last statement that keeps it.
    row: KeptRow,
}

impl Client for MysqlSession {
    fn connect(address: &Address) -> Result<Self, Error> {
        Self::connect(address)
    }

    fn stream(&self) -> &Stream {
        &self.connection.wire.stream
    }
}

impl MysqlSession {
    /// Connects and logs in.
    ///
    /// # Errors
    /// Class [`crate::ErrorClass::ConnectionLost`] when the server cannot be reached,
    /// [`crate::ErrorClass::Refused`] when it refuses the login.
    pub fn connect(address: &Address) -> Result<Self, Error> {
        Ok(Self {
            connection: Connection::open(address)?,
            statements: Vec::new(),
            message: Vec::with_capacity(16 * 1024),
            current: 0,
            is_text: false,
            bound_count: 0,
            dates: Dates::default(),
            last_keys: Vec::new(),
            key_step: None,
            row: KeptRow::default(),
        })
    }

    /// Returns the value of a system variable; `None` if the server lacks it, or it is NULL.
    pub(super) fn variable(&mut self, name: &str) -> Result<Option<String>, Error> {
        self.shown("global variables", name)
    }

    /// Returns the version in the server's greeting.
    pub(super) fn server_version(&self) -> &str {
        &self.connection.server_version
    }

    /// Returns the values of the first row of `sql` that are not NULL, with the names of their
    /// columns.
    pub(super) fn first_row(&mut self, sql: &str) -> Result<Vec<(String, String)>, Error> {
        self.connection.first_row(sql)
    }

    /// Returns the value of `name` in `show KIND like 'NAME'`.
    pub(super) fn shown(&mut self, kind: &str, name: &str) -> Result<Option<String>, Error> {
        let rows = self.query(&format!("show {kind} like '{name}'"))?;
        let row = rows.into_iter().next();
        Ok(row.and_then(|row| row.into_iter().nth(1)?))
    }

    /// Returns the index in `last_keys` of the table that `sql` inserts into.
    fn last_key_index(&mut self, sql: &str) -> Option<usize> {
        let table = inserted_table(sql)?;
        let known = self.last_keys.iter().position(|(name, _)| name == table);
        Some(known.unwrap_or_else(|| {
            self.last_keys.push((table.to_string(), None));
            self.last_keys.len() - 1
        }))
    }

    /// Saves the largest key that an insert was assigned.
    #[inline]
    fn save_key(&mut self, index: Option<usize>, done: Done) {
        if let Some(index) = index
            && done.first_key > 0
            && let Some((_, last)) = self.last_keys.get_mut(index)
        {
            let step = self.key_step.unwrap_or(1);
            let others = done.rows.saturating_sub(1).cast_signed();
            // The server assigns one statement's keys without gaps.
            let key = done.first_key.cast_signed() + others * step;
            *last = Some(last.map_or(key, |last| last.max(key)));
        }
    }

    /// Returns whether the message has all parameters of its statement.
    fn is_complete(&self) -> bool {
        let statement = self.statements.get(self.current);
        self.is_text || statement.is_some_and(|statement| statement.param_count == self.bound_count)
    }

    /// Reads the reply to a statement as text.
    fn text_outcome(&mut self) -> Result<Outcome, Error> {
        let (mut rows, mut value) = (0, None);
        let count = |row: &[u8], columns| {
            rows += 1;
            // The outcome of a block is its last row.
            value = if columns == 1 { packet::text_integer(row) } else { None };
            Some(())
        };
        let done = self.connection.read_text(|_| {}, count)?;
        Ok(Outcome { rows: done.map_or(rows, |done| done.rows), value })
    }

    /// Prepares `sql`, and reads the first packet of the reply.
    fn send_prepare(&mut self, sql: &str) -> Result<PrepareReply, Error> {
        self.connection.send_command(packet::COM_STMT_PREPARE, sql.as_bytes())?;
        let body = self.connection.packet()?;

        match *self.connection.bytes(body.clone()) {
            [packet::OK, a, b, c, d, e, f, g, h, ..] => Ok(PrepareReply {
                id: u32::from_le_bytes([a, b, c, d]),
                column_count: u16::from_le_bytes([e, f]),
                param_count: u16::from_le_bytes([g, h]),
            }),
            [packet::ERR, ..] => Err(self.connection.refusal(body)),
            _ => {
                let what = "a reply of an unknown kind to a statement to prepare";
                Err(self.connection.broken(what))
            }
        }
    }

    /// Reads the definitions of a result's columns and the packet after them. Returns the first
    /// column's type and flags.
    fn read_definitions(&mut self, columns: u64) -> Result<(u8, u16), Error> {
        let body = self.connection.packet()?;
        let Some(first_column) = packet::column_type(self.connection.bytes(body)) else {
            return Err(self.connection.broken("a truncated column definition"));
        };

        for _ in 1..columns {
            self.connection.packet()?;
        }
        self.connection.end_of_definitions()?;
        Ok(first_column)
    }

    /// Reads the definitions of all columns of a result into `types`, and the packet after them.
    fn read_all_definitions(
        &mut self,
        columns: u64,
        types: &mut Vec<(u8, u16)>,
    ) -> Result<(), Error> {
        types.clear();
        for _ in 0..columns {
            let body = self.connection.packet()?;
            match packet::column_type(self.connection.bytes(body)) {
                Some(column) => types.push(column),
                None => return Err(self.connection.broken("a truncated column definition")),
            }
        }
        self.connection.end_of_definitions()
    }

    /// Reads the definitions of the columns of the current statement, which keeps its first row.
    fn redefine(&mut self, columns: u64) -> Result<(), Error> {
        let mut types = std::mem::take(&mut self.statements[self.current].columns);
        let read = self.read_all_definitions(columns, &mut types);
        let statement = &mut self.statements[self.current];
        statement.first_column = types.first().copied().unwrap_or_default();
        statement.columns = types;
        read
    }

    /// Keeps a row of the current statement.
    fn keep(&mut self, body: Range<usize>) -> Result<(), Error> {
        let columns = &self.statements[self.current].columns;
        match row::keep(columns, self.connection.bytes(body), &mut self.row) {
            Some(()) => Ok(()),
            None => Err(self.connection.broken("a truncated row")),
        }
    }

    /// Reads all rows. Returns their number, and the first value of the first row.
    #[inline]
    fn read_rows(&mut self, columns: ResultColumns) -> Result<RowsResult, Error> {
        let keeps_row = self.statements[self.current].keeps_row;
        if columns.definitions_follow && keeps_row {
            self.redefine(columns.count)?;
        } else if columns.definitions_follow {
            self.statements[self.current].first_column = self.read_definitions(columns.count)?;
        } else {
            self.connection.end_of_definitions()?;
        }

        let first_column = self.statements[self.current].first_column;
        let mut outcome = Outcome::default();

        loop {
            let body = self.connection.packet()?;

            if let [packet::OK, ..] = self.connection.bytes(body.clone()) {
                if outcome.rows == 0 {
                    let row = self.connection.bytes(body.clone());
                    outcome.value = packet::first_value(row, columns.count, first_column);
                    if keeps_row {
                        self.keep(body)?;
                    }
                }
                outcome.rows += 1;
            } else if self.connection.is_end(&body) {
                return Ok(RowsResult { outcome, has_next: self.connection.has_next(&body) });
            } else if let [packet::ERR, ..] = self.connection.bytes(body.clone()) {
                return Err(self.connection.refusal(body));
            } else {
                return Err(self.connection.broken("a row of an unknown kind"));
            }
        }
    }

    /// Reads the results after the first one, which had `outcome`. Returns the outcome of the last one
    /// with rows.
    #[cold]
    fn read_next_results(&mut self, mut outcome: Outcome) -> Result<Outcome, Error> {
        loop {
            let body = self.connection.packet()?;
            match self.connection.bytes(body.clone()) {
                // A call ends with a result without rows.
                [packet::OK, ..] => return Ok(outcome),
                [packet::ERR, ..] => return Err(self.connection.refusal(body)),
                _ => {}
            }

            let Some(columns) = self.connection.columns(body) else {
                return Err(self.connection.broken("a reply of an unknown kind"));
            };
            let result = self.read_rows(columns)?;
            outcome = result.outcome;
            if !result.has_next {
                return Ok(outcome);
            }
        }
    }
}

impl Session for MysqlSession {
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<Statement, Error> {
        let too_many =
            || Error::other("a session supports at most 65535 statements and 65535 parameters");
        let number = u16::try_from(self.statements.len()).map_err(|_| too_many())?;
        let param_count = u16::try_from(params.len()).map_err(|_| too_many())?;

        if self.key_step.is_none() {
            let step = self.query_i64("select @@auto_increment_increment")?;
            self.key_step = Some(step.unwrap_or(1));
        }

        // The whole reply is read before anything is refused, so that the connection can be used.
        let reply = self.send_prepare(sql)?;
        self.connection.skip_definitions(reply.param_count.into())?;
        let mut columns = Vec::new();
        if reply.column_count > 0 {
            self.read_all_definitions(reply.column_count.into(), &mut columns)?;
        }
        if reply.param_count != param_count {
            return Err(Error::other(format!(
                "the statement has {} parameters, but {param_count} are declared",
                reply.param_count
            )));
        }

        let headers = Headers::new(reply.id, params);
        let inserts_into = self.last_key_index(sql);
        self.statements.push(Prepared {
            headers,
            is_bound: false,
            param_count,
            first_column: columns.first().copied().unwrap_or_default(),
            columns,
            keeps_row: false,
            inserts_into,
        });
        Ok(Statement(number))
    }

    #[inline]
    fn start(&mut self, statement: Statement) {
        self.current = usize::from(statement.0);
        self.message.clear();
        let prepared = &self.statements[self.current];
        let headers = &prepared.headers;
        let header = if prepared.is_bound { &headers.plain } else { &headers.with_types };
        self.message.extend_from_slice(header);
        self.bound_count = 0;
        self.is_text = false;
    }

    fn start_text(&mut self, sql: &str) {
        self.message.clear();
        self.message.extend_from_slice(&[0; HEADER_BYTES]);
        self.message.push(packet::COM_QUERY);
        self.message.extend_from_slice(sql.as_bytes());
        self.is_text = true;
    }

    #[inline]
    fn int4(&mut self, value: i32) {
        self.message.extend_from_slice(&value.to_le_bytes());
        self.bound_count += 1;
    }

    #[inline]
    fn int8(&mut self, value: i64) {
        self.message.extend_from_slice(&value.to_le_bytes());
        self.bound_count += 1;
    }

    #[inline]
    fn timestamp(&mut self, unix_us: i64) {
        let (date_and_time, micros) = self.dates.split(unix_us);
        self.message.extend_from_slice(&date_and_time);
        if micros > 0 {
            let length = self.message.len() - date_and_time.len();
            self.message[length] = 11;
            self.message.extend_from_slice(&micros.to_le_bytes());
        }
        self.bound_count += 1;
    }

    #[inline]
    fn text(&mut self, value: &str) {
        packet::push_integer(&mut self.message, value.len() as u64);
        self.message.extend_from_slice(value.as_bytes());
        self.bound_count += 1;
    }

    fn execute(&mut self) -> Result<Outcome, Error> {
        debug_assert!(self.is_complete(), "a parameter was left out or bound twice");
        self.connection.send(&mut self.message)?;
        if self.is_text {
            return self.text_outcome();
        }
        if self.statements[self.current].keeps_row {
            self.row.clear();
        }

        let body = self.connection.packet()?;
        let outcome = match self.connection.bytes(body.clone()) {
            [packet::OK, ..] => {
                let Some(done) = Done::read(self.connection.bytes(body)) else {
                    return Err(self.connection.broken("a truncated reply"));
                };
                let place = self.statements[self.current].inserts_into;
                self.save_key(place, done);
                Outcome { rows: done.rows, value: None }
            }
            [packet::ERR, ..] => return Err(self.connection.refusal(body)),
            _ => match self.connection.columns(body) {
                Some(columns) => {
                    let first = self.read_rows(columns)?;
                    if first.has_next {
                        self.read_next_results(first.outcome)?
                    } else {
                        first.outcome
                    }
                }
                None => return Err(self.connection.broken("a reply of an unknown kind")),
            },
        };

        // From now on, the server knows the types of the parameters.
        self.statements[self.current].is_bound = true;
        Ok(outcome)
    }

    fn keep_row(&mut self, statement: Statement) {
        self.statements[usize::from(statement.0)].keeps_row = true;
    }

    fn row(&self) -> Option<&KeptRow> {
        Some(&self.row)
    }

    fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        let (rows, done) = self.connection.query(sql)?;
        if let Some(done) = done {
            let place = self.last_key_index(sql);
            self.save_key(place, done);
        }

        Ok(rows)
    }

    fn last_key(&mut self, table: &Table) -> Result<Option<i64>, Error> {
        let known = self.last_keys.iter().find(|(name, _)| *name == table.name);
        Ok(known.and_then(|(_, last)| *last))
    }

    fn server_thread(&mut self) -> Option<u32> {
        // A thread of a pool serves several connections.
        let handling = self.variable("thread_handling").ok()?;
        if handling.is_some_and(|handling| handling != "one-thread-per-connection") {
            return None;
        }

        let sql = if self.server_version().contains("MariaDB") {
            "select tid from information_schema.processlist where id = connection_id()"
        } else {
            "select thread_os_id from performance_schema.threads where processlist_id = connection_id()"
        };

        let tid = self.query_i64(sql).ok()??;
        u32::try_from(tid).ok().filter(|&tid| tid > 0)
    }

    fn interrupt(&self) -> Result<Interrupt, Error> {
        self.connection.interrupt()
    }
}

/// Returns the table in `insert into TABLE (...`.
fn inserted_table(sql: &str) -> Option<&str> {
    let mut words = sql.split_ascii_whitespace();
    for expected in ["insert", "into"] {
        if !words.next()?.eq_ignore_ascii_case(expected) {
            return None;
        }
    }
    words.next()?.split('(').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_an_insert_is_found() {
        assert_eq!(inserted_table("insert into pi1 (a) values (?)"), Some("pi1"));
        assert_eq!(inserted_table("INSERT INTO pi1(a) values (1)"), Some("pi1"));
        assert_eq!(inserted_table("delete from pi1"), None);
        assert_eq!(inserted_table(""), None);
    }
}
