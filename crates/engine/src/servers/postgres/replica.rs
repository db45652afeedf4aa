//! Replicas: physical ones, which replay the primary's log, and [`logical`] ones.

use std::ffi::OsString;
use std::path::Path;

use words::Counter;

use super::{Host, Postgres, PostgresSession, logical};
use crate::contract::{Engine, Needs, Obstacle, Replicated, Session, SqlEngine, Table};
use crate::error::{Error, SetupError};
use crate::local::server::ServerPlace;
use crate::local::start_options::StartOptions;
use crate::servers::config::ConfigText;
use crate::servers::sql_server::DATABASE;

/// Log that the replica lacks in each phase, in bytes.
const BEHIND: [(&str, &str); 4] = [
    ("sent_bytes", "sent_lsn"),
    ("written_bytes", "write_lsn"),
    ("flushed_bytes", "flush_lsn"),
    ("replayed_bytes", "replay_lsn"),
];

/// Copies a data directory without what a backup leaves out: the log, slots, and files of the
/// running server. A file that changes meanwhile, for which `tar` exits with 1, is repaired by
/// replay.
const COPY: &str = r#"mkdir -m 700 "$2" && cd "$1" && {
    tar --create --file="$2.tar" --exclude='./pg_wal/*' --exclude='./pg_replslot/*' --exclude='./pg_stat_tmp/*' --exclude='./postmaster.*' .
    [ $? -le 1 ]
} && tar --extract --file="$2.tar" --directory="$2" && rm "$2.tar""#;

/// Makes a copied data directory that of a replica: it replays the log from the beginning of the
/// copy.
const LABEL: &str = r#"printf %s "$1" > "$2/backup_label" && : > "$2/standby.signal""#;

impl Postgres {
    /// Copies the data of this server to a place on the same host, for a replica with a slot of
    /// that `name`. Not every build has `pg_basebackup`.
    fn copy_data(
        &self,
        name: &str,
        place: &ServerPlace,
        options: &StartOptions<'_>,
    ) -> Result<(), SetupError> {
        let failed =
            |source: Error| SetupError::Server { server: name.to_owned(), help: None, source };
        let server = self.server().ok_or_else(crate::contract::no_own_primary)?;
        let [start, stop] = if self.kind.major >= 15 {
            ["pg_backup_start('assay', true)", "pg_backup_stop(false)"]
        } else {
            ["pg_start_backup('assay', true, false)", "pg_stop_backup(false, false)"]
        };

        // From the slot on, the server keeps its log for the replica.
        let mut session = self.connect().map_err(failed)?;
        for sql in [
            &format!("select pg_create_physical_replication_slot('{name}', true)"),
            &format!("select {start}"),
        ] {
            session.query(sql).map_err(failed)?;
        }

        let shell = |script: &str, first: OsString| {
            let mut args = ["-c", script, "sh"].map(OsString::from).to_vec();
            args.extend([first, place.data().into()]);
            place.run(Path::new("/bin/sh"), args, None, options.stop)
        };
        shell(COPY, server.place.data().into())?;
        let label = session.query_column(&format!("select labelfile from {stop}"));
        shell(LABEL, label.map_err(failed)?.concat().into())
    }
}

impl Postgres {
    /// Returns the parameters with which the replica `name` connects to this server.
    fn conninfo(&self, name: &str) -> String {
        let address = self.address();
        // A server that also listens to the network has its private socket, where no password is
        // needed.
        let host = match (self.server(), &address.host) {
            (Some(server), _) => server.place.socket_dir.path().display().to_string(),
            (None, Host::Unix(directory)) => directory.display().to_string(),
            (None, Host::Tcp(host)) => host.clone(),
        };

        let quoted = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"));

        format!(
            "host={} port={} user={} application_name={name}",
            quoted(&host),
            address.port,
            quoted(&address.user)
        )
    }
}

impl Replicated for Postgres {
    fn start_replica(&self, name: &str, options: &StartOptions<'_>) -> Result<Self, SetupError> {
        let primary = self.conninfo(name);
        if options.replicas.is_some_and(|replicas| replicas.logical) {
            let conninfo = format!("{primary} dbname={DATABASE}");
            return logical::start_replica(self, name, &conninfo, options);
        }

        let create = |_: &super::Installation, place: &ServerPlace, config: &mut ConfigText| {
            self.copy_data(name, place, options)?;
            config.text += &format!(
                "primary_conninfo = '{}'\nprimary_slot_name = '{name}'\nhot_standby = on\n",
                primary.replace('\\', "\\\\").replace('\'', "''")
            );
            Ok(())
        };
        Self::launch(options, create, |socket| {
            let database = super::Address { database: DATABASE.into(), ..socket.clone() };
            PostgresSession::connect(&database).map(drop)
        })
    }

    fn attach(url: &str) -> Result<Self, SetupError> {
        Self::attach(url)
    }

    fn connect_watcher(&self) -> Result<PostgresSession, Error> {
        let mut session = PostgresSession::connect(&super::Address {
            application_name: "assay replication".into(),
            ..self.address().clone()
        })?;

        // Heartbeats must not wait for a synchronous replica, whose lag they measure.
        session.query(
            "select set_config('synchronous_commit', 'local', false) \
             where current_setting('synchronous_commit') <> 'off'",
        )?;

        Ok(session)
    }

    fn create_tables(
        &self,
        primary: &mut PostgresSession,
        replica: &mut PostgresSession,
        tables: &[Table],
    ) -> Result<bool, Error> {
        logical::create_tables(&self.kind.dialect, primary, replica, tables)
    }

    fn drop_tables(replica: &mut PostgresSession, tables: &[Table]) -> Result<(), Error> {
        logical::drop_tables(replica, tables)
    }

    fn create_indexes(
        primary: &mut PostgresSession,
        replica: &mut PostgresSession,
        tables: &[Table],
    ) -> Result<(), Error> {
        logical::create_indexes(primary, replica, tables)
    }

    fn obstacles_of(&self, replica: &Self, needs: Needs) -> Result<Vec<Obstacle>, Error> {
        logical::obstacles(&mut self.connect()?, &mut replica.connect()?, needs)
    }

    fn replication_gauges(
        primary: &mut PostgresSession,
        replica: &mut PostgresSession,
        name: &str,
    ) -> Result<Vec<Counter>, Error> {
        let bytes = |lsn: &str| format!("pg_wal_lsn_diff(pg_current_wal_lsn(), {lsn})::bigint");

        let sql = if let Some(slot) = logical::slot(replica)? {
            let columns = BEHIND.map(|(_, lsn)| bytes(lsn)).join(", ");
            format!(
                "select {columns} from pg_stat_replication r join pg_replication_slots s on s.active_pid = r.pid \
                 where s.slot_name = '{slot}' and r.state = 'streaming'"
            )
        } else if logical::is_physical(replica)? {
            // A replica without a slot, or a role that may not know it.
            let lsns =
                replica.query("select pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()")?;
            let columns = lsns
                .into_iter()
                .flatten()
                .map(|lsn| lsn.map_or("null".into(), |lsn| bytes(&format!("'{lsn}'"))));
            format!("select null, null, {}", Vec::from_iter(columns).join(", "))
        } else {
            return Ok(Vec::new());
        };

        let values = primary.query(&sql)?.into_iter().next().unwrap_or_default();
        let gauges = BEHIND.iter().zip(values).filter_map(|((gauge, _), value)| {
            let bytes: f64 = value?.parse().ok()?;
            Some(Counter::gauge(format!("{name}.{gauge}"), bytes.max(0.0)))
        });
        Ok(gauges.collect())
    }

    fn replication_error(session: &mut PostgresSession) -> Result<Option<String>, Error> {
        logical::replication_error(session)
    }
}
