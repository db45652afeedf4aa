//! Reasons to doubt a finding, or the figures behind it.

use super::FindingKind;
use super::case::{Case, Pair, Side};
use super::thresholds::{
    CLIENT_BUSY, CPU_OF_TIME, CPU_WAIT, DEBT, DEBT_OF_OPERATIONS, FREQUENCY, FSYNC_LATENCY,
    MEMORY_PRESSURE, OTHERS, SPREAD, STEAL, SWAPPED_PAGES,
};
use crate::compare::Pairing;
use crate::compare::initial_tree::{self, TreeDifference};
use crate::figures::Row;
use crate::figures::average::mean;
use crate::order::distinct;

/// A reason to doubt a finding. A pair has the base's figure and the target's.
#[derive(Clone, Debug, PartialEq)]
pub enum Caveat {
    /// Repeats of the base differ by a large part of the change: their lowest and highest
    /// throughput.
    WideBase {
        /// The lowest.
        low: f64,
        /// The highest.
        high: f64,
    },
    /// Base and target were measured in different runs.
    OtherRuns,
    /// Base and target did not take turns.
    NoTurns,
    /// Build, version and settings are the same.
    NothingDiffers,
    /// Client threads are busy.
    BusyClient {
        /// The share of their time; `None` if only a warning says so.
        share: Option<f64>,
    },
    /// The processors of a client host are busy.
    BusyClientHost,
    /// The client uses more CPU per operation than the server.
    LargeClient,
    /// Work was counted on one connection, and time was measured with several.
    OneConnection,
    /// One of the two missed the rate of writes.
    MissedWrites {
        /// The base missed it, not the target.
        is_base: bool,
    },
    /// The step before left different amounts of work.
    Debt(InheritedDebt),
    /// The trees of a step that only reads differed when it began.
    Trees(TreeDifference),
    /// Other processes used processors, or operations waited for one. Each figure is the larger of
    /// both sides' percentages.
    BusyHost {
        /// The processors' time that others used.
        others: Option<f64>,
        /// The operations' time that was spent waiting.
        waiting: Option<f64>,
    },
    /// The hypervisor took CPU time, in percent.
    Steal(Pair),
    /// The processors ran at other frequencies, in MHz.
    Frequency(Pair),
    /// Fsync latencies before the cells differ, in microseconds.
    FsyncBefore(Pair),
    /// Compaction asks the kernel to read more at a time than the disk accepts.
    ReadAhead(LargeReadAhead),
    /// The mean sizes of device reads differ.
    ReadSizes {
        /// The mean sizes.
        kb: Pair,
        /// The largest request that the disk takes.
        max_sectors_kb: f64,
        /// The size of the kernel's read-ahead for a sequential reader.
        read_ahead_kb: f64,
    },
    /// The host swapped: pages.
    Swap(Pair),
    /// Threads waited for memory, in percent of the time.
    MemoryPressure(Pair),
    /// The two are of different engines.
    OtherEngines,
    /// Settings differ as well as the version, or the build.
    OtherSettings {
        /// The version differs, not only the build.
        has_other_version: bool,
        /// The setting, if only one differs.
        only: Option<String>,
    },
    /// Several settings differ.
    SeveralSettings,
    /// Steps have warnings.
    Warnings {
        /// The codes of the base's.
        base: Vec<String>,
        /// The codes of the target's.
        target: Vec<String>,
    },
}

/// A setting of compaction's read-ahead that is larger than a request of the disk.
#[derive(Clone, Debug, PartialEq)]
pub struct LargeReadAhead {
    /// The base sets the read-ahead.
    pub of_base: bool,
    /// The target sets the read-ahead.
    pub of_target: bool,
    /// The name of the setting.
    pub setting: String,
    /// The value.
    pub kb: f64,
    /// The largest request that the disk takes.
    pub max_sectors_kb: f64,
    /// The mean sizes of device reads, where they differ.
    pub read_kb: Option<Pair>,
}

/// Returns all caveats of one case, the most serious first.
pub(super) fn caveats(case: &Case<'_>, cause: FindingKind) -> Vec<Caveat> {
    let trees = initial_tree::difference(&case.base.rows, &case.side.rows);

    let found = [
        wide_base(case),
        order(case),
        case.difference.is_nothing().then_some(Caveat::NothingDiffers),
        client(case),
        missed_writes(case),
        debt(case),
        trees.map(Caveat::Trees),
        busy_host(case, cause),
        steal(case),
        frequency(case),
        fsync(case, cause),
        read_sizes(case, cause),
        swap(case),
        memory(case),
        case.difference.caveat(),
        warnings(case),
    ];
    found.into_iter().flatten().collect()
}

/// Doubts a change where the base's own repeats differ by a large part of it. Pairs of repeats
/// cancel such differences.
fn wide_base(case: &Case<'_>) -> Option<Caveat> {
    if case.compared.pairing != Pairing::Independent {
        return None;
    }
    let values = || case.compared.base_values.iter().map(|sample| sample.value);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let is_wide = (high / low).ln() >= SPREAD * case.ratio.ln().abs();
    is_wide.then_some(Caveat::WideBase { low, high })
}

fn order(case: &Case<'_>) -> Option<Caveat> {
    let (base, values) = (&case.compared.base_values, &case.compared.values);
    let is_in_base = |run: usize| base.iter().any(|sample| sample.run == run);
    if !values.iter().any(|sample| is_in_base(sample.run)) {
        return Some(Caveat::OtherRuns);
    }
    (case.compared.pairing == Pairing::Independent).then_some(Caveat::NoTurns)
}

/// Doubts a change if the client may limit the base or the target.
fn client(case: &Case<'_>) -> Option<Caveat> {
    let rows = || case.base.rows.iter().chain(&case.side.rows);

    let any_has_warning = |code| rows().any(|row| has_warning(row, code));
    if any_has_warning(BUSY_CLIENT_HOST) {
        return Some(Caveat::BusyClientHost);
    }

    // Without a server's figure the engine may work on these threads.
    let cpu = |whose: &str| case.metric(&format!("{whose}_cpu_us_per_op"));
    let both = cpu("client").zip(cpu("server"));
    let share_of_time = both.map(|(client, _)| case.share_of_time(client));
    let share = share_of_time.filter(|share| *share >= CLIENT_BUSY);

    if share.is_some() || any_has_warning(BUSY_CLIENT) {
        return Some(Caveat::BusyClient { share });
    }

    // On hosts of their own, clients take no CPU time from the server.
    if rows().any(|row| !row.client_hosts.is_empty()) {
        return None;
    }

    let (client, server) = both?;
    let is_larger = client.base > server.base || client.value > server.value;
    is_larger.then_some(Caveat::LargeClient)
}

fn missed_writes(case: &Case<'_>) -> Option<Caveat> {
    match case.missed_writes() {
        [true, false] => Some(Caveat::MissedWrites { is_base: true }),
        [false, true] => Some(Caveat::MissedWrites { is_base: false }),
        // If both missed it, the cause says so.
        [false, false] | [true, true] => None,
    }
}

/// The debts that steps leave, each with its name and the least amount that matters.
const DEBTS: [(&str, &str, f64); 5] = [
    ("debt_dead_rows", "dead rows", 10_000.0),
    ("debt_history_list", "transactions to purge", 10_000.0),
    ("debt_dirty_mb", "MB of dirty pages", 16.0),
    ("debt_redo_mb", "MB of redo since the checkpoint", 64.0),
    ("debt_compaction_mb", "MB to compact", 64.0),
];

/// The debts that count rows or transactions, of which each may cost an operation of the next step.
const COUNTED_DEBTS: [&str; 2] = ["debt_dead_rows", "debt_history_list"];

/// Unfinished work that the step before left on one side.
#[derive(Clone, Debug, PartialEq)]
pub struct InheritedDebt {
    /// The step before.
    pub step: String,
    /// The work.
    pub what: &'static str,
    /// The amount that each side left.
    pub left: Pair,
    /// The step was not yet measured without those before it.
    pub could_be_alone: bool,
}

/// Doubts a change where the step before left much more unfinished work on one side.
pub(super) fn debt(case: &Case<'_>) -> Option<Caveat> {
    let row = case.side.rows[0];
    let before = case.context.index.step_before(row)?;
    // What is little for a long step may be most of the work of a short one.
    let operations = case.side.throughput.min(case.base.throughput) * row.seconds;
    DEBTS.iter().find_map(|(name, what, least)| {
        let left = |side: &Side<'_>| case.context.index.step_before(side.rows[0])?.metric(name);
        let left = case.pair(left)?;
        let is_count = COUNTED_DEBTS.contains(name);
        let least = if is_count { least.min(DEBT_OF_OPERATIONS * operations) } else { *least };
        let is_large = left.max() >= least && left.max() >= 1.0 && left.factor() >= DEBT;
        is_large.then(|| {
            Caveat::Debt(InheritedDebt {
                step: before.step.clone(),
                what,
                left,
                could_be_alone: !is_measured_alone(case),
            })
        })
    })
}

/// Returns whether the step was also measured right after the load.
fn is_measured_alone(case: &Case<'_>) -> bool {
    let step = &case.compared.step;
    let mut rows = case.context.figures.rows.iter();
    rows.any(|row| row.alone.is_some() && row.step == *step)
}

/// Doubts a change where other processes used processors, or operations waited for one.
fn busy_host(case: &Case<'_>, cause: FindingKind) -> Option<Caveat> {
    let others_percent = case.metric("others%").map_or(0.0, Pair::max);
    let others = (others_percent >= 100.0 * OTHERS).then_some(others_percent);
    let long_wait = waiting_share(case).filter(|share| *share >= CPU_WAIT);
    let waiting = long_wait.map(|share| 100.0 * share);

    let is_busy = others.is_some() || waiting.is_some() || cause == FindingKind::HostBusy;
    is_busy.then_some(Caveat::BusyHost { others, waiting })
}

/// Returns the share of an operation's time in which it waited for a processor: the larger one of
/// base and target. `None` if a time is not known, or zero.
fn waiting_share(case: &Case<'_>) -> Option<f64> {
    let wait = case.metric("op_cpu_wait_us")?;
    let time = case.metric("op_time_us")?;
    if time.base <= 0.0 || time.value <= 0.0 {
        return None;
    }
    Some((wait.base / time.base).max(wait.value / time.value))
}

fn steal(case: &Case<'_>) -> Option<Caveat> {
    let percent = case.metric("steal%")?;
    (percent.max() >= 100.0 * STEAL).then_some(Caveat::Steal(percent))
}

/// Doubts a change where the processors were slower on the slower side. If CPU is a small part of
/// the time, a governor lowers the frequency for threads that wait.
pub(super) fn frequency(case: &Case<'_>) -> Option<Caveat> {
    let cpu = case.own_cpu();
    let is_small = cpu.is_some_and(|cpu| case.share_of_time(cpu) < CPU_OF_TIME);
    cost_frequency(case, case.log_time()).filter(|_| !is_small)
}

/// Doubts a change of a cost by the factor e^`log_cost`, if the frequency of the processors changed
/// the other way.
pub(super) fn cost_frequency(case: &Case<'_>, log_cost: f64) -> Option<Caveat> {
    let mhz = case.metric("cpu_mhz")?;
    let log = mhz.ratio()?.ln();
    let is_contrary = log * log_cost < 0.0 && log.abs() >= FREQUENCY.ln();
    is_contrary.then_some(Caveat::Frequency(mhz))
}

/// Doubts fsyncs as the cause if they took longer on the slower side even before its cells ran.
fn fsync(case: &Case<'_>, cause: FindingKind) -> Option<Caveat> {
    let us = |side: &Side<'_>| mean(side.rows.iter().filter_map(|row| row.fsync_us));
    let us = case.pair(us)?;
    let log = us.ratio()?.ln();
    let is_same_direction = log * case.log_time() > 0.0 && log.abs() >= FSYNC_LATENCY.ln();
    (is_same_direction && cause == FindingKind::Fsyncs).then_some(Caveat::FsyncBefore(us))
}

/// The causes to which reads of compaction may contribute.
const COMPACTION_CAUSES: [FindingKind; 4] =
    [FindingKind::Reads, FindingKind::WriteStalls, FindingKind::Stall, FindingKind::Locks];

/// Doubts a change where compaction asks the kernel to read ahead more than the disk accepts in one
/// request, or where reads are the cause and the sizes of device reads differ.
fn read_sizes(case: &Case<'_>, cause: FindingKind) -> Option<Caveat> {
    let read_kb = case.read_kb().filter(|kb| !kb.is_same());

    if COMPACTION_CAUSES.contains(&cause) {
        let of_base = large_read_ahead(&case.base);
        let of_target = large_read_ahead(&case.side);
        let (in_base, in_target) = (of_base.is_some(), of_target.is_some());

        if let Some(large) = of_target.or(of_base) {
            return Some(Caveat::ReadAhead(LargeReadAhead {
                of_base: in_base,
                of_target: in_target,
                read_kb,
                ..large
            }));
        }
    }

    if cause != FindingKind::Reads {
        return None;
    }

    let limits = case.side.rows[0].read_limits.as_ref()?;
    Some(Caveat::ReadSizes {
        kb: read_kb?,
        max_sectors_kb: limits.max_sectors_kb,
        read_ahead_kb: limits.read_ahead_kb,
    })
}

/// Returns the read-ahead of a side if the disk does not accept so much in one request.
fn large_read_ahead(side: &Side<'_>) -> Option<LargeReadAhead> {
    let limits = side.rows[0].read_limits.as_ref()?;
    let (setting, kb) = limits.compaction.as_ref()?;

    (*kb > limits.max_sectors_kb).then(|| LargeReadAhead {
        of_base: false,
        of_target: false,
        setting: setting.clone(),
        kb: *kb,
        max_sectors_kb: limits.max_sectors_kb,
        read_kb: None,
    })
}

fn swap(case: &Case<'_>) -> Option<Caveat> {
    let pages = case.pair(|side| {
        Some(side.host_sum("swap_in_page_count")? + side.host_sum("swap_out_page_count")?)
    })?;
    (pages.max() >= SWAPPED_PAGES).then_some(Caveat::Swap(pages))
}

fn memory(case: &Case<'_>) -> Option<Caveat> {
    let percent = |side: &Side<'_>| {
        let seconds: f64 = side.rows.iter().map(|row| row.seconds).sum();
        let ns = side.host_sum("pressure_memory_some_ns")?;
        (seconds > 0.0).then(|| 100.0 * ns / 1e9 / seconds)
    };
    let percent = case.pair(percent)?;
    (percent.max() >= 100.0 * MEMORY_PRESSURE).then_some(Caveat::MemoryPressure(percent))
}

/// The warning of a step whose client is busy,
const BUSY_CLIENT: &str = "client::busy";
/// and of one whose client host is.
const BUSY_CLIENT_HOST: &str = "client::host-busy";

fn has_warning(row: &Row, code: &str) -> bool {
    row.warnings.iter().any(|warning| warning.code == code)
}

/// Returns the warnings of the steps; those of busy clients and their hosts have their own caveats.
fn warnings(case: &Case<'_>) -> Option<Caveat> {
    let codes = |side: &Side<'_>| {
        let warnings = side.rows.iter().flat_map(|row| &row.warnings);
        let codes = warnings.map(|warning| warning.code.clone());
        distinct(codes.filter(|code| ![BUSY_CLIENT, BUSY_CLIENT_HOST].contains(&code.as_str())))
    };
    let (base, target) = (codes(&case.base), codes(&case.side));
    let has_any = !base.is_empty() || !target.is_empty();
    has_any.then_some(Caveat::Warnings { base, target })
}
