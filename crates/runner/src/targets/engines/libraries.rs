//! Engines that are libraries with keys and values: RocksDB and its derivatives, and the engines of
//! others.
//!
//! If the config has options for the load only, the database of a cell is reopened after the load.
//! `db_bench` opens it for each test too.

use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use engine::custom::CustomLibrary;
use engine::{DataDir, Engine as _, KeyValueEngine, KeyValueLibrary, LibraryConfig, rocksdb};
use plan::{Engine, LOAD_OPTION, Workload};
use record::Setting;
use record::Status;
use words::{CellKind, without_section};
use workload::insert::Insert;
use workload::insert::keyed::Keyed;
use workload::kv::Kv;

use super::TargetStarter;
use crate::prepare::engines::libraries::openings;
use crate::prepare::installed::Installed;
use crate::targets::running::{Leftovers, NextOpening, RunningTarget, Stopped, TargetSteps};
use crate::targets::site::{CellSite, keep_log, remove_database};
use crate::targets::workloads::insert::InsertRunner;
use crate::targets::workloads::kv::KvRunner;
use crate::targets::workloads::{LibrarySteps, WorkloadRunner};

/// The directory of a database, in its target's directory.
pub const DIRECTORY: &str = "database";

/// Options that always differ between creating a database and opening it.
const NEW_DATABASE_ONLY: [&str; 2] = ["create_if_missing", "error_if_exists"];

/// RocksDB and its derivatives.
pub static ROCKSDB: LibraryRow<rocksdb::Library> = LibraryRow(PhantomData);
/// The engines of others.
pub static CUSTOM: LibraryRow<CustomLibrary> = LibraryRow(PhantomData);

/// Returns the path of the log of a crashed library, if the engine writes one.
pub fn log_path(engine: Engine, directory: &Path) -> Option<PathBuf> {
    match engine {
        Engine::RocksDb => rocksdb::Library::log_path(directory),
        Engine::Library => CustomLibrary::log_path(directory),
        Engine::Sqlite | Engine::Postgres | Engine::Mysql | Engine::Null => None,
    }
}

/// An engine whose builds are libraries of one kind.
pub struct LibraryRow<L>(PhantomData<fn() -> L>);

impl<L: KeyValueLibrary> TargetStarter for LibraryRow<L> {
    fn start(&self, cell: &mut CellSite<'_>) -> anyhow::Result<Box<dyn RunningTarget>> {
        // The cell's own process, which runs the library.
        engine::check_preloaded(&cell.config().env, std::process::id())?;
        let build = cell.build();
        let library = L::load(&Installed::of(build)?.library(build.engine)?)?;

        let workload = KeyValueWorkload::of(cell)?;
        let data_dir = cell.empty_directory(DIRECTORY)?;
        let part = cell.part_of_steps();

        let mut openings = openings_for_workload(cell)?;
        let has_load_options = openings.len() > 1;

        let is_copy = cell.copy_kept_database(&data_dir)?;
        if is_copy && has_load_options {
            // The load of a copied database is over.
            openings.remove(0);
        }

        let mut openings = openings.into_iter();
        let first = openings.next().unwrap_or_default();
        let opened = if is_copy {
            library.open_database(data_dir.path(), &first)
        } else {
            library.create_database(data_dir.path(), &first)
        };
        let database = match opened {
            Ok(database) => database,
            Err(error) => {
                // The library's log says more than its error.
                if let Some(log) = L::log_path(data_dir.path()) {
                    keep_log(cell.directory, &log)?;
                }
                if !cell.keep {
                    remove_database(&cell.home(), DIRECTORY);
                }
                return Err(error.into());
            }
        };
        warn_of_left_out_options(cell, &database);

        // A load that is kept for others is opened again by whoever uses it.
        let loaded = cell.workload().steps_to_load();
        let ends_with_load = part.end == loaded && part.end < cell.record.steps.len();
        let after_load = openings.next().filter(|_| !ends_with_load);
        let load_settings = cell.settings_of_load().filter(|_| has_load_options);

        Ok(Box::new(LibraryTarget {
            library,
            database,
            workload,
            data_dir,
            is_loading: has_load_options && !is_copy,
            part: if after_load.is_some() { part.start..loaded } else { part.clone() },
            after_load: after_load.map(|config| AfterLoad { config, part: loaded..part.end }),
            load_settings,
        }))
    }
}

/// Returns the openings of a cell's config, with what its workload needs of each.
fn openings_for_workload(cell: &CellSite<'_>) -> anyhow::Result<Vec<LibraryConfig>> {
    let mut openings = openings(&cell.session.file, cell.config())?;
    if let Workload::Kv(kv) = cell.workload() {
        for opening in &mut openings {
            opening.merges = kv.merges().then_some(kv.merge_operator);
            opening.transactions = kv.has_transactions().then_some(cell.config().transactions);
        }
    }
    Ok(openings)
}

/// A workload for key-value engines.
enum KeyValueWorkload {
    Sequence(Box<Kv>),
    Insert(Box<Insert>),
}

impl KeyValueWorkload {
    /// Returns the workload of a cell.
    fn of(cell: &CellSite<'_>) -> anyhow::Result<Self> {
        let (clients, seed) = (cell.planned.clients, cell.session.plan().seed);
        match cell.workload() {
            Workload::Kv(kv) => {
                let mut kv = kv.clone();
                match cell.planned.kind {
                    CellKind::Unlimited => kv.remove_shares(),
                    // Counted work depends on no rate.
                    CellKind::Exact => kv.remove_rates(),
                    CellKind::Measured | CellKind::Profiled => {}
                }
                Ok(Self::Sequence(Box::new(Kv::new(&kv, clients, seed))))
            }
            Workload::Insert(insert) => {
                Ok(Self::Insert(Box::new(Insert::new(insert, clients, seed))))
            }
            Workload::Sysbench(_) => anyhow::bail!("the workload `sysbench` needs a SQL engine"),
            Workload::Transactions(_) => {
                anyhow::bail!("the workload `transactions` needs a SQL engine")
            }
        }
    }
}

/// An open database, with the steps that run on it.
struct LibraryTarget<L: KeyValueLibrary> {
    library: Arc<L>,
    database: L::Database,
    workload: KeyValueWorkload,
    data_dir: DataDir,
    /// The database is open for the load only.
    is_loading: bool,
    /// The numbers of the steps.
    part: Range<usize>,
    /// The second opening; `None` if the database is opened only once.
    after_load: Option<AfterLoad>,
    /// The settings of the load, if it was opened again after that.
    load_settings: Option<Vec<Setting>>,
}

/// The config and the steps of the database's second opening, after the load.
struct AfterLoad {
    config: LibraryConfig,
    /// The numbers of the steps.
    part: Range<usize>,
}

impl<L: KeyValueLibrary> RunningTarget for LibraryTarget<L> {
    fn leftovers(&self) -> Leftovers {
        Leftovers::database(self.data_dir.clone(), self.data_dir.path().to_owned())
    }

    fn engine(&self) -> &dyn engine::Engine {
        &self.database
    }

    fn prepare(&mut self, cell: &mut CellSite<'_>) -> anyhow::Result<()> {
        if let Some(load_settings) = self.load_settings.take() {
            record_load_settings(cell, load_settings)?;
            cell.directory.write(cell.record)?;
        }
        Ok(())
    }

    fn steps(&mut self, _: &CellSite<'_>) -> anyhow::Result<TargetSteps<'_>> {
        let (database, is_loading) = (&self.database, self.is_loading);
        let lacks = database.lacks();
        let is_insert = matches!(self.workload, KeyValueWorkload::Insert(_));
        if is_insert && (lacks.batches || lacks.reverse_scans) {
            anyhow::bail!(
                "the Insert Benchmark needs atomic batches and reverse scans, which {} \
                 does not offer",
                database.version()
            );
        }

        let runner: Box<dyn WorkloadRunner + '_> = match &mut self.workload {
            KeyValueWorkload::Sequence(workload) => Box::new(KvRunner::new(database, workload)),
            KeyValueWorkload::Insert(workload) => {
                let refuses_points = lacks
                    .reads_of_several
                    .then(|| format!("{} does not offer multi-key reads", database.version()));
                let keyed = Keyed { connect: || database.connect(), refuses_points };
                Box::new(InsertRunner { database: Box::new(keyed), workload })
            }
        };

        let engine = Box::new(LibrarySteps { database, is_loading });
        Ok(TargetSteps { engine, runner, part: self.part.clone() })
    }

    fn stop(self: Box<Self>, _ended: Option<Status>) -> Stopped {
        let Self { library, database, workload, data_dir, after_load, .. } = *self;
        let result = database.stop();

        match after_load {
            None => Stopped { result, next: None },
            Some(after_load) => {
                let next = Reopening { library, workload, data_dir, after_load };
                Stopped { result, next: Some(Box::new(next)) }
            }
        }
    }
}

/// A database that is opened again after its load.
struct Reopening<L> {
    library: Arc<L>,
    workload: KeyValueWorkload,
    data_dir: DataDir,
    after_load: AfterLoad,
}

impl<L: KeyValueLibrary> NextOpening for Reopening<L> {
    fn open(self: Box<Self>, cell: &mut CellSite<'_>) -> anyhow::Result<Box<dyn RunningTarget>> {
        let Self { library, workload, data_dir, after_load } = *self;
        cell.set_load_log_aside()?;

        let opened = library.open_database(data_dir.path(), &after_load.config);
        let database = match opened {
            Ok(database) => database,
            Err(error) => {
                if let Some(log) = L::log_path(data_dir.path()) {
                    keep_log(cell.directory, &log)?;
                }
                return Err(error).context("cannot reopen the database after the load");
            }
        };

        warn_of_left_out_options(cell, &database);

        Ok(Box::new(LibraryTarget {
            library,
            database,
            workload,
            data_dir,
            is_loading: false,
            part: after_load.part,
            after_load: None,
            load_settings: Some(std::mem::take(&mut cell.record.settings)),
        }))
    }
}

/// Records the load's settings that differ from those of the other steps, and those that the config
/// declares for the load.
fn record_load_settings(
    cell: &mut CellSite<'_>,
    load_settings: Vec<Setting>,
) -> anyhow::Result<()> {
    let declared = cell.config().declared();
    let later = cell.record.settings.clone();

    // Those of a kept database may have been recorded by the cell that made it.
    let is_of_load = |setting: &Setting| without_section(&setting.name).starts_with(LOAD_OPTION);
    let are_recorded = load_settings.iter().any(is_of_load);

    for setting in load_settings {
        if are_recorded {
            if is_of_load(&setting) {
                cell.record.settings.push(setting);
            }
            continue;
        }

        let name = without_section(&setting.name);
        // A database that exists keeps what it was made with.
        if NEW_DATABASE_ONLY.contains(&name) {
            continue;
        }

        let has_later =
            later.iter().any(|other| other.name == setting.name && other.value == setting.value);
        if !has_later || declares_for_load(&declared, name) {
            let name = name_in_load(&setting.name);
            cell.record.settings.push(Setting { name, ..setting });
        }
    }

    cell.record.settings.sort_by(|a, b| a.name.cmp(&b.name));
    cell.describe_settings()
}

/// Returns whether a config sets an option for the load: itself, or a table that it belongs to, as
/// `load.block_based_table_factory` is for `block_based_table_factory.block_size`.
fn declares_for_load(declared: &[(String, String)], name: &str) -> bool {
    let load_name = format!("{LOAD_OPTION}{name}");
    declared.iter().any(|(option, _)| {
        let rest = load_name.strip_prefix(option.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Warns about options of the config that this version lacks.
fn warn_of_left_out_options(cell: &mut CellSite<'_>, database: &impl KeyValueEngine) {
    let left_out = database.left_out_options();
    if !left_out.is_empty() {
        let text = format!(
            "{} does not have these options of the config, so they are left out: `{}`",
            database.version(),
            left_out.join("`, `")
        );
        cell.note("rocksdb::options", &[text]);
    }
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
