//! The runs in a folder, with what is known of each. A run is read again when its `run.json` has
//! changed.
//!
//! Reading the results of 2,000 runs takes a while, so that one thread does it, the newest run
//! first, and pages show what is known so far.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use load::{Clock as _, SystemClock};
use report::{Outline, RunState};

use super::folders::runs_in;
use super::results::{RunResults, outline, results};

/// The folder is looked at again after this time.
const SCAN_AFTER_NS: u64 = 1_000_000_000;
/// The most targets, steps and letters of a name that are kept: a record may have any number.
const NAMES_MAX: usize = 1_000;
const LETTERS_MAX: usize = 300;

/// The runs in a folder.
#[derive(Debug)]
pub struct Index {
    folder: PathBuf,
    clock: SystemClock,
    runs: Mutex<Runs>,
    /// Something became known, or there is something to read.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Runs {
    /// By name: the newest come last.
    by_name: BTreeMap<String, IndexedRun>,
    scanned_at_ns: Option<u64>,
}

/// A run of the folder, as far as it was read.
#[derive(Clone, Debug)]
pub struct IndexedRun {
    /// The name of the directory.
    pub name: String,
    /// The path of the directory.
    pub path: PathBuf,
    stamp: Stamp,
    /// The outline in `run.json`, or why it cannot be read; `None`: not read yet.
    pub outline: Option<Result<Arc<Outline>, String>>,
    /// The results, or why they cannot be read; `None`: not read yet.
    pub results: Option<Result<Arc<RunResults>, String>>,
}

impl IndexedRun {
    /// Returns the facts of the run, if they could be read.
    pub fn facts(&self) -> Option<&Arc<Outline>> {
        self.outline.as_ref()?.as_ref().ok()
    }

    /// Returns the results of the run, if they could be read.
    pub fn known_results(&self) -> Option<&Arc<RunResults>> {
        self.results.as_ref()?.as_ref().ok()
    }

    fn has_readable_outline(&self) -> bool {
        matches!(self.outline, Some(Ok(_)))
    }
}

/// The identity of a `run.json`: another one has another stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    changed_ns: i128,
    bytes: u64,
}

impl Stamp {
    /// Returns the stamp of a run; `None` if it has no `run.json`.
    fn of(run: &Path) -> Option<Self> {
        let file = fs_err::symlink_metadata(run.join("run.json")).ok()?;
        let changed_ns = i128::from(file.ctime()) * 1_000_000_000 + i128::from(file.ctime_nsec());
        Some(Self { inode: file.ino(), changed_ns, bytes: file.len() })
    }
}

/// A part of a run that is to be read.
enum RunPart {
    Outline,
    Results,
}

impl Index {
    /// Returns the index of a folder, of which nothing is known yet.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            clock: SystemClock::begin(),
            runs: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all runs, the newest first. Waits at most this long for their facts to be read.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn runs(&self, patience: Duration) -> anyhow::Result<Vec<IndexedRun>> {
        self.scan()?;

        let until_ns = self.clock.now() + patience.as_nanos() as u64;
        let mut runs = self.lock();
        while runs.by_name.values().any(|run| run.outline.is_none()) {
            let left_ns = until_ns.saturating_sub(self.clock.now());
            if left_ns == 0 {
                break;
            }
            let waited = self.changed.wait_timeout(runs, Duration::from_nanos(left_ns));
            runs = waited.unwrap_or_else(PoisonError::into_inner).0;
        }

        Ok(runs.by_name.values().rev().cloned().collect())
    }

    /// Returns a run by its name. Reads its facts if that was not done yet.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn run(&self, name: &str) -> anyhow::Result<Option<IndexedRun>> {
        self.scan()?;
        let Some(mut run) = self.lock().by_name.get(name).cloned() else {
            return Ok(None);
        };

        if run.outline.is_none() {
            run.outline = Some(outline_of(&run.path));
        }
        Ok(Some(run))
    }

    /// Returns a run with its results, which are read before those of newer runs.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn run_with_results(&self, name: &str) -> anyhow::Result<Option<IndexedRun>> {
        let Some(mut run) = self.run(name)? else {
            return Ok(None);
        };

        if run.results.is_none() && run.has_readable_outline() {
            run.results = Some(results_of(&run.path));
            self.keep(&run);
        }
        Ok(Some(run))
    }

    /// Keeps what was read of a run, unless the run has changed since.
    fn keep(&self, read: &IndexedRun) {
        let mut runs = self.lock();
        let known = runs.by_name.get_mut(&read.name);
        if let Some(known) = known
            && known.stamp == read.stamp
        {
            if read.outline.is_some() {
                known.outline.clone_from(&read.outline);
            }
            if read.results.is_some() {
                known.results.clone_from(&read.results);
            }
        }

        drop(runs);
        self.changed.notify_all();
    }

    /// Looks at the folder, unless that was done a moment ago.
    fn scan(&self) -> anyhow::Result<()> {
        let now_ns = self.clock.now();
        let is_recent = |at_ns: u64| now_ns.saturating_sub(at_ns) < SCAN_AFTER_NS;
        if self.lock().scanned_at_ns.is_some_and(is_recent) {
            return Ok(());
        }

        let mut found = Vec::new();
        for path in runs_in(&self.folder)? {
            let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
            if let (Some(name), Some(stamp)) = (name, Stamp::of(&path)) {
                found.push(IndexedRun { name, path, stamp, outline: None, results: None });
            }
        }

        let mut runs = self.lock();
        let mut known = std::mem::take(&mut runs.by_name);
        for mut run in found {
            if let Some(before) = known.remove(&run.name).filter(|known| known.stamp == run.stamp) {
                run = before;
                // A run whose process is killed leaves no trace of its end in its files.
                let is_running = |outline: &Arc<Outline>| outline.state == RunState::InProgress;
                if run.facts().is_some_and(is_running) {
                    run.outline = None;
                }
            }
            runs.by_name.insert(run.name.clone(), run);
        }

        runs.scanned_at_ns = Some(self.clock.now());
        drop(runs);
        self.changed.notify_all();

        Ok(())
    }

    /// Reads what is to be read, as long as this process lives.
    pub fn keep_reading(&self) {
        loop {
            let mut runs = self.lock();
            while !is_anything_unread(&runs) {
                runs = self.changed.wait(runs).unwrap_or_else(PoisonError::into_inner);
            }
            drop(runs);
            self.read_next();
        }
    }

    /// Reads the next part: the facts of all runs before the results of any, the newest first.
    fn read_next(&self) {
        let Some((mut run, reading)) = next_unread(&self.lock()) else {
            return;
        };

        match reading {
            RunPart::Outline => run.outline = Some(outline_of(&run.path)),
            RunPart::Results => run.results = Some(results_of(&run.path)),
        }

        self.keep(&run);
    }
}

fn next_unread(runs: &Runs) -> Option<(IndexedRun, RunPart)> {
    let newest_first = || runs.by_name.values().rev();
    if let Some(run) = newest_first().find(|run| run.outline.is_none()) {
        return Some((run.clone(), RunPart::Outline));
    }

    let without_results =
        newest_first().find(|run| run.results.is_none() && run.has_readable_outline());
    without_results.map(|run| (run.clone(), RunPart::Results))
}

fn is_anything_unread(runs: &Runs) -> bool {
    next_unread(runs).is_some()
}

fn outline_of(path: &Path) -> Result<Arc<Outline>, String> {
    let mut outline = careful(|| outline(path))?;
    // One damaged record must not make every page huge.
    outline.targets.truncate(NAMES_MAX);
    outline.steps.truncate(NAMES_MAX);
    let lists = [&mut outline.targets, &mut outline.steps, &mut outline.engines];
    for name in lists.into_iter().flatten().chain([&mut outline.plan, &mut outline.base]) {
        if let Some((end, _)) = name.char_indices().nth(LETTERS_MAX) {
            name.truncate(end);
        }
    }

    Ok(Arc::new(outline))
}

fn results_of(path: &Path) -> Result<Arc<RunResults>, String> {
    careful(|| results(path)).map(Arc::new)
}

/// Reads a record. A defect that it reveals must not end the thread.
///
/// # Errors
/// The text of the error, or that there is a defect.
pub fn careful<T>(read: impl FnOnce() -> anyhow::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(|error| format!("{error:#}")),
        Err(_) => Err("Assay has a defect, which this record reveals".to_owned()),
    }
}
