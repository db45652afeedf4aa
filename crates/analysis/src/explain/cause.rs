//! The cause of the change of a step's throughput; the rules are in `docs/findings.md`.

use record::SettingRole;

use super::FindingKind;
use super::accounting::{
    Accounting, ChangedPart, WhyUnexplained, changed_own_cpu, changed_process_cpu, metric_of,
};
use super::case::{Case, Pair, Side};
use super::conflicts::{self, Conflict, RetryCause};
use super::fsync_counts::{
    FSYNCS, FsyncCount, fsyncs_that_begin_or_cease, syncs_that_begin_or_cease,
};
use super::thresholds::{
    BEGINS_FACTOR, DEVICE_OF_TIME, EXPLAINS, LEAST_BESIDES_WAITS, LEVEL_SAME, LEVELS_MAX,
    SAVED_FSYNCS_FACTOR, SAVED_FSYNCS_SHARE, STALLED_POINTS,
};
use crate::compare::initial_tree;
use crate::figures::{Quality, Row, Shift, Stall};
use crate::settings::Difference;

/// The cause of one case. Each `share` is a share of the change of an operation's time.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// Both targets missed the rate of writes: they did different work next to the queries.
    BothMissedWrites,
    /// Commits started or stopped causing fsyncs, or cause more or fewer, as expected from a setting.
    FsyncsPerCommit {
        /// The metric of these fsyncs.
        metric: &'static str,
        /// The number of these fsyncs per commit.
        count: Pair,
        /// The settings about durability that differ; without any, waiting alone shows that commits
        /// wait for fsyncs.
        settings: Vec<Difference>,
        /// The share of waiting for fsyncs.
        waiting: Option<f64>,
        /// The part with the largest share, if that is not waiting for fsyncs: on a busy host, a thread
        /// that sleeps less often also waits less often for a processor.
        larger: Option<PartShare>,
    },
    /// The engine stalled writes for a different share of the time.
    WriteStalls {
        /// The percentage of the time.
        percent: Pair,
        /// The share of the change.
        share: f64,
        /// The reason whose count changed the most.
        reason: Option<StallReason>,
    },
    /// Seconds without progress.
    Standstill {
        /// The percentage of the seconds.
        percent: Pair,
        /// The share of the change.
        share: f64,
        /// The longest stall.
        longest: Option<Stall>,
    },
    /// Operations were retried more, or less, often.
    Retries(RetryCause),
    /// A part of an operation's time changed.
    Part(PartOfTime),
    /// The rate of one target changed its level, and one of the levels is the other target's rate.
    LevelShift(LevelShift),
    /// No cause is known.
    Unexplained(WhyUnexplained),
}

/// A reason for which a log-structured merge tree stalls writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StallReason {
    /// The limit that was reached.
    pub limit: &'static str,
    /// The kind of stall: `delays` or `stops`.
    pub kind: &'static str,
    /// The number of these stalls.
    pub count: Pair,
}

/// The share of the change of an operation's time that one part makes up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartShare {
    /// The part, as the kind of the finding that names it.
    pub part: FindingKind,
    /// The share.
    pub share: f64,
}

/// A part of an operation's time that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct PartOfTime {
    /// The part, as the kind of the finding that names it.
    pub part: FindingKind,
    /// The time in microseconds.
    pub us: Pair,
    /// The share of the change of the whole time.
    pub share: f64,
    /// The share includes the wait for a processor that more CPU causes.
    pub has_wait: bool,
    /// A further fact that supports the part as the cause, or speaks against it.
    pub detail: Option<Detail>,
    /// The settings from which it was expected.
    pub settings: Vec<Difference>,
    /// Other parts that changed enough.
    pub others: Vec<FindingKind>,
}

impl PartOfTime {
    fn new(changed: &ChangedPart) -> Self {
        Self {
            part: changed.part.kind,
            us: changed.us,
            share: changed.share,
            has_wait: changed.induced_us != 0.0,
            detail: None,
            settings: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Returns the cause that was expected from settings.
    fn expected(changed: &ChangedPart, settings: &[&Difference]) -> Cause {
        Cause::Part(Self { settings: cloned(settings), ..Self::new(changed) })
    }
}

fn cloned(settings: &[&Difference]) -> Vec<Difference> {
    settings.iter().map(|&setting| setting.clone()).collect()
}

/// A rate that matched the other target's until it changed its level, or since.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelShift {
    /// The base's level changed, not the target's.
    pub is_of_base: bool,
    /// The change of the level.
    pub shift: Shift,
    /// The rate of the other target.
    pub other_rate: f64,
    /// The rates matched before the shift, not after it.
    pub matches_before: bool,
}

/// A further fact about a part of the time that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Most of the CPU is the server's.
    Server,
    /// Most of the CPU is the client's.
    Client,
    /// The engine works on the threads of its clients.
    ClientThreads,
    /// The threads of a server cannot be told apart: it is the CPU of the clients and of the
    /// server's whole process.
    WholeProcess,
    /// The engine's own bytes changed with the wait.
    BytesChanged,
    /// The engine's own bytes did not change with the wait: each read or write takes longer, or
    /// less time.
    BytesUnchanged,
    /// Fsyncs per commit changed with waiting for other threads, as expected from a setting about
    /// durability.
    SharedFsyncs,
    /// Most of the waiting for other threads is waiting for locks on data.
    LocksOnData,
    /// No setting limits processors.
    NoLimit,
}

impl Cause {
    /// Returns the kind of a finding with this cause.
    pub fn kind(&self) -> FindingKind {
        match self {
            Self::BothMissedWrites => FindingKind::SlaMissed,
            Self::FsyncsPerCommit { .. } => FindingKind::Fsyncs,
            Self::WriteStalls { .. } => FindingKind::WriteStalls,
            Self::Standstill { .. } => FindingKind::Stall,
            Self::Retries(_) => FindingKind::Retries,
            Self::Part(changed) => match changed.detail {
                Some(Detail::NoLimit) => FindingKind::HostBusy,
                Some(Detail::SharedFsyncs) => FindingKind::Fsyncs,
                _ => changed.part,
            },
            Self::LevelShift(_) => FindingKind::LevelShift,
            Self::Unexplained(_) => FindingKind::Unexplained,
        }
    }

    /// Returns the metric that a title with this cause names; `None` if it names none.
    pub(super) fn named_metric(&self) -> Option<&'static str> {
        match self {
            Self::FsyncsPerCommit { metric, .. } => Some(metric),
            Self::WriteStalls { .. } => Some("stall%"),
            Self::Retries(_) => Some(Conflict::Retries.metric()),
            Self::Part(changed) => metric_of(changed.part),
            _ => None,
        }
    }

    /// Returns whether no cause is known, with or without a share of time that is in no part.
    pub fn is_unexplained(&self) -> bool {
        self.kind() == FindingKind::Unexplained
    }

    /// Returns whether the number of fsyncs per commit changed, and not only the wait for each.
    pub(super) fn is_fsync_count(&self) -> bool {
        matches!(self, Self::FsyncsPerCommit { .. })
    }

    /// Returns whether a longer step would tell the cause.
    pub(super) fn is_too_short(&self) -> bool {
        *self == Self::Unexplained(WhyUnexplained::TooShort)
    }
}

/// Returns the cause of a change that a verdict shows.
pub(super) fn diagnose(case: &Case<'_>) -> Cause {
    let accounting = Accounting::new(case, case.limits_processors());
    let divided = accounting.as_ref().ok();
    let undivided = accounting.as_ref().err().copied();

    both_missed_writes(case)
        .or_else(|| durability(case, divided))
        .or_else(|| cache(case, divided?))
        .or_else(|| write_stalls(case))
        .or_else(|| standstill(case))
        .or_else(|| conflicts::retries(case))
        .or_else(|| part_of_time(case, divided?))
        .or_else(|| process_cpu(case))
        .or_else(|| own_cpu(case, undivided?))
        .or_else(|| level_shift(case))
        .unwrap_or_else(|| Cause::Unexplained(undivided.unwrap_or(WhyUnexplained::NoLargePart)))
}

/// Returns the cause of a change of response times that a verdict shows, where throughput does not change:
/// only what changed the time of an operation.
pub(super) fn diagnose_response(case: &Case<'_>) -> Cause {
    let accounting = Accounting::new(case, case.limits_processors());
    let divided = accounting.as_ref().ok();
    let undivided = accounting.as_ref().err().copied();

    durability(case, divided)
        .or_else(|| cache(case, divided?))
        .or_else(|| conflicts::retries(case))
        .or_else(|| part_of_time(case, divided?))
        .or_else(|| process_cpu(case))
        .unwrap_or_else(|| Cause::Unexplained(undivided.unwrap_or(WhyUnexplained::NoLargePart)))
}

/// Names no cause where both targets missed the rate of writes: they did different work next to the
/// operations.
fn both_missed_writes(case: &Case<'_>) -> Option<Cause> {
    let [base, target] = case.missed_writes();
    (base && target).then_some(Cause::BothMissedWrites)
}

/// Explains a change by fsyncs per commit that start or stop, as expected from a setting, or as
/// waiting shows. Other changes follow from it.
fn durability(case: &Case<'_>, accounting: Option<&Accounting>) -> Option<Cause> {
    if only_reads(case) {
        return None;
    }

    let settings = case.difference.of_role(SettingRole::Durability);
    let waiting = accounting.and_then(|accounting| accounting.part(FindingKind::Fsyncs));
    if settings.is_empty() && waiting?.share < EXPLAINS {
        return None;
    }

    let per_commit = |FsyncCount { metric, count }| Cause::FsyncsPerCommit {
        metric,
        count,
        settings: cloned(&settings),
        waiting: waiting.map(|part| part.share),
        larger: accounting.and_then(|accounting| larger_than(waiting?, accounting)),
    };
    if let Some(fsyncs) = fsyncs_that_begin_or_cease(case, case.is_slower()) {
        return Some(per_commit(fsyncs));
    }

    // Weaker signs count only where a setting lets one expect them.
    if settings.is_empty() {
        return None;
    }
    saved_fsyncs(case, accounting)
        .map(per_commit)
        .or_else(|| time_of_fsyncs(case, accounting, &settings))
        .or_else(|| syncs_that_begin_or_cease(case, case.is_slower()).map(per_commit))
}

/// Returns the part with the largest share of the change among those that are shown to have changed, if
/// that is larger than the share of waiting for fsyncs.
fn larger_than(waiting: &ChangedPart, accounting: &Accounting) -> Option<PartShare> {
    let shown = accounting.parts.iter().filter(|part| part.is_shown());
    let shares = shown.map(|part| PartShare {
        part: part.part.kind,
        share: accounting.share_without_induced_wait(part),
    });
    let largest = shares.max_by(|a, b| a.share.total_cmp(&b.share))?;
    (largest.share > waiting.share).then_some(largest)
}

/// Returns the fsyncs per commit of which there are fewer, or more, if waiting for them is a large part
/// of the change, and makes up enough of it together with the CPU of commits.
fn saved_fsyncs(case: &Case<'_>, accounting: Option<&Accounting>) -> Option<FsyncCount> {
    let accounting = accounting?;
    let waiting = accounting.part(FindingKind::Fsyncs).filter(|waiting| waiting.is_shown())?;
    let metric = FSYNCS[0];
    let count = shown_change(case, metric, SAVED_FSYNCS_FACTOR)?;

    let cpu = accounting.part(FindingKind::Cpu).filter(|cpu| cpu.is_shown());
    let cpu_share = cpu.map_or(0.0, |cpu| accounting.share_without_induced_wait(cpu));
    let rest = share_besides_processor_waits(case, accounting);
    let explained = waiting.share + cpu_share;

    let is_large = rest >= LEAST_BESIDES_WAITS
        && waiting.us.max() >= DEVICE_OF_TIME * accounting.time_without_processor_waits()
        && waiting.share >= SAVED_FSYNCS_SHARE * rest
        && explained >= EXPLAINS * rest;
    is_large.then_some(FsyncCount { metric, count })
}

/// Returns the share of the change that is not waiting for a processor. On a busy host, a thread waits
/// for one after each fsync, as it does while it uses CPU, so this wait follows from both. Where a
/// setting limits processors, it may have another cause.
fn share_besides_processor_waits(case: &Case<'_>, accounting: &Accounting) -> f64 {
    if case.limits_processors() {
        return 1.0;
    }
    let wait = accounting.part(FindingKind::ProcessorWait).filter(|wait| wait.is_shown());
    1.0 - wait.map_or(0.0, |wait| accounting.share_without_induced_wait(wait))
}

/// Explains a change by the time that operations wait for fsyncs, which an engine that counts none may
/// still show.
fn time_of_fsyncs(
    case: &Case<'_>,
    accounting: Option<&Accounting>,
    settings: &[&Difference],
) -> Option<Cause> {
    let counts_none = FSYNCS.iter().all(|metric| case.metric(metric).is_none());
    let us = large_change(case, "op_fsync_us").filter(|_| counts_none)?;
    let waiting = accounting?.part(FindingKind::Fsyncs)?;

    let is_large = us.max() >= DEVICE_OF_TIME * accounting?.time.max();
    is_large.then(|| PartOfTime::expected(waiting, settings))
}

/// Explains a change by reads from storage that start or stop, as expected from the size of a
/// cache. Their CPU follows from them.
fn cache(case: &Case<'_>, accounting: &Accounting) -> Option<Cause> {
    let mut settings = case.difference.of_role(SettingRole::CacheSize);
    let part = accounting.part(FindingKind::Reads)?;

    let kb = large_change(case, "own_read_kb_per_op")?;
    large_change(case, "op_read_us")?;

    // Together with their CPU they have to explain the change.
    let cpu = accounting.part(FindingKind::Cpu).filter(|cpu| cpu.is_shown());
    let share = part.share + cpu.map_or(0.0, |cpu| cpu.share);
    let is_large = part.us.max() >= DEVICE_OF_TIME * accounting.time.max() && share >= EXPLAINS;

    // A larger cache does not read more.
    settings.retain(|setting| {
        let growth = setting.growth();
        growth.is_none_or(|grown| (grown > 0.0) != (kb.growth() > 0.0))
    });

    (is_large && !settings.is_empty()).then(|| PartOfTime::expected(part, &settings))
}

/// Returns a figure that is shown to have changed with the time of an operation, by
/// [`BEGINS_FACTOR`] or more.
fn large_change(case: &Case<'_>, name: &str) -> Option<Pair> {
    shown_change(case, name, BEGINS_FACTOR)
}

/// Returns a figure that is shown to have changed with the time of an operation, by a factor or more.
fn shown_change(case: &Case<'_>, name: &str, factor: f64) -> Option<Pair> {
    changed_by(factor, case, name, case.is_slower())
}

/// Returns a figure that is shown to have grown, where `grows`, or fallen, by a factor or more.
pub(super) fn changed_by(factor: f64, case: &Case<'_>, name: &str, grows: bool) -> Option<Pair> {
    let pair = case.metric(name)?;
    let is_same_direction = (pair.growth() > 0.0) == grows;
    let is_shown = case.difference(|row| row.metric(name))?.is_shown();
    (is_same_direction && is_shown && pair.factor() >= factor).then_some(pair)
}

pub(super) fn only_reads(case: &Case<'_>) -> bool {
    case.side.rows.iter().all(|row| initial_tree::only_reads(row))
}

/// Returns the part of an operation's time that changed the most, where it may be called a cause.
fn part_of_time(case: &Case<'_>, accounting: &Accounting) -> Option<Cause> {
    let candidates = accounting.candidates(only_reads(case));
    let (first, others) = candidates.split_first()?;
    Some(Cause::Part(PartOfTime {
        detail: detail(case, first),
        others: others.iter().map(|part| part.part.kind).collect(),
        ..PartOfTime::new(first)
    }))
}

/// Explains a change by the CPU of the server's whole process, where its threads cannot be told
/// apart.
fn process_cpu(case: &Case<'_>) -> Option<Cause> {
    let changed = changed_process_cpu(case)?;
    let detail = Some(Detail::WholeProcess);
    Some(Cause::Part(PartOfTime { detail, ..PartOfTime::new(&changed) }))
}

/// Explains a change by own CPU, where other parts of an operation's time were not measured.
fn own_cpu(case: &Case<'_>, undivided: WhyUnexplained) -> Option<Cause> {
    if !matches!(undivided, WhyUnexplained::NotMeasured | WhyUnexplained::TooShort) {
        return None;
    }
    let changed = changed_own_cpu(case)?;
    let detail = cpu_detail(case);
    Some(Cause::Part(PartOfTime { detail, ..PartOfTime::new(&changed) }))
}

/// Returns a further fact that supports a part as the cause, or speaks against it.
fn detail(case: &Case<'_>, changed: &ChangedPart) -> Option<Detail> {
    match changed.part.kind {
        FindingKind::Cpu => cpu_detail(case),
        FindingKind::Reads => bytes_detail(case, "own_read_kb_per_op", changed.us),
        FindingKind::Writes => bytes_detail(case, "own_write_kb_per_op", changed.us),
        FindingKind::Locks if waits_for_shared_fsyncs(case) => Some(Detail::SharedFsyncs),
        FindingKind::Locks => {
            conflicts::waits_for_locks_on_data(case, changed).then_some(Detail::LocksOnData)
        }
        FindingKind::ProcessorWait => (!case.limits_processors()).then_some(Detail::NoLimit),
        _ => None,
    }
}

/// Returns whether the CPU of the client or of the server changed more. An embedded engine works on
/// its clients' threads.
fn cpu_detail(case: &Case<'_>) -> Option<Detail> {
    let client = case.metric("op_client_cpu_us")?.growth().abs();
    Some(match case.metric("op_server_cpu_us").map(Pair::growth) {
        None => Detail::ClientThreads,
        Some(server) if server.abs() >= client => Detail::Server,
        Some(_) => Detail::Client,
    })
}

/// Returns whether threads wait for the thread that syncs: a setting about durability differs, and
/// fsyncs per commit changed with the time.
fn waits_for_shared_fsyncs(case: &Case<'_>) -> bool {
    let moves_along = |metric: &&str| {
        let pair = case.metric(metric).filter(|pair| !pair.is_same());
        pair.is_some_and(|pair| (pair.growth() > 0.0) == case.is_slower())
    };
    !only_reads(case)
        && !case.difference.of_role(SettingRole::Durability).is_empty()
        && FSYNCS.iter().any(moves_along)
}

/// Returns whether the engine's own bytes changed with the time, or each read or write took longer
/// or less.
fn bytes_detail(case: &Case<'_>, metric: &str, us: Pair) -> Option<Detail> {
    let kb = case.metric(metric)?;
    let is_same_direction = (kb.growth() > 0.0) == (us.growth() > 0.0);
    Some(if is_same_direction && !kb.is_same() {
        Detail::BytesChanged
    } else {
        Detail::BytesUnchanged
    })
}

/// Returns the share of a change that the remaining working time accounts for; `None` if that is
/// too little. The percentages are shares of time of base and target, which must be shown to
/// differ.
fn stalled_share(case: &Case<'_>, percent: Pair, row: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    let is_shown = case.difference(row)?.is_shown();
    if !is_shown || percent.growth().abs() < STALLED_POINTS || percent.max() >= 100.0 {
        return None;
    }
    let share = ((100.0 - percent.value) / (100.0 - percent.base)).ln() / case.ratio.ln();
    (share >= EXPLAINS).then_some(share)
}

/// Explains a change by the share of time in which a log-structured merge tree stalled writes, by
/// its own count.
fn write_stalls(case: &Case<'_>) -> Option<Cause> {
    let percent = case.metric("stall%")?;
    Some(Cause::WriteStalls {
        percent,
        share: stalled_share(case, percent, |row| row.metric("stall%"))?,
        reason: stall_reason(case),
    })
}

/// Returns the reason for delays or stops whose count changed the most. Sums and parts of these
/// counts are left out.
fn stall_reason(case: &Case<'_>) -> Option<StallReason> {
    const REASONS: [&str; 3] =
        ["l0-file-count-limit", "memtable-limit", "pending-compaction-bytes"];

    let count = |side: &Side<'_>, reason: &str, how: &str| -> Option<f64> {
        let name = format!("{reason}-{how}");
        let mut rows = side.rows.iter().filter_map(|row| row.lsm.as_ref());
        rows.find_map(|lsm| lsm.stalls.get(&name).copied())
    };

    let mut reasons = Vec::new();
    for limit in REASONS {
        for kind in ["delays", "stops"] {
            if let Some(count) = case.pair(|side| count(side, limit, kind)) {
                reasons.push(StallReason { limit, kind, count });
            }
        }
    }

    let size = |reason: &StallReason| reason.count.growth().abs();
    let largest = reasons.into_iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    (largest.count.growth() != 0.0).then_some(largest)
}

/// Returns the share of its seconds in which a repeat stood still, in percent.
fn stalled_percent(row: &Row) -> Option<f64> {
    let quality = row.quality.as_ref().filter(|quality| quality.seconds > 0)?;
    Some(100.0 * quality.stalled_seconds? as f64 / quality.seconds as f64)
}

/// Explains a change by seconds without progress in most repeats.
fn standstill(case: &Case<'_>) -> Option<Cause> {
    let mean = |side: &Side<'_>| {
        crate::figures::average::mean(side.rows.iter().filter_map(|row| stalled_percent(row)))
    };

    let percent = case.pair(mean)?;
    let share = stalled_share(case, percent, stalled_percent)?;

    // Most repeats of the side that stands still longer must do so.
    let (longer, other) = if percent.growth() > 0.0 {
        (&case.side, percent.base)
    } else {
        (&case.base, percent.value)
    };
    let is_longer =
        |row: &&&Row| stalled_percent(row).is_some_and(|of| of >= other + STALLED_POINTS);
    if 2 * longer.rows.iter().filter(is_longer).count() <= longer.rows.len() {
        return None;
    }

    let qualities = longer.rows.iter().filter_map(|row| row.quality.as_ref());
    let longest = qualities.flat_map(|quality| &quality.stalls).max_by_key(|stall| stall.seconds);
    Some(Cause::Standstill { percent, share, longest: longest.cloned() })
}

/// Explains a change by a level that shifted in most repeats of one target, and that matched the
/// other target before or after the shift.
fn level_shift(case: &Case<'_>) -> Option<Cause> {
    shift_of(&case.side, &case.base, false)
        .or_else(|| shift_of(&case.base, &case.side, true))
        .map(Cause::LevelShift)
}

/// Returns the first shift of a side from or to the rate of the other, which has none.
fn shift_of(side: &Side<'_>, other: &Side<'_>, is_of_base: bool) -> Option<LevelShift> {
    let others = qualities(other)?;
    if others.iter().any(|quality| quality.shift_count > 0) {
        return None;
    }

    let other_rate = crate::figures::average::mean(others.iter().map(|quality| quality.usual))?;
    let matches = |rate: f64| (rate / other_rate - 1.0).abs() <= LEVEL_SAME;
    let shifts: Vec<LevelShift> = qualities(side)?
        .iter()
        .filter(|quality| quality.shift_count <= LEVELS_MAX)
        .filter_map(|quality| {
            let largest =
                quality.shifts.iter().max_by(|a, b| shift_size(a).total_cmp(&shift_size(b)))?;
            let matches_before = matches(largest.before);
            (matches_before != matches(largest.after)).then(|| LevelShift {
                is_of_base,
                shift: largest.clone(),
                other_rate,
                matches_before,
            })
        })
        .collect();

    let is_most = 2 * shifts.len() > side.rows.len();
    shifts.into_iter().next().filter(|_| is_most)
}

/// Returns the quality of each repeat; `None` if one has none.
fn qualities<'a>(side: &Side<'a>) -> Option<Vec<&'a Quality>> {
    side.rows.iter().map(|row| row.quality.as_ref()).collect()
}

fn shift_size(shift: &Shift) -> f64 {
    (shift.after - shift.before).abs()
}
