//! The needs of workloads, for the checks and estimates before a run. Each workload brings its own.

mod insert;
mod kv;
mod sysbench;
mod transactions;

use std::time::Duration;

use crate::Workload;

/// Rows per second that a server loads; only for estimates.
const LOAD_ROWS_PER_S: u64 = 60_000;

/// Connections in reserve for observers of a cell.
const OBSERVERS: u32 = 8;

/// The needs of a workload in one cell.
pub trait WorkloadNeeds {
    /// Returns the number of bytes that its tables or keys take, over all clients.
    fn stored_bytes(&self, clients: u32) -> u64;

    /// Returns the time of a step that ends when its work is done.
    fn work_time(&self, step: usize, clients: u32) -> Duration;

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

    /// Returns the speed that [`Self::work_time`] assumes, as text.
    fn assumed_speed(&self) -> String;
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

/// Returns the time of work at a rate.
fn time_of(rows: u64, rows_per_s: u64) -> Duration {
    Duration::from_secs_f64(rows as f64 / rows_per_s as f64)
}

/// Formats a rate with commas.
fn rate_text(rows_per_s: u64) -> String {
    words::grouped(&rows_per_s.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let seconds = |step| insert.needs().work_time(step, 2).as_secs_f64();
        // Each of two clients has a table of its own.
        assert_eq!([seconds(0), seconds(1)], [4.0, 0.8]);
    }
}
