//! Streaming replication.

use std::ffi::OsString;

use super::server::PostgresKind;
use super::{Host, Postgres, PostgresSession};
use crate::local::config::ConfigText;
use crate::local::server::Place;
use crate::net::server::DATABASE;
use crate::{Counter, Engine, Error, Replicated, Session, SetupError, SqlServer, StartOptions};

/// Log that the replica lacks in each phase, in bytes.
const BEHIND: [(&str, &str); 4] = [
    ("sent_bytes", "sent_lsn"),
    ("written_bytes", "write_lsn"),
    ("flushed_bytes", "flush_lsn"),
    ("replayed_bytes", "replay_lsn"),
];

impl Replicated for Postgres {
    fn start_replica(&self, name: &str, options: &StartOptions<'_>) -> Result<Self, SetupError> {
        let address = self.address();
        let host = match &address.host {
            Host::Unix(directory) => directory.display().to_string(),
            Host::Tcp(host) => host.clone(),
        };
        let quoted = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));
        // A server that also listens to the network has its private socket, where no password is needed.
        let host = self.server().map_or(host, |server| {
            server.place.socket_dir.path().display().to_string()
        });
        let primary = format!(
            "host={} port={} user={} application_name={name}",
            quoted(&host),
            address.port,
            quoted(&address.user)
        );
        let create = |build: &super::Installation, place: &Place, config: &mut ConfigText| {
            let args = [
                "--wal-method=stream",
                "--checkpoint=fast",
                "--create-slot",
                "--slot",
                name,
                "--no-sync",
                "--no-password",
                "--dbname",
                &primary,
                "--pgdata",
            ];
            let mut args: Vec<OsString> = args.map(OsString::from).into();
            args.push(place.data().into());
            let program = build.bin_dir.join("pg_basebackup");
            place.run(&program, args, None, options.stop)?;
            place.write(&format!("{}/standby.signal", place.data_name()), "")?;
            config.text += &format!(
                "primary_conninfo = '{}'\nprimary_slot_name = '{name}'\nhot_standby = on\n",
                primary.replace('\\', "\\\\").replace('\'', "''")
            );
            Ok(())
        };
        SqlServer::<PostgresKind>::launch(options, create, |socket| {
            let database = super::Address {
                database: DATABASE.into(),
                ..socket.clone()
            };
            PostgresSession::connect(&database).map(drop)
        })
    }

    fn attach(url: &str) -> Result<Self, SetupError> {
        Self::attach(url)
    }

    fn behind(
        primary: &mut PostgresSession,
        _replica: &mut PostgresSession,
        name: &str,
    ) -> Result<Vec<Counter>, Error> {
        let columns =
            BEHIND.map(|(_, lsn)| format!("pg_wal_lsn_diff(pg_current_wal_lsn(), {lsn})::bigint"));
        let sql = format!(
            "select {} from pg_stat_replication where application_name = '{name}' and state = 'streaming'",
            columns.join(", ")
        );
        let rows = primary.query(&sql)?;
        let values = rows.into_iter().next().unwrap_or_default();
        let gauges = BEHIND.iter().zip(values).filter_map(|((gauge, _), value)| {
            let bytes: f64 = value?.parse().ok()?;
            Some(Counter::gauge(format!("{name}.{gauge}"), bytes.max(0.0)))
        });
        Ok(gauges.collect())
    }

    fn broken(session: &mut PostgresSession) -> Result<Option<String>, Error> {
        let follows = "select count(*) from pg_stat_wal_receiver where status = 'streaming'";
        let follows = session.query_i64(follows)? == Some(1);
        Ok((!follows).then(|| "it does not receive the log of its primary".to_owned()))
    }
}
