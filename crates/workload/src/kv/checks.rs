//! Compares what a database holds with what the steps did.

use engine::{Direction, Error, KeyFacts, KeyValueSession, Scan};

use super::data::{Fault, KeyFault, NUMBER_BYTES, VALUE_BYTES_MIN, ValueVersion, number_of};
use super::history::WriterHistory;
use super::transactions::Sets;
use super::{Kv, SAMPLES};
use crate::check::ValueCheck;
use crate::summary::ReadSummary;
use crate::{Check, Random};

/// The sums that transactions added to each set of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetSums {
    pub(super) step: u32,
    pub(super) sets: Sets,
    /// The sum of all commits.
    pub(super) added: u64,
    /// The sum of commits of which nobody knows whether they took place.
    pub(super) unknown: u64,
}

impl SetSums {
    /// Compares the sums that were found, one for each set, with what was added to each.
    fn check(&self, found: &[u64]) -> Check {
        let least = found.iter().copied().min().unwrap_or(0);
        let most = found.iter().copied().max().unwrap_or(0);

        // Of a commit whose outcome nobody knows, each set has the number or none has.
        let added_max = self.added + self.unknown;
        let holds = least == most && (self.added..=added_max).contains(&least);

        let expected = if self.unknown == 0 {
            self.added.to_string()
        } else {
            format!("{} to {added_max}", self.added)
        };
        let set_with = |sum| found.iter().position(|found| *found == sum).unwrap_or(0) + 1;
        let shown = if least == most {
            least.to_string()
        } else {
            format!("{least} in set {}, {most} in set {}", set_with(least), set_with(most))
        };
        Check::new("sum of each set", expected, shown, holds)
    }
}

impl Kv {
    /// Compares the result of a full scan with what should be in the database.
    pub fn check(&self, facts: &KeyFacts) -> Vec<Check> {
        if let Some(unknown) = self.unknown_keys() {
            return vec![unknown];
        }

        let keys = self.keys();
        let mut checks = vec![Check::equal("keys", keys, facts.keys), self.check_bytes(facts)];
        checks.extend(self.check_ends(facts.first.as_deref(), facts.last.as_deref()));
        checks
    }

    /// Compares the bytes of all keys and values. If values differ in size, it is unknown which of
    /// several writes of a key was the last, so that only the smallest and the largest sum are known.
    fn check_bytes(&self, facts: &KeyFacts) -> Check {
        const WHAT: &str = "bytes of keys and values";
        let (keys, usual) = (self.keys(), self.data.value_size);
        let graphs = self.history.graphs(&self.data, None);
        let Some(largest) = graphs.map(|graph| graph.value_size_max()).max() else {
            return Check::equal(WHAT, keys * self.entry_bytes(), facts.bytes);
        };

        let sum = |value_size: usize| keys * (self.data.key_size + value_size) as u64;
        let (least, most) = (sum(VALUE_BYTES_MIN), sum(usual.max(largest)));
        let holds = (least..=most).contains(&facts.bytes);
        Check::new(WHAT, format!("{least} to {most}"), facts.bytes, holds)
    }

    /// Returns why keys cannot be counted, if a failed write leaves open which ones exist.
    fn unknown_keys(&self) -> Option<Check> {
        let is_known = self.history.deleted().is_certain();
        let why =
            "a write of a deleted key, or a deletion, failed, so some keys may or may not exist";
        (!is_known).then(|| Check::left_out("keys".to_owned(), why))
    }

    /// Compares only the smallest and the largest key.
    ///
    /// # Errors
    /// The engine's own.
    pub fn check_keys<S: KeyValueSession>(&self, session: &mut S) -> Result<Vec<Check>, Error> {
        let first = end_key(session, Direction::Forward, &[])?;
        let highest = vec![u8::MAX; self.data.key_size];
        let last = end_key(session, Direction::Reverse, &highest)?;
        session.release();

        match self.unknown_keys() {
            Some(unknown) => Ok(vec![unknown]),
            None => Ok(self.check_ends(first.as_deref(), last.as_deref())),
        }
    }

    fn check_ends(&self, first: Option<&[u8]>, last: Option<&[u8]>) -> Vec<Check> {
        let deleted = self.history.deleted();
        let smallest = Some(deleted.next_existing(0)).filter(|number| *number < self.end_key);
        let newest = self.end_key.checked_sub(1);
        let largest = newest.and_then(|newest| deleted.previous_existing(newest));
        vec![
            self.check_end("smallest key", smallest, first),
            self.check_end("largest key", largest, last),
        ]
    }

    fn check_end(&self, what: &str, number: Option<u64>, found: Option<&[u8]>) -> Check {
        let expected = number.map(|number| {
            let mut key = self.data.key_buffer();
            self.data.set_key(number, &mut key);
            key
        });
        let holds = expected.as_deref() == found;
        Check::new(what, key_text(expected.as_deref()), key_text(found), holds)
    }

    /// Reads `samples` keys and compares each with its newest write: a lost write shows. `attempt`
    /// makes the keys differ from those of other calls.
    ///
    /// # Errors
    /// The engine's own.
    pub fn check_values<S: KeyValueSession>(
        &self,
        session: &mut S,
        samples: u64,
        attempt: u64,
    ) -> Result<Check, Error> {
        if self.data.has_sums() {
            return self.check_sampled_sums(session, samples, attempt);
        }

        let mut random = Random::stream(self.seed, &[attempt, SAMPLES]);
        let mut key = self.data.key_buffer();
        let mut compared = ValueCheck::default();
        let samples = if self.end_key == 0 { 0 } else { samples };
        for sample in 0..samples {
            // For half of the samples, a write or deletion of the key is known, so that its loss
            // would show. The other keys are random: those that were never changed are read, too.
            let written =
                if sample % 2 == 0 { self.history.random_write(&mut random) } else { None };
            let number = match written {
                Some(write) => self.history.key_of(&self.data, write),
                None => random.below(self.end_key),
            };

            self.data.set_key(number, &mut key);
            let value = session.get(&key)?;
            let fault = self.check_value(number, value, written).err();
            compared.add(fault.map(|fault| KeyFault { number, fault }.to_string()));
        }
        session.release();

        Ok(compared.check("values written"))
    }

    /// Checks the value of a key, which must be at least as new as the write `written`.
    fn check_value(
        &self,
        number: u64,
        value: Option<&[u8]>,
        written: Option<ValueVersion>,
    ) -> Result<(), Fault> {
        let deleted = self.history.deleted();
        let is_deleted = deleted.contains(number);
        let Some(value) = value else {
            return if is_deleted { Ok(()) } else { Err(Fault::Missing) };
        };
        if is_deleted && deleted.is_certain() {
            return Err(Fault::Deleted);
        }

        let found = self.data.version_of(number, value)?;
        self.history.check(&self.data, number, found, None)?;
        match written {
            Some(write) if !self.history.is_same_or_newer(found, write) => Err(Fault::Lost(found)),
            _ => Ok(()),
        }
    }

    /// Compares the sums of all sets with what the transactions of the last step added, which is the
    /// same for each set: a lost update shows. Reads all keys of the sets. `None` if the last step had
    /// no transactions. If values are sums, compares the sum of all.
    ///
    /// # Errors
    /// The engine's own.
    pub fn check_sums<S: KeyValueSession>(&self, session: &mut S) -> Result<Option<Check>, Error> {
        if self.data.has_sums() {
            return self.check_total(session).map(Some);
        }

        let Some(sums) = &self.set_sums else {
            return Ok(None);
        };

        let mut found = Vec::new();
        for set in 0..sums.sets.count {
            found.push(self.sum_of_set(session, sums.step, sums.sets, set)?);
        }
        session.release();
        Ok(Some(sums.check(&found)))
    }

    fn sum_of_set<S: KeyValueSession>(
        &self,
        session: &mut S,
        step: u32,
        sets: Sets,
        set: u64,
    ) -> Result<u64, Error> {
        let first = sets.first_key(set);
        let keys = first..first + sets.keys_per_set;
        let mut from = self.data.key_buffer();
        self.data.set_key(first, &mut from);

        // Where keys were deleted, those of the next set follow.
        let limit = sets.keys_per_set;
        let scan = Scan { from: &from, direction: Direction::Forward, limit, verifies_order: true };
        let mut sum = 0;
        session.scan(scan, |key, value| {
            if let Some(number) = number_of(key).filter(|number| keys.contains(number)) {
                sum += self.data.counter_of(number, value, step);
            }
        })?;
        Ok(sum)
    }
}

/// Returns the first key that a scan from `from` finds.
fn end_key<S: KeyValueSession>(
    session: &mut S,
    direction: Direction,
    from: &[u8],
) -> Result<Option<Vec<u8>>, Error> {
    let mut end = None;
    let scan = Scan { from, direction, limit: 1, verifies_order: true };
    session.scan(scan, |key, _| end = Some(key.to_vec()))?;
    Ok(end)
}

/// Returns the checks of what readers saw, including whether they saw more of the current writer
/// than it wrote.
pub(super) fn check_reads(reads: &[&ReadSummary], writers: &[WriterHistory]) -> Vec<Check> {
    if reads.is_empty() {
        return Vec::new();
    }

    let compared = ValueCheck {
        count: reads.iter().map(|read| read.count).sum(),
        wrong: reads.iter().map(|read| read.wrong).sum(),
        first: reads.iter().find_map(|read| read.first.clone()),
    };
    let mut checks = vec![compared.check("values read")];

    if let [writer] = writers {
        let seen = reads.iter().map(|read| read.seen_end).max().unwrap_or(0);
        checks.push(Check::new(
            "newest write that was read",
            format!("<= {}", writer.begun),
            seen,
            seen <= writer.begun,
        ));
    }
    checks
}

/// Returns a key as text: its number if it has one, else its bytes.
fn key_text(key: Option<&[u8]>) -> String {
    let Some(key) = key else {
        return "none".into();
    };
    match key.first_chunk::<NUMBER_BYTES>() {
        Some(number) if key[NUMBER_BYTES..].iter().all(|&byte| byte == b'0') => {
            format!("{} in {} bytes", u64::from_be_bytes(*number), key.len())
        }
        _ => key.escape_ascii().to_string(),
    }
}
