//! A key-value engine for tests: a map in memory, with only the failures that tests give it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use engine::{Direction, Durability, Error, ErrorClass, KeyFacts, KeyValueSession, Scan, Scanned};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The state that all sessions share.
#[derive(Default)]
pub(crate) struct Memory {
    map: Mutex<Map>,
    /// The durability that each session was set to, in order.
    pub(crate) durability: Mutex<Vec<Durability>>,
    /// The failures of the next batches and transactions.
    pub(crate) failures: Mutex<Vec<ErrorClass>>,
}

impl Memory {
    pub(crate) fn map(&self) -> MutexGuard<'_, Map> {
        self.map.lock().unwrap()
    }

    pub(crate) fn connect(self: &Arc<Self>) -> Client {
        Client {
            memory: Arc::clone(self),
            values: Vec::new(),
            batch: Vec::new(),
            files: Vec::new(),
        }
    }

    pub(crate) fn facts(&self) -> KeyFacts {
        let map = self.map();
        KeyFacts {
            keys: map.len() as u64,
            bytes: map.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum(),
            first: map.first_key_value().map(|(key, _)| key.clone()),
            last: map.last_key_value().map(|(key, _)| key.clone()),
        }
    }
}

pub(crate) struct Client {
    memory: Arc<Memory>,
    values: Vec<Option<Vec<u8>>>,
    /// Keys, and their values unless they are removed.
    batch: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// The entries of files that are not ingested yet.
    files: Vec<(Vec<u8>, Vec<u8>)>,
}

impl KeyValueSession for Client {
    fn set_durability(&mut self, durability: Durability) {
        self.memory.durability.lock().unwrap().push(durability);
    }
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.memory.map().insert(key.into(), value.into());
        Ok(())
    }
    /// Values of 8 bytes are numbers, which are added; of others, the newest counts.
    fn merge(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let Ok(summand) = value.try_into().map(u64::from_le_bytes) else {
            return self.put(key, value);
        };
        let old = self.get(key)?.and_then(|old| old.try_into().ok()).map_or(0, u64::from_le_bytes);
        self.put(key, &old.wrapping_add(summand).to_le_bytes())
    }
    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.memory.map().remove(key);
        Ok(())
    }
    fn delete_range(&mut self, from: &[u8], end: &[u8]) -> Result<(), Error> {
        self.memory.map().retain(|key, _| key.as_slice() < from || key.as_slice() >= end);
        Ok(())
    }
    fn write_file(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.files.push((key.into(), value.into()));
        Ok(())
    }
    fn ingest(&mut self) -> Result<(), Error> {
        assert!(self.files.is_sorted(), "keys ascend");
        self.memory.map().extend(self.files.drain(..));
        Ok(())
    }
    fn begin_transaction(&mut self) -> Result<(), Error> {
        self.clear_batch();
        Ok(())
    }
    fn get_for_update(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        self.get(key)
    }
    fn put_in_transaction(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.batch_put(key, value);
        Ok(())
    }
    fn commit(&mut self) -> Result<(), Error> {
        self.write_batch()
    }
    fn roll_back(&mut self) -> Result<(), Error> {
        self.clear_batch();
        Ok(())
    }
    fn batch_put(&mut self, key: &[u8], value: &[u8]) {
        self.batch.push((key.into(), Some(value.into())));
    }
    fn batch_delete(&mut self, key: &[u8]) {
        self.batch.push((key.into(), None));
    }
    fn batch_len(&self) -> u64 {
        self.batch.len() as u64
    }
    fn write_batch(&mut self) -> Result<(), Error> {
        if let Some(class) = self.memory.failures.lock().unwrap().pop() {
            return Err(Error::new(class, "as the test wants it"));
        }
        let mut map = self.memory.map();
        for (key, value) in self.batch.drain(..) {
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        Ok(())
    }
    fn clear_batch(&mut self) {
        self.batch.clear();
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error> {
        self.multi_get([key])?;
        Ok(self.found(0))
    }
    fn multi_get<'k>(&mut self, keys: impl IntoIterator<Item = &'k [u8]>) -> Result<u64, Error> {
        let map = self.memory.map();
        self.values = keys.into_iter().map(|key| map.get(key).cloned()).collect();
        Ok(self.values.iter().flatten().count() as u64)
    }
    fn found(&self, index: usize) -> Option<&[u8]> {
        self.values[index].as_deref()
    }
    fn scan(
        &mut self,
        scan: Scan<'_>,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<Scanned, Error> {
        let map = self.memory.map();
        let from = Bound::Included(scan.from);
        let mut scanned = Scanned::default();
        let mut each = |(key, value): (&Vec<u8>, &Vec<u8>)| {
            visit(key, value);
            scanned.entries += 1;
            scanned.bytes += (key.len() + value.len()) as u64;
        };
        let limit = scan.limit as usize;
        match scan.direction {
            Direction::Forward => {
                map.range::<[u8], _>((from, Bound::Unbounded)).take(limit).for_each(&mut each)
            }
            Direction::Reverse => {
                map.range::<[u8], _>((Bound::Unbounded, from)).rev().take(limit).for_each(&mut each)
            }
        }
        Ok(scanned)
    }
    fn release(&mut self) {
        self.values.clear();
    }
}
