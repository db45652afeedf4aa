//! A comparison, with the records that are shown beside it.
//!
//! A report of one run and `assay compare` of several show the same things. So both make a
//! [`Comparison`], and no table or sentence asks which of them it is for.

use std::borrow::Cow;

use analysis::{
    compare::{
        CompareOptions, Compared, ComparedStep, EFFECT, Effects, Pairing, Sample, compare, costs,
        designed_effects, effects,
    },
    explain::{Finding, explain},
    figures::Figures,
    settings::Factors,
};
use record::Run;

/// One of the compared runs.
#[derive(Clone, Debug)]
pub struct ComparedRun<'a> {
    /// The name of the run's directory.
    pub name: String,
    /// The record.
    pub run: &'a Run,
}

/// A comparison, and the records and findings that are shown with it.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The targets of all runs in the order in which they are shown, and the base.
    pub run: &'a Run,
    /// The runs; rows refer to them by index.
    pub runs: &'a [ComparedRun<'a>],
    /// The figures that were compared.
    pub figures: &'a Figures,
    /// The comparisons with their verdicts.
    pub compared: &'a Compared,
    /// The effects of the factors in which the targets differ, from [`effects_of_matrices`].
    pub effects: &'a Effects,
    /// The explanations, the most important first.
    pub findings: &'a [Finding],
}

/// The effects of factors, and the records that are shown with them.
#[derive(Clone, Copy, Debug)]
pub struct FactorEffects<'a> {
    /// The targets of all runs, in the order in which they are shown.
    pub run: &'a Run,
    /// The runs; rows refer to them by index.
    pub runs: &'a [ComparedRun<'a>],
    /// The figures of all runs.
    pub figures: &'a Figures,
    /// The effects with their verdicts.
    pub effects: &'a Effects,
}

impl<'a> Comparison<'a> {
    /// Returns the effects with the records of the comparison.
    pub(crate) fn factor_effects(&self) -> FactorEffects<'a> {
        let Self { run, runs, figures, effects, .. } = *self;
        FactorEffects { run, runs, figures, effects }
    }
}

/// Computes the effects of the factors of the run's design, or of each engine whose targets are a
/// full matrix of two factors or more; of others there are none. Like a comparison, this needs the
/// figures of all steps.
pub fn effects_of_matrices(figures: &Figures, options: &CompareOptions) -> Effects {
    if let Some(effects) = designed_effects(figures, options) {
        return effects;
    }
    let found = Factors::find(&figures.settings.profiles, std::slice::from_ref(&options.base));
    effects(figures, found.of_full_matrices(), options)
}

/// Returns the run with a base that has figures: see [`Run::measured_base`].
pub(crate) fn with_measured_base<'r>(run: &'r Run, figures: &Figures) -> Cow<'r, Run> {
    let has_figures = |target: &str| {
        let exact = figures.exact.iter().map(|step| &step.row);
        figures.rows.iter().chain(exact).any(|row| row.cell.target == target)
    };
    match run.measured_base(has_figures) {
        Some(base) if base != run.base => Cow::Owned(Run { base: base.to_owned(), ..run.clone() }),
        _ => Cow::Borrowed(run),
    }
}

/// The comparison of the targets of one run, and the explanations of the changes.
pub(crate) struct Explained<'a> {
    run: &'a Run,
    figures: &'a Figures,
    pub compared: Compared,
    effects: Effects,
    pub findings: Vec<Finding>,
}

impl<'a> Explained<'a> {
    /// Compares the targets of a run with its base by the rules of `assay compare`.
    pub(crate) fn new(run: &'a Run, figures: &'a Figures) -> Self {
        let options = CompareOptions {
            base: run.base.clone(),
            effect: figures.effect.unwrap_or(EFFECT),
            metrics: costs(figures),
            ..CompareOptions::default()
        };

        let compared = compare(figures, &options);
        let effects = effects_of_matrices(figures, &options);
        let findings = explain(figures, &compared);

        Self { run, figures, compared, effects, findings }
    }

    pub(crate) fn comparison(&self) -> Comparison<'_> {
        Comparison {
            run: self.run,
            runs: &[],
            figures: self.figures,
            compared: &self.compared,
            effects: &self.effects,
            findings: &self.findings,
        }
    }
}

/// Returns true if anything was measured more than once, so that there are verdicts.
pub(crate) fn is_repeated(compared: &Compared) -> bool {
    compared.rows.iter().any(|row| row.pairing != Pairing::Single)
}

/// Returns the name of a pairing, as programs read it.
pub(crate) fn pairing_name(pairing: Pairing) -> &'static str {
    match pairing {
        Pairing::Paired => "paired",
        Pairing::Independent => "independent",
        Pairing::Single => "single",
    }
}

/// Returns the ratio of each repeat to the base: to the base's value in the same repeat for pairs,
/// otherwise to the geometric mean of the base. Empty without repeats.
pub(crate) fn repeat_ratios(row: &ComparedStep) -> Vec<f64> {
    let base_mean = mean_of(&row.base_values);
    let base_of = |sample: &Sample| match row.pairing {
        Pairing::Single => None,
        Pairing::Independent => base_mean,
        Pairing::Paired => {
            let mut base_values = row.base_values.iter();
            let key = (sample.run, sample.repeat);
            let base = base_values.find(|base| (base.run, base.repeat) == key);
            base.map(|base| base.value)
        }
    };

    let ratios = row.values.iter().filter_map(|sample| Some(sample.value / base_of(sample)?));
    ratios.filter(|ratio| ratio.is_finite()).collect()
}

/// Returns the geometric mean, whose ratios are the shown ratios, or the arithmetic mean if a value
/// is zero.
pub(crate) fn mean_of(samples: &[Sample]) -> Option<f64> {
    if samples.is_empty() {
        return None;
    }

    let values = || samples.iter().map(|sample| sample.value);
    let count = samples.len() as f64;
    let mean = if values().all(|value| value > 0.0) {
        (values().map(f64::ln).sum::<f64>() / count).exp()
    } else {
        values().sum::<f64>() / count
    };
    Some(mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_is_relative_to_the_base_of_the_same_repeat_or_else_to_its_mean() {
        let samples = |values: &[(u32, f64)]| {
            let sample = |&(repeat, value): &(u32, f64)| Sample { run: 0, repeat, value };
            values.iter().map(sample).collect::<Vec<_>>()
        };
        let mut row = ComparedStep {
            base_values: samples(&[(1, 100.0), (2, 400.0), (3, 0.0)]),
            values: samples(&[(2, 800.0), (1, 300.0), (3, 5.0)]),
            pairing: Pairing::Paired,
            ..ComparedStep::default()
        };
        assert_eq!(repeat_ratios(&row), [2.0, 3.0], "the third has no ratio");

        row.pairing = Pairing::Single;
        assert!(repeat_ratios(&row).is_empty());

        row.pairing = Pairing::Independent;
        row.base_values.pop();
        let rounded = repeat_ratios(&row).into_iter().map(|ratio| format!("{ratio:.3}"));
        assert_eq!(rounded.collect::<Vec<_>>(), ["4.000", "1.500", "0.025"]);
    }
}
