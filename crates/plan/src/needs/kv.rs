//! The needs of the key-value sequence.

use super::{AssumedSpeed, Speed, WorkTime, WorkloadNeeds, list_assumed};
use crate::{Kv, KvMixWrite, KvStepKind, Rates};

/// Entries per second that an embedded engine writes; only for estimates.
const PUTS_PER_S: u64 = 200_000;
/// Keys per second that a client of a mix inserts; only for estimates.
const MIX_INSERTS_PER_S: u64 = 10_000;

impl WorkloadNeeds for Kv {
    /// The size of keys and values, doubled for the copies that exist during a compaction.
    fn stored_bytes(&self, clients: u32, _rates: &Rates, is_compressed: bool) -> u64 {
        let value_share = if is_compressed { self.compression_ratio } else { 1.0 };
        let value_bytes = (f64::from(self.value_size) * value_share).ceil() as u64;
        let entry_bytes = u64::from(self.key_size) + value_bytes;
        let inserting = self.steps.iter().map(|step| match step.kind {
            KvStepKind::Mixed { mix, time } if mix.write == KvMixWrite::Insert => time.as_secs(),
            _ => 0,
        });
        let inserted = inserting.sum::<u64>() * u64::from(clients) * MIX_INSERTS_PER_S;
        self.keys.saturating_add(inserted).saturating_mul(entry_bytes).saturating_mul(2)
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
