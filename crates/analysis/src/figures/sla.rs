//! Compares the achieved rate with the target rate.

use record::{OpRole, Step};
use serde::Serialize;

use super::quality::WorstResponse;
use crate::figures::operation;

/// The seconds in which a requested rate was reached. A second reaches it with [`SLA_SHARE`] of the
/// rate, less one operation for each connection, which may end in the second before or after.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SlaHistory {
    /// Whole seconds within the time that the step was given.
    pub seconds: usize,
    /// Seconds that reached the rate.
    pub met_seconds: usize,
    /// The same in percent.
    pub met_pct: f64,
    /// The lowest rate of a second, in rows or keys per second.
    pub worst_second: f64,
    /// The first second that missed it, from 0; `None`: there is none.
    pub first_missed_second: Option<usize>,
    /// The most consecutive seconds that missed it.
    pub longest_miss_seconds: usize,
    /// The first of these, from 0.
    pub longest_miss_from: Option<usize>,
    /// The longest response time of a write: from the scheduled time to the reply.
    pub worst_response: Option<WorstResponse>,
}

/// A requested rate, and whether it was reached.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sla {
    /// The kind of operation that has the rate: `insert`, `put`, `event`.
    pub kind: String,
    /// The recorded role of that kind.
    #[serde(skip)]
    pub role: Option<OpRole>,
    /// The target: rows, keys or events per second over all clients.
    pub target: f64,
    /// Rows inserted, keys put or events completed per second, over all clients.
    pub achieved: f64,
    /// `achieved >= 0.95 * target` (`docs/metrics.md`).
    pub met: bool,
    /// The same second by second; `None` in steps of less than a second, and where operations are
    /// too rare for seconds to say anything.
    pub history: Option<SlaHistory>,
}

impl Sla {
    /// Returns the role of the operations that have the rate.
    pub fn role(&self) -> OpRole {
        self.role.unwrap_or_else(|| OpRole::of_kind(&self.kind))
    }
}

/// The share of the rate that must be reached.
pub const SLA_SHARE: f64 = 0.95;

/// Returns the target and the achieved rate of inserts or puts over all clients, or else of the
/// step's main operation. `None` in a step without a requested rate, or without length. The seconds
/// give its history.
///
/// Readers beside a writer may have a rate, too. Then it is theirs, unless only the writer missed its
/// own.
///
/// The rate is over the given time of the step, or up to the last reply of the operations with the
/// rate if that came later. Later replies of reads don't count. The field rounds `0.95 * target` to
/// a whole number and truncates the rate to one decimal first; here both are exact.
pub fn sla(step: &Step) -> Option<Sla> {
    let Some(target) = step.insert_rate_target_rows_per_s else {
        return sla_of_operations(step, step.main_operation()?);
    };

    let kind = operation::writing(step).or_else(|| OpRole::Insert.usual_kind())?;
    let written = sla_of(step, kind, target);

    let reading = step.main_operation().filter(|kind| step.role_of(kind).reads_keys());
    let read = reading.and_then(|kind| sla_of_operations(step, kind));
    match (read, written) {
        (Some(read), Some(written)) if read.met && !written.met => Some(written),
        (Some(read), _) => Some(read),
        (None, written) => written,
    }
}

/// Returns the rate of a kind of operation, with those that its clients mix with it; `None` if it has
/// no requested rate.
fn sla_of_operations(step: &Step, kind: &str) -> Option<Sla> {
    let requested = |kind: &str| step.ops.get(kind).and_then(|ops| ops.rate_target_ops_per_s);
    requested(kind)?;

    let kinds = operation::kinds_of_rate(step, kind).into_iter();
    let target = kinds.filter_map(requested).sum();
    sla_of(step, kind, target)
}

/// Returns the rate that a kind of operation achieved, with those that its clients mix with it.
fn sla_of(step: &Step, kind: &str, target: f64) -> Option<Sla> {
    let role = step.role_of(kind);
    let its_connections = role.connection(kind);
    let connections =
        step.connections.iter().filter(|connection| connection.role == its_connections);
    let elapsed_ns = match step.time_given_ns {
        Some(given_ns) => {
            connections.map(|connection| connection.ended_ns).fold(given_ns, u64::max)
        }
        None => step.elapsed_ns,
    };

    let mut count = 0_u64;
    for other in operation::kinds_of_rate(step, kind) {
        let of_other = step.ops.get(other);
        let added =
            of_other.map_or(0, |ops| if role.has_rate_in_rows() { ops.rows } else { ops.ok });
        // A damaged record may have any numbers.
        count = count.saturating_add(added);
    }
    let achieved = (elapsed_ns > 0).then(|| count as f64 / (elapsed_ns as f64 / 1e9))?;

    Some(Sla {
        kind: kind.to_owned(),
        role: Some(role),
        target,
        achieved,
        met: achieved >= SLA_SHARE * target,
        history: None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use record::{Ops, StepKind};

    use super::*;

    fn achieved(rows: u64, target: f64) -> Sla {
        let ops = BTreeMap::from([("insert".to_owned(), Ops { rows, ..Ops::default() })]);
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
    fn a_late_query_does_not_lower_the_insert_rate_but_a_late_insert_does() {
        let connection = |role: &str, ended_ns| record::Connection {
            role: role.into(),
            ended_ns,
            ..record::Connection::default()
        };
        let step = |insert_ended_ns| Step {
            elapsed_ns: 10_500_000_000,
            time_given_ns: Some(10_000_000_000),
            connections: vec![
                connection("insert", insert_ended_ns),
                connection("query", 10_500_000_000),
            ],
            ops: BTreeMap::from([("insert".to_owned(), Ops { rows: 10_000, ..Ops::default() })]),
            insert_rate_target_rows_per_s: Some(1000.0),
            ..Step::default()
        };
        assert_eq!(sla(&step(9_950_000_000)).unwrap().achieved, 1000.0);
        assert_eq!(sla(&step(12_500_000_000)).unwrap().achieved, 800.0);
    }

    #[test]
    fn puts_at_a_rate_are_counted_to_their_own_last_reply() {
        let connection = |role: &str, ended_ns| record::Connection {
            role: role.into(),
            ended_ns,
            ..record::Connection::default()
        };
        let ops = |rows| Ops { rows, ..Ops::default() };
        let step = Step {
            kind: StepKind::Query,
            main_op: Some("get".into()),
            elapsed_ns: 10_500_000_000,
            time_given_ns: Some(10_000_000_000),
            connections: vec![
                connection("read", 10_500_000_000),
                connection("write", 9_990_000_000),
            ],
            ops: BTreeMap::from([
                ("get".to_owned(), ops(9_000_000)),
                ("put".to_owned(), ops(49_932)),
            ]),
            insert_rate_target_rows_per_s: Some(4993.219),
            ..Step::default()
        };
        let sla = sla(&step).unwrap();
        assert_eq!((sla.kind.as_str(), sla.achieved), ("put", 4993.2));
        assert!(sla.met);
    }

    #[test]
    fn a_rate_of_zero_is_missed_not_absent() {
        let step =
            Step { elapsed_ns: 1, insert_rate_target_rows_per_s: Some(100.0), ..Step::default() };
        assert!(!sla(&step).unwrap().met);
    }

    #[test]
    fn without_a_rate_there_is_no_sla() {
        assert!(sla(&Step { elapsed_ns: 1, ..Step::default() }).is_none());
    }

    #[test]
    fn the_target_rate_of_events_is_in_events() {
        let events = Ops {
            ok: 940,
            // What they read says nothing.
            rows: 94_000,
            rate_target_ops_per_s: Some(100.0),
            ..Ops::default()
        };
        let mut step = Step {
            kind: StepKind::Query,
            main_op: Some("event".into()),
            elapsed_ns: 10_000_000_000,
            ops: BTreeMap::from([("event".to_owned(), events)]),
            ..Step::default()
        };
        let had = sla(&step).unwrap();
        assert_eq!(had.kind.as_str(), "event");
        assert_eq!(had.target, 100.0);
        assert_eq!(had.achieved, 94.0);
        assert!(!had.met);
        if let Some(events) = step.ops.get_mut("event") {
            events.rate_target_ops_per_s = None;
        }
        assert!(sla(&step).is_none(), "as fast as they go");
    }

    #[test]
    fn the_rate_of_a_mix_is_that_of_all_its_transactions() {
        let ops = |ok: u64, rate: f64| Ops {
            ok,
            rate_target_ops_per_s: Some(rate),
            ..Ops::of_role(OpRole::Transaction)
        };
        let step = Step {
            kind: StepKind::Query,
            main_op: Some("order".into()),
            elapsed_ns: 10_000_000_000,
            // Fewer orders than their share, and more payments.
            ops: BTreeMap::from([
                ("order".to_owned(), ops(500, 60.0)),
                ("payment".to_owned(), ops(500, 40.0)),
            ]),
            ..Step::default()
        };
        let had = sla(&step).unwrap();
        assert_eq!((had.target, had.achieved, had.met), (100.0, 100.0, true));
    }

    /// Returns a step of 10 s with a connection of each of these roles, and operations that succeeded
    /// and had a rate.
    fn step_of(roles: [&str; 2], ops: [(&str, OpRole, u64, f64); 2]) -> Step {
        let connection = |role: &str| record::Connection {
            role: role.into(),
            ended_ns: 10_000_000_000,
            ..record::Connection::default()
        };
        let of_role = |(kind, role, ok, rate): (&str, OpRole, u64, f64)| {
            let ops = Ops { ok, rows: ok, rate_target_ops_per_s: Some(rate), ..Ops::of_role(role) };
            (kind.to_owned(), ops)
        };
        Step {
            kind: StepKind::Query,
            main_op: Some("get".into()),
            elapsed_ns: 10_000_000_000,
            time_given_ns: Some(10_000_000_000),
            connections: roles.map(connection).to_vec(),
            ops: BTreeMap::from(ops.map(of_role)),
            ..Step::default()
        }
    }

    #[test]
    fn the_rate_of_clients_that_read_and_write_keys_is_that_of_both() {
        let gets = ("get", OpRole::Get, 4_600, 500.0);
        let puts = ("put", OpRole::Put, 5_400, 500.0);
        let had = sla(&step_of(["read", "read"], [gets, puts])).unwrap();
        assert_eq!((had.kind.as_str(), had.target), ("get", 1000.0));
        assert_eq!((had.achieved, had.met), (1000.0, true));
    }

    #[test]
    fn the_rate_of_readers_is_judged_before_that_of_the_writer_beside_them() {
        let judged = |gets: u64, puts: u64| {
            let of_reads = ("get", OpRole::Get, gets, 500.0);
            let of_writes = ("put", OpRole::Put, puts, 100.0);
            let beside = step_of(["read", "write"], [of_reads, of_writes]);
            let step = Step { insert_rate_target_rows_per_s: Some(100.0), ..beside };
            let sla = sla(&step).unwrap();
            (sla.kind, sla.target, sla.met)
        };
        assert_eq!(judged(5_000, 1_000), ("get".to_owned(), 500.0, true));
        assert_eq!(judged(4_000, 900), ("get".to_owned(), 500.0, false));
        assert_eq!(judged(5_000, 900), ("put".to_owned(), 100.0, false), "only the writer");
    }
}
