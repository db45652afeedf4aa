//! What the load's sessions do at some moments, as the server says.

use std::collections::BTreeMap;

use crate::Counter;

/// The prefix of the counters of sessions in a state: `wait.IO:WALSync`.
const WAIT: &str = "wait.";
/// The counter of the moments at which sessions were looked at.
const MOMENTS: &str = "wait_moments";

/// The number of sessions in each state, over some moments.
#[derive(Debug, Default)]
pub(crate) struct SessionStates {
    moments: u64,
    sessions: BTreeMap<String, u64>,
}

impl SessionStates {
    /// Adds a moment: rows of a state and the number of sessions in it.
    pub(crate) fn add(&mut self, rows: Vec<Vec<Option<String>>>) {
        self.moments += 1;
        for row in rows {
            let [Some(state), Some(count)] = row.as_slice() else {
                continue;
            };
            let count: u64 = count.parse().unwrap_or(0);
            *self.sessions.entry(state.clone()).or_default() += count;
        }
    }

    /// Returns the counts since the last call as gauges; none if no moment was added.
    pub(crate) fn take(&mut self) -> Vec<Counter> {
        let Self { moments, sessions } = std::mem::take(self);
        let gauge =
            |(state, count): (String, u64)| Counter::gauge(format!("{WAIT}{state}"), count as f64);
        let all = (moments > 0).then(|| Counter::gauge(MOMENTS, moments as f64));
        all.into_iter()
            .chain(sessions.into_iter().map(gauge))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_counted_by_state_until_they_are_taken() {
        let row = |state: &str, count: &str| vec![Some(state.to_owned()), Some(count.to_owned())];
        let mut states = SessionStates::default();
        assert_eq!(states.take(), []);
        states.add(vec![row("CPU", "2"), row("IO:WALSync", "1")]);
        states.add(vec![row("CPU", "3"), vec![None, Some("1".to_owned())]]);
        let gauges = states.take();
        let found: Vec<(&str, f64)> = gauges
            .iter()
            .map(|it| (it.name.as_str(), it.value))
            .collect();
        assert_eq!(
            found,
            [
                ("wait_moments", 2.0),
                ("wait.CPU", 5.0),
                ("wait.IO:WALSync", 1.0)
            ]
        );
        assert_eq!(states.take(), []);
        // A moment at which no session worked counts, too.
        states.add(Vec::new());
        assert_eq!(states.take().len(), 1);
    }
}
