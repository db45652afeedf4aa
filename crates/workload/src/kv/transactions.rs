//! The sets of `randomtransaction`, and the counters in their values.
//!
//! A transaction adds one number to a key of each set. So the sums of all sets are equal, unless an
//! update was lost. A counter is part of a value, and counts only what one step added: it begins at 0
//! in whatever value an earlier step wrote.

use plan::KvTransactions;

use crate::Random;

/// The largest number that a transaction adds, as in `db_bench`.
const INCREMENT_MAX: u64 = 100;
/// The sub-streams of a value's random stream: what a counter is masked with, and what proves it
/// whole. Those of the rest have smaller numbers.
const MASK: u64 = u64::MAX;
const PROOF: u64 = u64::MAX - 1;

/// The ranges of keys of one step, one for each set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sets {
    pub(super) count: u64,
    /// The number of keys from the first key of a range to that of the next.
    range: u64,
    pub(super) keys_per_set: u64,
}

impl Sets {
    /// Returns the sets of `keys` keys.
    pub(super) fn new(plan: &KvTransactions, keys: u64) -> Self {
        let count = u64::from(plan.sets);
        let range = (keys / count).max(1);
        Self { count, range, keys_per_set: plan.keys_per_set.clamp(1, range) }
    }

    /// Draws the key of a write. The writes of a transaction follow each other, one for each set.
    #[inline]
    pub(super) fn draw_key(&self, sequence: u64, random: &mut Random) -> u64 {
        self.first_key(sequence % self.count) + random.below(self.keys_per_set)
    }

    /// Returns the number of the first key of a set.
    #[inline]
    pub(super) fn first_key(&self, set: u64) -> u64 {
        set * self.range
    }
}

/// Draws the number that a transaction adds.
#[inline]
pub(super) fn draw_increment(random: &mut Random) -> u64 {
    1 + random.below(INCREMENT_MAX)
}

/// A counter as a word of a value: 40 bits with the number, and 24 that show damage.
pub(super) struct Counter;

impl Counter {
    const PROOF_BITS: u32 = 24;

    /// Returns the word of a counter in a value with this random stream.
    #[inline]
    pub(super) fn encode(counter: u64, body: &Random) -> [u8; 8] {
        let word = counter << Self::PROOF_BITS | Self::proof(counter, body);
        (word ^ body.at(MASK).next_u64()).to_le_bytes()
    }

    /// Returns the counter of a word; `None` if the word is damaged, or none of a counter.
    #[inline]
    pub(super) fn decode(word: [u8; 8], body: &Random) -> Option<u64> {
        let word = u64::from_le_bytes(word) ^ body.at(MASK).next_u64();
        let counter = word >> Self::PROOF_BITS;
        let proof = word & ((1 << Self::PROOF_BITS) - 1);
        (proof == Self::proof(counter, body)).then_some(counter)
    }

    fn proof(counter: u64, body: &Random) -> u64 {
        body.at(PROOF).at(counter).next_u64() >> (u64::BITS - Self::PROOF_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_read_unless_a_bit_is_wrong() {
        let body = Random::new(7);
        for counter in [0, 1, 100, 123_456_789, (1 << 40) - 1] {
            let word = Counter::encode(counter, &body);
            assert_eq!(Counter::decode(word, &body), Some(counter));
            for bit in 0..64 {
                let damaged = u64::from_le_bytes(word) ^ 1 << bit;
                assert_eq!(Counter::decode(damaged.to_le_bytes(), &body), None, "bit {bit}");
            }
        }
    }

    #[test]
    fn sets_share_no_key() {
        for (sets, keys_per_set) in [(1, 1000), (2, 500), (3, 333), (7, 10), (1000, 1)] {
            let plan = KvTransactions {
                sets,
                keys_per_set,
                lock_timeout: std::time::Duration::ZERO,
                takes_snapshot: false,
            };
            let sets = Sets::new(&plan, 1000);
            let mut random = Random::new(1);
            for sequence in 0..10_000 {
                let key = sets.draw_key(sequence, &mut random);
                let first = sets.first_key(sequence % sets.count);
                assert!((first..first + keys_per_set).contains(&key) && key < 1000);
            }
        }
    }
}
