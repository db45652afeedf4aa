//! How often a commit makes something durable.

use super::super::FindingKind;
use super::super::case::{Case, Pair};
use super::super::thresholds::{
    CPU_BOUND, FSYNCS, FSYNCS_BUSY, FSYNCS_MANY, FSYNCS_PER_COMMIT_MIN,
};
use super::super::words::times;
use super::{Cause, more_or};

/// The figures, the most telling first, each with what it counts.
const FIGURES: [(&str, &str); 4] = [
    ("fsyncs_per_commit", "fsyncs"),
    ("log_fsyncs_per_commit", "fsyncs of the log"),
    ("binlog_syncs_per_commit", "syncs of the binary log"),
    ("data_fsyncs_per_commit", "fsyncs of data files"),
];

/// The same of an engine that counts none of them, as SQLite: what the disks did for all on the host.
const OF_DISKS: (&str, &str) = ("flushes_per_commit", "flushes of the disks");

/// The most telling figure that both sides have.
fn counted(case: &Case<'_>) -> Option<(&'static str, &'static str, Pair)> {
    let mut figures = FIGURES.iter().chain([&OF_DISKS]);
    figures.find_map(|(name, what)| Some((*name, *what, case.metric(name)?)))
}

/// More fsyncs per commit, where commits wait for them.
pub(super) fn cause(case: &Case<'_>) -> Option<Cause> {
    let (name, what, fsyncs) = counted(case)?;
    let appears = fsyncs.base.min(fsyncs.value) < FSYNCS_PER_COMMIT_MIN;
    let factor = match fsyncs.ratio() {
        Some(ratio) => ratio.max(1.0 / ratio),
        None => f64::INFINITY,
    };
    if factor < FSYNCS || fsyncs.max() < FSYNCS_PER_COMMIT_MIN || !matters(case, fsyncs) {
        return None;
    }
    let is_along = (fsyncs.grown() > 0.0) == case.is_slower();
    let share = match (case.share(fsyncs), is_along) {
        (Some(share), _) => share.clamp(0.0, 1.0),
        (None, along) => f64::from(along),
    };
    // Where processors are busy all the time, a few more fsyncs are not what clients wait for.
    let is_busy = case
        .cpu()
        .is_some_and(|cpu| case.share_of_time(cpu) >= CPU_BOUND);
    let sure = if is_busy && factor < FSYNCS_MANY {
        0.5
    } else {
        1.0
    };
    let more = more_or(fsyncs, "fewer");
    let much = match (appears, fsyncs.ratio()) {
        (false, Some(ratio)) => format!("{} the {what} per commit", times(ratio)),
        _ => format!("{more} {what} per commit"),
    };
    let mut sentence = format!("A commit takes {more} {what}: {}.", fsyncs.text("/commit"));
    let others: Vec<String> = FIGURES
        .iter()
        .filter(|(other, _)| *other != name)
        .filter_map(|(other, what)| {
            let pair = case.metric(other).filter(|pair| !pair.is_same())?;
            Some(format!("{what} {}", pair.text("/commit")))
        })
        .collect();
    if !others.is_empty() {
        sentence += &format!(" Of these: {}.", others.join("; "));
    }
    Some(Cause {
        kind: FindingKind::Fsyncs,
        score: share * sure,
        headline: much,
        sentence,
        brief: format!("{what} {}", fsyncs.text("/commit")),
    })
}

/// Commits wait for fsyncs, on one side at least, as far as anybody counts them.
pub(in super::super) fn waited_for(case: &Case<'_>) -> bool {
    counted(case)
        .is_some_and(|(.., fsyncs)| fsyncs.max() >= FSYNCS_PER_COMMIT_MIN && matters(case, fsyncs))
}

/// Commits wait for fsyncs: they keep a device busy, or the clients wait for something that is not CPU.
fn matters(case: &Case<'_>, fsyncs: Pair) -> bool {
    let busy = [
        case.base.fsyncs_busy(fsyncs.base),
        case.side.fsyncs_busy(fsyncs.value),
    ];
    let is_busy = busy.iter().flatten().any(|&share| share >= FSYNCS_BUSY);
    let waits = case.waiting().is_some_and(|waiting| {
        let time = case.time();
        (waiting.base / time.base).max(waiting.value / time.value) >= 0.5
    });
    is_busy || waits
}
