//! A connection: packets in a reused buffer, and statements as text.

use std::ops::Range;
use std::time::Duration;

use super::packet::{self, BODY_BYTES_MAX, Done, HEADER_BYTES, Reader};
use super::{Address, SslMode, failure};
use crate::contract::{Interrupt, Rows};
use crate::error::{Error, ErrorClass};
use crate::servers::wire::Wire;

/// A connection that has logged in.
pub(super) struct Connection {
    pub(super) wire: Wire,
    /// The message written outside of the measured path, including its header.
    pub(super) output: Vec<u8>,
    /// The number of the next packet in an exchange, which only the login needs.
    sequence: u8,
    /// No packet marks the end of the columns, and an OK packet ends the rows.
    pub(super) has_short_results: bool,
    /// Results of prepared statements may omit the definitions of columns.
    pub(super) omits_definitions: bool,
    pub(super) thread_id: u32,
    /// The version in the server's greeting.
    pub(super) server_version: String,
    pub(super) address: Address,
}

/// The columns of a result, as its first packet announces them.
#[derive(Clone, Copy)]
pub(super) struct ResultColumns {
    pub(super) count: u64,
    /// The definitions of the columns are the next packets.
    pub(super) definitions_follow: bool,
}

/// The end of a result as text.
struct TextResult {
    /// The end of a result without rows.
    done: Option<Done>,
    /// Another result follows.
    has_next: bool,
}

impl Connection {
    /// Connects and logs in.
    pub(super) fn open(address: &Address) -> Result<Self, Error> {
        let error = match Self::open_as(address, address.ssl_mode) {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };

        // The TLS versions of old servers are too weak for this client.
        let is_of_client = error.class == ErrorClass::Refused && error.code.is_none();
        if address.ssl_mode == SslMode::Prefer && is_of_client {
            return Self::open_as(address, SslMode::Disable).map_err(|_| error);
        }
        Err(error)
    }

    fn open_as(address: &Address, mode: SslMode) -> Result<Self, Error> {
        let mut connection = Self {
            wire: Wire::new(address.connect()?),
            output: Vec::new(),
            sequence: 0,
            has_short_results: false,
            omits_definitions: false,
            thread_id: 0,
            server_version: String::new(),
            address: address.clone(),
        };

        connection.log_in(mode)?;
        connection.wire.stream.limit(None)?;
        Ok(connection)
    }

    /// Begins a message.
    pub(super) fn begin(&mut self) {
        self.output.clear();
        self.output.extend_from_slice(&[0; HEADER_BYTES]);
    }

    /// Sends the message as the next packet of the exchange.
    pub(super) fn send_message(&mut self) -> Result<(), Error> {
        let mut output = std::mem::take(&mut self.output);
        let result = self.send_numbered(&mut output, self.sequence);
        // A request for TLS gets no reply with the next number.
        self.sequence = self.sequence.wrapping_add(1);
        self.output = output;
        result
    }

    pub(super) fn reply(&mut self, body: &[u8]) -> Result<(), Error> {
        self.begin();
        self.output.extend_from_slice(body);
        self.send_message()
    }

    /// Begins an exchange with a command and its argument.
    pub(super) fn send_command(&mut self, command: u8, text: &[u8]) -> Result<(), Error> {
        self.begin();
        self.output.push(command);
        self.output.extend_from_slice(text);
        self.sequence = 0;
        self.send_message()
    }

    /// Sends a message that begins an exchange, and has space for its header at its start.
    #[inline]
    pub(super) fn send(&mut self, message: &mut [u8]) -> Result<(), Error> {
        self.send_numbered(message, 0)
    }

    #[inline]
    fn send_numbered(&mut self, message: &mut [u8], number: u8) -> Result<(), Error> {
        let length = message.len() - HEADER_BYTES;
        if length >= BODY_BYTES_MAX {
            return self.send_split(&message[HEADER_BYTES..], number);
        }
        // Three bytes, checked above.
        let [a, b, c, _] = (length as u32).to_le_bytes();
        message[..HEADER_BYTES].copy_from_slice(&[a, b, c, number]);
        self.write(message)
    }

    /// Sends a long body in several packets. The last one is shorter than the maximum, and may be
    /// empty.
    #[cold]
    fn send_split(&mut self, body: &[u8], mut number: u8) -> Result<(), Error> {
        let mut remaining = body;
        loop {
            let (packet, after) = remaining.split_at(remaining.len().min(BODY_BYTES_MAX));
            let [a, b, c, _] = (packet.len() as u32).to_le_bytes();

            self.write(&[a, b, c, number])?;
            self.write(packet)?;

            // After a packet of the largest size another one follows, even if it is empty.
            if packet.len() < BODY_BYTES_MAX {
                return Ok(());
            }
            number = number.wrapping_add(1);

            remaining = after;
        }
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self.wire.stream.write_all(bytes) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.write_failed(&error)),
        }
    }

    /// Returns the error of a failed write. Before the server closed the connection, it may have
    /// sent the reason.
    #[cold]
    fn write_failed(&mut self, error: &std::io::Error) -> Error {
        let mut failed = failure::from_io("write to the server", error);
        if let Ok(body) = self.packet()
            && let [packet::ERR, ..] = self.bytes(body.clone())
        {
            failed = failure::from_packet(self.bytes(body));
        }
        self.wire.lost(failed)
    }

    /// Reads the next packet. Returns the range of its body in [`bytes`](Self::bytes).
    #[inline]
    pub(super) fn packet(&mut self) -> Result<Range<usize>, Error> {
        loop {
            if let [a, b, c, number, ..] = *self.wire.unread() {
                let length = u32::from_le_bytes([a, b, c, 0]) as usize;
                if length == BODY_BYTES_MAX {
                    return self.joined_packet();
                }
                if let Some(body) = self.wire.take(HEADER_BYTES, length) {
                    self.sequence = number.wrapping_add(1);
                    return Ok(body);
                }
            }

            self.wire.fill()?;
        }
    }

    /// Reads a body in several packets, and removes the headers between them.
    #[cold]
    fn joined_packet(&mut self) -> Result<Range<usize>, Error> {
        let mut length = BODY_BYTES_MAX;
        loop {
            // The end of the joined body, where the next header begins.
            let next = HEADER_BYTES + length;
            self.wire.fill_to(next + HEADER_BYTES)?;
            let packet_length = match self.wire.unread()[next..] {
                [a, b, c, number, ..] => {
                    self.sequence = number.wrapping_add(1);
                    u32::from_le_bytes([a, b, c, 0]) as usize
                }
                _ => return Err(self.broken("a packet without a header")),
            };

            self.wire.fill_to(next + HEADER_BYTES + packet_length)?;
            self.wire.cut(next..next + HEADER_BYTES);
            length += packet_length;
            if packet_length < BODY_BYTES_MAX
                && let Some(body) = self.wire.take(HEADER_BYTES, length)
            {
                return Ok(body);
            }
        }
    }

    /// Returns a packet's body, which is valid until the next call of [`packet`](Self::packet).
    #[inline]
    pub(super) fn bytes(&self, body: Range<usize>) -> &[u8] {
        self.wire.bytes(body)
    }

    /// Returns the error in an ERR packet.
    #[cold]
    pub(super) fn refusal(&self, body: Range<usize>) -> Error {
        let error = failure::from_packet(self.bytes(body));
        // An interrupt ends the connection, and the server may report that first.
        match error.class {
            ErrorClass::ConnectionLost => self.wire.lost(error),
            _ => error,
        }
    }

    /// Returns the error of a protocol violation, after which the connection cannot be used.
    #[cold]
    pub(super) fn broken(&self, what: impl Into<String>) -> Error {
        self.wire.broken(what)
    }

    /// Returns true when `body` ends a list of columns or rows.
    #[inline]
    pub(super) fn is_end(&self, body: &Range<usize>) -> bool {
        // A row as text may begin with the same byte, but then it has the maximum length.
        self.bytes(body.clone()).first() == Some(&packet::EOF)
            && body.len() < if self.has_short_results { BODY_BYTES_MAX } else { 9 }
    }

    /// Returns whether another result follows the rows that `end` ends.
    #[inline]
    pub(super) fn has_next(&self, end: &Range<usize>) -> bool {
        // The low byte of the status is behind the number of warnings, or behind two zeros.
        let status = self.bytes(end.clone()).get(3);
        status.is_some_and(|status| status & packet::MORE_RESULTS != 0)
    }

    /// Reads the columns in a result's first packet; `None` if it has none.
    #[inline]
    pub(super) fn columns(&self, body: Range<usize>) -> Option<ResultColumns> {
        let mut reader = Reader(self.bytes(body));
        let count = reader.integer()?;
        let definitions_follow = !self.omits_definitions || reader.byte()? != 0;
        Some(ResultColumns { count, definitions_follow })
    }

    /// Reads the packet after the definitions of columns or parameters, if there is one.
    #[inline]
    pub(super) fn end_of_definitions(&mut self) -> Result<(), Error> {
        if self.has_short_results {
            return Ok(());
        }

        let body = self.packet()?;
        if self.is_end(&body) {
            Ok(())
        } else {
            Err(self.broken("more column definitions than announced"))
        }
    }

    /// Skips definitions and the packet after them.
    pub(super) fn skip_definitions(&mut self, count: u64) -> Result<(), Error> {
        if count == 0 {
            return Ok(());
        }
        for _ in 0..count {
            self.packet()?;
        }
        self.end_of_definitions()
    }

    /// Runs `sql` as text. Returns its rows, or the number of changed rows.
    pub(super) fn query(&mut self, sql: &str) -> Result<(Rows, Option<Done>), Error> {
        self.send_command(packet::COM_QUERY, sql.as_bytes())?;
        let mut rows = Rows::new();
        let visit = |row: &[u8], columns| {
            rows.push(packet::text_row(row, columns)?);
            Some(())
        };
        let done = self.read_text(|_| {}, visit)?;
        Ok((rows, done))
    }

    /// Runs `sql` as text. Returns the values of its first row that are not NULL, with the names of
    /// their columns.
    pub(super) fn first_row(&mut self, sql: &str) -> Result<Vec<(String, String)>, Error> {
        self.send_command(packet::COM_QUERY, sql.as_bytes())?;

        let (mut names, mut values) = (Vec::new(), None);

        let define = |definition: &[u8]| {
            let name = packet::column_name(definition).unwrap_or_default();
            names.push(String::from_utf8_lossy(name).into_owned());
        };

        let visit = |row: &[u8], columns| {
            let row = packet::text_row(row, columns)?;
            values.get_or_insert(row);
            Some(())
        };

        self.read_text(define, visit)?;
        let pairs = names.into_iter().zip(values.unwrap_or_default());
        Ok(pairs.filter_map(|(name, value)| Some((name, value?))).collect())
    }

    /// Reads the reply to a statement as text. Calls `define` with each definition of a column, and
    /// `visit` with each row and its number of columns; `visit` returns `None` for a malformed
    /// row. Calls of procedures have several results, the last of them without rows.
    pub(super) fn read_text(
        &mut self,
        mut define: impl FnMut(&[u8]),
        mut visit: impl FnMut(&[u8], u64) -> Option<()>,
    ) -> Result<Option<Done>, Error> {
        loop {
            let result = self.read_text_result(&mut define, &mut visit)?;
            if !result.has_next {
                return Ok(result.done);
            }
        }
    }

    /// Reads one result of a statement as text.
    fn read_text_result(
        &mut self,
        define: &mut impl FnMut(&[u8]),
        visit: &mut impl FnMut(&[u8], u64) -> Option<()>,
    ) -> Result<TextResult, Error> {
        let body = self.packet()?;
        match self.bytes(body.clone()) {
            [packet::OK, ..] => {
                let done = Done::read(self.bytes(body));
                let done = done.ok_or_else(|| self.broken("a truncated reply"))?;
                return Ok(TextResult { done: Some(done), has_next: false });
            }
            [packet::ERR, ..] => return Err(self.refusal(body)),
            [packet::LOCAL_INFILE, ..] => {
                return Err(self.broken("a request for a local file"));
            }
            _ => {}
        }

        // Only results of prepared statements may omit the definitions.
        let Some(ResultColumns { count, definitions_follow: true }) = self.columns(body) else {
            return Err(self.broken("a reply of an unknown kind"));
        };

        for _ in 0..count {
            let body = self.packet()?;
            define(self.bytes(body));
        }

        self.end_of_definitions()?;

        loop {
            let body = self.packet()?;
            if self.is_end(&body) {
                return Ok(TextResult { done: None, has_next: self.has_next(&body) });
            }
            if let [packet::ERR, ..] = self.bytes(body.clone()) {
                return Err(self.refusal(body));
            }
            if visit(self.bytes(body), count).is_none() {
                return Err(self.broken("a row that is longer than its packet"));
            }
        }
    }

    /// Returns a handle that interrupts the connection from another thread.
    pub(super) fn interrupt(&self) -> Result<Interrupt, Error> {
        let address = Address { connect_timeout: Duration::from_secs(1), ..self.address.clone() };
        let thread_id = self.thread_id;
        self.wire.interrupt(move || {
            let _ = kill(&address, thread_id);
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.wire.end(&[1, 0, 0, 0, packet::COM_QUIT]);
    }
}

/// Kills another connection and its statement, on a new connection.
fn kill(address: &Address, thread_id: u32) -> Result<(), Error> {
    let mut connection = Connection::open(address)?;
    connection.wire.stream.limit(Some(address.connect_timeout))?;
    connection.query(&format!("kill {thread_id}"))?;
    Ok(())
}
