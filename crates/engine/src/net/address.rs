//! The address of a server: a URL, completed from the sources that the server's own clients read.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use words::Secret;

use super::failure;
use super::stream::Stream;
use super::url::{self, Url};
use crate::error::{Error, ErrorClass, SetupError};
use crate::safety::user;

/// The default limit for the time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The codes of servers that refuse more connections: of PostgreSQL, and of MySQL and MariaDB.
const TOO_MANY_CODES: [&str; 3] = ["53300", "1040", "1203"];

/// The remedy when a server refuses more connections.
const TOO_MANY: &str = "raise the server's `max_connections`, or use fewer clients";

/// Returns the remedy for an error with this code if the server refused more connections.
pub fn connection_help(code: &str) -> Option<String> {
    TOO_MANY_CODES.contains(&code).then(|| {
        format!("{TOO_MANY}; a config without that option allows as many as the clients need")
    })
}

/// The URL scheme of a kind of server.
#[derive(Debug, PartialEq, Eq)]
pub struct Scheme {
    /// The scheme's names. The first one is printed.
    pub names: &'static [&'static str],
    /// The default TCP port.
    pub port: u16,
    /// The supported parameters, and the part of an address that each one sets: `host`, `port`,
    /// `user`, `password`, `database`, `socket`, `ssl-mode`, `ssl-root`, `connect-timeout` or
    /// `application-name`. Underscores are equivalent to hyphens.
    pub parameters: &'static [(&'static str, &'static str)],
    /// The names of the modes of encryption.
    pub ssl_modes: &'static [(&'static str, SslMode)],
    /// The form of a socket in a URL; `{}` is its path.
    pub socket: &'static str,
    /// The end of the socket's name, after that path.
    pub socket_file: &'static str,
    /// The instructions for writing a URL.
    pub usage: &'static str,
    /// The setting for the addresses on which the server listens.
    pub listen_setting: &'static str,
    /// The remedies when the server refuses, by error code; [`connection_help`] knows others.
    pub help: &'static [(&'static str, &'static str)],
}

impl Scheme {
    /// Returns the error of an invalid URL.
    pub(crate) fn invalid_url(&self, what: impl fmt::Display) -> SetupError {
        SetupError::config(format!("invalid URL of the server: {what}"), self.usage)
    }

    /// Returns the name of the parameter that gives a part of an address.
    fn parameter(&self, part: &str) -> &'static str {
        let parameter = self.parameters.iter().find(|(_, known)| *known == part);
        parameter.map_or("", |(name, _)| name)
    }
}

/// A host or a unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A unix socket: its path, or its directory if the socket's name contains the port.
    Unix(PathBuf),
    /// A host name or an IP address.
    Tcp(String),
}

/// The encryption of a connection, as in the server's own clients. A unix socket is never
/// encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// Never encrypted.
    Disable,
    /// Encrypted only if the server requires it.
    Allow,
    /// Encrypted if the server supports it.
    Prefer,
    /// Always encrypted, with any certificate.
    Require,
    /// Always encrypted, with a certificate from a trusted authority.
    VerifyCa,
    /// Always encrypted, with a certificate from a trusted authority for this host.
    VerifyFull,
}

/// Certificates of trusted authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// The file that has them.
    File(PathBuf),
    /// The certificates as PEM.
    Pem(String),
}

impl From<&str> for Roots {
    fn from(text: &str) -> Self {
        if text.starts_with("-----BEGIN ") {
            Self::Pem(text.into())
        } else {
            Self::File(text.into())
        }
    }
}

/// The address of a server, with the account and database to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The scheme of its URL.
    pub scheme: &'static Scheme,
    /// The host or the socket.
    pub host: Host,
    /// The TCP port, or the number in the socket's name.
    pub port: u16,
    /// The user of the database.
    pub user: String,
    /// The user's password.
    pub password: Option<Secret>,
    /// The database.
    pub database: String,
    /// The encryption of the connection.
    pub ssl_mode: SslMode,
    /// The certificates of trusted authorities; `None` means the system's.
    pub ssl_root: Option<Roots>,
    /// The time that connecting may take.
    pub connect_timeout: Duration,
    /// The client's name that the server shows, if its protocol has one.
    pub application_name: String,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, user, database) = (self.scheme.names[0], &self.user, &self.database);
        match &self.host {
            Host::Unix(path) => {
                let form = self.scheme.socket.replace("{}", &path.display().to_string());
                let socket = form.replace("{port}", &self.port.to_string());
                let (host, parameters) = socket.split_once('?').unwrap_or((&socket, ""));
                write!(f, "{scheme}://{user}@{host}/{database}?{parameters}")
            }
            Host::Tcp(host) if host.contains(':') => {
                write!(f, "{scheme}://{user}@[{host}]:{}/{database}", self.port)
            }
            Host::Tcp(host) => write!(f, "{scheme}://{user}@{host}:{}/{database}", self.port),
        }
    }
}

impl Address {
    /// Returns the URL, with the password, the mode of encryption and the certificate that assay
    /// made. So nothing on another host completes it differently.
    pub(crate) fn url(&self) -> String {
        let mut url = self.to_string();
        if let Some(password) = &self.password {
            url = url.replacen('@', &format!(":{}@", password.expose()), 1);
        }

        if let Host::Tcp(_) = self.host {
            let mode = self.scheme.ssl_modes.iter().find(|(_, mode)| *mode == self.ssl_mode);
            let mode_name = mode.map_or("", |(name, _)| name);
            url += &format!("?{}={mode_name}", self.scheme.parameter("ssl-mode"));
            if let Some(Roots::Pem(pem)) = &self.ssl_root {
                url += &format!("&{}={}", self.scheme.parameter("ssl-root"), url::encoded(pem));
            }
        }

        url
    }

    /// Returns the address of the private socket of a server that assay started.
    pub(crate) fn of_socket(
        scheme: &'static Scheme,
        socket: PathBuf,
        user: &str,
        connect_timeout: Duration,
    ) -> Self {
        Self {
            scheme,
            host: Host::Unix(socket),
            port: scheme.port,
            user: user.into(),
            password: None,
            database: String::new(),
            ssl_mode: SslMode::Disable,
            ssl_root: None,
            connect_timeout,
            application_name: "assay".into(),
        }
    }

    /// Connects without encryption. The time limit also applies to each read and write.
    pub(crate) fn connect(&self) -> Result<Stream, Error> {
        let connected = match &self.host {
            Host::Unix(path) => {
                let mut socket = path.clone().into_os_string();
                socket.push(self.scheme.socket_file.replace("{port}", &self.port.to_string()));
                Stream::connect_unix(Path::new(&socket))
            }
            Host::Tcp(host) => Stream::connect_tcp(host, self.port, self.connect_timeout),
        };
        let mut stream =
            connected.map_err(|error| failure::from_io(&format!("connect to `{self}`"), &error))?;
        stream.limit(Some(self.connect_timeout))?;
        Ok(stream)
    }

    /// Returns the remedy for a failed connection.
    pub(crate) fn help(&self, error: &Error) -> Option<String> {
        let code = error.code.as_deref().unwrap_or_default();
        let known = self.scheme.help.iter().find(|(known, _)| *known == code);
        if let Some((_, help)) = known {
            return Some(help.replace("{database}", &self.database));
        }
        if TOO_MANY_CODES.contains(&code) {
            return Some(TOO_MANY.into());
        }

        if error.class == ErrorClass::Refused && matches!(self.ssl_root, Some(Roots::Pem(_))) {
            return Some(
                "use a build whose TLS has a key exchange by ECDHE, or remove `tls` from the config".into(),
            );
        }
        if error.class != ErrorClass::ConnectionLost {
            return None;
        }

        Some(match &self.host {
            Host::Unix(path) => format!(
                "start the server, or write its socket instead of `{}` in the URL",
                path.display()
            ),
            Host::Tcp(_) => format!(
                "start the server, or check host, port and the server's `{}`",
                self.scheme.listen_setting
            ),
        })
    }
}

/// The parts of an address that are known so far.
pub(crate) struct Parts {
    scheme: &'static Scheme,
    values: BTreeMap<&'static str, String>,
}

impl Parts {
    /// Parses a URL.
    ///
    /// # Errors
    /// [`SetupError::Config`] with the invalid part. No message contains a password.
    pub(crate) fn from_url(scheme: &'static Scheme, url: &str) -> Result<Self, SetupError> {
        let content =
            scheme.names.iter().find_map(|name| url.strip_prefix(name)?.strip_prefix("://"));
        let Some(content) = content else {
            let what = format!("it does not begin with `{}://`", scheme.names[0]);
            return Err(scheme.invalid_url(what));
        };

        let url = Url::parse(content).map_err(|what| scheme.invalid_url(what))?;

        // Parameters take precedence over the parts before them.
        let mut parts = Self { scheme, values: BTreeMap::new() };
        for (name, value) in url.parameters {
            let known =
                scheme.parameters.iter().find(|(known, _)| hyphens(known) == hyphens(&name));
            let Some((_, part)) = known else {
                let supported: Vec<&str> =
                    scheme.parameters.iter().map(|(name, _)| *name).collect();
                return Err(scheme.invalid_url(format!(
                    "unknown parameter `{name}`; supported are `{}`",
                    supported.join("`, `")
                )));
            };
            parts.values.insert(part, value);
        }

        for (part, value) in url.parts {
            parts.fill(part, Some(value));
        }

        Ok(parts)
    }

    /// Returns a part if it is known.
    pub(crate) fn get(&self, part: &str) -> Option<&str> {
        self.values.get(part).map(String::as_str)
    }

    /// Sets a part unless it is already known.
    pub(crate) fn fill(&mut self, part: &'static str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.values.entry(part).or_insert(value);
        }
    }

    /// Builds an address from the parts. The default user is this process's.
    ///
    /// # Errors
    /// [`SetupError::Config`] with the invalid part.
    pub(crate) fn complete(mut self, host: Host) -> Result<Address, SetupError> {
        let scheme = self.scheme;
        self.fill("user", user::own_name());
        let port = self.port()?;
        let ssl_mode = self.ssl_mode()?;
        let connect_timeout = self.connect_timeout()?;

        let mut take = |part: &str| self.values.remove(part);
        Ok(Address {
            scheme,
            host,
            port,
            user: take("user").ok_or_else(|| {
                scheme
                    .invalid_url("it has no user, and the system user that runs assay has no name")
            })?,
            password: take("password").map(Secret::new),
            database: take("database").unwrap_or_default(),
            ssl_mode,
            ssl_root: take("ssl-root").map(|root| root.as_str().into()),
            connect_timeout,
            application_name: take("application-name").unwrap_or_else(|| "assay".into()),
        })
    }

    fn port(&self) -> Result<u16, SetupError> {
        let Some(text) = self.get("port") else {
            return Ok(self.scheme.port);
        };
        match text.parse() {
            Ok(port @ 1..) => Ok(port),
            _ => {
                let what = format!("port `{text}` is not a number from 1 to 65535");
                Err(self.scheme.invalid_url(what))
            }
        }
    }

    fn ssl_mode(&self) -> Result<SslMode, SetupError> {
        let Some(text) = self.get("ssl-mode") else {
            return Ok(SslMode::Prefer);
        };
        let plain = |text: &str| hyphens(&text.to_ascii_lowercase());
        let modes = self.scheme.ssl_modes;
        if let Some((_, mode)) = modes.iter().find(|(name, _)| plain(name) == plain(text)) {
            return Ok(*mode);
        }

        let names: Vec<&str> = modes.iter().map(|(name, _)| *name).collect();
        Err(self.scheme.invalid_url(format!(
            "unknown value of `{}={text}`; supported are `{}`",
            self.scheme.parameter("ssl-mode"),
            names.join("`, `")
        )))
    }

    fn connect_timeout(&self) -> Result<Duration, SetupError> {
        let Some(text) = self.get("connect-timeout") else {
            return Ok(CONNECT_TIMEOUT);
        };

        match text.parse() {
            // As in the servers' own clients, zero means the default.
            Ok(0) => Ok(CONNECT_TIMEOUT),
            Ok(seconds) => Ok(Duration::from_secs(seconds)),
            Err(_) => Err(self.scheme.invalid_url(format!(
                "`{}={text}` is not a number of seconds",
                self.scheme.parameter("connect-timeout")
            ))),
        }
    }
}

/// Returns a name with hyphens: names may be written with `_` or with `-`.
fn hyphens(name: &str) -> String {
    name.replace('_', "-")
}
