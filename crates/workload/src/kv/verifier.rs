//! Checks the values that a reader reads. A sampled value is copied during the operation and
//! compared before the next one, so that the measured time does not include the comparison.

use std::sync::Arc;

use super::data::{Data, Fault, KeyFault};
use super::history::{CurrentWrites, History};
use crate::summary::ReadSummary;

/// Verifies the values that a reader reads, and counts faults.
pub(super) struct ReadVerifier {
    pub(super) data: Arc<Data>,
    history: Arc<History>,
    /// The writes of the current step, if it has any.
    current: Option<CurrentWrites>,
    /// An operation is sampled if its 64 random bits are below this.
    below: u64,
    /// The sampled value of the last operation, and its key's number.
    value: Vec<u8>,
    number: Option<u64>,
    /// Values that were compared.
    verified: u64,
    wrong: u64,
    first: Option<KeyFault>,
    /// The number after the newest write of this step's first writer that was read.
    seen_end: u64,
}

impl ReadVerifier {
    pub(super) fn new(
        data: &Arc<Data>,
        history: &Arc<History>,
        current: Option<CurrentWrites>,
        share: f64,
    ) -> Self {
        Self {
            history: Arc::clone(history),
            current,
            // Saturates: a share of 1 samples all but one in 2^64.
            below: (share * 2_f64.powi(64)) as u64,
            value: data.value_buffer(),
            data: Arc::clone(data),
            number: None,
            verified: 0,
            wrong: 0,
            first: None,
            seen_end: 0,
        }
    }

    /// Compares the last operation's sample. Returns whether these random bits select the next
    /// operation.
    #[inline]
    pub(super) fn begin(&mut self, bits: u64) -> bool {
        self.compare();
        bits < self.below
    }

    /// Checks that a value exists and has the right length; keeps a sampled one for
    /// [`compare`](Self::compare).
    #[inline]
    pub(super) fn check_value(
        &mut self,
        number: u64,
        value: Option<&[u8]>,
        is_sampled: bool,
    ) -> bool {
        match value {
            Some(value) if value.len() == self.data.value_size => {
                if is_sampled {
                    self.value.copy_from_slice(value);
                    self.number = Some(number);
                    self.verified += 1;
                }
                true
            }
            Some(value) => self.record_fault(number, Fault::Length(value.len() as u64)),
            None => self.record_fault(number, Fault::Missing),
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
        if self.current.is_some_and(|current| (current.step, 0) == (version.step, version.writer)) {
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
