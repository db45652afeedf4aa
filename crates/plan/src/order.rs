//! The order in which targets take turns: random, so that no rhythm of the machine favors one of them, and balanced, so
//! that none of them is always the later one.

use words::Random;

/// Returns the order of `count` targets in a repeat, counted from 1. Odd repeats are shuffled by `seed`; the even repeat that
/// follows is the mirror image. The order of a repeat does not depend on how many repeats there are.
pub(crate) fn round(count: usize, seed: [u64; 3], repeat: u32) -> Vec<usize> {
    let pair = u64::from(repeat.saturating_sub(1) / 2);
    let mix = |state: u64| Random::new(state).next_u64();
    let mut state = seed.iter().fold(mix(pair), |state, part| mix(state ^ part));
    let mut order: Vec<usize> = (0..count).collect();
    // Fisher and Yates. The modulo's bias is below 1e-15: there are few targets.
    for last in (1..count).rev() {
        state = mix(state);
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    if repeat.is_multiple_of(2) {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_even_repeat_mirrors_the_one_before() {
        for seed in 0..50 {
            for count in 1..6 {
                for repeat in [1, 3, 5, 7] {
                    let mut odd = round(count, [seed, 0, 1], repeat);
                    odd.reverse();
                    assert_eq!(odd, round(count, [seed, 0, 1], repeat + 1));
                    odd.sort_unstable();
                    assert!(odd.into_iter().eq(0..count));
                }
            }
        }
    }

    #[test]
    fn every_order_of_three_targets_is_equally_likely() {
        let mut counts = std::collections::BTreeMap::<Vec<usize>, u32>::new();
        for seed in 0..600 {
            for pair in 0..10 {
                *counts
                    .entry(round(3, [seed, 1, 8], 2 * pair + 1))
                    .or_default() += 1;
            }
        }
        // 1000 expected of each; the standard deviation is 29.
        assert_eq!(counts.len(), 6);
        assert!(
            counts.values().all(|count| count.abs_diff(1000) < 130),
            "{counts:?}"
        );
    }
}
