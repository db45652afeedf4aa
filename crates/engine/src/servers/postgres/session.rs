//! The hot path, which sends a message and reads its reply with reused buffers.
//!
//! `start` copies the statement's Bind header into the output buffer. Each parameter is appended,
//! in binary if that is shorter. `execute` completes the message, writes once, and parses the reply
//! in the read buffer. Nothing is allocated once the buffers have grown to the size of the largest
//! message.

use std::ops::Range;

use postgres_protocol::message::frontend;

use super::connection::Connection;
use super::{Address, failure, row};
use crate::contract::{Interrupt, KeptRow, Outcome, ParamType, Rows, Session, Statement, Table};
use crate::error::Error;
use crate::net::stream::Stream;
use crate::servers::sql_kind::Client;

/// Microseconds from assay's epoch, 1970-01-01, to PostgreSQL's, 2000-01-01.
const EPOCH_OFFSET_US: i64 = 946_684_800_000_000;

/// The messages after the parameters: the binary format for all results, Execute of the unnamed
/// portal without a row limit, and Sync.
const TRAILER: [u8; 4 + 10 + 5] = [0, 1, 0, 1, b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0, b'S', 0, 0, 0, 4];

/// The length of the trailer's part in the Bind message.
const BIND_TAIL_BYTES: usize = 4;

/// The server's OIDs of integer types.
pub(super) const INT2: u32 = 21;
pub(super) const INT4: u32 = 23;
pub(super) const INT8: u32 = 20;

/// A statement that the server has prepared.
struct Prepared {
    /// The Bind message before its parameters, with the length 0.
    header: Box<[u8]>,
    param_count: u16,
    /// The type of the first returned column; 0 without columns.
    first_column: u32,
    /// The types of all returned columns.
    columns: Box<[u32]>,
    /// Each execution keeps its first row.
    keeps_row: bool,
}

/// A connection to PostgreSQL, for one thread.
pub struct PostgresSession {
    connection: Connection,
    statements: Vec<Prepared>,
    /// The number of statement names used so far, including statements that were refused after
    /// they were prepared.
    name_count: u32,
    /// The message of the current operation.
    message: Vec<u8>,
    /// The statement of the message, unless it is text.
    current: usize,
    is_text: bool,
    given: u16,
    is_complete: bool,
    /// Statements that query the last value of a table's sequence, by table name.
    last_key: Vec<(String, Statement)>,
    /// The first row of the last statement that keeps it.
    row: KeptRow,
}

impl Client for PostgresSession {
    fn connect(address: &Address) -> Result<Self, Error> {
        Self::connect(address)
    }

    fn stream(&self) -> &Stream {
        &self.connection.wire.stream
    }
}

impl PostgresSession {
    /// Connects and logs in.
    ///
    /// # Errors
    /// Class [`crate::ErrorClass::ConnectionLost`] when the server cannot be reached,
    /// [`crate::ErrorClass::Refused`] when it refuses the login.
    pub fn connect(address: &Address) -> Result<Self, Error> {
        Ok(Self {
            connection: Connection::open(address)?,
            statements: Vec::new(),
            name_count: 0,
            message: Vec::with_capacity(16 * 1024),
            current: 0,
            is_text: false,
            given: 0,
            is_complete: false,
            last_key: Vec::new(),
            row: KeptRow::default(),
        })
    }

    pub(super) fn setting(&mut self, name: &str) -> Result<String, Error> {
        let values = self.query_column(&format!("show {name}"))?;
        values
            .into_iter()
            .next()
            .ok_or_else(|| failure::protocol(format!("the server does not report its `{name}`")))
    }

    /// Reads the reply to a statement to prepare. Returns the types of its columns.
    fn read_description(&mut self, name: &str, params: &[ParamType]) -> Result<Vec<u32>, Error> {
        let mut columns = Vec::new();

        loop {
            let (tag, body) = self.connection.message()?;
            match tag {
                b'1' | b'n' | b'N' | b'S' | b'A' => {}
                b't' => self.check_param_count(name, body, params.len())?,
                b'T' => match row::column_types(self.connection.bytes(body)) {
                    Some(types) => columns = types,
                    None => {
                        let what = "a truncated description of columns";
                        return Err(self.connection.broken(what));
                    }
                },
                b'E' => return Err(self.connection.refusal(body)),
                b'Z' => return Ok(columns),
                _ => {
                    let what = format!(
                        "unexpected message {} in a reply to a statement to prepare",
                        tag.escape_ascii()
                    );
                    return Err(self.connection.broken(what));
                }
            }
        }
    }

    /// Returns the statement that reads the last key that this session was assigned in a table;
    /// `None` if its key has no sequence.
    fn last_key_statement(&mut self, table: &Table) -> Result<Option<Statement>, Error> {
        if let Some((_, statement)) = self.last_key.iter().find(|(name, _)| *name == table.name) {
            return Ok(Some(*statement));
        }

        // Resolves the name here, so that each query needs no lookup.
        let sql = format!("select pg_get_serial_sequence('{}', '{}')", table.name, table.key());
        let rows = self.query(&sql)?;
        let Some(Some(sequence)) = rows.first().and_then(|row| row.first()) else {
            return Ok(None);
        };

        let statement = self.prepare(&format!("select currval('{sequence}'::regclass)"), &[])?;
        self.last_key.push((table.name.clone(), statement));
        Ok(Some(statement))
    }

    /// Checks the number of parameters in a ParameterDescription.
    fn check_param_count(
        &mut self,
        name: &str,
        body: Range<usize>,
        declared: usize,
    ) -> Result<(), Error> {
        let Some(count) = self.connection.bytes(body).first_chunk() else {
            let what = "a description of parameters without their count";
            return Err(self.connection.broken(what));
        };
        let count = u16::from_be_bytes(*count);
        if usize::from(count) == declared {
            return Ok(());
        }

        // Reads the rest of the reply, so that the session remains usable.
        while self.connection.message()?.0 != b'Z' {}
        Err(Error::other(format!(
            "statement {name} has {count} parameters, but {declared} are declared"
        )))
    }

    /// Keeps a row of the current statement.
    fn keep(&mut self, body: Range<usize>) -> Result<(), Error> {
        let columns = &self.statements[self.current].columns;
        match row::keep(columns, self.connection.bytes(body), &mut self.row) {
            Some(()) => Ok(()),
            None => Err(self.connection.broken("a truncated row")),
        }
    }

    /// Completes the message with its length and the trailer.
    #[inline]
    fn complete(&mut self) {
        debug_assert_eq!(
            self.statements.get(self.current).map(|statement| statement.param_count),
            Some(self.given),
            "a parameter was left out or given twice"
        );
        self.message.extend_from_slice(&TRAILER);

        // The length of the Bind message without its tag. It stays below 2 GiB, because there are
        // at most 65,535 parameters, which are much shorter.
        let length = (self.message.len() - (TRAILER.len() - BIND_TAIL_BYTES) - 1) as u32;
        if let Some(place) = self.message.get_mut(1..5) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        self.is_complete = true;
    }
}

impl Session for PostgresSession {
    fn prepare(&mut self, sql: &str, params: &[ParamType]) -> Result<Statement, Error> {
        let too_many =
            || Error::other("a session supports at most 65535 statements and 65535 parameters");
        let number = u16::try_from(self.statements.len()).map_err(|_| too_many())?;
        let param_count = u16::try_from(params.len()).map_err(|_| too_many())?;

        let name = format!("s{}", self.name_count);
        self.name_count += 1;

        let types = params.iter().map(|param| match param {
            ParamType::Int4 => INT4,
            ParamType::Int8 => INT8,
            ParamType::Timestamp => 1114,
            ParamType::Text => 25,
        });

        self.connection.send_with(|output| {
            frontend::parse(&name, sql, types, output)?;
            frontend::describe(b'S', &name, output)?;
            frontend::sync(output);
            Ok(())
        })?;
        let columns = self.read_description(&name, params)?;

        let mut header = vec![b'B', 0, 0, 0, 0];
        header.push(0); // the unnamed portal
        header.extend_from_slice(name.as_bytes());
        header.push(0);
        header.extend_from_slice(&[0, 1, 0, 1]); // one format code for all parameters: binary
        header.extend_from_slice(&param_count.to_be_bytes());
        self.statements.push(Prepared {
            header: header.into(),
            param_count,
            first_column: columns.first().copied().unwrap_or(0),
            columns: columns.into(),
            keeps_row: false,
        });
        Ok(Statement(number))
    }

    #[inline]
    fn start(&mut self, statement: Statement) {
        self.current = usize::from(statement.0);
        self.message.clear();
        self.message.extend_from_slice(&self.statements[self.current].header);
        self.given = 0;
        self.is_text = false;
        self.is_complete = false;
    }

    fn start_text(&mut self, sql: &str) {
        // The tag, the length without the tag, the text, and a terminating zero.
        let length = (4 + sql.len() + 1) as u32;
        self.message.clear();
        self.message.push(b'Q');
        self.message.extend_from_slice(&length.to_be_bytes());
        self.message.extend_from_slice(sql.as_bytes());
        self.message.push(0);
        self.is_text = true;
        self.is_complete = true;
    }

    #[inline]
    fn int4(&mut self, value: i32) {
        let mut bytes = [0, 0, 0, 4, 0, 0, 0, 0];
        bytes[4..].copy_from_slice(&value.to_be_bytes());
        self.message.extend_from_slice(&bytes);
        self.given += 1;
    }

    #[inline]
    fn int8(&mut self, value: i64) {
        let mut bytes = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes[4..].copy_from_slice(&value.to_be_bytes());
        self.message.extend_from_slice(&bytes);
        self.given += 1;
    }

    #[inline]
    fn timestamp(&mut self, unix_us: i64) {
        self.int8(unix_us - EPOCH_OFFSET_US);
    }

    #[inline]
    fn text(&mut self, value: &str) {
        // The server refuses longer texts, which exceed its message limit.
        self.message.extend_from_slice(&(value.len() as u32).to_be_bytes());
        self.message.extend_from_slice(value.as_bytes());
        self.given += 1;
    }

    fn execute(&mut self) -> Result<Outcome, Error> {
        if !self.is_complete {
            self.complete();
        }

        self.connection.send(&self.message)?;

        let statement = self.statements.get(self.current).filter(|_| !self.is_text);
        let first_column = statement.map_or(0, |statement| statement.first_column);
        let keeps_row = statement.is_some_and(|statement| statement.keeps_row);
        if keeps_row {
            self.row.clear();
        }
        let (mut returned, mut changed, mut value) = (0, 0, None);

        loop {
            let (tag, body) = self.connection.message()?;
            match tag {
                b'D' => {
                    if returned == 0 {
                        value = first_value(first_column, self.connection.bytes(body.clone()));
                        if keeps_row {
                            self.keep(body)?;
                        }
                    }
                    returned += 1;
                }
                b'C' => changed = tag_rows(self.connection.bytes(body)),
                b'Z' => {
                    return Ok(Outcome {
                        rows: if returned > 0 { returned } else { changed },
                        value,
                    });
                }
                b'N' if self.is_text => {
                    value = failure::outcome_of(self.connection.bytes(body)).or(value);
                }
                // BindComplete, EmptyQueryResponse, and messages that may come at any time.
                b'2' | b'I' | b'N' | b'S' | b'A' => {}
                // The description of rows, which is known for a prepared statement.
                b'T' if self.is_text => {}
                b'E' => return Err(self.connection.refusal(body)),
                _ => {
                    let what = format!(
                        "unexpected message {} in a reply to a statement",
                        tag.escape_ascii()
                    );
                    return Err(self.connection.broken(what));
                }
            }
        }
    }

    fn keep_row(&mut self, statement: Statement) {
        self.statements[usize::from(statement.0)].keeps_row = true;
    }

    fn row(&self) -> Option<&KeptRow> {
        Some(&self.row)
    }

    fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        self.connection.query(sql)
    }

    fn last_key(&mut self, table: &Table) -> Result<Option<i64>, Error> {
        let Some(statement) = self.last_key_statement(table)? else {
            return Ok(None);
        };

        self.start(statement);

        match self.execute() {
            Ok(outcome) => Ok(outcome.value),
            // This session has not used the sequence yet.
            Err(error) if error.code.as_deref() == Some("55000") => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.connection.backend_pid()
    }

    fn interrupt(&self) -> Result<Interrupt, Error> {
        self.connection.interrupt()
    }
}

/// Parses the first value of a binary DataRow. Returns `None` unless it is an integer.
#[inline]
fn first_value(column: u32, body: &[u8]) -> Option<i64> {
    match (column, body) {
        (INT8, [_, _, 0, 0, 0, 8, value @ ..]) => Some(i64::from_be_bytes(*value.first_chunk()?)),
        (INT4, [_, _, 0, 0, 0, 4, value @ ..]) => {
            Some(i32::from_be_bytes(*value.first_chunk()?).into())
        }
        (INT2, [_, _, 0, 0, 0, 2, value @ ..]) => {
            Some(i16::from_be_bytes(*value.first_chunk()?).into())
        }
        _ => None,
    }
}

/// Parses the number at the end of a command tag, such as 100 in `INSERT 0 100`; 0 without one.
#[inline]
fn tag_rows(tag: &[u8]) -> u64 {
    let (mut rows, mut unit) = (0u64, 1u64);

    for &byte in tag.iter().rev().skip_while(|&&byte| byte == 0) {
        if !byte.is_ascii_digit() {
            break;
        }
        rows = rows.wrapping_add(u64::from(byte - b'0').wrapping_mul(unit));
        unit = unit.wrapping_mul(10);
    }

    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_count_is_the_last_number_of_a_tag() {
        assert_eq!(tag_rows(b"INSERT 0 100\0"), 100);
        assert_eq!(tag_rows(b"DELETE 7\0"), 7);
        assert_eq!(tag_rows(b"BEGIN\0"), 0);
        assert_eq!(tag_rows(b""), 0);
        assert_eq!(
            tag_rows(b"99999999999999999999999999\0"),
            tag_rows(b"99999999999999999999999999")
        );
    }

    #[test]
    fn a_first_value_is_read_by_its_type() {
        assert_eq!(
            first_value(INT8, &[0, 1, 0, 0, 0, 8, 255, 255, 255, 255, 255, 255, 255, 254]),
            Some(-2)
        );
        assert_eq!(first_value(INT4, &[0, 2, 0, 0, 0, 4, 0, 0, 1, 0, 9, 9]), Some(256));
        assert_eq!(first_value(INT4, &[0, 1, 255, 255, 255, 255]), None);
        assert_eq!(first_value(INT4, &[0, 1, 0, 0, 0, 4, 1]), None);
        assert_eq!(first_value(25, &[0, 1, 0, 0, 0, 4, 0, 0, 0, 1]), None);
    }
}
