//! The needs of sysbench's microbenchmarks.

use std::time::Duration;

use super::{LOAD_ROWS_PER_S, WorkloadNeeds, rate_text, time_of};
use crate::{Sysbench, SysbenchStepKind};

/// The size of a row with its two indexes, doubled for the old versions that updates leave behind.
const ROW_BYTES: u64 = 2 * 230;
/// Rows per second whose indexes a server creates; only for estimates.
const INDEX_ROWS_PER_S: u64 = LOAD_ROWS_PER_S * 15;

impl WorkloadNeeds for Sysbench {
    fn stored_bytes(&self, _clients: u32) -> u64 {
        rows(self) * ROW_BYTES
    }

    fn work_time(&self, step: usize, _clients: u32) -> Duration {
        match self.steps[step].kind {
            SysbenchStepKind::Index => time_of(rows(self), INDEX_ROWS_PER_S),
            _ => time_of(rows(self), LOAD_ROWS_PER_S),
        }
    }

    fn connections(&self, clients: u32) -> u32 {
        clients.max(self.load_connections)
    }

    fn working_connections(&self, clients: u32) -> u32 {
        clients
    }

    fn makes_tables(&self) -> bool {
        self.loads()
    }

    fn assumed_speed(&self) -> String {
        format!("the engine loads {} rows/s", rate_text(LOAD_ROWS_PER_S))
    }
}

/// Returns the number of rows of all tables.
fn rows(sysbench: &Sysbench) -> u64 {
    sysbench.rows * u64::from(sysbench.tables)
}
