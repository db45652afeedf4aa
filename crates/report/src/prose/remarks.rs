//! Remarks on steps, in words.

use analysis::counted;
use analysis::figures::{DELETED_SHARE, OTHERS_PERCENT, Remark, RisingLag, SharedHomes};

/// The text on operations that failed.
const FAILURES: &str =
    "operations failed: a failed operation does less work, and usually takes less time";

/// The text on processors' counters that another program used.
const SHARED_COUNTERS: &str = "another program, such as a profiler or the kernel's NMI watchdog, also used the \
    processors' counters, so that instructions, cycles and misses were counted in a part of the time and are \
    extrapolated; stop it for exact figures";

/// The text on clients that outnumber the rows for which they work.
const SHARED_HOMES: &str = "clients outnumber the rows for which they work, so that several wait for the same rows; \
    raise `scale` for fewer waits for locks";

/// The text on a lag that grows.
const LAG_GROWS: &str =
    "the lag of a replica grows: it cannot keep up, and a longer step would end with more lag";

/// The text on a lag that may grow.
const LAG_UNDECIDED: &str =
    "the lag of a replica ends far above its middle, but may be bounded: make the step longer";

/// Returns the text of a remark, which is the same for all steps.
pub(crate) fn text(remark: &Remark) -> String {
    match remark {
        Remark::Failures(_) => FAILURES.to_owned(),
        Remark::OtherPrograms(_) => other_programs(),
        Remark::SharedCounters(_) => SHARED_COUNTERS.to_owned(),
        Remark::NothingToDelete(_) => nothing_to_delete(),
        Remark::SharedHomes(_) => SHARED_HOMES.to_owned(),
        Remark::LagGrows(_) => LAG_GROWS.to_owned(),
        Remark::LagUndecided(_) => LAG_UNDECIDED.to_owned(),
    }
}

/// Returns the text on other programs, with the share that they may use.
fn other_programs() -> String {
    format!(
        "other programs used more than {OTHERS_PERCENT:.0}% of the processors, which slows down the engine and its \
         clients; stop them and measure again"
    )
}

/// Returns the text on rows that were not there to delete, with the share that must be.
fn nothing_to_delete() -> String {
    format!(
        "fewer than {:.0}% of the rows to delete existed: the other deletes cost almost nothing, and a faster target \
         has more of them; load more rows, or shorten the step and its warm-up",
        100.0 * DELETED_SHARE
    )
}

/// Returns the size of a remark in its step.
pub(crate) fn size(remark: &Remark) -> String {
    match remark {
        Remark::Failures(failures) => {
            let when = if failures.is_in_warm_up { "warm-up: " } else { "" };
            let classes = failures.classes.join(", ");
            format!(
                "{when}{} of {} of kind {}, {classes}",
                failures.failed, failures.all, failures.kind
            )
        }
        Remark::OtherPrograms(percent) => format!("{percent:.0}%"),
        Remark::SharedCounters(share) => {
            format!("counted in {:.0}% of the time", 100.0 * share)
        }
        Remark::NothingToDelete(share) => format!("{:.0}%", 100.0 * share),
        Remark::SharedHomes(shared) => {
            let SharedHomes { table, rows, clients } = shared;
            let rows = counted(usize::try_from(*rows).unwrap_or(usize::MAX), "row");
            format!("{clients} clients for {rows} of {table}")
        }
        Remark::LagGrows(lag) | Remark::LagUndecided(lag) => rising(*lag),
    }
}

fn rising(lag: RisingLag) -> String {
    format!(
        "from {:.1} s in the second quarter to {:.1} s in the last",
        lag.second_ms / 1e3,
        lag.last_ms / 1e3
    )
}

#[cfg(test)]
mod tests {
    use analysis::figures::FailedOperations;

    use super::*;

    #[test]
    fn a_remark_has_its_size_in_the_step() {
        let failures = |is_in_warm_up, failed, all| {
            Remark::Failures(FailedOperations {
                kind: "event".to_owned(),
                is_in_warm_up,
                failed,
                all,
                classes: vec!["deadlock".to_owned(), "duplicate_key".to_owned()],
            })
        };
        let shared = SharedHomes { table: "warehouse".to_owned(), rows: 1, clients: 4 };
        let lag = RisingLag { second_ms: 1230.0, last_ms: 4560.0 };
        for (remark, expected) in [
            (
                failures(false, 14_745, 14_746),
                "14745 of 14746 of kind event, deadlock, duplicate_key",
            ),
            (failures(true, 4, 24), "warm-up: 4 of 24 of kind event, deadlock, duplicate_key"),
            (Remark::OtherPrograms(77.8), "78%"),
            (Remark::SharedCounters(0.6), "counted in 60% of the time"),
            (Remark::NothingToDelete(0.4), "40%"),
            (Remark::SharedHomes(shared), "4 clients for 1 row of warehouse"),
            (Remark::LagGrows(lag), "from 1.2 s in the second quarter to 4.6 s in the last"),
            (Remark::LagUndecided(lag), "from 1.2 s in the second quarter to 4.6 s in the last"),
        ] {
            assert_eq!(size(&remark), expected);
        }
    }
}
