//! The tree's own counters, by the names that the library's observer gives them, and by those of MyRocks.

use std::collections::BTreeMap;

use record::{Counter, Step};

use crate::Level;
use crate::metrics::counters::Counters;
use crate::metrics::{GIB, MIB};

/// The reasons that add up to all delays, or all stops. Those `with-ongoing-compaction` are counted within the first,
/// and what the write buffer manager stops is not counted by the tree.
const PARTS: [&str; 3] = [
    "l0-file-count-limit",
    "memtable-limit",
    "pending-compaction-bytes",
];

/// The same reasons as MyRocks calls them: `rocksdb_stall_l0_file_count_limit_slowdown_count`.
const MYROCKS_PARTS: [&str; 3] = [
    "l0_file_count_limit",
    "memtable_limit",
    "pending_compaction_limit",
];

/// Delays and stops: as the library calls them, and as MyRocks does.
const SORTS: [(&str, &str); 2] = [("delays", "slowdown"), ("stops", "stop")];

/// Who tells of the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Teller {
    Library,
    MyRocks,
}

/// One tree over one step.
pub(super) struct Tree<'a> {
    counters: Counters<'a>,
    teller: Teller,
}

impl<'a> Tree<'a> {
    /// The tree that a step's data is in. A server that has MyRocks and no row in it keeps them elsewhere.
    pub(super) fn of(step: &'a Step) -> Option<Self> {
        Self::told_by(Counters::of(step))
    }

    /// The same until what followed the step was over too; `None` where the record doesn't say.
    pub(super) fn to_end(step: &'a Step) -> Option<Self> {
        Self::told_by(Counters::to_end(step)?)
    }

    fn told_by(counters: Counters<'a>) -> Option<Self> {
        let teller = if counters.gauge("lsm_bytes").is_some()
            || counters.gauge("live_sst_bytes").is_some()
        {
            Teller::Library
        } else if counters
            .gauge("rocksdb_row_inserted_count")
            .is_some_and(|rows| rows > 0.0)
        {
            Teller::MyRocks
        } else {
            return None;
        };
        Some(Self { counters, teller })
    }

    fn is_library(&self) -> bool {
        self.teller == Teller::Library
    }

    /// Growth of a counter that the library alone has.
    pub(super) fn growth(&self, name: &str) -> Option<f64> {
        self.is_library()
            .then(|| self.counters.growth(name))
            .flatten()
    }

    /// A gauge that the library alone has, when the step had ended.
    pub(super) fn gauge(&self, name: &str) -> Option<f64> {
        self.is_library()
            .then(|| self.counters.gauge(name))
            .flatten()
    }

    /// How much of the growth of some bytes may be rounding: `None` where they are told exactly. The text that the
    /// library writes has hundredths of a GB, or beside them a rate of hundredths of a MB/s over an uptime of tenths of a
    /// second; the observer takes the one that is rounded less.
    pub(super) fn rounding(&self, name: &str) -> Option<f64> {
        let is_text = matches!(
            name,
            "compaction_and_flush_written_bytes"
                | "compaction_read_bytes"
                | "ingested_bytes"
                | "wal_written_bytes"
        );
        let has_statistics = self.gauge("compaction_written_bytes").is_some();
        let is_sum = name == "compaction_and_flush_written_bytes";
        if !self.is_library() || !is_text || (has_statistics && !is_sum) {
            return None;
        }
        let at = |value: Option<f64>, uptime: Option<f64>| {
            let of_sum = 0.005 * GIB;
            let of_rate = value.zip(uptime.filter(|&uptime| uptime > 0.0));
            let of_rate =
                of_rate.map(|(value, uptime)| uptime * 0.005 * MIB + value / uptime * 0.05);
            of_rate.map_or(of_sum, |of_rate| of_rate.min(of_sum))
        };
        let counters = &self.counters;
        let uptime = "uptime_seconds";
        Some(
            at(counters.gauge_before(name), counters.gauge_before(uptime))
                + at(counters.gauge(name), counters.gauge(uptime)),
        )
    }

    /// The counter that [`Tree::written`] takes where the library's statistics are off.
    pub(super) fn written_rounding(&self) -> Option<f64> {
        if self.growth("compaction_written_bytes").is_some() && self.flushed().is_some() {
            return None;
        }
        self.rounding("compaction_and_flush_written_bytes")
    }

    /// Growth of a counter that both have.
    fn growth_of(&self, library: &str, myrocks: &str) -> Option<f64> {
        self.counters
            .growth(if self.is_library() { library } else { myrocks })
    }

    pub(super) fn stall_seconds(&self) -> Option<f64> {
        match self.teller {
            Teller::Library => self.counters.growth("stall_seconds"),
            Teller::MyRocks => Some(self.counters.growth("rocksdb_stall_us")? / 1e6),
        }
    }

    /// Bytes that flushes wrote.
    pub(super) fn flushed(&self) -> Option<f64> {
        self.growth_of("flush_written_bytes", "rocksdb_flush_write_bytes")
    }

    /// Bytes that compactions wrote, without those of flushes.
    pub(super) fn compacted(&self) -> Option<f64> {
        self.growth_of("compaction_written_bytes", "rocksdb_compaction_write_bytes")
            .or_else(|| {
                // Both are rounded: of a load that was only flushed nothing is left, and not less.
                let both = self.growth("compaction_and_flush_written_bytes")?;
                Some((both - self.flushed()?).max(0.0))
            })
    }

    /// Bytes that flushes and compactions wrote. The library counts flushes among compactions: they are not added once
    /// more. With exact counts of each the sum of both is better.
    pub(super) fn written(&self) -> Option<f64> {
        self.growth_of("compaction_written_bytes", "rocksdb_compaction_write_bytes")
            .and_then(|compacted| Some(compacted + self.flushed()?))
            .or_else(|| self.growth("compaction_and_flush_written_bytes"))
    }

    pub(super) fn compaction_read(&self) -> Option<f64> {
        self.growth_of("compaction_read_bytes", "rocksdb_compaction_read_bytes")
    }

    /// Bytes of the write-ahead log.
    pub(super) fn logged(&self) -> Option<f64> {
        self.growth_of("wal_written_bytes", "rocksdb_wal_bytes")
    }

    /// Bytes that compaction has yet to rewrite, by the engine's estimate, when the step had ended.
    pub(super) fn pending_bytes(&self) -> Option<f64> {
        match self.teller {
            Teller::Library => self.counters.gauge("pending_compaction_bytes"),
            Teller::MyRocks => self.counters.gauge("rocksdb_pending_compaction_bytes"),
        }
    }

    pub(super) fn memtable_bytes(&self) -> Option<f64> {
        match self.teller {
            Teller::Library => self.counters.gauge("memtable_bytes"),
            Teller::MyRocks => self.counters.gauge("rocksdb_memtable_bytes"),
        }
    }

    /// Bytes of the tree's live files, without those of blobs.
    pub(super) fn table_bytes(&self) -> Option<f64> {
        if self.is_library() {
            return self
                .gauge("live_sst_bytes")
                .or_else(|| self.gauge("lsm_bytes"));
        }
        let levels = self.levels();
        let bytes = levels.iter().map(|level| level.bytes).sum::<Option<f64>>();
        bytes.filter(|_| !levels.is_empty())
    }

    /// How often writes were delayed or stopped, by reason, in the words of the library's newer versions; with the sums
    /// of those that are not counted within others. A reason that isn't counted, or began anew, is absent.
    pub(super) fn stalls(&self) -> BTreeMap<String, f64> {
        let mut stalls = BTreeMap::new();
        match self.teller {
            Teller::Library => {
                for (reason, counter) in self.counters.named("write_stall_count.") {
                    if let Some(count) = self.counters.growth(&counter.name) {
                        stalls.insert(reason.to_owned(), count);
                    }
                }
            }
            Teller::MyRocks => {
                for (part, theirs) in PARTS.iter().zip(MYROCKS_PARTS) {
                    for (sort, sort_there) in SORTS {
                        let name = format!("rocksdb_stall_{theirs}_{sort_there}_count");
                        if let Some(count) = self.counters.growth(&name) {
                            stalls.insert(format!("{part}-{sort}"), count);
                        }
                    }
                }
            }
        }
        for (sort, _) in SORTS {
            let parts = PARTS
                .iter()
                .map(|part| stalls.get(&format!("{part}-{sort}")));
            if let Some(total) = parts.sum::<Option<f64>>() {
                stalls.insert(format!("total-{sort}"), total);
            }
        }
        stalls
    }

    /// All delays and stops.
    pub(super) fn stall_count(&self) -> Option<f64> {
        let stalls = self.stalls();
        Some(stalls.get("total-delays")? + stalls.get("total-stops")?)
    }

    /// The levels that were told of when the step had ended, the first of them first.
    pub(super) fn levels(&self) -> Vec<Level> {
        let (files, bytes) = self.names_of_levels();
        let mut levels: BTreeMap<u32, Level> = BTreeMap::new();
        for (number, counter) in numbered(self.counters.named(files)) {
            let level = levels.entry(number).or_default();
            level.files = Some(counter.value);
        }
        for (number, counter) in numbered(self.counters.named(bytes)) {
            let level = levels.entry(number).or_default();
            level.bytes = Some(counter.value);
        }
        levels
            .into_iter()
            .map(|(number, level)| Level { number, ..level })
            .collect()
    }

    fn names_of_levels(&self) -> (&'static str, &'static str) {
        match self.teller {
            Teller::Library => ("level_file_count.", "level_bytes."),
            Teller::MyRocks => ("rocksdb_level_file_count.l", "rocksdb_level_bytes.l"),
        }
    }

    fn files(&self) -> Option<Files> {
        let levels = numbered(self.counters.named(self.names_of_levels().0));
        files_of(levels, self.counters.gauge("file_count"))
    }

    fn files_before(&self) -> Option<Files> {
        let levels = numbered(self.counters.named_before(self.names_of_levels().0));
        files_of(levels, self.counters.gauge_before("file_count"))
    }

    /// Files of the first level, when the step had ended.
    pub(super) fn first_level_files(&self) -> Option<f64> {
        self.files().map(|files| files.first_level)
    }

    /// The same when it began.
    pub(super) fn first_level_files_before(&self) -> Option<f64> {
        self.files_before().map(|files| files.first_level)
    }

    /// Levels with a file, when the step had ended.
    pub(super) fn level_count(&self) -> Option<f64> {
        self.files().map(|files| files.levels)
    }

    /// The same when it began.
    pub(super) fn level_count_before(&self) -> Option<f64> {
        self.files_before().map(|files| files.levels)
    }

    /// Files of all levels, when the step had ended.
    pub(super) fn file_count(&self) -> Option<f64> {
        self.files().map(|files| files.all)
    }
}

/// Files of a tree.
#[derive(Default)]
struct Files {
    first_level: f64,
    levels: f64,
    all: f64,
}

/// Files by level, `None` where nothing is told of them. The library leaves out levels that it never used; its `sum`
/// says that this is all.
fn files_of<'a>(
    levels: impl Iterator<Item = (u32, &'a Counter)>,
    sum: Option<f64>,
) -> Option<Files> {
    let mut levels = levels.peekable();
    if levels.peek().is_none() && sum.is_none() {
        return None;
    }
    let mut files = Files::default();
    for (number, counter) in levels {
        if number == 0 {
            files.first_level = counter.value;
        }
        files.levels += f64::from(counter.value > 0.0);
        files.all += counter.value;
    }
    Some(files)
}

fn numbered<'a>(
    counters: impl Iterator<Item = (&'a str, &'a Counter)>,
) -> impl Iterator<Item = (u32, &'a Counter)> {
    counters.filter_map(|(rest, counter)| Some((rest.parse().ok()?, counter)))
}
