//! The needs of transactions on tables of a script.

use super::{
    AssumedSpeed, LOAD_ROWS_PER_S, Speed, SpeedBasis, WorkTime, WorkloadNeeds, list_assumed,
};
use crate::transactions::Pause;
use crate::{Rates, TestLength, TestRate, Transactions, TransactionsStep, TransactionsStepKind};

/// The space of a row besides its values, with its key; only for estimates.
const ROW_OVERHEAD_BYTES: u64 = 60;
/// Rows per second whose indexes a server creates; only for estimates.
const INDEX_ROWS_PER_S: u64 = LOAD_ROWS_PER_S * 15;
/// Transactions per second of all clients together; only for estimates.
const TRANSACTIONS_PER_S: u64 = 1_000;
/// Bytes that a second of transactions adds, with a client; only for estimates.
const GROWTH_BYTES_PER_S: u64 = 1_000_000;
/// Bytes that a transaction adds; only for estimates.
const GROWTH_BYTES_PER_TRANSACTION: u64 = 1_000;

impl WorkloadNeeds for Transactions {
    /// Includes the old versions that updates leave behind, and the rows that transactions insert.
    fn stored_bytes(&self, clients: u32, rates: &Rates, is_compressed: bool) -> u64 {
        let loaded = self.loaded_bytes(clients, rates, is_compressed);

        let mut grown = 0_u64;
        for step in &self.steps {
            let TransactionsStepKind::Run { length, warmup, .. } = step.kind else { continue };
            let seconds = (warmup + length.time().unwrap_or_default()).as_secs();
            let in_time = seconds * u64::from(clients) * GROWTH_BYTES_PER_S;
            let by_transactions = match length {
                TestLength::Time(_) => 0,
                TestLength::Transactions(count) => count * GROWTH_BYTES_PER_TRANSACTION,
            };
            grown = grown.saturating_add(in_time).saturating_add(by_transactions);
        }
        loaded.saturating_mul(2).saturating_add(grown)
    }

    fn loaded_bytes(&self, _clients: u32, _rates: &Rates, _is_compressed: bool) -> u64 {
        self.script.value_bytes().saturating_add(self.script.rows() * ROW_OVERHEAD_BYTES)
    }

    fn work_time(&self, step: usize, clients: u32, rates: &Rates) -> WorkTime {
        let rows = self.script.rows();
        match &self.steps[step].kind {
            TransactionsStepKind::Run {
                test,
                length: TestLength::Transactions(count),
                rate,
                pauses,
                ..
            } => {
                let asked_per_s = self.asked_per_s(*test, rate.as_ref(), pauses, clients);
                let speed = match asked_per_s {
                    Some(per_s) => Speed { per_s, basis: SpeedBasis::Step },
                    None => Speed::of(&rates.transactions, clients, TRANSACTIONS_PER_S),
                };
                speed.time_of(*count)
            }

            TransactionsStepKind::Index => {
                Speed::of(&rates.index, clients, INDEX_ROWS_PER_S).time_of(rows)
            }
            _ => Speed::of(&rates.load, clients, LOAD_ROWS_PER_S).time_of(rows),
        }
    }

    fn connections(&self, clients: u32) -> u32 {
        clients.max(self.load_connections)
    }

    fn working_connections(&self, clients: u32) -> u32 {
        clients
    }

    fn assumed_speed(&self, rates: &Rates) -> String {
        let speed = |verb, per_s, expected| AssumedSpeed { verb, per_s, what: "rows/s", expected };
        let mut speeds = vec![
            speed("loads", LOAD_ROWS_PER_S, &rates.load),
            speed("indexes", INDEX_ROWS_PER_S, &rates.index),
        ];
        if self.steps.iter().any(TransactionsStep::ends_with_its_speed) {
            let what = "transactions/s";
            speeds.push(AssumedSpeed {
                what,
                ..speed("runs", TRANSACTIONS_PER_S, &rates.transactions)
            });
        }
        list_assumed(&speeds)
    }
}

impl TransactionsStep {
    /// Returns whether its time depends on the speed of the engine alone: it ends after a number of
    /// transactions, and its clients neither have a rate nor wait.
    fn ends_with_its_speed(&self) -> bool {
        match &self.kind {
            TransactionsStepKind::Run { length, rate: None, pauses, .. } => {
                length.time().is_none() && pauses.is_empty()
            }
            _ => false,
        }
    }
}

impl Transactions {
    /// Returns the transactions per second that the clients of a test ask for, by their rate or their
    /// pauses; `None` if only the engine limits them.
    fn asked_per_s(
        &self,
        test: usize,
        rate: Option<&TestRate>,
        pauses: &[Pause],
        clients: u32,
    ) -> Option<f64> {
        if let Some(rate) = rate {
            // As long as the highest rate is not known, the engine limits a share of it, too.
            return Some(rate.per_client(clients)? * f64::from(clients));
        }
        if pauses.is_empty() {
            return None;
        }
        Some(f64::from(clients) / self.mean_pause_s(test, pauses))
    }

    /// Returns the mean time for which a client of a test waits around a transaction, in seconds.
    fn mean_pause_s(&self, test: usize, pauses: &[Pause]) -> f64 {
        let parts = &self.script.tests[test].parts;
        let weights: u32 = parts.iter().map(|(_, weight)| weight).sum();
        let weighted = parts.iter().map(|(transaction, weight)| {
            pauses[*transaction].mean().as_secs_f64() * f64::from(*weight)
        });
        weighted.sum::<f64>() / f64::from(weights)
    }
}
