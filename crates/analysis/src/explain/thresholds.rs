//! From which size on something is spoken of. Each is stated in `docs/findings.md` with its reason.

/// A change of single runs below this is within what two runs of the same thing differ by on most machines.
pub(super) const SINGLE_CHANGE: f64 = 0.05;

/// A cost per operation within this share of the base's is called unchanged: background work moves by as much.
pub(super) const SAME: f64 = 0.10;

/// What takes less than this share of an operation's time on both sides can't explain what can be seen.
pub(super) const NEGLIGIBLE: f64 = 0.02;

/// The time of a read, in microseconds, where the devices' own was not sampled: that of flash.
pub(super) const READ_US: f64 = 100.0;

/// What a device reads in a microsecond, in KB: 500 MB/s.
pub(super) const READ_KB_PER_US: f64 = 0.5;

/// What a device writes in a microsecond, in KB: 200 MB/s, as flash does when writes go on.
pub(super) const WRITE_KB_PER_US: f64 = 0.2;

/// The time of an fsync in microseconds, where the devices' own was not sampled: that of flash with a protected cache,
/// the fastest there is.
pub(super) const FSYNC_US: f64 = 100.0;

/// What a context switch costs, in microseconds, caches included.
pub(super) const SWITCH_US: f64 = 3.0;

/// Where CPU is less than this share of an operation's time, its growth is not what an operation waits for.
pub(super) const CPU_OF_TIME: f64 = 0.2;

/// Where CPU is at least this share of an operation's time, the clients don't wait.
pub(super) const CPU_BOUND: f64 = 0.8;

/// A cause that accounts for less than this share of a change does not name it.
pub(super) const EXPLAINS: f64 = 0.4;

/// Shares of a change between these two count as the whole of it: figures per operation are that exact.
pub(super) const WHOLE: std::ops::RangeInclusive<f64> = 0.75..=1.35;

/// Reads of a size that changed by this factor are of another sort: read ahead, or not.
pub(super) const READ_SIZE: f64 = 1.5;

/// How much a change of the reads' size counts: others do these reads for the clients, ahead of time.
pub(super) const READ_SIZE_SURE: f64 = 0.8;

/// How much written bytes count: they are written behind the clients' backs, and the device may have had room.
pub(super) const WRITES_SURE: f64 = 0.6;

/// The same where both sides write the same bytes per second: then the device, or write-back, is what limits.
pub(super) const WRITES_AT_LIMIT: f64 = 0.9;

/// How much context switches count: they come with waiting, and are seldom what takes the time.
pub(super) const SWITCHES_SURE: f64 = 0.5;

/// The same from [`SWITCHES_FACTOR`] on.
pub(super) const SWITCHES_MANY_SURE: f64 = 0.7;

/// Context switches that changed by this factor mean another way of waiting: a lock, spinning, threads of the server.
pub(super) const SWITCHES_FACTOR: f64 = 4.0;

/// Fsyncs per commit that changed by less are within what grouping of commits moves by itself.
pub(super) const FSYNCS: f64 = 1.25;

/// From this factor on fsyncs count whatever the CPU does: who waits for a log in a loop uses CPU too.
pub(super) const FSYNCS_MANY: f64 = 2.0;

/// Fewer fsyncs per commit than this on both sides are those of checkpoints: commits don't wait for them.
pub(super) const FSYNCS_PER_COMMIT_MIN: f64 = 0.01;

/// Fsyncs that keep a device busy for less than this share of the time are not what clients wait for.
pub(super) const FSYNCS_BUSY: f64 = 0.05;

/// Percentage points by which the share of stalled time must differ.
pub(super) const STALLED_POINTS: f64 = 2.0;

/// A counter of the engine that changed by less, per operation, is not told.
pub(super) const COUNTER: f64 = 1.25;

/// CPU of the host that is neither the client's nor the server's, as a share of all: above it others were at work.
pub(super) const OTHERS: f64 = 0.25;

/// Time stolen by a hypervisor, as a share of all processors' time.
pub(super) const STEAL: f64 = 0.01;

/// Percentage points of stolen time by which two targets must differ for it to explain anything.
pub(super) const STOLEN_POINTS: f64 = 2.0;

/// How much stolen time counts: it is of all processors, and hits only what had one.
pub(super) const STOLEN_SURE: f64 = 0.75;

/// Percentage points of all processors by which the CPU of others must differ for it to explain anything.
pub(super) const OTHERS_POINTS: f64 = 2.0;

/// How much the CPU of others counts: they may have used processors that nobody else wanted.
pub(super) const OTHERS_SURE: f64 = 0.75;

/// Frequencies of processors that differ by this factor are not the same: a governor at rest keeps one within 2 % or 3 %.
pub(super) const FREQUENCY: f64 = 1.05;

/// Latencies of fsyncs, as they were before the cells, that differ by this factor are not of one disk at rest: its median
/// differs by less from hour to hour.
pub(super) const FSYNC_LATENCY: f64 = 2.0;

/// Pages swapped in or out in a step: 4 MB.
pub(super) const SWAPPED_PAGES: f64 = 1000.0;

/// Share of the time in which some thread waited for memory.
pub(super) const MEMORY_PRESSURE: f64 = 0.05;

/// The base's own repeats may differ by this share of the change before it is doubted.
pub(super) const SPREAD: f64 = 0.5;

/// Debt that the step before left is another when it differs by this factor.
pub(super) const DEBT: f64 = 2.0;

/// Client threads that use this share of their time on their own CPU are what limits.
pub(super) const CLIENT_BUSY: f64 = 0.8;

/// Clients that end further apart than this, in percent of the fastest, were not served alike. InnoDB and MyRocks stay
/// within a few percent on the field's machines, the best of 15 configurations of PostgreSQL at 18, the others at 54 to 317.
pub(super) const UNFAIR_PCT: f64 = 25.0;

/// The same in seconds: a short step has one slow commit.
pub(super) const UNFAIR_SECONDS: f64 = 5.0;

/// Names in one sentence; others are counted.
pub(super) const NAMED: usize = 4;

/// Targets of which each has a paragraph of its own; of more there is one for all.
pub(super) const TARGETS_EACH: usize = 3;

/// A level within this share of the other target's is the same level.
pub(super) const LEVEL_SAME: f64 = 0.05;

/// How much a change of level counts: it says when, and what else happened then says why.
pub(super) const LEVEL_SURE: f64 = 0.85;

/// Shifts of one step beyond which its rate swings and has no levels.
pub(super) const LEVELS_MAX: usize = 3;
