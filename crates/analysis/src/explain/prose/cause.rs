//! The cause of a change: a few words for titles, and a sentence.

use std::fmt;

use serde::{Serialize, Serializer};

use super::amount::AmountChange;
use super::numbers::{both, figure, list_any, percent};
use super::settings_text;
use crate::counted;
use crate::explain::accounting::Gap;
use crate::explain::case::{Case, Pair};
use crate::explain::cause::{Cause, Detail, LevelShift, PartOfTime};
use crate::explain::explanation::Change;
use crate::explain::thresholds::{EXPLAINS, SHORT_SECONDS, WHOLE_MAX};
use crate::explain::{ChangeCause, FindingKind};
use crate::figures::{ConcurrentChange, Stall};
use crate::settings::Difference;

impl fmt::Display for ChangeCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&in_brief(*self))
    }
}

impl Serialize for ChangeCause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns a cause without figures, for several steps: `less CPU per operation`.
pub(super) fn in_brief(cause: ChangeCause) -> String {
    if cause.is_too_short {
        return "too short to name a cause".to_owned();
    }

    let is_slower = cause.is_slower();
    let more = if is_slower { "more" } else { "less" };

    match cause.kind {
        FindingKind::Cpu => format!("{more} CPU per operation"),
        FindingKind::Stall => {
            let more = if is_slower { "more" } else { "fewer" };
            format!("{more} seconds without progress")
        }
        FindingKind::WriteStalls => {
            let longer = if is_slower { "for longer" } else { "less" };
            format!("writes stalled {longer}")
        }
        FindingKind::Handover => {
            let slower = if is_slower { "slower" } else { "faster" };
            format!("{slower} {}", part_name(cause.kind))
        }
        FindingKind::LevelShift => "the level changed within the step".to_owned(),
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
        _ => ["fsync", "fsyncs"],
    }
}

/// Returns the cause of one step for a title: `21% more CPU per query`.
pub(super) fn headline(change: &Change<'_>) -> String {
    let case = change.cases[0];
    let special = match &change.cause {
        Cause::FsyncsPerCommit { metric, count, .. } => Some(fsyncs_instead(metric, *count)),
        Cause::WriteStalls { percent, .. } => {
            Some(format!("writes stalled {}", percent_instead(*percent, "time")))
        }
        Cause::Standstill { percent, .. } => {
            Some(format!("no progress in {}", percent_instead(*percent, "seconds")))
        }
        Cause::Part(changed) => part_headline(changed, case.noun()),
        Cause::BothMissedWrites | Cause::LevelShift(_) | Cause::Unexplained(_) => None,
    };

    special.unwrap_or_else(|| in_brief(change.cause_in_brief()))
}

/// Returns the change of CPU, or whether bytes changed with the time.
fn part_headline(changed: &PartOfTime, per: &str) -> Option<String> {
    let is_more = changed.us.growth() > 0.0;
    let what = match changed.part {
        FindingKind::Reads => "reads from storage",
        _ => "writes to storage",
    };
    match (changed.part, changed.detail) {
        (FindingKind::Cpu, _) => {
            let ratio = changed.us.ratio()?;
            Some(format!("{} CPU per {per}", AmountChange::new(ratio, None).text()))
        }
        (_, Some(Detail::BytesChanged)) if is_more => Some(format!("more {what}")),
        (_, Some(Detail::BytesChanged)) => Some(format!("fewer {what}")),
        (_, Some(Detail::BytesUnchanged)) if is_more => Some(format!("{what} take longer")),
        (_, Some(Detail::BytesUnchanged)) => Some(format!("{what} take less time")),
        _ => None,
    }
}

/// Formats a share of the time, or of the seconds: `20% of the seconds instead of 0%`.
fn percent_instead(percent: Pair, of: &str) -> String {
    let (base, value) = (figure(percent.base), figure(percent.value));
    format!("{value}% of the {of} instead of {base}%")
}

/// Counts fsyncs per commit, those of the target with their name: `one fsync per commit instead of
/// none`.
fn fsyncs_instead(metric: &str, count: Pair) -> String {
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
pub(super) fn sentence(case: &Case<'_>, cause: &Cause) -> String {
    let per = case.noun();
    let added = if case.is_slower() { "added" } else { "saved" };

    match cause {
        Cause::BothMissedWrites => {
            "Both missed their requested write rate in at least one repeat: fewer writes competed with \
             the queries, so no cause is named."
                .to_owned()
        }

        // Work that starts, stops or stalls.
        Cause::FsyncsPerCommit { metric, count, settings, waiting } => {
            let waiting = waiting.map(|share| {
                let share = share_text(share);
                format!("; of the time {added} per {per}, {share} is waiting for fsyncs")
            });
            fsyncs_per_commit(metric, *count, settings, waiting)
        }
        Cause::WriteStalls { share, reason, .. } => {
            let reason = reason.map(|(name, how, count)| {
                format!("; most of it because of {name} ({})", both(count, how))
            });
            format!(
                "The engine stalled writes {}, which makes up {} of the change{}.",
                if case.is_slower() { "for longer" } else { "less" },
                share_text(*share),
                reason.unwrap_or_default()
            )
        }
        Cause::Standstill { percent, share, longest } => format!(
            "There was no progress in {}, which makes up {} of the change{}.",
            percent_instead(*percent, "seconds"),
            share_text(*share),
            longest.as_ref().map(longest_stall).unwrap_or_default()
        ),

        // A part of an operation's time, or none.
        Cause::Part(changed) => part_sentence(case, added, changed),
        Cause::LevelShift(shift) => level_shift(case, shift),
        Cause::Unexplained(gap) => unexplained(*gap, per, added),
    }
}

/// States that fsyncs per commit changed with settings. `waiting` follows.
fn fsyncs_per_commit(
    metric: &str,
    count: Pair,
    settings: &[Difference],
    waiting: Option<String>,
) -> String {
    let [_, many] = fsync_names(metric);
    let more = if count.growth() > 0.0 { "more" } else { "fewer" };
    format!(
        "There are {more} {many} per commit, as expected from {}{}.",
        settings_text(settings),
        waiting.unwrap_or_default()
    )
}

fn longest_stall(stall: &Stall) -> String {
    format!(
        "; the longest stall lasted {}, from second {}{}",
        counted(stall.seconds, "second"),
        stall.from_second,
        concurrent(&stall.concurrent_changes)
    )
}

/// States why there is no cause.
fn unexplained(gap: Gap, per: &str, added: &str) -> String {
    match gap {
        Gap::NotMeasured => format!(
            "Some parts of the time per {per} were not measured in every repeat, so no cause is \
             named."
        ),
        Gap::TooShort => format!(
            "The step is too short for samples of what a {per} waits for, so no cause is named: measure for {} seconds or \
             more, with more rows or a longer time.",
            figure(2.0 * SHORT_SECONDS)
        ),
        Gap::NotShown => format!(
            "The time per {per} shows no significant change in the direction of throughput, so no cause is named."
        ),
        Gap::NoLargePart => format!(
            "No measured part is shown to make up {} of the time {added} per {per}.",
            percent(EXPLAINS)
        ),
    }
}

/// States the share of the change that one part of the time makes up, and the support for it as the
/// cause.
fn part_sentence(case: &Case<'_>, added: &str, changed: &PartOfTime) -> String {
    let detail = match (changed.part, changed.detail) {
        (FindingKind::HostBusy, _) => ", so no cause is named",
        (_, None) => "",
        (_, Some(Detail::Server)) => ", mostly in the server",
        (_, Some(Detail::Client)) => ", mostly in the client",
        (_, Some(Detail::WholeProcess)) => return process_cpu_sentence(case, added, changed),
        (_, Some(Detail::ClientThreads)) => " on the client threads, where the engine runs",
        (_, Some(Detail::BytesChanged)) => "; the engine's bytes per operation changed with it",
        (_, Some(Detail::BytesUnchanged)) => "; the engine's bytes per operation do not explain it",
        (_, Some(Detail::SharedFsyncs)) => {
            ": commits wait for the thread that syncs, and fsyncs per commit changed"
        }
        (_, Some(Detail::NoLimit)) => {
            "; no setting says why processors were short, so no cause is named"
        }
    };

    let wait =
        if changed.has_wait { ", including the wait for a processor that it causes" } else { "" };
    let expected = match changed.settings.as_slice() {
        [] => String::new(),
        settings => format!(", as expected from {}", settings_text(settings)),
    };
    let others = list_any(changed.others.iter().map(|part| part_name(*part).to_owned()))
        .map(|parts| format!("; also changed: {parts}"))
        .unwrap_or_default();

    let (share, part) = (share_text(changed.share), part_name(changed.part));
    let per = case.noun();
    format!("Of the time {added} per {per}, {share} is {part}{detail}{wait}{expected}{others}.")
}

/// States how much more CPU clients and server use. The server's process also works beside its
/// connections, so the CPU is not a part of an operation's time.
fn process_cpu_sentence(case: &Case<'_>, added: &str, changed: &PartOfTime) -> String {
    let us = changed.us.growth();
    let server = case.metric("server_cpu_us_per_op");
    let server = server.map(|pair| format!(" (server: {})", both(pair, "us")));

    format!(
        "Client and server use {} us {} CPU per {}, which is {} of the time {added}{}.",
        figure(us.abs()),
        if us > 0.0 { "more" } else { "less" },
        case.noun(),
        share_text(changed.share),
        server.unwrap_or_default()
    )
}

/// States when one target ran as fast as the other: until the shift, or since then.
fn level_shift(case: &Case<'_>, level_shift: &LevelShift) -> String {
    let LevelShift { is_of_base, shift, other_rate, matches_before } = level_shift;
    let (target, base) = (case.target(), case.base_name());

    let (who, other) = if *is_of_base { (base, target) } else { (target, base) };
    let (when, alike, then, differs) = if *matches_before {
        ("Until", shift.before, "then", shift.after)
    } else {
        ("From", shift.after, "before that", shift.before)
    };

    format!(
        "{when} second {}, {who} ran as fast as {other} ({} and {} {}), {then} at {}{}.",
        shift.second,
        figure(alike),
        figure(*other_rate),
        case.rate(),
        figure(differs),
        concurrent(&shift.concurrent_changes)
    )
}

/// Lists the figures of host and engine that changed at the same time: `; cpups changed at the same
/// time`.
fn concurrent(changes: &[ConcurrentChange]) -> String {
    const LISTED: usize = 3;
    let names = changes.iter().take(LISTED).map(|change| change.name.clone());
    let names = list_any(names).map(|names| format!("; {names} changed at the same time"));
    names.unwrap_or_default()
}

/// Formats the share of a change: `all`, `75%`.
fn share_text(share: f64) -> String {
    match share {
        share if share > WHOLE_MAX => "more than 100%".to_owned(),
        share if share >= 0.95 => "all".to_owned(),
        share => percent(share),
    }
}
