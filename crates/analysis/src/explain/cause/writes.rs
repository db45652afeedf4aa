//! Bytes written per operation.

use super::super::FindingKind;
use super::super::case::{Case, Side};
use super::super::thresholds::{WRITES_AT_LIMIT, WRITES_SURE};
use super::super::words::more;
use super::{Cause, accounts};

/// More is written per operation.
pub(super) fn cause(case: &Case<'_>) -> Option<Cause> {
    if case.writes_unchanged()? {
        return None;
    }
    let written = case.pair(Side::written_kb)?;
    let share = case.share(written)?;
    let per = case.noun();
    let rate = case.metric("wmbps");
    let at_limit = rate.filter(|rate| rate.is_same() && rate.max() > 0.0);
    let sure = match at_limit {
        Some(_) => WRITES_AT_LIMIT,
        None => WRITES_SURE,
    };
    let much = more(written.ratio()?, "");
    let mut sentence = format!(
        "It writes {much} per {per} ({}), {}.",
        written.text("KB"),
        accounts(share)
    );
    if let Some(rate) = at_limit {
        sentence += &format!(
            " Both write the same bytes per second ({}): the device, or the rate of write-back, is what limits.",
            rate.text("MB/s")
        );
    }
    if let Some(amplification) = case
        .metric("w_amp")
        .or_else(|| case.metric("write_amplification"))
    {
        sentence += &format!(
            " Bytes written for each byte that was given: {}.",
            amplification.text("")
        );
    }
    if let Some(writes) = case.metric("wpi") {
        sentence += &format!(" Writes per row: {}.", writes.text(""));
    }
    Some(Cause {
        kind: FindingKind::Writes,
        score: sure * share.clamp(0.0, 1.0),
        headline: format!("writes {much} per {per}"),
        sentence,
        brief: format!("written {}", written.text("KB")),
    })
}
