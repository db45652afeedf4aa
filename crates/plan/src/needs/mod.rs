//! The needs of workloads, for the checks and estimates before a run. Each workload brings its own.

mod insert;
mod kv;
mod sysbench;
mod transactions;

use std::time::Duration;

use crate::{ExpectedRate, Rates, Workload};

/// Rows per second that a server loads; only for estimates.
const LOAD_ROWS_PER_S: u64 = 60_000;

/// Connections in reserve for observers of a cell.
const OBSERVERS: u32 = 8;

/// The needs of a workload in one cell.
pub trait WorkloadNeeds {
    /// Returns the number of bytes that its tables or keys take, over all clients, in an engine that
    /// compresses them or not.
    fn stored_bytes(&self, clients: u32, rates: &Rates, is_compressed: bool) -> u64;

    /// Returns the bytes of [`Self::stored_bytes`] that steps write for sure: those of the rows or keys
    /// whose number the plan gives, once.
    fn loaded_bytes(&self, clients: u32, rates: &Rates, is_compressed: bool) -> u64;

    /// Returns the time of a step that ends when its work is done.
    fn work_time(&self, step: usize, clients: u32, rates: &Rates) -> WorkTime;

    /// Returns the maximum number of connections that its load opens at a time.
    fn connections(&self, clients: u32) -> u32;

    /// Returns the maximum number of connections that work at a time in a measured step. It
    /// excludes those that load, observe, or only hold a transaction open.
    fn working_connections(&self, clients: u32) -> u32;

    /// Returns the reserve of connections for observers.
    fn observers(&self) -> u32 {
        OBSERVERS
    }

    /// Returns whether one of its steps makes the tables; otherwise they exist.
    fn makes_tables(&self) -> bool {
        true
    }

    /// Returns whether its tables have partitions.
    fn has_partitions(&self) -> bool {
        false
    }

    /// Returns the speeds that [`Self::work_time`] assumes where `rates` have none, as text; empty if
    /// they have all.
    fn assumed_speed(&self, rates: &Rates) -> String;
}

/// The time of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkTime {
    /// The time.
    pub time: Duration,
    /// The basis of the speed.
    pub basis: SpeedBasis,
}

/// The basis of a speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeedBasis {
    /// The rate at which a step writes, which the plan gives.
    Step,
    /// The rates that the plan expects.
    Rates,
    /// A constant, the same for all engines and numbers of clients.
    Assumed,
}

/// A number of rows or keys per second.
#[derive(Clone, Copy)]
struct Speed {
    per_s: f64,
    basis: SpeedBasis,
}

impl Speed {
    /// Returns the speed that the plan expects, or else the constant `assumed`.
    fn of(expected: &ExpectedRate, clients: u32, assumed: u64) -> Self {
        match expected.with_clients(clients) {
            Some(per_s) => Self { per_s, basis: SpeedBasis::Rates },
            None => Self { per_s: assumed as f64, basis: SpeedBasis::Assumed },
        }
    }

    /// Returns the time of work at this speed. No time is longer than a thousand years.
    fn time_of(self, rows: u64) -> WorkTime {
        const MOST_S: f64 = 1_000.0 * 365.25 * 86_400.0;
        let seconds = (rows as f64 / self.per_s).min(MOST_S);
        WorkTime { time: Duration::from_secs_f64(seconds), basis: self.basis }
    }
}

/// A speed that is a constant, with what the engine does at it: `("loads", 60_000, "rows/s")`.
struct AssumedSpeed<'r> {
    verb: &'static str,
    per_s: u64,
    what: &'static str,
    /// The rate by which a plan replaces it.
    expected: &'r ExpectedRate,
}

/// Lists the speeds that no rate of the plan replaces.
fn list_assumed(speeds: &[AssumedSpeed<'_>]) -> String {
    let mut texts = Vec::new();
    for speed in speeds.iter().filter(|speed| speed.expected.rates.is_empty()) {
        let per_s = words::grouped(&speed.per_s.to_string());
        texts.push(format!("{} {per_s} {}", speed.verb, speed.what));
    }

    match texts.pop() {
        None => String::new(),
        Some(only) if texts.is_empty() => format!("the engine {only}"),
        Some(last) => format!("the engine {}, and {last}", texts.join(", ")),
    }
}

impl Workload {
    /// Returns the workload's needs.
    pub fn needs(&self) -> &dyn WorkloadNeeds {
        match self {
            Self::Insert(insert) => insert,
            Self::Kv(kv) => kv,
            Self::Sysbench(sysbench) => sysbench,
            Self::Transactions(transactions) => transactions,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClientRate;

    /// Returns the workload of a plan that has its table and a build.
    fn workload(table: &str, build: &str) -> Workload {
        let text = format!("[workload.{table}\n[build.a]\n{build}\n");
        let (plan, _) = crate::parse("plan.toml", &text, &[]).unwrap();
        plan.variants[0].workload.clone()
    }

    #[test]
    fn each_workload_brings_its_connections() {
        let sqlite = "sqlite = \"bundled\"";
        let of = |table: &str, build: &str| {
            let workload = workload(table, build);
            let needs = workload.needs();
            (needs.connections(4), needs.working_connections(4), needs.observers())
        };
        assert_eq!(of("insert]", sqlite), (12, 12, OBSERVERS));
        assert_eq!(of("insert]\ndelete-per-insert = false", sqlite), (8, 8, OBSERVERS));
        // The connections that hold a transaction open do not work.
        assert_eq!(of("insert]\nlong-transaction = \"9s\"", sqlite), (16, 12, OBSERVERS));
        assert_eq!(of("kv]", "rocksdb = \"/l.so\""), (5, 5, 0));
        // More connections load than run the tests.
        assert_eq!(of("sysbench]\nload-connections = 7", sqlite), (7, 4, OBSERVERS));
    }

    #[test]
    fn the_time_of_a_step_that_ends_with_its_work_follows_from_its_rows() {
        let table = "insert]\ninitial-rows = 120000\nsteps = [\"l.i0\", \"l.x\"]";
        let insert = workload(table, "sqlite = \"bundled\"");
        let seconds = |step, rates: &Rates| {
            let work = insert.needs().work_time(step, 2, rates);
            (work.time.as_secs_f64(), work.basis)
        };
        // Each of two clients has a table of its own.
        let none = Rates::default();
        let assumed = SpeedBasis::Assumed;
        assert_eq!([seconds(0, &none), seconds(1, &none)], [(4.0, assumed), (0.8, assumed)]);

        let load = ExpectedRate { rates: vec![ClientRate { clients: Some(4), per_s: 24_000.0 }] };
        let rates = Rates { load, ..none };
        let expected = [seconds(0, &rates), seconds(1, &rates)];
        assert_eq!(expected, [(10.0, SpeedBasis::Rates), (0.8, assumed)]);
    }

    #[test]
    fn values_that_compress_need_less_space_in_an_engine_that_compresses() {
        let kv = workload(
            "kv]\nkeys = \"1M\"\nvalue-size = 400\ncompression-ratio = 0.25",
            "rocksdb = \"/l.so\"",
        );
        let bytes = |is_compressed| kv.needs().stored_bytes(1, &Rates::default(), is_compressed);
        assert_eq!([bytes(true), bytes(false)], [240_000_000, 840_000_000]);
    }

    #[test]
    fn only_speeds_that_the_plan_does_not_expect_are_named() {
        let any = |per_s| ExpectedRate { rates: vec![ClientRate { clients: None, per_s }] };
        let insert = workload("insert]", "sqlite = \"bundled\"");
        let mut rates = Rates { load: any(9.0), ..Rates::default() };
        assert_eq!(
            insert.needs().assumed_speed(&rates),
            "the engine indexes 300,000 rows/s, and writes 8,000 rows/s with indexes"
        );
        (rates.index, rates.insert) = (any(9.0), any(9.0));
        assert_eq!(insert.needs().assumed_speed(&rates), "");
    }
}
