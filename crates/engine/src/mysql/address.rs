//! Where a server is and as whom to connect: a URL, completed from the environment and the option files as the
//! server's own clients do it.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use words::Secret;

use crate::local::user;
use crate::net::tls::Trust;
use crate::net::url::Url;
use crate::{Error, ErrorClass, SetupError};

/// How long connecting may take when nothing says so.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the socket may be when nothing says so: of Debian and Red Hat, then of builds from source.
const SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
    "/tmp/mariadb.sock",
];

/// The option files that every client reads, before the user's own.
const OPTION_FILES: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];

/// The groups of an option file that are for every client.
const GROUPS: [&str; 3] = ["client", "client-server", "client-mariadb"];

/// The parameters of a URL that are understood.
const PARAMETERS: [&str; 4] = ["connect-timeout", "socket", "ssl-ca", "ssl-mode"];

/// The machine, or the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// The path of a unix socket.
    Unix(PathBuf),
    /// A name or an IP address.
    Tcp(String),
}

/// Whether and how the connection is encrypted; the meanings are those of MySQL's own clients. A unix socket is never
/// encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    /// Never.
    Disabled,
    /// When the server can.
    Preferred,
    /// Always; whose certificate it is does not matter.
    Required,
    /// Always, with a certificate that a trusted authority has signed.
    VerifyCa,
    /// Always, with such a certificate for this very host.
    VerifyIdentity,
}

impl SslMode {
    fn parse(text: &str) -> Option<Self> {
        let known = text.to_ascii_uppercase().replace('-', "_");
        Some(match known.as_str() {
            "DISABLED" => Self::Disabled,
            "PREFERRED" => Self::Preferred,
            "REQUIRED" => Self::Required,
            "VERIFY_CA" => Self::VerifyCa,
            "VERIFY_IDENTITY" => Self::VerifyIdentity,
            _ => return None,
        })
    }

    pub(super) fn trust(self) -> Trust {
        match self {
            Self::Disabled | Self::Preferred | Self::Required => Trust::Anyone,
            Self::VerifyCa => Trust::Authority,
            Self::VerifyIdentity => Trust::Name,
        }
    }
}

/// Where a server is, and as whom to connect to which database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The machine, or the socket.
    pub host: Host,
    /// The TCP port; without meaning for a socket.
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
    pub ssl_ca: Option<PathBuf>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            user,
            port,
            database,
            ..
        } = self;
        match &self.host {
            Host::Unix(socket) => write!(
                f,
                "mysql://{user}@localhost/{database}?socket={}",
                socket.display()
            ),
            Host::Tcp(host) if host.contains(':') => {
                write!(f, "mysql://{user}@[{host}]:{port}/{database}")
            }
            Host::Tcp(host) => write!(f, "mysql://{user}@{host}:{port}/{database}"),
        }
    }
}

/// What the clients' option files say, of that which is understood here. A later file wins.
#[derive(Debug, Default, PartialEq)]
struct OptionFile {
    options: Vec<(String, String)>,
}

impl OptionFile {
    fn get(&self, name: &str) -> Option<String> {
        let mut found = self.options.iter().rev().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.clone())
    }

    /// Reads a file with what it includes; one that is not there, or that everybody may write, adds nothing.
    fn read(&mut self, path: &Path, depth: u32) {
        let Ok(metadata) = fs::metadata(path) else {
            return;
        };
        if !metadata.is_file() || metadata.mode() & 0o002 != 0 || depth > 8 {
            return;
        }
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut is_ours = false;
        for line in text.lines().map(str::trim) {
            if let Some(directory) = line.strip_prefix("!includedir") {
                let Ok(entries) = fs::read_dir(directory.trim()) else {
                    continue;
                };
                let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
                files.retain(|file| file.extension().is_some_and(|it| it == "cnf"));
                files.sort();
                files.iter().for_each(|file| self.read(file, depth + 1));
            } else if let Some(file) = line.strip_prefix("!include") {
                self.read(Path::new(file.trim()), depth + 1);
            } else if let Some(group) = line.strip_prefix('[') {
                is_ours = GROUPS.contains(&group.trim_end_matches(']'));
            } else if is_ours && !line.starts_with(['#', ';']) {
                let (name, value) = line.split_once('=').unwrap_or((line, ""));
                let name = name.trim().replace('_', "-");
                self.options
                    .push((name, unquoted(value.trim()).to_string()));
            }
        }
    }
}

fn unquoted(value: &str) -> &str {
    ['"', '\'']
        .iter()
        .find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value)
}

impl Address {
    /// Understands a URL; what it leaves out comes from the environment, the option files (`~/.my.cnf` the last) and
    /// the usual defaults.
    ///
    /// # Errors
    /// [`SetupError::Config`] naming the part that is wrong. No message holds a password.
    pub fn from_url(url: &str) -> Result<Self, SetupError> {
        let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let mut file = OptionFile::default();
        for path in OPTION_FILES {
            file.read(Path::new(path), 0);
        }
        if let Some(home) = env("HOME") {
            file.read(&Path::new(&home).join(".my.cnf"), 0);
        }
        Self::from_url_and(url, &env, &file)
    }

    fn from_url_and(
        url: &str,
        env: &dyn Fn(&str) -> Option<String>,
        file: &OptionFile,
    ) -> Result<Self, SetupError> {
        let rest = url
            .strip_prefix("mysql://")
            .or_else(|| url.strip_prefix("mariadb://"))
            .ok_or_else(|| wrong("does not begin with `mysql://`".into()))?;
        let mut url = Url::parse(rest).map_err(wrong)?;
        for (name, _) in &mut url.parameters {
            *name = name.replace('_', "-");
            if !PARAMETERS.contains(&name.as_str()) {
                return Err(wrong(format!(
                    "parameter `{name}` is not known; known are `{}`",
                    PARAMETERS.join("`, `")
                )));
            }
        }
        let parameter = |name: &str| {
            let mut found = url.parameters.iter().filter(|(known, _)| known == name);
            found.next().map(|(_, value)| value.clone())
        };
        // A URL that says where the server is is not completed by where another one is.
        let is_placed = url.host.is_some() || url.port.is_some() || parameter("socket").is_some();
        let elsewhere = |variable: &str, name: &str| {
            env(variable)
                .or_else(|| file.get(name))
                .filter(|_| !is_placed)
        };
        let host = url.host.clone().or_else(|| elsewhere("MYSQL_HOST", "host"));
        let port = url
            .port
            .clone()
            .or_else(|| elsewhere("MYSQL_TCP_PORT", "port"));
        let socket = parameter("socket").or_else(|| elsewhere("MYSQL_UNIX_PORT", "socket"));
        // As the server's own clients: `localhost` means the socket.
        let is_here = host.as_deref().is_none_or(|host| host == "localhost");
        let host = match (socket, host) {
            (Some(socket), _) if is_here => Host::Unix(socket.into()),
            (None, host) if is_here && url.port.is_none() => SOCKETS
                .iter()
                .find(|socket| Path::new(socket).exists())
                .map_or_else(
                    || Host::Tcp(host.unwrap_or_else(|| "localhost".into())),
                    |socket| Host::Unix(socket.into()),
                ),
            (_, host) => Host::Tcp(host.unwrap_or_else(|| "localhost".into())),
        };
        let port = match port {
            Some(text) => text
                .parse()
                .ok()
                .filter(|&port: &u16| port > 0)
                .ok_or_else(|| wrong(format!("port `{text}` is not a number from 1 to 65535")))?,
            None => 3306,
        };
        let user = url.user.clone().or_else(|| file.get("user"));
        let user = user
            .or_else(user::own_name)
            .ok_or_else(|| wrong("names no user, and this process's has no name".into()))?;
        let password = url.password.clone().or_else(|| env("MYSQL_PWD"));
        let ssl_mode = match parameter("ssl-mode").or_else(|| file.get("ssl-mode")) {
            Some(text) => SslMode::parse(&text).ok_or_else(|| {
                wrong(format!(
                    "`ssl-mode={text}` is not known; known are `DISABLED`, `PREFERRED`, `REQUIRED`, `VERIFY_CA`, \
                     `VERIFY_IDENTITY`"
                ))
            })?,
            None => SslMode::Preferred,
        };
        let connect_timeout = match parameter("connect-timeout") {
            Some(text) => text.parse().map(Duration::from_secs).map_err(|_| {
                wrong(format!(
                    "`connect-timeout={text}` is not a number of seconds"
                ))
            })?,
            None => CONNECT_TIMEOUT,
        };
        Ok(Self {
            host,
            port,
            user,
            password: password
                .or_else(|| file.get("password"))
                .filter(|password| !password.is_empty())
                .map(Secret::new),
            database: url
                .database
                .clone()
                .or_else(|| file.get("database"))
                .unwrap_or_else(|| "ib".into()),
            ssl_mode,
            ssl_ca: parameter("ssl-ca")
                .or_else(|| file.get("ssl-ca"))
                .map(PathBuf::from),
            connect_timeout,
        })
    }

    /// What to do when connecting fails, where that is known.
    pub(super) fn help(&self, error: &Error) -> Option<String> {
        Some(match (error.class, error.code.as_deref()) {
            (_, Some("1045" | "1698")) => {
                "give the right user and password: in the URL, in `MYSQL_PWD` or in `~/.my.cnf`"
                    .into()
            }
            (_, Some("1044" | "1130")) => {
                format!(
                    "let this user in from here: `grant all on {}.* to ...`",
                    self.database
                )
            }
            (_, Some("1049")) => format!("create it first: `create database {}`", self.database),
            (_, Some("1040" | "1203")) => {
                "raise the server's `max_connections`, or use fewer clients".into()
            }
            (ErrorClass::ConnectionLost, _) => match &self.host {
                Host::Unix(socket) => format!(
                    "start the server, or name its socket instead of `{}`",
                    socket.display()
                ),
                Host::Tcp(_) => {
                    "start the server, or check host, port and the server's `bind_address`".into()
                }
            },
            _ => return None,
        })
    }
}

fn wrong(what: String) -> SetupError {
    SetupError::Config {
        what: format!("server URL: {what}"),
        help: "write it as `mysql://USER:PASSWORD@HOST:PORT/DATABASE?ssl-mode=...`; \
               the path of a unix socket goes into `?socket=/PATH`"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(
        url: &str,
        env: &[(&str, &str)],
        options: &[(&str, &str)],
    ) -> Result<Address, SetupError> {
        let pairs = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect::<Vec<_>>()
        };
        let env = pairs(env);
        let file = OptionFile {
            options: pairs(options),
        };
        let env = |name: &str| {
            let found = env.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        Address::from_url_and(url, &env, &file)
    }

    #[test]
    fn a_full_url_is_understood() {
        let address = understood(
            "mysql://me:p%40ss@db.example:3307/x?ssl-mode=verify_identity&ssl_ca=/r.pem&connect-timeout=3",
            &[("MYSQL_HOST", "other")],
            &[("user", "nobody")],
        )
        .unwrap();
        assert_eq!(address.host, Host::Tcp("db.example".into()));
        assert_eq!(address.to_string(), "mysql://me@db.example:3307/x");
        assert_eq!(address.password, Some(Secret::new("p@ss")));
        assert_eq!(address.ssl_mode, SslMode::VerifyIdentity);
        assert_eq!(address.ssl_ca, Some("/r.pem".into()));
        assert_eq!(address.connect_timeout, Duration::from_secs(3));
    }

    #[test]
    fn localhost_is_the_socket_unless_a_port_is_given() {
        let address = understood("mysql://me@localhost/x?socket=/s", &[], &[]).unwrap();
        assert_eq!(address.host, Host::Unix("/s".into()));
        let address = understood("mysql://me@localhost:3306/x", &[], &[]).unwrap();
        assert_eq!(address.host, Host::Tcp("localhost".into()));
        let address = understood("mysql://", &[], &[("socket", "/t"), ("user", "u")]).unwrap();
        assert_eq!(address.to_string(), "mysql://u@localhost/ib?socket=/t");
    }

    #[test]
    fn the_environment_and_the_option_file_fill_in() {
        let address = understood(
            "mysql://u@/d",
            &[("MYSQL_PWD", "w"), ("MYSQL_TCP_PORT", "7")],
            &[("host", "h"), ("password", "no"), ("port", "8")],
        )
        .unwrap();
        assert_eq!(address.to_string(), "mysql://u@h:7/d");
        assert_eq!(address.password, Some(Secret::new("w")));
        // The port of another server is not this one's.
        let address = understood("mysql://u@other/d", &[], &[("port", "8")]).unwrap();
        assert_eq!(address.port, 3306);
    }

    #[test]
    fn option_files_are_read_with_what_they_include() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        file("b.cnf", "[client]\nuser=b\n");
        let included = file("one", "[client]\n# no\nssl_ca = '/c d'\n[mysqld]\nuser=x\n");
        let main = file(
            "main",
            &format!(
                "[client]\nuser=a\npassword=\"p#w\"\n!include {}\n!includedir {}\n",
                included.display(),
                directory.path().display()
            ),
        );
        let mut options = OptionFile::default();
        options.read(&main, 0);
        assert_eq!(options.get("user").as_deref(), Some("b"));
        assert_eq!(options.get("password").as_deref(), Some("p#w"));
        assert_eq!(options.get("ssl-ca").as_deref(), Some("/c d"));
        assert_eq!(options.get("host"), None);
    }

    #[test]
    fn wrong_parts_are_named_and_no_password_is_printed() {
        for (url, part) in [
            ("postgresql://x", "mysql://"),
            ("mysql://u:hunter2@h:70000/d", "`70000`"),
            ("mysql://u:hunter2@h/d?ssl-mode=maybe", "`ssl-mode=maybe`"),
            ("mysql://u:hunter2@h/d?colour=red", "`colour`"),
            ("mysql://u:hunter2%zz@h/d", "password"),
        ] {
            let error = understood(url, &[], &[]).unwrap_err();
            assert!(error.to_string().contains(part), "{url}: {error}");
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
        let address = understood("mysql://me:hunter2@h/d", &[], &[]).unwrap();
        assert!(!format!("{address} {address:?}").contains("hunter2"));
    }
}
