//! The start of a step: a thread for each connection, and all of them begin at one moment.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle, Thread};

use engine::Interrupt;
use words::ThreadUse;
use workload::{Schedule, Task};

use crate::collect::{Collector, ConnectionThreads, Origin};
use crate::step::Limits;
use crate::tally::Lap;
use crate::thread_use::{ThreadCpu, ThreadMeter};
use crate::worker::{Ending, Message, Shared, Worker};
use crate::{Clock, panic_text};

/// Laps of one connection in circulation: one in use, one under way, one spare for a collector that is late.
const LAPS: usize = 3;
/// The workers are all asleep before the start when it comes.
const LEAD_NS: u64 = 20_000_000;

/// What joins the workers with the thread that supervises them.
pub(crate) struct Links {
    pub(crate) origins: Vec<Origin>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) seats: Vec<Seat>,
    pub(crate) messages: SyncSender<Message>,
    pub(crate) inbox: Receiver<Message>,
}

/// What is kept of a connection while its thread works.
pub(crate) struct Connection {
    pub(crate) background: bool,
    pub(crate) interrupt: Option<Interrupt>,
    /// Takes laps that are empty again.
    pub(crate) spares: SyncSender<Box<Lap>>,
}

/// What the thread of a connection takes with it.
pub(crate) struct Seat {
    number: usize,
    task: Task,
    lap: Box<Lap>,
    spare: Receiver<Box<Lap>>,
}

/// What the thread of a connection leaves.
pub(crate) struct Finished {
    pub(crate) task: Task,
    pub(crate) ending: Ending,
    pub(crate) cpu: ThreadCpu,
    pub(crate) client_use: Option<ThreadUse>,
    pub(crate) server_use: Option<ThreadUse>,
}

/// Makes all that `tasks` need to run, but for their threads.
pub(crate) fn links(tasks: Vec<Task>) -> Links {
    let (messages, inbox) = sync_channel(tasks.len() * (LAPS + 1) + 1024);
    let (mut origins, mut connections, mut seats) = (Vec::new(), Vec::new(), Vec::new());
    for (number, mut task) in tasks.into_iter().enumerate() {
        let kinds = task.program.kinds();
        let open = task.schedule != Schedule::Closed;
        let lap = || Lap::new(kinds.len(), open);
        let (spares, spare) = sync_channel(LAPS);
        for _ in 1..LAPS {
            let _ = spares.try_send(lap());
        }
        origins.push(Origin::new(task.client, kinds, task.schedule));
        connections.push(Connection {
            background: task.background,
            interrupt: task.interrupt.take(),
            spares,
        });
        seats.push(Seat {
            number,
            lap: lap(),
            task,
            spare,
        });
    }
    Links {
        origins,
        connections,
        seats,
        messages,
        inbox,
    }
}

/// What all threads of a step have in common.
pub(crate) struct Start<'a, C> {
    clock: C,
    limits: Limits,
    shared: &'a Shared,
    at: OnceLock<u64>,
}

/// The threads of a step that wait for its start.
pub(crate) struct Workers<'scope> {
    pub(crate) handles: Vec<ScopedJoinHandle<'scope, Finished>>,
    threads: Vec<ConnectionThreads>,
    /// Every connection has one.
    is_complete: bool,
}

impl Workers<'_> {
    /// Waits for the end of all threads.
    pub(crate) fn join(self) -> Vec<Finished> {
        let joined = self.handles.into_iter().map(ScopedJoinHandle::join);
        joined
            .map(|finished| finished.expect("panics of a worker are caught within it"))
            .collect()
    }
}

impl<'a, C: Clock> Start<'a, C> {
    pub(crate) fn new(clock: C, limits: Limits, shared: &'a Shared) -> Self {
        Self {
            clock,
            limits,
            shared,
            at: OnceLock::new(),
        }
    }

    /// Makes the threads; returns when each is ready.
    pub(crate) fn workers<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        seats: Vec<Seat>,
        messages: SyncSender<Message>,
    ) -> Workers<'scope> {
        let count = seats.len();
        let (ready, readied) = sync_channel(count);
        let spawn = |seat: Seat| {
            let number = seat.number;
            let (messages, ready) = (messages.clone(), ready.clone());
            let collector = std::thread::current();
            let spawned = std::thread::Builder::new()
                .name(format!("load-{}", number + 1))
                .spawn_scoped(scope, move || self.work(seat, messages, collector, &ready));
            // Those that are there wait for the start, which is then their end.
            let refused = |error| {
                self.shared.poison(format!(
                    "the system has no thread for connection {} of {count}: {error}",
                    number + 1
                ));
            };
            spawned.map_err(refused).ok()
        };
        let handles: Vec<_> = seats.into_iter().map_while(spawn).collect();
        let mut threads: Vec<(usize, ConnectionThreads)> =
            handles.iter().filter_map(|_| readied.recv().ok()).collect();
        threads.sort_by_key(|(number, _)| *number);
        Workers {
            is_complete: handles.len() == count,
            handles,
            threads: threads.into_iter().map(|(_, threads)| threads).collect(),
        }
    }

    /// Sets the moment of the start, which is returned, and tells it to the sink.
    pub(crate) fn begin(&self, workers: &Workers<'_>, collector: &mut Collector<'_>) -> u64 {
        let at = self.clock.now() + LEAD_NS;
        // The sink may need threads, too, and the connections must not wait for ever for a start that does not come.
        let begin = || collector.begin(at, &workers.threads);
        if workers.is_complete
            && let Err(panic) = catch_unwind(AssertUnwindSafe(begin))
        {
            self.shared
                .poison(format!("the step could not begin: {}", panic_text(&*panic)));
        }
        let _ = self.at.set(at);
        at
    }

    /// Works as the thread of a connection, from before the start to the end of the step.
    fn work(
        &self,
        seat: Seat,
        messages: SyncSender<Message>,
        collector: Thread,
        ready: &SyncSender<(usize, ConnectionThreads)>,
    ) -> Finished {
        let Seat {
            number,
            mut task,
            lap,
            spare,
        } = seat;
        // Without it the kernel may add 50 us to every wait for the schedule.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let (client, server) = (tid.cast_unsigned(), task.server_thread);
        // Before the start: the kernel may take its time for the first counter.
        let meters = [Some(client), server].map(|tid| ThreadMeter::begin(tid?));
        let _ = ready.send((number, ConnectionThreads { client, server }));
        let mut worker = Worker {
            number,
            clock: self.clock.clone(),
            schedule: task.schedule,
            start_at: *self.at.wait(),
            deadline_ns: self.limits.deadline_ns(),
            attempts: self.limits.attempts,
            error_limit: self.limits.error_limit,
            shared: self.shared,
            messages,
            collector,
            spare,
            lap,
        };
        let cpu = ThreadCpu::now();
        let ending = catch_unwind(AssertUnwindSafe(|| worker.work(&mut *task.program)));
        let cpu = ThreadCpu::now().since(&cpu);
        let [client_use, server_use] = meters.map(|meter| meter?.end());
        let ending = ending.unwrap_or_else(|panic| {
            self.shared.poison(format!(
                "connection {} panicked: {}",
                number + 1,
                panic_text(&*panic)
            ));
            Ending::default()
        });
        worker.tell(Message::Ended(number));
        worker.collector.unpark();
        Finished {
            task,
            ending,
            cpu,
            client_use,
            server_use,
        }
    }
}
