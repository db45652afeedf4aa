//! Runs tasks side by side: each lane has a queue of its own, so that tasks that keep processors
//! busy fill the time in which others wait.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;

use super::binaries::{Chosen, Job, run_doctests};
use super::compilation::Compilation;
use super::libtest::{Counts, Outcome};
use crate::stages::Stopwatch;
use crate::tidy;
use crate::workspace::Workspace;

/// A piece of work of the suite.
pub enum Task<'a> {
    /// Tests of a binary.
    Tests(Job<'a>),
    /// The checks of `cargo xtask tidy`, without clippy if the compilation lints.
    Tidy(Compilation, tidy::Crates),
    /// The doctests of all crates.
    Doctests(Compilation),
}

/// Tasks of one kind.
pub struct Lane<'a> {
    /// The name in the output.
    pub name: &'static str,
    /// The number of tasks that run at the same time.
    pub workers: usize,
    /// The tasks, in the order in which they begin.
    pub tasks: Vec<Task<'a>>,
}

impl Task<'_> {
    fn run(&self, workspace: &Workspace) -> Result<Outcome> {
        let stopwatch = Stopwatch::start();
        let outcome = match self {
            Self::Tests(job) => job.run()?,
            Self::Tidy(compilation, crates) => {
                let tally = tidy::run(workspace, &checks_beside(compilation), crates)?;
                let counts =
                    Counts { passed: tally.passed, failed: tally.failed, ..Counts::default() };
                Outcome { counts, ..Outcome::default() }
            }
            Self::Doctests(compilation) => run_doctests(workspace, compilation)?,
        };
        self.print(&outcome, &stopwatch);
        Ok(outcome)
    }

    /// Prints what failed, and how the task ended. One test that passes is worth no line.
    fn print(&self, outcome: &Outcome, stopwatch: &Stopwatch) {
        let (name, is_one) = match self {
            Self::Tests(job) => (job.name.as_str(), matches!(job.tests, Chosen::One(_))),
            Self::Tidy(..) => ("tidy", false),
            Self::Doctests(_) => ("doctests", false),
        };
        let Counts { passed, failed, .. } = outcome.counts;
        print!("{}", outcome.text);
        if is_one && failed == 0 {
            return;
        }
        let end = if failed == 0 { "ok" } else { "FAILED" };
        println!("{end:<6} {name:<28} {passed:>5} passed {:>7.1} s", stopwatch.seconds());
    }
}

impl Lane<'_> {
    /// Runs the tasks, and prints when the last of them ended.
    fn run(self, workspace: &Workspace) -> Result<Outcome> {
        let stopwatch = Stopwatch::start();
        let queue = Mutex::new(VecDeque::from(self.tasks));
        let total = Mutex::new(Outcome::default());
        let work = || -> Result<()> {
            loop {
                let Some(task) = lock(&queue).pop_front() else {
                    return Ok(());
                };
                let outcome = task.run(workspace)?;
                lock(&total).add(outcome);
            }
        };

        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.workers).map(|_| scope.spawn(work)).collect();
            let ends = workers.into_iter().map(|worker| {
                let end = worker.join();
                end.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            ends.collect::<Result<()>>()
        })?;

        let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Counts { passed, failed, .. } = total.counts;
        let seconds = stopwatch.seconds();
        println!("lane {}: {passed} passed, {failed} failed in {seconds:.1} s", self.name);
        Ok(total)
    }
}

/// Returns the names of the checks that the compilation does not replace.
fn checks_beside(compilation: &Compilation) -> Vec<String> {
    let names = tidy::CHECKS.entries().map(|(name, _)| name.to_owned());
    names.filter(|name| !compilation.lints() || name != tidy::CLIPPY).collect()
}

/// Runs lanes side by side, each to its end. Prints how the tasks ended, and the output of those
/// that failed.
///
/// # Errors
///
/// Fails if a task cannot run. What fails in a task is counted.
pub fn run(lanes: Vec<Lane<'_>>, workspace: &Workspace) -> Result<Outcome> {
    let mut total = Outcome::default();
    std::thread::scope(|scope| {
        let running: Vec<_> =
            lanes.into_iter().map(|lane| scope.spawn(|| lane.run(workspace))).collect();
        for lane in running {
            let outcome = lane.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            total.add(outcome?);
        }
        Ok(total)
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::binaries::Binary;

    /// Returns a task that runs a shell script in place of tests.
    fn task<'a>(binary: &'a Binary, script: &str) -> Task<'a> {
        Task::Tests(Job {
            name: "x".to_owned(),
            binary,
            tests: Chosen::Containing(&[]),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            variables: Vec::new(),
            is_nice: true,
        })
    }

    #[test]
    fn the_results_of_all_tasks_of_all_lanes_are_added_up() {
        let binary = Binary::named("x");
        let good = "echo 'test result: ok. 8 passed; 0 failed; 2 ignored;'";
        let lane = |name, workers, scripts: &[&str]| {
            let tasks = scripts.iter().map(|script| task(&binary, script)).collect();
            Lane { name, workers, tasks }
        };
        let lanes = vec![lane("a", 2, &[good, "kill -9 $$", good]), lane("b", 1, &[good])];
        let outcome = run(lanes, &Workspace::here()).unwrap();
        let expected = Counts { passed: 24, failed: 1, skipped: 0, left_out: 6 };
        assert_eq!(outcome.counts, expected);
    }
}
