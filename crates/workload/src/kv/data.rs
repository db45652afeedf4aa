//! Keys and values. They are functions of the seed, so that reads can be compared with what was
//! written.

use std::fmt;
use std::sync::Arc;

use plan::{KvKeys, KvStep, KvStepKind};
use serde::{Deserialize, Serialize};

use super::graph::Graph;
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
    values: Random,
    /// Random words that values are made of.
    pool: Box<[u64]>,
    /// The numbers whose hashes are the frequent keys of YCSB.
    scrambled: Zipf,
    /// The distributions of the steps `mixgraph`, by the number of the step.
    graphs: Vec<(u32, Arc<Graph>)>,
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
            values: Random::stream(seed, &[VALUES]),
            scrambled: Zipf::new(KeyChooser::SCRAMBLED, KeyChooser::EXPONENT),
            graphs: Vec::new(),
        }
    }

    /// Returns the data with the values that these steps write.
    pub(super) fn with_steps(mut self, steps: &[KvStep]) -> Self {
        for step in steps {
            if let KvStepKind::MixGraph { graph, .. } = &step.kind {
                let graph = Graph::new(graph, self.keys, self.seed);
                self.graphs.push((step.number, Arc::new(graph)));
            }
        }
        self
    }

    /// Returns the distributions of a step `mixgraph`; `None` for another step.
    pub(super) fn graph_of(&self, step: u32) -> Option<&Arc<Graph>> {
        let found = self.graphs.iter().find(|(number, _)| *number == step);
        found.map(|(_, graph)| graph)
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
        self.set_random_part(number, version, &mut buffer[..self.random_bytes]);
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
        let is_whole = rest.chunks(PIECE).all(|piece| {
            let (mask, words) = self.piece(&mut body);
            piece.chunks(WORD).zip(words).all(|(actual, word)| {
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
        let numbers = match (shape, self.graph_of(step)) {
            (KeyShape::InOrder, _) => return KeyChoices::InOrder,
            (KeyShape::Graph, Some(graph)) => {
                return KeyChoices::Graph { random, graph: Arc::clone(graph) };
            }
            (KeyShape::Uniform | KeyShape::Graph, _) => Numbers::Uniform,
            (KeyShape::Scrambled, _) => Numbers::Scrambled(self.scrambled),
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
}

impl KeyChoices {
    /// Returns the number of the key of that write.
    #[inline]
    pub(super) fn get(&self, sequence: u64) -> u64 {
        match self {
            Self::InOrder => sequence,
            Self::Random { random, chooser } => chooser.draw(&mut random.at(sequence)),
            Self::Graph { random, graph } => graph.draw_key(&mut random.at(sequence)),
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
mod tests {
    use std::time::Duration;

    use plan::{KvGraph, KvGraphModel};

    use super::*;

    const VERSION: ValueVersion = ValueVersion { step: 3, writer: 40, sequence: (1 << 38) - 3 };

    fn data(value_size: usize, ratio: f64) -> Data {
        Data::new(1, 1000, 20, value_size, ratio)
    }

    fn value(data: &Data, number: u64, version: ValueVersion) -> Vec<u8> {
        let mut value = data.value_buffer();
        data.set_value(number, version, &mut value);
        value
    }

    /// Who changes this also raises [`CONTENT_VERSION`](crate::CONTENT_VERSION).
    #[test]
    fn the_values_of_a_seed_are_those_of_earlier_versions() {
        let data = data(40, 0.5);
        let version = ValueVersion { step: 0, writer: 0, sequence: 1_000 };
        assert_eq!(
            value(&data, 1_000, version).escape_ascii().to_string(),
            r"~\x06\xc7\xd5\xcc\x1f\xae\xc4\xd8\xe4I\x00c\xb6e\xdaF\x12\xca#aaaaaaaaaaaaaaaaaaaa"
        );
    }

    #[test]
    fn keys_sort_by_their_numbers_and_are_padded() {
        let data = data(400, 0.5);
        let mut keys = Vec::new();
        for number in [0, 1, 255, 256, 65_535, 1 << 35] {
            let mut key = data.key_buffer();
            data.set_key(number, &mut key);
            assert!(data.is_key(number, &key) && !data.is_key(number + 1, &key));
            assert_eq!(key[8..], [b'0'; 12]);
            keys.push(key);
        }
        assert!(keys.is_sorted());
    }

    #[test]
    fn a_value_contains_its_version() {
        for (size, ratio) in [
            (16, 0.5),
            (17, 1.0),
            (100, 0.0),
            (400, 0.5),
            (401, 1.0),
            (WORD + PIECE, 1.0),
            (3001, 1.0),
        ] {
            let data = data(size, ratio);
            let value = value(&data, 7, VERSION);
            assert_eq!(value.len(), size);
            assert_eq!(data.version_of(7, &value), Ok(VERSION), "{size} {ratio}");
        }
    }

    #[test]
    fn a_value_of_another_key_or_with_a_wrong_bit_is_detected() {
        for (size, ratio) in [(40, 0.6), (PIECE + 100, 0.99)] {
            let data = data(size, ratio);
            let good = value(&data, 7, VERSION);
            assert_eq!(data.version_of(8, &good), Err(Fault::Damaged));
            let short = Fault::Length(size as u64 - 1);
            assert_eq!(data.version_of(7, &good[1..]), Err(short));
            for bit in 0..good.len() * 8 {
                let mut bad = good.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(data.version_of(7, &bad), Err(Fault::Damaged), "bit {bit}");
            }
        }
    }

    /// Eight bytes that occur twice, in one block or in several, would help a compressor.
    #[test]
    fn values_have_no_bytes_in_common_for_a_compressor() {
        let data = data(2000, 1.0);
        let mut seen = std::collections::HashSet::new();
        let mut bytes = 0;
        for number in 0..200 {
            let value = value(&data, number, VERSION);
            bytes += value.len() - 7;
            seen.extend(value.windows(8).map(<[u8]>::to_vec));
        }
        assert_eq!(seen.len(), bytes);
    }

    #[test]
    fn values_of_a_mixgraph_have_the_size_of_their_version() {
        let graph = KvGraph::of_model(KvGraphModel::PrefixDist);
        let kind = KvStepKind::MixGraph { graph, time: Duration::ZERO };
        let step = KvStep { number: 3, name: String::new(), kind, sync: false };
        let data = data(100, 0.5).with_steps(&[step]);

        let mut value = Vec::new();
        let mut sizes = std::collections::BTreeSet::new();
        for sequence in 0..1000 {
            let version = ValueVersion { sequence, ..VERSION };
            data.set_sized_value(7, version, &mut value);
            assert_eq!(data.version_of(7, &value), Ok(version));
            sizes.insert(value.len());

            // Neither longer nor shorter, nor with one wrong bit.
            let size = value.len() as u64;
            value.push(FILLER);
            assert!(data.version_of(7, &value).is_err(), "{size}");
            value.truncate(value.len() - 2);
            assert!(data.version_of(7, &value).is_err(), "{size}");
            data.set_sized_value(7, version, &mut value);
            *value.last_mut().unwrap() ^= 4;
            assert!(data.version_of(7, &value).is_err(), "{size}");
        }
        assert!(sizes.len() > 50 && sizes.first() == Some(&16), "{sizes:?}");
    }

    #[test]
    fn the_ratio_is_the_random_share_of_a_value() {
        let value = value(&data(400, 0.25), 7, VERSION);
        assert_eq!(value[100..], [b'a'; 300]);
        let longest = value[..100].chunk_by(|a, b| a == b).map(<[u8]>::len).max();
        assert!(longest <= Some(3), "{longest:?}");
    }

    #[test]
    fn the_data_never_changes() {
        let value = value(&data(24, 1.0), 7, VERSION);
        let words: Vec<u64> =
            value.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        let choices = data(400, 0.5).choices(3, 1, KeyShape::Uniform);
        let chosen: Vec<u64> = (0..4).map(|sequence| choices.get(sequence)).collect();
        assert_eq!(
            (words, chosen),
            (EXPECTED_WORDS.to_vec(), EXPECTED_CHOICES.to_vec()),
            "changed data changes every result: it must be a decision"
        );
    }

    const EXPECTED_WORDS: [u64; 3] =
        [15_931_586_859_627_982_163, 3_580_673_347_594_159_301, 18_048_501_805_953_319_244];
    const EXPECTED_CHOICES: [u64; 4] = [689, 603, 571, 391];
}
