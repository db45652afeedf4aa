//! The turns of a target within a step that all targets of a repeat take in turns.

use record::{ServerUse, TurnRow};
use serde::Serialize;

/// The work of a target in all of its turns of a step, and the resources that it used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TurnTotals {
    /// The number of its turns.
    pub turns: u64,
    /// The time of its turns, by its own clock, in seconds.
    pub seconds: f64,
    /// The time at the ends of turns in which the last operations were awaited, in seconds.
    pub idle_seconds: f64,
    /// Operations of the main kind that succeeded; of all kinds, if the step has no main kind.
    pub operations: u64,
    /// The CPU time of the connections' threads in the client, in seconds.
    pub client_cpu_seconds: f64,
    /// The resources that the server's processes used; `None` if these are unknown for some turn.
    pub server: Option<ServerUse>,
}

impl TurnTotals {
    /// Adds the turns of another repeat. Sums saturate, since a record may be forged.
    pub fn add(&mut self, other: &Self) {
        self.turns = self.turns.saturating_add(other.turns);
        self.seconds += other.seconds;
        self.idle_seconds += other.idle_seconds;
        self.operations = self.operations.saturating_add(other.operations);
        self.client_cpu_seconds += other.client_cpu_seconds;
        self.server = self.server.zip(other.server).map(|(sum, used)| added(sum, used));
    }
}

/// The work of a target in its turn of one half of a block. Every other target had a turn in that
/// half, on the same processors where they are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HalfBlock {
    /// The number of the block in the step, from 0.
    pub block: u32,
    /// The half of the block, 0 or 1.
    pub half: u32,
    /// The time of the turn, by the target's own clock, in seconds.
    pub seconds: f64,
    /// Operations, as in [`TurnTotals::operations`].
    pub operations: u64,
    /// The CPU time of the connections' threads and of the server's processes, in seconds; `None`
    /// if that of the server is unknown.
    pub cpu_seconds: Option<f64>,
}

/// Returns the totals of some turns; `None` without turns.
pub(super) fn totals(turns: &[TurnRow], main_op: Option<&str>) -> Option<TurnTotals> {
    if turns.is_empty() {
        return None;
    }

    let mut totals = TurnTotals { server: Some(ServerUse::default()), ..TurnTotals::default() };
    for turn in turns {
        totals.add(&TurnTotals {
            turns: 1,
            seconds: seconds(turn.length_ns),
            idle_seconds: seconds(turn.idle_ns),
            operations: operations(turn, main_op),
            client_cpu_seconds: seconds(turn.client_cpu_ns),
            server: turn.server,
        });
    }
    Some(totals)
}

/// Returns the halves of blocks that some turns are, in their order. `embedded`: the engine works on
/// the threads of the client.
pub(super) fn halves(turns: &[TurnRow], main_op: Option<&str>, embedded: bool) -> Vec<HalfBlock> {
    let mut halves: Vec<HalfBlock> = Vec::new();
    for turn in turns {
        // Every load begins with a block, so a target's first turn in one is in its first half.
        let is_second = halves.last().is_some_and(|last| last.block == turn.block);
        halves.push(HalfBlock {
            block: turn.block,
            half: u32::from(is_second),
            seconds: seconds(turn.length_ns),
            operations: operations(turn, main_op),
            cpu_seconds: cpu_seconds(turn, embedded),
        });
    }
    halves
}

/// Returns the CPU time of a turn, in client and server.
fn cpu_seconds(turn: &TurnRow, embedded: bool) -> Option<f64> {
    let of_client = seconds(turn.client_cpu_ns);
    if embedded {
        return Some(of_client);
    }
    turn.server.map(|server| of_client + seconds(server.cpu_ns))
}

fn operations(turn: &TurnRow, main_op: Option<&str>) -> u64 {
    match main_op {
        Some(kind) => turn.ok.get(kind).copied().unwrap_or(0),
        None => turn.ok.values().fold(0, |sum, ok| sum.saturating_add(*ok)),
    }
}

fn added(sum: ServerUse, used: ServerUse) -> ServerUse {
    ServerUse {
        cpu_ns: sum.cpu_ns.saturating_add(used.cpu_ns),
        minor_faults: sum.minor_faults.saturating_add(used.minor_faults),
        major_faults: sum.major_faults.saturating_add(used.major_faults),
        voluntary_switches: sum.voluntary_switches.saturating_add(used.voluntary_switches),
        involuntary_switches: sum.involuntary_switches.saturating_add(used.involuntary_switches),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(number: u32, block: u32, gets: u64, server: Option<ServerUse>) -> TurnRow {
        TurnRow {
            number,
            block,
            length_ns: 20_000_000,
            idle_ns: 1_000_000,
            client_cpu_ns: 5_000_000,
            server,
            ok: [("get".to_owned(), gets), ("put".to_owned(), 3)].into(),
            ..TurnRow::default()
        }
    }

    #[test]
    fn the_turns_of_a_block_are_its_halves() {
        let turns = [turn(0, 0, 10, None), turn(3, 0, 20, None), turn(5, 1, 40, None)];
        let halves = halves(&turns, Some("get"), false);
        let shown: Vec<(u32, u32, u64)> =
            halves.iter().map(|half| (half.block, half.half, half.operations)).collect();
        assert_eq!(shown, [(0, 0, 10), (0, 1, 20), (1, 0, 40)]);
        assert!((halves[0].seconds - 0.02).abs() < 1e-9);
    }

    #[test]
    fn the_cpu_of_a_half_is_that_of_client_and_server() {
        let used = ServerUse { cpu_ns: 2_000_000, ..ServerUse::default() };
        let turns = [turn(0, 0, 10, Some(used)), turn(3, 0, 20, None)];
        let cpu = |embedded| -> Vec<Option<f64>> {
            let halves = halves(&turns, Some("get"), embedded);
            halves.iter().map(|half| half.cpu_seconds).collect()
        };
        assert_eq!(cpu(false), [Some(0.007), None]);
        assert_eq!(cpu(true), [Some(0.005), Some(0.005)]);
    }

    #[test]
    fn what_a_server_used_is_unknown_if_one_turn_lacks_it() {
        let used = ServerUse { cpu_ns: 7, voluntary_switches: 2, ..ServerUse::default() };
        let known = totals(&[turn(0, 0, 1, Some(used)), turn(1, 0, 1, Some(used))], None).unwrap();
        assert_eq!((known.turns, known.operations), (2, 8));
        assert_eq!(known.server.unwrap().voluntary_switches, 4);
        let unknown = totals(&[turn(0, 0, 1, Some(used)), turn(1, 0, 1, None)], None).unwrap();
        assert_eq!(unknown.server, None);
        assert_eq!(totals(&[], None), None);
    }
}
