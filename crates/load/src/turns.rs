//! Turns: the connections of several targets are open at the same time, and those of one target
//! work at a time.
//!
//! ```text
//! target a   ──ops──┤           ├──ops──┤
//! target b          ├──ops──┤           ├──ops──
//!                   ▲ a's gate closes: its connections end their operations, its clock stops
//! ```
//!
//! A connection passes its target's [`Gate`] before each operation. While the gate is closed, no
//! operation is sent, and the target's [`TurnClock`](crate::TurnClock) stands still. So everything that is measured
//! by that clock counts the target's own turns and nothing else: schedules, deadlines, seconds and
//! latencies.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::SystemClock;

/// The value of [`Gate::stopped_at`] while the clock runs.
const RUNS: u64 = u64::MAX;

/// The gate that the connections of a target pass before each operation: open during the target's
/// turns, closed between them.
pub struct Gate {
    clock: SystemClock,
    /// Connections must not send another operation. Changes only while `crew` is locked.
    is_closed: AtomicBool,
    /// The time that the target's clock shows while it stands still; [`RUNS`] while it runs.
    stopped_at: AtomicU64,
    /// The time for which the target's clock has stood still so far.
    stood_ns: AtomicU64,
    crew: Mutex<Crew>,
    /// The gate has opened or closed: connections and samplers wait for it.
    moved: Condvar,
    /// A connection has come to the closed gate, or has ended.
    arrived: Condvar,
}

/// The connections that work by a clock.
#[derive(Default)]
struct Crew {
    /// The connections that have begun and not ended.
    working: usize,
    /// Those that wait at the closed gate.
    waiting: usize,
    /// Those of them that would have sent an operation at once.
    held: usize,
    /// The sum of the times at which these arrived.
    arrived_ns: u64,
    /// The work of the connections since the turn began.
    done: Work,
    /// The same since the step began, by the number of the connection.
    done_before: BTreeMap<usize, Work>,
    /// The time at which the turn began.
    began_ns: u64,
}

/// The operations of connections, and the CPU time that they took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Operations that succeeded, by kind.
    pub ok: BTreeMap<String, u64>,
    /// The CPU time of the connections' threads in this process.
    pub cpu_ns: u64,
}

impl Work {
    /// Adds what was done between `before` and `now`.
    fn add_difference(&mut self, now: &Self, before: &Self) {
        for (kind, count) in &now.ok {
            let before = before.ok.get(kind).copied().unwrap_or(0);
            *self.ok.entry(kind.clone()).or_default() += count.saturating_sub(before);
        }
        self.cpu_ns += now.cpu_ns.saturating_sub(before.cpu_ns);
    }
}

/// One turn of a target. Times are those of the target's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The time at which the gate opened.
    pub began_ns: u64,
    /// The length: until the connections had ended their operations, on average.
    pub length_ns: u64,
    /// The time from then until the last connection had ended its operation.
    pub idle_ns: u64,
    /// The work of the connections.
    pub work: Work,
    /// The number of connections that have not ended the step.
    pub connection_count: usize,
    /// All connections have ended the step.
    pub is_last: bool,
}

impl Gate {
    /// Returns a closed gate. The target's clock shows what `clock` shows now.
    pub fn closed(clock: SystemClock) -> Arc<Self> {
        let now = clock.elapsed_ns();
        Arc::new(Self {
            clock,
            is_closed: AtomicBool::new(true),
            stopped_at: AtomicU64::new(now),
            stood_ns: AtomicU64::new(0),
            crew: Mutex::default(),
            moved: Condvar::new(),
            arrived: Condvar::new(),
        })
    }

    /// Opens the gate and starts the target's clock: a turn begins.
    pub fn open(&self) {
        let mut crew = self.crew();
        let stopped_at = self.stopped_at.load(Relaxed);
        if stopped_at == RUNS {
            return;
        }
        crew.began_ns = stopped_at;
        // What was done before the first turn, or to close connections, is part of none.
        crew.done = Work::default();

        // First the time that the clock stood still: until it runs, nobody looks at that.
        self.stood_ns.store(self.clock.elapsed_ns() - stopped_at, Relaxed);
        self.stopped_at.store(RUNS, Release);
        self.is_closed.store(false, Release);
        self.moved.notify_all();
    }

    /// Waits until no connection works, but not longer than `at_most` of the host's time. Returns
    /// whether none does.
    pub fn wait_for_end(&self, at_most: Duration) -> bool {
        let works = |crew: &mut Crew| crew.working > 0;
        let waited = self.arrived.wait_timeout_while(self.crew(), at_most, works);
        waited.unwrap_or_else(PoisonError::into_inner).0.working == 0
    }

    /// Closes the gate, waits until every connection has ended its operation, and stops the
    /// target's clock. Returns the turn that has ended.
    pub fn close(&self) -> Turn {
        let mut crew = self.crew();
        self.is_closed.store(true, Release);
        self.moved.notify_all();
        while crew.waiting < crew.working {
            crew = self.arrived.wait(crew).unwrap_or_else(PoisonError::into_inner);
        }
        let ended_ns = self.now();

        // Connections that wait for the last one do not work. If their clock continued, the target
        // with the longer operations would seem slower than it is.
        let idle_sum = (crew.held as u64 * ended_ns).saturating_sub(crew.arrived_ns);
        let idle_ns = idle_sum / (crew.held as u64).max(1);
        let stopped_at = (ended_ns - idle_ns).max(crew.began_ns);
        if self.stopped_at.load(Relaxed) == RUNS {
            self.stopped_at.store(stopped_at, Release);
        }
        Turn {
            began_ns: crew.began_ns,
            length_ns: stopped_at - crew.began_ns,
            idle_ns,
            work: std::mem::take(&mut crew.done),
            connection_count: crew.working,
            is_last: crew.working == 0,
        }
    }

    /// Returns whether connections must wait here before their next operation.
    #[inline(always)]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Relaxed)
    }

    /// Waits while the gate is closed, but not longer than `at_most` of the host's time.
    pub(crate) fn wait_while_closed(&self, at_most: Duration) {
        let crew = self.crew();
        if self.is_closed() {
            let _ = self.moved.wait_timeout(crew, at_most);
        }
    }

    /// Adds connection `number` of a step that begins.
    pub(crate) fn enter(&self, number: usize) {
        let mut crew = self.crew();
        crew.working += 1;
        crew.done_before.remove(&number);
    }

    /// Removes connection `number`, which has done so much in the step.
    pub(crate) fn leave(&self, number: usize, done: Work) {
        let mut crew = self.crew();
        crew.note(number, done);
        crew.working -= 1;
        self.arrived.notify_all();
    }

    /// Lets connection `number`, which has done so much in the step, wait until the gate is open. It
    /// `has_work` if it would send an operation at once.
    #[cold]
    pub(crate) fn wait(&self, number: usize, done: Work, has_work: bool) {
        let mut crew = self.crew();
        if !self.is_closed() {
            return;
        }
        let arrived_ns = self.now();
        crew.note(number, done);
        crew.waiting += 1;
        if has_work {
            crew.held += 1;
            crew.arrived_ns += arrived_ns;
        }
        self.arrived.notify_all();

        while self.is_closed() {
            crew = self.moved.wait(crew).unwrap_or_else(PoisonError::into_inner);
        }
        crew.waiting -= 1;
        if has_work {
            crew.held -= 1;
            crew.arrived_ns -= arrived_ns;
        }
    }

    /// Returns the nanoseconds that the target's clock shows.
    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        let stopped_at = self.stopped_at.load(Acquire);
        if stopped_at != RUNS {
            return stopped_at;
        }
        // The host's clock first: if the target's clock stops and starts between the two readings,
        // the time is too early rather than too late.
        let now = self.clock.elapsed_ns();
        now.saturating_sub(self.stood_ns.load(Relaxed))
    }

    /// Sleeps until the target's clock shows `at`, or until the gate closes.
    pub(crate) fn sleep_until(&self, at: u64) {
        loop {
            let now = self.now();
            if now >= at || self.is_closed() {
                return;
            }
            let crew = self.crew();
            // Closing notifies while it holds the lock.
            if !self.is_closed() {
                let _ = self.moved.wait_timeout(crew, Duration::from_nanos(at - now));
            }
        }
    }

    fn crew(&self) -> MutexGuard<'_, Crew> {
        self.crew.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Crew {
    /// Notes that connection `number` has done so much in the step.
    fn note(&mut self, number: usize, done: Work) {
        let before = self.done_before.entry(number).or_default();
        self.done.add_difference(&done, before);
        *before = done;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;

    use engine::Error;
    use workload::{Executed, Next, OpKind, OpRole, Program, Schedule, Task};

    use super::*;
    use crate::{Clock as _, Limits, StepEnd, TurnClock};

    const OP: OpKind = OpKind::new("op", OpRole::Query);

    /// A connection of one target, which notes whether those of another work at the same time.
    struct Exclusive {
        target: usize,
        /// For each target, the connections that execute an operation.
        working: Arc<[AtomicUsize; 2]>,
        /// The step ends.
        is_over: Arc<AtomicBool>,
    }

    impl Program for Exclusive {
        fn kinds(&self) -> &'static [OpKind] {
            &[OP]
        }

        fn prepare(&mut self) -> Next {
            if self.is_over.load(SeqCst) { Next::Done } else { Next::Ready(0) }
        }

        fn execute(&mut self) -> Result<Executed, Error> {
            self.working[self.target].fetch_add(1, SeqCst);
            assert_eq!(self.working[1 - self.target].load(SeqCst), 0, "the other target works");
            thread::yield_now();
            self.working[self.target].fetch_sub(1, SeqCst);
            Ok(Executed::without_rows())
        }
    }

    fn tasks(
        target: usize,
        working: &Arc<[AtomicUsize; 2]>,
        is_over: &Arc<AtomicBool>,
    ) -> Vec<Task> {
        let task = |client| {
            let (working, is_over) = (Arc::clone(working), Arc::clone(is_over));
            let program = Exclusive { target, working, is_over };
            Task::new(client, OP, Schedule::Closed, Box::new(program)).unwrap()
        };
        (0..3).map(task).collect()
    }

    #[test]
    fn the_connections_of_one_target_work_at_a_time_and_every_operation_is_in_a_turn() {
        let clock = SystemClock::begin();
        let gates = [0, 1].map(|_| Gate::closed(clock.clone()));
        let working = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let limits =
            Limits { time: None, error_limit: 0, attempts: 1, grace: Duration::from_secs(10) };

        thread::scope(|scope| {
            let loads = [0, 1].map(|target| {
                let clock = TurnClock::new(Arc::clone(&gates[target]));
                let tasks = tasks(target, &working, &is_over);
                scope.spawn(move || {
                    crate::run(tasks, limits, &clock, &AtomicBool::new(false), &mut ())
                })
            });

            let mut done = [0, 0];
            let mut turns_with_work = [0, 0];
            while loads.iter().any(|load| !load.is_finished()) {
                for (target, gate) in gates.iter().enumerate() {
                    gate.open();
                    gate.wait_for_end(Duration::from_millis(2));
                    let turn = gate.close();
                    let ok = turn.work.ok.get("op").copied().unwrap_or(0);
                    done[target] += ok;
                    turns_with_work[target] += u32::from(ok > 0);
                }
                // On a busy machine, a turn may be long, or over before a connection runs.
                let has_enough = turns_with_work.iter().all(|count| *count > 2);
                is_over.store(has_enough, SeqCst);
            }

            for (load, in_turns) in loads.into_iter().zip(done) {
                let outcome = load.join().unwrap();
                assert_eq!(outcome.end, StepEnd::Complete);
                assert_eq!(outcome.totals["op"].ok, in_turns);
            }
        });
    }

    #[test]
    fn the_clock_stands_still_while_the_gate_is_closed() {
        let host = SystemClock::begin();
        let gate = Gate::closed(host.clone());
        let clock = TurnClock::new(Arc::clone(&gate));
        let mut own_ns = 0;
        let began = clock.now();
        for _ in 0..3 {
            let before = clock.now();
            host.sleep_until(host.now() + 5_000_000);
            assert_eq!(clock.now(), before);

            gate.open();
            host.sleep_until(host.now() + 1_000_000);
            let turn = gate.close();
            assert_eq!(turn.began_ns, before);
            assert_eq!(clock.now(), before + turn.length_ns);
            own_ns += turn.length_ns;
        }
        assert_eq!(clock.now() - began, own_ns);
    }

    #[test]
    fn a_sleep_by_the_clock_ends_early_when_the_gate_closes() {
        let host = SystemClock::begin();
        let gate = Gate::closed(host.clone());
        let clock = TurnClock::new(Arc::clone(&gate));
        gate.open();
        let sleeper = thread::spawn({
            let clock = clock.clone();
            move || clock.sleep_until(clock.now() + 3_600_000_000_000)
        });
        gate.close();
        sleeper.join().unwrap();
    }
}
