//! URLs of servers, completed from the environment and the password file like in libpq.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs_err as fs;
use words::Secret;

use crate::error::SetupError;
use crate::net::address::{Address, Host, Parts, Roots, Scheme, SslMode};

/// Default directories of the socket: in Debian and Red Hat, and in builds from source.
const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// URLs of PostgreSQL.
pub(super) static SCHEME: Scheme = Scheme {
    names: &["postgresql", "postgres"],
    port: 5432,
    parameters: &[
        ("host", "host"),
        ("port", "port"),
        ("user", "user"),
        ("password", "password"),
        ("dbname", "database"),
        ("sslmode", "ssl-mode"),
        ("sslrootcert", "ssl-root"),
        ("connect_timeout", "connect-timeout"),
        ("application_name", "application-name"),
    ],
    ssl_modes: &[
        ("disable", SslMode::Disable),
        ("allow", SslMode::Allow),
        ("prefer", SslMode::Prefer),
        ("require", SslMode::Require),
        ("verify-ca", SslMode::VerifyCa),
        ("verify-full", SslMode::VerifyFull),
    ],
    socket: "?host={}&port={port}",
    socket_file: "/.s.PGSQL.{port}",
    usage: "write it as `postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=...`; \
            the directory of a unix socket goes into `?host=/DIRECTORY`",
    listen_setting: "listen_addresses",
    help: &[
        (
            "28P01",
            "set the right password in the URL, in `PGPASSWORD` or in the password file `~/.pgpass`",
        ),
        ("28000", "allow this user to connect from this host in the server's `pg_hba.conf`"),
        ("3D000", "create it first: `createdb {database}`"),
    ],
};

/// The parts of an address, and their environment variables in libpq.
const VARIABLES: [(&str, &str); 8] = [
    ("host", "PGHOST"),
    ("port", "PGPORT"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("database", "PGDATABASE"),
    ("ssl-mode", "PGSSLMODE"),
    ("ssl-root", "PGSSLROOTCERT"),
    ("connect-timeout", "PGCONNECT_TIMEOUT"),
];

/// Parses a URL. Missing parts come from the environment, the password file and the usual defaults.
///
/// # Errors
/// [`SetupError::Config`] with the invalid part. No message contains a password.
pub fn parse_url(url: &str) -> Result<Address, SetupError> {
    parse_url_with(url, &|name| std::env::var(name).ok())
}

fn parse_url_with(url: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Address, SetupError> {
    let mut parts = Parts::from_url(&SCHEME, url)?;

    for (part, variable) in VARIABLES {
        parts.fill(part, env(variable));
    }

    let home = env("HOME").map(PathBuf::from);
    let default_root = home.as_ref().map(|home| home.join(".postgresql/root.crt"));
    let root = default_root.filter(|path| path.exists());
    parts.fill("ssl-root", root.map(|path| path.display().to_string()));

    let host = match parts.get("host") {
        Some(host) if host.contains(',') => {
            return Err(SCHEME.invalid_url(format!("it has several hosts, `{host}`; write one")));
        }
        Some(host) if host.starts_with('/') => Host::Unix(host.into()),
        Some(host) => Host::Tcp(host.into()),
        None => default_host(),
    };

    let mut address = parts.complete(host)?;

    if address.database.is_empty() {
        address.database.clone_from(&address.user);
    }

    // Without a file, the system's certificates are used.
    address.ssl_root.take_if(|root| *root == Roots::File("system".into()));

    if address.password.is_none() {
        let given = env("PGPASSFILE").map(PathBuf::from);
        let file = given.or_else(|| Some(home?.join(".pgpass")));
        address.password = file.and_then(|file| password_for(&address, &password_file(&file)?));
    }
    Ok(address)
}

/// Returns the directory of the socket of the server on this host, if it runs.
fn default_host() -> Host {
    let has_socket = |directory: &&str| Path::new(directory).join(".s.PGSQL.5432").exists();
    match SOCKET_DIRECTORIES.into_iter().find(has_socket) {
        Some(directory) => Host::Unix(directory.into()),
        None => Host::Tcp("localhost".into()),
    }
}

/// Reads the password file. Like libpq, ignores a file that others may read.
fn password_file(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.mode() & 0o077 != 0 {
        return None;
    }
    fs::read_to_string(path).ok()
}

/// Returns the password in the first matching line. Lines are `host:port:database:user:password`,
/// with `*` for any value, and `\` before `:` and `\`.
fn password_for(address: &Address, text: &str) -> Option<Secret> {
    let port = address.port.to_string();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(fields).find_map(|fields| {
        let [host, file_port, database, user, password] = fields.as_slice() else {
            return None;
        };
        let is_host = match &address.host {
            Host::Unix(directory) => host == "localhost" || Path::new(host) == directory,
            Host::Tcp(name) => host == name,
        };

        let matches = (host == "*" || is_host)
            && (file_port == "*" || *file_port == port)
            && (database == "*" || *database == address.database)
            && (user == "*" || *user == address.user);
        if matches { Some(Secret::new(password.clone())) } else { None }
    })
}

fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field) = (Vec::new(), String::new());
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            ':' if fields.len() < 4 => fields.push(std::mem::take(&mut field)),
            '\\' => field.extend(chars.next()),
            _ => field.push(char),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str, env: &[(&str, &str)]) -> Result<Address, SetupError> {
        parse_url_with(url, &|name| {
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn a_full_url_is_parsed() {
        let address = parsed(
            "postgresql://me:p%40ss%3A@db.example:6000/ib?sslmode=verify-full&sslrootcert=/r.pem",
            &[],
        )
        .unwrap();
        assert_eq!(address.host, Host::Tcp("db.example".into()));
        assert_eq!(
            (address.port, address.user.as_str(), address.database.as_str()),
            (6000, "me", "ib")
        );
        assert_eq!(address.password, Some(Secret::new("p@ss:")));
        assert_eq!(address.ssl_mode, SslMode::VerifyFull);
        assert_eq!(address.ssl_root, Some("/r.pem".into()));
    }

    #[test]
    fn a_socket_directory_may_be_a_parameter_or_an_encoded_host() {
        for url in ["postgresql://me@/ib?host=/run/pg", "postgresql://me@%2Frun%2Fpg/ib"] {
            assert_eq!(parsed(url, &[]).unwrap().host, Host::Unix("/run/pg".into()));
        }
        assert_eq!(parsed("postgres://me@[::1]:7/ib", &[]).unwrap().host, Host::Tcp("::1".into()));
    }

    #[test]
    fn the_environment_completes_a_url() {
        let env = [
            ("PGHOST", "h"),
            ("PGPORT", "7"),
            ("PGUSER", "u"),
            ("PGPASSWORD", "w"),
            ("PGDATABASE", "d"),
            ("PGSSLMODE", "disable"),
            ("PGSSLROOTCERT", "/c"),
        ];
        let address = parsed("postgresql://", &env).unwrap();
        assert_eq!(address.to_string(), "postgresql://u@h:7/d");
        assert_eq!(address.password, Some(Secret::new("w")));
        assert_eq!((address.ssl_mode, address.ssl_root), (SslMode::Disable, Some("/c".into())));
        assert_eq!(parsed("postgresql://x@y/z", &env).unwrap().to_string(), "postgresql://x@y:7/z");
    }

    #[test]
    fn errors_name_the_invalid_part_and_no_password() {
        for (url, part) in [
            ("mysql://x", "postgresql://"),
            ("postgresql://u:hunter2@h:70000/d", "`70000`"),
            ("postgresql://u:hunter2@h/d?sslmode=maybe", "`sslmode=maybe`"),
            ("postgresql://u:hunter2@h/d?colour=red", "`colour`"),
            ("postgresql://u:hunter2@h,i/d", "`h,i`"),
            ("postgresql://u:hunter2%zz@h/d", "password"),
        ] {
            let error = parsed(url, &[]).unwrap_err();
            assert!(error.to_string().contains(part), "{url}: {error}");
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
        let address = parsed("postgresql://me:hunter2@h/d", &[]).unwrap();
        assert!(!format!("{address} {address:?}").contains("hunter2"));
    }

    #[test]
    fn the_password_file_is_read_only_when_it_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".pgpass");
        fs::write(&path, "# mine\nother:*:*:*:no\nh:5432:*:me:a\\:b\\\\c\n*:*:*:*:last\n").unwrap();
        let env = [("HOME", home.path().to_str().unwrap())];
        fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(parsed("postgresql://me@h/d", &env).unwrap().password, None);
        fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(
            parsed("postgresql://me@h/d", &env).unwrap().password,
            Some(Secret::new("a:b\\c"))
        );
        assert_eq!(
            parsed("postgresql://me@i/d", &env).unwrap().password,
            Some(Secret::new("last"))
        );
    }
}
