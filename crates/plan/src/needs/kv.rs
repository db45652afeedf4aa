//! The needs of the key-value sequence.

use super::{AssumedSpeed, Speed, WorkTime, WorkloadNeeds, list_assumed};
use crate::{Kv, KvMixWrite, KvStep, KvStepKind, Rates};

/// Entries per second that an embedded engine writes; only for estimates.
const PUTS_PER_S: u64 = 200_000;
/// Keys per second that a client of a mix inserts; only for estimates.
const MIX_INSERTS_PER_S: u64 = 10_000;

impl WorkloadNeeds for Kv {
    /// The size of keys and values, doubled for the copies that exist during a compaction.
    fn stored_bytes(&self, clients: u32, _rates: &Rates, is_compressed: bool) -> u64 {
        let inserted: f64 = self.steps.iter().map(|step| inserted_keys(step, clients)).sum();
        let keys = self.keys.saturating_add(inserted as u64);
        keys.saturating_mul(entry_bytes(self, is_compressed)).saturating_mul(2)
    }

    fn loaded_bytes(&self, _clients: u32, _rates: &Rates, is_compressed: bool) -> u64 {
        self.keys.saturating_mul(entry_bytes(self, is_compressed))
    }

    fn work_time(&self, step: usize, clients: u32, rates: &Rates) -> WorkTime {
        let (expected, keys) = match self.steps[step].kind {
            KvStepKind::OverwriteSome { writes: count }
            | KvStepKind::Delete { deletes: count, .. } => (&rates.insert, count),
            _ => (&rates.load, self.keys),
        };
        Speed::of(expected, clients, PUTS_PER_S).time_of(keys)
    }

    /// One more connection writes while the others read.
    fn connections(&self, clients: u32) -> u32 {
        clients + 1
    }

    fn working_connections(&self, clients: u32) -> u32 {
        self.connections(clients)
    }

    /// An engine in the same process is observed without connections.
    fn observers(&self) -> u32 {
        0
    }

    fn assumed_speed(&self, rates: &Rates) -> String {
        let speed =
            |verb, expected| AssumedSpeed { verb, per_s: PUTS_PER_S, what: "keys/s", expected };
        list_assumed(&[speed("loads", &rates.load), speed("overwrites", &rates.insert)])
    }
}

/// Returns the size of a key with its value.
fn entry_bytes(kv: &Kv, is_compressed: bool) -> u64 {
    let value_share = if is_compressed { kv.compression_ratio } else { 1.0 };
    let value_bytes = (f64::from(kv.value_size) * value_share).ceil() as u64;
    u64::from(kv.key_size) + value_bytes
}

/// Returns the number of keys that the clients of a step insert, at most.
fn inserted_keys(step: &KvStep, clients: u32) -> f64 {
    let KvStepKind::Mixed { mix, time } = step.kind else {
        return 0.0;
    };
    if mix.write != KvMixWrite::Insert {
        return 0.0;
    }

    let mut per_s = MIX_INSERTS_PER_S as f64;
    if let Some(rate) = step.rate.as_ref().and_then(|rate| rate.per_client(clients)) {
        per_s = per_s.min(rate * f64::from(mix.write_percent) / 100.0);
    }
    time.as_secs_f64() * per_s * f64::from(clients)
}
