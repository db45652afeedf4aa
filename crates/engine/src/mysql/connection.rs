//! A connection: the login, packets in a reused buffer, and statements as text.

use std::ops::Range;
use std::time::Duration;

use super::auth::{self, Plugin, Privacy};
use super::packet::{self, BODY_BYTES_MAX, Done, HEADER_BYTES, Reader, capability};
use super::{Address, Host, SslMode, failure};
use crate::net::tls;
use crate::net::wire::Wire;
use crate::{Error, ErrorClass, Interrupt, Rows};

/// The maximum packet size, which is also the servers' own limit.
const PACKET_BYTES_MAX: u32 = 1 << 30;

/// `utf8mb4` with a collation that every version has.
const CHARACTER_SET: u8 = 45;

/// The capabilities of this client. DEPRECATE_EOF, TLS and the database are added if they apply.
const CAPABILITIES: u32 = capability::LONG_PASSWORD
    | capability::FOUND_ROWS
    | capability::LONG_FLAG
    | capability::PROTOCOL_41
    | capability::TRANSACTIONS
    | capability::SECURE_CONNECTION
    | capability::PLUGIN_AUTH
    | capability::PLUGIN_AUTH_LENENC;

/// The server's first message.
struct Greeting {
    version: String,
    thread_id: u32,
    capabilities: u32,
    /// The additional capabilities of MariaDB.
    extended: u32,
    plugin: Vec<u8>,
    nonce: Vec<u8>,
}

impl Greeting {
    fn read(body: &[u8]) -> Option<Self> {
        let mut reader = Reader(body);
        if reader.byte()? != 10 {
            return None;
        }

        let version = String::from_utf8_lossy(reader.until_zero()).into_owned();
        let thread_id = u32::from_le_bytes(reader.array()?);
        let mut nonce = reader.take(8)?.to_vec();
        reader.byte()?;
        let low = u16::from_le_bytes(reader.array()?);
        // Character set, status.
        reader.take(3)?;
        let high = u16::from_le_bytes(reader.array()?);
        let capabilities = u32::from(high) << 16 | u32::from(low);

        let nonce_bytes = usize::from(reader.byte()?);
        reader.take(6)?;
        let extended = u32::from_le_bytes(reader.array()?);
        nonce.extend_from_slice(reader.take(13.max(nonce_bytes.saturating_sub(8)))?);
        // The 21st byte is a terminating zero.
        nonce.truncate(20);

        let has_plugin = capabilities & capability::PLUGIN_AUTH != 0;
        let plugin = if has_plugin { reader.until_zero().to_vec() } else { Vec::new() };
        // Servers with this capability are MySQL's, which have no such field.
        let is_mysql = capabilities & capability::LONG_PASSWORD != 0;
        let extended = if is_mysql { 0 } else { extended };
        Some(Self { version, thread_id, capabilities, extended, plugin, nonce })
    }
}

/// The capabilities that the client requests.
#[derive(Clone, Copy)]
struct Requested {
    capabilities: u32,
    /// The additional capabilities of MariaDB.
    extended: u32,
}

impl Requested {
    fn has(self, capability: u32) -> bool {
        self.capabilities & capability != 0
    }
}

/// A connection that has logged in.
pub(super) struct Connection {
    pub(super) wire: Wire,
    /// The message written outside of the measured path, including its header.
    output: Vec<u8>,
    /// The number of the next packet in an exchange, which only the login needs.
    sequence: u8,
    /// No packet marks the end of the columns, and an OK packet ends the rows.
    has_short_results: bool,
    /// Results of prepared statements may omit the definitions of columns.
    omits_definitions: bool,
    thread_id: u32,
    /// The version in the server's greeting.
    pub(super) server_version: String,
    address: Address,
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

    fn log_in(&mut self, mode: SslMode) -> Result<(), Error> {
        let greeting = self.greeting()?;
        self.thread_id = greeting.thread_id;
        self.server_version.clone_from(&greeting.version);

        let address = self.address.clone();
        let mut requested = Requested {
            capabilities: (CAPABILITIES | capability::DEPRECATE_EOF) & greeting.capabilities,
            extended: greeting.extended & capability::CACHE_METADATA,
        };
        if !address.database.is_empty() {
            requested.capabilities |= capability::CONNECT_WITH_DB;
        }
        self.has_short_results = requested.has(capability::DEPRECATE_EOF);
        self.omits_definitions = requested.extended != 0;
        if let Host::Tcp(host) = &address.host {
            requested.capabilities |= self.encrypt(mode, host, greeting.capabilities, requested)?;
        }

        // The server may replace an unsupported default plugin by the user's.
        let plugin = Plugin::by_name(&greeting.plugin).unwrap_or(Plugin::Native);
        self.send_login(&address, requested, plugin, &greeting.nonce)?;
        self.answer_requests(&address, plugin, greeting.nonce)
    }

    fn greeting(&mut self) -> Result<Greeting, Error> {
        let body = self.packet()?;
        let greeting = match self.bytes(body.clone()) {
            [packet::ERR, ..] => return Err(failure::from_packet(self.bytes(body))),
            bytes => Greeting::read(bytes),
        };
        greeting.filter(|greeting| greeting.capabilities & capability::PROTOCOL_41 != 0).ok_or_else(
            || {
                failure::protocol(
                    "the peer's greeting is not that of MySQL or MariaDB; check host and port",
                )
            },
        )
    }

    fn send_login(
        &mut self,
        address: &Address,
        requested: Requested,
        plugin: Plugin,
        nonce: &[u8],
    ) -> Result<(), Error> {
        // If the default plugin can't answer, the server may still request the user's plugin.
        let password = password_of(address);
        let answer = plugin.answer(password.as_bytes(), nonce, self.privacy()).unwrap_or_default();

        self.begin();
        push_login(&mut self.output, requested);
        self.output.extend_from_slice(address.user.as_bytes());
        self.output.push(0);
        packet::push_integer(&mut self.output, answer.len() as u64);
        self.output.extend_from_slice(&answer);
        if requested.has(capability::CONNECT_WITH_DB) {
            self.output.extend_from_slice(address.database.as_bytes());
            self.output.push(0);
        }
        self.output.extend_from_slice(plugin.name().as_bytes());
        self.output.push(0);
        self.send_message()
    }

    /// Answers the server's requests until it accepts or refuses the login.
    fn answer_requests(
        &mut self,
        address: &Address,
        mut plugin: Plugin,
        mut nonce: Vec<u8>,
    ) -> Result<(), Error> {
        let password = password_of(address);
        loop {
            let body = self.packet()?;
            let bytes = self.bytes(body).to_vec();
            match bytes.as_slice() {
                [packet::OK, ..] => return Ok(()),
                [packet::ERR, ..] => return Err(self.refused_login(&bytes, password)),
                [packet::EOF] => {
                    return Err(Error::refused(
                        "the server requires the authentication of MySQL before 4.1, which assay does not support; \
                        change the user's authentication plugin",
                    ));
                }
                [packet::EOF, request @ ..] => {
                    let mut reader = Reader(request);
                    plugin = Plugin::by_name(reader.until_zero())?;
                    nonce = plugin.nonce(reader.0).to_vec();
                    let answer = plugin.answer(password.as_bytes(), &nonce, self.privacy())?;
                    self.reply(&answer)?;
                }
                [1, data @ ..] => self.continue_login(plugin, data, password.as_bytes(), &nonce)?,
                _ => return Err(failure::protocol("an unknown packet during login")),
            }
        }
    }

    fn refused_login(&self, body: &[u8], password: &str) -> Error {
        let mut error = failure::from_packet(body);
        if password.is_empty() && error.code.as_deref() == Some("1045") {
            error.message.push_str("; assay sent no password");
        }
        error
    }

    /// Switches to TLS if `mode` and the server support it. Returns the capability if it did.
    fn encrypt(
        &mut self,
        mode: SslMode,
        host: &str,
        offered: u32,
        requested: Requested,
    ) -> Result<u32, Error> {
        if mode == SslMode::Disable {
            return Ok(0);
        }
        if offered & capability::SSL == 0 {
            return match mode {
                SslMode::Prefer => Ok(0),
                _ => Err(Error::refused(
                    "the server does not support TLS, which `ssl-mode` requires; enable TLS on the server, or set `ssl-mode=disabled`",
                )),
            };
        }

        let config = tls::client_config(mode, self.address.ssl_root.as_ref())?;
        self.begin();
        let capabilities = requested.capabilities | capability::SSL;
        push_login(&mut self.output, Requested { capabilities, ..requested });
        self.send_message()?;
        self.wire.stream.encrypt(config, host)?;
        Ok(capability::SSL)
    }

    /// Answers the server's further requests, which some plugins have.
    fn continue_login(
        &mut self,
        plugin: Plugin,
        data: &[u8],
        password: &[u8],
        nonce: &[u8],
    ) -> Result<(), Error> {
        match (plugin, data) {
            // The server had cached the password's hash: an OK packet follows.
            (Plugin::CachingSha2, [3]) => Ok(()),
            (Plugin::CachingSha2, [4]) if self.privacy() != Privacy::Open => {
                self.reply(&auth::with_zero(password))
            }
            (Plugin::CachingSha2, [4]) => self.reply(&[2]),
            (Plugin::CachingSha2 | Plugin::Sha256, [b'-', ..]) => {
                self.reply(&auth::encrypted(password, nonce, data)?)
            }
            _ => Err(failure::protocol(format!(
                "an unknown request of `{}` during login",
                plugin.name()
            ))),
        }
    }

    /// Returns whether others can read what the client sends.
    fn privacy(&self) -> Privacy {
        match (&self.address.host, self.wire.stream.is_tls()) {
            (_, true) => Privacy::Encrypted,
            (Host::Unix(_), _) => Privacy::Local,
            (Host::Tcp(_), _) => Privacy::Open,
        }
    }

    /// Begins a message.
    fn begin(&mut self) {
        self.output.clear();
        self.output.extend_from_slice(&[0; HEADER_BYTES]);
    }

    /// Sends the message as the next packet of the exchange.
    fn send_message(&mut self) -> Result<(), Error> {
        let mut output = std::mem::take(&mut self.output);
        let result = self.send_numbered(&mut output, self.sequence);
        // A request for TLS gets no reply with the next number.
        self.sequence = self.sequence.wrapping_add(1);
        self.output = output;
        result
    }

    fn reply(&mut self, body: &[u8]) -> Result<(), Error> {
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

    /// Returns the error of a protocol violation, after which the connection can't be used.
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

    /// Returns the number of columns in a result's first packet, and whether their definitions
    /// follow.
    #[inline]
    pub(super) fn columns(&self, body: Range<usize>) -> Option<(u64, bool)> {
        let mut reader = Reader(self.bytes(body));
        let count = reader.integer()?;
        let definitions_follow = !self.omits_definitions || reader.byte()? != 0;
        Some((count, definitions_follow))
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
    /// row.
    pub(super) fn read_text(
        &mut self,
        mut define: impl FnMut(&[u8]),
        mut visit: impl FnMut(&[u8], u64) -> Option<()>,
    ) -> Result<Option<Done>, Error> {
        let body = self.packet()?;
        match self.bytes(body.clone()) {
            [packet::OK, ..] => {
                let done = Done::read(self.bytes(body));
                return done.map(Some).ok_or_else(|| self.broken("a truncated reply"));
            }
            [packet::ERR, ..] => return Err(self.refusal(body)),
            [packet::LOCAL_INFILE, ..] => {
                return Err(self.broken("a request for a local file"));
            }
            _ => {}
        }

        // Only results of prepared statements may omit the definitions.
        let Some((columns, true)) = self.columns(body) else {
            return Err(self.broken("a reply of an unknown kind"));
        };

        for _ in 0..columns {
            let body = self.packet()?;
            define(self.bytes(body));
        }

        self.end_of_definitions()?;

        loop {
            let body = self.packet()?;
            if self.is_end(&body) {
                return Ok(None);
            }
            if let [packet::ERR, ..] = self.bytes(body.clone()) {
                return Err(self.refusal(body));
            }
            if visit(self.bytes(body), columns).is_none() {
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

/// Appends the start of a login, which is also a complete request for TLS.
fn push_login(output: &mut Vec<u8>, requested: Requested) {
    output.extend_from_slice(&requested.capabilities.to_le_bytes());
    output.extend_from_slice(&PACKET_BYTES_MAX.to_le_bytes());
    output.push(CHARACTER_SET);
    output.extend_from_slice(&[0; 19]);
    output.extend_from_slice(&requested.extended.to_le_bytes());
}

fn password_of(address: &Address) -> &str {
    address.password.as_ref().map_or("", |password| password.expose())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_greeting_is_detected() {
        let mut body = b"\x0a8.0.36\0\x07\0\0\0abcdefgh\0".to_vec();
        body.extend_from_slice(&[0xff, 0xff, 45, 2, 0, 0xff, 0xdf, 21]);
        body.extend_from_slice(&[0; 10]);
        body.extend_from_slice(b"ijklmnopqrst\0caching_sha2_password\0");
        let greeting = Greeting::read(&body).unwrap();
        assert_eq!((greeting.thread_id, greeting.version.as_str()), (7, "8.0.36"));
        assert_eq!(greeting.nonce, b"abcdefghijklmnopqrst");
        assert_eq!(greeting.plugin, b"caching_sha2_password");
        for length in 0..body.len() - 23 {
            assert!(Greeting::read(&body[..length]).is_none(), "{length}");
        }
        assert!(Greeting::read(b"\x09x").is_none());
    }
}
