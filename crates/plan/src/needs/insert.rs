//! The needs of the Insert Benchmark.

use super::{
    AssumedSpeed, LOAD_ROWS_PER_S, Speed, SpeedBasis, WorkTime, WorkloadNeeds, list_assumed,
};
use crate::{Insert, InsertStepKind, Rates, Tables, WriteEnd};

/// The size of a row with its three indexes and the free space in B-trees, rounded, as seen in
/// SQLite and PostgreSQL.
const ROW_BYTES: u64 = 260;
/// Rows per second that a server inserts and deletes with indexes; only for estimates.
const WRITE_ROWS_PER_S: u64 = 8_000;
/// Rows per second whose indexes a server creates; only for estimates.
const INDEX_ROWS_PER_S: u64 = LOAD_ROWS_PER_S * 5;

impl WorkloadNeeds for Insert {
    /// Includes deleted rows whose space is not reused yet.
    fn stored_bytes(&self, clients: u32, rates: &Rates, _is_compressed: bool) -> u64 {
        let rows = self.steps.iter().map(|step| rows_of(self, step.kind, clients, rates));
        rows.sum::<u64>() * ROW_BYTES
    }

    fn loaded_bytes(&self, clients: u32, rates: &Rates, _is_compressed: bool) -> u64 {
        let counted = self.steps.iter().filter(|step| has_count_of_rows(step.kind));
        let rows = counted.map(|step| rows_of(self, step.kind, clients, rates));
        rows.sum::<u64>() * ROW_BYTES
    }

    fn work_time(&self, step: usize, clients: u32, rates: &Rates) -> WorkTime {
        let tables = tables(self, clients);

        match self.steps[step].kind {
            InsertStepKind::Load { rows, .. } => {
                Speed::of(&rates.load, clients, LOAD_ROWS_PER_S).time_of(rows * tables)
            }
            InsertStepKind::Write { until, rate } => {
                let speed = write_speed(rate, clients, rates);
                speed.time_of(written(until, speed, tables))
            }
            _ => {
                let speed = Speed::of(&rates.index, clients, INDEX_ROWS_PER_S);
                speed.time_of(self.initial_rows * tables)
            }
        }
    }

    fn connections(&self, clients: u32) -> u32 {
        self.working_connections(clients) + clients * u32::from(self.long_transaction.is_some())
    }

    /// Each client has a connection for queries, one for inserts, and perhaps one for deletes.
    fn working_connections(&self, clients: u32) -> u32 {
        clients * (2 + u32::from(self.delete_per_insert))
    }

    fn has_partitions(&self) -> bool {
        self.partitions > 0
    }

    fn assumed_speed(&self, rates: &Rates) -> String {
        let speed = |verb, per_s, what, expected| AssumedSpeed { verb, per_s, what, expected };
        list_assumed(&[
            speed("loads", LOAD_ROWS_PER_S, "rows/s", &rates.load),
            speed("indexes", INDEX_ROWS_PER_S, "rows/s", &rates.index),
            speed("writes", WRITE_ROWS_PER_S, "rows/s with indexes", &rates.insert),
        ])
    }
}

fn tables(insert: &Insert, clients: u32) -> u64 {
    if insert.tables == Tables::Shared { 1 } else { clients.into() }
}

/// Returns whether a step ends after a number of rows.
fn has_count_of_rows(kind: InsertStepKind) -> bool {
    match kind {
        InsertStepKind::Load { .. } | InsertStepKind::Index { .. } => true,
        InsertStepKind::Write { until, .. } => matches!(until, WriteEnd::Rows(_)),
        InsertStepKind::Query { .. } | InsertStepKind::Settle => false,
    }
}

/// Returns the rows by which a step lets all tables grow, at most.
fn rows_of(insert: &Insert, kind: InsertStepKind, clients: u32, rates: &Rates) -> u64 {
    let tables = tables(insert, clients);

    let written = match kind {
        InsertStepKind::Load { rows, .. } | InsertStepKind::Index { rows, .. } => {
            return rows * tables;
        }
        InsertStepKind::Write { until, rate } => {
            written(until, write_speed(rate, clients, rates), tables)
        }
        InsertStepKind::Query { rate, time, .. } => {
            (rate * time.as_secs_f64() * f64::from(clients)) as u64
        }
        InsertStepKind::Settle => 0,
    };

    // The space of deleted rows is reused sooner or later: the estimate takes half of it.
    written / (1 + u64::from(insert.delete_per_insert))
}

/// Returns the number of rows that a step writes into all tables.
fn written(until: WriteEnd, speed: Speed, tables: u64) -> u64 {
    match until {
        WriteEnd::Rows(rows) => rows * tables,
        WriteEnd::Time(time) => (time.as_secs_f64() * speed.per_s) as u64,
    }
}

/// Returns the speed at which all clients write at a rate for each, or as fast as possible.
fn write_speed(rate: Option<f64>, clients: u32, rates: &Rates) -> Speed {
    match rate {
        Some(rate) => Speed { per_s: rate * f64::from(clients), basis: SpeedBasis::Step },
        None => Speed::of(&rates.insert, clients, WRITE_ROWS_PER_S),
    }
}
