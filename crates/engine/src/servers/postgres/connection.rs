//! A connection: the login, messages in a reused buffer, and the simple query protocol.

use std::ops::Range;

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

use super::{Address, Host, SslMode, failure};
use crate::contract::{Interrupt, Rows};
use crate::error::{Error, ErrorClass};
use crate::net::stream::Stream;
use crate::net::tls;
use crate::servers::wire::Wire;

/// The maximum length of a message, which is also the server's own limit.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// The size of a message's tag and length.
const HEADER_BYTES: usize = 5;

/// A connection that has logged in.
pub(super) struct Connection {
    pub(super) wire: Wire,
    /// The messages written outside of the measured path.
    output: BytesMut,
    process_id: i32,
    secret_key: i32,
    address: Address,
}

impl Connection {
    /// Connects and logs in.
    pub(super) fn open(address: &Address) -> Result<Self, Error> {
        if !matches!(address.host, Host::Tcp(_)) {
            return Self::open_as(address, None);
        }

        // The server's rules may refuse this client either with or without encryption.
        match address.ssl_mode {
            SslMode::Disable => Self::open_as(address, None),
            SslMode::Allow => match Self::open_as(address, None) {
                Err(error) if is_refused_by_rules(&error) => {
                    Self::open_as(address, Some(SslMode::Allow))
                }
                result => result,
            },
            SslMode::Prefer => match Self::open_as(address, Some(SslMode::Prefer)) {
                Err(error) if is_refused_by_rules(&error) => {
                    Self::open_as(address, None).map_err(|_| error)
                }
                result => result,
            },
            mode @ (SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull) => {
                Self::open_as(address, Some(mode))
            }
        }
    }

    fn open_as(address: &Address, mode: Option<SslMode>) -> Result<Self, Error> {
        let mut stream = address.connect()?;
        if let (Some(mode), Host::Tcp(host)) = (mode, &address.host) {
            encrypt(&mut stream, mode, host, address)?;
        }

        let mut connection = Self {
            wire: Wire::new(stream),
            output: BytesMut::new(),
            process_id: 0,
            secret_key: 0,
            address: address.clone(),
        };

        connection.log_in()?;
        connection.wire.stream.limit(None)?;
        Ok(connection)
    }

    fn log_in(&mut self) -> Result<(), Error> {
        let address = self.address.clone();

        let parameters = [
            ("user", address.user.as_str()),
            ("database", address.database.as_str()),
            ("application_name", address.application_name.as_str()),
            ("client_encoding", "UTF8"),
            ("DateStyle", "ISO"),
        ];
        self.send_with(|output| frontend::startup_message(parameters, output))?;

        let mut scram: Option<ScramSha256> = None;
        loop {
            let (tag, body) = self.message()?;
            match tag {
                b'R' => self.authenticate(&address, body, &mut scram)?,
                b'K' => {
                    let body = self.bytes(body);
                    // The key has 4 bytes in protocol 3.0, which assay requests. It may be longer
                    // since 3.2.
                    if let (Some(pid), Some(key)) = (int4_at(body, 0), int4_at(body, 4)) {
                        (self.process_id, self.secret_key) = (pid, key);
                    }
                }
                b'Z' => return Ok(()),
                b'E' => return Err(failure::from_response(self.bytes(body))),
                b'S' | b'N' | b'v' => {}
                _ => {
                    return Err(failure::protocol(format!(
                        "unexpected message {} during login",
                        tag.escape_ascii()
                    )));
                }
            }
        }
    }

    fn authenticate(
        &mut self,
        address: &Address,
        body: Range<usize>,
        scram: &mut Option<ScramSha256>,
    ) -> Result<(), Error> {
        let body = self.bytes(body).to_vec();
        let kind = int4_at(&body, 0)
            .ok_or_else(|| failure::protocol("an authentication request without a kind"))?;

        let data = &body[4..];

        // The kinds of PostgreSQL's protocol, section "Message Formats".
        match kind {
            0 => Ok(()),
            3 if !self.wire.stream.is_private() => Err(Error::refused(
                "the server requires the password in clear text over an unencrypted connection; use TLS, or another \
                authentication method",
            )),
            3 => {
                let password = password_of(address)?;
                self.send_with(|output| frontend::password_message(password, output))
            }
            5 => {
                let salt: [u8; 4] = data.try_into().map_err(|_| {
                    failure::protocol("md5 authentication without a salt of 4 bytes")
                })?;
                let hash = md5_hash(address.user.as_bytes(), password_of(address)?, salt);
                self.send_with(|output| frontend::password_message(hash.as_bytes(), output))
            }
            10 => {
                let started = self.start_scram(data, password_of(address))?;
                *scram = Some(started);
                Ok(())
            }
            11 => {
                let scram = scram.as_mut().ok_or_else(scram_not_started)?;
                scram.update(data).map_err(malformed_scram)?;
                self.send_with(|output| frontend::sasl_response(scram.message(), output))
            }
            // The server proves that it knows the password too.
            12 => {
                let scram = scram.as_mut().ok_or_else(scram_not_started)?;
                scram.finish(data).map_err(malformed_scram)
            }
            _ => Err(failure::protocol(format!(
                "the server requires authentication of kind {kind}; assay supports trust, password, md5 and SCRAM-SHA-256"
            ))),
        }
    }

    /// Starts SCRAM if it is among the mechanisms that the server offers, which end with zeros.
    fn start_scram(
        &mut self,
        offered: &[u8],
        password: Result<&[u8], Error>,
    ) -> Result<ScramSha256, Error> {
        let mut mechanisms = offered.split(|&byte| byte == 0);
        if !mechanisms.any(|mechanism| mechanism == SCRAM_SHA_256.as_bytes()) {
            return Err(failure::protocol(format!(
                "the server only offers the SASL mechanisms `{}`; assay supports `{SCRAM_SHA_256}`",
                String::from_utf8_lossy(offered).trim_matches('\0').replace('\0', "`, `")
            )));
        }

        let started = ScramSha256::new(password?, ChannelBinding::unsupported());
        self.send_with(|output| {
            frontend::sasl_initial_response(SCRAM_SHA_256, started.message(), output)
        })?;
        Ok(started)
    }

    /// Sends the messages that `encode` creates.
    pub(super) fn send_with(
        &mut self,
        encode: impl FnOnce(&mut BytesMut) -> std::io::Result<()>,
    ) -> Result<(), Error> {
        let mut output = std::mem::take(&mut self.output);
        output.clear();
        let result = encode(&mut output)
            .map_err(|error| Error::other(format!("cannot encode the message: {error}")))
            .and_then(|()| self.send(&output));
        self.output = output;
        result
    }

    #[inline]
    pub(super) fn send(&mut self, messages: &[u8]) -> Result<(), Error> {
        match self.wire.stream.write_all(messages) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.write_failed(&error)),
        }
    }

    /// Returns the error of a failed write. Before the server closed the connection, it may have
    /// sent the reason.
    #[cold]
    fn write_failed(&mut self, error: &std::io::Error) -> Error {
        let mut failed = failure::from_io("write to the server", error);
        while let Ok((tag, body)) = self.message() {
            if tag == b'E' {
                failed = failure::from_response(self.bytes(body));
                break;
            }
        }
        self.wire.lost(failed)
    }

    /// Reads the next message. Returns its tag, and the range of its body in
    /// [`bytes`](Self::bytes).
    #[inline]
    pub(super) fn message(&mut self) -> Result<(u8, Range<usize>), Error> {
        loop {
            if let [tag, a, b, c, d, ..] = *self.wire.unread() {
                let length = u32::from_be_bytes([a, b, c, d]) as usize;
                if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
                    return Err(self.broken(format!(
                        "message {} has the invalid length {length}",
                        tag.escape_ascii()
                    )));
                }

                // The length includes itself.
                if let Some(body) = self.wire.take(HEADER_BYTES, length - 4) {
                    return Ok((tag, body));
                }
            }
            self.wire.fill()?;
        }
    }

    /// Returns a message's body, which is valid until the next call of [`message`](Self::message).
    #[inline]
    pub(super) fn bytes(&self, body: Range<usize>) -> &[u8] {
        self.wire.bytes(body)
    }

    /// Returns the error of a protocol violation, after which the connection cannot be used.
    #[cold]
    pub(super) fn broken(&self, what: impl Into<String>) -> Error {
        self.wire.broken(what)
    }

    /// Returns the error in `body`, after reading the failed statement's other messages. If the
    /// connection ends meanwhile, the error is still the server's.
    #[cold]
    pub(super) fn refusal(&mut self, body: Range<usize>) -> Error {
        let error = failure::from_response(self.bytes(body));
        loop {
            match self.message() {
                Ok((b'Z', _)) => return error,
                Ok(_) => {}
                Err(lost) if error.class.ends_session() => {
                    return if lost.class == ErrorClass::Interrupted { lost } else { error };
                }
                Err(lost) => {
                    return Error { class: lost.class, ..error };
                }
            }
        }
    }

    /// Runs `sql` with the simple query protocol. Returns the rows, as text, of the last statement
    /// that has any.
    pub(super) fn query(&mut self, sql: &str) -> Result<Rows, Error> {
        self.send_with(|output| frontend::query(sql, output))?;
        let mut rows = Rows::new();

        loop {
            let (tag, body) = self.message()?;
            match tag {
                b'T' => rows.clear(),
                b'D' => match text_row(self.bytes(body)) {
                    Some(row) => rows.push(row),
                    None => return Err(self.broken("a row that is longer than its message")),
                },
                b'Z' => return Ok(rows),
                b'E' => return Err(self.refusal(body)),
                b'C' | b'I' | b'N' | b'S' | b'A' => {}
                _ => {
                    return Err(self.broken(format!(
                        "unexpected message {} in a reply to a query",
                        tag.escape_ascii()
                    )));
                }
            }
        }
    }

    /// Returns the ID of the server process of this connection.
    pub(super) fn backend_pid(&self) -> Option<u32> {
        u32::try_from(self.process_id).ok().filter(|&pid| pid > 0)
    }

    /// Returns a handle that interrupts the connection from another thread.
    pub(super) fn interrupt(&self) -> Result<Interrupt, Error> {
        let address = self.address.clone();
        let (process_id, secret_key) = (self.process_id, self.secret_key);
        let is_tls = self.wire.stream.is_tls();
        self.wire.interrupt(move || {
            let _ = cancel(&address, is_tls, process_id, secret_key);
        })
    }
}

/// Returns true if no rule in `pg_hba.conf` lets this client in.
fn is_refused_by_rules(error: &Error) -> bool {
    error.code.as_deref() == Some("28000")
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut message = BytesMut::new();
        frontend::terminate(&mut message);
        self.wire.end(&message);
    }
}

/// Cancels the statement of another connection, on a new connection.
fn cancel(address: &Address, is_tls: bool, process_id: i32, secret_key: i32) -> Result<(), Error> {
    let io = |error| failure::from_io("cancel a statement", &error);
    let address = Address { connect_timeout: std::time::Duration::from_secs(1), ..address.clone() };
    let mut stream = address.connect()?;
    if is_tls && let Host::Tcp(host) = &address.host {
        encrypt(&mut stream, address.ssl_mode, host, &address)?;
    }

    let mut message = BytesMut::new();
    frontend::cancel_request(process_id, secret_key, &mut message);
    stream.write_all(&message).map_err(io)
}

/// Requests TLS, and encrypts the stream if the server supports it. Fails if it does not, unless
/// `mode` only prefers TLS.
fn encrypt(stream: &mut Stream, mode: SslMode, host: &str, address: &Address) -> Result<(), Error> {
    let io = |error| failure::from_io("request TLS", &error);
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    stream.write_all(&request).map_err(io)?;

    // Reads only one byte, because the next bytes belong to TLS.
    let mut answer = [0];
    match (stream.read(&mut answer).map_err(io)?, answer[0]) {
        (0, _) => Err(failure::closed()),
        (_, b'S') => {
            let root = address.ssl_root.as_ref();
            let mode = match mode {
                // As in libpq, a root certificate turns `require` into `verify-ca`.
                SslMode::Require if root.is_some() => SslMode::VerifyCa,
                mode => mode,
            };
            stream.encrypt(tls::client_config(mode, root)?, host)
        }
        (_, b'N') if mode == SslMode::Prefer => Ok(()),
        (_, b'N') => Err(Error::refused(
            "the server does not support TLS, which `sslmode` requires; enable TLS on the server, or set `sslmode=disable`",
        )),
        _ => Err(failure::protocol(
            "the peer did not answer the TLS request as PostgreSQL does; check host and port",
        )),
    }
}

fn password_of(address: &Address) -> Result<&[u8], Error> {
    let password = address.password.as_ref().map(|password| password.expose().as_bytes());

    password.ok_or_else(|| Error {
        class: ErrorClass::Refused,
        code: Some("28P01".into()),
        message: format!(
            "the server requires a password for user `{}`, and none is set",
            address.user
        ),
    })
}

fn malformed_scram(error: std::io::Error) -> Error {
    failure::protocol(format!("SCRAM authentication: {error}"))
}

fn scram_not_started() -> Error {
    failure::protocol("SCRAM authentication continues without a start")
}

fn int4_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Parses the values of a row as text. Returns `None` if the message is malformed.
fn text_row(body: &[u8]) -> Option<Vec<Option<String>>> {
    let (count, mut values) = body.split_at_checked(2)?;
    let count = u16::from_be_bytes(count.try_into().ok()?);
    let mut row = Vec::new();

    for _ in 0..count {
        let length = int4_at(values, 0)?;

        values = &values[4..];
        row.push(match usize::try_from(length) {
            Ok(length) => {
                let (value, after) = values.split_at_checked(length)?;
                values = after;
                Some(String::from_utf8_lossy(value).into_owned())
            }
            Err(_) => None,
        });
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_with_invalid_lengths_is_detected() {
        assert_eq!(
            text_row(&[0, 2, 0, 0, 0, 1, b'x', 255, 255, 255, 255]),
            Some(vec![Some("x".into()), None])
        );
        assert_eq!(text_row(&[0, 1, 127, 255, 255, 255, b'x']), None);
        assert_eq!(text_row(&[0, 9]), None);
        assert_eq!(text_row(&[0]), None);
    }
}
