//! Tests of keys and values.

use std::time::Duration;

use plan::{KvGraph, KvGraphModel, KvTransactions};

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
    for (size, ratio) in
        [(16, 0.5), (17, 1.0), (100, 0.0), (400, 0.5), (401, 1.0), (WORD + PIECE, 1.0), (3001, 1.0)]
    {
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
    let step = KvStep { number: 3, name: String::new(), kind, sync: false, rate: None };
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

#[test]
fn a_value_with_a_counter_keeps_both_and_shows_damage() {
    let transactions = KvTransactions {
        sets: 2,
        keys_per_set: 500,
        lock_timeout: Duration::ZERO,
        takes_snapshot: false,
    };
    let kind = KvStepKind::Transactions { transactions, time: Duration::ZERO };
    let step = KvStep { number: 3, name: String::new(), kind, sync: false, rate: None };
    for size in [16, 17, 40, 2 * PIECE] {
        let data = data(size, 0.8).with_steps(std::slice::from_ref(&step));
        let mut value = value(&data, 7, VERSION);
        data.set_counter(7, VERSION, 1234, &mut value);
        assert_eq!(data.version_of(7, &value), Ok(VERSION));
        assert_eq!(data.counter_of(7, &value, 3), 1234);
        assert_eq!(data.counter_of(7, &value, 2), 0, "of another step");

        for bit in 0..size * 8 {
            let mut bad = value.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(data.version_of(7, &bad).is_err(), "bit {bit} of {size} bytes");
        }
    }
}
