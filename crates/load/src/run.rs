//! One step: starts the workers together, collects while they run, and sees to it that all of them end.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{TryRecvError, sync_channel};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use workload::{Program, Schedule, Task};

use crate::Clock;
use crate::collect::{Collector, KindTotals, Origin, Sink};
use crate::tally::Lap;
use crate::thread_use::{ThreadCpu, ThreadMeter, ThreadUse};
use crate::worker::{Ending, Message, Shared, Worker};

/// The threads that do the work of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionThreads {
    /// The load's own.
    pub client: u32,
    /// The server's; see [`Task::server_thread`].
    pub server: Option<u32>,
}

/// What ends a step.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The length of a step of given length; without it the step ends when the programs' quotas are done.
    pub time: Option<Duration>,
    /// Failed operations over all connections beyond which the step fails.
    pub error_limit: u64,
    /// Attempts at an operation that fails with a transient error, the first included.
    pub attempts: u32,
    /// How long connections may still wait for a reply once they are to end, before they are cut off and the step
    /// fails.
    pub grace: Duration,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As planned.
    Complete,
    /// It could not go on, for these reasons.
    Failed(Vec<String>),
    /// The operator stopped it.
    Interrupted,
}

/// What one connection did.
pub struct Worked {
    /// Its client, from 0.
    pub client: u32,
    /// Its role.
    pub role: &'static str,
    /// The program, with its session, as the step left them.
    pub program: Box<dyn Program>,
    /// When its first operation was due, since the step began.
    pub started_ns: u64,
    /// When its last operation had ended, since the step began.
    pub ended_ns: u64,
    /// CPU time of its thread in user mode.
    pub cpu_user_ns: u64,
    /// CPU time of its thread in the kernel.
    pub cpu_system_ns: u64,
    /// The load's thread, as the scheduler accounts for it; `None` where the kernel does not say.
    pub client_use: Option<ThreadUse>,
    /// The server's thread in the same time; `None` where none is known.
    pub server_use: Option<ThreadUse>,
    /// Rows of its successful operations.
    pub rows: u64,
    /// Its successful operations.
    pub ok: u64,
}

/// What a step came to.
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// When it began, by the clock that was given.
    pub start_at: u64,
    /// Its length: from the common start to the end of the last connection, and no less than the time it was given.
    pub elapsed_ns: u64,
    /// What each connection did, in the order of the tasks; of a step that failed because the system had no thread left,
    /// those that had one.
    pub worked: Vec<Worked>,
    /// Totals by kind of operation.
    pub totals: BTreeMap<&'static str, KindTotals>,
    /// The longest time that one connection lost waiting for the collector: the harness' own stall.
    pub handover_wait_ns_max: u64,
}

/// Laps of one connection in circulation: one in use, one under way, one spare for a collector that is late.
const LAPS: usize = 3;
/// The workers are all asleep before the start when it comes.
const LEAD_NS: u64 = 20_000_000;
/// The collector looks for messages so often, unless it is woken.
const POLL: Duration = Duration::from_millis(100);
/// The collector tells the display and passes on seconds so often.
const TICK_NS: u64 = 250_000_000;

/// Runs the tasks of one step to their end. `stop` ends it early; `started` is told the moment of the common start, by
/// `clock`, before it comes, and the threads of each connection in the order of the tasks.
pub fn run<C: Clock, S: Sink>(
    tasks: Vec<Task>,
    limits: Limits,
    clock: &C,
    stop: &AtomicBool,
    started: impl FnOnce(u64, &[ConnectionThreads]),
    sink: &mut S,
) -> Outcome {
    let deadline_ns = limits.time.map(|time| time.as_nanos() as u64);
    let shared = Shared {
        halt: AtomicBool::new(false),
        failed: AtomicU64::new(0),
        poison: Mutex::new(Vec::new()),
    };
    let (messages, inbox) = sync_channel(tasks.len() * (LAPS + 1) + 1024);
    let mut origins = Vec::new();
    let mut interrupts = Vec::new();
    let mut spares = Vec::new();
    let mut threads = Vec::new();
    for (number, mut task) in tasks.into_iter().enumerate() {
        let kinds = task.program.kinds();
        let open = task.schedule != Schedule::Closed;
        origins.push(Origin::new(task.client, kinds, open));
        interrupts.push((task.background, task.interrupt.take()));
        let (give, spare) = sync_channel(LAPS);
        for _ in 1..LAPS {
            let _ = give.try_send(Lap::new(kinds.len(), open));
        }
        spares.push(give);
        threads.push((number, Lap::new(kinds.len(), open), spare, task));
    }
    let count = threads.len();
    let mut collector = Collector::new(sink, origins);
    for (_, _, _, task) in &threads {
        if let Schedule::Open { period_ns, .. } = task.schedule
            && let Some(kind) = task.program.kinds().first()
        {
            *collector
                .total(kind.0)
                .rate_target_ops_per_s
                .get_or_insert(0.0) += 1e9 / period_ns;
        }
    }

    let (ready, readied) = sync_channel(count);
    let start = OnceLock::new();
    let mut recording = Ok(());
    let mut start_at = 0;
    let mut interrupted = false;
    let mut ended = Vec::new();
    std::thread::scope(|scope| {
        let handles: Vec<_> = threads
            .into_iter()
            .map_while(|(number, lap, spare, mut task)| {
                let (messages, clock, shared, ready, start) = (
                    messages.clone(),
                    clock.clone(),
                    &shared,
                    ready.clone(),
                    &start,
                );
                let collector = std::thread::current();
                let body = move || {
                    // Without it the kernel may add 50 us to every wait for the schedule.
                    let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
                    let client = rustix::thread::gettid()
                        .as_raw_nonzero()
                        .get()
                        .cast_unsigned();
                    let server = task.server_thread;
                    // Before the start: the kernel may take its time for the first counter.
                    let meters = [Some(client), server].map(|tid| ThreadMeter::begin(tid?));
                    let _ = ready.send((number, ConnectionThreads { client, server }));
                    let mut worker = Worker {
                        number,
                        clock,
                        schedule: task.schedule,
                        start_at: *start.wait(),
                        deadline_ns,
                        attempts: limits.attempts,
                        error_limit: limits.error_limit,
                        shared,
                        messages,
                        collector,
                        spare,
                        lap,
                    };
                    let cpu = ThreadCpu::now();
                    let ending = catch_unwind(AssertUnwindSafe(|| worker.work(&mut *task.program)));
                    let cpu = ThreadCpu::now().since(&cpu);
                    let used = meters.map(|meter| meter?.end());
                    let ending = ending.unwrap_or_else(|panic| {
                        shared.poison(format!(
                            "connection {} panicked: {}",
                            number + 1,
                            panic_text(&*panic)
                        ));
                        Ending::default()
                    });
                    worker.tell(Message::Ended(number));
                    worker.collector.unpark();
                    (task, ending, cpu, used)
                };
                let spawned = std::thread::Builder::new()
                    .name(format!("load-{}", number + 1))
                    .spawn_scoped(scope, body);
                // Those that are there wait for the start, which is then their end.
                let refused = |error| {
                    shared.poison(format!(
                        "the system has no thread for connection {} of {count}: {error}",
                        number + 1
                    ));
                };
                spawned.map_err(refused).ok()
            })
            .collect();
        drop(messages);
        let mut connections: Vec<(usize, ConnectionThreads)> =
            handles.iter().filter_map(|_| readied.recv().ok()).collect();
        connections.sort_by_key(|(number, _)| *number);
        let connections: Vec<_> = connections.into_iter().map(|(_, it)| it).collect();
        start_at = clock.now() + LEAD_NS;
        // It may need threads, too, and the connections must not wait for ever for a start that does not come.
        if handles.len() == count
            && let Err(panic) = catch_unwind(AssertUnwindSafe(|| started(start_at, &connections)))
        {
            shared.poison(format!("the step could not begin: {}", panic_text(&*panic)));
        }
        let _ = start.set(start_at);

        let mut running = vec![true; handles.len()];
        let mut halted_at = None;
        let mut cut_off = false;
        let mut next_tick_ns = TICK_NS;
        while running.iter().any(|&running| running) {
            let message = match inbox.try_recv() {
                Ok(message) => Some(message),
                Err(TryRecvError::Empty) => {
                    std::thread::park_timeout(POLL);
                    None
                }
                Err(TryRecvError::Disconnected) => break,
            };
            // All else is looked at after each of them: connections that tell more than can be taken in must not keep the
            // operator from ending the step.
            match message {
                Some(Message::Lap(number, mut lap)) => {
                    if recording.is_ok() {
                        recording = collector.lap(number, &mut lap);
                    }
                    let _ = spares[number].try_send(lap);
                }
                Some(Message::Error(number, kind, error)) => collector.error(number, kind, &error),
                Some(Message::Ended(number)) => running[number] = false,
                None => {}
            }
            let now_ns = clock.now().saturating_sub(start_at);
            if now_ns >= next_tick_ns && recording.is_ok() {
                recording = collector.tick(now_ns);
                next_tick_ns = now_ns + TICK_NS;
            }
            if let Err(reason) = &recording
                && !shared.halt.load(Ordering::Relaxed)
            {
                shared.poison(format!("the record could not be written: {reason}"));
            }
            if stop.load(Ordering::Relaxed) {
                interrupted = true;
                shared.halt.store(true, Ordering::Relaxed);
            }
            let foreground_runs = running
                .iter()
                .zip(&interrupts)
                .any(|(&running, &(background, _))| running && !background);
            if !foreground_runs {
                shared.halt.store(true, Ordering::Relaxed);
            }
            // Those that are to end and still wait for a reply are cut off after a while.
            let over = shared.halt.load(Ordering::Relaxed)
                || deadline_ns.is_some_and(|deadline_ns| now_ns > deadline_ns);
            if over && !cut_off {
                let since = *halted_at.get_or_insert(now_ns);
                let grace = if interrupted {
                    Duration::from_secs(2)
                } else {
                    limits.grace
                };
                if u128::from(now_ns - since) >= grace.as_nanos() {
                    cut_off = true;
                    if !interrupted && foreground_runs {
                        shared.poison(format!(
                            "connections had no reply for {} s after the step was to end and were cut off",
                            grace.as_secs()
                        ));
                    }
                    shared.halt.store(true, Ordering::Relaxed);
                    for ((_, interrupt), _) in interrupts
                        .iter()
                        .zip(&running)
                        .filter(|(_, running)| **running)
                    {
                        if let Some(interrupt) = interrupt {
                            interrupt();
                        }
                    }
                }
            }
        }
        ended = handles
            .into_iter()
            .map(|handle| {
                handle
                    .join()
                    .expect("panics of a worker are caught within it")
            })
            .collect::<Vec<_>>();
    });
    for message in inbox.try_iter() {
        match message {
            Message::Lap(number, mut lap) if recording.is_ok() => {
                recording = collector.lap(number, &mut lap)
            }
            Message::Error(number, kind, error) => collector.error(number, kind, &error),
            Message::Lap(..) | Message::Ended(_) => {}
        }
    }

    let elapsed_ns = ended
        .iter()
        .filter(|(task, ..)| !task.background)
        .map(|(_, ending, ..)| ending.ended_ns)
        .max();
    let mut elapsed_ns = elapsed_ns.unwrap_or(0);
    let mut poison = shared
        .poison
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if !interrupted && poison.is_empty() {
        elapsed_ns = elapsed_ns.max(deadline_ns.unwrap_or(0));
    }
    if recording.is_ok() {
        recording = collector.finish(elapsed_ns.div_ceil(1_000_000_000) as u32);
        if let Err(reason) = recording {
            poison.push(format!("the record could not be written: {reason}"));
        }
    }
    let done = std::mem::take(&mut collector.done);
    let mut totals = std::mem::take(&mut collector.totals);
    let mut handover_wait_ns_max = 0;
    let mut worked = Vec::new();
    for ((task, ending, cpu, [client_use, server_use]), (rows, ok)) in ended.into_iter().zip(done) {
        handover_wait_ns_max = handover_wait_ns_max.max(ending.handover_wait_ns);
        if let Some(total) = task
            .program
            .kinds()
            .first()
            .and_then(|kind| totals.get_mut(kind.0))
        {
            total.offered += ending.skipped;
            total.skipped += ending.skipped;
        }
        worked.push(Worked {
            client: task.client,
            role: task.role,
            program: task.program,
            started_ns: ending.started_ns,
            ended_ns: ending.ended_ns,
            cpu_user_ns: cpu.user_ns,
            cpu_system_ns: cpu.system_ns,
            client_use,
            server_use,
            rows,
            ok,
        });
    }
    for (kind, total) in &totals {
        if total.offered != total.skipped + total.ok + total.failed && poison.is_empty() {
            poison.push(format!(
                "the accounting of `{kind}` does not add up: offered {} is not skipped {} + ok {} + failed {}",
                total.offered, total.skipped, total.ok, total.failed
            ));
        }
    }
    let ended = match (interrupted, poison.is_empty()) {
        (true, _) => Ended::Interrupted,
        (false, true) => Ended::Complete,
        (false, false) => Ended::Failed(poison),
    };
    Outcome {
        ended,
        start_at,
        elapsed_ns,
        worked,
        totals,
        handover_wait_ns_max,
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
