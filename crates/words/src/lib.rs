//! Defines what the live half and the reading half share: counters, settings, metrics, totals and
//! checks.
//!
//! ```text
//! live half      plan, engine, workload, load, probe ──┐
//!                                                      ├──► words
//! reading half   record, analysis, report ─────────────┘
//!
//! Counter, Setting, OpKind, Ops, Check       what is measured, in the form that the record stores
//! Metric, METRICS                            what is shown: names, units and decimals of all figures
//! Random, Secret, parse_cpus, counted ...    what both halves compute in the same way
//! ```
//!
//! The crate does no I/O, and depends only on serde's derives and strsim.
//!
//! ```
//! use words::{Metric, counted, fixed, redact};
//!
//! let metric = Metric::named("cpupq").unwrap();
//! let value = 12.34;
//! let decimals = metric.decimals.of([value]);
//! assert_eq!(format!("{} {}", fixed(value, decimals), metric.unit), "12.3 us/op");
//!
//! assert_eq!(counted(3, "step"), "3 steps");
//! assert_eq!(redact("mysql://joe:s3cret@db"), "mysql://joe:***@db");
//! ```

mod cell_kind;
mod connection;
mod counter;
mod cpus;
mod creation;
mod disk_floor;
mod durability;
mod engine;
mod engine_options;
mod log_event;
mod measurement;
mod merge_operator;
pub mod metric;
mod named_enum;
mod nearest;
mod number;
mod operation;
mod placement;
mod random;
mod secret;
mod setting;
mod shell;
mod stacks;
mod statement_plan;
mod system_call;
mod transaction_kind;
mod work;

pub use cell_kind::CellKind;
pub use connection::ConnectionState;
pub use counter::{Counter, CounterKind, LATENCY_NS_MAX, Role, WaitView, unit_of};
pub use cpus::{format_cpus, parse_cpus};
pub use creation::Creation;
pub use disk_floor::{DiskFloor, IoMode, IoRate, ReadFloor, SyncFloor, SyncPlace};
pub use durability::Durability;
pub use engine::{ConfigFiles, Engine, EngineFacts, EngineHome, EngineInterface};
pub use log_event::LogEvent;
pub use measurement::{
    Check, Connection, FsyncLatency, IntervalRow, Limit, Limits, Ops, ProcessorEvents, ThreadUse,
    Warning, format_cpu_quota,
};
pub use merge_operator::MergeOperator;
pub use metric::{Better, Decimals, METRICS, Metric, OPERATION_TIMES};
pub use named_enum::IndexStatements;
pub use nearest::nearest;
pub use number::{fixed, grouped, size_text};
pub use operation::{OpChart, OpEffect, OpFacts, OpKind, OpRole, plural_of};
pub use placement::{Placement, ProcessorPair, Processors};
pub use random::Random;
pub use secret::{Secret, mask, redact};
pub use setting::{
    DeclaredOption, OptionStatus, Setting, SettingRole, UnmetOption, without_section,
};
pub use shell::shell_quoted;
pub use stacks::{StackNode, StackTree, Stacks};
pub use statement_plan::{StatementPlan, digest, masked, shape_of, without_estimates};
pub use system_call::{SystemCallCounts, SystemCallSet};
pub use transaction_kind::TransactionKind;
pub use work::{WorkCalls, WorkFunction, WorkGraph, WorkPart, WorkRole};

/// Returns the first `chars` characters of a text, with `...` if that is not all.
pub fn excerpt(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// Writes a count with its noun: `1 step`, `3 steps`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Joins at most `most` texts, and counts the others: `a, b and 3 more`.
pub fn listed<T: AsRef<str>>(texts: &[T], most: usize, separator: &str) -> String {
    let shown: Vec<&str> = texts.iter().take(most).map(AsRef::as_ref).collect();
    let joined = shown.join(separator);
    match texts.len().saturating_sub(most) {
        0 => joined,
        more => format!("{joined} and {more} more"),
    }
}

/// Writes which of some things are meant.
///
/// ```
/// use words::share_of;
///
/// assert_eq!(share_of(2, 7, "step"), "2 of 7 steps");
/// assert_eq!(share_of(7, 7, "step"), "all 7 steps");
/// assert_eq!(share_of(2, 2, "step"), "both steps");
/// assert_eq!(share_of(1, 1, "step"), "the only step");
/// ```
pub fn share_of(part: usize, all: usize, noun: &str) -> String {
    if part < all {
        return format!("{part} of {}", counted(all, noun));
    }

    match all {
        1 => format!("the only {noun}"),
        2 => format!("both {noun}s"),
        _ => format!("all {}", counted(all, noun)),
    }
}

/// Returns a text with its first letter in upper case.
pub fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
