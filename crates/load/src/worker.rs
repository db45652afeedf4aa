//! The measured path: one thread, one connection.
//!
//! ```text
//! prepare ──► due ──► sent ──► execute ──► done ──► count
//!                      └── service time ───┘
//!              └────── response time ──────┘  with a schedule
//! ```
//!
//! The response time begins when the operation is due, even if the worker is late: a stall counts
//! against all operations that it delays. Without a schedule there is no such time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};
use std::sync::{Mutex, PoisonError};
use std::thread::Thread;

use engine::{Error, ErrorClass};
use workload::{Executed, Next, OpKind, Program, Schedule};

use crate::Clock;
use crate::tally::{Lap, Latencies};
use crate::thread_use::own_cpu_ns;
use crate::turns::Work;

/// The state that all workers of a step read, and a failed one writes.
#[derive(Default)]
pub(crate) struct Shared {
    /// Workers must not send further operations.
    pub(crate) halt: AtomicBool,
    /// Failed operations of all connections.
    pub(crate) failed: AtomicU64,
    /// The reasons why the step failed.
    pub(crate) poison: Mutex<Vec<String>>,
}

impl Shared {
    pub(crate) fn poison(&self, reason: String) {
        self.poison.lock().unwrap_or_else(PoisonError::into_inner).push(reason);
        self.halt.store(true, Relaxed);
    }

    /// Takes the reasons why the step failed.
    pub(crate) fn take_poison(&self) -> Vec<String> {
        std::mem::take(&mut *self.poison.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A worker's message to the collector.
pub(crate) enum Message {
    /// The worker of that number finished a second.
    Lap(usize, Box<Lap>),
    /// The worker of that number failed at an operation of that kind.
    Error(usize, usize, Box<Error>),
    /// The worker of that number has ended.
    Ended(usize),
}

/// A worker, without its program.
pub(crate) struct Worker<'a, C> {
    pub(crate) number: usize,
    pub(crate) clock: C,
    pub(crate) schedule: Schedule,
    /// The time at which the step begins, by the clock.
    pub(crate) start_at: u64,
    /// The time at which the worker stops sending operations, since the step began.
    pub(crate) deadline_ns: Option<u64>,
    pub(crate) attempts: u32,
    pub(crate) error_limit: u64,
    pub(crate) shared: &'a Shared,
    pub(crate) messages: SyncSender<Message>,
    /// The thread that receives the messages.
    pub(crate) collector: Thread,
    /// Empty laps that the collector returns.
    pub(crate) spare: Receiver<Box<Lap>>,
    pub(crate) lap: Box<Lap>,
    /// Operations of each kind that succeeded in the laps that were handed over.
    pub(crate) done_before: Vec<u64>,
}

/// The result of a worker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerReport {
    /// The time at which the first operation was due, since the step began.
    pub(crate) started_ns: u64,
    /// The time at which the last operation ended, since the step began.
    pub(crate) ended_ns: u64,
    /// Operations that were due but not sent.
    pub(crate) skipped: u64,
    /// The time that the worker waited for the collector: a stall caused by assay itself. Includes
    /// time in which the kernel ran other threads instead.
    pub(crate) handover_wait_ns: u64,
}

/// The time between checks of `halt` by a worker that waits for its schedule.
const HALT_CHECK_NS: u64 = 50_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// The times of one operation, in nanoseconds since the step began.
#[derive(Clone, Copy)]
struct OpTimes {
    /// `None` without a schedule.
    due_ns: Option<u64>,
    sent_ns: u64,
    done_ns: u64,
}

impl<C: Clock> Worker<'_, C> {
    /// Sends the program's operations from the start of the step to its end, and counts them.
    pub(crate) fn work(&mut self, program: &mut dyn Program) -> WorkerReport {
        program.begin();
        self.clock.sleep_until(self.start_at);

        let first_ns = self.schedule.due_ns(0).unwrap_or(0);
        let mut report =
            WorkerReport { started_ns: first_ns, ended_ns: first_ns, ..WorkerReport::default() };

        let scheduled_kind_count = program.shares().len();
        let is_paused = self.schedule == Schedule::Paused;
        // The next operation of the schedule.
        let mut index = 0_u64;
        let mut second_end_ns = SECOND_NS;
        let mut was_late = false;

        while !self.shared.halt.load(Relaxed) {
            self.pass_gate(program.kinds(), !is_paused);

            let mut due_ns = self.schedule.due_ns(index);
            if self.is_after_deadline(due_ns) {
                break;
            }

            // Prepare before the operation is due, so that this delays nothing.
            let kind = match program.prepare() {
                Next::Ready(kind) => kind,
                Next::Done => break,
                Next::Later => {
                    program.wait(C::LONGEST_WAIT);
                    // The connection that this one waits for may have ended with the step.
                    if self.is_over(self.elapsed_ns()) {
                        break;
                    }
                    continue;
                }
            };

            // With pauses, only the prepared operation tells how long the client waits before it.
            if is_paused {
                due_ns = Some(report.ended_ns + program.pause_ns());
                if self.is_after_deadline(due_ns) {
                    break;
                }
            }

            if let Some(due_ns) = due_ns {
                if !self.wait_until(due_ns, program.kinds()) {
                    break;
                }
                program.on_due();
            }

            let sent_ns = self.elapsed_ns();
            // `is_over` here, or a name for the last condition below, makes an operation of the null
            // engine 4% slower.
            if let (Some(_), Some(deadline_ns)) = (due_ns, self.deadline_ns)
                && sent_ns >= deadline_ns
            {
                // It was due in time, and the worker is late: the operation counts as skipped.
                was_late = true;
                break;
            }

            // Kinds without a schedule come before the operation that is due.
            index += u64::from(kind < scheduled_kind_count);
            self.lap.tallies[kind].sent += 1;

            let result = self.execute(program, kind, sent_ns);
            let done_ns = self.elapsed_ns();
            report.ended_ns = done_ns;

            // Before the operation is counted: it belongs to the second in which it ended.
            if done_ns > second_end_ns {
                second_end_ns = self.hand_over(done_ns, &mut report);
            }

            let can_continue = self.count(kind, result, OpTimes { due_ns, sent_ns, done_ns });
            // With a schedule, the time at which the next operation is due decides instead.
            if !can_continue || due_ns.is_none() && self.is_over(done_ns) {
                break;
            }
        }

        // A client that pauses has at most one operation that is due and not sent.
        report.skipped = if is_paused { u64::from(was_late) } else { self.skipped_from(index) };
        self.hand_over(report.ended_ns, &mut report);
        report
    }

    /// Returns the number of operations that are due before the step's time is up, from the one with
    /// this index on.
    fn skipped_from(&self, index: u64) -> u64 {
        self.deadline_ns
            .map_or(0, |deadline_ns| self.schedule.due_before(deadline_ns).saturating_sub(index))
    }

    /// Executes the prepared operation, which was sent at `sent_ns`, and retries it if that may help.
    #[inline(always)]
    fn execute(
        &mut self,
        program: &mut dyn Program,
        kind: usize,
        sent_ns: u64,
    ) -> Result<Executed, Error> {
        let mut attempt = 1;
        let mut began_ns = sent_ns;
        loop {
            match program.execute() {
                Err(error)
                    if program.may_retry(error.class)
                        && attempt < self.attempts
                        && !self.shared.halt.load(Relaxed) =>
                {
                    attempt += 1;
                    let failed_ns = self.elapsed_ns();
                    let tally = &mut self.lap.tallies[kind];
                    tally.retried += 1;
                    tally.retried_ns += failed_ns - began_ns;
                    began_ns = failed_ns;
                    self.send(Message::Error(self.number, kind, Box::new(error)));
                }
                result => return result,
            }
        }
    }

    /// Counts an operation; returns `false` if the connection cannot continue.
    #[inline(always)]
    fn count(&mut self, kind: usize, result: Result<Executed, Error>, times: OpTimes) -> bool {
        let OpTimes { due_ns, sent_ns, done_ns } = times;
        let tally = &mut self.lap.tallies[kind];
        match result {
            Ok(executed) => {
                tally.ok += 1;
                tally.rows += executed.rows;
                tally.rolled_back += u64::from(executed.is_rolled_back);
                tally.unexpected_rows += u64::from(!executed.is_expected);
                tally.service.record(done_ns - sent_ns);
                if let (Some(response), Some(due_ns)) = (&mut tally.response, due_ns) {
                    response.record(done_ns - due_ns);
                }
                true
            }
            Err(error) => {
                tally.failed += 1;
                tally
                    .failed_service
                    .get_or_insert_with(|| Box::new(Latencies::new()))
                    .record(done_ns - sent_ns);
                !self.fail(kind, error)
            }
        }
    }

    /// Returns whether an operation is due when the step's time is up, or later.
    #[inline(always)]
    fn is_after_deadline(&self, due_ns: Option<u64>) -> bool {
        due_ns.zip(self.deadline_ns).is_some_and(|(due_ns, deadline_ns)| due_ns >= deadline_ns)
    }

    /// Returns whether the step's time is up.
    #[inline(always)]
    fn is_over(&self, now_ns: u64) -> bool {
        self.deadline_ns.is_some_and(|deadline_ns| now_ns >= deadline_ns)
    }

    #[inline(always)]
    fn elapsed_ns(&self) -> u64 {
        self.clock.now().saturating_sub(self.start_at)
    }

    /// Waits until `due_ns` since the step began; returns `false` if the step ends first.
    fn wait_until(&self, due_ns: u64, kinds: &[OpKind]) -> bool {
        loop {
            self.pass_gate(kinds, false);
            let now_ns = self.elapsed_ns();
            if now_ns >= due_ns {
                return true;
            }
            if self.shared.halt.load(Relaxed) {
                return false;
            }
            self.clock.sleep_until(self.start_at + due_ns.min(now_ns + HALT_CHECK_NS));
        }
    }

    /// Waits while it is another target's turn. The worker `has_work` if it would send an operation
    /// at once.
    #[inline(always)]
    fn pass_gate(&self, kinds: &[OpKind], has_work: bool) {
        if let Some(gate) = self.clock.gate()
            && gate.is_closed()
        {
            gate.wait(self.number, self.work_so_far(kinds), has_work);
        }
    }

    /// Returns what the worker has done in this step.
    pub(crate) fn work_so_far(&self, kinds: &[OpKind]) -> Work {
        let mut ok = BTreeMap::new();
        for (index, kind) in kinds.iter().enumerate() {
            let count = self.done_before[index] + self.lap.tallies[index].ok;
            ok.insert(kind.name.to_owned(), count);
        }
        Work { ok, cpu_ns: own_cpu_ns() }
    }

    /// Hands the lap to the collector and starts the second that contains `now_ns`; returns the end
    /// of that second.
    #[cold]
    fn hand_over(&mut self, now_ns: u64, report: &mut WorkerReport) -> u64 {
        // An operation that ends exactly with a second belongs to it, so that a step of n seconds
        // has n of them.
        let second = now_ns.saturating_sub(1) / SECOND_NS;
        let spare = self.spare.try_recv().or_else(|_| {
            let asked_at = self.clock.now();
            self.collector.unpark();
            let spare = self.spare.recv();
            report.handover_wait_ns += self.clock.now() - asked_at;
            spare
        });

        if let Ok(mut lap) = spare {
            for (done, tally) in self.done_before.iter_mut().zip(&self.lap.tallies) {
                *done += tally.ok;
            }
            lap.second = second as u32;
            let full = Message::Lap(self.number, std::mem::replace(&mut self.lap, lap));
            report.handover_wait_ns += self.send(full);
        }
        (second + 1) * SECOND_NS
    }

    /// Reports a failed operation; returns `true` if the connection cannot continue.
    #[cold]
    fn fail(&mut self, kind: usize, error: Error) -> bool {
        let ends = error.class.ends_session();
        let failed = self.shared.failed.fetch_add(1, Relaxed) + 1;
        // A connection that the supervisor cut off is not at fault.
        let was_cut_off = error.class == ErrorClass::Interrupted && self.shared.halt.load(Relaxed);
        if ends && !was_cut_off {
            self.shared.poison(format!("connection {} failed: {error}", self.number + 1));
        } else if failed > self.error_limit {
            self.shared.poison(format!(
                "{failed} operations failed, more than the limit of {}; the last error: {error} ({})",
                self.error_limit,
                error.class.name()
            ));
        }

        self.send(Message::Error(self.number, kind, Box::new(error)));
        ends
    }

    /// Sends a message to the collector. The collector polls, and is woken only if the channel is
    /// full, since a wake costs a system call. Returns the time that the worker waited for it, in
    /// nanoseconds.
    pub(crate) fn send(&self, message: Message) -> u64 {
        match self.messages.try_send(message) {
            Err(TrySendError::Full(message)) => {
                let asked_at = self.clock.now();
                self.collector.unpark();
                let _ = self.messages.send(message);
                self.clock.now() - asked_at
            }
            // Without a collector the step has already failed.
            Ok(()) | Err(TrySendError::Disconnected(_)) => 0,
        }
    }
}
