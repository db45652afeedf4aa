//! The contract between a workload and the load: one connection's work as a sequence of operations.

use std::any::Any;
use std::time::Duration;

use engine::{Error, ErrorClass, Interrupt};

use crate::Schedule;

/// The work of one connection, and when it is to be done.
pub struct Task {
    /// Its client, from 0.
    pub client: u32,
    /// What it does, for the record: `insert`.
    pub role: &'static str,
    /// When its operations are sent.
    pub schedule: Schedule,
    /// The step does not wait for it: it ends when all others have.
    pub background: bool,
    /// What it does.
    pub program: Box<dyn Program>,
    /// Ends what it waits for.
    pub interrupt: Option<Interrupt>,
    /// The thread of the server that serves it, where that is known and on this host: who opens the step finds it, by
    /// [`Program::server_thread`].
    pub server_thread: Option<u32>,
}

impl Task {
    /// Returns the task of a program that the step waits for.
    ///
    /// # Errors
    /// The engine's own, when what the program waits for can't be ended from outside.
    pub fn new(
        client: u32,
        role: &'static str,
        schedule: Schedule,
        mut program: Box<dyn Program>,
    ) -> Result<Self, Error> {
        Ok(Self {
            client,
            role,
            schedule,
            background: false,
            interrupt: program.interrupt()?,
            server_thread: None,
            program,
        })
    }
}

/// What the connections of a step did: each one's client, and its [`Program::account`].
pub type Accounts = Vec<(u32, Box<dyn Any>)>;

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

/// What an operation that succeeded did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Rows that it read, inserted, changed or deleted.
    pub rows: u64,
    /// They are as many as there must be for the data to be right.
    pub is_expected: bool,
}

impl Executed {
    /// Returns an operation on `rows` rows, of which there must be at least and at most so many.
    #[inline]
    pub fn new(rows: u64, (least, most): (u64, u64)) -> Self {
        Self {
            rows,
            is_expected: least <= rows && rows <= most,
        }
    }

    /// Returns an operation that has no rows, such as the creation of an index.
    pub fn without_rows() -> Self {
        Self::new(0, (0, 0))
    }
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
    fn execute(&mut self) -> Result<Executed, Error>;

    /// Whether an operation that failed in this way may succeed when it is tried again.
    fn may_retry(&self, class: ErrorClass) -> bool {
        class.is_transient()
    }

    /// Returns what ends the operation that it waits for; `None` where that is never long. Asked once, before the step.
    ///
    /// # Errors
    /// The engine's own.
    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        Ok(None)
    }

    /// Returns the server's thread; see [`engine::Session::server_thread`]. Asked at most once, before the step.
    fn server_thread(&mut self) -> Option<u32> {
        None
    }

    /// Returns what its workload wants to know of what it did, in a type of that workload's own, given the rows of its
    /// successful operations. Asked once, after the step.
    ///
    /// # Errors
    /// The engine's own, when it has to be asked.
    fn account(&mut self, rows: u64) -> Result<Box<dyn Any>, Error> {
        let _ = rows;
        Ok(Box::new(()))
    }
}
