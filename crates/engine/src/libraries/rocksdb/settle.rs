//! Brings a tree into the same state before each step, and records what was pending.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::ffi::Database;
use super::observer::{self, Backlog};
use super::options;
use crate::contract::{SettleLimits, Settled};
use crate::error::Error;
use crate::safety::guard::Deadline;
use crate::support::waiting::rest;

/// The number of consecutive checks that must find nothing to do, because a compaction starts a
/// moment after its flush.
const QUIET_LOOKS: u32 = 3;
/// The interval of the checks.
const LOOK: Duration = Duration::from_millis(20);
/// The time that a compaction may be pending before settling assumes that it will not start.
const UNMOVED: Duration = Duration::from_secs(2);
/// The number of checks that must find it pending, because time also passes while the machine
/// stalls.
const UNMOVED_LOOKS: u32 = 10;

/// The option for the number of files in the first level that starts a compaction.
const L0_TRIGGER: &str = "level0_file_num_compaction_trigger";

pub(super) struct Settling<'a> {
    pub(super) database: &'a Database,
    pub(super) directory: &'a Path,
    pub(super) limits: SettleLimits,
    pub(super) stop: &'a AtomicBool,
}

/// The way in which a wait for compaction ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SettleEnd {
    /// Nothing is left to do.
    Quiet,
    /// A compaction is pending but does not start.
    NothingPicked,
    /// A stop was requested.
    Stopped,
    /// The time limit was reached.
    OutOfTime,
}

impl SettleEnd {
    fn is_cut_short(self) -> bool {
        matches!(self, Self::Stopped | Self::OutOfTime)
    }

    fn what(self) -> &'static str {
        match self {
            Self::Quiet => "wait for compaction",
            Self::NothingPicked => "wait for compaction: pending, but none starts",
            Self::Stopped => "wait for compaction: stopped",
            Self::OutOfTime => "wait for compaction: not finished in time",
        }
    }
}

/// A tree that does not change while nothing runs.
struct Unmoved {
    shape: (Option<u64>, Vec<u64>),
    looks: u32,
    long_enough: Deadline,
}

impl Unmoved {
    fn new(shape: (Option<u64>, Vec<u64>)) -> Self {
        Self { shape, looks: 0, long_enough: Deadline::after(UNMOVED) }
    }

    fn is_long(&self) -> bool {
        self.long_enough.has_passed() && self.looks >= UNMOVED_LOOKS
    }
}

impl Settling<'_> {
    /// Flushes and waits for compaction. With `first_level`, also compacts the first level into the
    /// next, and waits again.
    pub(super) fn run(&self, first_level: bool) -> Result<Settled, Error> {
        let limit = Deadline::after(self.limits.at_most);
        let mut settled =
            Settled { pending_before: observer::pending(self.database), ..Settled::default() };

        let took = Deadline::after(Duration::MAX);
        self.database.flush()?;
        settled.add_action("flush", took.elapsed());

        let mut end = self.wait_in(&mut settled, &limit);
        if first_level {
            end = self.empty_first_level(end, &limit, &mut settled)?;
        }

        settled.actions.extend(rest(&limit, self.limits.at_least, self.stop));
        settled.unfinished.extend(self.left(end));
        settled.pending_after = observer::pending(self.database);
        Ok(settled)
    }

    /// Waits until nothing is left to compact, by properties that all versions have.
    ///
    /// A compaction that is pending may never start: universal compaction is pending when the
    /// number of sorted runs reaches its trigger, but starts only above it; and without
    /// automatic compaction, none starts. So the wait also ends when nothing runs and the tree
    /// has not changed for a while.
    fn wait(&self, limit: &Deadline) -> SettleEnd {
        let mut quiet_looks = 0;
        let mut unmoved: Option<Unmoved> = None;
        loop {
            let backlog = Backlog::of(self.database);
            quiet_looks = if backlog.is_empty() { quiet_looks + 1 } else { 0 };
            if quiet_looks == QUIET_LOOKS {
                break SettleEnd::Quiet;
            }

            if backlog.is_only_pending_compaction() {
                let shape = observer::shape(self.database);
                match &mut unmoved {
                    Some(unmoved) if unmoved.shape == shape => {
                        unmoved.looks += 1;
                        if unmoved.is_long() && backlog.is_compaction_pending {
                            break SettleEnd::NothingPicked;
                        }
                    }
                    _ => unmoved = Some(Unmoved::new(shape)),
                }
            } else {
                unmoved = None;
            }

            if self.stop.load(Ordering::Relaxed) {
                break SettleEnd::Stopped;
            }
            if limit.has_passed() {
                break SettleEnd::OutOfTime;
            }
            std::thread::sleep(LOOK);
        }
    }

    fn wait_in(&self, settled: &mut Settled, limit: &Deadline) -> SettleEnd {
        let took = Deadline::after(Duration::MAX);
        let end = self.wait(limit);
        settled.add_action(end.what(), took.elapsed());
        end
    }

    /// Returns a description of the remaining work, if the last wait did not end with an idle tree.
    fn left(&self, end: SettleEnd) -> Option<String> {
        let backlog = Backlog::of(self.database);
        let errors = observer::background_errors(self.database);

        let why = match end {
            SettleEnd::Quiet => return None,
            // After an error, the library starts no compaction either.
            SettleEnd::NothingPicked if errors == 0 || !backlog.is_compaction_pending => {
                return None;
            }
            SettleEnd::NothingPicked => {
                format!("none starts after {errors} background errors")
            }
            SettleEnd::Stopped => "the wait was stopped".into(),
            SettleEnd::OutOfTime => "the time limit was reached".into(),
        };

        // The work may have finished meanwhile.
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

        Some(format!("compaction is not finished, {why}: {}", left.join(", ")))
    }

    /// Makes the library compact the first level into the next used one, as it would with more
    /// files. Returns the end of the last wait, or `end` if there was nothing to do.
    ///
    /// The C API cannot compact a single level. But an option sets the number of files that starts a
    /// compaction of the first level. This sets it to one in the open database, and later
    /// restores it.
    fn empty_first_level(
        &self,
        end: SettleEnd,
        limit: &Deadline,
        settled: &mut Settled,
    ) -> Result<SettleEnd, Error> {
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
            self.report_first_level(settled);
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
            self.report_first_level(settled);
            ": not empty yet"
        };
        let what = format!("compact L0, {}{outcome}", emptied.what());
        settled.add_action(what, took.elapsed());

        // With the restored option, other levels may need a compaction.
        Ok(self.wait_in(settled, limit))
    }

    fn first_level_files(&self) -> u64 {
        let files = observer::files_by_level(self.database);
        files.first().copied().unwrap_or(0)
    }

    fn report_first_level(&self, settled: &mut Settled) {
        let files = self.first_level_files();
        if files > 0 {
            settled.unfinished.push(format!("the first level is not empty; files left: {files}"));
        }
    }
}
