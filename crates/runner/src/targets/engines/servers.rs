//! Server engines, which assay starts or attaches to.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, bail};
use engine::limits::Limits;
use engine::mysql::{self, Mysql};
use engine::postgres::{self, Postgres};
use engine::{
    Certificate, ForReplicas, Needs, Network, Obstacle, Port, Replicated, SetupError, StartOptions,
    StoppedDatabase,
};
use plan::{Build, BuildSource, Config, Plan};
use record::Limit;
use words::Secret;

use super::sql::{Preparation, SqlTarget};
use super::{BuildFacts, EngineRow};
use crate::ground::host::random_id;
use crate::ground::program::own_path;
use crate::prepare::estimate;
use crate::prepare::installed::Installed;
use crate::prepare::trials::{Configs, ITS_REPLICAS};
use crate::remote::LoadRanks;
use crate::session::RunSession;
use crate::targets::replicas::{Replicas, Replication};
use crate::targets::running::{Leftovers, RunningTarget};
use crate::targets::site::{CellSite, remove_database};
use crate::targets::workloads::sql::LoadEngine;

/// A kind of server.
pub struct Servers<E> {
    /// Finds an installed build.
    locate: fn(&str) -> Result<Located, SetupError>,
    /// Starts an installed build just to read a config.
    try_config: fn(&StartOptions<'_>) -> Result<(), SetupError>,
    /// Refuses a config with an option that is not named in full.
    refuse_beginnings_of_names: fn(&StartOptions<'_>) -> Result<(), SetupError>,
    /// Starts a server in a temporary directory, just to make a database and a table.
    try_creation: fn(&StartOptions<'_>) -> Result<(), SetupError>,
    start: fn(&StartOptions<'_>) -> Result<E, SetupError>,
    attach: fn(&str) -> Result<E, SetupError>,
    check_url: fn(&str) -> Result<(), SetupError>,
    /// The file in the server's directory that assay writes its config into.
    config_file: &'static str,
}

/// The connections that watch a replica.
const WATCHING: u32 = 4;
/// The connection that writes heartbeats on a primary.
const WRITING: u32 = 1;
/// The connections to a primary that watch one replica, or create tables and indexes on it.
const WATCHING_PRIMARY: u32 = 3;

/// An installed server.
struct Located {
    /// The product and version.
    name: String,
    version: String,
    place: PathBuf,
    files: Vec<PathBuf>,
}

pub const POSTGRES: Servers<Postgres> = Servers {
    locate: |build| {
        let install = postgres::locate(build)?;
        Ok(Located {
            name: format!("PostgreSQL {}", install.version.text),
            version: install.version.text,
            place: install.bin_dir,
            files: install.files,
        })
    },
    try_config: Postgres::try_config,
    refuse_beginnings_of_names: Postgres::refuse_beginnings_of_names,
    try_creation: Postgres::try_creation,
    start: Postgres::start,
    attach: Postgres::attach,
    check_url: |url| postgres::parse_url(url).map(drop),
    config_file: "server.conf",
};

pub const MYSQL: Servers<Mysql> = Servers {
    locate: |build| {
        let install = mysql::locate(build)?;
        Ok(Located {
            name: install.version.to_string(),
            version: install.version.text,
            place: install.program,
            files: install.files,
        })
    },
    try_config: Mysql::try_config,
    refuse_beginnings_of_names: Mysql::refuse_beginnings_of_names,
    try_creation: Mysql::try_creation,
    start: Mysql::start,
    attach: Mysql::attach,
    check_url: |url| mysql::parse_url(url).map(drop),
    config_file: "server.cnf",
};

impl<E: Replicated + 'static> EngineRow for Servers<E> {
    fn find(&self, build: &Build, configs: &mut Configs<'_>) -> anyhow::Result<BuildFacts> {
        if let BuildSource::Url(url) = &build.source {
            return self.examine(build, url.expose(), configs);
        }

        let installed = Installed::of(build)?;
        let located = (self.locate)(&installed.place)?;
        self.add_trials(&installed.place, &located.name, configs)?;

        Ok(BuildFacts {
            version: located.version,
            source: located.place.display().to_string(),
            files: installed.hashes(&located.files)?,
            commit: installed.commit(),
        })
    }

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
        Ok(Box::new((self.attach)(url)?))
    }

    fn check_url(&self, url: &str) -> Result<(), SetupError> {
        (self.check_url)(url)
    }
}

impl<E: Replicated + 'static> Servers<E> {
    /// Asks a server that already runs for its version, and for what keeps cells from running.
    fn examine(
        &self,
        build: &Build,
        url: &str,
        configs: &mut Configs<'_>,
    ) -> anyhow::Result<BuildFacts> {
        let server = (self.attach)(url)?;
        let obstacles = server.obstacles(with_watching(configs.needs, build));
        configs.obstacles = obstacles.context("cannot read the server's limits and privileges")?;

        for (name, replica) in self.attach_replicas(build)? {
            let found = server
                .obstacles_of(&replica, configs.needs_of_replicas(WATCHING))
                .with_context(|| format!("cannot examine {name}"))?;
            for obstacle in found {
                let what = format!("{name}: {}", obstacle.what);
                configs.obstacles.push(Obstacle { what, ..obstacle });
            }
        }

        Ok(BuildFacts {
            version: server.version().to_owned(),
            source: words::redact(url),
            files: Vec::new(),
            commit: None,
        })
    }

    /// Adds a trial of each config, in which the server only reads it.
    fn add_trials(
        &self,
        place: &str,
        version: &str,
        configs: &mut Configs<'_>,
    ) -> anyhow::Result<()> {
        let executable = own_path()?;
        let (file, data_root) = (configs.file, configs.data_root);
        let (try_config, try_creation) = (self.try_config, self.try_creation);
        let refuse_beginnings_of_names = self.refuse_beginnings_of_names;
        let connections = estimate::of_plan(&file.plan).connections;
        let place = place.to_owned();

        configs.each(version, move |config, target| {
            let plan = &file.plan;
            let home = data_root.map_or_else(std::env::temp_dir, |root| root.join(target));
            let network = network_for(plan, config, None)?;
            let replica_port = port_for_replicas(config)?;
            let texts = file.config_texts(config)?;

            let options = StartOptions {
                build: &place,
                data_dir: &home,
                config_files: &texts,
                set: &config.set,
                user: plan.server_user.as_deref(),
                guard_exe: &executable,
                log: Path::new("log"),
                connections,
                limits: &Limits::default(),
                creation: &config.creation,
                env: &config.env,
                timeout: plan.server_timeout,
                network: network.as_ref(),
                database: None,
                replicas: for_replicas(config, replica_port.as_ref()),
                wrapper: None,
                stop: &AtomicBool::new(false),
            };

            // Replicas may have options of their own.
            let replica_set = config.set_of_replicas();
            let replica = StartOptions { set: &replica_set, replicas: None, ..options };
            let has_own_replicas = config.replicas > 0 && !config.replica_set.is_empty();

            // Before the build sees a stranger's options.
            if file.is_bundle {
                refuse_beginnings_of_names(&options)?;
                if has_own_replicas {
                    refuse_beginnings_of_names(&replica).context(ITS_REPLICAS)?;
                }
            }

            try_config(&options)?;
            if config.needs_trial_of_creation() {
                try_creation(&options)?;
            }

            if has_own_replicas {
                try_config(&replica).context(ITS_REPLICAS)?;
            }

            Ok(())
        });

        Ok(())
    }

    /// Connects to the replicas of a build's server that assay does not start.
    fn attach_replicas(&self, build: &Build) -> anyhow::Result<Vec<(String, E)>> {
        let mut replicas = Vec::new();
        for (number, url) in (1..).zip(&build.replica_urls) {
            let name = replica_name(number);
            let replica =
                (self.attach)(url.expose()).with_context(|| format!("{name} can't be used"))?;
            replicas.push((name, replica));
        }

        Ok(replicas)
    }

    /// Attaches to a server that already runs, and to its replicas.
    fn attach_target(&self, cell: &mut CellSite<'_>, url: &str) -> anyhow::Result<SqlTarget<E>> {
        let server = (self.attach)(url)?;
        cell.url = Some(url.to_owned());
        let replicas = self.attach_replicas(cell.build())?;

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
            Some(_) => Some(Installed::of(cell.loading_parts().0)?.place),
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
        cell.drop_leftover_tables(primary)?;
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
        .with_context(|| format!("can't start {name}"))?;

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
                "load ranks can't read from replicas: remove `reads` from the config, or run without load ranks"
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

/// Returns the needs from a server whose replicas are watched: it gets the table of the heartbeats.
fn with_watching(needs: Needs, build: &Build) -> Needs {
    match build.replica_urls.len() as u32 {
        0 => needs,
        replicas => Needs {
            connections: needs.connections + WRITING + WATCHING_PRIMARY * replicas,
            makes_tables: true,
        },
    }
}

/// Returns the name of a replica, numbered from 1.
fn replica_name(number: u32) -> String {
    format!("replica_{number}")
}

/// Returns the TCP address for clients of a server that is started next; `None` if they use its
/// private socket. Password and certificate are made for this server.
fn network_for(
    plan: &Plan,
    config: &Config,
    ranks: Option<&LoadRanks>,
) -> anyhow::Result<Option<Network>> {
    // Without an address of the plan's, TLS needs TCP all the same: only clients here use it.
    let address = match ranks {
        Some(ranks) if ranks.has_other_host() => Some(ranks.reached_address(plan.listen)?),
        _ => plan.listen.or(config.tls.then_some(Ipv4Addr::LOCALHOST.into())),
    };
    let Some(address) = address else {
        return Ok(None);
    };

    let port = Port::reserve(address);

    Ok(Some(Network {
        port: port.with_context(|| format!("a server can't listen on {address}"))?,
        password: Secret::new(random_id()?),
        certificate: config.tls.then(|| Certificate::make(address)).transpose()?,
    }))
}

/// Returns a port for the replicas of a server that is started next; `None` if it has none.
fn port_for_replicas(config: &Config) -> anyhow::Result<Option<Port>> {
    let port = (config.replicas > 0).then(|| Port::reserve(Ipv4Addr::LOCALHOST.into()));
    port.transpose().context("can't reserve a port on 127.0.0.1 for replicas")
}

/// Returns what the replicas of a server need.
fn for_replicas<'a>(config: &Config, port: Option<&'a Port>) -> Option<ForReplicas<'a>> {
    Some(ForReplicas { port: port?, logical: config.logical_replication })
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
