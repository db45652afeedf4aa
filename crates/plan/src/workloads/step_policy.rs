//! Reads the keys that all workloads share: checks of steps, the limits at which steps fail, and
//! the time of settling.

use std::time::Duration;

use crate::reading::context::{Context, Section};
use crate::reading::quantity::Quantity;
use crate::reading::value_kinds::Choice;
use crate::spec::{Checks, StepPolicy};

const SETTLE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

const LAG_AT_MOST: Duration = Duration::from_secs(1);

/// Takes these keys from the table of a workload, whose engines may have replicas.
pub(crate) fn read(cx: &mut Context<'_>, section: &mut Section, has_replicas: bool) -> StepPolicy {
    let time = Quantity::time(Duration::ZERO..=SETTLE_MAX);
    let checks = cx.value(section, "checks", &Choice(Checks::NAMES), Checks::Full);
    let error_limit = cx.value(section, "error-limit", &Quantity::count(0..=u64::MAX), 0);
    let attempts = cx.value(section, "attempts", &Quantity::count(1..=1_000_000), 100);

    let keys = ["settle-at-least", "settle-at-most"];
    let defaults = [Duration::ZERO, Duration::from_secs(1200)];
    let (settle_at_least, settle_at_most) = cx.pair(section, keys, &time, defaults);

    let lag_at_most = if has_replicas {
        cx.value(section, "lag-at-most", &time, LAG_AT_MOST)
    } else {
        LAG_AT_MOST
    };

    StepPolicy { checks, error_limit, attempts, settle_at_least, settle_at_most, lag_at_most }
}
