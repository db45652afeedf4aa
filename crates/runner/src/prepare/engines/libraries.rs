//! Engines that are libraries with keys and values. Only another process loads a library before the
//! run.

use std::path::PathBuf;

use engine::{LibraryConfig, UnknownOption};
use plan::{Build, Config};

use super::{BuildFacts, BuildFinder};
use crate::prepare::installed::Installed;
use crate::prepare::library;
use crate::prepare::plan_file::PlanFile;
use crate::prepare::trials::{Configs, Trial};

/// RocksDB with its derivatives, and the engines of others.
pub struct Libraries;

impl BuildFinder for Libraries {
    fn find(&self, build: &Build, configs: &mut Configs<'_>) -> anyhow::Result<BuildFacts> {
        let installed = Installed::of(build)?;
        let engine = build.engine;
        let path = installed.library(engine)?;
        let identity = library::identify(engine, &path)?;

        for (&config, &target) in &configs.targets {
            for opening in openings(configs.file, &configs.file.plan.configs[config])? {
                let path = path.clone();
                configs.trials.push(Trial {
                    config,
                    target,
                    version: identity.version.clone(),
                    try_config: Box::new(move || library::try_config(engine, &path, &opening)),
                });
            }
        }

        Ok(BuildFacts {
            files: installed.hashes(&[PathBuf::from(&identity.path)])?,
            version: identity.version,
            source: identity.path,
            commit: installed.commit(),
        })
    }
}

/// Returns the configs with which a database is opened, in order: two if the plan has options for
/// the load only.
pub fn openings(file: &PlanFile, config: &Config) -> anyhow::Result<Vec<LibraryConfig>> {
    let unknown =
        if config.skips_unknown_options { UnknownOption::Skip } else { UnknownOption::Refuse };
    let step_config = LibraryConfig {
        // A config has at most one file: more are rejected before the run.
        file: file.config_texts(config)?.pop(),
        set: config.set.clone(),
        unknown,
        statistics: config.statistics,
        durability: config.durability,
        // Whoever starts the target knows its workload.
        merges: None,
        transactions: None,
    };

    if config.load.is_empty() {
        return Ok(vec![step_config]);
    }

    let load_config = LibraryConfig {
        set: [config.set.as_slice(), &config.load].concat(),
        ..step_config.clone()
    };

    Ok(vec![load_config, step_config])
}
