//! The login of a connection, in plain text or by TLS.

use super::auth::{self, Plugin, Privacy};
use super::connection::Connection;
use super::packet::{self, Reader, capability};
use super::{Address, Host, SslMode, failure};
use crate::error::Error;
use crate::net::tls;

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
    | capability::MULTI_RESULTS
    | capability::PS_MULTI_RESULTS
    | capability::PLUGIN_AUTH
    | capability::PLUGIN_AUTH_LENENC;

/// The server's request in `caching_sha2_password` if it knew the hash of the password: none, as an
/// OK packet follows.
const FAST_LOGIN: u8 = 3;
/// The server asks for the password itself, as it has no hash to compare.
const FULL_LOGIN: u8 = 4;
/// Asks the server for the public key that encrypts the password.
const PUBLIC_KEY_REQUEST: u8 = 2;

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

impl Connection {
    pub(super) fn log_in(&mut self, mode: SslMode) -> Result<(), Error> {
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
                    "the peer did not greet as MySQL or MariaDB does; check host and port",
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
        // If the default plugin cannot answer, the server may still request the user's plugin.
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
            (Plugin::CachingSha2, [FAST_LOGIN]) => Ok(()),
            (Plugin::CachingSha2, [FULL_LOGIN]) if self.privacy() != Privacy::Open => {
                self.reply(&auth::with_zero(password))
            }
            (Plugin::CachingSha2, [FULL_LOGIN]) => self.reply(&[PUBLIC_KEY_REQUEST]),
            // The public key begins with the dashes of its PEM header.
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
