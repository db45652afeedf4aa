//! Counts of what the load's sessions and the engine's threads do.

use std::collections::BTreeMap;

use engine::Counter;
use words::WaitView;

/// The number of sessions or threads in each state, over the samples of about a second.
#[derive(Debug, Default)]
pub struct SessionStates {
    first_look_ns: Option<u64>,
    views: BTreeMap<WaitView, (f64, BTreeMap<String, u64>)>,
}

impl SessionStates {
    /// Adds samples, the first of them so many nanoseconds into the step: states and the number of
    /// sessions in each.
    pub fn add(
        &mut self,
        at_ns: u64,
        view: WaitView,
        samples: f64,
        states: impl IntoIterator<Item = (String, u64)>,
    ) {
        self.first_look_ns.get_or_insert(at_ns);
        let (all_samples, sessions) = self.views.entry(view).or_default();
        *all_samples += samples;

        for (state, count) in states {
            *sessions.entry(state).or_default() += count;
        }
    }

    /// Returns the time of the first sample since the last call, and the counts since then as
    /// gauges. `None` without a sample.
    pub fn take(&mut self) -> Option<(u64, Vec<Counter>)> {
        let Self { first_look_ns, views } = std::mem::take(self);
        let mut gauges = Vec::new();
        for (view, (samples, sessions)) in views {
            gauges.push(Counter::gauge(view.samples(), samples));
            for (state, count) in sessions {
                gauges.push(Counter::gauge(format!("{}{state}", view.prefix()), count as f64));
            }
        }

        Some((first_look_ns?, gauges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_counted_by_state_until_they_are_taken() {
        let states = |all: &[(&str, u64)]| -> Vec<(String, u64)> {
            all.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let mut counted = SessionStates::default();
        assert_eq!(counted.take(), None);
        let view = WaitView::Engine;
        counted.add(7, view, 1.0, states(&[("CPU", 2), ("IO:WALSync", 1)]));
        counted.add(9, view, 1.0, states(&[("CPU", 3)]));
        let (at_ns, gauges) = counted.take().unwrap();
        let found: Vec<(&str, f64)> =
            gauges.iter().map(|gauge| (gauge.name.as_str(), gauge.value)).collect();
        assert_eq!(at_ns, 7);
        assert_eq!(found, [("wait_samples", 2.0), ("wait.CPU", 5.0), ("wait.IO:WALSync", 1.0)]);
        assert_eq!(counted.take(), None);
        // A sample in which no session worked counts, too.
        counted.add(20, view, 1.0, Vec::new());
        assert_eq!(counted.take().unwrap().1.len(), 1);
    }
}
