//! Whether a scan gives its keys in order: looked at for every entry, so that it has to cost next to nothing.

use std::cmp::Ordering;

use crate::Direction;

/// Keys of so many bytes are kept by two moves of half as many each, which overlap.
const SHORT: usize = 32;
const HALF: usize = SHORT / 2;
/// Most keys differ in as many bytes at their head.
const HEAD: usize = 8;

/// Holds each key of a scan against the one before.
#[derive(Debug)]
pub struct KeyOrder {
    /// The key before, or where the scan began; what is behind its end is of no account.
    buffer: Vec<u8>,
    length: usize,
    /// Its first bytes as a number; of a shorter key none. Kept apart: what was just written in two parts that overlap is
    /// slow to read.
    head: Option<u64>,
    /// What a key has to be to the one before.
    wanted: Ordering,
    /// The key before may come again: it is only where the scan began.
    is_first: bool,
}

impl Default for KeyOrder {
    fn default() -> Self {
        Self {
            buffer: vec![0; 256],
            length: 0,
            head: None,
            wanted: Ordering::Greater,
            is_first: true,
        }
    }
}

impl KeyOrder {
    /// A scan begins.
    #[inline]
    pub fn begin(&mut self, direction: Direction) {
        self.wanted = match direction {
            Direction::Forward => Ordering::Greater,
            Direction::Reverse => Ordering::Less,
        };
        self.is_first = true;
    }

    /// Whether the next key of the scan that began at `from` lies on the right side of the one before; the first one may
    /// also be `from` itself. A key that does not is forgotten.
    #[inline(always)]
    pub fn follows(&mut self, from: &[u8], key: &[u8]) -> bool {
        let head = head(key);
        let follows = match (head, self.head) {
            (Some(head), Some(before)) if head != before && !self.is_first => {
                head.cmp(&before) == self.wanted
            }
            _ => self.follows_closely(from, key),
        };
        if follows {
            self.keep(key, head);
        }
        follows
    }

    /// The same for the first key, and for one whose first bytes don't decide.
    #[inline(never)]
    fn follows_closely(&mut self, from: &[u8], key: &[u8]) -> bool {
        if !self.is_first {
            return key.cmp(self.before()) == self.wanted;
        }
        let order = key.cmp(from);
        self.is_first = order != self.wanted && order.is_ne();
        if self.is_first {
            self.keep(from, None);
        }
        !self.is_first
    }

    /// The key before, or where the scan began.
    #[inline]
    pub fn before(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    #[inline(always)]
    fn keep(&mut self, key: &[u8], head: Option<u64>) {
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
            self.keep_any(key);
        }
    }

    #[inline(never)]
    fn keep_any(&mut self, key: &[u8]) {
        if self.buffer.len() < key.len() {
            self.buffer.resize(key.len(), 0);
        }
        self.buffer[..key.len()].copy_from_slice(key);
    }
}

/// The first bytes of a key as a number that has the key's order.
#[inline]
fn head(key: &[u8]) -> Option<u64> {
    key.first_chunk::<HEAD>()
        .map(|head| u64::from_be_bytes(*head))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of all lengths around those that are treated apart, in order.
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
    fn it_knows_the_order_of_any_two_keys() {
        let keys = keys();
        let mut order = KeyOrder::default();
        for (at, before) in keys.iter().enumerate() {
            for (other_at, key) in keys.iter().enumerate() {
                for (direction, follows) in [
                    (Direction::Forward, other_at > at),
                    (Direction::Reverse, other_at < at),
                ] {
                    order.begin(direction);
                    assert!(order.follows(before, before), "a scan may begin there");
                    assert_eq!(order.follows(before, key), follows, "{before:?} {key:?}");
                    assert_eq!(order.before(), if follows { key } else { before });
                    order.begin(direction);
                    let begins = follows || key == before;
                    assert_eq!(order.follows(before, key), begins);
                    assert_eq!(order.before(), if begins { key } else { before });
                }
            }
        }
    }
}
