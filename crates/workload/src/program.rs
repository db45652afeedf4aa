//! The contract between a workload and the load: one connection's work as a sequence of operations.

use std::time::Duration;

use engine::{Capture, Error, ErrorClass, Interrupt, SqlEngine, StatementPlan};
use serde::{Deserialize, Serialize};

use crate::{OpKind, Schedule, Summary};

/// The work of one connection, and its schedule.
pub struct Task {
    /// The client that the connection belongs to, from 0.
    pub client: u32,
    /// The connection's role, for the record: that of the operations that it is made for.
    pub role: &'static str,
    /// The times at which operations are sent.
    pub schedule: Schedule,
    /// The step does not wait for this task, which ends when all others have ended.
    pub background: bool,
    /// The connection's operations.
    pub program: Box<dyn Program>,
    /// Interrupts the current operation.
    pub interrupt: Option<Interrupt>,
    /// The server's thread for the connection, if that is known and on this host. The caller sets
    /// it from [`Program::server_thread`].
    pub server_thread: Option<u32>,
}

impl Task {
    /// Returns the task of a program that the step waits for. Its connection is made for operations
    /// of `kind`.
    ///
    /// # Errors
    /// The engine's own, if the program cannot be interrupted.
    pub fn new(
        client: u32,
        kind: OpKind,
        schedule: Schedule,
        mut program: Box<dyn Program>,
    ) -> Result<Self, Error> {
        Ok(Self {
            client,
            role: kind.connection(),
            schedule,
            background: false,
            interrupt: program.interrupt()?,
            server_thread: None,
            program,
        })
    }
}

/// The operations of each role that are captured.
const CAPTURED_OPS: u32 = 32;

/// Returns the plans of the first statements of each role; none from engines without plans. `tasks`
/// opens the connections on a [`Capture`], which notes their statements.
pub(crate) fn plans_of_first_ops<E: SqlEngine>(
    engine: &E,
    tasks: impl FnOnce(&Capture<'_, E>) -> Result<Vec<Task>, Error>,
) -> Result<Vec<StatementPlan>, Error> {
    let Some(capture) = Capture::new(engine)? else {
        return Ok(Vec::new());
    };
    run_first_ops(tasks(&capture)?)?;
    capture.plans()
}

fn run_first_ops(tasks: Vec<Task>) -> Result<(), Error> {
    let mut roles = Vec::new();
    for Task { role, mut program, .. } in tasks {
        if roles.contains(&role) {
            continue;
        }
        roles.push(role);

        program.begin();
        for _ in 0..CAPTURED_OPS {
            match program.prepare() {
                Next::Ready(_) => program.execute()?,
                Next::Later | Next::Done => break,
            };
        }
    }
    Ok(())
}

/// The clients that have their connections in this process. A client's connections stay together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientShare {
    /// The number of this process's part, from 0.
    pub part: u32,
    /// The number of parts.
    pub parts: u32,
}

impl ClientShare {
    /// All clients.
    pub const ALL: Self = Self { part: 0, parts: 1 };

    /// Returns whether a client is in this part. Clients are dealt in turn, so that parts differ by
    /// one at most.
    pub fn has(self, client: u32) -> bool {
        client % self.parts == self.part
    }
}

/// The answer of [`Program::prepare`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// An operation is ready, of the kind at this index of [`Program::kinds`].
    Ready(usize),
    /// Another connection has to progress first: [`Program::wait`] for it and ask again.
    Later,
    /// All operations are done.
    Done,
}

/// The result of a successful operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Rows that it read, inserted, changed or deleted.
    pub rows: u64,
    /// The number of rows is as expected.
    pub is_expected: bool,
    /// The operation rolled back, as its workload meant.
    pub is_rolled_back: bool,
}

impl Executed {
    /// Returns the result of an operation on `rows` rows, which should be within the bounds.
    #[inline]
    pub fn new(rows: u64, (min, max): (u64, u64)) -> Self {
        Self { rows, is_expected: min <= rows && rows <= max, is_rolled_back: false }
    }

    /// Returns the result of an operation without rows, such as the creation of an index.
    pub fn without_rows() -> Self {
        Self::new(0, (0, 0))
    }
}

/// The work of one connection. It owns its session, its random streams and all its buffers, so that
/// running it allocates nothing and shares nothing that others write while it does.
pub trait Program: Send {
    /// Returns the kinds of operation. The schedule applies to the first, the main kind, unless
    /// [`Program::shares`] says otherwise.
    fn kinds(&self) -> &'static [OpKind];

    /// Returns the share of the scheduled operations of each kind. Kinds after the last have no
    /// schedule: their operations begin as soon as they are prepared.
    fn shares(&self) -> Vec<f64> {
        vec![1.0]
    }

    /// Called first and once, by the thread that calls the other methods.
    fn begin(&mut self) {}

    /// Prepares the next operation, outside of measured time: draws its values, encodes its
    /// message.
    fn prepare(&mut self) -> Next;

    /// Returns the time from the reply to the operation before, or from the start of the step, until
    /// the prepared one is due, in nanoseconds. Asked only with [`Schedule::Paused`].
    fn pause_ns(&self) -> u64 {
        0
    }

    /// Draws what other connections may have changed while the prepared operation waited until it was
    /// due. Called right before the operation is sent, and only with a schedule: without one, no
    /// operation waits.
    fn on_due(&mut self) {}

    /// Waits until it is worth asking again after [`Next::Later`], but not longer than `at_most`.
    fn wait(&self, at_most: Duration) {
        std::thread::sleep(at_most.min(Duration::from_micros(50)));
    }

    /// Runs the prepared operation; called again for a retry if [`Program::may_retry`] allows that.
    ///
    /// # Errors
    /// The engine's own.
    fn execute(&mut self) -> Result<Executed, Error>;

    /// Returns whether an operation that failed with this class may succeed in a retry.
    fn may_retry(&self, class: ErrorClass) -> bool {
        class.is_transient()
    }

    /// Returns the interrupt of the current operation; `None` if all operations are short. Asked
    /// once, before the step.
    ///
    /// # Errors
    /// The engine's own.
    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        Ok(None)
    }

    /// Returns the server's thread; see [`engine::Session::server_thread`]. Called at most once,
    /// before the step.
    fn server_thread(&mut self) -> Option<u32> {
        None
    }

    /// Returns what the workload needs to know about the operations, of which the successful ones
    /// had `rows` rows. Called once, after the step.
    ///
    /// # Errors
    /// The engine's own, if the engine has to be asked.
    fn summary(&mut self, rows: u64) -> Result<Summary, Error> {
        let _ = rows;
        Ok(Summary::Nothing)
    }
}
