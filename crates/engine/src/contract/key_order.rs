//! Checks that a scan returns its keys in order. It runs for every entry, so its cost must be very
//! low.

use std::cmp::Ordering;

use super::Direction;
use crate::error::{Error, ErrorClass};

/// Keys of up to this many bytes are copied with two overlapping moves of half as many bytes.
const SHORT: usize = 32;
const HALF: usize = SHORT / 2;
/// The number of first bytes in which most keys differ.
const HEAD: usize = 8;

/// Compares each key of a scan with the previous one.
#[derive(Debug)]
pub struct KeyOrder {
    /// The previous key, or the start of the scan. Bytes after `length` have no meaning.
    buffer: Vec<u8>,
    length: usize,
    /// The previous key's first bytes as a number; `None` for a shorter key. It is stored
    /// separately, because the processor is slow to read bytes that two overlapping moves have
    /// just written.
    head: Option<u64>,
    /// The required comparison of a key with the previous one.
    expected: Ordering,
    /// True before the first key, which may be equal to the start of the scan.
    is_first: bool,
}

impl Default for KeyOrder {
    fn default() -> Self {
        Self {
            buffer: vec![0; 256],
            length: 0,
            head: None,
            expected: Ordering::Greater,
            is_first: true,
        }
    }
}

impl KeyOrder {
    /// Begins a scan.
    #[inline]
    pub fn begin(&mut self, direction: Direction) {
        self.expected = match direction {
            Direction::Forward => Ordering::Greater,
            Direction::Reverse => Ordering::Less,
        };
        self.is_first = true;
    }

    /// Returns true when the next key of the scan that began at `from` is in order. The first key
    /// may also be `from`. A key that is out of order is not stored.
    #[inline(always)]
    pub fn follows(&mut self, from: &[u8], key: &[u8]) -> bool {
        let head = head(key);

        let follows = match (head, self.head) {
            (Some(head), Some(previous)) if head != previous && !self.is_first => {
                head.cmp(&previous) == self.expected
            }
            _ => self.follows_by_whole_key(from, key),
        };

        if follows {
            self.store(key, head);
        }

        follows
    }

    /// Does the same as [`Self::follows`] for the first key, and for a key whose first bytes don't
    /// decide.
    #[inline(never)]
    fn follows_by_whole_key(&mut self, from: &[u8], key: &[u8]) -> bool {
        if !self.is_first {
            return key.cmp(self.previous()) == self.expected;
        }

        let order = key.cmp(from);
        self.is_first = order != self.expected && order.is_ne();

        if self.is_first {
            self.store(from, None);
        }
        !self.is_first
    }

    /// Returns the previous key, or the start of the scan.
    #[inline]
    fn previous(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    /// Returns the error of a scan that returned `key` out of order.
    #[cold]
    pub(crate) fn violated_by(&self, key: &[u8]) -> Error {
        Error::new(
            ErrorClass::Protocol,
            format!(
                "a scan returned keys out of order: `{}` after `{}`",
                key.escape_ascii(),
                self.previous().escape_ascii()
            ),
        )
    }

    #[inline(always)]
    fn store(&mut self, key: &[u8], head: Option<u64>) {
        self.length = key.len();
        self.head = head;

        let ends = (key.first_chunk::<HALF>(), key.last_chunk::<HALF>());
        if let (Some(head), Some(tail)) = ends
            && let Some(room) = self.buffer.first_chunk_mut::<SHORT>()
            && key.len() <= SHORT
        {
            room[..HALF].copy_from_slice(head);
            room[key.len() - HALF..key.len()].copy_from_slice(tail);
        } else {
            self.store_any(key);
        }
    }

    #[inline(never)]
    fn store_any(&mut self, key: &[u8]) {
        if self.buffer.len() < key.len() {
            self.buffer.resize(key.len(), 0);
        }
        self.buffer[..key.len()].copy_from_slice(key);
    }
}

/// Returns the first bytes of a key as a number with the same order.
#[inline]
fn head(key: &[u8]) -> Option<u64> {
    key.first_chunk::<HEAD>().map(|head| u64::from_be_bytes(*head))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns sorted keys of all lengths around those with special treatment.
    fn keys() -> Vec<Vec<u8>> {
        let mut keys = vec![Vec::new()];
        for length in [1, 7, 8, 9, 15, 16, 17, 20, 31, 32, 33, 300] {
            for last in [0, 1, 255] {
                for head in [0, 7, 255] {
                    let mut key = vec![head; length];
                    key[length - 1] = last;
                    keys.push(key);
                }
            }
        }
        keys.sort();
        keys.dedup();
        keys
    }

    #[test]
    fn any_two_keys_are_compared_correctly() {
        let keys = keys();
        let mut order = KeyOrder::default();
        for (previous_index, previous) in keys.iter().enumerate() {
            for (index, key) in keys.iter().enumerate() {
                for (direction, follows) in [
                    (Direction::Forward, index > previous_index),
                    (Direction::Reverse, index < previous_index),
                ] {
                    order.begin(direction);
                    assert!(order.follows(previous, previous), "a scan may begin with its start");
                    assert_eq!(order.follows(previous, key), follows, "{previous:?} {key:?}");
                    assert_eq!(order.previous(), if follows { key } else { previous });
                    order.begin(direction);
                    let begins = follows || key == previous;
                    assert_eq!(order.follows(previous, key), begins);
                    assert_eq!(order.previous(), if begins { key } else { previous });
                }
            }
        }
    }
}
