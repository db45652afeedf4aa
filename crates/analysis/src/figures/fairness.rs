//! The differences between the ends of a step's clients.

use std::collections::BTreeMap;

use record::{Connection, OpRole, Step, StepKind};
use serde::Serialize;

/// The differences between the ends of a step's clients.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Fairness {
    /// The time at which the first client finished its work, in seconds.
    pub fastest_seconds: f64,
    /// The number of that client, from 0.
    pub fastest_client: u32,
    /// The time at which the last client finished, in seconds.
    pub slowest_seconds: f64,
    /// The number of that client, from 0.
    pub slowest_client: u32,
    /// The difference in seconds.
    pub abs_seconds: f64,
    /// The difference in percent of the fastest.
    pub pct: f64,
    /// The time at which each client finished its work, in the order of their numbers.
    pub clients: Vec<ClientEnd>,
}

/// The time at which a client finished its work.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClientEnd {
    /// The number, from 0.
    pub client: u32,
    /// Seconds since the common start.
    pub seconds: f64,
}

/// Returns the time at which the last selected connection of each client ended, in nanoseconds
/// since the common start.
pub(crate) fn ends(step: &Step, counts: impl Fn(&Connection) -> bool) -> BTreeMap<u32, u64> {
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    for connection in step.connections.iter().filter(|connection| counts(connection)) {
        let end = ends.entry(connection.client).or_default();
        *end = (*end).max(connection.ended_ns);
    }
    ends
}

/// Returns the time at which each client's last connection ended, since the common start. A
/// connection that only holds a transaction open does not count. `None` with fewer than two
/// clients, and in steps of given length.
pub fn fairness(step: &Step) -> Option<Fairness> {
    let does_given_work = match step.kind {
        StepKind::Load | StepKind::Index => true,
        StepKind::Query => step.main_role() == Some(OpRole::Transaction),
        StepKind::Settle => false,
    };
    if !does_given_work || step.time_given_ns.is_some() {
        return None;
    }

    let holding = OpRole::HoldTransaction.facts().connection;
    let ends = ends(step, |connection| Some(connection.role.as_str()) != holding);
    if ends.len() < 2 {
        return None;
    }

    let clients: Vec<ClientEnd> =
        ends.iter().map(|(&client, &ns)| ClientEnd { client, seconds: ns as f64 / 1e9 }).collect();

    // Takes the first of equals, so that a record always gives the same client.
    let fastest = clients.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds))?.clone();
    let slowest = clients.iter().rev().max_by(|a, b| a.seconds.total_cmp(&b.seconds))?.clone();

    let abs_seconds = slowest.seconds - fastest.seconds;
    (fastest.seconds > 0.0).then(|| Fairness {
        fastest_seconds: fastest.seconds,
        fastest_client: fastest.client,
        slowest_seconds: slowest.seconds,
        slowest_client: slowest.client,
        abs_seconds,
        pct: abs_seconds / fastest.seconds * 100.0,
        clients,
    })
}

#[cfg(test)]
mod tests {
    use record::Connection;

    use super::*;

    fn step(kind: StepKind, ends: &[(u32, &str, f64)]) -> Step {
        let connection = |&(client, role, seconds): &(u32, &str, f64)| Connection {
            client,
            role: role.to_owned(),
            ended_ns: (seconds * 1e9) as u64,
            ..Connection::default()
        };
        Step { kind, connections: ends.iter().map(connection).collect(), ..Step::default() }
    }

    #[track_caller]
    fn check(fastest: f64, slowest: f64, abs: &str, pct: &str) {
        let ends = [
            (0, "insert", slowest),
            (1, "insert", fastest),
            (2, "insert", (fastest + slowest) / 2.0),
        ];
        let fairness = fairness(&step(StepKind::Load, &ends)).unwrap();
        assert_eq!(
            (
                format!("{:.0}", fairness.abs_seconds).as_str(),
                format!("{:.1}", fairness.pct).as_str()
            ),
            (abs, pct)
        );
    }

    /// "Tuning Postgres and the Insert Benchmark, round 6", IO-bound l.i1: the runtimes of two of
    /// its configurations and what its table says of them.
    #[test]
    fn the_published_lists_follow_from_the_published_run_times() {
        check(15038.1, 30505.9, "15468", "102.9");
        check(7909.0, 33011.0, "25102", "317.4");
    }

    #[test]
    fn a_client_ends_with_its_last_connection() {
        let ends = [
            (0, "insert", 10.0),
            (0, "delete", 12.0),
            (0, "long-transaction", 99.0),
            (1, "insert", 8.0),
            (1, "delete", 7.0),
        ];
        let fairness = fairness(&step(StepKind::Load, &ends)).unwrap();
        assert_eq!(fairness.fastest_seconds, 8.0);
        assert_eq!(fairness.slowest_seconds, 12.0);
        assert_eq!((fairness.abs_seconds, fairness.pct), (4.0, 50.0));
        assert_eq!((fairness.fastest_client, fairness.slowest_client), (1, 0));
        let ends: Vec<_> = fairness.clients.iter().map(|end| (end.client, end.seconds)).collect();
        assert_eq!(ends, [(0, 12.0), (1, 8.0)]);
    }

    #[test]
    fn it_does_not_apply_to_one_client_or_to_steps_of_given_length() {
        assert!(
            fairness(&step(StepKind::Load, &[(0, "insert", 1.0), (0, "delete", 2.0)])).is_none()
        );
        let two = [(0, "query", 1.0), (1, "query", 2.0)];
        assert!(fairness(&step(StepKind::Query, &two)).is_none());
        assert!(fairness(&step(StepKind::Settle, &two)).is_none());
        // Writes for a time, as in `overwrite`: that its clients end together says nothing.
        let timed = Step {
            time_given_ns: Some(1_000_000_000),
            ..step(StepKind::Load, &[(0, "write", 1.0), (1, "write", 1.001)])
        };
        assert!(fairness(&timed).is_none());
    }
}
