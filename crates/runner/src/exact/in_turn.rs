//! A connection's operations, one in each of its turns.

use std::sync::Arc;
use std::time::Duration;

use engine::{Error, ErrorClass, Interrupt};
use workload::{Executed, Next, OpKind, Program, Summary, Task};

use super::window::{Turn, Window};

/// A connection's program that works in turn with those of the other connections.
struct InTurn {
    program: Box<dyn Program>,
    window: Arc<Window>,
    /// The connection's number.
    number: usize,
    /// The kind of the operation that is ready.
    ready: usize,
}

/// Makes the connections of a step work in turn.
pub fn take_turns(tasks: Vec<Task>, window: &Arc<Window>) -> Vec<Task> {
    let in_turn = |(number, task): (usize, Task)| {
        let window = Arc::clone(window);
        let program = Box::new(InTurn { program: task.program, window, number, ready: 0 });
        Task { program, schedule: workload::Schedule::Closed, ..task }
    };
    tasks.into_iter().enumerate().map(in_turn).collect()
}

impl Program for InTurn {
    fn kinds(&self) -> &'static [OpKind] {
        self.program.kinds()
    }

    fn begin(&mut self) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        self.window.note_thread(self.number, thread);
        self.program.begin();
    }

    fn prepare(&mut self) -> Next {
        match self.window.take_turn(self.number) {
            Turn::Granted => {}
            Turn::NotYet => return Next::Later,
            Turn::Over => return Next::Done,
        }
        match self.program.prepare() {
            Next::Ready(kind) => {
                self.ready = kind;
                Next::Ready(kind)
            }
            Next::Later => {
                self.window.pass_turn(self.number);
                Next::Later
            }
            Next::Done => {
                self.window.finish(self.number);
                Next::Later
            }
        }
    }

    /// Asking for the turn waits.
    fn wait(&self, _at_most: Duration) {}

    fn execute(&mut self) -> Result<Executed, Error> {
        let executed = self.program.execute()?;
        self.window.end_operation(self.number, self.program.kinds()[self.ready].name);
        Ok(executed)
    }

    fn may_retry(&self, class: ErrorClass) -> bool {
        self.program.may_retry(class)
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.program.interrupt()
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.program.server_thread()
    }

    fn summary(&mut self, rows: u64) -> Result<Summary, Error> {
        self.program.summary(rows)
    }
}
