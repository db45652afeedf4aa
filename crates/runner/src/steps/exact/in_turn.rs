//! A connection's operations, one in each of its turns.

use std::sync::Arc;
use std::time::Duration;

use engine::{Error, ErrorClass, Interrupt};
use probe::ServingThread;
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
    /// The server's thread for the connection; `None` without a server.
    server: Option<ServingThread>,
}

/// The pause between two looks whether the server waits for an operation.
const LOOK_AGAIN: Duration = Duration::from_micros(100);
/// The number of looks after which an operation is sent anyway.
const LOOKS_MAX: u32 = 1000;

/// Makes the connections of a step work in turn.
pub fn take_turns(tasks: Vec<Task>, window: &Arc<Window>) -> Vec<Task> {
    let mut in_turn = Vec::new();
    for (number, task) in tasks.into_iter().enumerate() {
        let window = Arc::clone(window);
        let server = task.server_thread.map(ServingThread::new);
        let program = Box::new(InTurn { program: task.program, window, number, ready: 0, server });
        // The window decides who works next: a schedule would change the order.
        in_turn.push(Task { program, schedule: workload::Schedule::Closed, ..task });
    }

    in_turn
}

impl InTurn {
    /// Waits until the server waits for the next operation. If the operation came earlier in some
    /// cells than in others, the server would sometimes not have to wait, which is less work.
    fn wait_for_server(&mut self) {
        let Some(server) = &mut self.server else {
            return;
        };

        for _ in 0..LOOKS_MAX {
            if server.waits_for_message() != Some(false) {
                return;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
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
                // Nothing waits here.
                self.program.on_due();
                self.ready = kind;
                Next::Ready(kind)
            }
            Next::Later => {
                self.window.pass_turn(self.number);
                Next::Later
            }
            // Asked again, so that the step ends only when the window does.
            Next::Done => {
                self.window.finish(self.number);
                Next::Later
            }
        }
    }

    /// Asking for the turn waits.
    fn wait(&self, _at_most: Duration) {}

    fn execute(&mut self) -> Result<Executed, Error> {
        self.wait_for_server();
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
