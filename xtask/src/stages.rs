//! How long the parts of a chore take.

use std::time::Instant;

/// A clock for people: nothing here is measured.
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts it.
    #[allow(
        clippy::disallowed_methods,
        reason = "how long a chore takes is nothing that is measured"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since then.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// The parts of a chore, each timed.
#[derive(Default)]
pub struct Stages {
    ended: Vec<(&'static str, f64)>,
}

impl Stages {
    /// Does one of them, and says how long it took.
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
        writeln!(f, "{total:>7.1} s  in all")
    }
}

/// Does two things at the same time.
pub fn beside<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        let one = one.join();
        (
            one.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            other,
        )
    })
}
