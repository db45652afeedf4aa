//! Where a server is and as whom to connect: a URL, completed from the environment and the password file as the
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

/// How long connecting may take when the URL does not say.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a socket may be when no host is given: of Debian and Red Hat, then of a build from source.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// The parameters of a URL that are understood.
const PARAMETERS: &str = "`host`, `port`, `user`, `password`, `dbname`, `sslmode`, `sslrootcert`, `connect_timeout`, `application_name`";

/// The machine, or the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// The directory of a unix socket.
    Unix(PathBuf),
    /// A name or an IP address.
    Tcp(String),
}

/// Whether and how the connection is encrypted; the meanings are those of the server's own clients. A unix socket is
/// never encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    /// Never.
    Disable,
    /// Only when the server refuses to do without.
    Allow,
    /// When the server can.
    Prefer,
    /// Always; whose certificate it is does not matter, unless a root certificate is given.
    Require,
    /// Always, with a certificate that a trusted authority has signed.
    VerifyCa,
    /// Always, with such a certificate for this very host.
    VerifyFull,
}

impl SslMode {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "disable" => Self::Disable,
            "allow" => Self::Allow,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => return None,
        })
    }

    /// Whose certificate is good enough. As in libpq, a root certificate turns `require` into `verify-ca`.
    pub(super) fn trust(self, has_root: bool) -> Trust {
        match self {
            Self::VerifyFull => Trust::Name,
            Self::VerifyCa => Trust::Authority,
            Self::Require if has_root => Trust::Authority,
            Self::Disable | Self::Allow | Self::Prefer | Self::Require => Trust::Anyone,
        }
    }
}

/// Where a server is, and as whom to connect to which database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The machine, or the socket.
    pub host: Host,
    /// The TCP port, or the number in the socket's name.
    pub port: u16,
    /// The role.
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
    /// What the server shows as the client's name.
    pub application_name: String,
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
            Host::Unix(directory) => {
                write!(
                    f,
                    "postgresql://{user}@/{database}?host={}&port={port}",
                    directory.display()
                )
            }
            Host::Tcp(host) if host.contains(':') => {
                write!(f, "postgresql://{user}@[{host}]:{port}/{database}")
            }
            Host::Tcp(host) => write!(f, "postgresql://{user}@{host}:{port}/{database}"),
        }
    }
}

impl Address {
    /// Understands a URL; what it leaves out comes from the environment, the password file and the usual defaults.
    ///
    /// # Errors
    /// [`SetupError::Config`] naming the part that is wrong. No message holds a password.
    pub fn from_url(url: &str) -> Result<Self, SetupError> {
        Self::from_url_and(url, &|name| {
            std::env::var(name).ok().filter(|value| !value.is_empty())
        })
    }

    fn from_url_and(url: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, SetupError> {
        let given = split(url)?;
        let parameter = |name: &str| {
            let mut found = given.parameters.iter().filter(|(known, _)| known == name);
            found.next_back().map(|(_, value)| value.clone())
        };
        let home = env("HOME").map(PathBuf::from);
        let host = match given.host.clone().or_else(|| env("PGHOST")) {
            Some(host) if host.contains(',') => {
                return Err(wrong(format!(
                    "server URL: several hosts given, `{host}`; one is allowed"
                )));
            }
            Some(host) if host.starts_with('/') => Host::Unix(host.into()),
            Some(host) => Host::Tcp(host),
            None => SOCKET_DIRECTORIES
                .iter()
                .find(|directory| Path::new(directory).join(".s.PGSQL.5432").exists())
                .map_or_else(
                    || Host::Tcp("localhost".into()),
                    |directory| Host::Unix(directory.into()),
                ),
        };
        let port = match given.port.clone().or_else(|| env("PGPORT")) {
            Some(text) => text
                .parse()
                .ok()
                .filter(|&port: &u16| port > 0)
                .ok_or_else(|| {
                    wrong(format!(
                        "server URL: port `{text}` is not a number from 1 to 65535"
                    ))
                })?,
            None => 5432,
        };
        let user = match given.user.clone().or_else(|| env("PGUSER")) {
            Some(user) => user,
            None => user::own_name().ok_or_else(|| {
                wrong("server URL: names no user, and this process's has no name".into())
            })?,
        };
        let database = given
            .database
            .clone()
            .or_else(|| env("PGDATABASE"))
            .unwrap_or_else(|| user.clone());
        let ssl_mode = match parameter("sslmode").or_else(|| env("PGSSLMODE")) {
            Some(text) => SslMode::parse(&text).ok_or_else(|| {
                wrong(format!(
                    "server URL: `sslmode={text}` is not known; known are `disable`, `allow`, `prefer`, `require`, \
                     `verify-ca`, `verify-full`"
                ))
            })?,
            None => SslMode::Prefer,
        };
        let ssl_root = match parameter("sslrootcert").or_else(|| env("PGSSLROOTCERT")) {
            Some(text) if text == "system" => None,
            Some(text) => Some(PathBuf::from(text)),
            None => home
                .as_ref()
                .map(|home| home.join(".postgresql/root.crt"))
                .filter(|path| path.exists()),
        };
        let connect_timeout =
            match parameter("connect_timeout").or_else(|| env("PGCONNECT_TIMEOUT")) {
                Some(text) => match text.parse() {
                    Ok(0) => CONNECT_TIMEOUT,
                    Ok(seconds) => Duration::from_secs(seconds),
                    Err(_) => {
                        return Err(wrong(format!(
                            "server URL: `connect_timeout={text}` is not a number of seconds"
                        )));
                    }
                },
                None => CONNECT_TIMEOUT,
            };
        let password = given
            .password
            .clone()
            .or_else(|| env("PGPASSWORD"))
            .map(Secret::new)
            .or_else(|| {
                let path = env("PGPASSFILE")
                    .map(PathBuf::from)
                    .or_else(|| Some(home?.join(".pgpass")))?;
                let entry = Entry {
                    host: &host,
                    port,
                    database: &database,
                    user: &user,
                };
                entry.find(&password_file(&path)?)
            });
        Ok(Self {
            host,
            port,
            user,
            password,
            database,
            ssl_mode,
            ssl_root,
            connect_timeout,
            application_name: parameter("application_name").unwrap_or_else(|| "assay".into()),
        })
    }

    /// What to do when connecting fails, where that is known.
    pub(super) fn help(&self, error: &Error) -> Option<String> {
        Some(match (error.class, error.code.as_deref()) {
            (_, Some("28P01")) => {
                "give the right password: in the URL, in `PGPASSWORD` or in the password file `~/.pgpass`".into()
            }
            (_, Some("28000")) => "let this user in from here, in the server's `pg_hba.conf`".into(),
            (_, Some("3D000")) => format!("create it first: `createdb {}`", self.database),
            (_, Some("53300")) => "raise the server's `max_connections`, or use fewer clients".into(),
            (ErrorClass::ConnectionLost, _) => match &self.host {
                Host::Unix(directory) => {
                    format!("start the server, or name the directory of its socket instead of `{}`", directory.display())
                }
                Host::Tcp(_) => "start the server, or check host, port and the server's `listen_addresses`".into(),
            },
            _ => return None,
        })
    }
}

fn wrong(what: String) -> SetupError {
    SetupError::Config {
        what,
        help: "write it as `postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=...`; \
               the directory of a unix socket goes into `?host=/DIRECTORY`"
            .into(),
    }
}

fn split(url: &str) -> Result<Url, SetupError> {
    let rest = url
        .strip_prefix("postgresql://")
        .or_else(|| url.strip_prefix("postgres://"))
        .ok_or_else(|| wrong("server URL: does not begin with `postgresql://`".into()))?;
    let mut url = Url::parse(rest).map_err(|what| wrong(format!("server URL: {what}")))?;
    for (name, value) in &url.parameters {
        // Those that are also parts of the URL itself.
        let place = match name.as_str() {
            "host" => &mut url.host,
            "port" => &mut url.port,
            "user" => &mut url.user,
            "password" => &mut url.password,
            "dbname" => &mut url.database,
            "sslmode" | "sslrootcert" | "connect_timeout" | "application_name" => continue,
            _ => {
                return Err(wrong(format!(
                    "server URL: parameter `{name}` is not known; known are {PARAMETERS}"
                )));
            }
        };
        *place = Some(value.clone());
    }
    Ok(url)
}

/// The password file's text, if it is there and nobody else may read it; others are ignored, as libpq does.
fn password_file(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.mode() & 0o077 != 0 {
        return None;
    }
    fs::read_to_string(path).ok()
}

/// What a line of the password file has to match.
struct Entry<'a> {
    host: &'a Host,
    port: u16,
    database: &'a str,
    user: &'a str,
}

impl Entry<'_> {
    /// The password in the first line that matches: `host:port:database:user:password`, `*` for any, `\` before `:`
    /// and `\`.
    fn find(&self, text: &str) -> Option<Secret> {
        let port = self.port.to_string();
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .find_map(|line| {
                let fields = fields(line);
                let [host, file_port, database, user, password] = fields.as_slice() else {
                    return None;
                };
                let is_host = match self.host {
                    Host::Unix(directory) => host == "localhost" || Path::new(host) == directory,
                    Host::Tcp(name) => host == name,
                };
                let matches = (host == "*" || is_host)
                    && (file_port == "*" || *file_port == port)
                    && (database == "*" || database == self.database)
                    && (user == "*" || user == self.user);
                matches.then(|| Secret::new(password.clone()))
            })
    }
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields
                .last_mut()
                .into_iter()
                .for_each(|field| field.extend(chars.next())),
            _ => fields
                .last_mut()
                .into_iter()
                .for_each(|field| field.push(char)),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(url: &str, env: &[(&str, &str)]) -> Result<Address, SetupError> {
        Address::from_url_and(url, &|name| {
            env.iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn a_full_url_is_understood() {
        let address = understood(
            "postgresql://me:p%40ss%3A@db.example:6000/ib?sslmode=verify-full&sslrootcert=/r.pem",
            &[],
        )
        .unwrap();
        assert_eq!(address.host, Host::Tcp("db.example".into()));
        assert_eq!(
            (
                address.port,
                address.user.as_str(),
                address.database.as_str()
            ),
            (6000, "me", "ib")
        );
        assert_eq!(address.password, Some(Secret::new("p@ss:")));
        assert_eq!(address.ssl_mode, SslMode::VerifyFull);
        assert_eq!(address.ssl_root, Some("/r.pem".into()));
    }

    #[test]
    fn a_socket_directory_may_be_a_parameter_or_an_encoded_host() {
        for url in [
            "postgresql://me@/ib?host=/run/pg",
            "postgresql://me@%2Frun%2Fpg/ib",
        ] {
            assert_eq!(
                understood(url, &[]).unwrap().host,
                Host::Unix("/run/pg".into())
            );
        }
        assert_eq!(
            understood("postgres://me@[::1]:7/ib", &[]).unwrap().host,
            Host::Tcp("::1".into())
        );
    }

    #[test]
    fn the_environment_fills_in_what_the_url_leaves_out() {
        let env = [
            ("PGHOST", "h"),
            ("PGPORT", "7"),
            ("PGUSER", "u"),
            ("PGPASSWORD", "w"),
            ("PGDATABASE", "d"),
            ("PGSSLMODE", "disable"),
            ("PGSSLROOTCERT", "/c"),
        ];
        let address = understood("postgresql://", &env).unwrap();
        assert_eq!(address.to_string(), "postgresql://u@h:7/d");
        assert_eq!(address.password, Some(Secret::new("w")));
        assert_eq!(
            (address.ssl_mode, address.ssl_root),
            (SslMode::Disable, Some("/c".into()))
        );
        assert_eq!(
            understood("postgresql://x@y/z", &env).unwrap().to_string(),
            "postgresql://x@y:7/z"
        );
    }

    #[test]
    fn wrong_parts_are_named() {
        for (url, part) in [
            ("mysql://x", "postgresql://"),
            ("postgresql://u@h:70000/d", "`70000`"),
            ("postgresql://u@h/d?sslmode=maybe", "`sslmode=maybe`"),
            ("postgresql://u@h/d?colour=red", "`colour`"),
            ("postgresql://u@h,i/d", "`h,i`"),
            ("postgresql://u:%zz@h/d", "password"),
        ] {
            let error = understood(url, &[]).unwrap_err();
            assert!(error.to_string().contains(part), "{url}: {error}");
        }
    }

    #[test]
    fn no_password_is_printed() {
        let address = understood("postgresql://me:hunter2@h/d", &[]).unwrap();
        assert!(!format!("{address} {address:?}").contains("hunter2"));
        let error = understood("postgresql://me:hunter2%@h/d", &[]).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }

    #[test]
    fn the_password_file_is_read_only_when_it_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".pgpass");
        fs::write(
            &path,
            "# mine\nother:*:*:*:no\nh:5432:*:me:a\\:b\\\\c\n*:*:*:*:last\n",
        )
        .unwrap();
        let env = [("HOME", home.path().to_str().unwrap())];
        fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(
            understood("postgresql://me@h/d", &env).unwrap().password,
            None
        );
        fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(
            understood("postgresql://me@h/d", &env).unwrap().password,
            Some(Secret::new("a:b\\c"))
        );
        assert_eq!(
            understood("postgresql://me@i/d", &env).unwrap().password,
            Some(Secret::new("last"))
        );
    }
}
