//! The needs of the key-value sequence.

use std::time::Duration;

use super::{WorkloadNeeds, rate_text, time_of};
use crate::{Kv, KvStepKind};

/// Entries per second that an embedded engine writes; only for estimates.
const PUTS_PER_S: u64 = 200_000;

impl WorkloadNeeds for Kv {
    /// The size of keys and values, doubled for the copies that exist during a compaction.
    fn stored_bytes(&self, _clients: u32) -> u64 {
        let entry_bytes = u64::from(self.key_size) + u64::from(self.value_size);
        self.keys.saturating_mul(entry_bytes).saturating_mul(2)
    }

    fn work_time(&self, step: usize, _clients: u32) -> Duration {
        match self.steps[step].kind {
            KvStepKind::OverwriteSome { writes } => time_of(writes, PUTS_PER_S),
            _ => time_of(self.keys, PUTS_PER_S),
        }
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

    fn assumed_speed(&self) -> String {
        format!("the engine loads {} keys/s", rate_text(PUTS_PER_S))
    }
}
