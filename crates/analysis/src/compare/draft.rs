//! Computes one comparison up to its verdict, which depends on the number of comparisons in its
//! family.

use record::CellKey;

use super::estimate::Estimate;
use super::matching::{Matched, NamedSide};
use super::metric::{OWN_CPU, PROCESS_CPU, THROUGHPUT, more_is_better};
use super::reason::{self, Reason};
use super::samples::Samples;
use super::typical::{NoiseWithin, Relation, TurnMetric};
use super::{ComparedStep, Pairing, Sample, Verdict, anova, drift, initial_tree};
use crate::figures::Row;
use crate::figures::index::StepPlace;

/// The two targets of a comparison, and the place where they are compared.
#[derive(Clone, Copy)]
pub(super) struct TargetPair<'t> {
    pub place: StepPlace<'t>,
    pub base: &'t str,
    pub target: &'t str,
}

/// The figure that is compared as a metric.
pub(super) struct ComparedFigure<'m> {
    pub metric: &'m str,
    /// The reason for which it is another one.
    pub reason: Option<Reason>,
}

impl<'m> ComparedFigure<'m> {
    /// Selects the figure for a metric of several targets. Where the threads of one server cannot be
    /// told apart, the CPU of the server's whole process stands for own CPU on all sides.
    pub fn new(
        samples: &Samples<'_>,
        place: StepPlace<'_>,
        targets: &[&str],
        metric: &'m str,
    ) -> Self {
        if metric != OWN_CPU {
            return Self { metric, reason: None };
        }

        let without_threads = samples.without_threads(place, targets);
        if without_threads.is_empty() {
            return Self { metric, reason: None };
        }

        let targets = without_threads.into_iter().map(str::to_owned).collect();
        Self { metric: PROCESS_CPU, reason: Some(Reason::WithoutThreads { targets }) }
    }
}

/// A row whose verdict may depend on those of others.
pub(super) struct UndecidedRow {
    pub row: ComparedStep,
    pub estimate: Option<Estimate>,
    /// The standard deviation that rounding adds to the logarithm of its ratio.
    pub rounding: f64,
    /// The noise that the turns of its repeats show.
    pub noise_within: NoiseWithin,
    pub has_hidden_drift: bool,
    /// The names of the base and of the target, as sentences have them.
    pub names: [String; 2],
}

/// Returns one comparison, before its family is decided; `None` if neither of the two has the
/// metric.
pub(super) fn draft(
    samples: &Samples<'_>,
    targets: TargetPair<'_>,
    metric: &str,
) -> Option<UndecidedRow> {
    let TargetPair { place, base, target } = targets;
    let measured = ComparedFigure::new(samples, place, &[base, target], metric);
    let mut of_base = samples.side(place, base, measured.metric);
    let mut of_target = samples.side(place, target, measured.metric);
    if let Some(metric) = TurnMetric::named(metric) {
        let relation = Relation { samples, place, base, target };
        relation.relate(metric, &mut of_base, &mut of_target);
    }
    if of_base.has_nothing() && of_target.has_nothing() {
        return None;
    }

    let mut draft = UndecidedRow::new(place, target, metric);
    draft.add_reasons(measured.reason.as_slice());
    draft.row.group = group(samples, targets);
    draft.fill(
        samples,
        NamedSide { name: base, side: &of_base },
        NamedSide { name: target, side: &of_target },
    );

    if draft.row.pairing == Pairing::Paired {
        draft.noise_within = NoiseWithin::of_pairs(samples, targets, &draft.row);
        draft.row.error_within = draft.noise_within.error();
    }

    if metric == THROUGHPUT && draft.row.ratio.is_some() {
        let base_rows = rows_that_count(samples, place, base, &draft.row.base_values);
        let target_rows = rows_that_count(samples, place, target, &draft.row.values);
        let trees = initial_tree::difference(&base_rows, &target_rows);
        draft.add_reasons(trees.map(Reason::OtherTree).as_slice());
    }

    Some(draft)
}

/// Returns the group of the benchmark's tables that shows a step.
fn group(samples: &Samples<'_>, targets: TargetPair<'_>) -> Option<String> {
    let TargetPair { place, base, target } = targets;
    let mut rows = samples.index.rows(place, target).chain(samples.index.rows(place, base));
    rows.find_map(|row| row.group.clone())
}

/// Returns the rows of the repeats whose values count.
fn rows_that_count<'a>(
    samples: &Samples<'a>,
    place: StepPlace<'_>,
    target: &str,
    values: &[Sample],
) -> Vec<&'a Row> {
    let rows = samples.index.rows(place, target);
    rows.filter(|row| values.iter().any(|sample| sample.is_of(row))).collect()
}

impl UndecidedRow {
    /// Returns a row without values.
    pub fn new(place: StepPlace<'_>, target: &str, metric: &str) -> Self {
        let (variant, clients) = place.load;
        let row = ComparedStep {
            cell: CellKey::new(target, variant, clients, 0),
            workload: place.workload.to_owned(),
            step: place.step.to_owned(),
            metric: metric.to_owned(),
            more_is_better: more_is_better(metric),
            ..ComparedStep::default()
        };

        Self {
            row,
            estimate: None,
            rounding: 0.0,
            noise_within: NoiseWithin::Unknown,
            has_hidden_drift: false,
            names: <[String; 2]>::default(),
        }
    }

    /// Fills in its values, ratio and estimate, and the verdict if there is no estimate.
    pub fn fill(&mut self, samples: &Samples<'_>, base: NamedSide<'_>, target: NamedSide<'_>) {
        self.names = [base.name, target.name].map(str::to_owned);
        let matched = Matched::new(samples, base, target);

        // Together, so that what holds for both is said once.
        let of_both = [&base.side.reasons[..], &target.side.reasons, &matched.reasons];
        self.add_reasons(&of_both.concat());

        self.row.looks = samples.looks_at(self.row.place(), target.name);
        self.row.pairing = matched.pairing;
        self.row.machines.count = matched.machine_count;
        self.rounding = matched.rounding;

        self.row.base_values = matched.base;
        self.row.values = matched.values;

        for named in [base, target] {
            if named.side.values.is_empty() {
                self.say_why_nothing_counts(named);
            }
        }
        if self.row.base_values.is_empty() || self.row.values.is_empty() {
            return;
        }

        let base_figures = figures_of(&self.row.base_values);
        let figures = figures_of(&self.row.values);
        if !base_figures.iter().chain(&figures).all(|figure| *figure > 0.0) {
            self.compare_zeros(&base_figures, &figures);
            return;
        }

        match self.row.pairing {
            Pairing::Paired => {
                self.row.machines.variance_share = anova::between_machines(&matched.pairs);
                self.has_hidden_drift = drift::is_hidden(&matched.pairs);
                let pairs = &matched.pairs;
                self.estimated(Estimate::of_pairs(pairs, matched.rounding));
            }
            Pairing::Independent => {
                let rounding = matched.rounding;
                let estimate = Estimate::of_samples(&base_figures, &figures, rounding);
                self.estimated(estimate);
            }
            Pairing::Single => {
                self.row.ratio = Some((mean_ln(&figures) - mean_ln(&base_figures)).exp());
                self.row.verdict = Verdict::Single;
                self.say_who_has_one_repeat(base.name, target.name);
            }
        }
    }

    pub fn add_reasons(&mut self, reasons: &[Reason]) {
        self.row.reasons.extend(reason::sentences(reasons));
    }

    fn say_why_nothing_counts(&mut self, named: NamedSide<'_>) {
        let target = named.name.to_owned();
        if named.side.invalid > 0 {
            self.row.verdict = Verdict::Invalid;
        } else if named.side.not_applicable > 0 {
            self.add_reasons(&[Reason::NotApplicable { target }]);
        } else {
            self.add_reasons(&[Reason::NoStep { target }]);
        }
    }

    /// Compares values that have no logarithms.
    fn compare_zeros(&mut self, base: &[f64], values: &[f64]) {
        // The zero of such a figure says that no turn is typical, not that typical turns are equal.
        if TurnMetric::named(&self.row.metric).is_some() {
            self.add_reasons(&[Reason::NoTypicalTurn]);
            return;
        }

        if !base.iter().chain(values).all(|value| *value == 0.0) {
            self.add_reasons(&[Reason::NotAboveZero]);
            return;
        }

        // A quotient of zeros is undefined, but two zeros are equal.
        self.row.ratio = Some(1.0);
        self.row.verdict = match self.row.pairing {
            Pairing::Single => Verdict::Single,
            Pairing::Paired | Pairing::Independent => Verdict::Equal,
        };

        self.add_reasons(&[Reason::AllZero]);
    }

    /// Says which target has a single repeat. If both have one, the verdict says so.
    fn say_who_has_one_repeat(&mut self, base: &str, target: &str) {
        let alone = match (self.row.base_values.len(), self.row.values.len()) {
            (1, 2..) => base,
            (2.., 1) => target,
            _ => return,
        };
        self.add_reasons(&[Reason::OneRepeat { target: alone.to_owned() }]);
    }

    /// Fills in what an estimate says without its family.
    fn estimated(&mut self, estimate: Estimate) {
        let row = &mut self.row;
        let estimate = estimate.for_looks(row.looks);
        row.ratio = Some(estimate.ratio());
        row.p_value = Some(estimate.p_value());
        row.spread = Some(estimate.spread);
        row.machines.ratio_spread = estimate.machine_spread;

        let mut reasons = Vec::new();
        if estimate.machine_spread.is_some() {
            let machine_count = row.machines.count;
            let repeat_count = row.values.len();
            reasons.push(Reason::MachinesDiffer { machine_count, repeat_count });
        }
        if estimate.is_coarse {
            reasons.push(Reason::TooCoarse { metric: row.metric.clone() });
        }

        self.add_reasons(&reasons);
        self.estimate = Some(estimate);
    }
}

fn figures_of(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|sample| sample.value).collect()
}

fn mean_ln(values: &[f64]) -> f64 {
    values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64
}
