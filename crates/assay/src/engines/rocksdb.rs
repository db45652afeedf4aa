//! RocksDB and what is made from it: libraries with keys and values. The database of a cell is opened anew after the load
//! where the config has options for that alone, as each test of `db_bench` opens it.

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

use super::{EngineRow, Found};
use crate::installed::Installed;
use crate::library;
use crate::plan_file::PlanFile;
use crate::run::running::{Running, keep_log, remove_database};
use crate::run::subject::OpenRocks;
use crate::run::subject::insert::InsertRunner;
use crate::run::subject::kv::KvRunner;
use crate::trials::Configs;

/// The directory of a database, in its target's.
pub const DIRECTORY: &str = "rocksdb";

/// What the library said while it loaded, where it was opened anew after that.
const LOG_OF_LOAD: &str = "load.log";

/// What differs whenever a database is made and then opened.
const OF_A_NEW_DATABASE: [&str; 2] = ["create_if_missing", "error_if_exists"];

/// A library in this process, or in another where it is only tried.
pub struct RocksDb;

impl EngineRow for RocksDb {
    fn find(&self, build: &Build, configs: &mut Configs<'_>) -> anyhow::Result<Found> {
        let installed = Installed::of(build)?;
        let (mut of, mut all) = (Vec::new(), Vec::new());
        for (&config, &target) in &configs.targets {
            let openings = openings(configs.file, &configs.file.plan.configs[config])?;
            of.extend(openings.iter().map(|_| (config, target)));
            all.extend(openings);
        }
        let (found, tried) = library::identify(Path::new(&installed.place), &all)?;
        for ((config, target), tried) in of.into_iter().zip(tried) {
            configs.trials.add(config, target, &found.version, tried);
        }
        Ok(Found {
            files: installed.hashes(&[PathBuf::from(&found.path)])?,
            version: found.version,
            source: found.path,
        })
    }

    fn measure(&self, cell: &mut Running<'_>) -> anyhow::Result<Status> {
        let library = Library::open(Path::new(&Installed::of(cell.build())?.place))?;
        let data_dir = cell.empty_directory(DIRECTORY)?;
        let openings = openings(cell.conductor.file, cell.config())?;
        let mut openings = openings.into_iter();
        let first = openings.next().unwrap_or_default();
        match rocksdb::RocksDb::create(&library, data_dir.path(), &first) {
            Ok(database) => {
                let result = each_opening(cell, database, openings.next(), data_dir.path());
                cell.leave(Some(data_dir), result)
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

/// Returns the configs with which a database is opened, one after the other: where the plan has options for the load alone,
/// it is opened anew after it.
fn openings(file: &PlanFile, config: &Config) -> anyhow::Result<Vec<rocksdb::Config>> {
    let of_steps = rocksdb::Config {
        // One at most: more are refused before the run.
        file: file.config_texts(config)?.pop(),
        set: config.set.clone(),
        unknown: match config.skips_unknown_options {
            true => rocksdb::UnknownOption::Skip,
            false => rocksdb::UnknownOption::Refuse,
        },
        statistics: config.statistics,
    };
    if config.load.is_empty() {
        return Ok(vec![of_steps]);
    }
    let of_load = rocksdb::Config {
        set: [config.set.as_slice(), &config.load].concat(),
        ..of_steps.clone()
    };
    Ok(vec![of_load, of_steps])
}

/// A workload with what it knows it did.
enum Keyed {
    Sequence(Box<Kv>),
    Insert(Box<Insert>),
}

/// Runs the cell on a database that is up: all steps, or the load, and the others after it was opened anew.
fn each_opening(
    cell: &mut Running<'_>,
    database: rocksdb::RocksDb,
    after_load: Option<rocksdb::Config>,
    data_dir: &Path,
) -> anyhow::Result<Status> {
    let (clients, seed) = (cell.planned.clients, cell.conductor.plan().seed);
    let mut keyed = match cell.workload() {
        Workload::Kv(kv) => Keyed::Sequence(Box::new(Kv::new(kv, clients, seed))),
        Workload::Insert(insert) => Keyed::Insert(Box::new(Insert::new(insert, clients, seed))),
        Workload::Sysbench(_) => {
            anyhow::bail!("the sysbench microbenchmarks do not run on an engine without SQL")
        }
    };
    note_left_out(cell, &database);
    let (count, loaded) = (cell.record.steps.len(), cell.workload().steps_to_load());
    let Some(config) = after_load else {
        return cell.measure(database, |cell, database| {
            steps(cell, database, &mut keyed, (0..count, false))
        });
    };
    let library = Arc::clone(database.library());
    let status = cell.measure(database, |cell, database| {
        steps(cell, database, &mut keyed, (0..loaded, true))
    })?;
    if status != Status::Complete {
        return Ok(status);
    }
    let log = cell.directory.log_path();
    if log.exists() {
        fs_err::rename(log, cell.directory.path().join(LOG_OF_LOAD))?;
    }
    let database = match rocksdb::RocksDb::open(&library, data_dir, &config) {
        Ok(database) => database,
        Err(error) => {
            keep_log(cell.directory, &rocksdb::log_path(data_dir))?;
            return Err(error).context("the database can't be opened anew after the load");
        }
    };
    note_left_out(cell, &database);
    let of_load = std::mem::take(&mut cell.record.settings);
    cell.measure(database, |cell, database| {
        tell_of_load(cell, of_load)?;
        cell.directory.write(cell.record)?;
        steps(cell, database, &mut keyed, (loaded..count, false))
    })
}

/// Runs some steps of either workload, on a database that is open for the load alone or not.
fn steps(
    cell: &mut Running<'_>,
    database: &rocksdb::RocksDb,
    keyed: &mut Keyed,
    (steps, is_loading): (Range<usize>, bool),
) -> anyhow::Result<Status> {
    let rocks = OpenRocks {
        database,
        is_loading,
    };
    match keyed {
        Keyed::Sequence(workload) => {
            let mut runner = KvRunner::new(database, workload);
            cell.each_step(&rocks, &mut runner, steps)
        }
        Keyed::Insert(workload) => {
            let mut runner = InsertRunner {
                database: &workload::insert::keyed::Keyed(|| database.connect()),
                workload,
            };
            cell.each_step(&rocks, &mut runner, steps)
        }
    }
}

/// Adds to the settings those of the load that were others, and those that the config has for it.
fn tell_of_load(cell: &mut Running<'_>, of_load: Vec<Setting>) -> anyhow::Result<()> {
    let declared = cell.config().declared();
    let later = &cell.record.settings;
    let is_told = |setting: &Setting| {
        let name = bare(&setting.name);
        let own = format!("{LOAD_OPTION}{name}");
        let is_declared = || {
            declared.iter().any(|(option, _)| {
                let part = own.strip_prefix(option.as_str());
                part.is_some_and(|part| part.is_empty() || part.starts_with('.'))
            })
        };
        let is_same = |it: &Setting| (&it.name, &it.value) == (&setting.name, &setting.value);
        !OF_A_NEW_DATABASE.contains(&name) && (is_declared() || !later.iter().any(is_same))
    };
    let told: Vec<Setting> = of_load
        .into_iter()
        .filter(is_told)
        .map(|setting| Setting {
            name: name_in_load(&setting.name),
            ..setting
        })
        .collect();
    cell.record.settings.extend(told);
    cell.record.settings.sort_by(|a, b| a.name.cmp(&b.name));
    cell.describe_settings()
}

/// Says which options of the config this version of RocksDB does not have.
fn note_left_out(cell: &mut Running<'_>, database: &rocksdb::RocksDb) {
    let left_out = database.not_applicable();
    if !left_out.is_empty() {
        let text = format!(
            "not applicable to {}: `{}`",
            database.version(),
            left_out.join("`, `")
        );
        cell.note("rocksdb::options", &[text]);
    }
}

/// Its name without its section.
fn bare(name: &str) -> &str {
    name.split_once("] ").map_or(name, |(_, bare)| bare)
}

/// What a setting of the load is called beside that of the other steps: `[CFOptions] load.compression`.
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
        assert_eq!(
            name_in_load("[CFOptions] compression"),
            "[CFOptions] load.compression"
        );
        assert_eq!(name_in_load("perf_level"), "load.perf_level");
    }
}
