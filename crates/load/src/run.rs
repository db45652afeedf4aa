//! Runs one step: starts its workers together (`start.rs`), supervises them until they end
//! (`supervise.rs`), and combines what they did (`finish.rs`).

use std::sync::atomic::AtomicBool;

use workload::Task;

use crate::Clock;
use crate::collect::{Collector, Sink};
use crate::finish::finish;
use crate::start::{StepSetup, StepStart, set_up};
use crate::step::{Limits, StepOutcome};
use crate::supervise::Supervisor;
use crate::worker::Shared;

/// Runs the tasks of one step until they end. `stop` ends the step early.
pub fn run<C: Clock>(
    tasks: Vec<Task>,
    limits: Limits,
    clock: &C,
    stop: &AtomicBool,
    sink: &mut dyn Sink,
) -> StepOutcome {
    let shared = Shared::default();
    let StepSetup { workers, connections, seats, messages, inbox } = set_up(tasks);
    let collector = Collector::new(sink, workers);
    let mut supervisor = Supervisor::new(collector, connections, &shared, stop, limits);
    let start = StepStart::new(clock.clone(), limits, &shared);

    let finished = std::thread::scope(|scope| {
        let workers = start.spawn_workers(scope, seats, messages);
        let start_at = start.begin(&workers, &mut supervisor.collector);
        supervisor.watch(&inbox, workers.handles.len(), || clock.now().saturating_sub(start_at));
        workers.join()
    });

    supervisor.drain(&inbox);
    supervisor.collector.before_close();
    finish(supervisor, finished)
}
