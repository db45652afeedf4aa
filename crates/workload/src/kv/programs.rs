//! The programs that connections of the key-value sequence run.

use std::sync::Arc;

use engine::{Direction, Error, KeyValueSession, Scan};
use plan::KvRead;

use super::data::{self, Data, Fault, KeyChoices, KeyShape, ValueVersion};
use super::verifier::ReadVerifier;
use crate::summary::WriterSummary;
use crate::{Executed, Next, OpKind, OpRole, Program, Random, Summary};

/// Writes a key and its value.
pub const PUT: OpKind = OpKind::new("put", OpRole::Put);
pub(super) const GET: OpKind = OpKind::new("get", OpRole::Get);
/// Reads the values of several keys at once.
const MULTIGET: OpKind = OpKind::new("multiget", OpRole::MultiGet);
/// Seeks a key and reads the entries that follow.
pub(super) const SCAN: OpKind = OpKind::new("scan", OpRole::Scan);

/// Returns the kind of operation that reads in this way.
pub const fn read_kind(read: KvRead) -> OpKind {
    match read {
        KvRead::Get => GET,
        KvRead::MultiGet => MULTIGET,
        KvRead::Forward | KvRead::Reverse => SCAN,
    }
}

/// Writes keys: all keys in order, or random keys.
pub(super) struct Writer<S> {
    session: S,
    data: Arc<Data>,
    /// The entry to write next.
    key: Vec<u8>,
    value: Vec<u8>,
    /// The keys to overwrite; `None` if the writer loads all keys.
    choices: Option<KeyChoices>,
    /// The version to write next.
    version: ValueVersion,
    /// The number of writes; `None` means until the step ends.
    quota: Option<u64>,
    /// The number of writes that succeeded.
    written: u64,
}

impl<S> Writer<S> {
    pub(super) fn loader(session: S, data: &Arc<Data>, step: u32) -> Self {
        Self {
            key: data.key_buffer(),
            value: data.value_buffer(),
            data: Arc::clone(data),
            choices: None,
            version: ValueVersion { step, writer: 0, sequence: 0 },
            quota: Some(data.keys),
            written: 0,
            session,
        }
    }

    /// Returns writer number `writer` of those that overwrite random keys in a step.
    pub(super) fn new(
        session: S,
        data: &Arc<Data>,
        step: u32,
        writer: u32,
        quota: Option<u64>,
    ) -> Self {
        Self {
            choices: Some(data.choices(step, writer, KeyShape::Uniform)),
            version: ValueVersion { step, writer, sequence: 0 },
            quota,
            ..Self::loader(session, data, step)
        }
    }
}

impl<S: KeyValueSession> Program for Writer<S> {
    fn kinds(&self) -> &'static [OpKind] {
        &[PUT]
    }

    fn begin(&mut self) {
        self.session.enter_thread();
    }

    fn prepare(&mut self) -> Next {
        let sequence = self.version.sequence;
        if self.quota == Some(sequence) {
            return Next::Done;
        }

        let number = match &self.choices {
            None => sequence,
            Some(choices) => choices.get(sequence),
        };
        self.data.set_key(number, &mut self.key);
        self.data.set_value(number, self.version, &mut self.value);
        self.version.sequence += 1;
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        self.session.put(&self.key, &self.value)?;
        self.written += 1;
        Ok(Executed::new(1, (1, 1)))
    }

    fn summary(&mut self, _: u64) -> Result<Summary, Error> {
        Ok(Summary::KeyValueWrites(WriterSummary {
            is_load: self.choices.is_none(),
            begun: self.version.sequence,
            written: self.written,
        }))
    }
}

/// Reads random keys, or scans from a random key.
pub(super) struct Reader<S> {
    session: S,
    read: KvRead,
    random: Random,
    verifier: ReadVerifier,
    /// The number of keys that exist: those of the load, which it reads, and those inserted later.
    existing: u64,
    /// The keys of an operation, concatenated.
    keys: Vec<u8>,
    /// The numbers of these keys.
    numbers: Vec<u64>,
    /// The maximum number of entries of a scan.
    scan_length: u64,
    /// Rows that the operation should read.
    expected: u64,
    /// The row that is sampled.
    sampled: Option<u64>,
}

impl<S: KeyValueSession> Reader<S> {
    pub(super) fn new(
        session: S,
        plan: &plan::Kv,
        read: KvRead,
        random: Random,
        verifier: ReadVerifier,
        existing: u64,
    ) -> Self {
        let count = match read {
            KvRead::MultiGet => plan.multiget_keys as usize,
            KvRead::Get | KvRead::Forward | KvRead::Reverse => 1,
        };
        Self {
            session,
            read,
            random,
            keys: verifier.data.key_buffer().repeat(count),
            numbers: vec![0; count],
            scan_length: plan.scan_length.into(),
            expected: count as u64,
            sampled: None,
            verifier,
            existing,
        }
    }

    #[inline]
    fn get(&mut self) -> Result<u64, Error> {
        let value = self.session.get(&self.keys)?;
        let is_sampled = self.sampled.is_some();
        Ok(self.verifier.check_value(self.numbers[0], value, is_sampled).into())
    }

    #[inline]
    fn multi_get(&mut self) -> Result<u64, Error> {
        let key_size = self.verifier.data.key_size;
        self.session.multi_get(self.keys.chunks_exact(key_size))?;
        let mut rows = 0;
        for (index, &number) in self.numbers.iter().enumerate() {
            let value = self.session.found(index);
            let is_sampled = self.sampled == Some(index as u64);
            rows += u64::from(self.verifier.check_value(number, value, is_sampled));
        }
        Ok(rows)
    }

    #[inline]
    fn scan(&mut self, direction: Direction) -> Result<u64, Error> {
        let scan = Scan {
            from: &self.keys,
            direction,
            limit: self.scan_length,
            // Each entry is compared with the next number, which is stricter.
            verifies_order: false,
        };
        // Adding the largest number wraps around, and so subtracts 1.
        let step = match direction {
            Direction::Forward => 1,
            Direction::Reverse => u64::MAX,
        };
        let verifier = &mut self.verifier;
        let sampled = self.sampled.unwrap_or(u64::MAX);
        let sizes = (verifier.data.key_size, verifier.data.value_size);

        let (mut index, mut rows) = (0, 0);
        let mut number = self.numbers[0];
        let scanned = self.session.scan(scan, |key, value| {
            // All keys exist, so each entry has the next number. The usual entry is judged by its
            // number and sizes alone, which is fast.
            let is_next = data::number_of(key) == Some(number);
            if is_next && (key.len(), value.len()) == sizes && index != sampled {
                rows += 1;
            } else if verifier.data.is_key(number, key) {
                rows += u64::from(verifier.check_value(number, Some(value), index == sampled));
            } else {
                verifier.record_fault(number, Fault::OutOfPlace);
            }
            index += 1;
            number = number.wrapping_add(step);
        })?;

        if scanned.entries < self.expected {
            self.verifier.record_fault(number, Fault::Missing);
        }
        Ok(rows)
    }
}

impl<S: KeyValueSession> Program for Reader<S> {
    fn kinds(&self) -> &'static [OpKind] {
        match self.read {
            KvRead::Get => &[GET],
            KvRead::MultiGet => &[MULTIGET],
            KvRead::Forward | KvRead::Reverse => &[SCAN],
        }
    }

    fn begin(&mut self) {
        self.session.enter_thread();
    }

    fn prepare(&mut self) -> Next {
        let data = &self.verifier.data;
        let keys = self.keys.chunks_exact_mut(data.key_size);
        for (number, key) in self.numbers.iter_mut().zip(keys) {
            *number = self.random.below(data.keys);
            data.set_key(*number, key);
        }

        // A scan from near the last key of its direction is short.
        match self.read {
            KvRead::Get | KvRead::MultiGet => {}
            KvRead::Forward => {
                self.expected = self.scan_length.min(self.existing - self.numbers[0])
            }
            KvRead::Reverse => self.expected = self.scan_length.min(self.numbers[0] + 1),
        }

        let is_sampled = self.verifier.begin(self.random.next_u64());
        self.sampled = match self.read {
            KvRead::Get => is_sampled.then_some(0),
            _ => is_sampled.then(|| self.random.below(self.expected)),
        };
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        let rows = match self.read {
            KvRead::Get => self.get(),
            KvRead::MultiGet => self.multi_get(),
            KvRead::Forward => self.scan(Direction::Forward),
            KvRead::Reverse => self.scan(Direction::Reverse),
        }?;
        Ok(Executed::new(rows, (self.expected, self.expected)))
    }

    fn summary(&mut self, _: u64) -> Result<Summary, Error> {
        Ok(Summary::KeyValueReads(self.verifier.summarize()))
    }
}
