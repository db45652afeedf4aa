//! The thresholds of the rules. Each is stated in `docs/findings.md`.

use crate::compare::ComparedStep;
pub use crate::compare::NOTHING;

/// Figures within this share of each other count as unchanged: background work changes them by as
/// much.
pub(super) const SAME: f64 = 0.10;

/// The number of states of sessions among the figures of a finding.
pub(super) const STATES_SHOWN: usize = 2;

/// The least share of the change of an operation's time that a cause accounts for.
pub const EXPLAINS: f64 = 0.4;

/// The share of a change from which on no part that was not measured can be larger.
pub(super) const LARGEST: f64 = 0.5;

/// Shares of a change up to this one count as all of it: parts and whole are measured separately.
pub const WHOLE_MAX: f64 = 1.35;

/// The factor by which fsyncs per commit, or bytes read, change when operations begin or cease to
/// wait for them.
pub const BEGINS_FACTOR: f64 = 10.0;

/// The factor by which fsyncs per commit change where a setting saves some of them, and the share of
/// the change that waiting for them then makes up. The CPU of commits adds to that.
pub(super) const SAVED_FSYNCS_FACTOR: f64 = 1.5;
pub(super) const SAVED_FSYNCS_SHARE: f64 = 0.2;

/// If waits for a processor leave less than this share of a change, what is left says nothing about it.
pub(super) const LEAST_BESIDES_WAITS: f64 = 0.1;

/// Fewer fsyncs per commit than this come from checkpoints: commits do not wait for them.
pub(super) const FSYNCS_PER_COMMIT_MIN: f64 = 0.01;

/// An operation does not wait for fsyncs, or reads, that take less than this share of its time.
pub(super) const DEVICE_OF_TIME: f64 = 0.1;

/// Percentage points by which the share of stalled time must differ.
pub(super) const STALLED_POINTS: f64 = 2.0;

/// Parts of an operation's time that are smaller than this share of the time are no figures of a
/// finding.
pub(super) const SMALL_PART: f64 = 0.01;

/// Fewer fsyncs per commit than this are no known difference of targets that were measured once.
pub(super) const FACT_FSYNCS_MIN: f64 = 0.05;

/// Costs of targets that were measured once are a large difference if the time that they cost
/// differs by this share of the faster target's operation.
pub(super) const GAP_OF_TIME: f64 = 0.25;

/// The factor by which CPU per operation then differs: by less, two runs of equal targets may.
pub(super) const GAP_CPU: f64 = 1.5;

/// The factor by which reads, writes and fsyncs per operation then differ.
pub(super) const GAP_COUNT: f64 = 2.0;

/// Steps that are shorter than this, in seconds, may have too few samples of what operations wait
/// for: a connection has a hundred per second.
pub const SHORT_SECONDS: f64 = 1.0;

/// A level within this share of the other target's is the same level.
pub(super) const LEVEL_SAME: f64 = 0.05;

/// Shifts of one step beyond which its rate swings and has no levels.
pub(super) const LEVELS_MAX: usize = 3;

/// Periods of repeats whose ratio has a logarithm of at most this size are the same period.
pub(super) const SAME_PERIOD: f64 = 0.2;

/// An engine's counter that changed by less, per operation, is not listed.
pub(super) const COUNTER: f64 = 1.25;

/// The factor by which indexes differ that a finding mentions: the same rows in another order of
/// insertion differ by less.
pub(super) const INDEX_GROWTH: f64 = 1.25;

/// The factor from which device reads of another size are named beside a change of own CPU, and the
/// fewest KB per operation that they have to read: the size of rare reads matters to nobody.
pub(super) const READ_SIZE_FACTOR: f64 = 2.0;
pub(super) const READ_KB_PER_OP_MIN: f64 = 0.1;

/// The least change of a response time that is a finding by itself, or of own CPU per operation that
/// is named beside a change of throughput.
pub(super) const NAMED_CHANGE: f64 = 0.05;

/// Returns the ratio of a comparison whose change is shown, if it is at least this large.
pub(super) fn shown_change(row: &ComparedStep, least: f64) -> Option<f64> {
    let ratio = row.ratio.filter(|_| row.verdict.is_change())?;
    let is_large = ratio.max(1.0 / ratio) >= 1.0 + least;
    is_large.then_some(ratio)
}

/// The share of all processors that others may use before a finding mentions it.
pub(super) const OTHERS: f64 = 0.25;

/// The share of an operation's time that is spent waiting for a processor before a finding mentions
/// it.
pub(super) const CPU_WAIT: f64 = 0.2;

/// The share of all processors' time that a hypervisor may take before a finding mentions it.
pub(super) const STEAL: f64 = 0.01;

/// The CPU's share of an operation's time below which the processors' frequency does not matter.
pub(super) const CPU_OF_TIME: f64 = 0.2;

/// Frequencies of processors that differ by this factor are not the same: a stable governor keeps
/// them within 2% or 3%.
pub(super) const FREQUENCY: f64 = 1.05;

/// Fsync latencies before the cells that differ by this factor show another state of the disk: the
/// median of an idle disk differs by less from hour to hour.
pub(super) const FSYNC_LATENCY: f64 = 2.0;

/// Pages swapped in or out in a step: 4 MB.
pub(super) const SWAPPED_PAGES: f64 = 1000.0;

/// The share of the time in which some thread waited for memory.
pub(super) const MEMORY_PRESSURE: f64 = 0.05;

/// The base's own repeats may differ by this share of the change before a finding mentions it.
pub(super) const SPREAD: f64 = 0.5;

/// Debt that the step before left is different when it differs by this factor.
pub(super) const DEBT: f64 = 2.0;

/// Rows or transactions that the step before left count as much if they are this share of the
/// operations of the step, however few they are.
pub(super) const DEBT_OF_OPERATIONS: f64 = 0.1;

/// Client threads that use this share of their time on their own CPU are the limit.
pub(super) const CLIENT_BUSY: f64 = 0.8;

/// Requests that come this close to the floor of the disk, in percent, are limited by it: a device
/// that must answer requests as they come reaches a little less than one that always has the next.
pub(super) const FLOOR_PCT_MIN: f64 = 80.0;

/// Above this, in percent, the floor is not that of the step: something answered faster than the
/// disk did.
pub(super) const FLOOR_PCT_MAX: f64 = 120.0;

/// Floors before and after the cells that differ by this factor are those of different disks: a
/// virtual one may allow bursts.
pub(super) const FLOOR_DRIFT_MAX: f64 = 1.5;

/// A factor between these floors that a finding mentions.
pub const FLOOR_DRIFT_TOLD: f64 = 1.1;

/// Clients that end further apart than this, in percent of the fastest, were treated unequally.
/// InnoDB and MyRocks stay within a few percent in published results; the best of 15 configurations
/// of PostgreSQL has 18, the others 54 to 317.
pub const UNFAIR_PCT: f64 = 25.0;

/// The same in seconds, since one slow commit is a large share of a short step.
pub(super) const UNFAIR_SECONDS: f64 = 5.0;

/// Exact work is the same only if its cells would show a change of this share.
pub(super) const WORK_SAME: f64 = 0.01;

/// The most targets that each have a finding of their own; more share one.
pub(super) const TARGETS_EACH: usize = 3;
