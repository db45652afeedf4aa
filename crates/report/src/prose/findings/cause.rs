//! The cause of a change: a few words for titles, and a sentence.

use super::setting::settings_text;
use super::wording::shared_operation;
use crate::prose::amount::AmountChange;
use crate::prose::numbers::{both, figure, list_any, percent, times};
use analysis::counted;
use analysis::explain::statement::{
    CaseFacts, Cause, Conflict, ConflictCount, Detail, EXPLAINS, FsyncCount, LevelShift, Pair,
    PartOfTime, PartShare, RetryCause, SHORT_SECONDS, StallReason, ThroughputChange, WHOLE_MAX,
    WhyUnexplained,
};
use analysis::explain::{ChangeCause, FindingKind};
use analysis::figures::{ConcurrentChange, Stall};
use analysis::settings::Difference;

/// The number of figures that are named as changed at the same time.
const CONCURRENT_NAMED: usize = 3;

/// Fewer conflicts per operation than this are called none.
const CONFLICTS_NAMED: f64 = 0.0005;

/// Returns a cause without figures, for several steps: `less CPU per operation`.
pub(crate) fn in_brief(cause: ChangeCause) -> String {
    if cause.is_too_short {
        return "too short to name a cause".to_owned();
    }

    let is_slower = cause.is_slower();
    let more = if is_slower { "more" } else { "less" };

    match cause.kind {
        FindingKind::Cpu => format!("{more} CPU per operation"),
        FindingKind::Fsyncs if cause.is_fsync_count => {
            let more = if is_slower { "more" } else { "fewer" };
            format!("{more} fsyncs per commit")
        }
        FindingKind::Stall => {
            let more = if is_slower { "more" } else { "fewer" };
            format!("{more} seconds without progress")
        }
        FindingKind::WriteStalls => {
            let longer = if is_slower { "longer" } else { "shorter" };
            format!("{longer} write stalls")
        }
        FindingKind::Handover => {
            let slower = if is_slower { "slower" } else { "faster" };
            format!("{slower} {}", part_name(cause.kind))
        }
        FindingKind::LevelShift => "a change of level within the step".to_owned(),
        FindingKind::Retries if is_slower => "more retries".to_owned(),
        FindingKind::Retries => "fewer retries".to_owned(),
        FindingKind::HostBusy => "too much competition for processors to name a cause".to_owned(),
        FindingKind::SlaMissed => "both missed the requested write rate".to_owned(),
        FindingKind::Unexplained => "unexplained".to_owned(),
        kind => format!("{more} {}", part_name(kind)),
    }
}

/// Returns the name of a part of an operation's time.
fn part_name(part: FindingKind) -> &'static str {
    match part {
        FindingKind::Cpu => "CPU",
        FindingKind::ProcessorWait => "waiting for a processor",
        FindingKind::HostBusy => "time that the hypervisor took",
        FindingKind::Reads => "waiting for reads from storage",
        FindingKind::Writes => "waiting for writes to storage",
        FindingKind::Fsyncs => "waiting for fsyncs",
        FindingKind::Locks => "waiting for other threads",
        FindingKind::Handover => "handover between client and server",
        _ => "time outside all measured parts",
    }
}

/// Returns the name of one fsync and of several.
fn fsync_names(metric: &str) -> [&'static str; 2] {
    match metric {
        "log_fsyncs_per_commit" => ["fsync of the log", "fsyncs of the log"],
        "binlog_syncs_per_commit" => ["sync of the binary log", "syncs of the binary log"],
        "data_fsyncs_per_commit" => ["fsync of data files", "fsyncs of data files"],
        "flushes_per_commit" => ["device flush", "device flushes"],
        _ => ["fsync", "fsyncs"],
    }
}

/// Returns the cause of one step for a title: `21% more CPU per query`.
pub(super) fn headline(change: &ThroughputChange) -> String {
    let case = &change.cases[0];
    match &change.cause {
        cause if cause.is_unexplained() => unexplained_headline(change),
        Cause::FsyncsPerCommit { metric, count, .. } => fsyncs_instead(metric, *count),
        Cause::WriteStalls { percent, .. } => {
            format!("writes stalled {}", percent_instead(*percent, "time"))
        }
        Cause::Standstill { percent, .. } => {
            format!("no progress in {}", percent_instead(*percent, "seconds"))
        }
        Cause::Retries(retries) => {
            conflicts_instead(Conflict::Retries, retries.count, Some(&case.operation))
        }
        Cause::Part(changed) => match part_headline(changed, case) {
            Some(headline) => headline + &fsyncs_beside_cpu(change),
            None => in_brief(change.cause_in_brief()),
        },
        Cause::BothMissedWrites | Cause::LevelShift(_) | Cause::Unexplained(_) => {
            in_brief(change.cause_in_brief())
        }
    }
}

/// Returns what a title says of changes without a cause: `50% more own CPU per query, and time without
/// a known cause` where own CPU is shown to have changed, because `unexplained` would hide that. Of
/// several cases, it has the largest change: `up to 50% more own CPU per operation`.
pub(super) fn unexplained_headline(change: &ThroughputChange) -> String {
    let ratios = change.cases.iter().filter_map(|case| case.own_cpu_ratio);
    let Some(ratio) = ratios.max_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs())) else {
        return in_brief(change.cause_in_brief());
    };

    let up_to = if change.cases.len() > 1 { "up to " } else { "" };
    let cpu = AmountChange::new(ratio, None);
    let per = shared_operation(change.cases.iter());
    let fsyncs = fsyncs_beside_cpu(change);
    format!("{up_to}{} own CPU per {per}{fsyncs}, and time without a known cause", cpu.text())
}

/// Returns `, one fsync per commit instead of 2` for a title with CPU, with the step if it has several.
pub(super) fn fsyncs_beside_cpu(change: &ThroughputChange) -> String {
    let Some(FsyncCount { metric, count }) = change.fsyncs else {
        return String::new();
    };
    let leading = &change.cases[0];
    let place =
        if change.cases.len() > 1 { format!(" in {}", leading.place) } else { String::new() };
    format!(", {}{place}", fsyncs_instead(metric, count))
}

/// Returns the change of CPU, or whether bytes changed with the time.
fn part_headline(changed: &PartOfTime, case: &CaseFacts) -> Option<String> {
    let per = &case.operation;
    if changed.part == FindingKind::Cpu {
        let change = AmountChange::new(changed.us.ratio()?, None);
        return Some(format!("{} CPU per {per}", change.text()));
    }
    if changed.detail == Some(Detail::LocksOnData) {
        return Some(locks_headline(case));
    }

    let what = match changed.part {
        FindingKind::Reads => "reads from storage",
        _ => "writes to storage",
    };
    let is_more = changed.us.growth() > 0.0;

    // There is more, or less, of them to read and to write.
    let indexes = match case.index_gb.and_then(Pair::ratio) {
        Some(ratio) => format!(", of indexes {} as large", times(ratio)),
        None => String::new(),
    };

    match changed.detail {
        Some(Detail::BytesChanged) if is_more => Some(format!("more {what}{indexes}")),
        Some(Detail::BytesChanged) => Some(format!("fewer {what}{indexes}")),
        Some(Detail::BytesUnchanged) if is_more => Some(format!("{what} take longer")),
        Some(Detail::BytesUnchanged) => Some(format!("{what} take less time")),
        _ => None,
    }
}

/// Returns the number of waits for locks on data, or of deadlocks, if one is shown to have changed.
fn locks_headline(case: &CaseFacts) -> String {
    let mut waits = case.conflicts.iter().filter(|changed| changed.conflict != Conflict::Retries);
    match waits.next() {
        Some(ConflictCount { conflict, count }) => {
            conflicts_instead(*conflict, *count, Some(&case.operation))
        }
        None => {
            let more = if case.is_slower() { "more" } else { "less" };
            format!("{more} waiting for locks on data")
        }
    }
}

/// Counts conflicts per operation: `0.31 retries per transaction instead of 0.02`. The operation may
/// have been named before.
pub(super) fn conflicts_instead(conflict: Conflict, count: Pair, per: Option<&str>) -> String {
    let what = match conflict {
        Conflict::Retries => "retries",
        Conflict::LockWaits => "lock waits",
        Conflict::Deadlocks => "deadlocks",
    };

    let number = |count: f64, none: &str| {
        if count < CONFLICTS_NAMED { none.to_owned() } else { figure(count) }
    };
    let (now, before) = (number(count.value, "no"), number(count.base, "none"));
    match per {
        Some(per) => format!("{now} {what} per {per} instead of {before}"),
        None => format!("{now} {what} instead of {before}"),
    }
}

/// Counts all conflicts that are shown to have changed: `0.31 retries per transaction instead of
/// 0.02 and 0.1 deadlocks instead of none`. `None` without any.
pub(super) fn conflicts_text(conflicts: &[ConflictCount], per: &str) -> Option<String> {
    let mut texts = Vec::new();
    for ConflictCount { conflict, count } in conflicts {
        let per = texts.is_empty().then_some(per);
        texts.push(conflicts_instead(*conflict, *count, per));
    }
    list_any(texts)
}

/// Formats a share of the time, or of the seconds: `20% of the seconds instead of 0%`.
fn percent_instead(percent: Pair, of: &str) -> String {
    let (base, value) = (figure(percent.base), figure(percent.value));
    format!("{value}% of the {of} instead of {base}%")
}

/// Counts fsyncs per commit, those of the target with their name: `one fsync per commit instead of
/// none`.
pub(super) fn fsyncs_instead(metric: &str, count: Pair) -> String {
    let [one, many] = fsync_names(metric);

    let (now, what) = match count.value {
        ..0.05 => ("no".to_owned(), one),
        0.9..=1.1 => ("one".to_owned(), one),
        count => (figure(count), many),
    };

    let before = match count.base {
        ..0.05 => "none".to_owned(),
        0.9..=1.1 => "one".to_owned(),
        count => figure(count),
    };

    format!("{now} {what} per commit instead of {before}")
}

/// States the reason why throughput changed, as far as it is known.
pub(super) fn sentence(case: &CaseFacts, cause: &Cause) -> String {
    match cause {
        Cause::BothMissedWrites => {
            "Both missed their requested write rate in at least one repeat: fewer writes competed with \
             the queries, so no cause is named."
                .to_owned()
        }

        // Work that starts, stops or stalls.
        Cause::FsyncsPerCommit { metric, count, settings, waiting, larger } => {
            let waiting = match waiting {
                Some(share) => waiting_for_fsyncs(case, *share, *larger),
                None => String::new(),
            };
            fsyncs_per_commit(metric, *count, settings, &waiting)
        }
        Cause::WriteStalls { share, reason, .. } => write_stalls(case, *share, *reason),
        Cause::Standstill { percent, share, longest } => {
            standstill(*percent, *share, longest.as_ref())
        }

        // Work that is repeated, a part of an operation's time, or none.
        Cause::Retries(retries) => retried_attempts(case, retries),
        Cause::Part(changed) => part_of_time(case, changed),
        Cause::LevelShift(shift) => level_shift(case, shift),
        Cause::Unexplained(why) => unexplained(*why, case),
    }
}

/// Returns the direction of the time that an operation takes.
fn added(case: &CaseFacts) -> &'static str {
    if case.is_slower() { "added" } else { "saved" }
}

/// States that fsyncs per commit changed with settings. `waiting` follows.
fn fsyncs_per_commit(metric: &str, count: Pair, settings: &[Difference], waiting: &str) -> String {
    let [_, many] = fsync_names(metric);
    let more = if count.growth() > 0.0 { "more" } else { "fewer" };
    let expected = if settings.is_empty() {
        String::new()
    } else {
        format!(", as expected from {}", settings_text(settings))
    };
    format!("There are {more} {many} per commit{expected}{waiting}.")
}

/// States the share of waiting for fsyncs, and that of a part with a larger one.
fn waiting_for_fsyncs(case: &CaseFacts, share: f64, larger: Option<PartShare>) -> String {
    let (added, per) = (added(case), &case.operation);
    let of_fsyncs = share_text(share);
    let other = match larger {
        Some(PartShare { part, share }) => {
            format!(", and {} is {}", share_text(share), part_name(part))
        }
        None => String::new(),
    };
    format!("; of the time {added} per {per}, {of_fsyncs} is waiting for fsyncs{other}")
}

fn write_stalls(case: &CaseFacts, share: f64, reason: Option<StallReason>) -> String {
    let longer = if case.is_slower() { "for longer" } else { "less" };
    let share = share_text(share);

    let most = match reason {
        Some(StallReason { limit, kind, count }) => {
            format!("; most of it because of {limit} ({})", both(count, kind))
        }
        None => String::new(),
    };
    format!("The engine stalled writes {longer}, which makes up {share} of the change{most}.")
}

fn standstill(percent: Pair, share: f64, longest: Option<&Stall>) -> String {
    let seconds = percent_instead(percent, "seconds");
    let share = share_text(share);

    let longest = match longest {
        Some(stall) => format!(
            "; the longest stall lasted {}, from second {}{}",
            counted(stall.seconds, "second"),
            stall.from_second,
            concurrent(&stall.concurrent_changes)
        ),
        None => String::new(),
    };
    format!("There was no progress in {seconds}, which makes up {share} of the change{longest}.")
}

/// States the share of attempts that failed, with their number.
fn retried_attempts(case: &CaseFacts, retries: &RetryCause) -> String {
    let (added, per) = (added(case), &case.operation);
    let share = share_text(retries.share);
    let counts = match conflicts_text(&case.conflicts, per) {
        Some(counts) => format!(": {counts}"),
        None => String::new(),
    };
    format!(
        "Of the time {added} per {per}, {share} is attempts that failed and were retried{counts}."
    )
}

/// States why there is no cause.
fn unexplained(why: WhyUnexplained, case: &CaseFacts) -> String {
    let per = &case.operation;
    match why {
        WhyUnexplained::NotMeasured => format!(
            "Some parts of the time per {per} were not measured in every repeat, so no cause is \
             named."
        ),
        WhyUnexplained::TooShort => format!(
            "The step is too short for samples of what a {per} waits for, so no cause is named: measure for {} seconds or \
             more, with more rows or a longer time.",
            figure(2.0 * SHORT_SECONDS)
        ),
        WhyUnexplained::NotShown => format!(
            "The mean time per {per} shows no significant change in the same direction, so no cause is named."
        ),
        WhyUnexplained::NoLargePart => format!(
            "No measured part is shown to make up {} of the time {} per {per}.",
            percent(EXPLAINS),
            added(case)
        ),
    }
}

/// States the share of the change that one part of the time makes up, and the support for it as the
/// cause.
fn part_of_time(case: &CaseFacts, changed: &PartOfTime) -> String {
    let is_of_process = changed.detail == Some(Detail::WholeProcess);
    if is_of_process && changed.part != FindingKind::HostBusy {
        return process_cpu(case, changed);
    }

    let (added, per) = (added(case), &case.operation);
    let (share, part) = (share_text(changed.share), part_name(changed.part));
    let detail = detail(changed);
    let wait =
        if changed.has_wait { ", including the wait for a processor that it causes" } else { "" };

    let expected = if changed.settings.is_empty() {
        String::new()
    } else {
        format!(", as expected from {}", settings_text(&changed.settings))
    };

    let others = match list_any(changed.others.iter().map(|part| part_name(*part).to_owned())) {
        Some(parts) => format!("; also changed: {parts}"),
        None => String::new(),
    };

    format!("Of the time {added} per {per}, {share} is {part}{detail}{wait}{expected}{others}.")
}

/// Returns what supports a part of the time as the cause, or speaks against it.
fn detail(changed: &PartOfTime) -> &'static str {
    if changed.part == FindingKind::HostBusy {
        return ", so no cause is named";
    }

    match changed.detail {
        // The CPU of a whole process has a sentence of its own.
        None | Some(Detail::WholeProcess) => "",
        Some(Detail::Server) => ", mostly in the server",
        Some(Detail::Client) => ", mostly in the client",
        Some(Detail::ClientThreads) => " on the client threads, where the engine runs",
        Some(Detail::BytesChanged) => "; the engine's bytes per operation changed with it",
        Some(Detail::BytesUnchanged) => "; the engine's bytes per operation do not explain it",
        Some(Detail::SharedFsyncs) => {
            ": commits wait for the thread that syncs, and fsyncs per commit changed"
        }
        Some(Detail::LocksOnData) => ", for locks on data",
        Some(Detail::NoLimit) => {
            "; no setting says why processors were short, so no cause is named"
        }
    }
}

/// States how much more CPU clients and server use. The server's process also works beside its
/// connections, so the CPU is not a part of an operation's time.
fn process_cpu(case: &CaseFacts, changed: &PartOfTime) -> String {
    let us = changed.us.growth();
    let more = if us > 0.0 { "more" } else { "less" };
    let (added, per) = (added(case), &case.operation);

    let server = match case.server_cpu_us {
        Some(pair) => format!(" (server: {})", both(pair, "us")),
        None => String::new(),
    };

    format!(
        "Client and server use {} us {more} CPU per {per}, which is {} of the time {added}{server}.",
        figure(us.abs()),
        share_text(changed.share)
    )
}

/// States when one target ran as fast as the other: until the shift, or since then.
fn level_shift(case: &CaseFacts, level_shift: &LevelShift) -> String {
    let LevelShift { is_of_base, shift, other_rate, matches_before } = level_shift;

    let (who, other) =
        if *is_of_base { (&case.base, &case.target) } else { (&case.target, &case.base) };
    let (when, alike, then, differs) = if *matches_before {
        ("Until", shift.before, "then", shift.after)
    } else {
        ("From", shift.after, "before that,", shift.before)
    };

    format!(
        "{when} second {}, {who} ran as fast as {other} ({} and {} {}); {then} it ran at {}{}.",
        shift.second,
        figure(alike),
        figure(*other_rate),
        case.rate_unit,
        figure(differs),
        concurrent(&shift.concurrent_changes)
    )
}

/// Lists the figures of host and engine that changed at the same time: `; cpups changed at the same
/// time`.
fn concurrent(changes: &[ConcurrentChange]) -> String {
    let names = changes.iter().take(CONCURRENT_NAMED).map(|change| change.name.clone());
    match list_any(names) {
        Some(names) => format!("; {names} changed at the same time"),
        None => String::new(),
    }
}

/// Formats the share of a change: `all`, `75%`.
fn share_text(share: f64) -> String {
    if share > WHOLE_MAX {
        "more than 100%".to_owned()
    } else if share >= 0.95 {
        "all".to_owned()
    } else {
        percent(share)
    }
}
