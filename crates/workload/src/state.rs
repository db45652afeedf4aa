//! The knowledge of a workload between two steps, with which another process continues.

use serde::{Deserialize, Serialize};

use crate::summary::{Commits, RowNumbers};
use crate::{insert, kv, sysbench};

/// The knowledge of a workload between two steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum DataState {
    /// The tables of the Insert Benchmark.
    Insert(Vec<insert::Ledger>),
    /// The tables of sysbench.
    Sysbench(Vec<sysbench::Ledger>),
    /// The tables of a script.
    Transactions {
        /// The loaded rows of each table.
        rows: Vec<u64>,
        /// The commits since the load.
        #[serde(default, skip_serializing_if = "Commits::is_none")]
        commits: Commits,
        /// The numbers of each table's rows; empty if no transaction numbered a new row.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        numbers: Vec<RowNumbers>,
    },
    /// The keys of the key-value sequence.
    KeyValue(kv::KnownKeys),
}
