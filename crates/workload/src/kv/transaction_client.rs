//! A client of `randomtransaction`.

use engine::{Error, KeyValueSession, TransactionOptions};
use plan::KvTransactions;

use super::data::{KeyChoices, KeyShape, ValueVersion};
use super::programs::ClientPart;
use super::transactions::draw_increment;
use super::verifier::ReadVerifier;
use crate::summary::TransactionSummary;
use crate::{Executed, Next, OpKind, OpRole, Program, Random, Summary};

/// Adds a number to one key of each set, in one transaction.
pub const TRANSACTION: OpKind = OpKind::new("transaction", OpRole::Transaction);

/// A key that the prepared transaction changes.
struct Change {
    number: u64,
    key: Vec<u8>,
    /// The new value, without its counter.
    value: Vec<u8>,
    version: ValueVersion,
}

/// Changes keys in transactions of one connection.
pub(super) struct TransactionClient<S> {
    session: S,
    random: Random,
    verifier: ReadVerifier,
    writes: KeyChoices,
    /// The changes of the prepared transaction, in the order in which it makes them.
    changes: Vec<Change>,
    /// The number that it adds.
    increment: u64,
    /// The change whose old value is compared.
    sampled: Option<usize>,
    version: ValueVersion,
    /// The number of writes that were committed: the transaction with the next ones is prepared, or
    /// will be.
    written: u64,
    /// The prepared transaction was committed, or none was prepared yet.
    is_committed: bool,
    /// The next attempt at the prepared transaction is the first one.
    is_first_attempt: bool,
    /// The sum of what was added to each set.
    added: u64,
    /// The sum that was added by commits of which nobody knows whether they took place.
    unknown: u64,
}

impl<S: KeyValueSession> TransactionClient<S> {
    pub(super) fn new(mut session: S, part: ClientPart, plan: &KvTransactions) -> Self {
        let ClientPart { step, client, random, verifier } = part;
        let timeout_ms = plan.lock_timeout.as_millis();
        session.set_transactions(TransactionOptions {
            lock_timeout_ms: timeout_ms.try_into().unwrap_or(u32::MAX).max(1),
            takes_snapshot: plan.takes_snapshot,
        });

        let data = &verifier.data;
        let version = ValueVersion { step, writer: client, sequence: 0 };
        let change =
            |_| Change { number: 0, key: data.key_buffer(), value: data.value_buffer(), version };
        Self {
            session,
            random,
            writes: data.choices(step, client, KeyShape::Sets),
            changes: (0..plan.sets).map(change).collect(),
            increment: 0,
            sampled: None,
            version,
            written: 0,
            is_committed: true,
            is_first_attempt: true,
            added: 0,
            unknown: 0,
            verifier,
        }
    }

    /// Prepares the values of the next transaction.
    fn prepare_changes(&mut self) {
        let data = &self.verifier.data;
        self.increment = draw_increment(&mut self.random);
        for (change, sequence) in self.changes.iter_mut().zip(self.written..) {
            change.version = ValueVersion { sequence, ..self.version };
            change.number = self.writes.get(sequence);
            data.set_key(change.number, &mut change.key);
            data.set_value(change.number, change.version, &mut change.value);
        }
    }

    /// Draws the order in which the transaction changes the sets.
    fn shuffle(&mut self) {
        for last in (1..self.changes.len()).rev() {
            let other = self.random.below(last as u64 + 1) as usize;
            self.changes.swap(last, other);
        }
    }

    /// Reads and writes all keys of the transaction. Returns the number of right values that it found.
    fn change_keys(&mut self) -> Result<u64, Error> {
        let step = self.version.step;
        let mut rows = 0;
        for (place, change) in self.changes.iter_mut().enumerate() {
            let Change { number, key, value, version } = change;
            let found = self.session.get_for_update(key)?;
            let data = &self.verifier.data;
            let counter = found.map_or(0, |found| data.counter_of(*number, found, step));

            data.set_counter(*number, *version, counter + self.increment, value);
            let is_sampled = self.sampled == Some(place);
            rows += u64::from(self.verifier.check_value(*number, found, is_sampled));
            self.session.put_in_transaction(key, value)?;
        }
        Ok(rows)
    }
}

impl<S: KeyValueSession> Program for TransactionClient<S> {
    fn kinds(&self) -> &'static [OpKind] {
        &[TRANSACTION]
    }

    fn begin(&mut self) {
        self.session.enter_thread();
    }

    fn prepare(&mut self) -> Next {
        // A transaction that failed is tried again as another operation: so the writes that took
        // place have the numbers from 0 on, without gaps.
        if self.is_committed {
            self.prepare_changes();
            self.is_committed = false;
        }

        let is_sampled = self.verifier.begin(self.random.next_u64());
        let place = self.random.below(self.changes.len() as u64) as usize;
        self.sampled = is_sampled.then_some(place);
        self.shuffle();
        self.is_first_attempt = true;
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        // In the same order again, two clients that waited for each other would do so forever.
        if !self.is_first_attempt {
            self.shuffle();
        }
        self.is_first_attempt = false;

        self.session.begin_transaction()?;
        let rows = match self.change_keys() {
            Ok(rows) => rows,
            Err(error) => {
                // Others wait for its locks.
                self.session.roll_back()?;
                return Err(error);
            }
        };

        if let Err(error) = self.session.commit() {
            if error.class.is_transient() {
                self.session.roll_back()?;
            } else {
                self.unknown += self.increment;
            }
            return Err(error);
        }

        self.is_committed = true;
        self.written += self.changes.len() as u64;
        self.added += self.increment;
        Ok(self.verifier.executed(rows))
    }

    fn summary(&mut self, _: u64) -> Result<Summary, Error> {
        Ok(Summary::KeyValueTransactions(TransactionSummary {
            read: self.verifier.summarize(),
            begun: self.written + if self.is_committed { 0 } else { self.changes.len() as u64 },
            written: self.written,
            added: self.added,
            unknown: self.unknown,
        }))
    }
}
