//! The kind of transactions on engines with keys and values.

use serde::{Deserialize, Serialize};

/// The way in which a transaction keeps others from changing what it read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransactionKind {
    /// Not at all: the transaction is a batch of writes, after reads that nothing protects.
    Unprotected,
    /// By locks: the transaction locks each key, and others wait.
    Pessimistic,
    /// By a check: the transaction locks nothing, and its commit fails if others changed what it read.
    Optimistic,
}

impl TransactionKind {
    /// All values, by name.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("none", Self::Unprotected),
        ("pessimistic", Self::Pessimistic),
        ("optimistic", Self::Optimistic),
    ];

    /// Returns the value's name in plans and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unprotected => "none",
            Self::Pessimistic => "pessimistic",
            Self::Optimistic => "optimistic",
        }
    }
}
