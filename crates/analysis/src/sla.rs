//! Whether the insert rate that was asked for was had.

use record::Step;

use crate::{Sla, metrics};

/// The share of the rate that must be had.
pub const SLA_SHARE: f64 = 0.95;

/// The insert rate asked for and had, over all clients; `None` in a step without a rate, or without length.
///
/// The field rounds `0.95 * target` to a whole number and the rate to one decimal first; here neither is rounded.
pub fn sla(step: &Step) -> Option<Sla> {
    let target = step.insert_rate_target_rows_per_s?;
    let achieved =
        metrics::rows_inserted_per_second(step).or((step.elapsed_ns > 0).then_some(0.0))?;
    Some(Sla {
        target,
        achieved,
        met: achieved >= SLA_SHARE * target,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use record::Ops;

    use super::*;

    fn achieved(rows: u64, target: f64) -> Sla {
        let ops = BTreeMap::from([(
            "insert".to_owned(),
            Ops {
                rows,
                ..Ops::default()
            },
        )]);
        let step = Step {
            elapsed_ns: 10_000_000_000,
            ops,
            insert_rate_target_rows_per_s: Some(target),
            ..Step::default()
        };
        sla(&step).unwrap()
    }

    #[test]
    fn ninety_five_percent_of_all_clients_rates_meet_the_sla() {
        // 8 clients at 1000 rows/s each, as in the field's q1000.
        assert!(achieved(76_000, 8000.0).met);
        assert!(!achieved(75_999, 8000.0).met);
        assert_eq!(achieved(80_000, 8000.0).achieved, 8000.0);
    }

    #[test]
    fn a_rate_of_which_nothing_was_had_is_missed_and_not_absent() {
        let step = Step {
            elapsed_ns: 1,
            insert_rate_target_rows_per_s: Some(100.0),
            ..Step::default()
        };
        assert!(!sla(&step).unwrap().met);
    }

    #[test]
    fn without_a_rate_there_is_no_sla() {
        assert!(
            sla(&Step {
                elapsed_ns: 1,
                ..Step::default()
            })
            .is_none()
        );
    }
}
