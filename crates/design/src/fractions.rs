//! Balanced designs of factors with two levels: regular fractions of the full factorial, and
//! Plackett-Burman designs.

use crate::Levels;

/// The numbers of words of length 3 and 4 that a regular fraction has: three or four factors whose
/// levels determine each other. Without words of length 3, main effects are clear of interactions
/// of two factors; without those of length 4, these are clear of each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ShortWords {
    of_three: usize,
    of_four: usize,
}

/// Returns a regular fraction of the two-level factorial with `1 << basic_count` targets, with as
/// few short words as a search finds.
///
/// A factor is a product of basic factors, and the bits of its mask say of which. Masks of odd
/// weight alone have no word of length 3, but they are half of all.
pub(crate) fn regular(factor_count: usize, basic_count: u32) -> Vec<Levels> {
    let all: Vec<usize> = (1..1 << basic_count).collect();
    let odd: Vec<usize> = all.iter().copied().filter(|mask| mask.count_ones() % 2 == 1).collect();

    let candidates = [odd, all].into_iter().filter(|masks| masks.len() >= factor_count);
    let chosen = candidates.map(|masks| masks_of_factors(factor_count, basic_count, &masks));
    let masks = chosen.min_by_key(|masks| short_words(masks)).unwrap_or_default();

    let targets = 0..1_usize << basic_count;
    targets
        .map(|target| masks.iter().map(|mask| level_in_fraction(target, *mask)).collect())
        .collect()
}

/// Returns a level of a factor: 0 in the target 0, where all basic factors have level 0.
fn level_in_fraction(target: usize, mask: usize) -> usize {
    (target & mask).count_ones() as usize % 2
}

/// Chooses a mask for each factor: the basic factors, then one by one the mask that makes the
/// fewest short words.
fn masks_of_factors(factor_count: usize, basic_count: u32, candidates: &[usize]) -> Vec<usize> {
    let basics = (0..basic_count).map(|basic| 1 << basic);
    let mut masks: Vec<usize> = basics.take(factor_count).collect();
    while masks.len() < factor_count {
        let unused = candidates.iter().filter(|mask| !masks.contains(mask));
        let best = unused.min_by_key(|mask| short_words(&[masks.as_slice(), &[**mask]].concat()));
        let Some(best) = best else {
            break;
        };
        masks.push(*best);
    }
    masks
}

/// Counts the words of length 3 and 4. Two pairs of factors with the same product make a word.
fn short_words(masks: &[usize]) -> ShortWords {
    let mut products = Vec::new();
    let mut of_three = 0;
    for (index, a) in masks.iter().enumerate() {
        for b in &masks[..index] {
            of_three += masks.iter().filter(|mask| **mask == a ^ b).count();
            products.push(a ^ b);
        }
    }

    products.sort_unstable();
    let same_product = products.chunk_by(|a, b| a == b);
    let of_four: usize = same_product.map(|same| same.len() * (same.len() - 1) / 2).sum();
    // Each word of length 3 was found for each of its pairs, and each of length 4 for its three
    // divisions into pairs.
    ShortWords { of_three: of_three / 3, of_four: of_four / 3 }
}

/// Returns the Plackett-Burman design with this number of targets, which is a prime that leaves 3
/// when divided by 4, plus 1: 12, 20 or 24. In any two of its columns, each pair of levels is
/// equally frequent. The columns are shifts of the quadratic residues (Paley's construction, as in
/// Plackett and Burman, *Biometrika* 33, 1946).
pub(crate) fn plackett_burman(factor_count: usize, target_count: usize) -> Vec<Levels> {
    let prime = target_count - 1;
    let residues: Vec<usize> = (1..prime).map(|root| root * root % prime).collect();
    let level = |target: usize, factor: usize| {
        let shifted = (target + prime - factor) % prime;
        usize::from(shifted == 0 || residues.contains(&shifted))
    };

    let base = vec![0; factor_count];
    let others = (0..prime).map(|target| (0..factor_count).map(|f| level(target, f)).collect());
    std::iter::once(base).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that each factor has each level equally often, and each two factors each pair.
    fn assert_orthogonal(targets: &[Levels]) {
        assert!(targets[0].iter().all(|level| *level == 0));
        let factor_count = targets[0].len();
        for a in 0..factor_count {
            let high = targets.iter().filter(|target| target[a] == 1).count();
            assert_eq!(2 * high, targets.len(), "factor {a}");
            for b in 0..a {
                let both = targets.iter().filter(|target| target[a] == 1 && target[b] == 1);
                assert_eq!(4 * both.count(), targets.len(), "factors {a} and {b}");
            }
        }
    }

    #[test]
    fn every_fraction_is_orthogonal_and_begins_with_the_base() {
        for basic_count in 2..=5 {
            for factor_count in basic_count..1 << basic_count {
                assert_orthogonal(&regular(factor_count as usize, basic_count));
            }
        }
    }

    #[test]
    fn every_plackett_burman_design_is_orthogonal() {
        for target_count in [12, 20, 24] {
            assert_orthogonal(&plackett_burman(target_count - 1, target_count));
        }
    }

    /// Box, Hunter and Hunter, table 6.22: the resolutions of fractions of 8, 16 and 32.
    #[test]
    fn fractions_have_the_published_resolutions() {
        let words = |factor_count, basic_count| {
            let basics = [odd_and_all(basic_count, true), odd_and_all(basic_count, false)];
            let usable = basics.into_iter().filter(|masks| masks.len() >= factor_count);
            let masks = usable.map(|masks| masks_of_factors(factor_count, basic_count, &masks));
            masks.map(|masks| short_words(&masks)).min().unwrap()
        };
        for (factor_count, basic_count, has_three, has_four) in [
            (4, 3, false, true),
            (7, 3, true, true),
            (5, 4, false, false),
            (8, 4, false, true),
            (9, 4, true, true),
            (15, 4, true, true),
            (6, 5, false, false),
            (16, 5, false, true),
            (17, 5, true, true),
        ] {
            let found = words(factor_count, basic_count);
            let of = [found.of_three > 0, found.of_four > 0];
            assert_eq!(of, [has_three, has_four], "{factor_count} in {}", 1 << basic_count);
        }
    }

    fn odd_and_all(basic_count: u32, only_odd: bool) -> Vec<usize> {
        let masks = 1..1_usize << basic_count;
        masks.filter(|mask| !only_odd || mask.count_ones() % 2 == 1).collect()
    }
}
