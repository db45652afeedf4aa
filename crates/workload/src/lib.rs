//! Implements the workloads: their steps, their data, and the [`Program`] of every connection.
//!
//! ```text
//! plan::Insert       ──► insert::Insert             ──┐
//! plan::Kv           ──► kv::Kv                     ──┼──► a Task for each connection ──► load
//! plan::Sysbench     ──► sysbench::Sysbench         ──┤    │
//! plan::Transactions ──► transactions::Transactions ──┘    ├─ Program    prepares and executes operations on a session
//!        ▲                                                 │
//!        └────── apply(summaries) ◄────────────────────────┴─ Schedule   when each operation is due
//! ```
//!
//! Workloads don't use clocks, files or threads: `load` decides when a program prepares and
//! executes its next operation. A step's summaries tell the workload what its connections did, so
//! that it can check the data afterward.
//!
//! ```
//! use workload::insert::{Database, Insert, sql::Sql};
//! use workload::{Next, plan};
//!
//! let text = "[workload.insert]\ninitial-rows = 500\n[build.nothing]\nnull = 'bundled'\n";
//! let (plan, _warnings) = plan::parse("demo.toml", text, &[]).unwrap();
//! let plan::Workload::Insert(insert) = &plan.variants[0].workload else {
//!     panic!("the plan has another workload");
//! };
//! let load = &insert.steps[0];
//! let insert = Insert::new(insert, 1, plan.seed);
//! let mut tasks = Sql(&engine::null::Null).tasks(&insert, load)?;
//!
//! let program = &mut tasks[0].program;
//! program.begin();
//! let mut rows = 0;
//! while let Next::Ready(_) = program.prepare() {
//!     rows += program.execute()?.rows;
//! }
//! assert_eq!(rows, 500);
//! # Ok::<(), engine::Error>(())
//! ```

pub mod insert;
pub mod kv;
pub mod sysbench;
pub mod transactions;

mod cache_padded;
mod check;
mod hash;
mod numbers;
mod program;
mod schedule;
mod state;
mod summary;
#[cfg(test)]
mod tests;

/// The version of what the steps that load write from a seed: rows, keys and values, their order,
/// and the statements and settings of the load. Raise it with every change of these: a kept
/// database of another version is loaded anew.
pub const CONTENT_VERSION: u32 = 1;

/// The types of plans, which workloads are made from.
pub use plan;
pub use program::{ClientShare, Executed, Next, Program, Task};
pub use schedule::Schedule;
pub use state::DataState;
pub use summary::{Summaries, Summary};
pub use words::Check;
pub(crate) use words::Random;
pub use words::{OpKind, OpRole};
