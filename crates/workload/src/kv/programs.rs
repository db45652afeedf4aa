//! The programs that connections of the key-value sequence run.

use std::sync::Arc;

use engine::{Direction, Error, KeyValueSession};
use plan::{KvKeys, KvRead, KvWrite};

use super::data::{Data, KeyChoices, KeyChooser, KeyShape, ValueVersion};
use super::history::Change;
use super::verifier::{ReadVerifier, VerifiedScan};
use crate::summary::WriterSummary;
use crate::{Executed, Next, OpKind, OpRole, Program, Random, Summary};

/// Writes a key and its value.
pub const PUT: OpKind = OpKind::new("put", OpRole::Put);
/// Makes files part of the database.
pub const INGEST: OpKind = OpKind::new("ingest", OpRole::EndBulkLoad);
/// Merges a value into a key.
pub const MERGE: OpKind = OpKind::new("merge", OpRole::Put);
/// Deletes a key.
pub const DELETE: OpKind = OpKind::new("delete", OpRole::Delete);
/// Deletes a range of keys.
pub const DELETE_RANGE: OpKind = OpKind::new("delete_range", OpRole::Delete);
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

/// Returns the kind of operation that writes in this way.
pub const fn write_kind(write: KvWrite) -> OpKind {
    match write {
        KvWrite::Put => PUT,
        KvWrite::Merge => MERGE,
    }
}

/// Returns the kind of operation that has this effect.
pub(super) const fn change_kind(change: Change) -> OpKind {
    match change {
        Change::Put => PUT,
        Change::Merge => MERGE,
        Change::Delete => DELETE,
        Change::DeleteRange { .. } => DELETE_RANGE,
    }
}

/// The way in which keys are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    Puts,
    /// Into files, which the database takes over at the end.
    Files,
}

/// The part of a step that one client has, which reads and writes.
pub(super) struct ClientPart {
    pub(super) step: u32,
    /// The number of the client.
    pub(super) client: u32,
    pub(super) random: Random,
    pub(super) verifier: ReadVerifier,
}

/// The work of one writer.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriterPart {
    /// The way in which the writer loads the keys; `None` if it does something else.
    pub(super) load: Option<Load>,
    pub(super) change: Change,
    pub(super) shape: KeyShape,
    pub(super) step: u32,
    /// The writer's number among those of the step.
    pub(super) writer: u32,
    /// The number of writes; `None` means until the step ends.
    pub(super) quota: Option<u64>,
}

/// Writes or deletes keys, in order or at random.
pub(super) struct Writer<S> {
    session: S,
    data: Arc<Data>,
    part: WriterPart,
    /// The entry to write next.
    key: Vec<u8>,
    value: Vec<u8>,
    /// The end of the range to delete next, and its number of keys.
    range_end: Vec<u8>,
    rows: u64,
    choices: KeyChoices,
    /// The version to write next.
    version: ValueVersion,
    /// The number of writes that succeeded.
    written: u64,
    /// The files are part of the database, or there are none.
    is_ingested: bool,
}

impl<S> Writer<S> {
    pub(super) fn new(session: S, data: &Arc<Data>, part: WriterPart) -> Self {
        let WriterPart { step, writer, shape, .. } = part;
        Self {
            key: data.key_buffer(),
            value: data.value_buffer(),
            range_end: data.key_buffer(),
            rows: 1,
            choices: data.choices(step, writer, shape),
            version: ValueVersion { step, writer, sequence: 0 },
            data: Arc::clone(data),
            is_ingested: part.load != Some(Load::Files),
            part,
            written: 0,
            session,
        }
    }
}

impl<S: KeyValueSession> Writer<S> {
    /// Writes an entry into a file, or gives all files to the database.
    fn execute_on_files(&mut self) -> Result<Executed, Error> {
        if self.part.quota == Some(self.written) {
            self.session.ingest()?;
            self.is_ingested = true;
            return Ok(Executed::without_rows());
        }
        self.session.write_file(&self.key, &self.value)?;
        self.written += 1;
        Ok(Executed::new(1, (1, 1)))
    }
}

impl<S: KeyValueSession> Program for Writer<S> {
    fn kinds(&self) -> &'static [OpKind] {
        match self.part.change {
            _ if self.part.load == Some(Load::Files) => &[PUT, INGEST],
            Change::Put => &[PUT],
            Change::Merge => &[MERGE],
            Change::Delete => &[DELETE],
            Change::DeleteRange { .. } => &[DELETE_RANGE],
        }
    }

    fn begin(&mut self) {
        self.session.enter_thread();
    }

    fn prepare(&mut self) -> Next {
        let sequence = self.version.sequence;
        if self.part.quota == Some(sequence) {
            return if self.is_ingested { Next::Done } else { Next::Ready(1) };
        }

        let number = self.choices.get(sequence);
        self.data.set_key(number, &mut self.key);
        if self.part.change.has_values() {
            self.data.set_value(number, self.version, &mut self.value);
        } else {
            let changed = self.part.change.changed(number, self.data.keys);
            self.data.set_key(changed.end, &mut self.range_end);
            self.rows = changed.end - changed.start;
        }
        self.version.sequence += 1;
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        if self.part.load == Some(Load::Files) {
            return self.execute_on_files();
        }

        match self.part.change {
            Change::Put => self.session.put(&self.key, &self.value)?,
            Change::Merge => self.session.merge(&self.key, &self.value)?,
            Change::Delete => self.session.delete(&self.key)?,
            Change::DeleteRange { .. } => self.session.delete_range(&self.key, &self.range_end)?,
        }
        self.written += 1;
        Ok(Executed::new(self.rows, (self.rows, self.rows)))
    }

    fn summary(&mut self, _: u64) -> Result<Summary, Error> {
        Ok(Summary::KeyValueWrites(WriterSummary {
            is_load: self.part.load.is_some(),
            begun: self.version.sequence,
            // Files that the database did not take over are lost.
            written: if self.is_ingested { self.written } else { 0 },
        }))
    }
}

/// Reads random keys, or scans from a random key.
pub(super) struct Reader<S> {
    session: S,
    read: KvRead,
    random: Random,
    chooser: KeyChooser,
    verifier: ReadVerifier,
    /// The keys of an operation, concatenated.
    keys: Vec<u8>,
    /// The numbers of these keys.
    numbers: Vec<u64>,
    /// The maximum number of entries of a scan.
    scan_length: u64,
    /// The row that is sampled.
    sampled: Option<u64>,
}

impl<S: KeyValueSession> Reader<S> {
    pub(super) fn new(
        session: S,
        plan: &plan::Kv,
        read: KvRead,
        read_keys: KvKeys,
        random: Random,
        verifier: ReadVerifier,
    ) -> Self {
        let count = match read {
            KvRead::MultiGet => plan.multiget_keys as usize,
            KvRead::Get | KvRead::Forward | KvRead::Reverse => 1,
        };
        Self {
            session,
            read,
            random,
            chooser: verifier.data.chooser(read_keys),
            keys: verifier.data.key_buffer().repeat(count),
            numbers: vec![0; count],
            scan_length: plan.scan_length.into(),
            sampled: None,
            verifier,
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
        let scan = VerifiedScan {
            number: self.numbers[0],
            key: &self.keys,
            direction,
            limit: self.scan_length,
            sampled: self.sampled,
        };
        self.verifier.scan(&mut self.session, scan)
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
            *number = self.chooser.draw(&mut self.random);
            data.set_key(*number, key);
        }

        // A scan from near the last key of its direction is short.
        let rows = match self.read {
            KvRead::Get | KvRead::MultiGet => self.numbers.len() as u64,
            KvRead::Forward => self.scan_length.min(self.verifier.end_key - self.numbers[0]),
            KvRead::Reverse => self.scan_length.min(self.numbers[0] + 1),
        };
        let is_sampled = self.verifier.begin(self.random.next_u64());
        self.sampled = match self.read {
            KvRead::Get => is_sampled.then_some(0),
            _ => is_sampled.then(|| self.random.below(rows)),
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
        Ok(self.verifier.executed(rows))
    }

    fn summary(&mut self, _: u64) -> Result<Summary, Error> {
        Ok(Summary::KeyValueReads(self.verifier.summarize()))
    }
}
