//! A cell that shares its load with others: see [`databases`](crate::databases).
//!
//! ```text
//! no such database:  start ─► load ─► stop ─► keep ─┐
//! a kept database:                                  └─► copy ─► start ─► check ─► other steps
//! ```
//!
//! The cell that loads goes the same way as the others: its later steps, too, begin on a copy of
//! the kept files, with a server that has just started.

use std::path::Path;

use anyhow::{Context, bail};
use engine::set_page_cache;
use plan::Checks;
use record::{KeptDatabase, PageCache, RunDir};
use workload::LoadState;

use super::cell_run::CellRun;
use super::database_key::key_of;
use crate::databases::{Contents, Databases, Entry, Key, Loaded, require_space};
use crate::ground::failure::UsageError;
use crate::ground::host::memory_bytes;
use crate::session::RunSession;
use crate::targets::part::Part;
use crate::targets::running::Leftovers;
use crate::targets::site::CellSite;
use crate::targets::workloads::{StepEngine, WorkloadRunner};

/// A load whose database is to be kept, as far as its steps have shown.
#[derive(Default)]
pub struct Load {
    /// The workload's knowledge of the database; `None` until the steps are complete.
    state: Option<LoadState>,
    /// The first check of the data that failed.
    wrong: Option<String>,
}

/// The database of a cell whose load is shared.
pub struct SharedLoad {
    databases: Databases,
    key: Key,
}

impl SharedLoad {
    /// Returns the database that a cell shares with others; `None` if it has its own.
    pub fn of(cell: &CellSite<'_>) -> anyhow::Result<Option<Self>> {
        let Some(databases) = &cell.session.databases else {
            return Ok(None);
        };
        if !has_load(cell.session, cell.planned) {
            return Ok(None);
        }

        let key = key_of(cell.session, &cell.run.read_run()?, cell.planned)?;
        Ok(Some(Self { databases: databases.clone(), key }))
    }

    /// Returns the kept database. One that is damaged is not used, but replaced.
    pub fn find(&self, cell: &mut CellSite<'_>) -> Option<Entry> {
        let found = self.databases.find(&self.key).and_then(|found| match found {
            Some(entry) => self.verified(cell, entry).map(Some),
            None => Ok(None),
        });

        match found {
            Ok(found) => found,
            Err(error) => {
                let text =
                    format!("the kept database `{}` is not used: {error:#}", self.key.name());
                cell.note("database::not-used", &[text]);
                None
            }
        }
    }

    /// Compares a database that another run kept with its hashes, or says that this was not done.
    ///
    /// # Errors
    /// A file has changed.
    fn verified(&self, cell: &CellSite<'_>, entry: Entry) -> anyhow::Result<Entry> {
        // What this run has written a moment ago was hashed then.
        if entry.manifest.made_by == cell.run_id()? || entry.verify_if_cheap()? {
            return Ok(entry);
        }

        let (name, gigabytes) = (entry.name(), entry.manifest.bytes() as f64 / 1e9);
        cell.session.events.say(&format!(
            "the contents of `{name}` ({gigabytes:.1} GB) are not compared with their hashes: `assay databases --verify` does"
        ));
        Ok(entry)
    }

    /// Keeps the database that the cell has loaded, and of which `leftovers` are the files.
    ///
    /// # Errors
    /// The load left wrong data, or the database can't be kept.
    pub fn keep(&self, cell: &mut CellRun<'_>, leftovers: &Leftovers) -> anyhow::Result<Entry> {
        let CellRun { site: cell, load, .. } = cell;
        let Some(load) = load.take() else {
            bail!("the cell has loaded no database");
        };

        if let Some(wrong) = load.wrong {
            bail!("the load left wrong data, so no step can use it: {wrong}");
        }

        let state = load.state.context("the workload can't tell what it loaded")?;

        let (data_dir, data) = leftovers
            .data_dir
            .as_ref()
            .zip(leftovers.data.as_ref())
            .context("the engine has no directory of its own")?;

        let contents = Contents {
            made_by: cell.run_id()?,
            steps: cell.workload().steps_that_load() as u32,
            state,
            load_settings: cell.record.settings.clone(),
        };

        // Whoever owns the files may have put links between them: no file of others is copied.
        let owner = data_dir.owner()?.uid;
        let loaded = Loaded { data, owner, key: &self.key, contents };

        let entry = self
            .databases
            .keep(&loaded, &cell.session.stop)
            .context("the loaded database can't be kept for other cells")?;

        cell.session.events.say(&format!(
            "kept the database as `{}` ({:.1} GB)",
            entry.name(),
            entry.manifest.bytes() as f64 / 1e9
        ));

        Ok(entry)
    }
}

/// Returns whether the first steps of a cell load what can be kept.
fn has_load(session: &RunSession<'_>, planned: plan::Cell) -> bool {
    let plan = session.plan();
    let engine = plan.builds[plan.targets[planned.target].build].engine;
    let workload = &plan.variants[planned.variant].workload;
    workload.steps_that_load() > 0 && engine.facts().stores_data
}

/// Returns for each cell of a group the number of the one that loads its database; `None` for a cell
/// that loads its own, or shares none.
///
/// # Errors
/// The record of the run can't be read, or the file of a config.
pub fn loaders_of(
    session: &RunSession<'_>,
    run: &RunDir,
    cells: &[plan::Cell],
) -> anyhow::Result<Vec<Option<usize>>> {
    if session.databases.is_none() {
        return Ok(vec![None; cells.len()]);
    }

    let record = run.read_run()?;
    let mut keys: Vec<Option<Key>> = Vec::new();
    let mut loaders = Vec::new();
    for &cell in cells {
        let mut key = None;
        if has_load(session, cell) {
            key = Some(key_of(session, &record, cell)?);
        }

        let is_same = |earlier: &Option<Key>| key.is_some() && *earlier == key;
        loaders.push(keys.iter().position(is_same));
        keys.push(key);
    }

    Ok(loaders)
}

/// Refuses a cell whose database another target loads, and which has none: its own load would be
/// another's.
pub fn refuse_without_loader(cell: &CellSite<'_>) -> anyhow::Result<()> {
    let Some(loader) = cell.loader() else {
        return Ok(());
    };

    let message = format!("no database that `{}` loaded is kept", loader.name);
    let help = format!(
        "measure `{}` in the same run, or keep its database with `reuse = true`",
        loader.name
    );

    Err(UsageError::new(message, Some(help)).into())
}

/// Makes the cell run its steps after the load on a copy of a kept database.
pub fn use_copy(cell: &mut CellSite<'_>, entry: Entry, is_made_here: bool) -> anyhow::Result<()> {
    require_space(&cell.session.data_root, entry.manifest.bytes())?;

    entry.note_use(&cell.run_id()?)?;

    if is_made_here {
        cell.set_load_log_aside()?;
    }

    cell.record.database = Some(KeptDatabase {
        name: entry.name(),
        loaded_by: cell.loader().map(|loader| loader.name.clone()),
        fingerprint: entry.manifest.fingerprint.clone(),
        made_unix_ns: entry.manifest.made_unix_ns,
        made_here: is_made_here,
        steps_left_out: if is_made_here { 0 } else { entry.manifest.steps },
        ..KeptDatabase::default()
    });

    cell.part = Part::Rest(Box::new(entry));
    Ok(())
}

impl CellRun<'_> {
    /// Makes the target run the steps that load a database to keep.
    pub fn begin_load(&mut self) {
        self.site.part = Part::Load;
        self.load = Some(Load::default());
    }

    /// Records how long the target took to start on its copy.
    pub fn note_start(&mut self, took_ns: u64) {
        let Some(database) = &mut self.site.record.database else {
            return;
        };
        // Copying and upgrading have times of their own.
        let of_others = database.copy_ns + database.upgrade_ns.unwrap_or(0);
        database.open_ns = took_ns.saturating_sub(of_others);

        let Some(loader) = &database.loaded_by else {
            return;
        };

        let seconds = |ns: u64| ns as f64 / 1e9;
        let upgrade = match database.upgrade_ns {
            Some(ns) => format!("`pg_upgrade` took {:.2} s, and ", seconds(ns)),
            None => String::new(),
        };

        let text = format!(
            "opened the database that `{loader}` loaded: {upgrade}the start took {:.2} s",
            seconds(database.open_ns)
        );

        self.site.session.events.say(&text);
    }

    /// Notes whether a step of the load left wrong data.
    pub fn note_step(&mut self, step: &record::Step) {
        let wrong = step.checks.iter().find(|check| !check.holds);
        if let (Some(load), Some(wrong)) = (&mut self.load, wrong) {
            let text = format!(
                "after step `{}`, {} is {}, expected {}",
                step.name, wrong.what, wrong.found, wrong.expected
            );
            load.wrong.get_or_insert(text);
        }
    }

    /// Notes what the workload knows at the end of the steps that load.
    pub fn note_state(&mut self, runner: &dyn WorkloadRunner) {
        if let Some(load) = &mut self.load {
            load.state = runner.state();
        }
    }
}

/// Gives the workload its knowledge of a copied database, and compares the two. Then warms or
/// cleans the page cache, in which a cell would otherwise find what happens to be there.
pub fn begin_on_copy(
    cell: &mut CellSite<'_>,
    engine: &dyn StepEngine,
    runner: &mut dyn WorkloadRunner,
    leftovers: &Leftovers,
) -> anyhow::Result<()> {
    let Part::Rest(entry) = &cell.part else {
        return Ok(());
    };

    let (name, state) = (entry.name(), entry.manifest.state.clone());
    let bytes = entry.manifest.bytes();

    if !runner.restore(state) {
        bail!(
            "the kept database `{name}` has other tables than the workload; remove it with `assay databases --remove {name}`"
        );
    }

    let checks = if cell.workload().policy().checks == Checks::Off {
        Vec::new()
    } else {
        engine.before_check()?;
        runner.check().context("the copy of the kept database can't be checked")?
    };

    if let Some(wrong) = checks.iter().find(|check| !check.holds) {
        bail!(
            "the copy of the kept database `{name}` has wrong data: {} is {}, expected {}",
            wrong.what,
            wrong.found,
            wrong.expected
        );
    }

    // After the check, which has read an unknown part of the files.
    let page_cache = match (&leftovers.data_dir, &leftovers.data) {
        (Some(data_dir), Some(data)) => set_caches(cell, data, data_dir.owner()?.uid, bytes)?,
        _ => PageCache::Unknown,
    };

    if let Some(database) = &mut cell.record.database {
        database.checks = checks;
        database.page_cache = page_cache;
    }

    cell.directory.write(cell.record)?;
    Ok(())
}

/// Reads the files of a database into the page cache, as a load leaves them. If they are too large
/// for that, or the page cache counts toward a limit of the target, removes them instead.
fn set_caches(
    cell: &CellSite<'_>,
    data: &Path,
    owner: u32,
    bytes: u64,
) -> anyhow::Result<PageCache> {
    const PART_OF_MEMORY: u64 = 4;

    let is_unlimited = cell.config().limits.memory_bytes.is_none();
    let is_warm = is_unlimited && bytes < memory_bytes() / PART_OF_MEMORY;

    set_page_cache(data, owner, is_warm)?;
    Ok(if is_warm { PageCache::Warmed } else { PageCache::Dropped })
}
