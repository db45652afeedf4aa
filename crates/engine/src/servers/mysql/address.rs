//! URLs of servers, completed from the environment and option files like in MySQL's own clients.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::option_file::{self, OptionLine};
use crate::error::SetupError;
use crate::net::address::{Address, Host, Parts, Scheme, SslMode};

/// Default paths of the socket: in Debian, in Red Hat, and in builds from source.
const SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
    "/tmp/mariadb.sock",
];

/// The option files that every client reads, before the user's own.
const OPTION_FILES: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];

/// The groups of option files for all clients.
const GROUPS: [&str; 3] = ["client", "client-server", "client-mariadb"];

const LOGIN: &str = "set the right user and password in the URL, in `MYSQL_PWD` or in `~/.my.cnf`";
const ACCOUNT: &str =
    "allow this user to connect from this host: `grant all on {database}.* to ...`";

/// URLs of MySQL and MariaDB.
pub(super) static SCHEME: Scheme = Scheme {
    names: &["mysql", "mariadb"],
    port: 3306,
    parameters: &[
        ("connect-timeout", "connect-timeout"),
        ("socket", "socket"),
        ("ssl-ca", "ssl-root"),
        ("ssl-mode", "ssl-mode"),
    ],
    ssl_modes: &[
        ("DISABLED", SslMode::Disable),
        ("PREFERRED", SslMode::Prefer),
        ("REQUIRED", SslMode::Require),
        ("VERIFY_CA", SslMode::VerifyCa),
        ("VERIFY_IDENTITY", SslMode::VerifyFull),
    ],
    socket: "localhost?socket={}",
    socket_file: "",
    usage: "write it as `mysql://USER:PASSWORD@HOST:PORT/DATABASE?ssl-mode=...`; \
            the path of a unix socket goes into `?socket=/PATH`",
    listen_setting: "bind_address",
    help: &[
        ("1045", LOGIN),
        ("1698", LOGIN),
        ("1044", ACCOUNT),
        ("1130", ACCOUNT),
        ("1049", "create it first: `create database {database}`"),
    ],
};

/// Parts of an address that locate the server, and their environment variables. The options have
/// the same names.
const LOCATION_PARTS: [(&str, &str); 3] =
    [("host", "MYSQL_HOST"), ("port", "MYSQL_TCP_PORT"), ("socket", "MYSQL_UNIX_PORT")];

/// Other parts of an address, and their options.
const OPTIONS: [(&str, &str); 5] = [
    ("user", "user"),
    ("password", "password"),
    ("database", "database"),
    ("ssl-mode", "ssl-mode"),
    ("ssl-root", "ssl-ca"),
];

/// The options in the clients' option files. A later file overrides an earlier one.
#[derive(Debug, Default, PartialEq)]
struct OptionFile {
    options: Vec<(String, String)>,
}

impl OptionFile {
    fn get(&self, name: &str) -> Option<String> {
        let (_, value) = self.options.iter().rev().find(|(known, _)| known == name)?;
        Some(value.clone())
    }

    /// Reads a file and the files that it includes. Ignores a file that is missing or that everyone
    /// may write.
    fn read(&mut self, path: &Path, depth: u32) {
        let Ok(metadata) = fs::metadata(path) else {
            return;
        };

        if !metadata.is_file() || metadata.mode() & 0o002 != 0 || depth > 8 {
            return;
        }

        let text = fs::read_to_string(path).unwrap_or_default();
        for line in option_file::lines(&text) {
            match line {
                OptionLine::IncludeDirectory(directory) => {
                    for file in option_files_in(Path::new(directory)) {
                        self.read(&file, depth + 1);
                    }
                }
                OptionLine::Include(file) => self.read(Path::new(file), depth + 1),
                OptionLine::Option { group, name, value } if GROUPS.contains(&group) => {
                    let name = name.replace('_', "-");
                    self.options.push((name, value.unwrap_or_default()));
                }
                OptionLine::Option { .. } => {}
            }
        }
    }
}

/// Returns the option files of a directory, in the order in which they apply.
fn option_files_in(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "cnf"));
    files.sort();
    files
}

/// Parses a URL. Missing parts come from the environment, the option files (`~/.my.cnf` last) and
/// the usual defaults.
///
/// # Errors
/// [`SetupError::Config`] with the invalid part. No message contains a password.
pub fn parse_url(url: &str) -> Result<Address, SetupError> {
    let env = |name: &str| std::env::var(name).ok();
    let mut file = OptionFile::default();

    for path in OPTION_FILES {
        file.read(Path::new(path), 0);
    }

    if let Some(home) = env("HOME") {
        file.read(&Path::new(&home).join(".my.cnf"), 0);
    }

    parse_url_with(url, &env, &file)
}

fn parse_url_with(
    url: &str,
    env: &dyn Fn(&str) -> Option<String>,
    file: &OptionFile,
) -> Result<Address, SetupError> {
    let mut parts = Parts::from_url(&SCHEME, url)?;
    let has_port = parts.get("port").is_some();

    // A URL that locates a server must not be mixed with the location of another one.
    if LOCATION_PARTS.iter().all(|(part, _)| parts.get(part).is_none()) {
        for (part, variable) in LOCATION_PARTS {
            parts.fill(part, env(variable).filter(|value| !value.is_empty()));
            parts.fill(part, file.get(part));
        }
    }

    parts.fill("password", env("MYSQL_PWD"));
    for (part, option) in OPTIONS {
        parts.fill(part, file.get(option));
    }
    parts.fill("database", Some("ib".into()));

    // As in the server's own clients, `localhost` means the socket.
    let (given_socket, host) = (parts.get("socket"), parts.get("host"));
    let is_local = host.is_none_or(|host| host == "localhost");
    let socket = if !is_local || given_socket.is_none() && has_port {
        None
    } else {
        given_socket.or_else(|| SOCKETS.into_iter().find(|socket| Path::new(socket).exists()))
    };

    let host = match socket {
        Some(socket) => Host::Unix(socket.into()),
        None => Host::Tcp(host.unwrap_or("localhost").into()),
    };
    parts.complete(host)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use words::Secret;

    fn parsed(
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
        let file = OptionFile { options: pairs(options) };
        let env = |name: &str| {
            let variable = env.iter().find(|(known, _)| known == name);
            variable.map(|(_, value)| value.clone())
        };
        parse_url_with(url, &env, &file)
    }

    #[test]
    fn a_full_url_is_parsed() {
        let address = parsed(
            "mysql://me:p%40ss@db.example:3307/x?ssl-mode=verify_identity&ssl_ca=/r.pem&connect-timeout=3",
            &[("MYSQL_HOST", "other")],
            &[("user", "nobody")],
        )
        .unwrap();
        assert_eq!(address.host, Host::Tcp("db.example".into()));
        assert_eq!(address.to_string(), "mysql://me@db.example:3307/x");
        assert_eq!(address.password, Some(Secret::new("p@ss")));
        assert_eq!(address.ssl_mode, SslMode::VerifyFull);
        assert_eq!(address.ssl_root, Some("/r.pem".into()));
        assert_eq!(address.connect_timeout, Duration::from_secs(3));
    }

    #[test]
    fn localhost_is_the_socket_unless_the_url_has_a_port() {
        let address = parsed("mysql://me@localhost/x?socket=/s", &[], &[]).unwrap();
        assert_eq!(address.host, Host::Unix("/s".into()));
        let address = parsed("mysql://me@localhost:3306/x", &[], &[]).unwrap();
        assert_eq!(address.host, Host::Tcp("localhost".into()));
        let address = parsed("mysql://", &[], &[("socket", "/t"), ("user", "u")]).unwrap();
        assert_eq!(address.to_string(), "mysql://u@localhost/ib?socket=/t");
    }

    #[test]
    fn the_environment_and_the_option_file_complete_a_url() {
        let address = parsed(
            "mysql://u@/d",
            &[("MYSQL_PWD", "w"), ("MYSQL_TCP_PORT", "7")],
            &[("host", "h"), ("password", "no"), ("port", "8")],
        )
        .unwrap();
        assert_eq!(address.to_string(), "mysql://u@h:7/d");
        assert_eq!(address.password, Some(Secret::new("w")));
        // The option file's port is for another server.
        let address = parsed("mysql://u@other/d", &[], &[("port", "8")]).unwrap();
        assert_eq!(address.port, 3306);
    }

    #[test]
    fn option_files_are_read_with_the_files_that_they_include() {
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
}
