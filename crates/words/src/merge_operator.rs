//! The operators that combine merged values.

use serde::{Deserialize, Serialize};

/// The way in which values that were merged into a key are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeOperator {
    /// The newest one counts.
    Put,
    /// Values are numbers of 64 bits, and their sum counts.
    Uint64Add,
}

impl MergeOperator {
    /// All values, by name, which is that of the operator in RocksDB.
    pub const NAMES: &'static [(&'static str, Self)] =
        &[("put", Self::Put), ("uint64add", Self::Uint64Add)];

    /// Returns the value's name in plans and in RocksDB.
    pub fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Uint64Add => "uint64add",
        }
    }
}
