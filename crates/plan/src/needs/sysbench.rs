//! The needs of sysbench's microbenchmarks.

use super::{AssumedSpeed, LOAD_ROWS_PER_S, Speed, WorkTime, WorkloadNeeds, list_assumed};
use crate::{Rates, Sysbench, SysbenchStepKind};

/// The size of a row with its two indexes.
const ROW_BYTES: u64 = 230;
/// Rows per second whose indexes a server creates; only for estimates.
const INDEX_ROWS_PER_S: u64 = LOAD_ROWS_PER_S * 15;

impl WorkloadNeeds for Sysbench {
    fn stored_bytes(&self, _clients: u32, _rates: &Rates, _is_compressed: bool) -> u64 {
        // Twice, for the old versions that updates leave behind.
        2 * rows(self) * ROW_BYTES
    }

    fn loaded_bytes(&self, _clients: u32, _rates: &Rates, _is_compressed: bool) -> u64 {
        rows(self) * ROW_BYTES
    }

    fn work_time(&self, step: usize, clients: u32, rates: &Rates) -> WorkTime {
        let speed = match self.steps[step].kind {
            SysbenchStepKind::Index => Speed::of(&rates.index, clients, INDEX_ROWS_PER_S),
            _ => Speed::of(&rates.load, clients, LOAD_ROWS_PER_S),
        };
        speed.time_of(rows(self))
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

    fn assumed_speed(&self, rates: &Rates) -> String {
        let speed = |verb, per_s, expected| AssumedSpeed { verb, per_s, what: "rows/s", expected };
        list_assumed(&[
            speed("loads", LOAD_ROWS_PER_S, &rates.load),
            speed("indexes", INDEX_ROWS_PER_S, &rates.index),
        ])
    }
}

/// Returns the number of rows of all tables.
fn rows(sysbench: &Sysbench) -> u64 {
    sysbench.rows * u64::from(sysbench.tables)
}
