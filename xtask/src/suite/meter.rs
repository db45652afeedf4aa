//! Counts the CPU time of a process with all that it starts, and the programs among them.

use std::path::Path;

use perf_event::events::{Event, Software, Tracepoint};
use perf_event::{Builder, Counter};

/// The folders in which the kernel numbers the start of a program.
const STARTS: [&str; 2] = [
    "/sys/kernel/tracing/events/sched/sched_process_exec/id",
    "/sys/kernel/debug/tracing/events/sched/sched_process_exec/id",
];

/// Counts what this thread starts. The kernel gives each new process the counters of the one that
/// started it, so that servers count which nobody waits for.
pub struct Meter {
    /// Counts nanoseconds. `None` where the kernel does not allow it.
    cpu_ns: Option<Counter>,
    /// Counts programs that start. Only root may.
    starts: Option<Counter>,
}

impl Meter {
    /// Begins to count.
    pub fn begin() -> Self {
        let start = STARTS.iter().find_map(|file| tracepoint(Path::new(file)));
        Self { cpu_ns: counter(Software::TASK_CLOCK), starts: start.and_then(counter) }
    }

    /// Returns the CPU time of this thread and of all that it started, in seconds.
    pub fn cpu_seconds(&mut self) -> Option<f64> {
        Some(self.cpu_ns.as_mut()?.read().ok()? as f64 / 1e9)
    }

    /// Returns the number of programs that were started.
    pub fn programs(&mut self) -> Option<u64> {
        self.starts.as_mut()?.read().ok()
    }
}

/// Reads the number of an event of the kernel.
fn tracepoint(file: &Path) -> Option<Tracepoint> {
    let id = fs_err::read_to_string(file).ok()?;
    Some(Tracepoint::with_id(id.trim().parse().ok()?))
}

/// Begins to count an event in this thread and in what it starts.
fn counter(event: impl Event) -> Option<Counter> {
    // Programs are started in the kernel.
    Builder::new(event).inherit(true).include_kernel().enabled(true).build().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_program_counts_that_nobody_waits_for() {
        let mut meter = Meter::begin();
        // Its output ends with the second one, and the first one is gone by then.
        let second = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let script = format!("sh -c '{second}' &");
        Command::new("sh").args(["-c", &script]).output().unwrap();

        // Where the kernel counts neither, the suite leaves both out.
        if let Some(programs) = meter.programs() {
            assert_eq!(programs, 2);
        }
        if let Some(seconds) = meter.cpu_seconds() {
            assert!(seconds > 0.01, "{seconds}");
        }
    }
}
