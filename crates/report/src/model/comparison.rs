//! A comparison, with the records that are shown beside it.
//!
//! A report of one run and `assay compare` of several show the same things. So both make a
//! [`Comparison`], and no table or sentence asks which of them it is for.

use std::borrow::Cow;

use analysis::{
    compare::{
        CompareOptions, Compared, ComparedStep, EFFECT, Effects, Pairing, Sample, THROUGHPUT,
        compare, costs, designed_effects, effects, groups_by_base, mean_of_samples,
    },
    compat::{VariantSides, by_variant},
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

/// Returns the run with bases that have figures: see [`Run::replace_unmeasured_bases`].
pub(crate) fn with_measured_base<'r>(run: &'r Run, figures: &Figures) -> Cow<'r, Run> {
    let has_figures = |target: &str| {
        let exact = figures.exact.iter().map(|step| &step.row);
        figures.rows.iter().chain(exact).any(|row| row.cell.target == target)
    };
    let mut measured = run.clone();
    measured.replace_unmeasured_bases(has_figures);
    if (&measured.base, &measured.bases) == (&run.base, &run.bases) {
        return Cow::Borrowed(run);
    }
    Cow::Owned(measured)
}

/// The things by which the figures of a run are shown and compared: its targets with a base that has figures, or
/// the variants of its only target.
pub(crate) struct Subject<'r> {
    pub run: Cow<'r, Run>,
    pub figures: Cow<'r, Figures>,
    /// The variants, if they take the place of targets.
    pub variants: Option<VariantSides>,
    /// The steps to show; none: all. Comparisons rest on all.
    steps: &'r [String],
}

impl<'r> Subject<'r> {
    /// Returns the variants if there is nothing else to compare, and otherwise the targets.
    pub(crate) fn of(run: &'r Run, figures: &'r Figures) -> Self {
        if let Some(of_variants) = Self::of_variants(run, figures) {
            return of_variants;
        }
        let run = with_measured_base(run, figures);
        Self { run, figures: Cow::Borrowed(figures), variants: None, steps: &[] }
    }

    fn of_variants(run: &Run, figures: &Figures) -> Option<Self> {
        let sides = VariantSides::of([run]);
        // Figures of several runs may have the targets of others.
        let is_only_target =
            figures.rows.windows(2).all(|rows| rows[0].cell.target == rows[1].cell.target);
        if !sides.are_all_there_is() || !is_only_target {
            return None;
        }

        // Variants that count other operations are not compared.
        let mut renamed = figures.clone();
        let shown = by_variant(run, &mut renamed, &sides, None).ok()?;
        let shown = with_measured_base(&shown, &renamed).into_owned();
        Some(Self {
            run: Cow::Owned(shown),
            figures: Cow::Owned(renamed),
            variants: Some(sides),
            steps: &[],
        })
    }

    /// Returns the subject of which these steps are shown; none: all.
    pub(crate) fn showing(self, steps: &'r [String]) -> Self {
        Self { steps, ..self }
    }

    /// Returns the figures of the steps to show.
    pub(crate) fn shown_figures(&self) -> Cow<'_, Figures> {
        of_steps(Cow::Borrowed(&*self.figures), self.steps)
    }

    /// Compares the targets, or the variants.
    pub(crate) fn explained(&self) -> ExplainedGroups<'_> {
        let mut explained = ExplainedGroups::new(&self.run, &self.figures, self.steps);
        for group in &mut explained.groups {
            let notes = &mut group.explained.compared.notes;
            notes.extend(self.variants.as_ref().and_then(VariantSides::note));
        }
        explained
    }
}

/// Returns the figures of these steps; all if there are none.
fn of_steps<'f>(figures: Cow<'f, Figures>, steps: &[String]) -> Cow<'f, Figures> {
    if steps.is_empty() {
        return figures;
    }
    let mut shown = figures.into_owned();
    shown.retain_steps(steps);
    Cow::Owned(shown)
}

/// The comparison of the targets of one run, and the explanations of the changes.
pub(crate) struct Explained<'a> {
    run: Cow<'a, Run>,
    figures: Cow<'a, Figures>,
    pub compared: Compared,
    effects: Effects,
    pub findings: Vec<Finding>,
}

impl<'a> Explained<'a> {
    /// Compares the targets of a run with its base by the rules of `assay compare`: all steps, of
    /// which these are shown and explained. Without any, all are.
    pub(crate) fn new(run: &'a Run, figures: &'a Figures, steps: &[String]) -> Self {
        Self::of(Cow::Borrowed(run), Cow::Borrowed(figures), steps)
    }

    fn of(run: Cow<'a, Run>, figures: Cow<'a, Figures>, steps: &[String]) -> Self {
        let options = CompareOptions {
            base: run.base.clone(),
            effect: figures.effect.unwrap_or(EFFECT),
            metrics: costs(&figures),
            steps: steps.to_vec(),
            ..CompareOptions::default()
        };

        let compared = compare(&figures, &options);
        let effects = effects_of_matrices(&figures, &options);
        let shown = of_steps(figures, steps);
        let findings = explain(&shown, &compared);

        Self { run, figures: shown, compared, effects, findings }
    }

    pub(crate) fn comparison(&self) -> Comparison<'_> {
        Comparison {
            run: &self.run,
            runs: &[],
            figures: &self.figures,
            compared: &self.compared,
            effects: &self.effects,
            findings: &self.findings,
        }
    }
}

/// The comparisons of a run: one, or one for each engine or build that has a base of its own.
pub(crate) struct ExplainedGroups<'a> {
    groups: Vec<ExplainedGroup<'a>>,
    /// All targets with the base of the first group; `None` if there is one group.
    across: Option<Across>,
}

struct ExplainedGroup<'a> {
    /// The engine or build; `None` if all targets have one base.
    name: Option<String>,
    explained: Explained<'a>,
}

/// The comparison of one of the groups of a run.
#[derive(Clone, Copy)]
pub(crate) struct ComparedGroup<'a> {
    /// The engine or build; `None` if all targets have one base.
    pub name: Option<&'a str>,
    pub comparison: Comparison<'a>,
}

impl<'a> ExplainedGroups<'a> {
    /// Compares the targets of a run with their bases.
    fn new(run: &'a Run, figures: &'a Figures, steps: &[String]) -> Self {
        if run.bases.is_empty() {
            let explained = Explained::new(run, figures, steps);
            let groups = vec![ExplainedGroup { name: None, explained }];
            return Self { groups, across: None };
        }

        let divided = groups_by_base(run.clone(), figures.clone());
        let groups = divided.into_iter().map(|group| ExplainedGroup {
            name: group.name,
            explained: Explained::of(Cow::Owned(group.run), Cow::Owned(group.figures), steps),
        });
        let options = CompareOptions {
            base: run.base.clone(),
            effect: figures.effect.unwrap_or(EFFECT),
            steps: steps.to_vec(),
            ..CompareOptions::default()
        };
        Self { groups: groups.collect(), across: Some(Across::new(figures, options)) }
    }

    /// Returns the comparison of each group, in the order of the plan.
    pub(crate) fn all(&self) -> Vec<ComparedGroup<'_>> {
        let groups = self.groups.iter().map(|group| ComparedGroup {
            name: group.name.as_deref(),
            comparison: group.explained.comparison(),
        });
        groups.collect()
    }

    /// Returns the comparison of all targets with one base; `None` if it is the only one.
    pub(crate) fn across(&'a self, run: &'a Run, figures: &'a Figures) -> Option<Comparison<'a>> {
        Some(self.across.as_ref()?.comparison(run, figures))
    }
}

/// The throughput of all targets of several groups, compared with the base of the first group.
#[derive(Clone, Debug)]
pub struct Across {
    compared: Compared,
    effects: Effects,
}

impl Across {
    /// Compares the throughput of all targets with the base of the options. Causes are sought only
    /// within a group.
    pub fn new(figures: &Figures, options: CompareOptions) -> Self {
        let options = CompareOptions {
            metrics: Vec::new(),
            shown_metrics: Vec::new(),
            requirements: Vec::new(),
            ..options
        };
        let mut compared = compare(figures, &options);
        compared.rows.retain(|row| row.metric == THROUGHPUT);
        Self { compared, effects: Effects::default() }
    }

    /// Returns the comparison with the records that it was made of.
    pub fn comparison<'a>(&'a self, run: &'a Run, figures: &'a Figures) -> Comparison<'a> {
        let Self { compared, effects } = self;
        Comparison { run, runs: &[], figures, compared, effects, findings: &[] }
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
    let base_mean = mean_of_samples(&row.base_values);
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
