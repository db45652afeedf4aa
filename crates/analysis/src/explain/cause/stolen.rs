//! Time that a hypervisor gave to others.

use super::super::FindingKind;
use super::super::case::{Case, Side};
use super::super::thresholds::{STOLEN_POINTS, STOLEN_SURE};
use super::super::words::change;
use super::{Cause, accounts};

/// Another share of the processors' time was there to be used.
pub(super) fn cause(case: &Case<'_>) -> Option<Cause> {
    let stolen = case.pair(Side::stolen)?;
    if 100.0 * stolen.grown().abs() < STOLEN_POINTS || stolen.max() >= 1.0 {
        return None;
    }
    let share = ((1.0 - stolen.value) / (1.0 - stolen.base)).ln() / case.ratio.ln();
    let both = change(100.0 * stolen.base, 100.0 * stolen.value, "% of the time");
    let accounts = match share > 0.0 {
        true => accounts(share),
        false => "which is against the change".to_owned(),
    };
    Some(Cause {
        kind: FindingKind::HostBusy,
        score: STOLEN_SURE * share.clamp(0.0, 1.0),
        headline: "the hypervisor took processors away".to_owned(),
        sentence: format!("The hypervisor took processors away for {both}, {accounts}."),
        brief: format!("stolen by the hypervisor {both}"),
    })
}
