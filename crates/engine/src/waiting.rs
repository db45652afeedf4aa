//! Statements that may take long, outside of measured time: cancelled when their time is up or assay is to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::guard::Deadline;
use crate::{Action, Error, ErrorClass, Interrupt, Session, Settled};

/// How often a stop, and the end of pending work, are looked for.
const POLL: Duration = Duration::from_millis(100);

/// What brings an engine to rest, until it is to stop or its time is up.
pub(crate) struct Work<'a> {
    /// When its time is up.
    pub(crate) limit: Deadline,
    pub(crate) stop: &'a AtomicBool,
    /// The engine's codes for what this user may not do.
    pub(crate) denied: &'a [&'a str],
}

/// What is still to be waited for.
pub(crate) enum Left {
    Nothing,
    Some(String),
    /// It does not become less.
    Stuck(String),
}

impl Work<'_> {
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.limit.has_passed()
    }

    /// Runs `sql`, and cancels it when the work is over: the session is then of no further use. What is not begun, not
    /// ended or not allowed is said.
    pub(crate) fn run(&self, session: &mut impl Session, sql: &str) -> Result<Settled, Error> {
        let mut settled = Settled::default();
        if self.is_over() {
            settled.unfinished.push(format!("`{sql}` was not begun"));
            return Ok(settled);
        }
        let interrupt = session.interrupt()?;
        let took = Deadline::after(Duration::MAX);
        let is_done = AtomicBool::new(false);
        let result = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| self.watch(&is_done, &interrupt));
            let result = session.query(sql);
            is_done.store(true, Ordering::Relaxed);
            watcher.thread().unpark();
            result
        });
        let is_denied = |error: &Error| {
            error
                .code
                .as_deref()
                .is_some_and(|it| self.denied.contains(&it))
        };
        let what = match result {
            Ok(_) => sql.to_string(),
            Err(error) if error.class == ErrorClass::Interrupted => {
                let what = format!("`{sql}` was cancelled before its end");
                settled.unfinished.push(what);
                format!("{sql}: cancelled")
            }
            Err(error) if is_denied(&error) => format!("{sql}: not allowed"),
            Err(error) => return Err(error),
        };
        settled.did(what, took.elapsed());
        Ok(settled)
    }

    fn watch(&self, is_done: &AtomicBool, interrupt: &Interrupt) {
        while !is_done.load(Ordering::Relaxed) {
            if self.is_over() {
                return interrupt();
            }
            std::thread::park_timeout(POLL);
        }
    }

    /// Waits, and says so, until nothing is `left`, or no more of it is to be waited for.
    pub(crate) fn wait(
        &self,
        what: &str,
        mut left: impl FnMut() -> Result<Left, Error>,
    ) -> Result<Settled, Error> {
        let mut settled = Settled::default();
        if self.is_over() {
            settled.unfinished.push(format!("{what}: not begun"));
            return Ok(settled);
        }
        let waited = Deadline::after(Duration::MAX);
        let unfinished = loop {
            match left()? {
                Left::Nothing => break None,
                Left::Stuck(what) => break Some(what),
                Left::Some(what) if self.is_over() => break Some(what),
                Left::Some(_) => std::thread::sleep(POLL),
            }
        };
        let unfinished = unfinished.map(|left| format!("{what}: not over, {left}"));
        settled.unfinished.extend(unfinished);
        settled.did(what, waited.elapsed());
        Ok(settled)
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
