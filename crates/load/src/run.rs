//! Runs one step. Its workers are started together (`start.rs`), seen to their end
//! (`supervise.rs`), and what they did is put together (`finish.rs`).

use std::sync::atomic::AtomicBool;

use workload::Task;

use crate::Clock;
use crate::collect::{Collector, Sink};
use crate::finish::finish;
use crate::start::{Links, Start, links};
use crate::step::{Limits, Outcome};
use crate::supervise::Supervisor;
use crate::worker::Shared;

/// Runs the tasks of one step to their end. `stop` ends it early.
pub fn run<C: Clock>(
    tasks: Vec<Task>,
    limits: Limits,
    clock: &C,
    stop: &AtomicBool,
    sink: &mut dyn Sink,
) -> Outcome {
    let shared = Shared::default();
    let Links {
        origins,
        connections,
        seats,
        messages,
        inbox,
    } = links(tasks);
    let collector = Collector::new(sink, origins);
    let mut supervisor = Supervisor::new(collector, connections, &shared, stop, limits);
    let start = Start::new(clock.clone(), limits, &shared);
    let finished = std::thread::scope(|scope| {
        let workers = start.workers(scope, seats, messages);
        let start_at = start.begin(&workers, &mut supervisor.collector);
        supervisor.watch(&inbox, workers.handles.len(), || {
            clock.now().saturating_sub(start_at)
        });
        workers.join()
    });
    supervisor.drain(&inbox);
    finish(supervisor, finished)
}
