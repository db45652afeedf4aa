//! The vocabulary that the live half and the reading half share: what a recorded counter, setting, metric or cell is
//! called and means, and how what both halves print is formatted. No dependencies but serde's derives,
//! and no I/O.

mod connection;
mod counter;
mod cpus;
mod measurement;
pub mod metric;
mod named_enum;
mod number;
mod random;
mod secret;
mod setting;

pub use connection::ConnectionState;
pub use counter::{Counter, CounterKind, LATENCY_NS_MAX, Role, unit_of};
pub use cpus::{format_cpus, parse_cpus};
pub use measurement::{
    Check, Connection, FsyncLatency, IntervalRow, Limit, Limits, Ops, ThreadUse, Warning,
};
pub use metric::{Better, Decimals, METRICS, Metric};
pub use named_enum::IndexStatements;
pub use number::{fixed, grouped};
pub use random::Random;
pub use secret::{Secret, mask, redact};
pub use setting::{DeclaredOption, OptionStatus, Setting, SettingRole, UnmetOption};

/// Writes a count with its noun: `1 step`, `3 steps`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns a text with its first letter in upper case.
pub fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(chars).collect()
}
