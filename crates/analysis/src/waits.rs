//! The states of the load's sessions, as the engine reported them.

use record::Step;
use words::{WAIT_LOOKS, WAIT_PREFIX};

use crate::{Series, SessionState};

/// Returns the states of a step's sessions, the most frequent first. `op_time_us` is the time of an operation.
pub(crate) fn waits(step: &Step, series: &Series, op_time_us: Option<f64>) -> Vec<SessionState> {
    let sum = |name: &str| -> f64 {
        let values = series.engine.get(name).map(|it| &it.values);
        values.into_iter().flatten().flatten().sum()
    };
    let looks = sum(WAIT_LOOKS) * step.connections.len() as f64;
    if looks == 0.0 {
        return Vec::new();
    }
    let names = series.engine.keys();
    let states = names.filter_map(|name| {
        let share = sum(name) / looks;
        Some(SessionState {
            name: name.strip_prefix(WAIT_PREFIX)?.to_owned(),
            percent: 100.0 * share,
            us_per_op: op_time_us.map(|us| us * share),
        })
    });
    let mut states: Vec<SessionState> = states.filter(|it| it.percent > 0.0).collect();
    states.sort_by(|a, b| b.percent.total_cmp(&a.percent));
    states
}

#[cfg(test)]
mod tests {
    use record::Connection;

    use super::*;
    use crate::CounterSeries;

    #[test]
    fn states_are_shares_of_all_connections_at_all_looks() {
        let mut series = Series::default();
        let mut add = |name: &str, values: &[Option<f64>]| {
            let values = values.to_vec();
            let counter = CounterSeries {
                values,
                ..CounterSeries::default()
            };
            series.engine.insert(name.to_owned(), counter);
        };
        add(WAIT_LOOKS, &[Some(10.0), Some(10.0)]);
        add("wait.IO:WALSync", &[None, Some(4.0)]);
        add("wait.running", &[Some(15.0), Some(13.0)]);
        add("commits", &[Some(99.0), Some(99.0)]);
        let step = Step {
            connections: vec![Connection::default(); 2],
            ..Step::default()
        };
        let states = waits(&step, &series, Some(50.0));
        let found: Vec<_> = states
            .iter()
            .map(|it| (it.name.as_str(), it.percent, it.us_per_op))
            .collect();
        let expected = [
            ("running", 70.0, Some(35.0)),
            ("IO:WALSync", 10.0, Some(5.0)),
        ];
        assert_eq!(found, expected);
        assert_eq!(waits(&step, &Series::default(), Some(50.0)), []);
    }
}
