//! The data that is written, and the data that should be there afterward.

use std::collections::BTreeMap;

use words::Random;

/// The contents of a database.
pub(crate) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// The number of keys that operations write to.
pub(crate) const KEY_COUNT: u64 = 300;

/// The most changes of a batch.
const CHANGES_MAX: u64 = 8;

/// A change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) key: Vec<u8>,
    /// `None`: the key is removed.
    pub(crate) value: Option<Vec<u8>>,
}

/// Operations, each of which depends only on the seed and its number.
#[derive(Clone, Debug)]
pub(crate) struct History {
    random: Random,
    /// The most changes of an operation.
    changes_max: u64,
}

impl History {
    /// Returns operations, with batches if the adapter has them.
    pub(crate) fn new(seed: u64, has_batches: bool) -> Self {
        let changes_max = if has_batches { CHANGES_MAX } else { 1 };
        Self { random: Random::new(seed), changes_max }
    }

    /// Returns the changes of an operation: the removal of one key in eight, and the writing of
    /// others. The same key may be changed twice.
    pub(crate) fn changes(&self, operation: u64) -> Vec<Change> {
        let mut random = self.random.at(operation);
        let count = 1 + random.below(self.changes_max);
        let mut changes = Vec::new();
        for number in 0..count {
            let key = key(random.below(KEY_COUNT));
            let is_removed = random.below(8) == 0;
            let value = (!is_removed).then(|| value(&mut random, operation, number));
            changes.push(Change { key, value });
        }
        changes
    }

    /// Applies an operation.
    pub(crate) fn apply(&self, operation: u64, entries: &mut Entries) {
        for Change { key, value } in self.changes(operation) {
            match value {
                Some(value) => entries.insert(key, value),
                None => entries.remove(&key),
            };
        }
    }

    /// Returns what the operations below a number leave.
    pub(crate) fn after(&self, operations: u64) -> Entries {
        let mut entries = Entries::new();
        for operation in 0..operations {
            self.apply(operation, &mut entries);
        }
        entries
    }
}

/// Returns a key: of 2 to 33 bytes, with zeros and the largest byte among them. Each odd one is the
/// one before it with a zero at its end.
pub(crate) fn key(number: u64) -> Vec<u8> {
    let pair = number / 2;
    let mut key = u16::try_from(pair).unwrap_or(u16::MAX).to_be_bytes().to_vec();
    for at in 0..pair % 31 {
        key.push(if at % 3 == 0 { 0xff } else { at as u8 });
    }
    if number % 2 == 1 {
        key.push(0);
    }
    key
}

/// Returns a value that no other change writes, unless it is empty.
fn value(random: &mut Random, operation: u64, number: u64) -> Vec<u8> {
    let size = match random.below(16) {
        0 => return Vec::new(),
        1 => 16 + random.below(20_000),
        _ => 16 + random.below(200),
    };
    let mut value = operation.to_le_bytes().to_vec();
    value.extend_from_slice(&number.to_le_bytes());
    while value.len() < size as usize {
        value.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    value
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_are_different_and_some_begin_with_others() {
        let keys: BTreeSet<Vec<u8>> = (0..KEY_COUNT).map(key).collect();
        assert_eq!(keys.len() as u64, KEY_COUNT);
        assert!(key(1).starts_with(&key(0)));
        assert!(keys.iter().any(|key| key.contains(&0xff)));
    }

    #[test]
    fn operations_depend_only_on_their_number() {
        let history = History::new(7, true);
        assert_eq!(history.changes(12), History::new(7, true).changes(12));
        assert_ne!(history.changes(12), history.changes(13));
        assert!(History::new(7, false).changes(5).len() == 1);

        let mut entries = history.after(500);
        assert!(entries.len() > 100);
        history.apply(500, &mut entries);
        assert_eq!(entries, history.after(501));
    }
}
