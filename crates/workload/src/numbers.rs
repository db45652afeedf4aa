//! The numbers of new rows. All clients of a step take a table's numbers from one place, and know up to
//! which number all rows are committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::cache_padded::CachePadded;
use crate::summary::RowNumbers;

/// The place of a client that holds no number.
const NONE: u64 = u64::MAX;

/// The row numbers of one table, which the clients of a step share.
#[derive(Debug)]
pub(crate) struct SharedNumbers {
    /// The smallest number that no client took.
    next: CachePadded<AtomicU64>,
    /// All rows up to this number are committed.
    newest: CachePadded<AtomicU64>,
    /// For each client, a lower bound of the numbers that it holds: it took them, and their rows are
    /// not committed.
    held: Vec<CachePadded<AtomicU64>>,
}

impl SharedNumbers {
    /// Returns the numbers of `clients` clients. `before` are the numbers after the last step: the
    /// clients get those that were not used.
    pub(crate) fn new(before: &RowNumbers, clients: u32) -> Self {
        let held = (0..clients).map(|client| {
            let least = unused_of(before, client, clients).min();
            CachePadded(AtomicU64::new(least.unwrap_or(NONE)))
        });
        let shared = Self {
            next: CachePadded(AtomicU64::new(before.next)),
            newest: CachePadded::default(),
            held: held.collect(),
        };
        shared.find_newest();
        shared
    }

    /// Raises the newest number to the one before the smallest that a client holds.
    ///
    /// A client marks its place in `held` before it takes a number. So `next` is read before the marks:
    /// whoever sees that a number is taken then also sees its mark. Of clients that commit at the same
    /// time, the last one sees that all are done.
    fn find_newest(&self) {
        let mut end = self.next.0.load(SeqCst);
        for held in &self.held {
            end = end.min(held.0.load(SeqCst));
        }
        self.newest.0.fetch_max(end.saturating_sub(1), SeqCst);
    }
}

/// Returns the unused numbers that a client begins with.
fn unused_of(before: &RowNumbers, client: u32, clients: u32) -> impl Iterator<Item = u64> {
    before.unused.iter().copied().skip(client as usize).step_by(clients as usize)
}

/// The row numbers of one table, as one client uses them.
#[derive(Debug)]
pub(crate) struct ClientNumbers {
    shared: Arc<SharedNumbers>,
    client: usize,
    /// The numbers of the prepared transaction.
    taken: Vec<u64>,
    /// The numbers of transactions that did not commit, the smallest last. They are used first, so
    /// that no row is missing among the committed ones.
    unused: Vec<u64>,
}

impl ClientNumbers {
    /// Returns the numbers of a client; `before` as in [`SharedNumbers::new`].
    pub(crate) fn new(shared: &Arc<SharedNumbers>, before: &RowNumbers, client: u32) -> Self {
        let clients = shared.held.len() as u32;
        let mut unused: Vec<u64> = unused_of(before, client, clients).collect();
        unused.sort_unstable_by(|a, b| b.cmp(a));
        Self { shared: Arc::clone(shared), client: client as usize, taken: Vec::new(), unused }
    }

    /// Takes the next number for the prepared transaction.
    pub(crate) fn next(&mut self) -> i64 {
        let number = self.unused.pop().unwrap_or_else(|| self.take());
        self.taken.push(number);
        number.cast_signed()
    }

    fn take(&self) -> u64 {
        let Self { shared, client, .. } = self;
        // The mark comes first. Other clients may take numbers in between, so it is a lower bound.
        if self.taken.is_empty() {
            shared.held[*client].0.store(shared.next.0.load(SeqCst), SeqCst);
        }
        shared.next.0.fetch_add(1, SeqCst)
    }

    /// Returns the largest number up to which all rows are committed.
    #[inline]
    pub(crate) fn newest(&self) -> i64 {
        self.shared.newest.0.load(SeqCst).cast_signed()
    }

    /// Ends the prepared transaction. If it did not commit, later ones use its numbers.
    #[inline]
    pub(crate) fn end_transaction(&mut self, is_committed: bool) {
        if self.taken.is_empty() {
            return;
        }

        if !is_committed {
            self.unused.append(&mut self.taken);
            self.unused.sort_unstable_by(|a, b| b.cmp(a));
            return;
        }
        self.taken.clear();
        let least = self.unused.last().copied().unwrap_or(NONE);
        self.shared.held[self.client].0.store(least, SeqCst);
        self.shared.find_newest();
    }

    /// Takes a number whose transaction did not commit, if there is one.
    pub(crate) fn next_unused(&mut self) -> Option<i64> {
        let number = self.unused.pop()?;
        self.taken.push(number);
        Some(number.cast_signed())
    }

    /// Returns the numbers as the client knows them after its last transaction.
    pub(crate) fn summary(&self) -> RowNumbers {
        RowNumbers { next: self.shared.next.0.load(SeqCst), unused: self.unused.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients(before: &RowNumbers, count: u32) -> Vec<ClientNumbers> {
        let shared = Arc::new(SharedNumbers::new(before, count));
        (0..count).map(|client| ClientNumbers::new(&shared, before, client)).collect()
    }

    #[test]
    fn the_newest_number_has_no_uncommitted_one_below_it() {
        let before = RowNumbers { next: 11, unused: Vec::new() };
        let [mut a, mut b] = <[_; 2]>::try_from(clients(&before, 2)).unwrap();
        assert_eq!(a.newest(), 10);
        assert_eq!([a.next(), b.next(), b.next()], [11, 12, 13]);
        b.end_transaction(true);
        assert_eq!((a.newest(), b.newest()), (10, 10));
        a.end_transaction(true);
        assert_eq!((a.newest(), b.newest()), (13, 13));
    }

    #[test]
    fn a_number_whose_transaction_did_not_commit_is_used_again() {
        let before = RowNumbers { next: 1, unused: Vec::new() };
        let [mut a, mut b] = <[_; 2]>::try_from(clients(&before, 2)).unwrap();
        assert_eq!([a.next(), a.next(), b.next()], [1, 2, 3]);
        a.end_transaction(false);
        b.end_transaction(true);
        assert_eq!([a.next(), b.newest()], [1, 0]);
        a.end_transaction(true);
        // The second number is still to be used.
        assert_eq!((a.newest(), a.summary().unused), (1, vec![2]));

        // Another client uses it in the next step.
        let after = RowNumbers::of_clients(&[a.summary(), b.summary()]);
        assert_eq!(after, RowNumbers { next: 4, unused: vec![2] });
        let [mut a, mut b] = <[_; 2]>::try_from(clients(&after, 2)).unwrap();
        assert_eq!((b.newest(), b.next(), a.next()), (1, 4, 2));
        b.end_transaction(true);
        assert_eq!(b.newest(), 1);
        a.end_transaction(true);
        assert_eq!(b.newest(), 4);
    }

    #[test]
    fn threads_take_each_number_once_and_see_only_committed_ones() {
        const EACH: u64 = 20_000;
        let before = RowNumbers { next: 1, unused: Vec::new() };
        let committed: Vec<AtomicU64> = (0..=4 * EACH).map(|_| AtomicU64::new(0)).collect();
        let summaries = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for mut numbers in clients(&before, 4) {
                let committed = &committed;
                threads.push(scope.spawn(move || {
                    for turn in 0..EACH {
                        let number = numbers.next();
                        if turn % 7 == 0 {
                            numbers.end_transaction(false);
                            assert_eq!(numbers.next(), number);
                        }
                        assert_eq!(committed[number as usize].fetch_add(1, SeqCst), 0);
                        numbers.end_transaction(true);
                        let newest = numbers.newest() as usize;
                        assert!(newest == 0 || committed[newest].load(SeqCst) == 1);
                    }
                    (numbers.summary(), numbers)
                }));
            }
            let ended: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert!(ended.iter().all(|(_, numbers)| numbers.newest() as u64 == 4 * EACH));
            ended.into_iter().map(|(summary, _)| summary).collect::<Vec<_>>()
        });
        let after = RowNumbers::of_clients(&summaries);
        assert_eq!(after, RowNumbers { next: 4 * EACH + 1, unused: Vec::new() });
    }
}
