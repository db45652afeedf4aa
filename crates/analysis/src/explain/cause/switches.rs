//! Context switches per operation.

use super::super::FindingKind;
use super::super::case::{Case, Pair};
use super::super::thresholds::{
    NEGLIGIBLE, SWITCH_US, SWITCHES_FACTOR, SWITCHES_MANY_SURE, SWITCHES_SURE,
};
use super::super::words::{change, times};
use super::{Cause, more_or};

/// More context switches per operation.
pub(super) fn cause(case: &Case<'_>) -> Option<Cause> {
    let switches = case.metric("cspq")?;
    let us = Pair {
        base: switches.base * SWITCH_US,
        value: switches.value * SWITCH_US,
    };
    if switches.is_same() || case.share_of_time(us) < NEGLIGIBLE {
        return None;
    }
    let ratio = switches.ratio()?;
    let share = case.share(switches)?.clamp(0.0, 1.0);
    let is_many = ratio.max(1.0 / ratio) >= SWITCHES_FACTOR;
    let sure = if is_many {
        SWITCHES_MANY_SURE
    } else {
        SWITCHES_SURE
    };
    let per = case.noun();
    let both = change(switches.base, switches.value, &format!("/{per}"));
    let why = match switches.grown() > 0.0 {
        true => {
            "threads wait for each other more often, for a lock or for another thread of the server"
        }
        false => "threads wait for each other less often",
    };
    Some(Cause {
        kind: FindingKind::ContextSwitches,
        score: sure * share,
        headline: format!("{} the context switches per {per}", times(ratio)),
        sentence: format!(
            "There are {} context switches per {per} ({both}): {why}.",
            more_or(switches, "fewer"),
        ),
        brief: format!("context switches {both}"),
    })
}
