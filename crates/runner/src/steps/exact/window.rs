//! The window of a step in which work is counted, and the order in which connections work.
//!
//! ```text
//! connection a   op      op      op             op      op
//! connection b       op      op      op             op      op      over
//!                └── warm-up ──────┘   └── counted ───────────┘
//!                                   opens                      closes
//! ```
//!
//! Connections work one operation at a time, in turn, so that the order of all operations is the
//! same in every cell. While the window opens or closes, none works.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest time that a connection waits for its turn before it looks whether the step
/// continues.
const PATIENCE: Duration = Duration::from_millis(20);
/// The rounds in which a connection with a rate works once, beside others without. Its rate means
/// nothing here, and its operations are often the larger ones.
const ROUNDS_PER_RATED: u64 = 10;

/// The number of operations of each connection.
#[derive(Clone, Copy, Debug)]
pub struct WindowSize {
    /// Operations before the window.
    pub warmup: u64,
    /// Operations in the window.
    pub operations: u64,
    /// Connections continue until their work is done; else they end with the window.
    pub goes_on: bool,
}

/// A phase of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Operations are not counted yet.
    WarmUp,
    /// Connections rest until counting has begun.
    Opening,
    /// Operations are counted.
    Counting,
    /// Connections rest until counting has ended.
    Closing,
    /// Operations are no longer counted.
    Over,
}

/// The answer to a connection that asks for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The connection works.
    Granted,
    /// It asks again.
    NotYet,
    /// It ends.
    Over,
}

/// Lets the connections of a step work in turn, and says when to count.
pub struct Window {
    size: WindowSize,
    state: Mutex<State>,
    /// The turn or the phase has changed.
    moved: Condvar,
}

struct State {
    phase: Phase,
    seats: Vec<Seat>,
    /// The index of the seat whose turn it is.
    turn: usize,
    /// No connection sets the pace for others.
    all_have_rates: bool,
}

/// A connection, as its window knows it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Connection {
    /// The step does not wait for its end.
    pub is_background: bool,
    /// It works beside the others at a rate of its own, which is lower than theirs.
    pub has_rate: bool,
}

/// A connection with what it has done.
struct Seat {
    connection: Connection,
    /// Its work is done.
    is_finished: bool,
    /// Operations that succeeded.
    done: u64,
    /// Those of them in the window, by kind.
    counted: BTreeMap<String, u64>,
    /// The thread of this process that works for it.
    thread: Option<u32>,
}

impl Seat {
    /// Returns whether the step waits for the connection.
    fn is_awaited(&self) -> bool {
        !self.is_finished && !self.connection.is_background
    }
}

impl Window {
    /// Returns the window of a step with these connections.
    pub fn new(size: WindowSize, connections: &[Connection]) -> Self {
        let seats = connections.iter().map(|connection| Seat {
            connection: *connection,
            is_finished: false,
            done: 0,
            counted: BTreeMap::new(),
            thread: None,
        });

        let all_have_rates = connections.iter().all(|connection| connection.has_rate);
        let state = State { phase: Phase::WarmUp, seats: seats.collect(), turn: 0, all_have_rates };

        Self { size, state: Mutex::new(state), moved: Condvar::new() }
    }

    /// Returns the number of operations of each connection.
    pub fn size(&self) -> WindowSize {
        self.size
    }

    /// Notes the thread of this process that works for connection `number`.
    pub fn note_thread(&self, number: usize, thread: u32) {
        self.state().seats[number].thread = Some(thread);
    }

    /// Returns the threads of this process that work for the connections.
    pub fn threads(&self) -> Vec<Option<u32>> {
        self.state().seats.iter().map(|seat| seat.thread).collect()
    }

    /// Asks for the turn of connection `number`, and waits for a moment if it is another's.
    pub fn take_turn(&self, number: usize) -> Turn {
        let mut state = self.state();
        let answer = self.answer(&mut state, number);
        if answer != Turn::NotYet {
            return answer;
        }

        state = self.wait(state);
        self.answer(&mut state, number)
    }

    /// Answers a connection that asks for its turn.
    fn answer(&self, state: &mut State, number: usize) -> Turn {
        let phase_before = state.phase;
        let answer = state.answer(number, self.size);
        // Connections that woke the others by each question would never rest.
        if state.phase != phase_before {
            self.moved.notify_all();
        }
        answer
    }

    /// Counts an operation of connection `number`, and gives the turn to the next.
    pub fn end_operation(&self, number: usize, kind: &str) {
        let mut state = self.state();
        let is_counted = state.phase == Phase::Counting;

        let seat = &mut state.seats[number];
        seat.done += 1;

        if is_counted {
            *seat.counted.entry(kind.to_owned()).or_default() += 1;
        }

        state.pass_turn();
        self.moved.notify_all();
    }

    /// Gives the turn of connection `number` to the next, since it waits for another connection. If
    /// no other works any more, it ends.
    pub fn pass_turn(&self, number: usize) {
        let mut state = self.state();

        let mut others = state.seats.iter().enumerate().filter(|(other, _)| *other != number);
        if others.all(|(_, other)| !other.is_awaited()) {
            state.seats[number].is_finished = true;
        }

        state.pass_turn();

        self.moved.notify_all();
    }

    /// Notes that the work of connection `number` is done. It stays open until the window is over,
    /// so that its end is not counted.
    pub fn finish(&self, number: usize) {
        let mut state = self.state();
        state.seats[number].is_finished = true;
        state.pass_turn();
        self.moved.notify_all();
    }

    /// Waits for a moment, or until the phase changes; returns the phase.
    pub fn watch(&self) -> Phase {
        let state = self.state();
        self.wait(state).phase
    }

    /// Begins the phase that follows when connections rest.
    pub fn set_phase(&self, phase: Phase) {
        self.state().phase = phase;
        self.moved.notify_all();
    }

    /// Returns the operations of each connection in the window, by kind.
    pub fn counted(&self) -> Vec<BTreeMap<String, u64>> {
        self.state().seats.iter().map(|seat| seat.counted.clone()).collect()
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        let waited = self.moved.wait_timeout(state, PATIENCE);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Answers a connection that asks for its turn. Opens or closes the window if it is time.
    fn answer(&mut self, number: usize, size: WindowSize) -> Turn {
        if self.phase == Phase::Over && (self.seats[number].is_finished || !size.goes_on) {
            return Turn::Over;
        }

        match self.phase {
            // The step has less work than the warm-up.
            Phase::WarmUp if !self.seats.iter().any(Seat::is_awaited) => self.phase = Phase::Over,
            Phase::WarmUp if self.all_have(size.warmup) => self.phase = Phase::Opening,
            Phase::Counting if self.all_have(size.warmup.saturating_add(size.operations)) => {
                self.phase = Phase::Closing;
            }
            _ => {}
        }

        let rests = matches!(self.phase, Phase::Opening | Phase::Closing);

        if rests || self.turn != number || self.seats[number].is_finished {
            return Turn::NotYet;
        }
        Turn::Granted
    }

    /// Returns whether every connection that the step still waits for has done so many operations.
    fn all_have(&self, operations: u64) -> bool {
        let mut awaited = self.seats.iter().filter(|seat| seat.is_awaited());
        awaited.all(|seat| self.rounds_of(seat) >= operations)
    }

    /// Returns the number of rounds that a connection has worked for.
    fn rounds_of(&self, seat: &Seat) -> u64 {
        let is_rare = seat.connection.has_rate && !self.all_have_rates;
        seat.done * if is_rare { ROUNDS_PER_RATED } else { 1 }
    }

    /// Returns whether a connection has work, and none is behind it.
    fn is_due(&self, seat: &Seat) -> bool {
        let working = self.seats.iter().filter(|other| !other.is_finished);
        let fewest = working.map(|other| self.rounds_of(other)).min().unwrap_or(0);
        !seat.is_finished && self.rounds_of(seat) <= fewest
    }

    /// Gives the turn to the next connection that is due.
    fn pass_turn(&mut self) {
        let count = self.seats.len();
        let mut following = (1..=count).map(|distance| (self.turn + distance) % count);
        if let Some(next) = following.find(|next| self.is_due(&self.seats[*next])) {
            self.turn = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Connection = Connection { is_background: false, has_rate: false };
    const SIZE: WindowSize = WindowSize { warmup: 2, operations: 3, goes_on: false };

    /// Lets connections that never finish work until the phase changes; returns their order.
    fn work(window: &Window, connections: usize) -> Vec<usize> {
        let mut order = Vec::new();
        loop {
            let granted =
                (0..connections).find(|number| window.take_turn(*number) == Turn::Granted);
            let Some(number) = granted else {
                return order;
            };
            order.push(number);
            window.end_operation(number, "op");
        }
    }

    #[test]
    fn connections_work_in_turn_and_rest_while_the_window_opens_and_closes() {
        let window = Window::new(SIZE, &[ALONE; 2]);
        assert_eq!(work(&window, 2), [0, 1, 0, 1]);
        assert_eq!(window.watch(), Phase::Opening);

        window.set_phase(Phase::Counting);
        assert_eq!(work(&window, 2), [0, 1, 0, 1, 0, 1]);
        assert_eq!(window.watch(), Phase::Closing);

        window.set_phase(Phase::Over);
        assert_eq!(window.take_turn(0), Turn::Over);
        let three = BTreeMap::from([("op".to_owned(), 3)]);
        assert_eq!(window.counted(), [three.clone(), three]);
    }

    #[test]
    fn a_step_with_less_work_than_the_window_closes_it_when_all_have_finished() {
        let background = Connection { is_background: true, ..ALONE };
        let window = Window::new(WindowSize { warmup: 0, ..SIZE }, &[ALONE, ALONE, background]);
        assert_eq!(window.take_turn(0), Turn::NotYet);
        window.set_phase(Phase::Counting);
        assert_eq!(window.take_turn(0), Turn::Granted);
        window.finish(0);
        assert_eq!(window.take_turn(0), Turn::NotYet, "its end must not be counted");
        assert_eq!(window.take_turn(1), Turn::Granted);
        window.finish(1);
        assert_eq!(window.take_turn(2), Turn::NotYet);
        assert_eq!(window.watch(), Phase::Closing);
    }

    #[test]
    fn a_connection_that_waits_for_one_that_has_finished_ends() {
        let window = Window::new(WindowSize { warmup: 0, goes_on: true, ..SIZE }, &[ALONE; 2]);
        assert_eq!(window.take_turn(0), Turn::NotYet);
        window.set_phase(Phase::Counting);
        assert_eq!(window.take_turn(0), Turn::Granted);
        window.finish(0);
        assert_eq!(window.take_turn(1), Turn::Granted);
        window.pass_turn(1);
        assert_eq!(window.take_turn(1), Turn::NotYet);
        assert_eq!(window.watch(), Phase::Closing);
        window.set_phase(Phase::Over);
        assert_eq!(window.take_turn(1), Turn::Over);
    }

    #[test]
    fn a_step_that_goes_on_does_its_work_after_the_window() {
        let window = Window::new(WindowSize { goes_on: true, ..SIZE }, &[ALONE]);
        assert_eq!(work(&window, 1), [0, 0]);
        window.set_phase(Phase::Over);
        assert_eq!(window.take_turn(0), Turn::Granted);
        window.finish(0);
        assert_eq!(window.take_turn(0), Turn::Over);
    }

    #[test]
    fn a_connection_with_a_rate_works_once_in_ten_rounds_of_those_without() {
        let rated = Connection { has_rate: true, ..ALONE };
        let size = WindowSize { warmup: 0, operations: 20, goes_on: false };
        for (connections, expected) in [([ALONE, rated], [20, 2]), ([rated, rated], [20, 20])] {
            let window = Window::new(size, &connections);
            assert_eq!(window.take_turn(0), Turn::NotYet);
            window.set_phase(Phase::Counting);
            let order = work(&window, 2);
            let counts =
                [0, 1].map(|number| order.iter().filter(|other| **other == number).count());
            assert_eq!(counts, expected);
        }
    }

    #[test]
    fn a_step_with_less_work_than_the_warm_up_is_not_counted() {
        let window = Window::new(SIZE, &[ALONE]);
        assert_eq!(window.take_turn(0), Turn::Granted);
        window.end_operation(0, "op");
        assert_eq!(window.take_turn(0), Turn::Granted);
        window.finish(0);
        window.take_turn(0);
        assert_eq!(window.watch(), Phase::Over);
        assert!(window.counted()[0].is_empty());
    }
}
