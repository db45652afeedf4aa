//! Runs the connections of a step, each on its own thread, and measures their operations. The
//! crate knows no engine.
//!
//! ```text
//! Task ──► start ──► worker: one thread for each connection ──► finish ──► StepOutcome
//!                     │  prepare ─► wait until due ─► execute      ▲
//!                     ▼  one lap of tallies per second             │
//!                    supervise ──► collect ──► Sink ──► the record ┘
//! ```
//!
//! Each connection uses blocking I/O and owns its [`Program`](workload::Program), its schedule and
//! its tallies. Once a second it hands its lap to the collector and takes an empty one. While it
//! runs, it shares nothing else but flags that it only reads.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use std::time::Duration;
//!
//! use load::{Limits, StepEnd, SystemClock};
//! use workload::insert::{Database, Insert, sql::Sql};
//! use workload::plan;
//!
//! let text = "[workload.insert]\ninitial-rows = '10k'\n[build.nothing]\nnull = 'bundled'\n";
//! let (plan, _warnings) = plan::parse("demo.toml", text, &[]).unwrap();
//! let plan::Workload::Insert(insert) = &plan.variants[0].workload else {
//!     panic!("the plan has another workload");
//! };
//! let step = &insert.steps[0];
//! let insert = Insert::new(insert, 2, plan.seed);
//! let tasks = Sql(&engine::null::Null).tasks(&insert, step)?;
//!
//! let limits = Limits {
//!     time: None,
//!     error_limit: 0,
//!     attempts: 1,
//!     grace: Duration::from_secs(10),
//! };
//! // `()` is a sink that discards everything.
//! let outcome = load::run(tasks, limits, &SystemClock::begin(), &AtomicBool::new(false), &mut ());
//! assert_eq!(outcome.end, StepEnd::Complete);
//! assert_eq!(outcome.totals["insert"].rows, 20_000);
//! # Ok::<(), engine::Error>(())
//! ```

mod clock;
mod collect;
mod finish;
mod merge;
mod processor_events;
mod run;
mod start;
mod step;
mod supervise;
mod system_clock;
mod tally;
mod thread_use;
mod turns;
mod worker;

pub use clock::{Clock, TurnClock};
pub use collect::{ConnectionThreads, LatencyKind, OpCount, Progress, Sink};
pub use merge::{ConnectionKinds, Merge};
pub use run::run;
pub use step::{Limits, StepEnd, StepOutcome, Totals};
pub use system_clock::SystemClock;
pub use tally::new_histogram;
pub use thread_use::{ThreadMeter, own_cpu_wait_ns};
pub use turns::{Gate, Turn, Work};

/// Returns the message of a panic.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests;
