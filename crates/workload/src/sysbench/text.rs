//! The texts of sysbench's columns `c` and `pad`: groups of eleven random digits with dashes
//! between them.
//!
//! They are made for every row and for many statements, so each multiplication yields a pair of
//! digits instead of one.

use crate::Random;

const GROUP: usize = 11;
const C_GROUPS: usize = 10;
const PAD_GROUPS: usize = 5;

pub(super) const C_LENGTH: usize = length(C_GROUPS);
pub(super) const PAD_LENGTH: usize = length(PAD_GROUPS);

const fn length(groups: usize) -> usize {
    groups * (GROUP + 1) - 1
}

/// The pairs of digits from 00 to 99, concatenated.
const PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut number = 0;
    while number < 100 {
        pairs[2 * number] = b'0' + (number / 10) as u8;
        pairs[2 * number + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    pairs
};

/// Bits of a fraction that yields digits: times a hundred it fits into 64 bits.
const FRACTION_BITS: u32 = 57;
const FRACTION: u64 = (1 << FRACTION_BITS) - 1;

/// Writes a group: the digits of a random fraction, which are uniform up to 10^11 / 2^57.
#[inline(always)]
fn write_group(random: &mut Random, group: &mut [u8; GROUP]) {
    let mut fraction = random.next_u64() >> (u64::BITS - FRACTION_BITS);
    let (pairs, last) = group.split_at_mut(GROUP - 1);
    for pair in pairs.chunks_exact_mut(2) {
        fraction *= 100;
        let at = 2 * (fraction >> FRACTION_BITS) as usize;
        pair.copy_from_slice(&PAIRS[at..at + 2]);
        fraction &= FRACTION;
    }
    last[0] = b'0' + ((fraction * 10) >> FRACTION_BITS) as u8;
}

/// Writes a value of `c` or `pad`, by length.
#[inline(always)]
pub(super) fn write_groups(random: &mut Random, text: &mut [u8]) {
    for place in text.chunks_mut(GROUP + 1) {
        if let Some((group, dash)) = place.split_first_chunk_mut() {
            write_group(random, group);
            if let Some(dash) = dash.first_mut() {
                *dash = b'-';
            }
        }
    }
}

#[inline]
pub(super) fn as_text(written: &[u8]) -> &str {
    // They are digits and dashes.
    str::from_utf8(written).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(random: &mut Random) -> String {
        let mut text = [0; C_LENGTH];
        write_groups(random, &mut text);
        as_text(&text).to_string()
    }

    #[test]
    fn texts_have_sysbenchs_format() {
        let mut random = Random::stream(1, &[]);
        let mut pad = [0; PAD_LENGTH];
        write_groups(&mut random, &mut pad);
        for (text, length, groups) in
            [(c(&mut random), 119, 10), (as_text(&pad).to_string(), 59, 5)]
        {
            assert_eq!(text.len(), length);
            let parts: Vec<&str> = text.split('-').collect();
            assert_eq!(parts.len(), groups, "{text}");
            assert!(
                parts
                    .iter()
                    .all(|part| part.len() == 11 && part.bytes().all(|byte| byte.is_ascii_digit())),
                "{text}"
            );
        }
    }

    #[test]
    fn the_first_text_of_a_stream_never_changes() {
        let mut random = Random::stream(1, &[2, 3]);
        let first = c(&mut random);
        assert_eq!(
            &first[..35],
            "30628100126-75489237086-89430793879",
            "changed texts change every result: it must be a decision"
        );
    }

    #[test]
    fn every_digit_is_equally_likely_in_every_place() {
        const TEXTS: u32 = 20_000;
        let mut random = Random::stream(5, &[]);
        let mut counts = [[0_u32; 10]; C_LENGTH];
        for _ in 0..TEXTS {
            for (place, byte) in c(&mut random).bytes().enumerate() {
                if byte != b'-' {
                    counts[place][usize::from(byte - b'0')] += 1;
                }
            }
        }
        let expected = f64::from(TEXTS) / 10.0;
        let chi_square: f64 = counts
            .iter()
            .filter(|counts| counts.iter().sum::<u32>() > 0)
            .flatten()
            .map(|&count| (f64::from(count) - expected).powi(2) / expected)
            .sum();
        // 110 places with 9 degrees of freedom each: 990, with a standard deviation of 44.5.
        assert!((chi_square - 990.0).abs() < 180.0, "{chi_square}");
    }
}
