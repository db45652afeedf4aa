//! The order of turns.

use words::Random;

/// Draws the order in which targets take turns.
///
/// Each target has one turn in each half of a block, and the second half mirrors the first: `a b b
/// a`. So no steady drift of the machine favors a target. Each block begins with an order that is
/// drawn at random, so that no rhythm of the machine favors one.
pub struct TurnOrder {
    random: Random,
    /// The rest of the block, last turn first.
    rest: Vec<usize>,
    /// The number of turns in a half of the block.
    half_length: usize,
    /// The number of blocks that have begun.
    blocks: u32,
}

/// The target that has the next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextTurn {
    /// The number of its cell.
    pub cell: usize,
    /// The index of the cell among those that are loading.
    pub index: usize,
    /// The number of the block, from 0.
    pub block: u32,
    /// The half of the block, 0 or 1.
    pub half: u32,
}

impl TurnOrder {
    /// Returns the orders that follow from a seed.
    pub fn new(seed: u64) -> Self {
        Self { random: Random::stream(seed, &[]), rest: Vec::new(), half_length: 0, blocks: 0 }
    }

    /// Returns the next turn, of one of the cells that are `loading`. `None` if no cell is.
    pub fn next(&mut self, loading: &[usize]) -> Option<NextTurn> {
        loop {
            // A cell whose load has ended leaves the rest of a block to the others.
            while let Some(cell) = self.rest.pop() {
                let half = u32::from(self.rest.len() < self.half_length);
                if let Some(index) = loading.iter().position(|loading_cell| *loading_cell == cell) {
                    return Some(NextTurn { cell, index, block: self.blocks - 1, half });
                }
            }

            if loading.is_empty() {
                return None;
            }
            self.begin_block(loading);
        }
    }

    /// Shuffles the cells for the first half of a block. The second half has the reverse order, so
    /// that each cell comes as early as it comes late.
    fn begin_block(&mut self, loading: &[usize]) {
        let mut half = loading.to_vec();
        for last in (1..half.len()).rev() {
            half.swap(last, self.random.below(last as u64 + 1) as usize);
        }

        self.half_length = half.len();
        self.rest.clone_from(&half);
        half.reverse();
        self.rest.extend(half);

        self.blocks += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(order: &mut TurnOrder, loading: &[usize]) -> Vec<usize> {
        let turns = 2 * loading.len();
        (0..turns).map(|_| order.next(loading).unwrap().cell).collect()
    }

    #[test]
    fn each_block_mirrors_itself_and_has_every_target_twice() {
        let mut order = TurnOrder::new(7);
        for count in 1..6 {
            let loading: Vec<usize> = (0..count).collect();
            for _ in 0..20 {
                let turns = block(&mut order, &loading);
                let mut mirrored = turns.clone();
                mirrored.reverse();
                assert_eq!(turns, mirrored);

                let mut first_half = turns[..count].to_vec();
                first_half.sort_unstable();
                assert_eq!(first_half, loading);
            }
        }
    }

    #[test]
    fn each_half_of_a_block_has_every_target_once() {
        let mut order = TurnOrder::new(11);
        let all: Vec<NextTurn> = (0..12).map(|_| order.next(&[0, 1, 2]).unwrap()).collect();
        let halves: Vec<[u32; 2]> = all.iter().map(|turn| [turn.block, turn.half]).collect();
        assert_eq!(halves[..7], [[0, 0], [0, 0], [0, 0], [0, 1], [0, 1], [0, 1], [1, 0]]);

        // A target that ends in the middle of a block does not shift the halves of the others.
        let first = order.next(&[0, 1, 2]).unwrap().cell;
        let left: Vec<usize> = (0..3).filter(|cell| *cell != first).collect();
        let rest: Vec<u32> = (0..4).map(|_| order.next(&left).unwrap().half).collect();
        assert_eq!(rest, [0, 0, 1, 1]);
    }

    #[test]
    fn either_of_two_targets_begins_half_of_the_blocks() {
        let mut order = TurnOrder::new(1);
        let first = |_| block(&mut order, &[0, 1])[0];
        let begun_by_second: usize = (0..1000).map(first).sum();
        // The standard deviation is 16.
        assert!((430..570).contains(&begun_by_second), "{begun_by_second}");
    }

    #[test]
    fn a_target_that_has_ended_gets_no_turn() {
        let mut order = TurnOrder::new(3);
        let _ = order.next(&[0, 1, 2]);
        for _ in 0..20 {
            assert_ne!(order.next(&[0, 2]).unwrap().cell, 1);
        }
        assert_eq!(order.next(&[]), None);
    }
}
