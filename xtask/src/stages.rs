//! Times the stages of a task.

use std::time::Instant;

/// A stopwatch for the terminal; no measurement uses it.
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts the stopwatch.
    #[allow(clippy::disallowed_methods, reason = "the duration of a task is no measurement")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// The stages of a task, with their times.
#[derive(Default)]
pub struct Stages {
    ended: Vec<(&'static str, f64)>,
}

impl Stages {
    /// Runs a stage, and prints its duration.
    pub fn run<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let stopwatch = Stopwatch::start();
        let result = work();
        let seconds = stopwatch.seconds();
        println!("stage {name}: {seconds:.1} s");
        self.ended.push((name, seconds));
        result
    }
}

impl std::fmt::Display for Stages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut total = 0.0;
        for (name, seconds) in &self.ended {
            writeln!(f, "{seconds:>7.1} s  {name}")?;
            total += seconds;
        }
        writeln!(f, "{total:>7.1} s  total")
    }
}

/// Runs two functions at the same time, and returns both results.
pub fn in_parallel<A: Send, B>(
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B,
) -> (A, B) {
    std::thread::scope(|scope| {
        let first = scope.spawn(first);
        let second = second();
        let first = first.join();
        (first.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), second)
    })
}
