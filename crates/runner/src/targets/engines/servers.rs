//! Server engines, which assay starts or attaches to.

use std::path::Path;

use anyhow::{Context, bail};
use engine::mysql::Mysql;
use engine::postgres::Postgres;
use engine::{Network, Obstacle, Port, Replicated, SetupError, StartOptions, StoppedDatabase};
use plan::{BuildSource, Config};
use record::Limit;

use super::TargetStarter;
use super::sql::{Preparation, SqlTarget};
use crate::prepare::engines::network::{for_replicas, network_for, port_for_replicas};
use crate::prepare::engines::servers::{attach_replicas, replica_name};
use crate::prepare::estimate;
use crate::prepare::installed::Installed;
use crate::session::RunSession;
use crate::targets::replicas::{Replicas, Replication};
use crate::targets::running::{Leftovers, RunningTarget};
use crate::targets::site::{CellSite, remove_database};
use crate::targets::workloads::sql::LoadEngine;

/// A kind of server.
pub struct Servers<E> {
    start: fn(&StartOptions<'_>) -> Result<E, SetupError>,
    /// The file in the server's directory that assay writes its config into.
    config_file: &'static str,
}

pub const POSTGRES: Servers<Postgres> =
    Servers { start: Postgres::start, config_file: "server.conf" };

pub const MYSQL: Servers<Mysql> = Servers { start: Mysql::start, config_file: "server.cnf" };

impl<E: Replicated + 'static> TargetStarter for Servers<E> {
    fn start(&self, cell: &mut CellSite<'_>) -> anyhow::Result<Box<dyn RunningTarget>> {
        let mut target = match &cell.build().source {
            BuildSource::Url(url) => self.attach_target(cell, url.expose())?,
            BuildSource::Installed(_) | BuildSource::Commit(_) | BuildSource::Bundled => {
                self.start_target(cell)?
            }
        };

        let server = &target.engine;
        cell.record.server_user = server.server_user().map(str::to_owned);
        cell.note("server::config", server.notes());

        target.is_foreign = server.data_dir().is_none();
        target.leftovers.data_dir = server.data_dir().cloned();
        target.leftovers.data = server.database();

        if let Some(origin) = server.origin() {
            cell.note_copy(origin.copied);
            cell.note_upgrade(origin.upgrade);
        }

        Ok(Box::new(target))
    }

    fn connect(&self, url: Option<&str>) -> anyhow::Result<Box<dyn LoadEngine>> {
        let url = url.context("rank 0 gave no address")?;
        Ok(Box::new(E::attach(url)?))
    }
}

/// Notes what metrics lack because the user may not read it, and what would allow it.
fn note_unreadable<E: Replicated>(cell: &mut CellSite<'_>, server: &E) {
    // A server that does not even say that fails in the first step, with its message.
    let Ok(hidden) = server.unreadable() else {
        return;
    };
    let notes = hidden.iter().map(|Obstacle { what, help }| format!("{what}: {help}"));
    cell.note("server::rights", &notes.collect::<Vec<_>>());
}

impl<E: Replicated + 'static> Servers<E> {
    /// Attaches to a server that already runs, and to its replicas.
    fn attach_target(&self, cell: &mut CellSite<'_>, url: &str) -> anyhow::Result<SqlTarget<E>> {
        let server = E::attach(url)?;
        cell.url = Some(url.to_owned());
        note_unreadable(cell, &server);
        let replicas = attach_replicas(cell.build())?;

        let mut target = SqlTarget::new(server, Leftovers::default());
        target.preparation = Some(Box::new(AttachedReplicas { replicas }));

        Ok(target)
    }

    /// Starts a server, and keeps the text of its config in the record.
    fn start_target(&self, cell: &mut CellSite<'_>) -> anyhow::Result<SqlTarget<E>> {
        let (session, config, home) = (cell.session, cell.config(), cell.home());
        let launch = Launch::of(cell)?;
        let log = cell.directory.log_path();
        let database = cell.database_to_copy();
        // An upgrade also needs the build that loaded the database.
        let before = match cell.loader() {
            Some(_) => Some(Installed::of(cell.loading_build())?.place),
            None => None,
        };

        let options = StartOptions {
            wrapper: cell.wrapper,
            database: database
                .as_deref()
                .map(|data| StoppedDatabase { data, build: before.as_deref() }),
            ..launch.options(session, config, &home, &log)
        };
        let server = (self.start)(&options)
            .map_err(|error| keep_config(cell, &home, self.config_file, RECORDED_CONFIG, error))?;

        cell.url = Some(server.url());
        if let Some(text) = server.config_text() {
            cell.directory.write_text(RECORDED_CONFIG, text)?;
        }

        let names: Vec<String> = (1..=config.replicas).map(replica_name).collect();
        let replica_homes = names.iter().map(|name| home.join(name)).collect();
        let preparation = StartedReplicas { launch, names, config_file: self.config_file };

        let mut target =
            SqlTarget::new(server, Leftovers { replica_homes, ..Leftovers::default() });
        target.preparation = Some(Box::new(preparation));

        Ok(target)
    }
}

/// Replicas that already run.
struct AttachedReplicas<E> {
    replicas: Vec<(String, E)>,
}

impl<E: Replicated + 'static> Preparation<E> for AttachedReplicas<E> {
    fn prepare(
        &mut self,
        cell: &mut CellSite<'_>,
        primary: &E,
    ) -> anyhow::Result<Option<Box<dyn Replication>>> {
        cell.drop_leftovers(primary)?;
        if self.replicas.is_empty() {
            return Ok(None);
        }
        watch(cell, primary, std::mem::take(&mut self.replicas)).map(Some)
    }
}

/// Replicas that are started with the server.
struct StartedReplicas {
    launch: Launch,
    names: Vec<String>,
    config_file: &'static str,
}

impl<E: Replicated + 'static> Preparation<E> for StartedReplicas {
    fn prepare(
        &mut self,
        cell: &mut CellSite<'_>,
        primary: &E,
    ) -> anyhow::Result<Option<Box<dyn Replication>>> {
        if self.names.is_empty() {
            return Ok(None);
        }

        let mut replicas = Vec::new();
        for name in &self.names {
            let replica = start_replica(cell, primary, &self.launch, name, self.config_file)?;
            replicas.push((name.clone(), replica));
        }

        watch(cell, primary, replicas).map(Some)
    }
}

/// Starts a replica, and records its config and limits.
fn start_replica<E: Replicated>(
    cell: &mut CellSite<'_>,
    primary: &E,
    launch: &Launch,
    name: &str,
    config_file: &str,
) -> anyhow::Result<E> {
    let (session, config) = (cell.session, cell.config());
    let home = cell.home().join(name);
    let log = cell.directory.path().join(format!("{name}.log"));
    let options = StartOptions {
        set: &config.set_of_replicas(),
        limits: &config.replica_limits,
        network: None,
        ..launch.options(session, config, &home, &log)
    };

    let kept = format!("{name}.conf");
    let replica = primary
        .start_replica(name, &options)
        .map_err(|error| keep_config(cell, &home, config_file, &kept, error))
        .with_context(|| format!("cannot start {name}"))?;

    cell.directory.write_text(&kept, replica.config_text().unwrap_or_default())?;

    let mut limits = Vec::new();
    for limit in replica.limits() {
        limits.push(Limit { what: format!("{name}.{}", limit.what), ..limit.clone() });
    }
    cell.note_limits(&limits);
    cell.note("server::config", replica.notes());

    Ok(replica)
}

/// Watches replicas, and waits until they follow their primary.
fn watch<E: Replicated + 'static>(
    cell: &mut CellSite<'_>,
    primary: &E,
    replicas: Vec<(String, E)>,
) -> anyhow::Result<Box<dyn Replication>> {
    let session = cell.session;
    if cell.config().reads_replicas {
        // The ranks get the address of the primary alone.
        if session.ranks.is_some() {
            bail!(
                "load ranks cannot read from replicas: remove `reads` from the config, or run without load ranks"
            );
        }

        let replicas: Vec<&E> = replicas.iter().map(|(_, replica)| replica).collect();
        primary.read_from(&replicas);
    }

    let timeout = session.plan().server_timeout;
    let is_foreign = primary.server().is_none();

    let watched = Replicas::watch(
        primary,
        replicas,
        &session.clock,
        timeout,
        &session.stop,
        &|text| session.events.say(text),
        // What is made in a server of others is noted, so that it is dropped even after a crash.
        |table| if is_foreign { cell.note_table(table) } else { Ok(()) },
    )?;

    Ok(Box::new(watched))
}

/// The arguments of starting a server and its replicas, besides those from the plan.
struct Launch {
    /// The build.
    place: String,
    config_texts: Vec<String>,
    connections: u32,
    /// The TCP address for clients; `None` if they use the private socket.
    network: Option<Network>,
    /// The port for replicas.
    replica_port: Option<Port>,
}

impl Launch {
    /// Finds the build of a cell, reads its config, and reserves ports.
    fn of(cell: &CellSite<'_>) -> anyhow::Result<Self> {
        let (session, config) = (cell.session, cell.config());
        let plan = session.plan();
        let network = network_for(plan, config, session.ranks.as_ref())?;
        let replica_port = port_for_replicas(config)?;

        let variant = &plan.variants[cell.planned.variant];

        Ok(Self {
            place: Installed::of(cell.build())?.place,
            config_texts: session.file.config_texts(config)?,
            connections: estimate::connections(variant, cell.planned.clients),
            network,
            replica_port,
        })
    }

    /// Returns the options of the server, with its files in `home`.
    fn options<'a>(
        &'a self,
        session: &'a RunSession<'_>,
        config: &'a Config,
        home: &'a Path,
        log: &'a Path,
    ) -> StartOptions<'a> {
        let plan = session.plan();
        StartOptions {
            build: &self.place,
            data_dir: home,
            config_files: &self.config_texts,
            set: &config.set,
            user: plan.server_user.as_deref(),
            guard_exe: &session.executable,
            log,
            connections: self.connections,
            limits: &config.limits,
            creation: &config.creation,
            env: &config.env,
            timeout: plan.server_timeout,
            network: self.network.as_ref(),
            database: None,
            replicas: for_replicas(config, self.replica_port.as_ref()),
            wrapper: None,
            stop: &session.stop,
        }
    }
}

/// The name of the server's configuration file in the record.
const RECORDED_CONFIG: &str = "server.conf";

/// Copies the config of a server that did not start in its directory `home` into the record, under
/// the name `kept`, and removes the rest unless databases are kept. If the directory itself is the
/// problem, nothing is removed.
fn keep_config(
    cell: &CellSite<'_>,
    home: &Path,
    config_file: &str,
    kept: &str,
    error: SetupError,
) -> anyhow::Error {
    if matches!(error, SetupError::Directory { .. }) || cell.keep {
        return error.into();
    }

    let name = cell.build().engine.name();
    let place = home.join(name);
    let config = place.join(config_file);
    // The server's user may have put a link there.
    if let Ok(text) = record::open_regular(&config).and_then(std::io::read_to_string)
        && let Err(error) = cell.directory.write_text(kept, &text)
    {
        return error.into();
    }

    if place.exists() {
        remove_database(home, name);
    }

    // The file is gone from where the error says, and is in the record instead.
    match error {
        SetupError::Config { what, help, option, config_file: Some(_) } => {
            let config_file = Some(cell.directory.path().join(kept));
            SetupError::Config { what, help, option, config_file }.into()
        }
        error => error.into(),
    }
}
