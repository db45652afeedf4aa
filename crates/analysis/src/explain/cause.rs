//! The cause of the change of a step's throughput; the rules are in `docs/findings.md`.

use record::SettingRole;

use super::FindingKind;
use super::accounting::{Accounting, ChangedPart, Undivided, share_in_words};
use super::case::{Case, Pair, Side};
use super::thresholds::{
    BEGINS_FACTOR, DEVICE_OF_TIME, EXPLAINS, FSYNCS_PER_COMMIT_MIN, LEVEL_SAME, LEVELS_MAX,
    STALLED_POINTS,
};
use super::words::{capitalized, counted, figure, list, more, signed};
use crate::{ConcurrentChange, Row, Shift, initial_tree};

/// The explanation of one case.
#[derive(Clone, Debug)]
pub(super) struct Cause {
    pub kind: FindingKind,
    /// For a title: `1.20x more CPU per query`.
    pub headline: String,
    /// One sentence.
    pub sentence: String,
}

/// Returns what explains a change that a verdict shows.
pub(super) fn diagnose(case: &Case<'_>) -> Cause {
    let accounting = Accounting::of(case, case.declares(SettingRole::Processors).is_some());
    let divided = accounting.as_ref().ok();
    other_work(case)
        .or_else(|| durability(case, divided))
        .or_else(|| cache(case, divided?))
        .or_else(|| write_stalls(case))
        .or_else(|| standstill(case))
        .or_else(|| part_of_time(case, divided?))
        .or_else(|| level_shift(case))
        .unwrap_or_else(|| unexplained(case, &accounting))
}

/// Names no cause where both targets missed the rate of writes: they did different work beside the operations.
fn other_work(case: &Case<'_>) -> Option<Cause> {
    let kind = FindingKind::SlaMissed;
    case.missed_writes().iter().all(|missed| *missed).then(|| Cause {
        kind,
        headline: kind.headline(case.is_slower()),
        sentence: "Each of the two missed its target write rate in some repeat, and so had less to do beside the queries: no cause is \
                   named."
            .to_owned(),
    })
}

/// Fsyncs that engines count themselves, with the words for one and for several; the sum comes first.
pub(super) const FSYNCS: [(&str, &str, &str); 4] = [
    ("fsyncs_per_commit", "fsync", "fsyncs"),
    (
        "log_fsyncs_per_commit",
        "fsync of the log",
        "fsyncs of the log",
    ),
    (
        "binlog_syncs_per_commit",
        "sync of the binary log",
        "syncs of the binary log",
    ),
    (
        "data_fsyncs_per_commit",
        "fsync of data files",
        "fsyncs of data files",
    ),
];

/// Explains a change by fsyncs per commit that begin or cease, as expected from a setting. This comes before all that
/// follows from it.
fn durability(case: &Case<'_>, accounting: Option<&Accounting>) -> Option<Cause> {
    if only_reads(case) {
        return None;
    }
    let setting = case.declares(SettingRole::Durability)?;
    let waited = accounting.and_then(|it| Some((it, it.part(FindingKind::Fsyncs)?)));
    // A kind of fsync that is few among all of them, such as those of data files, is not what commits wait for.
    let sum = case.metric(FSYNCS[0].0).map_or(0.0, Pair::max);
    let counts = FSYNCS.iter().find_map(|(name, one, many)| {
        let is_much = |pair: &Pair| {
            pair.max() >= FSYNCS_PER_COMMIT_MIN && pair.grown().abs() >= EXPLAINS * sum
        };
        Some((*one, *many, moved(case, name).filter(is_much)?))
    });
    let per = case.noun();
    let says = format!("as expected from {}", setting.text());
    if let Some((one, many, pair)) = counts {
        let waits = waited.map(|(it, part)| format!("; {}", it.clause(case, part)));
        let (base, value) = (figure(pair.base), figure(pair.value));
        return Some(Cause {
            kind: FindingKind::Fsyncs,
            headline: instead(one, many, pair),
            sentence: format!(
                "The number of {many} per commit went from {base} to {value}, {says}{}.",
                waits.unwrap_or_default()
            ),
        });
    }
    let counts_none = FSYNCS.iter().all(|(name, ..)| case.metric(name).is_none());
    let us = moved(case, "op_fsync_us").filter(|_| counts_none)?;
    let (accounting, part) = waited?;
    let is_much = us.max() >= DEVICE_OF_TIME * accounting.time.max();
    is_much.then(|| Cause {
        kind: FindingKind::Fsyncs,
        headline: format!(
            "fsyncs take {} us per {per} instead of {}",
            figure(us.value),
            figure(us.base)
        ),
        sentence: format!(
            "Commits wait {} for fsyncs, {says}: {}.",
            if us.grown() > 0.0 { "longer" } else { "less" },
            accounting.clause(case, part)
        ),
    })
}

/// Explains a change by reads from storage that begin or cease, as expected from the size of a cache. The CPU that they
/// take follows from them.
fn cache(case: &Case<'_>, accounting: &Accounting) -> Option<Cause> {
    let setting = case.declares(SettingRole::CacheSize)?;
    let part = accounting.part(FindingKind::Reads)?;
    let kb = moved(case, "own_read_kb_per_op")?;
    moved(case, "op_read_us")?;
    // Together with their CPU they have to explain the change, and the smaller cache has to be the one that reads.
    let cpu = accounting
        .part(FindingKind::Cpu)
        .filter(|cpu| cpu.is_shown());
    let share = part.share + cpu.map_or(0.0, |cpu| cpu.share);
    let is_much = part.us.max() >= DEVICE_OF_TIME * accounting.time.max() && share >= EXPLAINS;
    let is_contrary = setting
        .grown()
        .is_some_and(|grown| (grown > 0.0) == (kb.grown() > 0.0));
    (is_much && !is_contrary).then(|| Cause {
        kind: FindingKind::Reads,
        headline: FindingKind::Reads.headline(kb.grown() > 0.0),
        sentence: format!(
            "The engine read {} per {} from storage, as expected from {}; {}.",
            kb.text("KB"),
            case.noun(),
            setting.text(),
            accounting.clause(case, part)
        ),
    })
}

/// Returns a figure that surely changed with the time of an operation, and by so much that it began or ceased.
fn moved(case: &Case<'_>, name: &str) -> Option<Pair> {
    let pair = case.metric(name)?;
    let is_along = (pair.grown() > 0.0) == case.is_slower();
    let is_shown = case.difference(|row| row.metric(name))?.is_shown();
    (is_along && is_shown && pair.factor() >= BEGINS_FACTOR).then_some(pair)
}

/// Counts fsyncs per commit, those of the target with their name: `one fsync per commit instead of none`.
fn instead(one: &str, many: &str, pair: Pair) -> String {
    let (now, what) = match pair.value {
        ..0.05 => ("no".to_owned(), one),
        0.9..=1.1 => ("one".to_owned(), one),
        count => (figure(count), many),
    };
    let before = match pair.base {
        ..0.05 => "none".to_owned(),
        0.9..=1.1 => "one".to_owned(),
        count => figure(count),
    };
    format!("{now} {what} per commit instead of {before}")
}

fn only_reads(case: &Case<'_>) -> bool {
    case.side
        .rows
        .iter()
        .all(|row| initial_tree::only_reads(row))
}

/// The part of an operation's time that changed the most, where it may be called a cause.
fn part_of_time(case: &Case<'_>, accounting: &Accounting) -> Option<Cause> {
    let candidates = accounting.candidates(only_reads(case));
    let (first, others) = candidates.split_first()?;
    let others: Vec<String> = others
        .iter()
        .map(|part| format!("{} {} us", part.part.name, signed(part.us.grown())))
        .collect();
    let beside = match others.is_empty() {
        true => String::new(),
        false => format!("; also changed: {}", list(&others)),
    };
    let is_limited = case.declares(SettingRole::Processors).is_some();
    let kind = match first.part.kind {
        FindingKind::ProcessorWait if !is_limited => FindingKind::HostBusy,
        FindingKind::Locks if waits_for_shared_fsyncs(case) => FindingKind::Fsyncs,
        kind => kind,
    };
    let (headline, detail) = detail(case, kind, first);
    let clause = accounting.clause(case, first);
    Some(Cause {
        kind,
        headline,
        sentence: capitalized(&format!("{clause}{detail}{beside}.")),
    })
}

/// Returns true where waiting for other threads is waiting for an fsync that one of them does: a setting about durability
/// differs, and fsyncs per commit moved with the time.
fn waits_for_shared_fsyncs(case: &Case<'_>) -> bool {
    let moves_along = |(name, ..): &(&str, &str, &str)| {
        let pair = case.metric(name).filter(|pair| !pair.is_same());
        pair.is_some_and(|pair| (pair.grown() > 0.0) == case.is_slower())
    };
    !only_reads(case)
        && case.declares(SettingRole::Durability).is_some()
        && FSYNCS.iter().any(moves_along)
}

/// Returns the headline of one case, and what else supports the cause.
fn detail(case: &Case<'_>, kind: FindingKind, part: &ChangedPart) -> (String, String) {
    let per = case.noun();
    let usual = kind.headline(case.is_slower());
    let us = part.us.grown();
    match kind {
        FindingKind::Cpu => {
            let more = part.us.ratio().map(|ratio| more(ratio, "CPU"));
            let headline = more.map_or(usual, |more| format!("{more} per {per}"));
            (headline, String::new())
        }
        FindingKind::Fsyncs => {
            let counts = FSYNCS.iter().find_map(|(name, ..)| case.metric(name));
            let counts = counts.map(|pair| format!("; fsyncs per commit: {}", pair.text("")));
            (usual, counts.unwrap_or_default())
        }
        FindingKind::Reads => bytes(case, "own_read_kb_per_op", "reads from storage", us)
            .unwrap_or((usual, String::new())),
        FindingKind::Writes => bytes(case, "own_write_kb_per_op", "writes to storage", us)
            .unwrap_or((usual, String::new())),
        FindingKind::HostBusy => {
            let who = match part.part.kind {
                FindingKind::HostBusy => "the hypervisor gave it to others",
                _ => "no setting says why processors were short",
            };
            (usual, format!("; {who}, so no cause is named"))
        }
        FindingKind::Unexplained => {
            let us = signed(us);
            let headline = format!("unexplained: {us} us per {per} are in no measured part");
            (headline, String::new())
        }
        _ => (usual, String::new()),
    }
}

/// Says whether the engine itself read or wrote more, or the same amount took longer; `us` is by how much.
fn bytes(case: &Case<'_>, name: &str, what: &str, us: f64) -> Option<(String, String)> {
    let kb = case.metric(name)?;
    let text = kb.text(&format!("KB/{}", case.noun()));
    let is_along = (kb.grown() > 0.0) == (us > 0.0);
    Some(match (is_along && !kb.is_same(), us > 0.0) {
        (true, is_more) => {
            let more = if is_more { "more" } else { "fewer" };
            (
                format!("{more} {what}"),
                format!("; the engine's own: {text}"),
            )
        }
        (false, is_longer) => {
            let longer = if is_longer { "longer" } else { "less time" };
            (
                format!("{what} take {longer}"),
                format!("; the engine's own bytes do not explain it: {text}"),
            )
        }
    })
}

/// Says that no cause is known, and what is missing.
fn unexplained(case: &Case<'_>, accounting: &Result<Accounting, Undivided>) -> Cause {
    let per = case.noun();
    let sentence = match accounting {
        Err(Undivided::NotMeasured) => {
            format!(
                "Some parts of the time of a {per} were not measured in every repeat, so no cause is named."
            )
        }
        Err(Undivided::NotShown) => {
            format!(
                "The time of a {per} did not change as surely as throughput did, so no cause is named."
            )
        }
        Ok(accounting) => format!(
            "The time of a {per} {}, and no measured part of it surely makes up {:.0}% of that.",
            accounting.time.rose_us(),
            100.0 * EXPLAINS
        ),
    };
    Cause {
        kind: FindingKind::Unexplained,
        headline: FindingKind::Unexplained.headline(case.is_slower()),
        sentence,
    }
}

/// Returns how much of a change the time that is left to work in accounts for; `None` where that is too little. Shares
/// of time are in percent, of the base and of the target, and differ surely.
fn left_over(case: &Case<'_>, percent: Pair, row: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    let is_shown = case.difference(row)?.is_shown();
    if !is_shown || percent.grown().abs() < STALLED_POINTS || percent.max() >= 100.0 {
        return None;
    }
    let share = ((100.0 - percent.value) / (100.0 - percent.base)).ln() / case.ratio.ln();
    (share >= EXPLAINS).then_some(share)
}

/// A log-structured merge tree held writes up for another share of the time, as it says itself.
fn write_stalls(case: &Case<'_>) -> Option<Cause> {
    let stalled = case.metric("stall%")?;
    let share = left_over(case, stalled, |row| row.metric("stall%"))?;
    let both = format!(
        "{}% of the time instead of {}%",
        figure(stalled.value),
        figure(stalled.base)
    );
    let reason = reason(case).map(|reason| format!("; most of it because of {reason}"));
    Some(Cause {
        kind: FindingKind::WriteStalls,
        headline: format!("writes stalled {both}"),
        sentence: format!(
            "The engine stalled writes {both}, {} of the change{}.",
            share_in_words(share),
            reason.unwrap_or_default()
        ),
    })
}

/// Returns the reason of delays and stops whose count changed the most; sums and parts of these are left out.
fn reason(case: &Case<'_>) -> Option<String> {
    const REASONS: [&str; 3] = [
        "l0-file-count-limit",
        "memtable-limit",
        "pending-compaction-bytes",
    ];
    let counts = |side: &Side<'_>, reason: &str, how: &str| -> Option<f64> {
        let name = format!("{reason}-{how}");
        let mut rows = side.rows.iter().filter_map(|row| row.lsm.as_ref());
        rows.find_map(|lsm| lsm.stalls.get(&name).copied())
    };
    let both = |reason: &'static str, how: &'static str| {
        let pair = case.pair(|side| counts(side, reason, how))?;
        Some((reason, how, pair))
    };
    let (reason, how, pair) = REASONS
        .into_iter()
        .flat_map(|reason| ["delays", "stops"].map(|how| both(reason, how)))
        .flatten()
        .max_by(|a, b| a.2.grown().abs().total_cmp(&b.2.grown().abs()))
        .filter(|(.., pair)| pair.grown() != 0.0)?;
    Some(format!("{reason} ({})", pair.text(how)))
}

/// Returns the share of its seconds in which a repeat stood still, in percent.
fn stood_still(row: &Row) -> Option<f64> {
    let quality = row.quality.as_ref().filter(|quality| quality.seconds > 0)?;
    Some(100.0 * quality.stalled_seconds? as f64 / quality.seconds as f64)
}

/// It stood still for another share of the time, in most repeats.
fn standstill(case: &Case<'_>) -> Option<Cause> {
    let mean =
        |side: &Side<'_>| crate::quality::mean(side.rows.iter().filter_map(|row| stood_still(row)));
    let percent = case.pair(mean)?;
    let share = left_over(case, percent, stood_still)?;
    let (longer, other) = match percent.grown() > 0.0 {
        true => (&case.side, percent.base),
        false => (&case.base, percent.value),
    };
    let is_longer = |row: &&&Row| stood_still(row).is_some_and(|of| of >= other + STALLED_POINTS);
    if 2 * longer.rows.iter().filter(is_longer).count() <= longer.rows.len() {
        return None;
    }
    let qualities = longer.rows.iter().filter_map(|row| row.quality.as_ref());
    let worst = qualities
        .flat_map(|quality| &quality.stalls)
        .max_by_key(|stall| stall.seconds);
    let worst = worst.map(|stall| {
        format!(
            "; the longest stall is {} from second {} on{}",
            counted(stall.seconds, "second"),
            stall.from_second,
            beside(&stall.beside)
        )
    });
    let headline = format!(
        "no progress in {}% of the seconds instead of {}%",
        figure(percent.value),
        figure(percent.base)
    );
    Some(Cause {
        kind: FindingKind::Stall,
        sentence: format!(
            "There was {headline}, {} of the change{}.",
            share_in_words(share),
            worst.unwrap_or_default()
        ),
        headline,
    })
}

/// Lists what host and engine did at the same time.
fn beside(moved: &[ConcurrentChange]) -> String {
    const LISTED: usize = 3;
    let moved: Vec<String> = moved
        .iter()
        .take(LISTED)
        .map(|moved| {
            let unit = match moved.unit.as_str() {
                "" => String::new(),
                unit => format!(" {unit}"),
            };
            let (during, otherwise) = (figure(moved.during), figure(moved.otherwise));
            format!("{} {during} (otherwise {otherwise}{unit})", moved.name)
        })
        .collect();
    match moved.is_empty() {
        true => String::new(),
        false => format!(", with {}", list(&moved)),
    }
}

/// In most repeats one of the two changed its level, and on one of its levels it was as fast as the other.
fn level_shift(case: &Case<'_>) -> Option<Cause> {
    let (target, base) = (case.target(), case.base_name());
    let (who, other, found) = shift_of(&case.side, &case.base)
        .map(|found| (target, base, found))
        .or_else(|| Some((base, target, shift_of(&case.base, &case.side)?)))?;
    let (shift, level, begins) = found;
    let rate = case.rate();
    let (when, same, then, differs) = match begins {
        true => ("Until", shift.before, "then", shift.after),
        false => ("From", shift.after, "before that", shift.before),
    };
    Some(Cause {
        kind: FindingKind::LevelShift,
        headline: format!("the level of {who} changed in second {}", shift.second),
        sentence: format!(
            "{when} second {}, {who} ran as fast as {other} ({} against {} {rate}), {then} at {}{}.",
            shift.second,
            figure(same),
            figure(level),
            figure(differs),
            beside(&shift.beside)
        ),
    })
}

/// Returns the first shift of a side from or to the level of the other, which has none; whether it began there.
fn shift_of(side: &Side<'_>, other: &Side<'_>) -> Option<(Shift, f64, bool)> {
    let qualities = |side: &Side<'_>| -> Option<Vec<_>> {
        side.rows.iter().map(|row| row.quality.clone()).collect()
    };
    let others = qualities(other)?;
    if others.iter().any(|quality| quality.shift_count > 0) {
        return None;
    }
    let level = crate::quality::mean(others.iter().map(|quality| quality.usual))?;
    let is_level = |rate: f64| (rate / level - 1.0).abs() <= LEVEL_SAME;
    let size = |shift: &Shift| (shift.after - shift.before).abs();
    let found: Vec<(Shift, f64, bool)> = qualities(side)?
        .iter()
        .filter(|quality| quality.shift_count <= LEVELS_MAX)
        .filter_map(|quality| {
            let largest = quality
                .shifts
                .iter()
                .max_by(|a, b| size(a).total_cmp(&size(b)))?;
            let (begins, ends) = (is_level(largest.before), is_level(largest.after));
            (begins != ends).then(|| (largest.clone(), level, begins))
        })
        .collect();
    let is_most = 2 * found.len() > side.rows.len();
    found.into_iter().next().filter(|_| is_most)
}
