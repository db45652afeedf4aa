//! What each client does: the steps of a workload, its data, and the [`Program`] of every connection.
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
pub use program::{Accounts, Executed, Kind, Next, Program, Task};
pub use schedule::Schedule;
pub use words::Check;
pub(crate) use words::Random;
