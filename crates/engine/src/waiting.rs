//! Statements that may take long, outside of measured time: cancelled when their time is up or assay is to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::guard::Deadline;
use crate::{Action, Error, ErrorClass, Interrupt, Session, Settled};

/// How often a stop, and the end of pending work, are looked for.
pub(crate) const POLL: Duration = Duration::from_millis(100);

/// Runs `sql`, and cancels it when `stop` is set or the limit has passed: that is then said. `denied` are the engine's
/// codes for what this user may not do: said, not hidden. Returns what was done, and whether the session is of no further
/// use: also where the statement was over when it was to be cancelled.
pub(crate) fn run(
    session: &mut impl Session,
    sql: &str,
    denied: &[&str],
    limit: &Deadline,
    stop: &AtomicBool,
) -> Result<(Settled, bool), Error> {
    let interrupt = session.interrupt()?;
    let took = Deadline::after(Duration::MAX);
    let is_done = AtomicBool::new(false);
    let (result, ends_session) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&is_done, limit, stop, &interrupt));
        let result = session.query(sql);
        is_done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        (result, watcher.join().unwrap_or(true))
    });
    let mut settled = Settled::default();
    let what = match result {
        Ok(_) => sql.to_string(),
        Err(error) if error.class == ErrorClass::Interrupted => {
            let what = format!("`{sql}` was cancelled before its end");
            settled.unfinished.push(what);
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
    settled.did(what, took.elapsed());
    Ok((settled, ends_session))
}

/// Says whether it interrupted.
fn watch(is_done: &AtomicBool, limit: &Deadline, stop: &AtomicBool, interrupt: &Interrupt) -> bool {
    while !is_done.load(Ordering::Relaxed) {
        if stop.load(Ordering::Relaxed) || limit.has_passed() {
            interrupt();
            return true;
        }
        std::thread::park_timeout(POLL);
    }
    false
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Outcome, ParamType, Rows, Statement, Table};

    /// A session whose reply has come when it is interrupted.
    #[derive(Default)]
    struct Late(Arc<AtomicBool>);

    impl Session for Late {
        fn prepare(&mut self, _: &str, _: &[ParamType]) -> Result<Statement, Error> {
            unreachable!()
        }

        fn start(&mut self, _: Statement) {}

        fn start_text(&mut self, _: &str) {}

        fn int4(&mut self, _: i32) {}

        fn int8(&mut self, _: i64) {}

        fn timestamp(&mut self, _: i64) {}

        fn text(&mut self, _: &str) {}

        fn execute(&mut self) -> Result<Outcome, Error> {
            unreachable!()
        }

        fn query(&mut self, _: &str) -> Result<Rows, Error> {
            while !self.0.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            Ok(Rows::new())
        }

        fn last_key(&mut self, _: &Table) -> Result<Option<i64>, Error> {
            unreachable!()
        }

        fn interrupt(&self) -> Result<Interrupt, Error> {
            let is_interrupted = Arc::clone(&self.0);
            Ok(Box::new(move || {
                is_interrupted.store(true, Ordering::Relaxed)
            }))
        }
    }

    #[test]
    fn a_statement_that_was_over_when_it_was_to_be_cancelled_ends_its_session_all_the_same() {
        let (over, stop) = (Deadline::after(Duration::ZERO), AtomicBool::new(false));
        let (ran, ends_session) =
            run(&mut Late::default(), "CHECKPOINT", &[], &over, &stop).unwrap();
        assert!(ran.unfinished.is_empty() && ends_session);
        let long = Deadline::after(Duration::MAX);
        let mut at_once = Late(Arc::new(AtomicBool::new(true)));
        let (ran, ends_session) = run(&mut at_once, "CHECKPOINT", &[], &long, &stop).unwrap();
        assert!(ran.unfinished.is_empty() && !ends_session);
    }
}
