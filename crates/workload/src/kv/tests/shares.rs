//! Tests of the distributions of the keys that are read.

use super::*;

const DRAWS: u32 = 1_000_000;

/// Returns the number of reads of each of 1000 keys, of a million reads.
fn read_counts(keys: KvKeys, purpose: u64) -> Vec<u32> {
    let data = Data::new(1, 1000, 20, 100, 0.5);
    let chooser = data.chooser(keys);
    let mut random = Random::stream(9, &[purpose]);
    let mut counts = vec![0; 1000];
    for _ in 0..DRAWS {
        counts[chooser.draw(&mut random) as usize] += 1;
    }
    counts
}

#[test]
fn uniform_reads_have_equal_shares() {
    assert_fit(&read_counts(KvKeys::Uniform, 0), &[1000.0; 1000]);
}

/// Number n is drawn if `1000 exp(-x)` is from n to n + 1, where x is uniform from 0 to the range.
#[test]
fn exponential_reads_have_the_shares_of_db_bench() {
    for range in [2.0, 5.0, 12.0] {
        let smallest = 1000.0 * f64::exp(-range);
        let place_of = |number: f64| number.max(smallest).ln();
        let mut expected = vec![0.0; 1000];
        for number in 0..1000_u64 {
            let key = (number * 0x5bd1_e995 % 1000) as usize;
            let width = place_of(number as f64 + 1.0) - place_of(number as f64);
            expected[key] += f64::from(DRAWS) * width / range;
        }
        assert_fit(&read_counts(KvKeys::Exponential { range }, range as u64), &expected);
    }
}

#[test]
fn zipfian_reads_have_the_shares_of_the_mixes() {
    let counts = read_counts(KvKeys::Zipfian { exponent: 0.99 }, 1);
    let data = Data::new(1, 1000, 20, 100, 0.5);
    let choices = data.choices(2, 0, KeyShape::Scrambled);
    let mut others = vec![0_u32; 1000];
    for sequence in 0..DRAWS {
        others[choices.get(sequence.into()) as usize] += 1;
    }
    // Both have as many draws, so their difference has twice the variance of one.
    let pairs = counts.iter().zip(&others).map(|(&one, &other)| (f64::from(one), f64::from(other)));
    let chi_square: f64 = pairs.map(|(one, other)| (one - other).powi(2) / (one + other)).sum();
    assert!(chi_square < 999.0 + 4.0 * f64::sqrt(2.0 * 999.0), "{chi_square}");

    // The sum of n^-1.5 is 2.612.
    let most = *read_counts(KvKeys::Zipfian { exponent: 1.5 }, 2).iter().max().unwrap();
    let share = f64::from(most) / f64::from(DRAWS);
    assert!((share - 1.0 / 2.612).abs() < 0.005, "{share}");
}
