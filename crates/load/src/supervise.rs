//! Supervises a running step: handles the workers' messages, and makes sure that all workers end,
//! even those whose server does not answer.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use crate::collect::Collector;
use crate::start::ConnectionHandle;
use crate::step::Limits;
use crate::worker::{Message, Shared};

/// The time between looks for messages, unless a worker wakes this thread.
const POLL: Duration = Duration::from_millis(100);
/// The time between updates of the display, which also pass on finished seconds.
const TICK_NS: u64 = 250_000_000;
/// The time that connections may wait for a reply after the operator interrupted the step.
const INTERRUPT_GRACE: Duration = Duration::from_secs(2);

/// The state of the thread that started the workers.
pub(crate) struct Supervisor<'a, 's> {
    pub(crate) collector: Collector<'s>,
    pub(crate) shared: &'a Shared,
    pub(crate) limits: Limits,
    /// The first error while recording what was measured.
    pub(crate) recording: Result<(), String>,
    /// The operator interrupted the step.
    pub(crate) interrupted: bool,
    connections: Vec<ConnectionHandle>,
    stop: &'a AtomicBool,
    /// For each connection, true while it is running.
    running: Vec<bool>,
    next_tick_ns: u64,
    /// The time at which the connections were told to end.
    over_since_ns: Option<u64>,
    /// Connections that were still waiting for a reply have been interrupted.
    has_cut_off: bool,
}

impl<'a, 's> Supervisor<'a, 's> {
    pub(crate) fn new(
        collector: Collector<'s>,
        connections: Vec<ConnectionHandle>,
        shared: &'a Shared,
        stop: &'a AtomicBool,
        limits: Limits,
    ) -> Self {
        Self {
            collector,
            shared,
            limits,
            recording: Ok(()),
            interrupted: false,
            connections,
            stop,
            running: Vec::new(),
            next_tick_ns: TICK_NS,
            over_since_ns: None,
            has_cut_off: false,
        }
    }

    /// Supervises the first `count` connections until they have ended; `elapsed_ns` returns the age
    /// of the step.
    pub(crate) fn watch(
        &mut self,
        inbox: &Receiver<Message>,
        count: usize,
        elapsed_ns: impl Fn() -> u64,
    ) {
        self.running = vec![true; count];
        while self.running.contains(&true) {
            match inbox.try_recv() {
                Ok(message) => self.handle(message),
                Err(TryRecvError::Empty) => std::thread::park_timeout(POLL),
                Err(TryRecvError::Disconnected) => break,
            }
            // After each message: connections that send more than this thread can handle must not
            // keep the operator from ending the step.
            self.check(elapsed_ns());
        }
    }

    /// Handles the remaining messages when all workers have ended.
    pub(crate) fn drain(&mut self, inbox: &Receiver<Message>) {
        for message in inbox.try_iter() {
            self.handle(message);
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Lap(number, mut lap) => {
                // Also after an error, so that the totals contain all operations.
                let added = self.collector.add_lap(number, &mut lap);
                if self.recording.is_ok() {
                    self.recording = added;
                }
                let _ = self.connections[number].spares.try_send(lap);
            }
            Message::Error(number, kind, error) => self.collector.add_error(number, kind, &error),
            Message::Ended(number) => self.running[number] = false,
        }
    }

    /// Ends the step when it is time, and connections that do not end by themselves.
    fn check(&mut self, now_ns: u64) {
        if now_ns >= self.next_tick_ns && self.recording.is_ok() {
            self.recording = self.collector.tick(now_ns);
            self.next_tick_ns = now_ns + TICK_NS;
        }

        self.interrupted |= self.stop.load(Relaxed);
        let foreground_runs = self.running_connections().any(|connection| !connection.background);
        let is_done = !foreground_runs && !self.collector.others_run();
        if self.recording.is_err() || self.interrupted || is_done {
            self.shared.halt.store(true, Relaxed);
        }

        let is_past_deadline =
            self.limits.deadline_ns().is_some_and(|deadline_ns| now_ns > deadline_ns);
        let is_over = self.shared.halt.load(Relaxed) || is_past_deadline;
        if !is_over || self.has_cut_off {
            return;
        }

        // Connections that still wait for a reply are cut off after the grace period.
        let since_ns = *self.over_since_ns.get_or_insert(now_ns);
        let is_given_up = self.interrupted || self.recording.is_err();
        let grace = if is_given_up { INTERRUPT_GRACE } else { self.limits.grace };
        if u128::from(now_ns.saturating_sub(since_ns)) >= grace.as_nanos() {
            // A step that was given up has a reason already. A step does not wait for background
            // connections, so cutting them off is no failure.
            if !is_given_up && foreground_runs {
                self.shared.poison(format!(
                    "connections waited for a reply for more than {} s after the end of the step and were cut off",
                    grace.as_secs()
                ));
            }
            self.cut_off();
        }
    }

    fn cut_off(&mut self) {
        self.has_cut_off = true;
        self.shared.halt.store(true, Relaxed);
        for connection in self.running_connections() {
            if let Some(interrupt) = &connection.interrupt {
                interrupt();
            }
        }
    }

    fn running_connections(&self) -> impl Iterator<Item = &ConnectionHandle> {
        let both = self.running.iter().zip(&self.connections);
        both.filter(|(is_running, _)| **is_running).map(|(_, connection)| connection)
    }
}
