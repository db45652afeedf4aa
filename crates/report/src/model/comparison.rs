//! What is compared, with the records that are shown beside it.
//!
//! A report of one run and `assay compare` of several show the same things. So both make a
//! [`Comparison`], and no table or sentence asks which of them it is for.

use analysis::{
    compare::{
        CompareOptions, Compared, EFFECT, Effects, Pairing, Sample, compare, costs, effects,
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

/// Computes the effects of the factors of each engine whose targets are a full matrix of two
/// factors or more; of others there are none. Like a comparison, this needs the figures of all
/// steps.
pub fn effects_of_matrices(figures: &Figures, options: &CompareOptions) -> Effects {
    let found = Factors::find(&figures.settings.profiles, std::slice::from_ref(&options.base));
    effects(figures, found.of_full_matrices(), options)
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
