//! The URL of a server, completed from the environment and the password file as libpq does it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::SetupError;
use crate::net::address::{Address, Host, Parts, Scheme, SslMode, TOO_MANY};
use words::Secret;

/// Where a socket may be when no host is given: of Debian and Red Hat, then of a build from source.
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
    listens: "listen_addresses",
    help: &[
        (
            "28P01",
            "give the right password: in the URL, in `PGPASSWORD` or in the password file `~/.pgpass`",
        ),
        (
            "28000",
            "let this user in from here, in the server's `pg_hba.conf`",
        ),
        ("3D000", "create it first: `createdb {database}`"),
        ("53300", TOO_MANY),
    ],
};

/// The variables of the environment that libpq reads, each with the part of an address that it is.
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

/// Parses a URL; what it leaves out comes from the environment, the password file and the usual defaults.
///
/// # Errors
/// [`SetupError::Config`] naming the part that is wrong. No message holds a password.
pub fn parse_url(url: &str) -> Result<Address, SetupError> {
    parse_url_with(url, &|name| std::env::var(name).ok())
}

fn parse_url_with(url: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Address, SetupError> {
    let mut parts = Parts::of_url(&SCHEME, url)?;
    for (part, variable) in VARIABLES {
        parts.fill(part, env(variable));
    }
    let home = env("HOME").map(PathBuf::from);
    let root = home.as_ref().map(|home| home.join(".postgresql/root.crt"));
    let root = root.filter(|path| path.exists());
    parts.fill("ssl-root", root.map(|path| path.display().to_string()));
    let host = match parts.get("host") {
        Some(host) if host.contains(',') => {
            return Err(SCHEME.wrong(format!("several hosts given, `{host}`; one is allowed")));
        }
        Some(host) if host.starts_with('/') => Host::Unix(host.into()),
        Some(host) => Host::Tcp(host.into()),
        None => SOCKET_DIRECTORIES
            .iter()
            .find(|directory| Path::new(directory).join(".s.PGSQL.5432").exists())
            .map_or_else(
                || Host::Tcp("localhost".into()),
                |directory| Host::Unix(directory.into()),
            ),
    };
    let mut address = parts.complete(host)?;
    if address.database.is_empty() {
        address.database.clone_from(&address.user);
    }
    // The system's own certificates, which is what is used without a file.
    address
        .ssl_root
        .take_if(|root| root.as_os_str() == "system");
    if address.password.is_none() {
        let file = env("PGPASSFILE").map(PathBuf::from);
        let file = file.or_else(|| Some(home?.join(".pgpass")));
        address.password = file.and_then(|file| password_for(&address, &password_file(&file)?));
    }
    Ok(address)
}

/// Reads the password file, if it is there and nobody else may read it; others are ignored, as libpq does.
fn password_file(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.mode() & 0o077 != 0 {
        return None;
    }
    fs::read_to_string(path).ok()
}

/// Returns the password in the first line that matches: `host:port:database:user:password`, `*` for any, `\` before `:`
/// and `\`.
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
        matches.then(|| Secret::new(password.clone()))
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

    fn understood(url: &str, env: &[(&str, &str)]) -> Result<Address, SetupError> {
        parse_url_with(url, &|name| {
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
    fn wrong_parts_are_named_and_no_password_is_printed() {
        for (url, part) in [
            ("mysql://x", "postgresql://"),
            ("postgresql://u:hunter2@h:70000/d", "`70000`"),
            (
                "postgresql://u:hunter2@h/d?sslmode=maybe",
                "`sslmode=maybe`",
            ),
            ("postgresql://u:hunter2@h/d?colour=red", "`colour`"),
            ("postgresql://u:hunter2@h,i/d", "`h,i`"),
            ("postgresql://u:hunter2%zz@h/d", "password"),
        ] {
            let error = understood(url, &[]).unwrap_err();
            assert!(error.to_string().contains(part), "{url}: {error}");
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
        let address = understood("postgresql://me:hunter2@h/d", &[]).unwrap();
        assert!(!format!("{address} {address:?}").contains("hunter2"));
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
