//! The load: threads, clock, histograms, intervals, stop and poison. It knows no engine.
//!
//! Each connection is one OS thread with blocking I/O that owns its [`Program`](workload::Program), its schedule and
//! its tallies. Once a second it hands what it measured to the collector and takes an empty lap in exchange; nothing
//! else is shared while it runs but flags that are only read.

mod clock;
mod collect;
mod finish;
mod run;
mod start;
mod step;
mod supervise;
mod tally;
mod thread_use;
mod worker;

pub use clock::{Clock, SystemClock};
pub use collect::{ConnectionThreads, LatencyKind, OpCount, Progress, Sink};
pub use run::run;
pub use step::{ConnectionOutcome, Limits, StepEnd, StepOutcome};
pub use tally::new_histogram;
pub use thread_use::own_cpu_wait_ns;

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
