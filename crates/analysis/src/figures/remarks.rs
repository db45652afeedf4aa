//! Makes remarks on a step from its figures: competition by other programs, failures, and
//! operations that found nothing to do.

use std::collections::BTreeMap;

use record::{Ops, ProcessorEvents, Status, Step};
use serde::Serialize;

use crate::figures::{Lag, LagVerdict};

/// The percentage of all processors' time that others may use without a remark. The kernel's own
/// threads took 3 % during writes of three engines on two processors.
const OTHERS_PERCENT: f64 = 10.0;

/// The share of events that must have found a row to delete.
const DELETED_SHARE: f64 = 0.8;

/// The share of the time in which the processor's events must have been counted.
const COUNTED_SHARE: f64 = 0.99;

/// A remark on a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Remark {
    /// A stable name: `host::busy`.
    pub code: &'static str,
    /// The text, which is the same for all steps.
    pub text: String,
    /// The size in this step.
    pub here: String,
    /// The size as a number, so that the worst comes first among remarks of one code.
    #[serde(skip)]
    pub weight: f64,
}

/// Returns the remarks on a step with these metrics and this lag of its replicas.
pub(crate) fn remarks(
    step: &Step,
    metrics: &BTreeMap<&'static str, Option<f64>>,
    lag: &Lag,
) -> Vec<Remark> {
    let metric = |name: &str| metrics.get(name).copied().flatten();

    let failed = [("", &step.ops), ("warm-up: ", &step.warm_up_ops)]
        .into_iter()
        .flat_map(|(when, all)| all.iter().map(move |(kind, ops)| (when, kind, ops)))
        .filter_map(|(when, kind, ops)| failures(when, kind, ops));

    let of_figures = [
        metric("others%").and_then(others),
        shared_counters(step),
        step.deletes_per_event
            .zip(metric("rows/event"))
            .filter(|_| step.status == Status::Complete)
            .and_then(|(wanted, deleted)| misses(deleted / wanted)),
        lag_rises(lag),
    ];

    failed.chain(of_figures.into_iter().flatten()).collect()
}

fn failures(when: &str, kind: &str, ops: &Ops) -> Option<Remark> {
    let all = ops.ok + ops.failed;
    let classes: Vec<&str> = ops.errors.keys().map(String::as_str).collect();

    (ops.failed > 0).then(|| Remark {
        code: "step::failures",
        text: "operations failed: a failed operation does less work, and usually takes less time"
            .to_owned(),
        here: format!("{when}{} of {all} of kind {kind}, {}", ops.failed, classes.join(", ")),
        weight: ops.failed as f64 / all as f64,
    })
}

fn others(percent: f64) -> Option<Remark> {
    (percent > OTHERS_PERCENT).then(|| Remark {
        code: "host::busy",
        text: format!(
            "other programs used more than {OTHERS_PERCENT:.0}% of the processors, which slows down the engine and its \
             clients; stop them and measure again"
        ),
        here: format!("{percent:.0}%"),
        weight: percent,
    })
}

fn shared_counters(step: &Step) -> Option<Remark> {
    let connections = step.connections.iter();
    let events = connections.flat_map(|connection| {
        let server = connection.server_thread.as_ref().map(|thread| thread.events);
        [Some(connection.events), server]
    });

    let times = |events: ProcessorEvents| events.events_enabled_ns.zip(events.events_running_ns);

    let (enabled, running) = events
        .flatten()
        .filter_map(times)
        .fold((0, 0), |sum, times| (sum.0 + times.0, sum.1 + times.1));

    let share = running as f64 / enabled as f64;

    (share < COUNTED_SHARE).then(|| Remark {
        code: "host::shared-counters",
        text: "another program, such as a profiler or the kernel's NMI watchdog, also used the processors' counters, so that \
               instructions, cycles and misses were counted in a part of the time and are extrapolated; stop it for exact \
               figures"
            .to_owned(),
        here: format!("counted in {:.0}% of the time", 100.0 * share),
        weight: 1.0 - share,
    })
}

fn misses(share: f64) -> Option<Remark> {
    (share < DELETED_SHARE).then(|| Remark {
        code: "step::nothing-to-delete",
        text: format!(
            "fewer than {:.0}% of the rows to delete existed: the other deletes cost almost nothing, and a faster target \
             has more of them; load more rows, or shorten the step and its warm-up",
            100.0 * DELETED_SHARE
        ),
        here: format!("{:.0}%", 100.0 * share),
        weight: 1.0 - share,
    })
}

fn lag_rises(lag: &Lag) -> Option<Remark> {
    let [_, second, _, last] = lag.quarters_ms?;
    let (code, text) = match lag.verdict {
        LagVerdict::Grows => (
            "replica::lag-grows",
            "the lag of a replica grows: it can't keep up, and a longer step would end with more lag",
        ),
        LagVerdict::Undecided => (
            "replica::lag-undecided",
            "the lag of a replica ends far above its middle, but may be bounded: make the step longer",
        ),
        _ => return None,
    };

    Some(Remark {
        code,
        text: text.to_owned(),
        here: format!(
            "from {:.1} s in the second quarter to {:.1} s in the last",
            second / 1e3,
            last / 1e3
        ),
        weight: last - second,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remarks_of(step: &Step, metrics: &[(&'static str, f64)]) -> Vec<(&'static str, String)> {
        let metrics = metrics.iter().map(|(name, value)| (*name, Some(*value)));
        let lag = crate::figures::lag(step, &BTreeMap::new());
        remarks(step, &metrics.collect(), &lag)
            .into_iter()
            .map(|remark| (remark.code, remark.here))
            .collect()
    }

    #[test]
    fn shared_counters_are_remarked_with_the_time_that_is_left() {
        let step = |running_ns| Step {
            connections: vec![record::Connection {
                events: ProcessorEvents {
                    events_enabled_ns: Some(1000),
                    events_running_ns: Some(running_ns),
                    ..ProcessorEvents::default()
                },
                ..record::Connection::default()
            }],
            ..Step::default()
        };
        assert_eq!(remarks_of(&step(1000), &[]), []);
        assert_eq!(
            remarks_of(&step(600), &[]),
            [("host::shared-counters", "counted in 60% of the time".to_owned())]
        );
    }

    fn failing(ok: u64, failed: u64) -> BTreeMap<String, Ops> {
        let ops = Ops {
            ok,
            failed,
            errors: BTreeMap::from([("duplicate_key".to_owned(), failed)]),
            ..Ops::default()
        };
        BTreeMap::from([("event".to_owned(), ops)])
    }

    #[test]
    fn other_programs_are_remarked_from_a_tenth_of_the_processors_on() {
        let step = Step::default();
        assert_eq!(remarks_of(&step, &[("others%", 9.9)]), []);
        assert_eq!(remarks_of(&step, &[("others%", 77.8)]), [("host::busy", "78%".to_owned())]);
    }

    #[test]
    fn failures_are_remarked_with_their_class_also_in_the_warm_up() {
        let step = Step { ops: failing(1, 14_745), warm_up_ops: failing(20, 4), ..Step::default() };
        assert_eq!(
            remarks_of(&step, &[]),
            [
                ("step::failures", "14745 of 14746 of kind event, duplicate_key".to_owned()),
                ("step::failures", "warm-up: 4 of 24 of kind event, duplicate_key".to_owned()),
            ]
        );
        let sound = Step { ops: failing(20, 0), ..Step::default() };
        assert_eq!(remarks_of(&sound, &[]), []);
    }

    #[test]
    fn deletes_without_rows_are_remarked_only_in_steps_about_deletes() {
        let step = |deletes_per_event| Step {
            status: Status::Complete,
            deletes_per_event,
            ..Step::default()
        };
        assert_eq!(remarks_of(&step(Some(1.0)), &[("rows/event", 0.93)]), []);
        assert_eq!(
            remarks_of(&step(Some(1.0)), &[("rows/event", 0.4)]),
            [("step::nothing-to-delete", "40%".to_owned())]
        );
        assert_eq!(remarks_of(&step(Some(2.0)), &[("rows/event", 1.9)]), []);
        assert_eq!(remarks_of(&step(None), &[("rows/event", 0.4)]), []);
    }
}
