//! The events of an engine's log during a step.

use std::collections::BTreeMap;

use record::{LogEvent, Step, TurnRow};
use serde::Serialize;

use super::target_clock::{TargetClock, signed};

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
    /// The sum of their durations in seconds by the target's clock, also outside of the step; `None`
    /// if the log tells none.
    pub seconds: Option<f64>,
    /// The number of bytes that they wrote; `None` if the log does not tell it.
    pub bytes: Option<f64>,
}

/// Returns the events during a step with these turns. Times since it began, and durations, are by the
/// target's clock: without the time in which the target was frozen.
pub(crate) fn of_step(step: &Step, turns: &[TurnRow], events: &[LogEvent]) -> StepEvents {
    let start = signed(step.started_unix_ns);
    let clock = TargetClock { turns, elapsed_ns: signed(step.elapsed_ns) };
    let span = clock.host_span_ns();

    let mut found = StepEvents::default();
    for event in events {
        let host_start = event.unix_ns.saturating_sub(start);
        let host_end = host_start.saturating_add(event.duration_ns.unwrap_or(0));
        if host_start >= span || host_end < 0 {
            continue;
        }

        let at = clock.own_ns(host_start);
        let own_ns = clock.own_ns(host_end).saturating_sub(at);
        let duration_ns = event.duration_ns.map(|_| own_ns);

        let totals = found.kinds.entry(event.kind.clone()).or_default();
        totals.count += 1 + u64::try_from(event.more).unwrap_or(0);
        if let Some(ns) = duration_ns {
            *totals.seconds.get_or_insert(0.0) += ns as f64 / 1e9;
        }
        if let Some(bytes) = event.bytes {
            *totals.bytes.get_or_insert(0.0) += bytes as f64;
        }

        found.all.push(LogEvent { unix_ns: at, duration_ns, ..event.clone() });
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
        let found = of_step(&step, &[], &log);
        let at: Vec<i64> = found.all.iter().map(|it| it.unix_ns).collect();
        assert_eq!(at, [-20, 20]);
        let expected = EventTotals { count: 7, seconds: Some(30e-9), bytes: None };
        assert_eq!(found.kinds["flush"], expected);
    }

    #[test]
    fn events_in_all_turns_of_a_step_count_by_the_targets_clock() {
        let turn =
            |at_ns, began_ns| TurnRow { at_ns, began_ns, length_ns: 10, ..TurnRow::default() };
        let turns = [turn(0, 0), turn(40, 10), turn(80, 20)];
        let step = Step { started_unix_ns: 100, elapsed_ns: 30, ..Step::default() };
        let flush = |unix_ns, duration_ns| LogEvent {
            unix_ns,
            kind: "flush".into(),
            duration_ns: Some(duration_ns),
            ..LogEvent::default()
        };
        // The second goes on while the target is frozen twice; the last is after the step.
        let log = [flush(102, 3), flush(104, 80), flush(183, 2), flush(191, 2)];

        let found = of_step(&step, &turns, &log);
        let shown: Vec<(i64, Option<i64>)> =
            found.all.iter().map(|event| (event.unix_ns, event.duration_ns)).collect();
        assert_eq!(shown, [(2, Some(3)), (4, Some(20)), (23, Some(2))]);
        assert_eq!(found.kinds["flush"].count, 3);
        let seconds = found.kinds["flush"].seconds.unwrap();
        assert!((seconds - 25e-9).abs() < 1e-12, "{seconds}");
    }
}
