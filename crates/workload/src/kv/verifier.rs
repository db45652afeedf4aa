//! Checks the values that a reader reads. A sampled value is copied during the operation and
//! compared before the next one, so that the measured time does not include the comparison.

use std::sync::Arc;

use engine::{Direction, Error, KeyValueSession, Scan};

use super::data::{self, Data, Fault, KeyFault, VALUE_BYTES_MIN};
use super::history::{CurrentWrites, History};
use crate::Executed;
use crate::summary::ReadSummary;

/// Verifies the values that a reader reads, and counts faults.
pub(super) struct ReadVerifier {
    pub(super) data: Arc<Data>,
    history: Arc<History>,
    /// The writes of the current step, if it has any.
    current: Option<CurrentWrites>,
    /// The number after the largest key before the step.
    pub(super) end_key: u64,
    /// Some loaded keys were deleted.
    has_deleted: bool,
    /// The smallest and the largest size of a value.
    size_min: usize,
    size_max: usize,
    /// An operation is sampled if its 64 random bits are below this.
    below: u64,
    /// The sampled value of the last operation, and its key's number.
    value: Vec<u8>,
    number: Option<u64>,
    /// Values that were compared.
    verified: u64,
    wrong: u64,
    /// The wrong ones before the prepared operation.
    wrong_before: u64,
    first: Option<KeyFault>,
    /// The number after the newest write of this step's first writer that was read.
    seen_end: u64,
}

/// The knowledge of whether a key exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Exists,
    Deleted,
    /// It was deleted, and a write may have brought it back.
    Unknown,
}

/// A scan whose entries are checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct VerifiedScan<'a> {
    /// The number of the key to seek.
    pub(super) number: u64,
    /// That key.
    pub(super) key: &'a [u8],
    pub(super) direction: Direction,
    /// The most entries.
    pub(super) limit: u64,
    /// The entry that is compared with what was written, from 0.
    pub(super) sampled: Option<u64>,
}

/// An entry that a scan returned.
#[derive(Clone, Copy)]
struct Entry<'a> {
    key: &'a [u8],
    value: &'a [u8],
    /// The value is compared with what was written.
    is_sampled: bool,
}

/// The place of a scan among the keys that it should find. Numbers that are not below the end of the
/// keys stand for no key, also those that wrapped around below 0.
#[derive(Clone, Copy, Debug)]
struct ScanPlace {
    direction: Direction,
    /// The next key that certainly exists.
    next: u64,
    /// The number after the last key, in this direction: no key before it follows.
    from: u64,
}

impl ScanPlace {
    /// Returns whether `number` comes before `other` in this direction.
    fn is_before(&self, number: u64, other: u64) -> bool {
        match self.direction {
            Direction::Forward => number < other,
            Direction::Reverse => number > other,
        }
    }

    /// Returns whether the scan has passed the smallest number, downward.
    fn is_at_end(&self) -> bool {
        self.direction == Direction::Reverse && self.from == u64::MAX
    }

    /// Returns the number that follows in this direction.
    #[inline]
    fn after(&self, number: u64) -> u64 {
        match self.direction {
            Direction::Forward => number.wrapping_add(1),
            Direction::Reverse => number.wrapping_sub(1),
        }
    }
}

impl ReadVerifier {
    pub(super) fn new(
        data: &Arc<Data>,
        history: &Arc<History>,
        current: Option<CurrentWrites>,
        end_key: u64,
        share: f64,
    ) -> Self {
        let graphs = history.graphs(data, current);
        let largest = graphs.map(|graph| graph.value_size_max()).max();
        let size_min = largest.map_or(data.value_size, |_| VALUE_BYTES_MIN);
        let size_max = data.value_size.max(largest.unwrap_or(0));

        Self {
            history: Arc::clone(history),
            has_deleted: !history.deleted().is_empty(),
            current,
            end_key,
            size_min,
            size_max,
            // Saturates: a share of 1 samples all but one in 2^64. A sum does not say which writes
            // it is made of.
            below: if data.has_sums() { 0 } else { (share * 2_f64.powi(64)) as u64 },
            value: Vec::with_capacity(size_max),
            data: Arc::clone(data),
            number: None,
            verified: 0,
            wrong: 0,
            wrong_before: 0,
            first: None,
            seen_end: 0,
        }
    }

    /// Compares the last operation's sample. Returns whether these random bits select the next
    /// operation.
    #[inline]
    pub(super) fn begin(&mut self, bits: u64) -> bool {
        self.compare();
        self.wrong_before = self.wrong;
        bits < self.below
    }

    /// Returns the result of an operation that found `rows` right keys.
    #[inline]
    pub(super) fn executed(&self, rows: u64) -> Executed {
        let is_expected = self.wrong == self.wrong_before;
        Executed { rows, is_expected, is_rolled_back: false }
    }

    #[inline]
    fn presence(&self, number: u64) -> Presence {
        let deleted = self.history.deleted();
        if !deleted.contains(number) {
            Presence::Exists
        } else if self.current.is_some() || !deleted.is_certain() {
            Presence::Unknown
        } else {
            Presence::Deleted
        }
    }

    /// Checks that a key that exists has a value of the right length, and that a deleted one has
    /// none; keeps a sampled value for [`compare`](Self::compare). Returns whether there is a right
    /// value.
    #[inline]
    pub(super) fn check_value(
        &mut self,
        number: u64,
        value: Option<&[u8]>,
        is_sampled: bool,
    ) -> bool {
        let presence = self.presence(number);
        match value {
            Some(_) if presence == Presence::Deleted => self.record_fault(number, Fault::Deleted),
            Some(value) if self.has_right_size(value) => {
                if is_sampled {
                    self.value.clear();
                    self.value.extend_from_slice(value);
                    self.number = Some(number);
                    self.verified += 1;
                }
                true
            }
            Some(value) => self.record_fault(number, Fault::Length(value.len() as u64)),
            None if presence == Presence::Exists => self.record_fault(number, Fault::Missing),
            None => false,
        }
    }

    #[inline]
    fn has_right_size(&self, value: &[u8]) -> bool {
        self.size_min <= value.len() && value.len() <= self.size_max
    }

    /// Scans, and checks each entry. Returns the number of right ones.
    #[inline]
    pub(super) fn scan<S: KeyValueSession>(
        &mut self,
        session: &mut S,
        wanted: VerifiedScan<'_>,
    ) -> Result<u64, Error> {
        let VerifiedScan { number, key, direction, limit, sampled } = wanted;
        // Each entry is compared with the next number, which is stricter than its order.
        let scan = Scan { from: key, direction, limit, verifies_order: false };
        let sampled = sampled.unwrap_or(u64::MAX);

        let (mut index, mut rows) = (0, 0);
        let mut place = self.seek(number, direction);
        let scanned = session.scan(scan, |key, value| {
            let entry = Entry { key, value, is_sampled: index == sampled };
            rows += u64::from(self.check_entry(&mut place, entry));
            index += 1;
        })?;

        // No key is left after a scan that found fewer entries than it may return.
        if let Some(next) = self.expected(place)
            && scanned.entries < limit
        {
            self.record_fault(next, Fault::Missing);
        }
        Ok(rows)
    }

    /// Returns the place of a scan that seeks this key.
    #[inline]
    fn seek(&self, number: u64, direction: Direction) -> ScanPlace {
        let mut place = ScanPlace { direction, next: number, from: number };
        if self.has_deleted {
            place.next = self.next_existing(place);
        }
        place
    }

    /// Returns the first key from a place on that certainly exists, among deleted ones.
    fn next_existing(&self, place: ScanPlace) -> u64 {
        let deleted = self.history.deleted();
        match place.direction {
            Direction::Forward => deleted.next_existing(place.from),
            Direction::Reverse => deleted.previous_existing(place.from).unwrap_or(u64::MAX),
        }
    }

    /// Moves a place behind a key.
    #[inline]
    fn pass(&self, place: &mut ScanPlace, number: u64) {
        place.from = place.after(number);
        place.next = if self.has_deleted { self.next_existing(*place) } else { place.from };
    }

    /// Returns the next key that certainly exists; `None` after the last one.
    fn expected(&self, place: ScanPlace) -> Option<u64> {
        Some(place.next).filter(|next| *next < self.end_key)
    }

    /// Checks the next entry of a scan: no key may be missing before it, and none be deleted. The
    /// usual entry is judged by its number and sizes alone, which is fast. Returns whether the entry
    /// is right.
    #[inline]
    fn check_entry(&mut self, place: &mut ScanPlace, entry: Entry<'_>) -> bool {
        let next = place.next;
        let is_usual = data::number_of(entry.key) == Some(next)
            && next < self.end_key
            && entry.key.len() == self.data.key_size
            && self.has_right_size(entry.value)
            && !entry.is_sampled;
        if is_usual {
            self.pass(place, next);
            return true;
        }
        self.check_unusual_entry(place, entry)
    }

    /// Checks an entry that is sampled, or is not the next key with a value of the usual size.
    fn check_unusual_entry(&mut self, place: &mut ScanPlace, entry: Entry<'_>) -> bool {
        let expected = self.expected(*place);
        let wanted = expected.unwrap_or(place.from);
        let number = data::number_of(entry.key);
        let number = number.filter(|number| self.data.is_key(*number, entry.key));
        let Some(number) = number.filter(|_| !place.is_at_end()) else {
            return self.record_fault(wanted, Fault::OutOfPlace);
        };

        // Other clients may insert one new key before a smaller one.
        let is_new = number >= self.end_key;
        let may_be_new = self.current.is_some_and(|current| current.first_new.is_some());
        if place.is_before(number, place.from) || is_new && !may_be_new {
            return self.record_fault(wanted, Fault::OutOfPlace);
        }

        let skipped = expected.filter(|next| place.is_before(*next, number));
        self.pass(place, number);
        match skipped {
            Some(skipped) => self.record_fault(skipped, Fault::OutOfPlace),
            None => self.check_value(number, Some(entry.value), entry.is_sampled),
        }
    }

    /// Compares the sampled value, if there is one.
    #[inline]
    fn compare(&mut self) {
        if let Some(number) = self.number.take()
            && let Err(fault) = self.check(number)
        {
            self.record_fault(number, fault);
        }
    }

    fn check(&mut self, number: u64) -> Result<(), Fault> {
        let version = self.data.version_of(number, &self.value)?;
        self.history.check(&self.data, number, version, self.current)?;

        let is_current = self.current.is_some_and(|current| current.step == version.step);
        let deleted = self.history.deleted();
        if deleted.is_certain() && deleted.contains(number) && !is_current {
            return Err(Fault::Lost(version));
        }
        if is_current && version.writer == 0 {
            self.seen_end = self.seen_end.max(version.sequence + 1);
        }
        Ok(())
    }

    #[cold]
    pub(super) fn record_fault(&mut self, number: u64, fault: Fault) -> bool {
        self.wrong += 1;
        self.first.get_or_insert(KeyFault { number, fault });
        false
    }

    /// Returns the results of the verification, including the last operation's value.
    pub(super) fn summarize(&mut self) -> ReadSummary {
        self.compare();
        ReadSummary {
            count: self.verified,
            wrong: self.wrong,
            first: self.first.map(|fault| fault.to_string()),
            seen_end: self.seen_end,
        }
    }
}
