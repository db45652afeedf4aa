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

/// The work of a target in its turns of one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TurnBlock {
    /// The number of the block in the step, from 0.
    pub block: u32,
    /// The number of its turns in it: two, except where the step began or ended.
    pub turns: u32,
    /// The time of its turns, by its own clock, in seconds.
    pub seconds: f64,
    /// Operations, as in [`TurnTotals::operations`].
    pub operations: u64,
    /// The CPU time of the connections' threads and of the server's processes, in seconds; `None`
    /// if that of the server is unknown for some turn.
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

/// Returns the blocks of some turns, in their order. `embedded`: the engine works on the threads of
/// the client.
pub(super) fn blocks(turns: &[TurnRow], main_op: Option<&str>, embedded: bool) -> Vec<TurnBlock> {
    let mut blocks: Vec<TurnBlock> = Vec::new();
    for turn in turns {
        if blocks.last().is_none_or(|last| last.block != turn.block) {
            let cpu_seconds = Some(0.0);
            blocks.push(TurnBlock { block: turn.block, cpu_seconds, ..TurnBlock::default() });
        }

        if let Some(last) = blocks.last_mut() {
            last.turns += 1;
            last.seconds += seconds(turn.length_ns);
            last.operations = last.operations.saturating_add(operations(turn, main_op));

            let used = cpu_seconds(turn, embedded);
            last.cpu_seconds = last.cpu_seconds.zip(used).map(|(sum, used)| sum + used);
        }
    }
    blocks
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
    fn a_block_has_both_turns_of_a_target() {
        let turns = [turn(0, 0, 10, None), turn(3, 0, 20, None), turn(5, 1, 40, None)];
        let blocks = blocks(&turns, Some("get"), false);
        let counts: Vec<(u32, u64)> =
            blocks.iter().map(|block| (block.block, block.operations)).collect();
        assert_eq!(counts, [(0, 30), (1, 40)]);
        assert!((blocks[0].seconds - 0.04).abs() < 1e-9);
        assert_eq!((blocks[0].turns, blocks[1].turns), (2, 1));
    }

    #[test]
    fn the_cpu_of_a_block_is_that_of_client_and_server() {
        let used = ServerUse { cpu_ns: 2_000_000, ..ServerUse::default() };
        let turns = [turn(0, 0, 10, Some(used)), turn(3, 0, 20, Some(used)), turn(5, 1, 40, None)];
        let cpu = |embedded| -> Vec<Option<f64>> {
            let blocks = blocks(&turns, Some("get"), embedded);
            blocks.iter().map(|block| block.cpu_seconds).collect()
        };
        assert_eq!(cpu(false), [Some(0.014), None]);
        assert_eq!(cpu(true), [Some(0.01), Some(0.005)]);
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
