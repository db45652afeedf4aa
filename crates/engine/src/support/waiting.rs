//! Long statements outside of measured time, which are canceled on a timeout or when assay stops.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::contract::{Action, Interrupt, Session, Settled};
use crate::error::{Error, ErrorClass};
use crate::safety::guard::Deadline;

/// The interval of checks for a stop request, and for the end of pending work.
const POLL: Duration = Duration::from_millis(100);

/// Work to settle an engine, limited by a deadline and a stop request.
pub(crate) struct Work<'a> {
    pub(crate) deadline: Deadline,
    pub(crate) stop: &'a AtomicBool,
    /// The engine's error codes for missing privileges.
    pub(crate) denied_codes: &'a [&'a str],
    /// The error codes for what the format of a table does not support.
    pub(crate) unsupported_codes: &'a [&'a str],
}

/// Work that is still pending.
pub(crate) enum Pending {
    Nothing,
    Some(String),
    /// The work makes no progress.
    Stuck(String),
}

/// Returns the error of a thread that the system refuses to create.
pub(crate) fn no_thread(error: &std::io::Error) -> Error {
    Error::other(format!(
        "cannot create a thread: {error}; allow more memory (`ulimit -v`) or threads (`ulimit -u`)"
    ))
}

fn is_one_of(error: &Error, codes: &[&str]) -> bool {
    error.code.as_deref().is_some_and(|code| codes.contains(&code))
}

impl Work<'_> {
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.deadline.has_passed()
    }

    /// Runs `sql`, and cancels it when the work is over; then the session cannot be used any more.
    /// The result says if it was not begun, not finished or not allowed.
    pub(crate) fn run(&self, session: &mut impl Session, sql: &str) -> Result<Settled, Error> {
        let mut settled = Settled::default();
        if self.is_over() {
            settled.unfinished.push(format!("`{sql}` was not begun"));
            return Ok(settled);
        }

        let interrupt = session.interrupt()?;
        let started = Deadline::after(Duration::MAX);
        let is_done = AtomicBool::new(false);
        let result = std::thread::scope(|scope| {
            let watcher = std::thread::Builder::new()
                .spawn_scoped(scope, || self.watch(&is_done, &interrupt))
                .map_err(|error| no_thread(&error))?;
            let result = session.query(sql);
            is_done.store(true, Ordering::Relaxed);
            watcher.thread().unpark();
            result
        });

        let what = match result {
            Ok(_) => sql.to_string(),
            Err(error) if error.class == ErrorClass::Interrupted => {
                settled.unfinished.push(format!("`{sql}` was canceled before its end"));
                format!("{sql}: canceled")
            }
            Err(error) if is_one_of(&error, self.denied_codes) => format!("{sql}: not allowed"),
            Err(error) if is_one_of(&error, self.unsupported_codes) => {
                format!("{sql}: not applicable to this table format")
            }
            Err(error) => return Err(error),
        };

        settled.add_action(what, started.elapsed());
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

    /// Waits until nothing is `pending`, the work is stuck, or the time is over. The wait is an
    /// action of the result.
    pub(crate) fn wait(
        &self,
        what: &str,
        mut pending: impl FnMut() -> Result<Pending, Error>,
    ) -> Result<Settled, Error> {
        let mut settled = Settled::default();
        if self.is_over() {
            settled.unfinished.push(format!("{what}: not begun"));
            return Ok(settled);
        }

        let started = Deadline::after(Duration::MAX);
        let unfinished = loop {
            match pending()? {
                Pending::Nothing => break None,
                Pending::Stuck(what) => break Some(what),
                Pending::Some(what) if self.is_over() => break Some(what),
                Pending::Some(_) => std::thread::sleep(POLL),
            }
        };

        settled
            .unfinished
            .extend(unfinished.map(|pending| format!("{what}: not finished, {pending}")));
        settled.add_action(what, started.elapsed());
        Ok(settled)
    }
}

/// Waits until `at_least` has passed since `started`, or a stop is requested. Returns the wait as
/// an action; `None` if the time was already over.
pub(crate) fn rest(started: &Deadline, at_least: Duration, stop: &AtomicBool) -> Option<Action> {
    let is_over = || started.elapsed() >= at_least || stop.load(Ordering::Relaxed);
    if is_over() {
        return None;
    }

    let wait = Deadline::after(Duration::MAX);
    while !is_over() {
        std::thread::sleep(POLL.min(at_least.saturating_sub(started.elapsed())));
    }

    Some(Action { what: "rest".into(), took: wait.elapsed() })
}
