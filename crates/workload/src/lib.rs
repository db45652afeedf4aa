//! Workloads: their steps, their data, and the [`Program`] of every connection.
//!
//! Nothing here knows the time, a file or a thread: a program prepares its next operation and executes it, and
//! `load` decides when.

pub mod insert;
pub mod kv;
pub mod sysbench;

mod check;
mod program;
mod schedule;
#[cfg(test)]
mod tests;

/// The types of a plan, which say what is to be done.
pub use plan;
pub use program::{Executed, Next, OpKind, Program, Summaries, Task};
pub use schedule::Schedule;
pub use words::Check;
pub(crate) use words::Random;
