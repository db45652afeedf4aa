//! The table at which the cells of a group sit: who works, who waits, and for what.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use load::Turn;
use record::{ServerUse, TurnRow};

/// The connections of a target, which take turns with those of others.
pub trait TurnTaker: Send {
    /// Thaws the target, places its connections on processors, and opens its gate: a turn begins.
    /// Turns with the same `draw` have the same places.
    ///
    /// # Errors
    /// The target can't be thawed or placed, so it does not work.
    fn begin(&self, draw: u64) -> anyhow::Result<()>;

    /// Waits until the connections have ended the step, but not longer than `at_most`. Returns
    /// whether they have.
    fn wait_for_end(&self, at_most: Duration) -> bool;

    /// Closes the gate when the operations in flight have ended: the turn is over.
    fn end(&self) -> Turn;

    /// Freezes the target until its next turn.
    ///
    /// # Errors
    /// The target can't be frozen.
    fn freeze(&self) -> anyhow::Result<()>;

    /// Returns what the processes of the server have used since the turn began; `None` without a
    /// server whose processes are known.
    fn used(&self) -> Option<ServerUse>;

    /// Lets the step fail for this reason: the target can't take its turns.
    fn fail(&self, reason: &str);

    /// Lets the target and its connections work without turns from now on, so that the step can
    /// end.
    fn release(&self);

    /// Notes a turn for the record.
    fn note(&self, row: TurnRow);
}

/// A load whose connections wait for their first turn.
pub struct ReadyLoad {
    /// The number of the load within its cell. Loads with the same number take turns.
    pub number: usize,
    /// The length of a turn.
    pub turn: Duration,
    pub connections: Box<dyn TurnTaker>,
}

/// What a cell does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It waits until it may work alone.
    Asks,
    /// It works, and no other cell does.
    Works,
    /// Its load is ready or runs.
    Loads { number: usize },
    /// It has ended.
    Left,
}

/// The cells of a group and their stages.
pub struct Table {
    places: Mutex<Vec<Place>>,
    changed: Condvar,
}

struct Place {
    stage: Stage,
    load: Option<ReadyLoad>,
    /// Turns were given up: the cell may work at any time.
    is_free: bool,
}

/// What the conductor does next.
pub(super) enum Next {
    /// It gives turns to these loads, by the number of their cells.
    Turns(Vec<(usize, ReadyLoad)>),
    /// All cells have ended.
    End,
}

impl Table {
    /// Returns a table for so many cells, which all ask for work.
    pub fn new(cells: usize) -> Self {
        let place = || Place { stage: Stage::Asks, load: None, is_free: false };
        Self {
            places: Mutex::new(std::iter::repeat_with(place).take(cells).collect()),
            changed: Condvar::new(),
        }
    }

    /// Waits until the cell may work alone.
    pub(super) fn ask(&self, cell: usize) {
        let mut places = self.lock();
        places[cell].stage = Stage::Asks;
        self.changed.notify_all();
        while places[cell].stage == Stage::Asks && !places[cell].is_free {
            places = self.wait(places);
        }
        places[cell].stage = Stage::Works;
    }

    /// Gives up the work of a cell whose load is ready.
    pub(super) fn ready(&self, cell: usize, load: ReadyLoad) {
        let mut places = self.lock();
        if places[cell].is_free {
            drop(places);
            load.connections.release();
            return;
        }
        places[cell].stage = Stage::Loads { number: load.number };
        places[cell].load = Some(load);
        self.changed.notify_all();
    }

    /// Removes a cell that has ended, or never began.
    pub(super) fn leave(&self, cell: usize) {
        let mut places = self.lock();
        places[cell].stage = Stage::Left;
        places[cell].load = None;
        self.changed.notify_all();
    }

    /// Lets one cell after the other work until the loads of all are ready, and takes those that
    /// come first.
    pub(super) fn next(&self) -> Next {
        let mut places = self.lock();
        loop {
            let stages = || places.iter().map(|place| place.stage);
            if stages().all(|stage| stage == Stage::Left) {
                return Next::End;
            }
            if !stages().any(|stage| stage == Stage::Works) {
                let asking = stages().position(|stage| stage == Stage::Asks);
                if let Some(cell) = asking {
                    places[cell].stage = Stage::Works;
                    self.changed.notify_all();
                } else if places.iter().any(|place| place.load.is_some()) {
                    return Next::Turns(first_loads(&mut places));
                }
            }
            places = self.wait(places);
        }
    }

    /// Waits until a cell no longer loads: its thread has seen that the load has ended.
    pub(super) fn wait_for_end(&self, cell: usize) {
        let mut places = self.lock();
        while matches!(places[cell].stage, Stage::Loads { .. }) {
            places = self.wait(places);
        }
    }

    /// Lets all cells work at any time: the run is interrupted, or turns have failed.
    pub(super) fn give_up(&self) {
        let mut places = self.lock();
        for place in &mut *places {
            place.is_free = true;
            if let Some(load) = place.load.take() {
                load.connections.release();
            }
        }
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, places: MutexGuard<'a, Vec<Place>>) -> MutexGuard<'a, Vec<Place>> {
        self.changed.wait(places).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the loads with the lowest number. A cell may lack a step that others have: its next load
/// waits until theirs has ended.
fn first_loads(places: &mut [Place]) -> Vec<(usize, ReadyLoad)> {
    let numbers = places.iter().filter_map(|place| match place.stage {
        Stage::Loads { number } => Some(number),
        Stage::Asks | Stage::Works | Stage::Left => None,
    });
    let first = numbers.min();

    let mut loads = Vec::new();
    for (cell, place) in places.iter_mut().enumerate() {
        let is_first = place.load.as_ref().is_some_and(|load| Some(load.number) == first);
        if is_first && let Some(load) = place.load.take() {
            loads.push((cell, load));
        }
    }
    loads
}
