//! What every workload says of its steps: how their data is checked, how they fail, how long settling takes.

use std::time::Duration;

use crate::kinds::Choice;
use crate::quantity::{Number, Quantity, TIME};
use crate::reader::{Context, Section, check_pair};
use crate::spec::{Checks, Terms};

const SETTLE_MOST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Takes them from the table of a workload.
pub(crate) fn read(cx: &mut Context<'_>, section: &mut Section) -> Terms {
    let checks = cx.field(section, "checks", &Choice(Checks::WORDS), Checks::Full);
    let error_limit = cx.field(section, "error-limit", &Quantity::count(0..=u64::MAX), 0);
    let attempts = cx.field(section, "attempts", &Quantity::count(1..=1_000_000), 100);
    let time = Quantity::time(Duration::ZERO..=SETTLE_MOST);
    let at_least = cx.field(section, "settle-at-least", &time, Duration::ZERO);
    let at_most = cx.field(section, "settle-at-most", &time, Duration::from_secs(1200));
    check_pair(
        cx,
        section,
        ["settle-at-least", "settle-at-most"],
        [&at_least, &at_most],
        |time| time.format(&TIME),
    );
    Terms {
        checks: checks.value,
        error_limit: error_limit.value,
        attempts: attempts.value,
        settle_at_least: at_least.value,
        settle_at_most: at_most.value,
    }
}
