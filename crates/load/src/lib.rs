//! The load: threads, clock, histograms, intervals, stop and poison. It knows no engine.
//!
//! Each connection is one OS thread with blocking I/O that owns its [`Program`](workload::Program), its schedule and
//! its tallies. Once a second it hands what it measured to the collector and takes an empty lap in exchange; nothing
//! else is shared while it runs but flags that are only read.

mod clock;
mod collect;
mod run;
mod tally;
mod thread_use;
mod worker;

pub use clock::{Clock, SystemClock};
pub use collect::{Amount, IntervalRow, KindTotals, Latency, Progress, Sink, Time};
pub use run::{ConnectionThreads, Ended, Limits, Outcome, Worked, run};
pub use tally::{HISTOGRAM_MAX_NS, new_histogram};
pub use thread_use::{ThreadUse, own_cpu_wait_ns};

#[cfg(test)]
mod tests;
