//! Bringing a tree into the same state before each step, with evidence.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::ffi::Database;
use super::observer::{self, Backlog};
use super::options;
use crate::guard::Deadline;
use crate::waiting::rest;
use crate::{Error, SettleLimits, Settled};

/// So many looks in a row must find nothing to do: between a flush and the compaction that it calls for lies a moment.
const QUIET_LOOKS: u32 = 3;
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(20);
/// A compaction that is pending, and not begun for so long, is not going to be: the tree is at rest as it is.
const UNMOVED: Duration = Duration::from_secs(2);
/// So many looks must have found it like that: time also passes while the machine stands still.
const UNMOVED_LOOKS: u32 = 10;

/// The option that says how many files of the first level are compacted.
const L0_TRIGGER: &str = "level0_file_num_compaction_trigger";

/// Settling in progress.
pub(super) struct Settling<'a> {
    pub(super) database: &'a Database,
    pub(super) directory: &'a Path,
    pub(super) limits: SettleLimits,
    pub(super) stop: &'a AtomicBool,
}

/// How waiting for compaction ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// There is nothing left to do.
    Quiet,
    /// A compaction is pending, but none is begun.
    NothingPicked,
    /// Settling was to end.
    Stopped,
    /// Time was over.
    OutOfTime,
}

impl End {
    fn is_cut_short(self) -> bool {
        matches!(self, Self::Stopped | Self::OutOfTime)
    }

    fn what(self) -> &'static str {
        match self {
            Self::Quiet => "wait for compaction",
            Self::NothingPicked => "wait for compaction: pending, but nothing is picked",
            Self::Stopped => "wait for compaction: stopped",
            Self::OutOfTime => "wait for compaction: not over in time",
        }
    }
}

impl Settling<'_> {
    /// Flushes, waits for compaction; with `first_level` moves what is in the first level down, and waits again.
    pub(super) fn run(&self, first_level: bool) -> Result<Settled, Error> {
        let limit = Deadline::after(self.limits.at_most);
        let mut settled = Settled {
            pending_before: observer::pending(self.database),
            ..Settled::default()
        };
        let took = Deadline::after(Duration::MAX);
        self.database.flush()?;
        settled.add_action("flush", took.elapsed());
        let mut end = self.wait_in(&mut settled, &limit);
        if first_level {
            end = self.empty_first_level(end, &limit, &mut settled)?;
        }
        settled
            .actions
            .extend(rest(&limit, self.limits.at_least, self.stop));
        settled.unfinished.extend(self.left(end));
        settled.pending_after = observer::pending(self.database);
        Ok(settled)
    }

    /// Waits until nothing is left to compact; the properties that this goes by are in all versions.
    ///
    /// What they call pending need not be: universal compaction is asked for with as many sorted runs as its trigger
    /// says, and acts only with more; and with automatic compaction off, none that is asked for is begun. So it is
    /// also over when nothing runs and the tree has stayed as it is for a while.
    fn wait(&self, limit: &Deadline) -> End {
        let mut quiet = 0;
        let mut unmoved = None;
        loop {
            let backlog = Backlog::of(self.database);
            quiet = if backlog.is_empty() { quiet + 1 } else { 0 };
            if quiet == QUIET_LOOKS {
                break End::Quiet;
            }
            if backlog.is_only_pending_compaction() {
                let shape = observer::shape(self.database);
                match &mut unmoved {
                    Some((before, at_rest, looks)) if *before == shape => {
                        *looks += 1;
                        if Deadline::has_passed(at_rest)
                            && *looks >= UNMOVED_LOOKS
                            && backlog.is_compaction_pending
                        {
                            break End::NothingPicked;
                        }
                    }
                    _ => unmoved = Some((shape, Deadline::after(UNMOVED), 0)),
                }
            } else {
                unmoved = None;
            }
            if self.stop.load(Ordering::Relaxed) {
                break End::Stopped;
            }
            if limit.has_passed() {
                break End::OutOfTime;
            }
            std::thread::sleep(LOOK);
        }
    }

    fn wait_in(&self, settled: &mut Settled, limit: &Deadline) -> End {
        let took = Deadline::after(Duration::MAX);
        let end = self.wait(limit);
        settled.add_action(end.what(), took.elapsed());
        end
    }

    /// What is left of compaction, if the last wait for it did not end at rest.
    fn left(&self, end: End) -> Option<String> {
        let backlog = Backlog::of(self.database);
        let errors = observer::background_errors(self.database);
        let why = match end {
            End::Quiet => return None,
            // After an error the library begins no compaction either, and that is not rest.
            End::NothingPicked if errors == 0 || !backlog.is_compaction_pending => return None,
            End::NothingPicked => {
                format!("nothing is picked after {errors} errors in the background")
            }
            End::Stopped => "waiting for it was stopped".into(),
            End::OutOfTime => "time was over".into(),
        };
        // It may have come to its end while this rested.
        if backlog.is_empty() {
            return None;
        }
        let mut left = Vec::new();
        let running = [
            (backlog.running_flushes, "flush", "flushes"),
            (backlog.running_compactions, "compaction", "compactions"),
        ];
        for (count, one, several) in running.into_iter().filter(|(count, ..)| *count > 0) {
            let kind = if count == 1 { one } else { several };
            left.push(format!("{count} {kind} running"));
        }
        if backlog.is_flush_pending {
            left.push("a flush pending".into());
        }
        if backlog.is_compaction_pending {
            left.push("a compaction pending".into());
        }
        let bytes = observer::pending_compaction_bytes(self.database);
        if bytes > 0 {
            left.push(format!("about {bytes} bytes to compact"));
        }
        Some(format!(
            "compaction is not over, {why}: {}",
            left.join(", ")
        ))
    }

    /// Has the first level compacted into the next that is used, as compaction would do by itself with more files;
    /// returns how the last wait for it ended, `end` where this had nothing to do.
    ///
    /// No version's C API compacts one level. But each compacts a first level of so many files as an option says, and
    /// that option can be changed while the database is open: to one, and back when that is done.
    fn empty_first_level(
        &self,
        end: End,
        limit: &Deadline,
        settled: &mut Settled,
    ) -> Result<End, Error> {
        let effective = options::read_newest(self.directory)
            .map_err(|error| Error::other(error.to_string()))?
            .unwrap_or_default();
        let get = |name| effective.get("CFOptions", name).unwrap_or_default();
        let reason = if get("compaction_style") != "kCompactionStyleLevel" {
            Some("not applicable, compaction is not leveled")
        } else if get("disable_auto_compactions") == "true" {
            Some("not applicable, compaction is off")
        } else if self.first_level_files() == 0 {
            Some("it is empty")
        } else if end.is_cut_short() {
            self.tell_of_first_level(settled);
            Some("not begun")
        } else {
            None
        };
        if let Some(reason) = reason {
            settled.add_action(format!("compact L0: {reason}"), Duration::ZERO);
            return Ok(end);
        }
        let trigger = get(L0_TRIGGER).to_string();
        let took = Deadline::after(Duration::MAX);
        self.database.set_option(L0_TRIGGER, "1")?;
        let emptied = self.wait(limit);
        self.database.set_option(L0_TRIGGER, &trigger)?;
        let outcome = if self.first_level_files() == 0 {
            ""
        } else {
            self.tell_of_first_level(settled);
            ": not empty yet"
        };
        let what = format!("compact L0, {}{outcome}", emptied.what());
        settled.add_action(what, took.elapsed());
        // With the trigger back, levels may have to be made even.
        Ok(self.wait_in(settled, limit))
    }

    fn first_level_files(&self) -> u64 {
        let files = observer::files_by_level(self.database);
        files.first().copied().unwrap_or(0)
    }

    fn tell_of_first_level(&self, settled: &mut Settled) {
        let files = self.first_level_files();
        if files > 0 {
            settled.unfinished.push(format!(
                "the first level was to be empty, and holds files: {files}"
            ));
        }
    }
}
