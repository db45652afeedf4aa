//! Counts of what the load's sessions do, as the engine says.

use std::collections::BTreeMap;

use engine::Counter;
use words::{WAIT_LOOKS, WAIT_PREFIX};

/// The number of sessions in each state, over the looks of about a second.
#[derive(Debug, Default)]
pub struct SessionStates {
    first_look_ns: Option<u64>,
    looks: u64,
    sessions: BTreeMap<String, u64>,
}

impl SessionStates {
    /// Adds a look so many nanoseconds into the step: states and the number of sessions in each.
    pub fn add(&mut self, at_ns: u64, states: Vec<(String, u64)>) {
        self.first_look_ns.get_or_insert(at_ns);
        self.looks += 1;
        for (state, count) in states {
            *self.sessions.entry(state).or_default() += count;
        }
    }

    /// Returns the time of the first look since the last call, and the counts since then as gauges. `None` without a look.
    pub fn take(&mut self) -> Option<(u64, Vec<Counter>)> {
        let Self {
            first_look_ns,
            looks,
            sessions,
        } = std::mem::take(self);
        let gauge = |(state, count): (String, u64)| {
            Counter::gauge(format!("{WAIT_PREFIX}{state}"), count as f64)
        };
        let looks = Counter::gauge(WAIT_LOOKS, looks as f64);
        let all = [looks].into_iter().chain(sessions.into_iter().map(gauge));
        Some((first_look_ns?, all.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_counted_by_state_until_they_are_taken() {
        let states = |all: &[(&str, u64)]| -> Vec<(String, u64)> {
            all.iter()
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect()
        };
        let mut counted = SessionStates::default();
        assert_eq!(counted.take(), None);
        counted.add(7, states(&[("CPU", 2), ("IO:WALSync", 1)]));
        counted.add(9, states(&[("CPU", 3)]));
        let (at_ns, gauges) = counted.take().unwrap();
        let found: Vec<(&str, f64)> = gauges
            .iter()
            .map(|it| (it.name.as_str(), it.value))
            .collect();
        assert_eq!(at_ns, 7);
        assert_eq!(
            found,
            [
                ("wait_looks", 2.0),
                ("wait.CPU", 5.0),
                ("wait.IO:WALSync", 1.0)
            ]
        );
        assert_eq!(counted.take(), None);
        // A look at which no session worked counts, too.
        counted.add(20, Vec::new());
        assert_eq!(counted.take().unwrap().1.len(), 1);
    }
}
