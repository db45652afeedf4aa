//! Statements that may take long, outside of measured time: cancelled when their time is up or assay is to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::guard::Deadline;
use crate::{Action, Error, ErrorClass, Interrupt, Session};

/// How often a stop, and the end of pending work, are looked for.
pub(crate) const POLL: Duration = Duration::from_millis(100);

/// A statement that was run.
pub(crate) struct Ran {
    pub(crate) action: Action,
    /// It was cancelled.
    pub(crate) unfinished: Option<String>,
}

/// Runs `sql`, and cancels it when `stop` is set or the limit has passed: that is then said, and the session is of no
/// further use. `denied` are the engine's codes for what this user may not do: said, not hidden.
pub(crate) fn run(
    session: &mut impl Session,
    sql: &str,
    denied: &[&str],
    limit: &Deadline,
    stop: &AtomicBool,
) -> Result<Ran, Error> {
    let interrupt = session.interrupt()?;
    let took = Deadline::after(Duration::MAX);
    let is_done = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&is_done, limit, stop, &interrupt));
        let result = session.query(sql);
        is_done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        result
    });
    let mut unfinished = None;
    let what = match result {
        Ok(_) => sql.to_string(),
        Err(error) if error.class == ErrorClass::Interrupted => {
            unfinished = Some(format!("`{sql}` was cancelled before its end"));
            format!("{sql}: cancelled")
        }
        Err(error)
            if error
                .code
                .as_deref()
                .is_some_and(|code| denied.contains(&code)) =>
        {
            format!("{sql}: not allowed")
        }
        Err(error) => return Err(error),
    };
    let action = Action {
        what,
        took: took.elapsed(),
    };
    Ok(Ran { action, unfinished })
}

fn watch(is_done: &AtomicBool, limit: &Deadline, stop: &AtomicBool, interrupt: &Interrupt) {
    while !is_done.load(Ordering::Relaxed) {
        if stop.load(Ordering::Relaxed) || limit.has_passed() {
            interrupt();
            return;
        }
        std::thread::park_timeout(POLL);
    }
}

/// What is done while waiting for `at_least` to be over, in small pieces, so that a stop is seen; `None` when it is over
/// already.
pub(crate) fn rest(began: &Deadline, at_least: Duration, stop: &AtomicBool) -> Option<Action> {
    let is_over = || began.elapsed() >= at_least || stop.load(Ordering::Relaxed);
    if is_over() {
        return None;
    }
    let rested = Deadline::after(Duration::MAX);
    while !is_over() {
        std::thread::sleep(POLL.min(at_least.saturating_sub(began.elapsed())));
    }
    Some(Action {
        what: "rest".into(),
        took: rested.elapsed(),
    })
}
