//! A cell whose steps begin on a copy of a kept database: see [`databases`](crate::databases).
//!
//! ```text
//! no such database:  start ─► steps ─► stop ─► keep ─┐
//! a kept database:                                   └─► copy ─► start ─► check ─► other steps
//! ```
//!
//! The cell that makes a database goes the same way as the others: its later steps also begin on a
//! copy of the kept files, with a server that has just started. [`keep_points`](super::keep_points)
//! has the steps after which this happens.

use std::path::Path;

use anyhow::{Context, bail};
use engine::set_page_cache;
use plan::Checks;
use record::{KeptDatabase, PageCache};
use words::size_text;
use workload::DataState;

use super::cell_run::CellRun;
use super::keep_points::KeepPoint;
use crate::databases::{Contents, Entry, Loaded, require_space};
use crate::ground::host::memory_bytes;
use crate::targets::running::Leftovers;
use crate::targets::site::CellSite;
use crate::targets::workloads::{StepEngine, WorkloadRunner};

/// A database in the making, with what its steps have shown so far.
#[derive(Default)]
pub struct InMaking {
    /// The workload's knowledge of the database; `None` until the steps are complete.
    state: Option<DataState>,
    /// The first check of the data that failed.
    wrong: Option<String>,
}

/// The origin of the database with which a cell continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The cell made it.
    Here,
    /// An earlier cell or run made it, so the cell leaves out the steps that make it.
    Before,
    /// The cell has run these steps, but another cell's database is kept.
    Elsewhere,
}

/// A database that a cell has made, or that takes its place.
pub struct Kept {
    pub entry: Entry,
    pub origin: Origin,
}

impl KeepPoint {
    /// Returns the kept database; `None` if there is none, or a damaged one, which the cell replaces.
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

    /// Compares a database that another run kept with its hashes. If that would take long, says that it
    /// was not done.
    ///
    /// # Errors
    /// A file has changed.
    fn verified(&self, cell: &CellSite<'_>, entry: Entry) -> anyhow::Result<Entry> {
        // This run has hashed its own databases when it wrote them.
        if entry.manifest.made_by == cell.run_id()? || entry.verify_if_cheap()? {
            return Ok(entry);
        }

        cell.session.events.say(&format!(
            "the contents of `{}` ({}) were not checked against their hashes: `assay databases --verify` does that",
            entry.name(),
            size_text(entry.manifest.bytes())
        ));
        Ok(entry)
    }

    /// Returns the database that another cell has kept here, or keeps the cell's own, whose files are
    /// `leftovers`. So all cells continue with the same database.
    ///
    /// # Errors
    /// The steps left wrong data, or the database cannot be kept.
    pub fn keep_or_find(
        &self,
        cell: &mut CellRun<'_>,
        leftovers: &Leftovers,
    ) -> anyhow::Result<Kept> {
        if let Some(entry) = self.find(&mut cell.site) {
            cell.in_making = None;
            return Ok(Kept { entry, origin: Origin::Elsewhere });
        }
        Ok(Kept { entry: self.keep(cell, leftovers)?, origin: Origin::Here })
    }

    fn keep(&self, cell: &mut CellRun<'_>, leftovers: &Leftovers) -> anyhow::Result<Entry> {
        let CellRun { site: cell, in_making, .. } = cell;
        let Some(made) = in_making.take() else {
            bail!("the cell has made no database");
        };

        if let Some(wrong) = made.wrong {
            bail!("the steps left wrong data, so no other step can use it: {wrong}");
        }

        let state = made.state.context("the workload cannot tell what it loaded")?;

        let (data_dir, data) = leftovers
            .data_dir
            .as_ref()
            .zip(leftovers.data.as_ref())
            .context("the engine has no directory of its own")?;

        let contents = Contents {
            made_by: cell.run_id()?,
            steps: self.steps as u32,
            after_step: self.after_step.clone(),
            state,
            load_settings: cell.record.settings.clone(),
        };

        // The owner of the files may have put links to others' files there, which must not be copied.
        let owner = data_dir.owner()?.uid;
        let loaded = Loaded { data, owner, key: &self.key, contents };

        let entry = self
            .databases
            .keep(&loaded, &cell.session.stop)
            .context("the database cannot be kept for other cells")?;

        cell.session.events.say(&format!(
            "kept the database after `{}` as `{}` ({})",
            self.after_step,
            entry.name(),
            size_text(entry.manifest.bytes())
        ));

        Ok(entry)
    }
}

/// Makes the cell run its further steps on a copy of a kept database.
pub fn use_copy(cell: &mut CellSite<'_>, entry: Entry, origin: Origin) -> anyhow::Result<()> {
    let steps = entry.manifest.steps;
    cell.part.steps = steps as usize..cell.record.steps.len();
    if cell.part.steps.is_empty() {
        return Ok(());
    }

    let steps_left_out = match (origin, &cell.record.database) {
        (Origin::Before, _) => steps,
        // What the cell left out when it began.
        (_, Some(database)) => database.steps_left_out,
        (_, None) => 0,
    };

    require_space(&cell.session.data_root, entry.manifest.bytes())?;
    entry.note_use(&cell.run_id()?)?;
    cell.set_load_log_aside()?;

    if entry.manifest.made_by != cell.run_id()? {
        cell.session.events.say(&format!(
            "{} begins with `{}`, which run {} made",
            cell.record.key.target,
            entry.name(),
            entry.manifest.made_by
        ));
    }

    cell.record.database = Some(KeptDatabase {
        name: entry.name(),
        made_by: entry.manifest.made_by.clone(),
        after_step: cell.record.steps[steps as usize - 1].clone(),
        has_measured_steps: cell.workload().measures_within(steps as usize),
        loaded_by: cell.loader().map(|loader| loader.name.clone()),
        fingerprint: entry.manifest.fingerprint.clone(),
        made_unix_ns: entry.manifest.made_unix_ns,
        made_here: origin == Origin::Here,
        steps_left_out,
        ..KeptDatabase::default()
    });

    cell.part.database = Some(Box::new(entry));
    Ok(())
}

impl CellRun<'_> {
    /// Makes the target run only the steps before number `end`, which make a database to keep.
    pub fn begin_making(&mut self, end: usize) {
        self.site.part.steps.end = end;
        self.in_making = Some(InMaking::default());
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

    /// Notes whether a step left wrong data in a database to keep.
    pub fn note_step(&mut self, step: &record::Step) {
        let wrong = step.checks.iter().find(|check| !check.holds);
        if let (Some(made), Some(wrong)) = (&mut self.in_making, wrong) {
            let text = format!(
                "after step `{}`, {} is {}, expected {}",
                step.name, wrong.what, wrong.found, wrong.expected
            );
            made.wrong.get_or_insert(text);
        }
    }

    /// Notes what the workload knows at the end of the steps that make a database to keep.
    pub fn note_state(&mut self, runner: &dyn WorkloadRunner) {
        if let Some(made) = &mut self.in_making {
            made.state = runner.state();
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
    let Some(entry) = &cell.part.database else {
        return Ok(());
    };

    let (name, state) = (entry.name(), entry.manifest.state.clone());
    let (steps, bytes) = (entry.manifest.steps as usize, entry.manifest.bytes());

    if !runner.restore(state, steps) {
        bail!(
            "the kept database `{name}` has tables that differ from the workload's; remove it with `assay databases --remove {name}`"
        );
    }

    let checks = if cell.workload().policy().checks == Checks::Off {
        Vec::new()
    } else {
        engine.before_check()?;
        runner.check().context("the copy of the kept database cannot be checked")?
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
