//! Designs for factors with any number of levels, and for levels that cannot go together: D-optimal
//! designs, whose effects have the smallest joint confidence region.

use words::Random;

use crate::Levels;
use crate::model::main_effects;
use crate::request::Exclusion;

/// The searches from random beginnings; more seldom find a better design.
const SEARCHES: u64 = 10;
/// The most times that a search goes over all targets.
const PASSES_MAX: usize = 50;
/// The attempts at a random target that is allowed.
const ATTEMPTS_MAX: usize = 10_000;
/// An exchange that increases the determinant by less is a rounding error.
const GAIN_MIN: f64 = 1e-9;
/// Added to the diagonal of the information matrix, so that a search can begin where effects cannot
/// be told apart yet.
const RIDGE: f64 = 1e-6;

/// Returns a design of `target_count` targets by coordinate exchange (Meyer and Nachtsheim,
/// *Technometrics* 37, 1995): each level of each target in turn is replaced by the one that
/// increases the determinant of the information matrix most, until none does. The first target is
/// always the base. `None` if too few targets are allowed.
pub(crate) fn optimal(
    level_counts: &[usize],
    excluded: &[Exclusion],
    target_count: usize,
    seed: u64,
) -> Option<Vec<Levels>> {
    let mut best: Option<Search<'_>> = None;
    for number in 0..SEARCHES {
        let mut random = Random::stream(seed, &[number]);
        let mut search = Search::random(level_counts, excluded, target_count, &mut random)?;
        search.improve();
        let is_better = best
            .as_ref()
            .is_none_or(|best| search.log_determinant > best.log_determinant + GAIN_MIN);
        if is_better {
            best = Some(search);
        }
    }
    best.map(|search| search.targets)
}

/// A design that is being improved.
struct Search<'a> {
    level_counts: &'a [usize],
    excluded: &'a [Exclusion],
    targets: Vec<Levels>,
    /// The inverse of the information matrix.
    inverse: Vec<Vec<f64>>,
    /// The logarithm of the determinant of the information matrix, but for a constant.
    log_determinant: f64,
}

impl<'a> Search<'a> {
    /// Begins with random targets.
    fn random(
        level_counts: &'a [usize],
        excluded: &'a [Exclusion],
        target_count: usize,
        random: &mut Random,
    ) -> Option<Self> {
        let size = main_effects(level_counts).len() + 1;
        let mut inverse = vec![vec![0.0; size]; size];
        for (index, row) in inverse.iter_mut().enumerate() {
            row[index] = 1.0 / RIDGE;
        }

        let mut search =
            Self { level_counts, excluded, targets: Vec::new(), inverse, log_determinant: 0.0 };
        search.add(vec![0; level_counts.len()]);
        while search.targets.len() < target_count {
            let target = search.random_target(random)?;
            search.add(target);
        }
        Some(search)
    }

    fn random_target(&self, random: &mut Random) -> Option<Levels> {
        for _ in 0..ATTEMPTS_MAX {
            let counts = self.level_counts.iter();
            let target: Levels = counts.map(|count| random.below(*count as u64) as usize).collect();
            if self.allows(&target) {
                return Some(target);
            }
        }
        None
    }

    /// Returns whether a target may be added: no exclusion forbids it, and it is new.
    fn allows(&self, target: &Levels) -> bool {
        let is_excluded = self.excluded.iter().any(|exclusion| exclusion.forbids(target));
        !is_excluded && !self.targets.contains(target)
    }

    /// Exchanges levels until no exchange helps. The base stays.
    fn improve(&mut self) {
        for _ in 0..PASSES_MAX {
            let mut has_changed = false;
            for index in 1..self.targets.len() {
                for factor in 0..self.level_counts.len() {
                    has_changed |= self.exchange(index, factor);
                }
            }
            if !has_changed {
                return;
            }
        }
    }

    /// Replaces a level by the best one. Returns whether another one is better.
    fn exchange(&mut self, index: usize, factor: usize) -> bool {
        let old = self.targets[index].clone();
        let mut best: Option<(f64, Levels)> = None;
        for level in 0..self.level_counts[factor] {
            let mut new = old.clone();
            new[factor] = level;
            if !self.allows(&new) {
                continue;
            }
            let gain = self.gain(&old, &new);
            if gain > 1.0 + GAIN_MIN && best.as_ref().is_none_or(|(other, _)| gain > *other) {
                best = Some((gain, new));
            }
        }

        let Some((_, new)) = best else {
            return false;
        };
        self.update(&new, 1.0);
        self.update(&old, -1.0);
        self.targets[index] = new;
        true
    }

    /// Returns the factor by which the determinant grows if `new` replaces `old` (Fedorov 1972).
    fn gain(&self, old: &Levels, new: &Levels) -> f64 {
        let (old, new) = (self.row(old), self.row(new));
        let [of_old, of_new, of_both] =
            [self.form(&old, &old), self.form(&new, &new), self.form(&old, &new)];
        (1.0 + of_new) * (1.0 - of_old) + of_both * of_both
    }

    fn add(&mut self, target: Levels) {
        self.update(&target, 1.0);
        self.targets.push(target);
    }

    /// Adds a target to the information matrix, or removes it by the sign -1, by the formula of
    /// Sherman and Morrison.
    fn update(&mut self, target: &Levels, sign: f64) {
        let row = self.row(target);
        let image: Vec<f64> = self.inverse.iter().map(|line| dot(line, &row)).collect();
        let growth = 1.0 + sign * dot(&row, &image);
        for (line, a) in self.inverse.iter_mut().zip(&image) {
            for (value, b) in line.iter_mut().zip(&image) {
                *value -= sign * a * b / growth;
            }
        }
        self.log_determinant += growth.ln();
    }

    /// Returns the row of the model's matrix.
    fn row(&self, target: &Levels) -> Vec<f64> {
        let effects = main_effects(self.level_counts);
        let codes = effects.into_iter().map(|effect| effect.code(target));
        std::iter::once(1.0).chain(codes).collect()
    }

    fn form(&self, a: &[f64], b: &[f64]) -> f64 {
        self.inverse.iter().zip(a).map(|(line, a)| a * dot(line, b)).sum()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::weights;

    fn errors(level_counts: &[usize], targets: &[Levels]) -> Vec<f64> {
        let blocks = vec![0; targets.len()];
        let weights = weights(level_counts, targets, &blocks, &[]).unwrap();
        weights.iter().map(|weights| weights.error()).collect()
    }

    #[test]
    fn without_exclusions_two_levels_are_nearly_as_precise_as_an_orthogonal_design() {
        let targets = optimal(&[2; 7], &[], 8, 1).unwrap();
        let errors = errors(&[2; 7], &targets);
        // An orthogonal design of 8 has errors of 2 / sqrt(8) = 0.71.
        assert!(errors.iter().all(|error| *error < 0.8), "{errors:?}");
        assert_eq!(targets[0], [0; 7]);
    }

    #[test]
    fn levels_that_exclude_each_other_are_in_no_target_and_their_effects_can_be_told() {
        let exclusion = Exclusion { levels: vec![(0, 1), (1, 1)] };
        let level_counts = [2, 2, 3, 2];
        let targets = optimal(&level_counts, std::slice::from_ref(&exclusion), 12, 1).unwrap();
        assert!(!targets.iter().any(|target| exclusion.forbids(target)));
        let errors = errors(&level_counts, &targets);
        assert!(errors.iter().all(|error| *error < 1.0), "{errors:?}");
    }

    #[test]
    fn where_everything_is_excluded_there_is_no_design() {
        let all = [0, 1].map(|level| Exclusion { levels: vec![(0, level)] });
        assert_eq!(optimal(&[2, 2], &all, 4, 1), None);
    }
}
