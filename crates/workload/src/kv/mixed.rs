//! A client that reads and writes, as in the core workloads of YCSB.

use engine::{Direction, Error, KeyValueSession};
use plan::{KvMix, KvMixRead, KvMixWrite};

use super::data::{KeyChoices, KeyChooser, KeyShape, ValueVersion};
use super::programs::{ClientPart, GET, PUT, SCAN};
use super::verifier::{ReadVerifier, VerifiedScan};
use crate::numbers::ClientNumbers;
use crate::summary::MixSummary;
use crate::sysbench::distribution::Zipf;
use crate::{Executed, Next, OpKind, OpRole, Program, Random, Summary};

/// Reads a key, and writes a new value for it.
pub const READ_MODIFY_WRITE: OpKind = OpKind::new("read_modify_write", OpRole::Put);
/// The most entries of a scan.
const SCAN_LENGTH_MAX: u64 = 100;

/// Returns the kinds of operation of a mix, the reads first.
pub fn mix_kinds(mix: KvMix) -> &'static [OpKind] {
    match (mix.read, mix.write) {
        (KvMixRead::Scan, KvMixWrite::Nothing) => &[SCAN],
        (KvMixRead::Scan, KvMixWrite::ReadModifyWrite) => &[SCAN, READ_MODIFY_WRITE],
        (KvMixRead::Scan, KvMixWrite::Update | KvMixWrite::Insert) => &[SCAN, PUT],
        (_, KvMixWrite::Nothing) => &[GET],
        (_, KvMixWrite::ReadModifyWrite) => &[GET, READ_MODIFY_WRITE],
        (_, KvMixWrite::Update | KvMixWrite::Insert) => &[GET, PUT],
    }
}

/// The prepared operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Get,
    Scan,
    Update,
    ReadModifyWrite,
    Insert,
}

/// Draws keys of which the newest are the most frequent.
struct LatestKeys {
    newest: u64,
    zipf: Zipf,
}

impl LatestKeys {
    fn new(newest: u64) -> Self {
        Self { newest, zipf: Zipf::new(newest + 1, KeyChooser::EXPONENT) }
    }

    #[inline]
    fn draw(&self, random: &mut Random) -> u64 {
        self.newest - (self.zipf.draw(random) - 1)
    }
}

/// Reads and writes in one connection.
pub(super) struct MixedClient<S> {
    session: S,
    mix: KvMix,
    random: Random,
    verifier: ReadVerifier,
    /// The choice of a loaded key to read.
    reads: KeyChooser,
    latest: LatestKeys,
    /// The choice of a loaded key to overwrite.
    writes: KeyChoices,
    numbers: ClientNumbers,
    operation: Operation,
    /// The number of the prepared operation's key.
    number: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    /// The version to overwrite with next.
    version: ValueVersion,
    /// The number of overwrites that succeeded.
    written: u64,
    /// The entries that a scan asks for.
    scan_length: u64,
    is_sampled: bool,
    /// The prepared insert succeeded.
    is_inserted: bool,
}

impl<S: KeyValueSession> MixedClient<S> {
    /// Returns a client that inserts keys with these `numbers`, if the mix inserts any.
    pub(super) fn new(session: S, part: ClientPart, mix: KvMix, numbers: ClientNumbers) -> Self {
        let ClientPart { step, client, random, verifier } = part;
        let data = &verifier.data;
        Self {
            session,
            mix,
            random,
            reads: data.scrambled(),
            latest: LatestKeys::new(verifier.end_key - 1),
            writes: data.choices(step, client, KeyShape::Scrambled),
            numbers,
            operation: Operation::Get,
            number: 0,
            key: data.key_buffer(),
            value: data.value_buffer(),
            version: ValueVersion { step, writer: client, sequence: 0 },
            written: 0,
            scan_length: 0,
            is_sampled: false,
            is_inserted: false,
            verifier,
        }
    }

    /// Chooses the key of a read.
    #[inline]
    fn prepare_read(&mut self) {
        self.is_sampled = self.verifier.begin(self.random.next_u64());
        self.operation = Operation::Get;
        match self.mix.read {
            KvMixRead::Scrambled => self.number = self.reads.draw(&mut self.random),
            KvMixRead::Latest => {
                let newest = self.numbers.newest().cast_unsigned();
                if newest != self.latest.newest {
                    self.latest = LatestKeys::new(newest);
                }
                self.number = self.latest.draw(&mut self.random);
            }
            KvMixRead::Scan => {
                self.operation = Operation::Scan;
                self.number = self.reads.draw(&mut self.random);
                self.scan_length = 1 + self.random.below(SCAN_LENGTH_MAX);
            }
        }
    }

    /// Chooses the key of a write, and makes its value.
    #[inline]
    fn prepare_write(&mut self) {
        let version = if self.mix.write == KvMixWrite::Insert {
            self.operation = Operation::Insert;
            self.number = self.numbers.next().cast_unsigned();
            self.inserted_version()
        } else {
            self.operation = match self.mix.write {
                KvMixWrite::ReadModifyWrite => Operation::ReadModifyWrite,
                _ => Operation::Update,
            };
            let version = self.version;
            self.number = self.writes.get(version.sequence);
            self.version.sequence += 1;
            version
        };

        // Only a read before the write reads a value.
        self.is_sampled = self.verifier.begin(self.random.next_u64());
        self.verifier.data.set_value(self.number, version, &mut self.value);
    }

    fn inserted_version(&self) -> ValueVersion {
        ValueVersion {
            step: self.version.step,
            writer: ValueVersion::INSERTERS,
            sequence: self.number,
        }
    }

    #[inline]
    fn get(&mut self) -> Result<u64, Error> {
        let value = self.session.get(&self.key)?;
        Ok(self.verifier.check_value(self.number, value, self.is_sampled).into())
    }

    #[inline]
    fn scan(&mut self) -> Result<u64, Error> {
        let scan = VerifiedScan {
            number: self.number,
            key: &self.key,
            direction: Direction::Forward,
            limit: self.scan_length,
            sampled: self.is_sampled.then_some(0),
        };
        self.verifier.scan(&mut self.session, scan)
    }

    fn put(&mut self) -> Result<(), Error> {
        self.session.put(&self.key, &self.value)
    }

    /// Inserts the keys whose inserts failed or were only prepared when the step ended. Later steps rely
    /// on keys without gaps.
    fn insert_missing(&mut self) -> Result<(), Error> {
        self.numbers.end_transaction(self.is_inserted);
        while let Some(number) = self.numbers.next_unused() {
            self.number = number.cast_unsigned();
            let version = self.inserted_version();
            self.verifier.data.set_key(self.number, &mut self.key);
            self.verifier.data.set_value(self.number, version, &mut self.value);
            self.put()?;
            self.numbers.end_transaction(true);
        }
        Ok(())
    }
}

impl<S: KeyValueSession> Program for MixedClient<S> {
    fn kinds(&self) -> &'static [OpKind] {
        mix_kinds(self.mix)
    }

    fn shares(&self) -> Vec<f64> {
        if self.mix.only_reads() {
            return vec![1.0];
        }
        let writes = f64::from(self.mix.write_percent) / 100.0;
        vec![1.0 - writes, writes]
    }

    fn begin(&mut self) {
        self.session.enter_thread();
    }

    fn prepare(&mut self) -> Next {
        self.numbers.end_transaction(self.is_inserted);
        self.is_inserted = false;

        let is_write = self.random.below(100) < u64::from(self.mix.write_percent);
        if is_write {
            self.prepare_write();
        } else {
            self.prepare_read();
        }
        self.verifier.data.set_key(self.number, &mut self.key);
        Next::Ready(is_write.into())
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        let mut rows = 1;
        match self.operation {
            Operation::Get => rows = self.get()?,
            Operation::Scan => rows = self.scan()?,
            Operation::Update => {
                self.put()?;
                self.written += 1;
            }
            Operation::ReadModifyWrite => {
                rows = self.get()?;
                self.put()?;
                self.written += 1;
            }
            Operation::Insert => {
                self.put()?;
                self.is_inserted = true;
            }
        }
        Ok(self.verifier.executed(rows))
    }

    fn summary(&mut self, _: u64) -> Result<Summary, Error> {
        let is_inserting = self.mix.write == KvMixWrite::Insert;
        if is_inserting {
            self.insert_missing()?;
        }
        Ok(Summary::KeyValueMix(MixSummary {
            read: self.verifier.summarize(),
            begun: self.version.sequence,
            written: self.written,
            end_key: if is_inserting { self.numbers.summary().next } else { 0 },
        }))
    }
}
