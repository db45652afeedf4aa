//! Seconds that explain a mean: stalls, and a level that changed within the step.

use super::super::FindingKind;
use super::super::case::{Case, Side};
use super::super::thresholds::{LEVEL_SAME, LEVEL_SURE, LEVELS_MAX, STALLED_POINTS};
use super::super::words::{counted, figure, list};
use super::{Cause, accounts};
use crate::{Moved, Quality, Shift, Stall};

/// Things that happened beside, in one sentence.
const BESIDE: usize = 3;

fn qualities<'a>(side: &Side<'a>) -> Vec<&'a Quality> {
    let rows = side.rows.iter();
    rows.filter_map(|row| row.quality.as_ref()).collect()
}

/// The share of its seconds in which a side stood still, and the worst of its stalls.
fn stood_still<'a>(side: &Side<'a>) -> Option<(usize, usize, Option<&'a Stall>)> {
    let of_rows = qualities(side);
    let mut stalled = 0;
    for quality in &of_rows {
        stalled += quality.stalled_seconds?;
    }
    let seconds: usize = of_rows.iter().map(|quality| quality.seconds).sum();
    let stalls = of_rows.iter().flat_map(|quality| &quality.stalls);
    let worst = stalls.max_by_key(|stall| stall.seconds);
    (seconds > 0).then_some((stalled, seconds, worst))
}

/// It stood still for longer.
pub(super) fn stalled(case: &Case<'_>) -> Option<Cause> {
    let (base, base_of, base_worst) = stood_still(&case.base)?;
    let (here, here_of, here_worst) = stood_still(&case.side)?;
    let of = |stalled: usize, seconds: usize| stalled as f64 / seconds as f64;
    let (base_share, share) = (of(base, base_of), of(here, here_of));
    if 100.0 * (share - base_share).abs() < STALLED_POINTS || share.max(base_share) >= 1.0 {
        return None;
    }
    let explained = ((1.0 - share) / (1.0 - base_share)).ln() / case.ratio.ln();
    let mut sentence = format!(
        "It stood still for {} of {here_of} against {} of {base_of} with {}",
        counted(here, "second"),
        counted(base, "second"),
        case.base_name
    );
    sentence += &match explained > 0.0 {
        true => format!(", {}.", accounts(explained)),
        false => ", which is against the change.".to_owned(),
    };
    let worst = if share > base_share {
        here_worst
    } else {
        base_worst
    };
    if let Some(stall) = worst {
        sentence += &format!(
            " The longest stall is {} from second {} on{}.",
            counted(stall.seconds, "second"),
            stall.from_second,
            beside(&stall.beside)
        );
    }
    let headline = format!(
        "no progress in {}% of the seconds against {}%",
        figure(100.0 * share),
        figure(100.0 * base_share)
    );
    Some(Cause {
        kind: FindingKind::Stall,
        score: explained.clamp(0.0, 1.0),
        brief: headline.clone(),
        headline,
        sentence,
    })
}

fn beside(moved: &[Moved]) -> String {
    let moved: Vec<String> = moved
        .iter()
        .take(BESIDE)
        .map(|moved| {
            let unit = match moved.unit.as_str() {
                "" => String::new(),
                unit => format!(" {unit}"),
            };
            format!(
                "{} {} (otherwise {}{unit})",
                moved.name,
                figure(moved.during),
                figure(moved.otherwise)
            )
        })
        .collect();
    match moved.is_empty() {
        true => String::new(),
        false => format!("; beside it: {}", list(&moved)),
    }
}

/// In each of its runs a side changed its level once, and on one of the levels it was as fast as the other side.
pub(super) fn shifted(case: &Case<'_>) -> Option<Cause> {
    let of = |side: &Side<'_>, other: &Side<'_>| -> Option<(Shift, f64, bool)> {
        let others = qualities(other);
        if others.is_empty() || others.iter().any(|quality| quality.shift_count > 0) {
            return None;
        }
        let level = others.iter().map(|quality| quality.usual).sum::<f64>() / others.len() as f64;
        let is_level = |rate: f64| (rate / level - 1.0).abs() <= LEVEL_SAME;
        let mut found = None;
        for quality in qualities(side) {
            let few = (1..=LEVELS_MAX).contains(&quality.shift_count);
            let largest = quality.shifts.iter().filter(|_| few).max_by(|a, b| {
                (a.after - a.before)
                    .abs()
                    .total_cmp(&(b.after - b.before).abs())
            })?;
            let (begins, ends) = (is_level(largest.before), is_level(largest.after));
            if begins == ends {
                return None;
            }
            found = found.or_else(|| Some((largest.clone(), level, begins)));
        }
        found
    };
    let (shift, level, begins, who, other) = match of(&case.side, &case.base) {
        Some((shift, level, begins)) => (
            shift,
            level,
            begins,
            case.compared.target.as_str(),
            case.base_name,
        ),
        None => {
            let (shift, level, begins) = of(&case.base, &case.side)?;
            (
                shift,
                level,
                begins,
                case.base_name,
                case.compared.target.as_str(),
            )
        }
    };
    let rate = case.rate();
    let when = if begins { "Until" } else { "From" };
    let sentence = format!(
        "{when} second {} {who} ran as {other} does ({} against {} {rate}), {} at {}: the level changed within the \
         step{}.",
        shift.second,
        figure(if begins { shift.before } else { shift.after }),
        figure(level),
        if begins { "then" } else { "before that" },
        figure(if begins { shift.after } else { shift.before }),
        beside(&shift.beside)
    );
    Some(Cause {
        kind: FindingKind::LevelShift,
        score: LEVEL_SURE,
        headline: format!("the level of {who} changed in second {}", shift.second),
        sentence,
        brief: format!("level of {who} changed in second {}", shift.second),
    })
}
