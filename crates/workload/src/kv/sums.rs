//! Values that are sums, with the merge operator `uint64add`.
//!
//! The load gives each key a number, and each merge adds one. All follow from the seed, so that the sum
//! of a key is known from the writes of all steps, in whatever order they took place.

use std::collections::HashMap;

use engine::{Direction, Error, KeyValueSession, Scan};

use super::data::{Data, ValueVersion};
use super::history::History;
use super::{Kv, SAMPLES};
use crate::check::ValueCheck;
use crate::{Check, Random};

/// The size of a value that is a sum.
pub(super) const SUM_BYTES: usize = 8;

/// The sums of some keys.
struct KeySums<'a> {
    data: &'a Data,
    history: &'a History,
}

impl KeySums<'_> {
    /// Calls `visit` with each key and the number that a merge added to it.
    fn for_each_merge(&self, mut visit: impl FnMut(u64, u64)) {
        for writes in self.history.steps() {
            for (writer, written) in (0..).zip(&writes.writers) {
                let choices = self.data.choices(writes.step, writer, writes.shape);
                for sequence in 0..written.confirmed {
                    let number = choices.get(sequence);
                    let version = ValueVersion { step: writes.step, writer, sequence };
                    visit(number, self.data.summand(number, version));
                }
            }
        }
    }

    /// Returns the number that the load gave a key.
    fn loaded(&self, number: u64) -> u64 {
        let step = self.history.load_step().unwrap_or(0);
        self.data.summand(number, ValueVersion { step, writer: 0, sequence: number })
    }

    /// Returns whether all merges that were begun certainly took place.
    fn is_certain(&self) -> bool {
        let mut writers = self.history.steps().iter().flat_map(|writes| &writes.writers);
        writers.all(|written| written.confirmed == written.begun)
    }
}

impl Kv {
    fn sums_of_keys(&self) -> KeySums<'_> {
        KeySums { data: &self.data, history: &self.history }
    }

    /// Compares the sum of all values, wrapped to 64 bits, with that of all writes. Reads all keys.
    pub(super) fn check_total<S: KeyValueSession>(&self, session: &mut S) -> Result<Check, Error> {
        const WHAT: &str = "sum of all values";
        let sums = self.sums_of_keys();
        if !sums.is_certain() {
            return Ok(unknown(WHAT));
        }

        let mut expected =
            (0..self.end_key).fold(0, |sum: u64, number| sum.wrapping_add(sums.loaded(number)));
        sums.for_each_merge(|_, summand| expected = expected.wrapping_add(summand));

        let mut found: u64 = 0;
        let (direction, limit) = (Direction::Forward, u64::MAX);
        let scan = Scan { from: &[], direction, limit, verifies_order: true };
        session.scan(scan, |_, value| found = found.wrapping_add(number_in(value).unwrap_or(0)))?;
        session.release();
        Ok(Check::equal(WHAT, expected, found))
    }

    /// Reads `samples` random keys and compares each with the sum of its writes. `attempt` makes the
    /// keys differ from those of other calls.
    pub(super) fn check_sampled_sums<S: KeyValueSession>(
        &self,
        session: &mut S,
        samples: u64,
        attempt: u64,
    ) -> Result<Check, Error> {
        let sums = self.sums_of_keys();
        if !sums.is_certain() {
            return Ok(unknown("values written"));
        }

        let mut random = Random::stream(self.seed, &[attempt, SAMPLES]);
        let samples = if self.end_key == 0 { 0 } else { samples };
        let mut expected: HashMap<u64, u64> = (0..samples)
            .map(|_| random.below(self.end_key))
            .map(|number| (number, sums.loaded(number)))
            .collect();
        sums.for_each_merge(|number, summand| {
            if let Some(sum) = expected.get_mut(&number) {
                *sum = sum.wrapping_add(summand);
            }
        });

        let mut key = self.data.key_buffer();
        let mut compared = ValueCheck::default();
        for (number, sum) in expected {
            self.data.set_key(number, &mut key);
            let found = session.get(&key)?.and_then(number_in);
            let fault = (found != Some(sum)).then(|| match found {
                Some(found) => format!("key {number} has the sum {found}, not {sum}"),
                None => format!("key {number} has no sum"),
            });
            compared.add(fault);
        }
        session.release();
        Ok(compared.check("values written"))
    }
}

fn unknown(what: &str) -> Check {
    let why = "a merge failed, so nobody knows whether it took place";
    Check::left_out(what.to_owned(), why)
}

fn number_in(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_le_bytes)
}
