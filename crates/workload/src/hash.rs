//! A hash that scatters frequent and neighboring numbers.

/// Returns a number from 0 to 2^63 - 1 that looks random. Different numbers from that range have
/// different ones: each line below can be undone. The constants are those of SplitMix64.
#[inline]
pub(crate) fn hash(number: i64) -> i64 {
    const MASK: u64 = i64::MAX.cast_unsigned();
    let mut bits = number.cast_unsigned() & MASK;
    bits ^= bits >> 30;
    bits = bits.wrapping_mul(0xbf58_476d_1ce4_e5b9) & MASK;
    bits ^= bits >> 27;
    bits = bits.wrapping_mul(0x94d0_49bb_1331_11eb) & MASK;
    bits ^= bits >> 31;
    bits.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_numbers_have_different_hashes_all_over_the_range() {
        let mut hashes: Vec<i64> = (0..100_000).map(hash).collect();
        assert_eq!(hashes[..3], [0, 2_558_316_640_067_307_269, 6_616_413_020_432_831_626]);
        let below = hashes.iter().filter(|hash| **hash < i64::MAX / 4).count();
        assert!((24_300..25_700).contains(&below), "{below}");
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 100_000);
        assert!(hashes[0] >= 0);
        assert!(hash(i64::MAX) >= 0);
    }
}
