//! Processors that others on the host used, or the kernel for them: what is neither the engine's nor its clients'.

use super::super::FindingKind;
use super::super::case::{Case, Side};
use super::super::thresholds::{OTHERS_POINTS, OTHERS_SURE, WHOLE};
use super::super::words::{change, change_us_of};
use super::{Cause, accounts, more_or};

/// Others left another share of the processors. Per second, not per operation: who works on beside it uses more CPU per
/// operation whatever made operations slower.
pub(super) fn cause(case: &Case<'_>) -> Option<Cause> {
    let others = case.pair(Side::others)?;
    if 100.0 * others.grown().abs() < OTHERS_POINTS || others.max() >= 1.0 {
        return None;
    }
    let share = ((1.0 - others.value) / (1.0 - others.base)).ln() / case.ratio.ln();
    let both = change(
        100.0 * others.base,
        100.0 * others.value,
        "% of the processors",
    );
    let mut sentence = format!(
        "Neither engine nor clients, but others or the kernel for them, used {both}, {}.",
        match share {
            share if share > *WHOLE.end() => "more than the change asks for".to_owned(),
            share if share > 0.0 => accounts(share),
            _ => "which is against the change".to_owned(),
        }
    );
    if let Some(own) = case.pair(Side::own_cpu_us) {
        sentence += &format!(
            " Engine and clients together: {}.",
            change_us_of(own.base, own.value, &format!("per {}", case.noun()))
        );
    }
    Some(Cause {
        kind: FindingKind::HostBusy,
        score: OTHERS_SURE * share.clamp(0.0, 1.0),
        headline: format!("others on the host used {} CPU", more_or(others, "less")),
        sentence,
        brief: format!("CPU of others {both}"),
    })
}
