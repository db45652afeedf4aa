//! Writes that a log-structured merge tree held up, as it says itself.

use super::super::FindingKind;
use super::super::case::{Case, Side};
use super::super::thresholds::STALLED_POINTS;
use super::super::words::{change, figure};
use super::{Cause, accounts};

/// Another share of the time was stalled.
pub(super) fn cause(case: &Case<'_>) -> Option<Cause> {
    let stalled = case.metric("stall%")?;
    if stalled.grown().abs() < STALLED_POINTS || stalled.max() >= 100.0 {
        return None;
    }
    // What is left to write in: its ratio is the ratio of throughput if nothing else changed.
    let left = (100.0 - stalled.value) / (100.0 - stalled.base);
    let share = left.ln() / case.ratio.ln();
    let mut sentence = format!(
        "Writes were held up {}% of the time against {}% with {}",
        figure(stalled.value),
        figure(stalled.base),
        case.base_name,
    );
    sentence += &match share > 0.0 {
        true => format!(", {}.", accounts(share)),
        false => ", which is against the change.".to_owned(),
    };
    if let Some(reason) = reason(case) {
        sentence += &format!(" Of delays and stops those because of {reason} changed most.");
    }
    Some(Cause {
        kind: FindingKind::WriteStalls,
        score: share.clamp(0.0, 1.0),
        headline: format!(
            "writes stalled {}% of the time against {}%",
            figure(stalled.value),
            figure(stalled.base)
        ),
        sentence,
        brief: format!("stalled {}", stalled.text("%")),
    })
}

/// The reason of delays and stops that counts most on the side that stalled more; sums and parts are left out.
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
    Some(format!("{reason} ({})", change(pair.base, pair.value, how)))
}
