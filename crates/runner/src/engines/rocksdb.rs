//! RocksDB and its derivatives: key-value libraries. If the config has options for the load only,
//! the database of a cell is reopened after the load. `db_bench` opens it for each test too.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use engine::Engine;
use engine::rocksdb::{self, Library};
use plan::{Build, Config, LOAD_OPTION, Workload};
use record::{Setting, Status};
use workload::insert::Insert;
use workload::kv::Kv;

use super::{BuildFacts, EngineRow};
use crate::before::installed::Installed;
use crate::before::library;
use crate::before::plan_file::PlanFile;
use crate::before::trials::{Configs, Trial};
use crate::cell::cell_run::{CellRun, keep_log, remove_database};
use crate::workloads::RocksDbSteps;
use crate::workloads::insert::InsertRunner;
use crate::workloads::kv::KvRunner;

/// The directory of a database, in its target's directory.
pub const DIRECTORY: &str = "rocksdb";

/// The library's log of the load, if the database was reopened after it.
const LOAD_LOG: &str = "load.log";

/// Options that always differ between creating a database and opening it.
const NEW_DATABASE_ONLY: [&str; 2] = ["create_if_missing", "error_if_exists"];

/// RocksDB or a derivative.
pub struct RocksDb;

impl EngineRow for RocksDb {
    fn find(&self, build: &Build, configs: &mut Configs<'_>) -> anyhow::Result<BuildFacts> {
        let installed = Installed::of(build)?;
        let identity = library::identify(Path::new(&installed.place))?;
        for (&config, &target) in &configs.targets {
            for opening in openings(configs.file, &configs.file.plan.configs[config])? {
                let path = PathBuf::from(&installed.place);
                configs.trials.push(Trial {
                    config,
                    target,
                    version: identity.version.clone(),
                    try_config: Box::new(move || library::try_config(&path, &opening)),
                });
            }
        }
        Ok(BuildFacts {
            files: installed.hashes(&[PathBuf::from(&identity.path)])?,
            version: identity.version,
            source: identity.path,
        })
    }

    fn measure(&self, cell: &mut CellRun<'_>) -> anyhow::Result<Status> {
        let library = Library::open(Path::new(&Installed::of(cell.build())?.place))?;
        let data_dir = cell.empty_directory(DIRECTORY)?;
        let openings = openings(&cell.session.file, cell.config())?;
        let mut openings = openings.into_iter();
        let first = openings.next().unwrap_or_default();
        match rocksdb::RocksDb::create(&library, data_dir.path(), &first) {
            Ok(database) => {
                let result = run_openings(cell, database, openings.next(), data_dir.path());
                cell.clean_up(Some(data_dir), result)
            }
            Err(error) => {
                keep_log(cell.directory, &rocksdb::log_path(data_dir.path()))?;
                if !cell.keep {
                    remove_database(&cell.home(), DIRECTORY);
                }
                Err(error.into())
            }
        }
    }
}

/// Returns the configs with which a database is opened, in order: two if the plan has options for
/// the load only.
fn openings(file: &PlanFile, config: &Config) -> anyhow::Result<Vec<rocksdb::Config>> {
    let step_config = rocksdb::Config {
        // At most one: a config with more is rejected before the run.
        file: file.config_texts(config)?.pop(),
        set: config.set.clone(),
        unknown: if config.skips_unknown_options {
            rocksdb::UnknownOption::Skip
        } else {
            rocksdb::UnknownOption::Refuse
        },
        statistics: config.statistics,
    };
    if config.load.is_empty() {
        return Ok(vec![step_config]);
    }
    let load_config = rocksdb::Config {
        set: [config.set.as_slice(), &config.load].concat(),
        ..step_config.clone()
    };
    Ok(vec![load_config, step_config])
}

/// A workload for key-value engines.
enum KeyValueWorkload {
    Sequence(Box<Kv>),
    Insert(Box<Insert>),
}

/// Runs the cell on an open database. Reopens it between the load and the other steps if
/// `after_load` has a config.
fn run_openings(
    cell: &mut CellRun<'_>,
    database: rocksdb::RocksDb,
    after_load: Option<rocksdb::Config>,
    data_dir: &Path,
) -> anyhow::Result<Status> {
    let (clients, seed) = (cell.planned.clients, cell.session.plan().seed);
    let mut keyed = match cell.workload() {
        Workload::Kv(kv) => KeyValueWorkload::Sequence(Box::new(Kv::new(kv, clients, seed))),
        Workload::Insert(insert) => {
            KeyValueWorkload::Insert(Box::new(Insert::new(insert, clients, seed)))
        }
        Workload::Sysbench(_) => {
            anyhow::bail!("the workload `sysbench` needs a SQL engine")
        }
    };
    warn_of_left_out_options(cell, &database);
    let (count, loaded) = (cell.record.steps.len(), cell.workload().steps_to_load());
    let Some(config) = after_load else {
        return cell.measure(database, |cell, database| {
            steps(cell, database, &mut keyed, (0..count, false))
        });
    };
    let library = Arc::clone(database.library());
    let status = cell
        .measure(database, |cell, database| steps(cell, database, &mut keyed, (0..loaded, true)))?;
    if status != Status::Complete {
        return Ok(status);
    }
    let log = cell.directory.log_path();
    if log.exists() {
        fs_err::rename(log, cell.directory.path().join(LOAD_LOG))?;
    }
    let database = match rocksdb::RocksDb::open(&library, data_dir, &config) {
        Ok(database) => database,
        Err(error) => {
            keep_log(cell.directory, &rocksdb::log_path(data_dir))?;
            return Err(error).context("cannot reopen the database after the load");
        }
    };
    warn_of_left_out_options(cell, &database);
    let load_settings = std::mem::take(&mut cell.record.settings);
    cell.measure(database, |cell, database| {
        record_load_settings(cell, load_settings)?;
        cell.directory.write(cell.record)?;
        steps(cell, database, &mut keyed, (loaded..count, false))
    })
}

/// Runs some steps of either workload; `is_loading` if the database is open for the load only.
fn steps(
    cell: &mut CellRun<'_>,
    database: &rocksdb::RocksDb,
    keyed: &mut KeyValueWorkload,
    (steps, is_loading): (Range<usize>, bool),
) -> anyhow::Result<Status> {
    let rocks = RocksDbSteps { database, is_loading };
    match keyed {
        KeyValueWorkload::Sequence(workload) => {
            let mut runner = KvRunner::new(database, workload);
            cell.run_steps(&rocks, &mut runner, steps)
        }
        KeyValueWorkload::Insert(workload) => {
            let mut runner = InsertRunner {
                database: Box::new(workload::insert::keyed::Keyed(|| database.connect())),
                workload,
            };
            cell.run_steps(&rocks, &mut runner, steps)
        }
    }
}

/// Records the load's settings that differ from those of the other steps, and those that the config
/// declares for the load.
fn record_load_settings(cell: &mut CellRun<'_>, load_settings: Vec<Setting>) -> anyhow::Result<()> {
    let declared = cell.config().declared();
    let later = &cell.record.settings;
    let is_recorded = |setting: &Setting| {
        let name = without_section(&setting.name);
        let load_name = format!("{LOAD_OPTION}{name}");
        let is_declared = || {
            declared.iter().any(|(option, _)| {
                let suffix = load_name.strip_prefix(option.as_str());
                suffix.is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('.'))
            })
        };
        let is_same = |it: &Setting| (&it.name, &it.value) == (&setting.name, &setting.value);
        !NEW_DATABASE_ONLY.contains(&name) && (is_declared() || !later.iter().any(is_same))
    };
    let recorded: Vec<Setting> = load_settings
        .into_iter()
        .filter(is_recorded)
        .map(|setting| Setting { name: name_in_load(&setting.name), ..setting })
        .collect();
    cell.record.settings.extend(recorded);
    cell.record.settings.sort_by(|a, b| a.name.cmp(&b.name));
    cell.describe_settings()
}

/// Warns about options of the config that this version of RocksDB lacks.
fn warn_of_left_out_options(cell: &mut CellRun<'_>, database: &rocksdb::RocksDb) {
    let left_out = database.not_applicable();
    if !left_out.is_empty() {
        let text = format!(
            "{} does not have these options of the config, so they are left out: `{}`",
            database.version(),
            left_out.join("`, `")
        );
        cell.note("rocksdb::options", &[text]);
    }
}

/// Returns a setting's name without its section.
fn without_section(name: &str) -> &str {
    name.split_once("] ").map_or(name, |(_, bare)| bare)
}

/// Returns the name of a setting of the load: `[CFOptions] load.compression`.
fn name_in_load(name: &str) -> String {
    match name.split_once("] ") {
        Some((section, name)) => format!("{section}] {LOAD_OPTION}{name}"),
        None => format!("{LOAD_OPTION}{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::name_in_load;

    #[test]
    fn a_setting_of_the_load_has_a_name_of_its_own() {
        assert_eq!(name_in_load("[CFOptions] compression"), "[CFOptions] load.compression");
        assert_eq!(name_in_load("perf_level"), "load.perf_level");
    }
}
