//! Fits the model of a design to the values of one metric in one step: the logarithm of a value is
//! the sum of the level of its repeat, the effects of its target's levels, and noise.

use design::{Effect, Levels, Weights, weights};

use super::half_normal::pseudo_standard_error;
use crate::compare::mean::{Mean, mean};

/// From this number of effects on, the effects of a single repeat tell its noise (Lenth 1989).
const LENTH_EFFECTS_MIN: usize = 7;

/// The rounds of subtracting means. Values of complete repeats need one.
const SWEEPS: usize = 50;

/// The logarithm of a value, or of no value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub ln: f64,
    /// The part of the repeat that was measured together: its index among those of the repeat.
    pub block: usize,
}

/// The values of one metric in one step.
pub(super) struct Values<'d> {
    pub level_counts: &'d [usize],
    /// The levels of each target.
    pub targets: &'d [Levels],
    /// For each repeat, the value of each target; `None` where it does not count.
    pub repeats: Vec<Vec<Option<Value>>>,
}

/// An effect that was fitted.
#[derive(Clone, Debug)]
pub(super) struct FittedEffect {
    pub effect: Effect,
    /// The logarithm of the ratio. `None` without noise to compare with.
    pub measured: Option<Mean>,
    /// The mean of the logarithms.
    pub center: f64,
    /// The logarithm in each repeat, by the index of the repeat.
    pub of_repeats: Vec<(usize, f64)>,
    /// The standard error of one repeat's logarithm, in units of the noise of one value.
    pub scale: f64,
}

/// The noise of one value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Noise {
    variance: f64,
    freedom: f64,
}

/// The targets of one repeat that have a value.
struct Present {
    /// The index of the repeat.
    repeat: usize,
    levels: Vec<Levels>,
    logarithms: Vec<f64>,
    blocks: Vec<usize>,
}

impl Present {
    /// Returns the weights of all factors' effects, and of an interaction. `None` if the targets of
    /// the repeat cannot tell them apart. If its parts cannot be told from effects, they are taken
    /// for one.
    fn weights(&self, level_counts: &[usize], interactions: &[[usize; 2]]) -> Option<Vec<Weights>> {
        let in_blocks = weights(level_counts, &self.levels, &self.blocks, interactions);
        in_blocks.or_else(|| {
            let one_block = vec![0; self.levels.len()];
            weights(level_counts, &self.levels, &one_block, interactions)
        })
    }
}

impl Values<'_> {
    /// Returns the effects of the levels of all factors; empty if no repeat can tell them apart.
    pub fn effects(&self) -> Vec<FittedEffect> {
        let mut effects = self.fitted(&[]);
        match self.noise() {
            Some(noise) => effects.iter_mut().for_each(|effect| effect.compare_with(noise)),
            None => compare_with_each_other(&mut effects),
        }
        effects
    }

    /// Returns the effect of the interaction of two factors; `None` if no repeat can tell it, or
    /// there is no noise to compare with.
    pub fn interaction(&self, pair: [usize; 2]) -> Option<FittedEffect> {
        let mut effect = self.fitted(&[pair]).pop()?;
        effect.compare_with(self.noise()?);
        Some(effect)
    }

    /// Returns the effects without their errors, those of interactions last.
    fn fitted(&self, interactions: &[[usize; 2]]) -> Vec<FittedEffect> {
        let mut effects: Vec<FittedEffect> = Vec::new();
        let mut squares: Vec<f64> = Vec::new();

        for present in self.present() {
            let Some(weights) = present.weights(self.level_counts, interactions) else {
                continue;
            };

            if effects.is_empty() {
                effects.extend(weights.iter().map(|weights| FittedEffect::new(weights.effect)));
                squares = vec![0.0; effects.len()];
            }

            for ((effect, square), weights) in effects.iter_mut().zip(&mut squares).zip(&weights) {
                let logarithm = weights.sum(&present.logarithms);
                effect.of_repeats.push((present.repeat, logarithm));
                *square += weights.error().powi(2);
            }
        }

        for (effect, square) in effects.iter_mut().zip(squares) {
            let logarithms: Vec<f64> = effect.of_repeats.iter().map(|(_, ln)| *ln).collect();
            effect.center = mean(&logarithms);
            effect.scale = (square / logarithms.len() as f64).sqrt();
        }
        effects
    }

    fn present(&self) -> Vec<Present> {
        let mut all = Vec::new();
        for (repeat, values) in self.repeats.iter().enumerate() {
            let mut present =
                Present { repeat, levels: Vec::new(), logarithms: Vec::new(), blocks: Vec::new() };

            for (levels, value) in self.targets.iter().zip(values) {
                let Some(value) = value else {
                    continue;
                };
                present.levels.push(levels.clone());
                present.logarithms.push(value.ln);
                present.blocks.push(value.block);
            }

            all.push(present);
        }
        all
    }

    /// Returns the pure error: what the means of targets and of the parts of repeats leave. `None`
    /// without repeats.
    fn noise(&self) -> Option<Noise> {
        let mut cells: Vec<NoiseCell> = Vec::new();
        for (repeat, values) in self.repeats.iter().enumerate() {
            for (target, value) in values.iter().enumerate() {
                let Some(value) = value else {
                    continue;
                };
                let part = (repeat, value.block);
                cells.push(NoiseCell { target, part, rest: value.ln });
            }
        }

        for _ in 0..SWEEPS {
            subtract_means(&mut cells, |cell| (cell.target, 0));
            subtract_means(&mut cells, |cell| cell.part);
        }

        let target_count = crate::order::distinct(cells.iter().map(|cell| cell.target)).len();
        let part_count = crate::order::distinct(cells.iter().map(|cell| cell.part)).len();
        let freedom = (cells.len() + 1).checked_sub(target_count + part_count)? as f64;

        if freedom < 1.0 {
            return None;
        }

        let squares: f64 = cells.iter().map(|cell| cell.rest * cell.rest).sum();
        Some(Noise { variance: squares / freedom, freedom })
    }
}

/// A value on the way to its noise.
struct NoiseCell {
    target: usize,
    /// The repeat, and the part of the repeat.
    part: (usize, usize),
    rest: f64,
}

/// Subtracts the mean of each group.
fn subtract_means(cells: &mut [NoiseCell], group: impl Fn(&NoiseCell) -> (usize, usize)) {
    let mut sums = std::collections::BTreeMap::new();
    for cell in cells.iter() {
        let (sum, count) = sums.entry(group(cell)).or_insert((0.0, 0));
        *sum += cell.rest;
        *count += 1;
    }

    for cell in cells {
        let (sum, count) = sums[&group(cell)];
        cell.rest -= sum / f64::from(count);
    }
}

impl FittedEffect {
    fn new(effect: Effect) -> Self {
        Self { effect, measured: None, center: 0.0, of_repeats: Vec::new(), scale: 0.0 }
    }

    /// Sets the error that the noise of single values makes.
    fn compare_with(&mut self, noise: Noise) {
        let variance = noise.variance * self.scale.powi(2) / self.of_repeats.len() as f64;
        self.measured = Some(Mean::new(self.center, variance, noise.freedom, f64::MIN_POSITIVE));
    }
}

/// Sets the errors of the effects of a single repeat, which has no other noise: most factors have
/// no effect, so that the median tells the noise (Lenth, *Technometrics* 31, 1989).
fn compare_with_each_other(effects: &mut [FittedEffect]) {
    if effects.len() < LENTH_EFFECTS_MIN {
        return;
    }

    let sizes: Vec<f64> = effects.iter().map(|effect| effect.center.abs() / effect.scale).collect();
    let noise = Noise {
        variance: pseudo_standard_error(&sizes).powi(2),
        freedom: effects.len() as f64 / 3.0,
    };

    effects.iter_mut().for_each(|effect| effect.compare_with(noise));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The half fraction of three factors, the third of which doubles the values.
    fn values(repeats: Vec<Vec<Option<f64>>>) -> Vec<FittedEffect> {
        let targets: Vec<Levels> =
            [[0, 0, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0]].map(|levels| levels.to_vec()).to_vec();
        let with_block = |ln: Option<f64>| ln.map(|ln| Value { ln, block: 0 });
        let repeats =
            repeats.into_iter().map(|repeat| repeat.into_iter().map(with_block).collect());
        let values =
            Values { level_counts: &[2; 3], targets: &targets, repeats: repeats.collect() };
        values.effects()
    }

    /// Box, Hunter and Hunter's arithmetic, by hand: repeats differ by 10, noise of ±0.1 is in two
    /// targets of the second repeat. The residuals are ±0.05 in each of the 8 values but those of
    /// the two quiet targets: a sum of squares of 4 * 0.05², 3 degrees of freedom.
    #[test]
    fn repeats_give_the_noise_and_their_level_is_no_effect() {
        let first = [1.0, 2.0, 2.0, 1.0].map(Some).to_vec();
        let second = [11.1, 11.9, 12.0, 11.0].map(Some).to_vec();
        let found = values(vec![first, second]);
        let centers: Vec<f64> = found.iter().map(|effect| effect.center).collect();
        for (center, expected) in centers.iter().zip([-0.05, -0.05 + 0.05, 0.95]) {
            assert!((center - expected).abs() < 1e-9, "{centers:?}");
        }
        let measured = found[2].measured.unwrap();
        let noise = 4.0 * 0.05_f64.powi(2) / 3.0;
        // Two repeats, each with an error of 2 / sqrt(4) of the noise.
        assert!((measured.error - (noise / 2.0).sqrt()).abs() < 1e-9, "{measured:?}");
        assert_eq!(measured.freedom, 3.0);
    }

    #[test]
    fn a_repeat_that_lacks_too_many_targets_does_not_count() {
        let whole = [1.0, 2.0, 2.0, 1.0].map(Some).to_vec();
        let torn = vec![Some(7.0), None, Some(2.0), Some(3.0)];
        let found = values(vec![whole, torn]);
        assert_eq!(found[2].of_repeats, [(0, 1.0)]);
    }

    #[test]
    fn few_effects_of_a_single_repeat_have_no_error() {
        let found = values(vec![[1.0, 2.0, 2.0, 1.0].map(Some).to_vec()]);
        assert!(found.iter().all(|effect| effect.measured.is_none()));
    }

    /// Eight effects of size 1 and one of 30: the median is 1, and the large one is left out.
    #[test]
    fn many_effects_of_a_single_repeat_tell_its_noise() {
        let mut effects = vec![FittedEffect::new(Effect::Interaction([0, 1])); 9];
        for effect in &mut effects {
            (effect.center, effect.scale, effect.of_repeats) = (1.0, 2.0, vec![(0, 1.0)]);
        }
        effects[4].center = 30.0;
        compare_with_each_other(&mut effects);
        let measured = effects[4].measured.unwrap();
        assert!((measured.error - 1.5).abs() < 1e-12, "{measured:?}");
        assert_eq!(measured.freedom, 3.0);
    }
}
