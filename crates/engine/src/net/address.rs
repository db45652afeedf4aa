//! The address of a server: a URL, completed from the sources that the server's own clients read.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::failure;
use super::stream::Stream;
use super::url::{self, Url};
use crate::local::user;
use crate::{Error, ErrorClass, SetupError};
use words::Secret;

/// The default limit for the time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The remedy when a server refuses more connections.
pub(crate) const TOO_MANY: &str = "raise the server's `max_connections`, or use fewer clients";

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
    /// The remedies when the server refuses, by error code.
    pub help: &'static [(&'static str, &'static str)],
}

impl Scheme {
    /// Returns the error of an invalid URL.
    pub(crate) fn invalid_url(&self, what: impl fmt::Display) -> SetupError {
        SetupError::config(format!("invalid URL of the server: {what}"), self.usage)
    }

    /// Returns the parameter's name of a part of an address.
    fn parameter(&self, part: &str) -> &'static str {
        let mut parameters = self.parameters.iter();
        let parameter = parameters.find(|(_, known)| *known == part);
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
    /// Their PEM.
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
                let socket = self.scheme.socket.replace("{}", &path.display().to_string());
                let socket = socket.replace("{port}", &self.port.to_string());
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
            let mut modes = self.scheme.ssl_modes.iter();
            let mode = modes.find(|(_, mode)| *mode == self.ssl_mode);
            let mode = mode.map_or("", |(name, _)| name);
            url += &format!("?{}={mode}", self.scheme.parameter("ssl-mode"));
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
        let mut known = self.scheme.help.iter();
        let code = error.code.as_deref();
        if let Some((_, help)) = known.find(|(known, _)| Some(*known) == code) {
            return Some(help.replace("{database}", &self.database));
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
        let content = scheme.names.iter().find_map(|name| {
            let content = url.strip_prefix(name)?;
            content.strip_prefix("://")
        });
        let content = content.ok_or_else(|| {
            scheme.invalid_url(format!("it does not begin with `{}://`", scheme.names[0]))
        })?;
        let url = Url::parse(content).map_err(|what| scheme.invalid_url(what))?;
        let mut parts = Self { scheme, values: BTreeMap::new() };
        for (name, value) in url.parameters {
            let mut known = scheme.parameters.iter();
            let hyphens = |name: &str| name.replace('_', "-");
            let Some((_, part)) = known.find(|(known, _)| hyphens(known) == hyphens(&name)) else {
                let known: Vec<&str> = scheme.parameters.iter().map(|(name, _)| *name).collect();
                return Err(scheme.invalid_url(format!(
                    "unknown parameter `{name}`; supported are `{}`",
                    known.join("`, `")
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
        let mut take = |part: &str| self.values.remove(part);
        let port = match take("port") {
            None => scheme.port,
            Some(text) => match text.parse() {
                Ok(port @ 1..) => port,
                _ => {
                    return Err(scheme
                        .invalid_url(format!("port `{text}` is not a number from 1 to 65535")));
                }
            },
        };
        let ssl_mode = match take("ssl-mode") {
            None => SslMode::Prefer,
            Some(text) => {
                let plain = |text: &str| text.to_ascii_lowercase().replace('_', "-");
                let mut modes = scheme.ssl_modes.iter();
                let mode = modes.find(|(name, _)| plain(name) == plain(&text));
                mode.map(|(_, mode)| *mode).ok_or_else(|| {
                    let names: Vec<&str> = scheme.ssl_modes.iter().map(|(name, _)| *name).collect();
                    scheme.invalid_url(format!(
                        "unknown value of `{}={text}`; supported are `{}`",
                        scheme.parameter("ssl-mode"),
                        names.join("`, `")
                    ))
                })?
            }
        };
        let connect_timeout = match take("connect-timeout") {
            None => CONNECT_TIMEOUT,
            Some(text) => match text.parse() {
                Ok(0) => CONNECT_TIMEOUT,
                Ok(seconds) => Duration::from_secs(seconds),
                Err(_) => {
                    return Err(scheme.invalid_url(format!(
                        "`{}={text}` is not a number of seconds",
                        scheme.parameter("connect-timeout")
                    )));
                }
            },
        };
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
}
