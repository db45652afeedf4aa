//! The table at which the cells of a group sit: who works, who waits, and for what.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use load::Turn;
use record::{ServerUse, TurnRow};

use super::frozen::Frozen;
use super::lock;

/// The connections of a target, which take turns with those of others.
pub trait TurnTaker: Send + Sync {
    /// Places the connections on processors, and opens their gate: a turn begins. Turns with the
    /// same `draw` have the same places.
    ///
    /// # Errors
    /// The connections cannot be placed, so they don't work.
    fn begin(&self, draw: u64) -> anyhow::Result<()>;

    /// Waits until the connections have ended the step, but not longer than `at_most`. Returns
    /// whether they have.
    fn wait_for_end(&self, at_most: Duration) -> bool;

    /// Closes the gate when the operations in flight have ended: the turn is over.
    ///
    /// # Errors
    /// The turn could not begin.
    fn end(&self) -> anyhow::Result<Turn>;

    /// Lets the step fail for this reason: the target cannot take its turns.
    fn fail(&self, reason: &str);

    /// Lets the connections work without turns from now on, so that the step can end.
    fn release(&self);

    /// Notes a turn for the record.
    fn note(&self, row: TurnRow);
}

/// A load whose connections wait for their first turn.
pub struct ReadyLoad {
    /// The number of the load within its cell. Loads with the same number take turns.
    pub number: usize,
    pub connections: Arc<dyn TurnTaker>,
    /// The processes that rest between turns.
    pub target: Arc<Mutex<Frozen>>,
}

impl ReadyLoad {
    /// Thaws the target, and lets its connections begin a turn.
    ///
    /// # Errors
    /// The target cannot be thawed or placed, so it does not work.
    pub(super) fn begin(&self, draw: u64) -> anyhow::Result<()> {
        let mut target = lock(&self.target);
        target.begin_turn();
        target.thaw()?;
        drop(target);
        self.connections.begin(draw)
    }

    /// Ends a turn, and freezes the target until its next one unless the load has ended.
    ///
    /// # Errors
    /// The turn could not begin, or the target cannot be frozen.
    pub(super) fn end(&self) -> anyhow::Result<Turn> {
        let turn = self.connections.end()?;
        if !turn.is_last {
            lock(&self.target).freeze()?;
        }
        Ok(turn)
    }

    /// Returns what the processes of the server have used since the turn began; `None` without a
    /// server whose processes are known.
    pub(super) fn used(&self) -> Option<ServerUse> {
        lock(&self.target).used_in_turn()
    }

    /// Lets the step fail for this reason: the target cannot take its turns.
    pub(super) fn fail(&self, reason: &str) {
        // A target that cannot be thawed has failed already.
        let _ = lock(&self.target).thaw();
        self.connections.fail(reason);
    }

    /// Lets the target and its connections work without turns from now on, so that the step can
    /// end.
    pub(super) fn release(&self) {
        // If it cannot be thawed, its connections wait until the step is cut off.
        let _ = lock(&self.target).thaw();
        self.connections.release();
    }
}

/// The stage of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The cell begins when another one has made its database.
    Waits { for_cell: usize },
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
    places: Mutex<Vec<CellPlace>>,
    changed: Condvar,
}

struct CellPlace {
    stage: Stage,
    load: Option<ReadyLoad>,
    /// Turns were given up: the cell may work at any time.
    is_free: bool,
}

/// The next action of the conductor.
pub(super) enum Next {
    /// It gives turns to these loads, by the number of their cells.
    Turns(Vec<(usize, ReadyLoad)>),
    /// All cells have ended.
    End,
}

impl Table {
    /// Returns a table for cells, which all ask for work, except those that wait for the database
    /// of another one: `loaders` has the number of that one for each cell.
    pub fn new(loaders: &[Option<usize>]) -> Self {
        let mut places = Vec::new();
        for loader in loaders {
            let stage = match *loader {
                Some(for_cell) => Stage::Waits { for_cell },
                None => Stage::Asks,
            };
            places.push(CellPlace { stage, load: None, is_free: false });
        }

        Self { places: Mutex::new(places), changed: Condvar::new() }
    }

    /// Waits until the cell may work alone.
    pub(super) fn ask(&self, cell: usize) {
        let mut places = lock(&self.places);
        while matches!(places[cell].stage, Stage::Waits { .. }) && !places[cell].is_free {
            places = self.wait(places);
        }

        places[cell].stage = Stage::Asks;
        self.changed.notify_all();

        while places[cell].stage == Stage::Asks && !places[cell].is_free {
            places = self.wait(places);
        }

        places[cell].stage = Stage::Works;
    }

    /// Gives up the work of a cell whose load is ready.
    pub(super) fn ready(&self, cell: usize, load: ReadyLoad) {
        let mut places = lock(&self.places);
        if places[cell].is_free {
            drop(places);
            load.release();
            return;
        }

        places[cell].stage = Stage::Loads { number: load.number };
        places[cell].load = Some(load);
        self.changed.notify_all();
    }

    /// Lets the cells begin that wait for the database of this one: it has been kept.
    pub(super) fn has_database(&self, cell: usize) {
        end_waits(&mut lock(&self.places), cell);
        self.changed.notify_all();
    }

    /// Removes a cell that has ended, or never began. Those that wait for its database begin without
    /// one.
    pub fn leave(&self, cell: usize) {
        let mut places = lock(&self.places);
        places[cell].stage = Stage::Left;
        places[cell].load = None;
        end_waits(&mut places, cell);
        self.changed.notify_all();
    }

    /// Lets one cell after the other work until the loads of all are ready, and takes those that
    /// come first.
    pub(super) fn next(&self) -> Next {
        let mut places = lock(&self.places);
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
        let mut places = lock(&self.places);
        while matches!(places[cell].stage, Stage::Loads { .. }) {
            places = self.wait(places);
        }
    }

    /// Lets all cells work at any time: the run is interrupted, or turns have failed.
    pub(super) fn give_up(&self) {
        let mut places = lock(&self.places);

        for place in &mut *places {
            place.is_free = true;
            if let Some(load) = place.load.take() {
                load.release();
            }
        }

        self.changed.notify_all();
    }

    fn wait<'a>(&self, places: MutexGuard<'a, Vec<CellPlace>>) -> MutexGuard<'a, Vec<CellPlace>> {
        self.changed.wait(places).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets cells ask for work that wait for the database of `cell`.
fn end_waits(places: &mut [CellPlace], cell: usize) {
    for place in places {
        if place.stage == (Stage::Waits { for_cell: cell }) {
            place.stage = Stage::Asks;
        }
    }
}

/// Takes the loads with the lowest number. A cell may lack a step that others have: its next load
/// waits until theirs has ended.
fn first_loads(places: &mut [CellPlace]) -> Vec<(usize, ReadyLoad)> {
    let numbers = places.iter().filter_map(|place| match place.stage {
        Stage::Loads { number } => Some(number),
        Stage::Waits { .. } | Stage::Asks | Stage::Works | Stage::Left => None,
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
