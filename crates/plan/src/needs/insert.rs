//! The needs of the Insert Benchmark.

use std::time::Duration;

use super::{LOAD_ROWS_PER_S, WorkloadNeeds, rate_text, time_of};
use crate::{Insert, InsertStepKind, Tables, WriteEnd};

/// The size of a row with its three indexes and the free space in B-trees, rounded, as seen in
/// SQLite and PostgreSQL.
const ROW_BYTES: u64 = 260;
/// Rows per second that a server inserts and deletes with indexes; only for estimates.
const WRITE_ROWS_PER_S: u64 = 8_000;
/// Rows per second whose indexes a server creates; only for estimates.
const INDEX_ROWS_PER_S: u64 = LOAD_ROWS_PER_S * 5;

impl WorkloadNeeds for Insert {
    /// Includes deleted rows whose space is not reused yet.
    fn stored_bytes(&self, clients: u32) -> u64 {
        let rows = self.steps.iter().map(|step| rows_of(self, step.kind, clients));
        rows.sum::<u64>() * ROW_BYTES
    }

    fn work_time(&self, step: usize, clients: u32) -> Duration {
        let tables = tables(self, clients);

        match self.steps[step].kind {
            InsertStepKind::Load { rows, .. } => time_of(rows * tables, LOAD_ROWS_PER_S),
            InsertStepKind::Write { until, rate } => {
                let rows = written(until, rate, tables, clients);
                time_of(rows, written_per_s(rate, clients))
            }
            _ => time_of(self.initial_rows * tables, INDEX_ROWS_PER_S),
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

    fn assumed_speed(&self) -> String {
        let (loads, writes) = (rate_text(LOAD_ROWS_PER_S), rate_text(WRITE_ROWS_PER_S));
        format!("the engine loads {loads} rows/s, and writes {writes} rows/s with indexes")
    }
}

fn tables(insert: &Insert, clients: u32) -> u64 {
    if insert.tables == Tables::Shared { 1 } else { clients.into() }
}

/// Returns the rows by which a step lets all tables grow, at most.
fn rows_of(insert: &Insert, kind: InsertStepKind, clients: u32) -> u64 {
    let tables = tables(insert, clients);

    let written = match kind {
        InsertStepKind::Load { rows, .. } | InsertStepKind::Index { rows, .. } => {
            return rows * tables;
        }
        InsertStepKind::Write { until, rate } => written(until, rate, tables, clients),
        InsertStepKind::Query { rate, time, .. } => {
            (rate * time.as_secs_f64() * f64::from(clients)) as u64
        }
        InsertStepKind::Settle => 0,
    };

    // The space of deleted rows is reused sooner or later: the estimate takes half of it.
    written / (1 + u64::from(insert.delete_per_insert))
}

/// Returns the number of rows that a step writes into all tables.
fn written(until: WriteEnd, rate: Option<f64>, tables: u64, clients: u32) -> u64 {
    match until {
        WriteEnd::Rows(rows) => rows * tables,
        WriteEnd::Time(time) => (time.as_secs_f64() * written_per_s(rate, clients) as f64) as u64,
    }
}

/// Returns the rows per second that all clients write at a rate for each, or as fast as possible.
fn written_per_s(rate: Option<f64>, clients: u32) -> u64 {
    rate.map_or(WRITE_ROWS_PER_S, |rate| (rate * f64::from(clients)).ceil() as u64)
}
