//! Makes remarks on a step from its figures: competition by other programs, failures, and
//! operations that found nothing to do.

use std::collections::BTreeMap;

use record::{Ops, ProcessorEvents, Status, Step};

use crate::figures::{Lag, LagVerdict};

/// The percentage of all processors' time that others may use without a remark. The kernel's own
/// threads took 3% during writes of three engines on two processors.
pub const OTHERS_PERCENT: f64 = 10.0;

/// The share of events that must have found a row to delete.
pub const DELETED_SHARE: f64 = 0.8;

/// The share of the time in which the processor's events must have been counted.
const COUNTED_SHARE: f64 = 0.99;

/// A remark on a step. The crate `report` puts it in words.
#[derive(Clone, Debug, PartialEq)]
pub enum Remark {
    /// Operations failed.
    Failures(FailedOperations),
    /// Other programs used this percentage of all processors' time.
    OtherPrograms(f64),
    /// Events of the processor were counted in this share of the time.
    SharedCounters(f64),
    /// This share of the rows to delete existed.
    NothingToDelete(f64),
    /// Clients outnumber the rows of a table for which they work.
    SharedHomes(SharedHomes),
    /// The lag of a replica grows.
    LagGrows(RisingLag),
    /// The lag of a replica ends far above its middle, but may be bounded.
    LagUndecided(RisingLag),
}

/// The operations of one kind that failed in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedOperations {
    /// The kind.
    pub kind: String,
    /// They failed in the warm-up.
    pub is_in_warm_up: bool,
    /// The number of these operations.
    pub failed: u64,
    /// The number of all operations of this kind.
    pub all: u64,
    /// The classes of their errors.
    pub classes: Vec<String>,
}

/// The rows of a table that several clients share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedHomes {
    /// The table.
    pub table: String,
    /// The number of its rows.
    pub rows: u64,
    /// The number of clients.
    pub clients: u32,
}

/// The lag of a replica in two quarters of a step, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RisingLag {
    /// The lag in the second quarter.
    pub second_ms: f64,
    /// The lag in the last quarter.
    pub last_ms: f64,
}

impl Remark {
    /// Returns the stable name: `host::busy`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Failures(_) => "step::failures",
            Self::OtherPrograms(_) => "host::busy",
            Self::SharedCounters(_) => "host::shared-counters",
            Self::NothingToDelete(_) => "step::nothing-to-delete",
            Self::SharedHomes(_) => "step::shared-homes",
            Self::LagGrows(_) => "replica::lag-grows",
            Self::LagUndecided(_) => "replica::lag-undecided",
        }
    }

    /// Returns the size as a number, so that the worst comes first among remarks of one code.
    pub fn weight(&self) -> f64 {
        match self {
            Self::Failures(failures) => failures.failed as f64 / failures.all as f64,
            Self::OtherPrograms(percent) => *percent,
            Self::SharedCounters(share) | Self::NothingToDelete(share) => 1.0 - share,
            Self::SharedHomes(shared) => f64::from(shared.clients) / shared.rows as f64,
            Self::LagGrows(lag) | Self::LagUndecided(lag) => lag.last_ms - lag.second_ms,
        }
    }
}

/// Returns the remarks on a step with these metrics and this lag of its replicas.
pub(crate) fn remarks(
    step: &Step,
    metrics: &BTreeMap<&'static str, Option<f64>>,
    lag: &Lag,
) -> Vec<Remark> {
    let mut remarks = failures(&step.ops, false);
    remarks.extend(failures(&step.warm_up_ops, true));

    let metric = |name: &str| metrics.get(name).copied().flatten();
    remarks.extend(metric("others%").and_then(others));
    remarks.extend(shared_counters(step));
    remarks.extend(misses(step, metric("rows/event")));
    remarks.extend(shared_homes(step));
    remarks.extend(lag_rises(lag));
    remarks
}

/// Returns the tables with fewer rows than clients that work for them.
fn shared_homes(step: &Step) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for homes in &step.homes {
        if homes.rows > 0 && u64::from(step.clients) > homes.rows {
            remarks.push(Remark::SharedHomes(SharedHomes {
                table: homes.table.clone(),
                rows: homes.rows,
                clients: step.clients,
            }));
        }
    }
    remarks
}

/// Returns the kinds of operations that failed.
fn failures(ops: &BTreeMap<String, Ops>, is_in_warm_up: bool) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (kind, ops) in ops {
        if ops.failed > 0 {
            remarks.push(Remark::Failures(FailedOperations {
                kind: kind.clone(),
                is_in_warm_up,
                failed: ops.failed,
                all: ops.ok + ops.failed,
                classes: ops.errors.keys().cloned().collect(),
            }));
        }
    }
    remarks
}

fn others(percent: f64) -> Option<Remark> {
    (percent > OTHERS_PERCENT).then_some(Remark::OtherPrograms(percent))
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

    (share < COUNTED_SHARE).then_some(Remark::SharedCounters(share))
}

/// Returns whether most deletes of a step about deletes found no row. Other steps, and those that
/// ended early, have none to find.
fn misses(step: &Step, rows_per_event: Option<f64>) -> Option<Remark> {
    if step.status != Status::Complete {
        return None;
    }
    let share = rows_per_event? / step.deletes_per_event?;
    (share < DELETED_SHARE).then_some(Remark::NothingToDelete(share))
}

fn lag_rises(lag: &Lag) -> Option<Remark> {
    let [_, second_ms, _, last_ms] = lag.quarters_ms?;
    let rising = RisingLag { second_ms, last_ms };
    match lag.verdict {
        LagVerdict::Grows => Some(Remark::LagGrows(rising)),
        LagVerdict::Undecided => Some(Remark::LagUndecided(rising)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remarks_of(step: &Step, metrics: &[(&'static str, f64)]) -> Vec<Remark> {
        let metrics = metrics.iter().map(|(name, value)| (*name, Some(*value)));
        let lag = crate::figures::lag(step, &BTreeMap::new());
        remarks(step, &metrics.collect(), &lag)
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
        assert_eq!(remarks_of(&step(600), &[]), [Remark::SharedCounters(0.6)]);
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
        assert_eq!(remarks_of(&step, &[("others%", 77.8)]), [Remark::OtherPrograms(77.8)]);
    }

    #[test]
    fn failures_are_remarked_with_their_class_also_in_the_warm_up() {
        let step = Step { ops: failing(1, 14_745), warm_up_ops: failing(20, 4), ..Step::default() };
        let failures = |is_in_warm_up, failed, all| {
            Remark::Failures(FailedOperations {
                kind: "event".to_owned(),
                is_in_warm_up,
                failed,
                all,
                classes: vec!["duplicate_key".to_owned()],
            })
        };
        let expected = [failures(false, 14_745, 14_746), failures(true, 4, 24)];
        assert_eq!(remarks_of(&step, &[]), expected);
        let sound = Step { ops: failing(20, 0), ..Step::default() };
        assert_eq!(remarks_of(&sound, &[]), []);
    }

    #[test]
    fn clients_that_outnumber_their_homes_are_remarked() {
        let homes = record::HomeRows {
            table: "warehouse".to_owned(),
            rows: 2,
            ..record::HomeRows::default()
        };
        let step = |clients| Step { clients, homes: vec![homes.clone()], ..Step::default() };
        assert_eq!(remarks_of(&step(2), &[]), []);
        let shared = SharedHomes { table: "warehouse".to_owned(), rows: 2, clients: 3 };
        assert_eq!(remarks_of(&step(3), &[]), [Remark::SharedHomes(shared)]);
    }

    #[test]
    fn deletes_without_rows_are_remarked_only_in_steps_about_deletes() {
        let step = |deletes_per_event| Step {
            status: Status::Complete,
            deletes_per_event,
            ..Step::default()
        };
        assert_eq!(remarks_of(&step(Some(1.0)), &[("rows/event", 0.93)]), []);
        let misses = remarks_of(&step(Some(1.0)), &[("rows/event", 0.4)]);
        assert_eq!(misses, [Remark::NothingToDelete(0.4)]);
        assert_eq!(remarks_of(&step(Some(2.0)), &[("rows/event", 1.9)]), []);
        assert_eq!(remarks_of(&step(None), &[("rows/event", 0.4)]), []);
    }
}
