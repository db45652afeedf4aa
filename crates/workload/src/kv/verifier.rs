//! A reader's check of what it reads. A sampled value is copied within the operation and compared with what the seed
//! says before the next one, so that the comparison is not in the time that is measured.

use std::sync::Arc;

use super::data::{Data, Fault, Mistake};
use super::history::History;

/// Notes what a reader reads.
pub(super) struct ReadVerifier {
    pub(super) data: Arc<Data>,
    history: Arc<History>,
    /// The current step, if it has a writer.
    writing: Option<u32>,
    /// Operations are sampled for which 64 random bits are below.
    below: u64,
    /// The sampled value of the last operation, and its key's number.
    value: Vec<u8>,
    number: Option<u64>,
    /// Values that were compared.
    verified: u64,
    wrong: u64,
    first: Option<Mistake>,
    /// The current writer's write after the newest that was seen.
    seen_end: u64,
}

impl ReadVerifier {
    pub(super) fn new(
        data: &Arc<Data>,
        history: &Arc<History>,
        writing: Option<u32>,
        share: f64,
    ) -> Self {
        Self {
            history: Arc::clone(history),
            writing,
            // Saturates, so that a share of 1 is all of them but one in 2^64.
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

    /// Begins an operation, which these random bits decide to sample or not; compares what the last one sampled.
    #[inline]
    pub(super) fn begin(&mut self, bits: u64) -> bool {
        self.compare();
        bits < self.below
    }

    /// Takes a value in; whether it is there and has its length.
    #[inline]
    pub(super) fn see(&mut self, number: u64, value: Option<&[u8]>, is_sampled: bool) -> bool {
        match value {
            Some(value) if value.len() == self.data.value_size => {
                if is_sampled {
                    self.value.copy_from_slice(value);
                    self.number = Some(number);
                    self.verified += 1;
                }
                true
            }
            Some(value) => self.note(number, Fault::Length(value.len() as u64)),
            None => self.note(number, Fault::Missing),
        }
    }

    /// Compares the sampled value, if there is one.
    #[inline]
    fn compare(&mut self) {
        if let Some(number) = self.number.take()
            && let Err(fault) = self.check(number)
        {
            self.note(number, fault);
        }
    }

    fn check(&mut self, number: u64) -> Result<(), Fault> {
        let version = self.data.version_of(number, &self.value)?;
        self.history
            .check(&self.data, number, version, self.writing)?;
        if self.writing == Some(version.step) {
            self.seen_end = self.seen_end.max(version.sequence + 1);
        }
        Ok(())
    }

    #[cold]
    pub(super) fn note(&mut self, number: u64, fault: Fault) -> bool {
        self.wrong += 1;
        self.first.get_or_insert(Mistake { number, fault });
        false
    }

    /// Returns what was verified, the last operation's value among it.
    pub(super) fn verified(&mut self) -> Verified {
        self.compare();
        Verified {
            count: self.verified,
            wrong: self.wrong,
            first: self.first,
            seen_end: self.seen_end,
        }
    }
}

/// What a reader has to say of the values that it read.
#[derive(Clone, Copy)]
pub(super) struct Verified {
    /// Values that were compared.
    pub(super) count: u64,
    /// Of them and of those that were only looked for, the wrong ones.
    pub(super) wrong: u64,
    pub(super) first: Option<Mistake>,
    /// The current writer's write after the newest that was seen.
    pub(super) seen_end: u64,
}
