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

/// Counts things: `1 step`, `3 steps`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Begins a text with a capital letter.
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}
