//! Gives turns to the loads of a group of cells.

use std::time::Duration;

use load::{Clock as _, SystemClock};
use plan::TurnLength;
use record::TurnRow;

use super::order::TurnOrder;
use super::pace::Pace;
use super::table::{Next, ReadyLoad, Table};

/// The longest time between looks at whether the run is interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The place of a turn among those of its step.
#[derive(Clone, Copy)]
struct TurnPlace {
    /// The number of the turn, from 0, over all targets.
    number: u32,
    /// The block of the order in which it is.
    block: u32,
    /// The time since the first turn, by the host's clock.
    at_ns: u64,
    /// The number of the draw of processors.
    draw: u64,
}

/// The reason why a turn has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TurnEnd {
    TimeIsUp,
    LoadEnded,
}

/// Gives turns until all cells of the group have ended.
pub struct Conductor<'a> {
    pub table: &'a Table,
    pub clock: &'a SystemClock,
    /// Returns whether the run is interrupted.
    pub is_stopped: &'a dyn Fn() -> bool,
    /// The seed of the order of turns.
    pub seed: u64,
    /// The length of a turn, as the plan has it.
    pub length: TurnLength,
}

impl Conductor<'_> {
    /// Conducts the group.
    pub fn conduct(&self) {
        while let Next::Turns(loads) = self.table.next() {
            let number = loads.first().map_or(0, |(_, load)| load.number);
            self.give_turns(loads, TurnOrder::new(self.seed ^ number as u64));
            if (self.is_stopped)() {
                self.table.give_up();
            }
        }
    }

    /// Gives turns to loads until all have ended, or the run is interrupted.
    fn give_turns(&self, mut loads: Vec<(usize, ReadyLoad)>, mut order: TurnOrder) {
        let started_ns = self.clock.now();
        let mut number = 0;
        let mut pace = Pace::new(self.length);
        loop {
            let loading: Vec<usize> = loads.iter().map(|(cell, _)| *cell).collect();
            let Some(next) = order.next(&loading) else {
                return;
            };
            let load = &loads[next.index].1;

            let at_ns = self.clock.now() - started_ns;
            // The targets have the same processors in a half of a block.
            let draw = 2 * u64::from(next.block) + u64::from(next.half);
            let place = TurnPlace { number, block: next.block, at_ns, draw };
            let end = self.give_turn(load, place, &mut pace).unwrap_or_else(|error| {
                // The others continue: only this target cannot take its turns.
                load.fail(&format!("{error:#}"));
                TurnEnd::LoadEnded
            });

            number += 1;

            if (self.is_stopped)() {
                loads.iter().for_each(|(_, load)| load.release());
                return;
            }
            if end == TurnEnd::LoadEnded {
                // Its thread closes connections and reads what they did, for which the target
                // must not be frozen.
                self.table.wait_for_end(next.cell);
                loads.remove(next.index);
            }
        }
    }

    /// Gives one turn to a load, and freezes its target afterward unless the load has ended.
    ///
    /// # Errors
    /// The target cannot be frozen or thawed, or its connections cannot be placed.
    fn give_turn(
        &self,
        load: &ReadyLoad,
        place: TurnPlace,
        pace: &mut Pace,
    ) -> anyhow::Result<TurnEnd> {
        load.begin(place.draw)?;
        self.wait(load, pace.length_in(place.block));
        let turn = load.end()?;
        pace.note(&turn);

        load.connections.note(TurnRow {
            number: place.number,
            block: place.block,
            at_ns: place.at_ns,
            began_ns: turn.began_ns,
            length_ns: turn.length_ns,
            idle_ns: turn.idle_ns,
            client_cpu_ns: turn.work.cpu_ns,
            server: load.used(),
            ok: turn.work.ok,
        });

        Ok(if turn.is_last { TurnEnd::LoadEnded } else { TurnEnd::TimeIsUp })
    }

    /// Waits until the time of a turn is up, or the load has ended.
    fn wait(&self, load: &ReadyLoad, length: Duration) {
        let ends_ns = self.clock.now() + length.as_nanos() as u64;
        loop {
            let left = Duration::from_nanos(ends_ns.saturating_sub(self.clock.now()));
            let has_ended = load.connections.wait_for_end(left.min(LOOK_EVERY));
            if has_ended || left <= LOOK_EVERY || (self.is_stopped)() {
                return;
            }
        }
    }
}
