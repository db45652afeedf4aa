//! Where a server is and as whom to connect: a URL, completed from what the server's own clients read.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::failure;
use super::stream::Stream;
use super::url::Url;
use crate::local::user;
use crate::{Error, ErrorClass, SetupError};
use words::Secret;

/// How long connecting may take when nothing says so.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What to do when a server takes no more connections.
pub(crate) const TOO_MANY: &str = "raise the server's `max_connections`, or use fewer clients";

/// What the URLs of one kind of server look like.
#[derive(Debug, PartialEq, Eq)]
pub struct Scheme {
    /// Its names; the first is the one to print.
    pub names: &'static [&'static str],
    /// The usual TCP port.
    pub port: u16,
    /// The parameters that are understood, each with the part of an address that it is: `host`, `port`, `user`,
    /// `password`, `database`, `socket`, `ssl-mode`, `ssl-root`, `connect-timeout` or `application-name`. An underscore in them
    /// is as good as a hyphen.
    pub parameters: &'static [(&'static str, &'static str)],
    /// The names of the modes of encryption.
    pub ssl_modes: &'static [(&'static str, SslMode)],
    /// How the part of a URL that names a socket is written; `{}` is its path.
    pub socket: &'static str,
    /// What follows that path in the name of the socket.
    pub socket_file: &'static str,
    /// How to write a URL.
    pub usage: &'static str,
    /// The setting that says where the server listens.
    pub listens: &'static str,
    /// What to do when the server refuses, by the code of its error.
    pub help: &'static [(&'static str, &'static str)],
}

impl Scheme {
    /// Returns the error of a URL in which `what` is wrong.
    pub(crate) fn wrong(&self, what: impl fmt::Display) -> SetupError {
        SetupError::Config {
            what: format!("server URL: {what}"),
            help: self.usage.into(),
        }
    }

    /// Returns how a part of an address is called as a parameter.
    fn parameter(&self, part: &str) -> &'static str {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(_, known)| *known == part);
        found.map_or("", |(name, _)| name)
    }
}

/// The machine, or the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A unix socket: its path, or its directory where the port is in its name.
    Unix(PathBuf),
    /// A name or an IP address.
    Tcp(String),
}

/// Whether and how the connection is encrypted; the meanings are those of the server's own clients. A unix socket is
/// never encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// Never.
    Disable,
    /// Only when the server refuses to do without.
    Allow,
    /// When the server can.
    Prefer,
    /// Always; whose certificate it is does not matter.
    Require,
    /// Always, with a certificate that a trusted authority has signed.
    VerifyCa,
    /// Always, with such a certificate for this very host.
    VerifyFull,
}

/// Where a server is, and as whom to connect to which database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// What its URLs look like.
    pub scheme: &'static Scheme,
    /// The machine, or the socket.
    pub host: Host,
    /// The TCP port, or the number in the socket's name.
    pub port: u16,
    /// The account.
    pub user: String,
    /// Its password, if there is one.
    pub password: Option<Secret>,
    /// The database.
    pub database: String,
    /// Whether the connection is encrypted.
    pub ssl_mode: SslMode,
    /// A file with the certificates of trusted authorities; `None`: those of the system.
    pub ssl_root: Option<PathBuf>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// What the server shows as the client's name, where its protocol has one.
    pub application_name: String,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, user, database) = (self.scheme.names[0], &self.user, &self.database);
        match &self.host {
            Host::Unix(path) => {
                let socket = self
                    .scheme
                    .socket
                    .replace("{}", &path.display().to_string());
                let socket = socket.replace("{port}", &self.port.to_string());
                let (place, parameters) = socket.split_once('?').unwrap_or((&socket, ""));
                write!(f, "{scheme}://{user}@{place}/{database}?{parameters}")
            }
            Host::Tcp(host) if host.contains(':') => {
                write!(f, "{scheme}://{user}@[{host}]:{}/{database}", self.port)
            }
            Host::Tcp(host) => write!(f, "{scheme}://{user}@{host}:{}/{database}", self.port),
        }
    }
}

impl Address {
    /// Returns the address of a server that assay started, which listens on a socket alone.
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

    /// Connects, without encryption. No read or write may take longer than connecting.
    pub(crate) fn connect(&self) -> Result<Stream, Error> {
        let connected = match &self.host {
            Host::Unix(path) => {
                let mut socket = path.clone().into_os_string();
                socket.push(
                    self.scheme
                        .socket_file
                        .replace("{port}", &self.port.to_string()),
                );
                Stream::connect_unix(Path::new(&socket))
            }
            Host::Tcp(host) => Stream::connect_tcp(host, self.port, self.connect_timeout),
        };
        let mut stream =
            connected.map_err(|error| failure::from_io(&format!("connect to `{self}`"), &error))?;
        stream.limit(Some(self.connect_timeout))?;
        Ok(stream)
    }

    /// Says what to do when there is no connection to be had.
    pub(crate) fn help(&self, error: &Error) -> Option<String> {
        let mut known = self.scheme.help.iter();
        let code = error.code.as_deref();
        if let Some((_, help)) = known.find(|(known, _)| Some(*known) == code) {
            return Some(help.replace("{database}", &self.database));
        }
        if error.class != ErrorClass::ConnectionLost {
            return None;
        }
        Some(match &self.host {
            Host::Unix(path) => format!(
                "start the server, or name its socket instead of `{}`",
                path.display()
            ),
            Host::Tcp(_) => format!(
                "start the server, or check host, port and the server's `{}`",
                self.scheme.listens
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
    /// Takes a URL apart.
    ///
    /// # Errors
    /// [`SetupError::Config`] naming the part that is wrong. No message holds a password.
    pub(crate) fn of_url(scheme: &'static Scheme, url: &str) -> Result<Self, SetupError> {
        let rest = scheme.names.iter().find_map(|name| {
            let rest = url.strip_prefix(name)?;
            rest.strip_prefix("://")
        });
        let rest = rest
            .ok_or_else(|| scheme.wrong(format!("does not begin with `{}://`", scheme.names[0])))?;
        let url = Url::parse(rest).map_err(|what| scheme.wrong(what))?;
        let mut parts = Self {
            scheme,
            values: BTreeMap::new(),
        };
        for (name, value) in url.parameters {
            let mut known = scheme.parameters.iter();
            let hyphens = |name: &str| name.replace('_', "-");
            let Some((_, part)) = known.find(|(known, _)| hyphens(known) == hyphens(&name)) else {
                let known: Vec<&str> = scheme.parameters.iter().map(|(name, _)| *name).collect();
                return Err(scheme.wrong(format!(
                    "unknown parameter `{name}`; known are `{}`",
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

    /// Returns a part, where it is known.
    pub(crate) fn get(&self, part: &str) -> Option<&str> {
        self.values.get(part).map(String::as_str)
    }

    /// Adds a part that is not known yet.
    pub(crate) fn fill(&mut self, part: &'static str, value: Option<String>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.values.entry(part).or_insert(value);
        }
    }

    /// Makes an address of the parts. The user is by default this process's.
    ///
    /// # Errors
    /// [`SetupError::Config`] naming the part that is wrong.
    pub(crate) fn complete(mut self, host: Host) -> Result<Address, SetupError> {
        let scheme = self.scheme;
        self.fill("user", user::own_name());
        let mut take = |part: &str| self.values.remove(part);
        let port = match take("port") {
            None => scheme.port,
            Some(text) => match text.parse() {
                Ok(port @ 1..) => port,
                _ => {
                    return Err(
                        scheme.wrong(format!("port `{text}` is not a number from 1 to 65535"))
                    );
                }
            },
        };
        let ssl_mode = match take("ssl-mode") {
            None => SslMode::Prefer,
            Some(text) => {
                let plain = |text: &str| text.to_ascii_lowercase().replace('_', "-");
                let mut modes = scheme.ssl_modes.iter();
                let found = modes.find(|(name, _)| plain(name) == plain(&text));
                found.map(|(_, mode)| *mode).ok_or_else(|| {
                    let names: Vec<&str> = scheme.ssl_modes.iter().map(|(name, _)| *name).collect();
                    scheme.wrong(format!(
                        "unknown `{}={text}`; known are `{}`",
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
                    return Err(scheme.wrong(format!(
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
                scheme.wrong("it names no user, and the user that runs assay has no name")
            })?,
            password: take("password").map(Secret::new),
            database: take("database").unwrap_or_default(),
            ssl_mode,
            ssl_root: take("ssl-root").map(PathBuf::from),
            connect_timeout,
            application_name: take("application-name").unwrap_or_else(|| "assay".into()),
        })
    }
}
