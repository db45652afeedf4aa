//! Bringing a tree into the same state before each step, with evidence.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::ffi::Database;
use super::{observer, options};
use crate::guard::Deadline;
use crate::waiting::{POLL, rest};
use crate::{Action, Error, ErrorClass, SettleLimits, Settled};

/// So many looks in a row must find nothing to do: between a flush and the compaction that it calls for lies a moment.
const QUIET_LOOKS: u32 = 3;
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(20);

/// The option that says how many files of the first level are compacted.
const L0_TRIGGER: &str = "level0_file_num_compaction_trigger";

/// Settling in progress.
pub(super) struct Settling<'a> {
    pub(super) database: &'a Database,
    pub(super) directory: &'a Path,
    pub(super) limits: SettleLimits,
    pub(super) stop: &'a AtomicBool,
}

impl Settling<'_> {
    /// Flushes, waits for compaction; with `first_level` moves what is in the first level down, and waits again.
    pub(super) fn run(&self, first_level: bool) -> Result<Settled, Error> {
        let limit = Deadline::after(self.limits.at_most);
        let mut settled = Settled {
            pending_before: observer::pending(self.database),
            ..Settled::default()
        };
        settled.actions.push(self.flush()?);
        settled.actions.push(self.wait(&limit));
        if first_level {
            settled.actions.push(self.empty_first_level(&limit)?);
        }
        settled
            .actions
            .extend(rest(&limit, self.limits.at_least, self.stop));
        settled.pending_after = observer::pending(self.database);
        Ok(settled)
    }

    fn flush(&self) -> Result<Action, Error> {
        let took = Deadline::after(Duration::MAX);
        self.database.flush()?;
        Ok(Action {
            what: "flush".into(),
            took: took.elapsed(),
        })
    }

    /// Waits until nothing is left to compact; the properties that this goes by are in all versions.
    fn wait(&self, limit: &Deadline) -> Action {
        let took = Deadline::after(Duration::MAX);
        let mut quiet = 0;
        let what = loop {
            if observer::is_quiet(self.database) {
                quiet += 1;
            } else {
                quiet = 0;
            }
            if quiet == QUIET_LOOKS {
                break "wait for compaction";
            }
            if self.stop.load(Ordering::Relaxed) {
                break "wait for compaction: stopped";
            }
            if limit.has_passed() {
                break "wait for compaction: not over in time";
            }
            std::thread::sleep(LOOK.min(POLL));
        };
        Action {
            what: what.into(),
            took: took.elapsed(),
        }
    }

    /// Has the first level compacted into the next that is used, as compaction would do by itself with more files.
    ///
    /// No version's C API compacts one level. But each compacts a first level of so many files as an option says, and
    /// that option can be changed while the database is open: to one, and back when that is done.
    fn empty_first_level(&self, limit: &Deadline) -> Result<Action, Error> {
        let took = Deadline::after(Duration::MAX);
        let action = |what: String| Action {
            what,
            took: took.elapsed(),
        };
        let effective = options::read_newest(self.directory)
            .map_err(|error| Error::new(ErrorClass::Other, error.to_string()))?
            .unwrap_or_default();
        let get = |name| effective.get("CFOptions", name).unwrap_or_default();
        if get("compaction_style") != "kCompactionStyleLevel" {
            return Ok(action(
                "compact L0: not applicable, compaction is not leveled".into(),
            ));
        }
        if get("disable_auto_compactions") == "true" {
            return Ok(action(
                "compact L0: not applicable, compaction is off".into(),
            ));
        }
        let trigger = get(L0_TRIGGER).to_string();
        let is_empty = || observer::files_by_level(self.database).first() == Some(&0);
        if is_empty() {
            return Ok(action("compact L0: it is empty".into()));
        }
        self.database.set_option(L0_TRIGGER, "1")?;
        let wait = self.wait(limit);
        self.database.set_option(L0_TRIGGER, &trigger)?;
        // With the trigger back, levels may have to be made even.
        self.wait(limit);
        let outcome = if is_empty() { "" } else { ": not empty yet" };
        Ok(action(format!("compact L0, {}{outcome}", wait.what)))
    }
}
