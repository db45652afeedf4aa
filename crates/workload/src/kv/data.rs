//! Keys and values. They are functions of the seed, so that reads can be compared with what was
//! written.

use std::fmt;
use std::sync::Arc;

use plan::{KvKeys, KvStep, KvStepKind};
use serde::{Deserialize, Serialize};
use words::MergeOperator;

use super::graph::Graph;
use super::sums::SUM_BYTES;
use super::transactions::{Counter, Sets};
use crate::Random;
use crate::hash::hash;
use crate::sysbench::distribution::Zipf;

/// The bytes of a key that hold its number; the rest is padding.
pub(super) const NUMBER_BYTES: usize = 8;
/// The byte that fills the rest of a key, as in `db_bench`.
const PADDING: u8 = b'0';
/// The byte that fills the compressible part of a value.
const FILLER: u8 = b'a';
/// The size of the smallest value: its version, and as many bytes that depend on the version.
pub(super) const VALUE_BYTES_MIN: usize = 2 * WORD;
const WORD: usize = 8;

/// Purposes of random streams, the last part of their paths.
const VALUES: u64 = 0;
const WRITES: u64 = 1;
const POOL: u64 = 4;
/// The sub-stream of a write that its value's size comes from.
const SIZES: u64 = 1;

/// Size of a piece of random bytes.
///
/// A value's random bytes are pieces of one pool, each XORed with a random number. That takes a few
/// nanoseconds, since the pool stays in the L1 cache. Drawing each word would take longer than all
/// other work of the client. No two pieces have anything in common that a compressor could find.
const PIECE: usize = 128 * WORD;
/// Bits of the position in the pool at which a piece begins.
const PLACE_BITS: u32 = 10;

/// Identifies the write that a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueVersion {
    /// The step's position in the plan.
    pub(super) step: u32,
    /// The writer's number in the step.
    pub(super) writer: u32,
    /// The number of the write; in a load, the number of the key.
    pub(super) sequence: u64,
}

impl ValueVersion {
    /// The writer of new keys: all clients of a step together. The number of the write is that of
    /// the key.
    pub(super) const INSERTERS: u32 = (1 << Self::WRITER_BITS) - 1;

    const SEQUENCE_BITS: u32 = 38;
    const WRITER_BITS: u32 = 14;

    /// Returns whether a load wrote this version of a key. It has one writer, which writes the keys
    /// in order.
    pub(super) fn is_of_load(self, number: u64) -> bool {
        self.writer == 0 && self.sequence == number
    }

    #[inline]
    fn pack(self) -> u64 {
        u64::from(self.step) << (Self::SEQUENCE_BITS + Self::WRITER_BITS)
            | u64::from(self.writer) << Self::SEQUENCE_BITS
            | self.sequence
    }

    #[inline]
    fn unpack(bits: u64) -> Self {
        Self {
            step: (bits >> (Self::SEQUENCE_BITS + Self::WRITER_BITS)) as u32,
            writer: (bits >> Self::SEQUENCE_BITS & ((1 << Self::WRITER_BITS) - 1)) as u32,
            sequence: bits & ((1 << Self::SEQUENCE_BITS) - 1),
        }
    }
}

/// A fault of a key or value that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Missing,
    /// The value has this length in bytes, which is wrong.
    Length(u64),
    /// The value's bytes do not match the version that they name.
    Damaged,
    /// No writer wrote this version of the value.
    NeverWritten(ValueVersion),
    /// A newer version had been written before, or the key been deleted.
    Lost(ValueVersion),
    /// The key was deleted, but has a value.
    Deleted,
    /// A scan returned another key.
    OutOfPlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyFault {
    pub(super) number: u64,
    pub(super) fault: Fault,
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        match self.fault {
            Fault::Missing => write!(f, "key {number} is missing"),
            Fault::Length(bytes) => write!(f, "the value of key {number} has {bytes} bytes"),
            Fault::Damaged => {
                write!(f, "the value of key {number} is damaged or belongs to another key")
            }
            Fault::NeverWritten(version) => write!(
                f,
                "key {number} has a value that was never written: write {} of writer {} in step {}",
                version.sequence, version.writer, version.step
            ),
            Fault::Lost(version) => write!(
                f,
                "key {number} has an outdated value: write {} of writer {} in step {}",
                version.sequence, version.writer, version.step
            ),
            Fault::Deleted => write!(f, "key {number} was deleted, but exists"),
            Fault::OutOfPlace => write!(f, "a scan returned another key instead of {number}"),
        }
    }
}

/// Makes and verifies keys and values.
#[derive(Clone, Debug)]
pub(super) struct Data {
    seed: u64,
    pub(super) keys: u64,
    pub(super) key_size: usize,
    pub(super) value_size: usize,
    compression_ratio: f64,
    /// The bytes at the start of a value of the usual size that don't compress.
    random_bytes: usize,
    /// Values are sums of 8 bytes.
    has_sums: bool,
    values: Random,
    /// Random words that values are made of.
    pool: Box<[u64]>,
    /// The numbers whose hashes are the frequent keys of YCSB.
    scrambled: Zipf,
    /// The distributions of the steps `mixgraph`, by the number of the step.
    graphs: Vec<(u32, Arc<Graph>)>,
    /// The sets of the steps `randomtransaction`, by the number of the step.
    sets: Vec<(u32, Sets)>,
}

impl Data {
    /// Returns the data of `keys` keys. `compression_ratio` is the share of a value that remains
    /// after good compression.
    pub(super) fn new(
        seed: u64,
        keys: u64,
        key_size: usize,
        value_size: usize,
        compression_ratio: f64,
    ) -> Self {
        let key_size = key_size.max(NUMBER_BYTES);
        let value_size = value_size.max(VALUE_BYTES_MIN);

        // A piece that begins at the last place ends within the pool too.
        let pool_words = (1 << PLACE_BITS) + PIECE / WORD;
        let mut words = Random::stream(seed, &[POOL]);
        let pool = (0..pool_words).map(|_| words.next_u64()).collect();

        Self {
            pool,
            seed,
            keys,
            key_size,
            value_size,
            compression_ratio,
            random_bytes: random_bytes(value_size, compression_ratio),
            has_sums: false,
            values: Random::stream(seed, &[VALUES]),
            scrambled: Zipf::new(KeyChooser::SCRAMBLED, KeyChooser::EXPONENT),
            graphs: Vec::new(),
            sets: Vec::new(),
        }
    }

    /// Returns the data with the values that this operator combines.
    pub(super) fn with_operator(mut self, operator: MergeOperator) -> Self {
        self.has_sums = operator == MergeOperator::Uint64Add;
        if self.has_sums {
            self.value_size = SUM_BYTES;
        }
        self
    }

    /// Returns whether values are sums.
    #[inline]
    pub(super) fn has_sums(&self) -> bool {
        self.has_sums
    }

    /// Returns the number that a write adds to the value of a key, or that the load gives it.
    #[inline]
    pub(super) fn summand(&self, number: u64, version: ValueVersion) -> u64 {
        let (_, mut body) = self.streams(number, version.pack());
        body.next_u64()
    }

    /// Returns the data with the values that these steps write.
    pub(super) fn with_steps(mut self, steps: &[KvStep]) -> Self {
        for step in steps {
            match &step.kind {
                KvStepKind::MixGraph { graph, .. } => {
                    let graph = Graph::new(graph, self.keys, self.seed);
                    self.graphs.push((step.number, Arc::new(graph)));
                }
                KvStepKind::Transactions { transactions, .. } => {
                    self.sets.push((step.number, Sets::new(transactions, self.keys)));
                }
                _ => {}
            }
        }
        self
    }

    /// Returns the distributions of a step `mixgraph`; `None` for another step.
    pub(super) fn graph_of(&self, step: u32) -> Option<&Arc<Graph>> {
        let found = self.graphs.iter().find(|(number, _)| *number == step);
        found.map(|(_, graph)| graph)
    }

    /// Returns the sets of a step `randomtransaction`; `None` for another step.
    pub(super) fn sets_of(&self, step: u32) -> Option<Sets> {
        let found = self.sets.iter().find(|(number, _)| *number == step);
        found.map(|(_, sets)| *sets)
    }

    pub(super) fn key_buffer(&self) -> Vec<u8> {
        vec![PADDING; self.key_size]
    }

    pub(super) fn value_buffer(&self) -> Vec<u8> {
        vec![FILLER; self.value_size]
    }

    /// Writes the key of a number into a buffer: big-endian, so that keys sort by their numbers.
    #[inline]
    pub(super) fn set_key(&self, number: u64, buffer: &mut [u8]) {
        buffer[..NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
    }

    /// Returns whether `key` is the key of that number.
    #[inline]
    pub(super) fn is_key(&self, number: u64, key: &[u8]) -> bool {
        key.len() == self.key_size && key[..NUMBER_BYTES] == number.to_be_bytes()
    }

    /// Writes a value of the usual size into a buffer that held one before.
    #[inline]
    pub(super) fn set_value(&self, number: u64, version: ValueVersion, buffer: &mut [u8]) {
        if self.has_sums {
            buffer.copy_from_slice(&self.summand(number, version).to_le_bytes());
        } else {
            self.set_random_part(number, version, &mut buffer[..self.random_bytes]);
        }
    }

    /// Writes a value of the size that its version has.
    #[inline]
    pub(super) fn set_sized_value(&self, number: u64, version: ValueVersion, buffer: &mut Vec<u8>) {
        let size = self.size_of(version);
        buffer.clear();
        buffer.resize(size, FILLER);
        let random_bytes = random_bytes(size, self.compression_ratio);
        self.set_random_part(number, version, &mut buffer[..random_bytes]);
    }

    /// Writes the counter of a key into its value, which has that version.
    #[inline]
    pub(super) fn set_counter(
        &self,
        number: u64,
        version: ValueVersion,
        counter: u64,
        value: &mut [u8],
    ) {
        let (_, body) = self.streams(number, version.pack());
        value[WORD..2 * WORD].copy_from_slice(&Counter::encode(counter, &body));
    }

    /// Returns the counter in a value, if this step wrote it; 0 if another step did, or if the value
    /// is damaged.
    #[inline]
    pub(super) fn counter_of(&self, number: u64, value: &[u8], step: u32) -> u64 {
        let Some((first_word, rest)) = value.split_first_chunk::<WORD>() else {
            return 0;
        };
        let (_, mask) = self.mask(number);
        let version = u64::from_le_bytes(*first_word) ^ mask;
        if ValueVersion::unpack(version).step != step {
            return 0;
        }
        let (_, body) = self.streams(number, version);
        let word = rest.first_chunk::<WORD>();
        word.and_then(|word| Counter::decode(*word, &body)).unwrap_or(0)
    }

    /// Returns the size of the value of a version.
    fn size_of(&self, version: ValueVersion) -> usize {
        let ValueVersion { step, writer, sequence } = version;
        match self.graph_of(step) {
            None => self.value_size,
            Some(graph) => {
                let write = self.writes(step, writer).at(sequence);
                graph.draw_value_size(&mut write.at(SIZES))
            }
        }
    }

    #[inline]
    fn set_random_part(&self, number: u64, version: ValueVersion, buffer: &mut [u8]) {
        let (mask, mut body) = self.streams(number, version.pack());
        let (head, rest) = buffer.split_at_mut(WORD);
        head.copy_from_slice(&(version.pack() ^ mask).to_le_bytes());

        for piece in rest.chunks_mut(PIECE) {
            let (mask, words) = self.piece(&mut body);
            let (places, tail) = piece.as_chunks_mut::<WORD>();
            for (place, word) in places.iter_mut().zip(words) {
                *place = (word ^ mask).to_le_bytes();
            }
            if !tail.is_empty() {
                let last = (words[places.len()] ^ mask).to_le_bytes();
                tail.copy_from_slice(&last[..tail.len()]);
            }
        }
    }

    /// Returns the mask of the next piece of a value, and the words that it is XORed with.
    #[inline]
    fn piece(&self, body: &mut Random) -> (u64, &[u64; PIECE / WORD]) {
        let mask = body.next_u64();
        let place = (mask >> (u64::BITS - PLACE_BITS)) as usize;
        let words = self.pool[place..].first_chunk();
        (mask, words.expect("the pool ends a piece after the last place"))
    }

    pub(super) fn version_of(&self, number: u64, value: &[u8]) -> Result<ValueVersion, Fault> {
        let size = value.len();
        if size < VALUE_BYTES_MIN {
            return Err(Fault::Length(size as u64));
        }

        // The first word says which version the rest should be.
        let (random, filler) = value.split_at(random_bytes(size, self.compression_ratio));
        let (first_word, rest) = random.split_at(WORD);
        let masked = first_word.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
        let (_, mask) = self.mask(number);
        let version = masked ^ mask;
        if size != self.size_of(ValueVersion::unpack(version)) {
            return Err(Fault::Length(size as u64));
        }

        let (_, mut body) = self.streams(number, version);
        let has_counter = self.sets_of(ValueVersion::unpack(version).step).is_some();
        let counter = rest.first_chunk().and_then(|word| Counter::decode(*word, &body));
        if has_counter && counter.is_none() {
            return Err(Fault::Damaged);
        }

        let is_whole = rest.chunks(PIECE).enumerate().all(|(index, piece)| {
            let (mask, words) = self.piece(&mut body);
            // A counter is in the place of the first word.
            let skipped = usize::from(has_counter && index == 0);
            piece.chunks(WORD).zip(words).skip(skipped).all(|(actual, word)| {
                let expected = (word ^ mask).to_le_bytes();
                *actual == expected[..actual.len()]
            })
        });

        if is_whole && filler.iter().all(|&byte| byte == FILLER) {
            Ok(ValueVersion::unpack(version))
        } else {
            Err(Fault::Damaged)
        }
    }

    /// Returns the mask that makes a key's versions incompressible, and the random stream after it.
    #[inline]
    fn mask(&self, number: u64) -> (Random, u64) {
        let mut random = self.values.at(number);
        let mask = random.next_u64();
        (random, mask)
    }

    #[inline]
    fn streams(&self, number: u64, version: u64) -> (u64, Random) {
        let (random, mask) = self.mask(number);
        (mask, random.at(version))
    }

    /// Returns the keys that a writer writes or deletes, in its order.
    pub(super) fn choices(&self, step: u32, writer: u32, shape: KeyShape) -> KeyChoices {
        let random = self.writes(step, writer);
        let numbers = match shape {
            KeyShape::InOrder => return KeyChoices::InOrder,
            KeyShape::Graph => {
                if let Some(graph) = self.graph_of(step) {
                    return KeyChoices::Graph { random, graph: Arc::clone(graph) };
                }
                Numbers::Uniform
            }
            KeyShape::Sets => {
                if let Some(sets) = self.sets_of(step) {
                    return KeyChoices::Sets { random, sets };
                }
                Numbers::Uniform
            }
            KeyShape::Uniform => Numbers::Uniform,
            KeyShape::Scrambled => Numbers::Scrambled(self.scrambled),
        };
        KeyChoices::Random { random, chooser: KeyChooser { keys: self.keys, numbers } }
    }

    /// Returns the random stream of a writer, which has a stream for each of its writes.
    fn writes(&self, step: u32, writer: u32) -> Random {
        Random::stream(self.seed, &[u64::from(step), u64::from(writer), WRITES])
    }

    /// Returns a choice of keys with the distribution of YCSB.
    pub(super) fn scrambled(&self) -> KeyChooser {
        KeyChooser { keys: self.keys, numbers: Numbers::Scrambled(self.scrambled) }
    }

    /// Returns a choice of keys to read.
    pub(super) fn chooser(&self, keys: KvKeys) -> KeyChooser {
        let numbers = match keys {
            KvKeys::Uniform => Numbers::Uniform,
            KvKeys::Zipfian { exponent } => {
                Numbers::Scrambled(Zipf::new(KeyChooser::SCRAMBLED, exponent))
            }
            KvKeys::Exponential { range } => Numbers::Exponential { range },
        };
        KeyChooser { keys: self.keys, numbers }
    }
}

/// The distribution of the keys that clients write or delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum KeyShape {
    /// One key after the other, from the first one on.
    InOrder,
    /// All keys are equally frequent.
    Uniform,
    /// That of YCSB: some keys are frequent, scattered over all.
    Scrambled,
    /// That of the step, which is a `mixgraph`.
    Graph,
    /// One key of each set in turn, of a `randomtransaction`.
    Sets,
}

/// Chooses keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyChooser {
    keys: u64,
    numbers: Numbers,
}

/// The random numbers that keys follow from.
#[derive(Clone, Copy, Debug)]
enum Numbers {
    /// All keys are equally frequent.
    Uniform,
    /// The hashes of these numbers choose keys.
    Scrambled(Zipf),
    /// Number `keys * exp(-x)` chooses a key, where `x` is uniform from 0 to `range`.
    Exponential { range: f64 },
}

impl KeyChooser {
    /// The exponent of YCSB's distributions.
    pub(super) const EXPONENT: f64 = 0.99;
    /// YCSB draws from so many numbers, whatever the number of keys.
    const SCRAMBLED: u64 = 10_000_000_000;
    /// The factor that scatters exponentially distributed numbers, as in `GetRandomKey` of
    /// `db_bench`.
    const FACTOR: u64 = 0x5bd1_e995;

    /// Draws a key's number.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        match &self.numbers {
            Numbers::Uniform => random.below(self.keys),
            Numbers::Scrambled(zipf) => {
                hash(zipf.draw(random).cast_signed()).cast_unsigned() % self.keys
            }
            Numbers::Exponential { range } => {
                let number = ((-range * random.fraction()).exp() * self.keys as f64) as u64;
                number.wrapping_mul(Self::FACTOR) % self.keys
            }
        }
    }
}

/// The keys that a writer writes or deletes. Each can be computed without the ones before it, so
/// that a reader can tell whether a value was ever written.
#[derive(Clone, Debug)]
pub(super) enum KeyChoices {
    InOrder,
    Random { random: Random, chooser: KeyChooser },
    Graph { random: Random, graph: Arc<Graph> },
    Sets { random: Random, sets: Sets },
}

impl KeyChoices {
    /// Returns the number of the key of that write.
    #[inline]
    pub(super) fn get(&self, sequence: u64) -> u64 {
        match self {
            Self::InOrder => sequence,
            Self::Random { random, chooser } => chooser.draw(&mut random.at(sequence)),
            Self::Graph { random, graph } => graph.draw_key(&mut random.at(sequence)),
            Self::Sets { random, sets } => sets.draw_key(sequence, &mut random.at(sequence)),
        }
    }
}

/// Returns the bytes of a value that don't compress, if this share of the value does not.
#[inline]
fn random_bytes(value_size: usize, compression_ratio: f64) -> usize {
    let bytes = (value_size as f64 * compression_ratio).round() as usize;
    bytes.clamp(VALUE_BYTES_MIN, value_size)
}

/// Returns the number that a key begins with.
#[inline]
pub(super) fn number_of(key: &[u8]) -> Option<u64> {
    let number = key.first_chunk::<NUMBER_BYTES>()?;
    Some(u64::from_be_bytes(*number))
}

#[cfg(test)]
mod tests;
