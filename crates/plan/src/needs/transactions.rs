//! The needs of transactions on tables of a script.

use super::{AssumedSpeed, LOAD_ROWS_PER_S, Speed, WorkTime, WorkloadNeeds, list_assumed};
use crate::{Rates, Transactions, TransactionsStepKind};

/// The space of a row besides its values, with its key; only for estimates.
const ROW_OVERHEAD_BYTES: u64 = 60;
/// Rows per second whose indexes a server creates; only for estimates.
const INDEX_ROWS_PER_S: u64 = LOAD_ROWS_PER_S * 15;
/// Bytes that a second of transactions adds, with a client; only for estimates.
const GROWTH_BYTES_PER_S: u64 = 1_000_000;

impl WorkloadNeeds for Transactions {
    /// Includes the old versions that updates leave behind, and the rows that transactions insert.
    fn stored_bytes(&self, clients: u32, _rates: &Rates, _is_compressed: bool) -> u64 {
        let rows = self.script.rows();
        let loaded = self.script.value_bytes().saturating_add(rows * ROW_OVERHEAD_BYTES);

        let times = self.steps.iter().map(|step| match step.kind {
            TransactionsStepKind::Run { time, warmup, .. } => (time + warmup).as_secs(),
            _ => 0,
        });
        let grown = times.sum::<u64>() * u64::from(clients) * GROWTH_BYTES_PER_S;
        loaded.saturating_mul(2).saturating_add(grown)
    }

    fn work_time(&self, step: usize, clients: u32, rates: &Rates) -> WorkTime {
        let speed = match self.steps[step].kind {
            TransactionsStepKind::Index => Speed::of(&rates.index, clients, INDEX_ROWS_PER_S),
            _ => Speed::of(&rates.load, clients, LOAD_ROWS_PER_S),
        };
        speed.time_of(self.script.rows())
    }

    fn connections(&self, clients: u32) -> u32 {
        clients.max(self.load_connections)
    }

    fn working_connections(&self, clients: u32) -> u32 {
        clients
    }

    fn assumed_speed(&self, rates: &Rates) -> String {
        let speed = |verb, per_s, expected| AssumedSpeed { verb, per_s, what: "rows/s", expected };
        list_assumed(&[
            speed("loads", LOAD_ROWS_PER_S, &rates.load),
            speed("indexes", INDEX_ROWS_PER_S, &rates.index),
        ])
    }
}
