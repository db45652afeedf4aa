//! The start of a step: a thread for each connection, and all of them begin at one moment.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle, Thread};

use engine::Interrupt;
use words::ThreadUse;
use workload::{Schedule, Task};

use crate::collect::{Collector, ConnectionThreads, WorkerInfo};
use crate::step::Limits;
use crate::tally::Lap;
use crate::thread_use::{ThreadCpu, ThreadMeter};
use crate::worker::{Message, Shared, Worker, WorkerReport};
use crate::{Clock, panic_text};

/// Laps per connection: one in use, one in the channel, one spare in case the collector is late.
const LAPS: usize = 3;
/// Time until the common start: long enough for all workers to be asleep before it.
const LEAD_NS: u64 = 20_000_000;

/// Both ends of the channels between the workers and the thread that supervises them.
pub(crate) struct StepSetup {
    pub(crate) workers: Vec<WorkerInfo>,
    pub(crate) connections: Vec<ConnectionHandle>,
    pub(crate) seats: Vec<WorkerSeat>,
    pub(crate) messages: SyncSender<Message>,
    pub(crate) inbox: Receiver<Message>,
}

/// The supervisor's handle on a running connection.
pub(crate) struct ConnectionHandle {
    pub(crate) background: bool,
    pub(crate) interrupt: Option<Interrupt>,
    /// Returns empty laps to the worker.
    pub(crate) spares: SyncSender<Box<Lap>>,
}

/// The input of a connection's thread.
pub(crate) struct WorkerSeat {
    number: usize,
    task: Task,
    lap: Box<Lap>,
    spare: Receiver<Box<Lap>>,
}

/// The result of a connection's thread.
pub(crate) struct FinishedWorker {
    pub(crate) task: Task,
    pub(crate) report: WorkerReport,
    pub(crate) cpu: ThreadCpu,
    pub(crate) client_use: Option<ThreadUse>,
    pub(crate) server_use: Option<ThreadUse>,
}

/// Makes everything that `tasks` need to run, except their threads.
pub(crate) fn set_up(tasks: Vec<Task>) -> StepSetup {
    // Room for all laps of each connection, its end, and some errors.
    let (messages, inbox) = sync_channel(tasks.len() * (LAPS + 1) + 1024);
    let mut workers = Vec::new();
    let mut connections = Vec::new();
    let mut seats = Vec::new();
    for (number, mut task) in tasks.into_iter().enumerate() {
        let kinds = task.program.kinds();
        let is_open = task.schedule != Schedule::Closed;
        let lap = Lap::new(kinds.len(), is_open);
        let (spares, spare) = sync_channel(LAPS);
        for _ in 1..LAPS {
            let _ = spares.try_send(Lap::new(kinds.len(), is_open));
        }

        workers.push(WorkerInfo::new(&task));
        connections.push(ConnectionHandle {
            background: task.background,
            interrupt: task.interrupt.take(),
            spares,
        });
        seats.push(WorkerSeat { number, lap, task, spare });
    }
    StepSetup { workers, connections, seats, messages, inbox }
}

/// The state that the threads of a step share until it starts.
pub(crate) struct StepStart<'a, C> {
    clock: C,
    limits: Limits,
    shared: &'a Shared,
    at: OnceLock<u64>,
}

/// The threads of a step, waiting for its start.
pub(crate) struct Workers<'scope> {
    pub(crate) handles: Vec<ScopedJoinHandle<'scope, FinishedWorker>>,
    threads: Vec<ConnectionThreads>,
    /// Every connection has a thread.
    is_complete: bool,
}

impl Workers<'_> {
    /// Waits for the end of all threads.
    pub(crate) fn join(self) -> Vec<FinishedWorker> {
        self.handles
            .into_iter()
            .map(|thread| thread.join().expect("panics of a worker are caught within it"))
            .collect()
    }
}

impl<'a, C: Clock> StepStart<'a, C> {
    pub(crate) fn new(clock: C, limits: Limits, shared: &'a Shared) -> Self {
        Self { clock, limits, shared, at: OnceLock::new() }
    }

    /// Spawns the threads, and waits until each is ready.
    pub(crate) fn spawn_workers<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        seats: Vec<WorkerSeat>,
        messages: SyncSender<Message>,
    ) -> Workers<'scope> {
        let count = seats.len();
        let (ready, ready_threads) = sync_channel(count);
        let mut handles = Vec::new();
        for seat in seats {
            let number = seat.number;
            let (messages, ready) = (messages.clone(), ready.clone());
            let collector = std::thread::current();
            let spawned = std::thread::Builder::new()
                .name(format!("load-{}", number + 1))
                .spawn_scoped(scope, move || self.work(seat, messages, collector, &ready));
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    // The threads that exist wait for the start, and end at once then.
                    self.shared.poison(format!(
                        "cannot create the thread of connection {} of {count}: {error}",
                        number + 1
                    ));
                    break;
                }
            }
        }

        // A thread that panics before it is ready must not keep this one waiting.
        drop(ready);

        // Threads become ready in any order.
        let mut numbered: Vec<(usize, ConnectionThreads)> =
            handles.iter().filter_map(|_| ready_threads.recv().ok()).collect();
        numbered.sort_by_key(|(number, _)| *number);
        Workers {
            is_complete: handles.len() == count,
            handles,
            threads: numbered.into_iter().map(|(_, threads)| threads).collect(),
        }
    }

    /// Sets and returns the time of the start, and announces it to the sink.
    pub(crate) fn begin(&self, workers: &Workers<'_>, collector: &mut Collector<'_>) -> u64 {
        let mut at = self.clock.now() + LEAD_NS;
        if workers.is_complete {
            // The sink may fail to spawn threads of its own; the connections must not wait forever
            // for the start.
            let begin = AssertUnwindSafe(|| collector.begin(at, &workers.threads));
            match catch_unwind(begin).unwrap_or_else(|panic| Err(panic_text(&*panic).to_owned())) {
                Ok(agreed) => at = agreed,
                Err(why) => self.shared.poison(format!("cannot start the step: {why}")),
            }
        }
        let _ = self.at.set(at);
        at
    }

    /// Runs one connection on its thread, from before the start to the end of the step.
    fn work(
        &self,
        seat: WorkerSeat,
        messages: SyncSender<Message>,
        collector: Thread,
        ready: &SyncSender<(usize, ConnectionThreads)>,
    ) -> FinishedWorker {
        let WorkerSeat { number, mut task, lap, spare } = seat;
        // By default the kernel may add 50 us to every wait for the schedule.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));

        // Before the start: opening the first counter may be slow.
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let (client, server) = (Some(tid.cast_unsigned()), task.server_thread);
        let meters = [client, server].map(|tid| ThreadMeter::begin(tid?));
        if let Some(gate) = self.clock.gate() {
            gate.enter(number);
        }
        let _ = ready.send((number, ConnectionThreads { client, server }));

        // Waits until `begin` has set the common start.
        let start_at = *self.at.wait();
        let mut worker = Worker {
            number,
            clock: self.clock.clone(),
            schedule: task.schedule,
            start_at,
            deadline_ns: self.limits.deadline_ns(),
            attempts: self.limits.attempts,
            error_limit: self.limits.error_limit,
            shared: self.shared,
            messages,
            collector,
            spare,
            done_before: vec![0; lap.tallies.len()],
            lap,
        };

        let cpu_before = ThreadCpu::now();
        let result = catch_unwind(AssertUnwindSafe(|| worker.work(&mut *task.program)));
        let cpu = ThreadCpu::now().since(&cpu_before);
        let [client_use, server_use] = meters.map(|meter| meter?.end());

        // A panic fails the step, as an error of the connection does.
        let report = result.unwrap_or_else(|panic| {
            self.shared.poison(format!(
                "connection {} panicked: {}",
                number + 1,
                panic_text(&*panic)
            ));
            WorkerReport::default()
        });
        if let Some(gate) = self.clock.gate() {
            gate.leave(number, worker.work_so_far(task.program.kinds()));
        }
        worker.send(Message::Ended(number));
        worker.collector.unpark();
        FinishedWorker { task, report, cpu, client_use, server_use }
    }
}
