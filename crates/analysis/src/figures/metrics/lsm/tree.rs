//! Reads the counters of a log-structured merge tree over one step by their roles.

use std::collections::BTreeMap;

use record::{Counter, Role, Step};

use crate::figures::Level;
use crate::figures::counters::Counters;

/// Returns the counters of a step, if its data is in such a tree.
pub(super) fn tree(step: &Step) -> Option<Counters<'_>> {
    if_reported(Counters::new(step))
}

/// Returns the counters up to the end of what followed the step; `None` if they were not read
/// there.
pub(super) fn tree_at_end(step: &Step) -> Option<Counters<'_>> {
    if_reported(Counters::to_end(step)?)
}

fn if_reported(counters: Counters<'_>) -> Option<Counters<'_>> {
    let has_gauge = |role| counters.gauge(role).is_some();
    let is_reported = has_gauge(Role::TreeBytes) || has_gauge(Role::FlushWrittenBytes);
    is_reported.then_some(counters)
}

impl Counters<'_> {
    /// Returns the share of a role's growth that may be rounding; `None` if it did not grow.
    pub(super) fn rounding_share(&self, role: Role) -> Option<f64> {
        let grown = self.growth(role).filter(|&grown| grown > 0.0)?;
        Some(self.rounding(role) / grown)
    }

    /// Returns bytes that compactions wrote, without those of flushes.
    pub(super) fn compacted(&self) -> Option<f64> {
        self.growth(Role::CompactionWrittenBytes).or_else(|| {
            // Both are rounded, so that the difference may be below zero after a load without
            // compaction.
            let both = self.growth(Role::CompactionAndFlushWrittenBytes)?;
            Some((both - self.growth(Role::FlushWrittenBytes)?).max(0.0))
        })
    }

    /// Returns bytes that flushes and compactions wrote. Separate counters are more exact than the
    /// counter of both.
    pub(super) fn written(&self) -> Option<f64> {
        let roles = [Role::FlushWrittenBytes, Role::CompactionWrittenBytes];
        let sum: Option<f64> = roles.iter().map(|role| self.growth(*role)).sum();
        sum.or_else(|| self.growth(Role::CompactionAndFlushWrittenBytes))
    }

    /// Returns the share of [`Self::written`] that may be rounding.
    pub(super) fn written_rounding_share(&self) -> Option<f64> {
        match self.growth(Role::CompactionWrittenBytes) {
            Some(_) => None,
            None => self.rounding_share(Role::CompactionAndFlushWrittenBytes),
        }
    }

    /// Returns the number of times that writes were delayed or stopped, by reason, with the totals.
    /// Reasons that aren't counted or restarted are missing.
    pub(super) fn stalls(&self) -> BTreeMap<String, f64> {
        let stalls = self.labeled(Role::WriteStallCount);
        let count =
            |counter: &Counter| Some((counter.label()?.to_owned(), self.growth_of(counter)?));
        stalls.filter_map(count).collect()
    }

    /// Returns all delays and stops.
    pub(super) fn stall_count(&self) -> Option<f64> {
        let stalls = self.stalls();
        Some(stalls.get("total-delays")? + stalls.get("total-stops")?)
    }

    /// Returns the levels that the engine reports at the end of the step, from the first on.
    pub(super) fn levels(&self) -> Vec<Level> {
        type LevelField = fn(&mut Level) -> &mut Option<f64>;
        const FIGURES: [(Role, LevelField); 7] = [
            (Role::LevelFileCount, |level| &mut level.files),
            (Role::LevelBytes, |level| &mut level.bytes),
            (Role::LevelScore, |level| &mut level.score),
            (Role::LevelReadBytes, |level| &mut level.read_bytes),
            (Role::LevelWrittenBytes, |level| &mut level.written_bytes),
            (Role::LevelCompactionSeconds, |level| &mut level.compaction_seconds),
            (Role::LevelCompactionCount, |level| &mut level.compaction_count),
        ];

        let mut levels: BTreeMap<u32, Level> = BTreeMap::new();
        for (role, place) in FIGURES {
            for counter in self.labeled(role) {
                let Some(number) = number(counter) else {
                    continue;
                };
                let level = levels.entry(number).or_default();
                *place(level) =
                    if counter.cumulative { self.growth_of(counter) } else { Some(counter.value) };
                // At both ends numbered the step.
                level.rounding_bytes = level.rounding_bytes.max(2.0 * counter.rounding);
            }
        }

        let numbered = |(number, level)| Level { number, ..level };
        levels.into_iter().map(numbered).collect()
    }

    /// Returns the files at the end of the step; `None` if the engine does not report them.
    pub(super) fn files(&self) -> Option<Files> {
        let levels = self.labeled(Role::LevelFileCount);
        files_of(levels, self.gauge(Role::FileCount))
    }

    /// Returns the files at the start of the step.
    pub(super) fn files_before(&self) -> Option<Files> {
        let levels = self.labeled_before(Role::LevelFileCount);
        files_of(levels, self.gauge_before(Role::FileCount))
    }
}

/// Files of a tree.
#[derive(Default)]
pub(super) struct Files {
    pub(super) first_level: f64,
    /// Levels with a file.
    pub(super) levels: f64,
    pub(super) all: f64,
}

/// Counts files by level. A library leaves out levels that it never used; `sum` shows that none is
/// missing.
fn files_of<'a>(levels: impl Iterator<Item = &'a Counter>, sum: Option<f64>) -> Option<Files> {
    let mut levels = by_level(levels).peekable();
    if levels.peek().is_none() && sum.is_none() {
        return None;
    }

    let mut files = Files::default();
    for (number, count) in levels {
        if number == 0 {
            files.first_level = count;
        }
        files.levels += f64::from(count > 0.0);
        files.all += count;
    }

    Some(files)
}

fn by_level<'a>(counters: impl Iterator<Item = &'a Counter>) -> impl Iterator<Item = (u32, f64)> {
    counters.filter_map(|counter| Some((number(counter)?, counter.value)))
}

/// Returns the level in a counter's name.
fn number(counter: &Counter) -> Option<u32> {
    counter.label()?.parse().ok()
}
