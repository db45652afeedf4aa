//! The life of a server that assay started: cluster, configuration, start, stop.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::address::SCHEME;
use super::config::{self, ConfigText, Parts};
use super::installation::{Installation, locate};
use super::{Address, PostgresSession};
use crate::guard::{Ending, Guarded};
use crate::local::program::{Programs, Readiness};
use crate::local::server::{self as local, Kind, Place, Server, StartOptions, Trial};
use crate::{Error, Session, SetupError, Storage};

/// The role and the database that assay makes; the database's name is the Insert Benchmark's.
const ROLE: &str = "assay";
const DATABASE: &str = "ib";

/// The socket's directory is private to the server, so any number will do.
const PORT: u16 = 5432;

const KIND: Kind = Kind {
    name: "PostgreSQL",
    user: "postgres",
    data: "cluster",
    // By the port's number.
    socket: ".s.PGSQL.5432",
    environment: &[
        "PGDATA",
        "PGPORT",
        "PGHOST",
        "PGUSER",
        "PGPASSWORD",
        "PGDATABASE",
        "PGOPTIONS",
        "PGSERVICE",
        "PGTZ",
        "PGDATESTYLE",
        "PGCLIENTENCODING",
        "PG_COLOR",
    ],
    // A fast shutdown, which writes a checkpoint.
    ending: Ending::Interrupt,
    // It ends its own processes at once. Without it, they would finish what they are at.
    orphaned: Ending::Quit,
    live: live_server,
};

/// Makes a cluster and starts a server on it.
pub(super) fn start(
    options: &StartOptions<'_>,
) -> Result<(Server, Installation, Address), SetupError> {
    let installation = locate(options.build)?;
    let place = Place::make(&KIND, options, &installation.bin_dir)?;
    let cluster = place.data();
    let config = composed(options, &installation, &place)?;
    let programs = place.programs(options.stop);
    programs.run(&installation.program("initdb"), initdb_args(&cluster), None)?;
    let config_file = place.write("server.conf", &config.text)?;
    let socket = place.socket_dir.path().to_path_buf();
    let address = Address {
        port: PORT,
        database: "postgres".into(),
        ..Address::of_socket(&SCHEME, socket, ROLE, options.timeout)
    };
    let guarded = serve(&programs, &installation, &place, &config_file, &address)?;
    let notes = config
        .notes
        .into_iter()
        .chain(installation.note())
        .collect();
    let address = Address {
        database: DATABASE.into(),
        ..address
    };
    let server = place.taken(guarded, config.text, notes);
    Ok((server, installation, address))
}

/// Has the build read its configuration. It does so before it looks at a cluster, of which there is none.
pub(super) fn try_config(options: &StartOptions<'_>) -> Result<(), SetupError> {
    let installation = locate(options.build)?;
    let trial = Trial::make(&KIND, options, &installation.bin_dir)?;
    let place = &trial.place;
    let config = composed(options, &installation, place)?;
    place.make_directory(&place.data())?;
    place.write(&format!("{}/postgresql.conf", KIND.data), "")?;
    let config_file = place.write("server.conf", &config.text)?;
    let mut args = vec!["-C".into(), "data_directory".into()];
    args.extend(server_args(place, &config_file));
    let ran = place
        .programs(options.stop)
        .run(&installation.program("postgres"), args, None);
    ran.map_err(|error| match config::complaint(&trial.output()) {
        Some(complaint) => SetupError::Config {
            what: format!(
                "PostgreSQL {} refuses it: {}",
                installation.version.text,
                config::without_places(&complaint, &config_file, &config.text)
            ),
            help: "give a name and a value that this version has, or leave the option out".into(),
        },
        None => error,
    })
}

fn composed(
    options: &StartOptions<'_>,
    installation: &Installation,
    place: &Place,
) -> Result<ConfigText, SetupError> {
    config::compose(&Parts {
        cluster: &place.data(),
        major: installation.version.major,
        files: options.config_files,
        set: options.set,
        connections: options.connections,
        socket_directory: place.socket_dir.path(),
        port: PORT,
    })
}

fn server_args(place: &Place, config_file: &Path) -> Vec<OsString> {
    let mut config_option = OsString::from("config_file=");
    config_option.push(config_file);
    vec!["-D".into(), place.data().into(), "-c".into(), config_option]
}

/// Returns where the files of a server are whose data is in `cluster`.
pub(super) fn storage(cluster: PathBuf) -> Storage {
    Storage {
        logs: vec![cluster.join("pg_wal")],
        data: vec![cluster],
    }
}

fn initdb_args(cluster: &Path) -> Vec<OsString> {
    [
        "--auth-local=trust".into(),
        "--auth-host=reject".into(),
        "--data-checksums".into(),
        "--encoding=UTF8".into(),
        "--locale=C".into(),
        "--no-sync".into(),
        format!("--username={ROLE}"),
    ]
    .into_iter()
    .map(OsString::from)
    .chain(["--pgdata".into(), cluster.into()])
    .collect()
}

/// Starts the server and waits until it answers a query.
fn serve(
    programs: &Programs<'_>,
    installation: &Installation,
    place: &Place,
    config_file: &Path,
    address: &Address,
) -> Result<Guarded, SetupError> {
    let version = &installation.version.text;
    programs.serve(
        &installation.program("postgres"),
        server_args(place, config_file),
        place.socket_dir.path(),
        Readiness {
            server: &|| format!("PostgreSQL {version} at `{address}`"),
            socket: &place.socket(),
            ask: || first_query(address),
            complaint: |log: &[String]| {
                Some(SetupError::Config {
                    what: format!(
                        "PostgreSQL {version} refuses it: {}",
                        config::complaint(log)?
                    ),
                    help: format!("line numbers are those of `{}`", config_file.display()),
                })
            },
            address: &address.to_string(),
        },
    )
}

/// Asks the new server something, and makes the database.
fn first_query(address: &Address) -> Result<(), Error> {
    let mut session = PostgresSession::connect(address)?;
    match session.query(&format!("create database {DATABASE}")) {
        // The connection was lost after an earlier attempt was carried out.
        Err(error) if error.code.as_deref() == Some("42P04") => Ok(()),
        result => result.map(|_| ()),
    }
}

/// The process that `postmaster.pid` in `cluster` names, if it lives and is a server of that cluster.
pub(super) fn live_server(cluster: &Path) -> Option<u32> {
    let text = fs::read_to_string(cluster.join("postmaster.pid")).ok()?;
    let pid = text.lines().next()?.trim().parse().ok()?;
    local::lives_in(pid, cluster, &["postgres", "postmaster"]).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_pid_file_is_no_live_server() {
        let cluster = tempfile::tempdir().unwrap();
        assert_eq!(live_server(cluster.path()), None);
        // This process lives but is no server.
        fs::write(
            cluster.path().join("postmaster.pid"),
            format!("{}\n/x\n", std::process::id()),
        )
        .unwrap();
        assert_eq!(live_server(cluster.path()), None);
        fs::write(cluster.path().join("postmaster.pid"), "nonsense").unwrap();
        assert_eq!(live_server(cluster.path()), None);
    }
}
