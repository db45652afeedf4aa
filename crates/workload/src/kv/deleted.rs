//! The keys that were deleted: a set of numbers that finds the next number outside of it in a few
//! steps, however many lie between.

const WORD_BITS: usize = 64;

/// The loaded keys that were deleted, and not written since.
#[derive(Clone, Debug)]
pub(super) struct DeletedKeys {
    /// Bits in words. In the first level, bit `n` is set if key `n` is deleted. In each further
    /// level, it is set if all bits of word `n` in the level before are set. The last level has one
    /// word. There are no levels before the first deletion.
    levels: Vec<Vec<u64>>,
    count: u64,
    /// All other keys exist, and these don't. Once a write has failed, some of these may exist.
    is_certain: bool,
}

impl Default for DeletedKeys {
    fn default() -> Self {
        Self { levels: Vec::new(), count: 0, is_certain: true }
    }
}

impl DeletedKeys {
    /// Makes room for the numbers below `keys`.
    fn grow(&mut self, keys: u64) {
        let mut bits = keys as usize;
        loop {
            let words = bits.div_ceil(WORD_BITS).max(1);
            self.levels.push(vec![0; words]);
            if words == 1 {
                return;
            }
            bits = words;
        }
    }

    /// Returns whether no key is deleted.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of deleted keys.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether all of these keys are certainly missing.
    pub(super) fn is_certain(&self) -> bool {
        self.is_certain
    }

    /// Notes that a write of one of these keys, or a deletion, may have failed.
    pub(super) fn set_uncertain(&mut self) {
        self.is_certain = false;
    }

    #[inline]
    pub(super) fn contains(&self, number: u64) -> bool {
        let number = number as usize;
        let words = self.levels.first();
        let word = words.and_then(|words| words.get(number / WORD_BITS));
        word.is_some_and(|word| word >> (number % WORD_BITS) & 1 == 1)
    }

    /// Adds a key, one of the first `keys`.
    pub(super) fn insert(&mut self, number: u64, keys: u64) {
        if self.contains(number) {
            return;
        }
        if self.levels.is_empty() {
            self.grow(keys);
        }

        self.count += 1;
        let mut bit = number as usize;
        for words in &mut self.levels {
            let word = &mut words[bit / WORD_BITS];
            *word |= 1 << (bit % WORD_BITS);
            if *word != u64::MAX {
                return;
            }
            bit /= WORD_BITS;
        }
    }

    /// Removes a key, which exists again.
    pub(super) fn remove(&mut self, number: u64) {
        if !self.contains(number) {
            return;
        }

        self.count -= 1;
        let mut bit = number as usize;
        for words in &mut self.levels {
            let word = &mut words[bit / WORD_BITS];
            let was_full = *word == u64::MAX;
            *word &= !(1 << (bit % WORD_BITS));
            if !was_full {
                return;
            }
            bit /= WORD_BITS;
        }
    }

    /// Returns the first number from `number` on that is not deleted.
    #[inline]
    pub(super) fn next_existing(&self, number: u64) -> u64 {
        if !self.contains(number) {
            return number;
        }
        // All numbers up to the end of the words are deleted.
        let end = self.levels[0].len() * WORD_BITS;
        self.next_unset(0, number as usize).unwrap_or(end) as u64
    }

    /// Returns the last number up to `number` that is not deleted; `None` if there is none.
    #[inline]
    pub(super) fn previous_existing(&self, number: u64) -> Option<u64> {
        if !self.contains(number) {
            return Some(number);
        }
        let found = self.previous_unset(0, number as usize)?;
        Some(found as u64)
    }

    /// Returns the first bit of a level from `bit` on that is not set.
    fn next_unset(&self, level: usize, bit: usize) -> Option<usize> {
        let words = self.levels.get(level)?;
        let word = bit / WORD_BITS;
        let unset = !words.get(word)? >> (bit % WORD_BITS);
        if unset != 0 {
            return Some(bit + unset.trailing_zeros() as usize);
        }

        let word = self.next_unset(level + 1, word + 1)?;
        let unset = !words.get(word)?;
        Some(word * WORD_BITS + unset.trailing_zeros() as usize)
    }

    /// Returns the last bit of a level up to `bit` that is not set.
    fn previous_unset(&self, level: usize, bit: usize) -> Option<usize> {
        let words = self.levels.get(level)?;
        let (word, place) = (bit / WORD_BITS, bit % WORD_BITS);
        let unset = !words[word] << (WORD_BITS - 1 - place);
        if unset != 0 {
            return Some(bit - unset.leading_zeros() as usize);
        }

        let word = self.previous_unset(level + 1, word.checked_sub(1)?)?;
        let unset = !words[word];
        Some(word * WORD_BITS + WORD_BITS - 1 - unset.leading_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Random;

    /// Compares with a set of numbers that exist, after each of many random changes.
    #[test]
    fn the_next_and_the_previous_existing_key_are_found_over_any_gap() {
        for keys in [1, 63, 64, 65, 4096, 4097, 300_000] {
            let mut deleted = DeletedKeys::default();
            let mut existing: BTreeSet<u64> = (0..keys).collect();
            let mut random = Random::stream(5, &[keys]);
            for round in 0..60 {
                // Long runs fill words, and words of words.
                let first = random.below(keys);
                let end = keys.min(first + 1 + random.below(keys.div_ceil(1 + round % 7)));
                for number in first..end {
                    if random.below(100) == 0 || round % 5 == 4 {
                        deleted.remove(number);
                        existing.insert(number);
                    } else {
                        deleted.insert(number, keys);
                        existing.remove(&number);
                    }
                }

                assert_eq!(deleted.count(), keys - existing.len() as u64);
                for _ in 0..50 {
                    let number = random.below(keys);
                    assert_eq!(deleted.contains(number), !existing.contains(&number));
                    let next = existing.range(number..).next().copied();
                    let found = deleted.next_existing(number);
                    assert_eq!((found < keys).then_some(found), next, "{keys} {number}");
                    let previous = existing.range(..=number).next_back().copied();
                    assert_eq!(deleted.previous_existing(number), previous, "{keys} {number}");
                }
            }
        }
    }

    #[test]
    fn new_keys_exist_behind_deleted_ones() {
        let mut deleted = DeletedKeys::default();
        (0..128).for_each(|number| deleted.insert(number, 128));
        assert_eq!(deleted.next_existing(5), 128);
        assert_eq!(deleted.next_existing(130), 130);
        assert_eq!(deleted.previous_existing(127), None);
        assert_eq!(deleted.previous_existing(128), Some(128));
    }
}
