//! A connection: login, packets out of a reused buffer, and statements as text.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::auth::{self, Plugin, Way};
use super::packet::{self, BODY_BYTES_MAX, Done, HEADER_BYTES, Reader, capability};
use super::{Address, Host, SslMode, failure};
use crate::net::stream::Stream;
use crate::net::tls;
use crate::{Error, ErrorClass, Interrupt, Rows};

/// The read buffer's size at first: most replies are far smaller.
const BUFFER_BYTES: usize = 32 * 1024;

/// The largest packet that the protocol's header can announce to a client: the servers' own limit.
const PACKET_BYTES_MAX: u32 = 1 << 30;

/// `utf8mb4` with the collation that every version has.
const CHARACTER_SET: u8 = 45;

/// What this client can do; DEPRECATE_EOF, TLS and the database are added where they apply.
const CAPABILITIES: u32 = capability::LONG_PASSWORD
    | capability::LONG_FLAG
    | capability::PROTOCOL_41
    | capability::TRANSACTIONS
    | capability::SECURE_CONNECTION
    | capability::PLUGIN_AUTH
    | capability::PLUGIN_AUTH_LENENC;

/// What the server says first.
struct Greeting {
    version: String,
    thread_id: u32,
    capabilities: u32,
    /// What MariaDB can do beyond that.
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
        // What is more than 20 bytes is a zero at the end.
        nonce.truncate(20);
        let plugin = match capabilities & capability::PLUGIN_AUTH {
            0 => Vec::new(),
            _ => reader.until_zero().to_vec(),
        };
        Some(Self {
            version,
            thread_id,
            capabilities,
            // A server that is MySQL's has nothing there.
            extended: match capabilities & capability::LONG_PASSWORD {
                0 => extended,
                _ => 0,
            },
            plugin,
            nonce,
        })
    }
}

/// What a statement as text returned.
pub(super) struct Reply {
    pub(super) rows: Rows,
    pub(super) done: Option<Done>,
}

/// A connection that has logged in.
pub(super) struct Connection {
    stream: Stream,
    /// Bytes read; those in `start..end` are still to be looked at.
    input: Vec<u8>,
    start: usize,
    end: usize,
    /// What is written outside of the measured path, its header included.
    output: Vec<u8>,
    /// The number of the next packet in an exchange; only login needs it.
    sequence: u8,
    /// Whether the end of columns is not marked, and that of rows is an OK packet.
    has_short_results: bool,
    /// Whether results of prepared statements may come without the definitions of their columns.
    leaves_out_definitions: bool,
    thread_id: u32,
    server_version: String,
    address: Address,
    /// Set by an interrupt, before it shuts the socket down.
    is_interrupted: Arc<AtomicBool>,
}

impl Connection {
    /// Connects and logs in.
    pub(super) fn open(address: &Address) -> Result<Self, Error> {
        let is_preferred = address.ssl_mode == SslMode::Preferred;
        match Self::open_as(address, address.ssl_mode) {
            // Of old servers only: what they call TLS is too weak for this client.
            Err(error)
                if is_preferred && error.class == ErrorClass::Refused && error.code.is_none() =>
            {
                Self::open_as(address, SslMode::Disabled).map_err(|_| error)
            }
            result => result,
        }
    }

    fn open_as(address: &Address, mode: SslMode) -> Result<Self, Error> {
        let io =
            |action: &'static str| move |error: std::io::Error| failure::from_io(action, &error);
        let stream = match &address.host {
            Host::Unix(path) => Stream::connect_unix(path),
            Host::Tcp(host) => Stream::connect_tcp(host, address.port, address.connect_timeout),
        };
        let stream =
            stream.map_err(|error| failure::from_io(&format!("connect to `{address}`"), &error))?;
        let mut connection = Self {
            stream,
            input: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            output: Vec::new(),
            sequence: 0,
            has_short_results: false,
            leaves_out_definitions: false,
            thread_id: 0,
            server_version: String::new(),
            address: address.clone(),
            is_interrupted: Arc::default(),
        };
        connection
            .stream
            .set_timeout(Some(address.connect_timeout))
            .map_err(io("set a time limit"))?;
        connection.log_in(mode)?;
        connection
            .stream
            .set_timeout(None)
            .map_err(io("remove the time limit"))?;
        Ok(connection)
    }

    fn log_in(&mut self, mode: SslMode) -> Result<(), Error> {
        let body = self.packet()?;
        let greeting = match self.bytes(body.clone()) {
            [packet::ERR, ..] => return Err(failure::from_packet(self.bytes(body))),
            bytes => Greeting::read(bytes),
        };
        let greeting = greeting
            .filter(|greeting| greeting.capabilities & capability::PROTOCOL_41 != 0)
            .ok_or_else(|| failure::protocol("the peer's greeting is not MySQL's"))?;
        self.thread_id = greeting.thread_id;
        self.server_version.clone_from(&greeting.version);
        let mut capabilities = (CAPABILITIES | capability::DEPRECATE_EOF) & greeting.capabilities;
        let address = self.address.clone();
        if !address.database.is_empty() {
            capabilities |= capability::CONNECT_WITH_DB;
        }
        self.has_short_results = capabilities & capability::DEPRECATE_EOF != 0;
        let extended = greeting.extended & capability::CACHE_METADATA;
        self.leaves_out_definitions = extended != 0;
        if let Host::Tcp(host) = &address.host {
            capabilities |=
                self.encrypt(mode, host, greeting.capabilities, (capabilities, extended))?;
        }
        // A default that is not known here may still be changed by the server for this very user.
        let mut plugin = Plugin::named(&greeting.plugin).unwrap_or(Plugin::Native);
        let password = address.password.as_ref().map_or("", |it| it.expose());
        let mut nonce = greeting.nonce;
        let answer = plugin.answer(password.as_bytes(), &nonce, self.way());
        // The server's default may want what can't be given here, and the user's own not: it is asked for then.
        let answer = answer.unwrap_or_default();
        self.begin();
        push_login(&mut self.output, capabilities, extended);
        self.output.extend_from_slice(address.user.as_bytes());
        self.output.push(0);
        packet::push_integer(&mut self.output, answer.len() as u64);
        self.output.extend_from_slice(&answer);
        if capabilities & capability::CONNECT_WITH_DB != 0 {
            self.output.extend_from_slice(address.database.as_bytes());
            self.output.push(0);
        }
        self.output.extend_from_slice(plugin.name().as_bytes());
        self.output.push(0);
        self.send_begun()?;
        loop {
            let body = self.packet()?;
            let bytes = self.bytes(body).to_vec();
            match bytes.as_slice() {
                [packet::OK, ..] => return Ok(()),
                [packet::ERR, ..] => return Err(self.refused_login(&bytes, password)),
                [packet::EOF] => {
                    return Err(Error::new(
                        ErrorClass::Refused,
                        "the server asks for a password of the time before MySQL 4.1",
                    ));
                }
                [packet::EOF, rest @ ..] => {
                    let mut reader = Reader(rest);
                    plugin = Plugin::named(reader.until_zero())?;
                    nonce = reader.0.strip_suffix(&[0]).unwrap_or(reader.0).to_vec();
                    let answer = plugin.answer(password.as_bytes(), &nonce, self.way())?;
                    self.reply(&answer)?;
                }
                [1, data @ ..] => self.go_on(plugin, data, password.as_bytes(), &nonce)?,
                _ => return Err(failure::protocol("an unknown packet during login")),
            }
        }
    }

    fn refused_login(&self, body: &[u8], password: &str) -> Error {
        let mut error = failure::from_packet(body);
        if password.is_empty() && error.code.as_deref() == Some("1045") {
            error.message.push_str("; none was given");
        }
        error
    }

    /// Goes over to TLS where `mode` and the server want it; returns the capability if so.
    fn encrypt(
        &mut self,
        mode: SslMode,
        host: &str,
        offered: u32,
        (capabilities, extended): (u32, u32),
    ) -> Result<u32, Error> {
        if mode == SslMode::Disabled {
            return Ok(0);
        }
        if offered & capability::SSL == 0 {
            return match mode {
                SslMode::Preferred => Ok(0),
                _ => Err(Error::new(
                    ErrorClass::Refused,
                    "the server does not do TLS, which `ssl-mode` requires",
                )),
            };
        }
        let config = tls::client_config(mode.trust(), self.address.ssl_ca.as_deref())?;
        self.begin();
        push_login(&mut self.output, capabilities | capability::SSL, extended);
        self.send_begun()?;
        self.stream.encrypt(config, host).map_err(|error| {
            Error::new(
                ErrorClass::Refused,
                format!("cannot agree on TLS with the server: {error}"),
            )
        })?;
        Ok(capability::SSL)
    }

    /// What some plugins have to say after the first answer.
    fn go_on(
        &mut self,
        plugin: Plugin,
        data: &[u8],
        password: &[u8],
        nonce: &[u8],
    ) -> Result<(), Error> {
        match (plugin, data) {
            // The server knew the password's hash: its OK follows.
            (Plugin::CachingSha2, [3]) => Ok(()),
            (Plugin::CachingSha2, [4]) if self.way() != Way::Open => {
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

    /// Who can read what is sent.
    fn way(&self) -> Way {
        match (&self.address.host, self.stream.is_tls()) {
            (_, true) => Way::Encrypted,
            (Host::Unix(_), _) => Way::Local,
            (Host::Tcp(_), _) => Way::Open,
        }
    }

    /// Begins a message.
    fn begin(&mut self) {
        self.output.clear();
        self.output.extend_from_slice(&[0; HEADER_BYTES]);
    }

    /// Sends what was begun as the next packet of the exchange.
    fn send_begun(&mut self) -> Result<(), Error> {
        let mut output = std::mem::take(&mut self.output);
        let result = self.send_numbered(&mut output, self.sequence);
        // A request for TLS has no reply that would say which number is next.
        self.sequence = self.sequence.wrapping_add(1);
        self.output = output;
        result
    }

    fn reply(&mut self, body: &[u8]) -> Result<(), Error> {
        self.begin();
        self.output.extend_from_slice(body);
        self.send_begun()
    }

    /// Begins an exchange with a command and its text.
    pub(super) fn send_command(&mut self, command: u8, text: &[u8]) -> Result<(), Error> {
        self.begin();
        self.output.push(command);
        self.output.extend_from_slice(text);
        self.sequence = 0;
        self.send_begun()
    }

    /// Writes a message that begins an exchange; the place for its header is at its start.
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

    /// A body that is too long for one packet goes in several; the last is shorter than the longest, and may be empty.
    #[cold]
    fn send_split(&mut self, body: &[u8], mut number: u8) -> Result<(), Error> {
        let mut rest = body;
        loop {
            let (part, after) = rest.split_at(rest.len().min(BODY_BYTES_MAX));
            let [a, b, c, _] = (part.len() as u32).to_le_bytes();
            self.write(&[a, b, c, number])?;
            self.write(part)?;
            if part.len() < BODY_BYTES_MAX {
                return Ok(());
            }
            number = number.wrapping_add(1);
            rest = after;
        }
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self.stream.write_all(bytes) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.write_failed(&error)),
        }
    }

    /// The server may have said why it closed the connection before it did.
    #[cold]
    fn write_failed(&mut self, error: &std::io::Error) -> Error {
        let mut failed = failure::from_io("write to the server", error);
        if let Ok(body) = self.packet()
            && let [packet::ERR, ..] = self.bytes(body.clone())
        {
            failed = failure::from_packet(self.bytes(body));
        }
        failed.class = self.class_of_loss();
        failed
    }

    /// Where in [`bytes`](Self::bytes) the body of the next packet is.
    #[inline]
    pub(super) fn packet(&mut self) -> Result<Range<usize>, Error> {
        loop {
            if let [a, b, c, number, ..] = self.input[self.start..self.end] {
                let length = u32::from_le_bytes([a, b, c, 0]) as usize;
                if length == BODY_BYTES_MAX {
                    return self.joined_packet();
                }
                let body = self.start + HEADER_BYTES;
                if body + length <= self.end {
                    self.start = body + length;
                    self.sequence = number.wrapping_add(1);
                    return Ok(body..body + length);
                }
            }
            self.fill()?;
        }
    }

    /// A body in several packets: the headers between them are taken out.
    #[cold]
    fn joined_packet(&mut self) -> Result<Range<usize>, Error> {
        let mut length = BODY_BYTES_MAX;
        loop {
            // All that is joined so far, and the next header.
            self.fill_to(HEADER_BYTES + length + HEADER_BYTES)?;
            let next = self.start + HEADER_BYTES + length;
            let part = match self.input[next..self.end] {
                [a, b, c, number, ..] => {
                    self.sequence = number.wrapping_add(1);
                    u32::from_le_bytes([a, b, c, 0]) as usize
                }
                _ => return Err(self.broken("a packet without a header")),
            };
            self.fill_to(HEADER_BYTES + length + HEADER_BYTES + part)?;
            let next = self.start + HEADER_BYTES + length;
            self.input.copy_within(next + HEADER_BYTES..self.end, next);
            self.end -= HEADER_BYTES;
            length += part;
            if part < BODY_BYTES_MAX {
                let body = self.start + HEADER_BYTES;
                self.start = body + length;
                return Ok(body..body + length);
            }
        }
    }

    fn fill_to(&mut self, bytes: usize) -> Result<(), Error> {
        while self.end - self.start < bytes {
            self.fill()?;
        }
        Ok(())
    }

    /// What was read: valid until the next call of [`packet`](Self::packet).
    #[inline]
    pub(super) fn bytes(&self, body: Range<usize>) -> &[u8] {
        &self.input[body]
    }

    /// Reads what has come, once.
    fn fill(&mut self) -> Result<(), Error> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.input.len() {
            if self.start > 0 {
                self.input.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            } else {
                // Full of one message: what came decides the size, not what the message claims.
                self.input.resize(self.input.len() * 2, 0);
            }
        }
        loop {
            match self.stream.read(&mut self.input[self.end..]) {
                Ok(0) => return Err(self.lost(failure::closed())),
                Ok(length) => {
                    self.end += length;
                    return Ok(());
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(self.lost(failure::from_io("read from the server", &error)));
                }
            }
        }
    }

    #[cold]
    fn lost(&self, mut error: Error) -> Error {
        error.class = self.class_of_loss();
        error
    }

    fn class_of_loss(&self) -> ErrorClass {
        match self.is_interrupted.load(Ordering::Relaxed) {
            true => ErrorClass::Interrupted,
            false => ErrorClass::ConnectionLost,
        }
    }

    /// The error in `body`.
    #[cold]
    pub(super) fn refusal(&self, body: Range<usize>) -> Error {
        let error = failure::from_packet(self.bytes(body));
        // An interrupt ends the connection, and the server may say so before it is noticed here.
        match error.class {
            ErrorClass::ConnectionLost => self.lost(error),
            _ => error,
        }
    }

    /// The peer does not keep to the protocol: nothing that it says from here on can be understood.
    #[cold]
    pub(super) fn broken(&mut self, what: impl Into<String>) -> Error {
        if let Ok(socket) = self.stream.socket() {
            socket.shut_down();
        }
        failure::protocol(what)
    }

    /// Whether `body` is what ends a list of columns, or of rows.
    #[inline]
    pub(super) fn is_end(&self, body: &Range<usize>) -> bool {
        // A row as text may begin with the same byte, but is then as long as a packet can be.
        self.input[body.start..body.end].first() == Some(&packet::EOF)
            && body.len()
                < if self.has_short_results {
                    BODY_BYTES_MAX
                } else {
                    9
                }
    }

    /// How many columns a result has, from its first packet, and whether their definitions follow.
    #[inline]
    pub(super) fn columns(&self, body: Range<usize>) -> Option<(u64, bool)> {
        let mut reader = Reader(self.bytes(body));
        let count = reader.integer()?;
        let follow = !self.leaves_out_definitions || reader.byte()? != 0;
        Some((count, follow))
    }

    /// Reads the mark after the definitions of columns or parameters, where there is one.
    #[inline]
    pub(super) fn end_of_definitions(&mut self) -> Result<(), Error> {
        if self.has_short_results {
            return Ok(());
        }
        let body = self.packet()?;
        match self.is_end(&body) {
            true => Ok(()),
            false => Err(self.broken("more definitions of columns than were announced")),
        }
    }

    /// Reads so many definitions, and the mark after them.
    pub(super) fn skip_definitions(&mut self, count: u64) -> Result<(), Error> {
        if count == 0 {
            return Ok(());
        }
        for _ in 0..count {
            self.packet()?;
        }
        self.end_of_definitions()
    }

    /// Runs `sql` as text.
    pub(super) fn query(&mut self, sql: &str) -> Result<Reply, Error> {
        self.send_command(packet::COM_QUERY, sql.as_bytes())?;
        let body = self.packet()?;
        match self.bytes(body.clone()) {
            [packet::OK, ..] => {
                let done = Done::read(self.bytes(body));
                return match done {
                    Some(_) => Ok(Reply {
                        rows: Rows::new(),
                        done,
                    }),
                    None => Err(self.broken("a reply that is cut short")),
                };
            }
            [packet::ERR, ..] => return Err(self.refusal(body)),
            [packet::LOCAL_INFILE, ..] => {
                return Err(self.broken("a request for a file of the client's"));
            }
            _ => {}
        }
        // Only prepared statements have results without them.
        let Some((columns, true)) = self.columns(body) else {
            return Err(self.broken("a reply of an unknown kind"));
        };
        self.skip_definitions(columns)?;
        let mut rows = Rows::new();
        loop {
            let body = self.packet()?;
            if self.is_end(&body) {
                return Ok(Reply { rows, done: None });
            }
            if let [packet::ERR, ..] = self.bytes(body.clone()) {
                return Err(self.refusal(body));
            }
            match packet::text_row(self.bytes(body), columns) {
                Some(row) => rows.push(row),
                None => return Err(self.broken("a row whose values don't fit in its packet")),
            }
        }
    }

    /// Ends what the connection waits for, from another thread.
    pub(super) fn interrupt(&self) -> Result<Interrupt, Error> {
        let socket = self
            .stream
            .socket()
            .map_err(|error| failure::from_io("duplicate the socket", &error))?;
        let is_interrupted = Arc::clone(&self.is_interrupted);
        let address = Address {
            connect_timeout: Duration::from_secs(1),
            ..self.address.clone()
        };
        let thread_id = self.thread_id;
        Ok(Box::new(move || {
            is_interrupted.store(true, Ordering::Relaxed);
            socket.shut_down();
            // The server notices a closed connection only when it next writes to it: it is told as well, so that a
            // long statement does not go on. A server that can't be told is no reason to fail here.
            let _ = Self::open(&address).and_then(|mut other| {
                let timeout = Some(address.connect_timeout);
                other
                    .stream
                    .set_timeout(timeout)
                    .map_err(|error| failure::from_io("set a time limit", &error))?;
                other.query(&format!("kill {thread_id}"))
            });
        }))
    }

    /// The version, as the server greeted with it.
    pub(super) fn server_version(&self) -> &str {
        &self.server_version
    }

    /// The process that listens, where the connection is by unix socket.
    pub(super) fn listener_pid(&self) -> Option<u32> {
        self.stream.listener_pid()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Good manners: the server then does not log a connection that was lost.
        let _ = self.stream.set_timeout(Some(Duration::from_millis(100)));
        let _ = self.stream.write_all(&[1, 0, 0, 0, packet::COM_QUIT]);
    }
}

/// The start of a login, which is also all of a request for TLS.
fn push_login(output: &mut Vec<u8>, capabilities: u32, extended: u32) {
    output.extend_from_slice(&capabilities.to_le_bytes());
    output.extend_from_slice(&PACKET_BYTES_MAX.to_le_bytes());
    output.push(CHARACTER_SET);
    output.extend_from_slice(&[0; 19]);
    output.extend_from_slice(&extended.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_cut_short_is_noticed() {
        let mut body = b"\x0a8.0.36\0\x07\0\0\0abcdefgh\0".to_vec();
        body.extend_from_slice(&[0xff, 0xff, 45, 2, 0, 0xff, 0xdf, 21]);
        body.extend_from_slice(&[0; 10]);
        body.extend_from_slice(b"ijklmnopqrst\0caching_sha2_password\0");
        let greeting = Greeting::read(&body).unwrap();
        assert_eq!(
            (greeting.thread_id, greeting.version.as_str()),
            (7, "8.0.36")
        );
        assert_eq!(greeting.nonce, b"abcdefghijklmnopqrst");
        assert_eq!(greeting.plugin, b"caching_sha2_password");
        for length in 0..body.len() - 23 {
            assert!(Greeting::read(&body[..length]).is_none(), "{length}");
        }
        assert!(Greeting::read(b"\x09x").is_none());
    }
}
