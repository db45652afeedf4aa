//! The contract between a workload and the load: one connection's work as a sequence of operations.

use std::time::Duration;

use engine::{Error, ErrorClass, Outcome};

/// A kind of operation: its latencies are kept apart from those of other kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub &'static str);

/// What a program has to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// An operation of the kind at this position of [`Program::kinds`] is ready.
    Ready(usize),
    /// Nothing yet, because another connection has to get further first: [`Program::wait`] for it and ask again.
    Later,
    /// Nothing any more: its quota is done.
    Done,
}

/// The work of one connection. It owns its session, its random streams and all its buffers, so that running it
/// allocates nothing and shares nothing that others write while it does.
pub trait Program: Send {
    /// The kinds of operation that it may do, the main one first: a schedule's rate is that one's.
    fn kinds(&self) -> &'static [Kind];

    /// Called first, and once, by the thread that calls the others.
    fn begin(&mut self) {}

    /// Makes the next operation ready, outside of measured time: draws its values, encodes its message.
    fn prepare(&mut self) -> Next;

    /// Returns when it is worth asking again after [`Next::Later`], or when `at_most` has passed.
    fn wait(&self, at_most: Duration) {
        std::thread::sleep(at_most.min(Duration::from_micros(50)));
    }

    /// Runs the operation made ready; called again when it failed in a way that [`Program::may_retry`] lets it.
    ///
    /// # Errors
    /// The engine's own.
    fn execute(&mut self) -> Result<Outcome, Error>;

    /// Whether an operation that failed in this way may succeed when it is tried again.
    fn may_retry(&self, class: ErrorClass) -> bool {
        class.is_transient()
    }

    /// Rows that the outcome must have for the data to be right: at least and at most. Asked after each success.
    fn expected_rows(&self) -> (u64, u64);
}
