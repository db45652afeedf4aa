//! Server engines: finds their builds, and asks those that already run.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use engine::limits::Limits;
use engine::mysql::{self, Mysql};
use engine::postgres::{self, Postgres};
use engine::{Needs, Obstacle, Replicated, SetupError, StartOptions};
use plan::{Build, BuildSource};

use super::network::{for_replicas, network_for, port_for_replicas};
use super::{BuildFacts, BuildFinder};
use crate::ground::program::own_path;
use crate::prepare::estimate;
use crate::prepare::installed::Installed;
use crate::prepare::trials::{Configs, ITS_REPLICAS};

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
    check_url: fn(&str) -> Result<(), SetupError>,
    engine: PhantomData<fn() -> E>,
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
    check_url: |url| postgres::parse_url(url).map(drop),
    engine: PhantomData,
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
    check_url: |url| mysql::parse_url(url).map(drop),
    engine: PhantomData,
};

impl<E: Replicated + 'static> BuildFinder for Servers<E> {
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
        let server = E::attach(url)?;
        let obstacles = server.obstacles(with_watching(configs.needs, build));
        configs.obstacles = obstacles.context("cannot read the server's limits and privileges")?;

        for (name, replica) in attach_replicas::<E>(build)? {
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
}

/// Connects to the replicas of a build's server that Assay does not start.
pub fn attach_replicas<E: Replicated>(build: &Build) -> anyhow::Result<Vec<(String, E)>> {
    let mut replicas = Vec::new();
    for (number, url) in (1..).zip(&build.replica_urls) {
        let name = replica_name(number);
        let replica = E::attach(url.expose()).with_context(|| format!("{name} cannot be used"))?;
        replicas.push((name, replica));
    }

    Ok(replicas)
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
pub fn replica_name(number: u32) -> String {
    format!("replica_{number}")
}
