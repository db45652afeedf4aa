//! The knowledge of a workload after its load, with which another process goes on.

use serde::{Deserialize, Serialize};

use crate::{insert, kv, sysbench};

/// The knowledge of a workload after its load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LoadState {
    /// The tables of the Insert Benchmark.
    Insert(Vec<insert::Ledger>),
    /// The tables of sysbench.
    Sysbench(Vec<sysbench::Ledger>),
    /// The tables of a script.
    Transactions {
        /// The loaded rows of each table.
        rows: Vec<u64>,
    },
    /// The keys of the key-value sequence.
    KeyValue(kv::LoadedKeys),
}
