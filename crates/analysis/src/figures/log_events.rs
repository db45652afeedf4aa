//! The events of an engine's log during a step.

use std::collections::BTreeMap;

use record::{LogEvent, Step};
use serde::Serialize;

/// The events of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StepEvents {
    /// The totals of each kind of event.
    #[serde(flatten)]
    pub kinds: BTreeMap<String, EventTotals>,
    /// All events, in the order in which they began. Left out of JSON: the record has them as
    /// Parquet.
    #[serde(skip)]
    pub all: Vec<LogEvent>,
}

/// The totals of one kind of event.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EventTotals {
    /// The number of events.
    pub count: u64,
    /// The sum of their durations in seconds, also outside of the step; `None` if the log tells
    /// none.
    pub seconds: Option<f64>,
    /// The number of bytes that they wrote; `None` if the log does not tell it.
    pub bytes: Option<f64>,
}

/// Returns the events during a step, with times since it began.
pub(crate) fn of_step(step: &Step, events: &[LogEvent]) -> StepEvents {
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let (start, elapsed) = (signed(step.started_unix_ns), signed(step.elapsed_ns));

    let mut found = StepEvents::default();
    for event in events {
        let at = event.unix_ns.saturating_sub(start);
        if at >= elapsed || at.saturating_add(event.duration_ns.unwrap_or(0)) < 0 {
            continue;
        }

        let totals = found.kinds.entry(event.kind.clone()).or_default();
        totals.count += 1 + u64::try_from(event.more).unwrap_or(0);
        if let Some(ns) = event.duration_ns {
            *totals.seconds.get_or_insert(0.0) += ns as f64 / 1e9;
        }
        if let Some(bytes) = event.bytes {
            *totals.bytes.get_or_insert(0.0) += bytes as f64;
        }

        found.all.push(LogEvent { unix_ns: at, ..event.clone() });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_reach_into_the_step_count() {
        let event = |unix_ns, duration_ns| LogEvent {
            unix_ns,
            kind: "flush".into(),
            duration_ns,
            ..LogEvent::default()
        };
        let step = Step { started_unix_ns: 100, elapsed_ns: 50, ..Step::default() };
        let log = [
            event(80, None),
            event(80, Some(19)),
            event(80, Some(30)),
            LogEvent { more: 5, ..event(120, None) },
            event(150, None),
        ];
        let found = of_step(&step, &log);
        let at: Vec<i64> = found.all.iter().map(|it| it.unix_ns).collect();
        assert_eq!(at, [-20, 20]);
        let expected = EventTotals { count: 7, seconds: Some(30e-9), bytes: None };
        assert_eq!(found.kinds["flush"], expected);
    }
}
