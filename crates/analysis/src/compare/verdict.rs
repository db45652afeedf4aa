//! Computes verdicts from figures: each comparison by itself, then all of a family together.

use std::collections::BTreeMap;

use record::{CellKey, Status};
use words::Metric;

use super::borrowed::{Prior, RepeatKey, Spread, priors};
use super::estimate::Estimate;
use super::mean::mean;
use super::metric::{OWN_CPU, PROCESS_CPU, THROUGHPUT, families, family_of, more_is_better};
use super::power::REPEATS_CAP;
use super::samples::{Place, Samples, Side};
use super::{
    CompareOptions, Compared, ComparedStep, Interval, ModeratedSpread, Pairing, Sample, Verdict,
    anova, drift, family, requirement,
};
use crate::compare::plans::compare_plans;
use crate::compare::waits::compare_waits;
use crate::compare::{compare_profiles, initial_tree};
use crate::counted;
use crate::figures::{Figures, Row};
use crate::order::distinct;

/// The recommended minimum of repeats: with fewer, bursts of noise look like changes
/// (`docs/statistics.md`).
const REPEATS_ADVISED: usize = 5;

/// The note where [`drift::is_hidden`].
pub(super) const HIDDEN_DRIFT: &str = "of runs or invocations with one repeat each, what the machine does in each of \
    them anew, such as slowing down from its beginning, counts as a change";

/// Compares every target with the base, step by step. The figures may be of several runs, whose
/// repeats are distinct.
pub fn compare(figures: &Figures, options: &CompareOptions) -> Compared {
    let samples = Samples::new(figures);
    let mut drafts = Vec::new();
    for (place, target) in samples.comparisons(&options.base) {
        for metric in options.all_metrics(&options.metrics) {
            drafts.extend(draft(&samples, place, [&options.base, target], metric, options));
        }
    }
    let families = families().map(|family| {
        let members = drafts.iter_mut();
        let members = members.filter(|draft| family_of(&draft.row.metric) == family);
        (family, decide_by_target(members.collect(), options))
    });
    let families: Vec<(&str, FamilyDecision)> = families.collect();
    let has_hidden_drift = drafts.iter().any(|draft| draft.has_hidden_drift);
    let rows: Vec<ComparedStep> = drafts.into_iter().map(|draft| draft.row).collect();
    let mut notes = notes(&rows, options);
    notes.extend(has_hidden_drift.then(|| HIDDEN_DRIFT.to_owned()));
    notes.extend(families.iter().filter_map(|(family, decided)| decided.note(family)));
    Compared {
        base: options.base.clone(),
        effect: options.effect,
        error_rate: options.error_rate,
        shown_metrics: options.shown_metrics.clone(),
        requirements: requirement::judge(&samples, options),
        comparison_count: families[0].1.count_of_target,
        plans: compare_plans(figures, &rows, &options.base),
        waits: compare_waits(figures, &rows, &options.base, options.error_rate),
        rows,
        unfinished: unfinished(figures),
        notes,
        profiles: compare_profiles(figures, &options.base, options.error_rate),
    }
}

/// The figure that is compared as a metric.
pub(super) struct Measured<'m> {
    pub metric: &'m str,
    /// The reason for which it is another one.
    pub reason: Option<String>,
}

impl<'m> Measured<'m> {
    /// Selects the figure for a metric of several targets. Where the threads of one server can't be
    /// told apart, the CPU of the server's whole process stands for own CPU on all sides.
    pub fn new(samples: &Samples<'_>, place: Place<'_>, targets: &[&str], metric: &'m str) -> Self {
        let without_threads = match metric {
            OWN_CPU => samples.without_threads(place, targets),
            _ => Vec::new(),
        };
        if without_threads.is_empty() {
            return Self { metric, reason: None };
        }
        let reason = format!(
            "the threads of {} can't be told apart: this is the CPU of the clients and of the server's whole process, \
             on both sides",
            without_threads.join(" and ")
        );
        Self { metric: PROCESS_CPU, reason: Some(reason) }
    }
}

/// A row whose verdict may depend on those of others.
pub(super) struct UndecidedRow {
    pub row: ComparedStep,
    pub estimate: Option<Estimate>,
    /// The standard deviation that rounding adds to the logarithm of its ratio.
    pub rounding: f64,
    pub has_hidden_drift: bool,
}

/// The number of comparisons of a family, and of those that are shown, over all targets.
#[derive(Default)]
pub(super) struct FamilyDecision {
    pub count: usize,
    pub shown: usize,
    /// The most comparisons of one target, where each is a family of its own.
    pub count_of_target: usize,
    /// The lowest and the highest level, of several targets.
    levels: Option<(f64, f64)>,
}

/// The same for comparisons that are decided at one level.
struct LevelDecision {
    count: usize,
    shown: usize,
    level: f64,
}

/// Returns one comparison, before its family is decided; `None` if neither of the two has the
/// metric.
pub(super) fn draft(
    samples: &Samples<'_>,
    place: Place<'_>,
    [base_name, target]: [&str; 2],
    metric: &str,
    options: &CompareOptions,
) -> Option<UndecidedRow> {
    let measured = Measured::new(samples, place, &[base_name, target], metric);
    let base = samples.side(place, base_name, measured.metric);
    let side = samples.side(place, target, measured.metric);
    if base.has_nothing() && side.has_nothing() {
        return None;
    }
    let mut draft = UndecidedRow::new(place, target, metric);
    draft.row.reasons.extend(measured.reason);
    let of_base = samples.rows(place, base_name);
    let group = samples.rows(place, target).chain(of_base);
    draft.row.group = group.filter_map(|row| row.group.clone()).next();
    draft.fill(samples, [(base_name, &base), (target, &side)], options);
    if metric == THROUGHPUT && draft.row.ratio.is_some() {
        let rows = |target: &str, values: &[Sample]| -> Vec<&Row> {
            let counts = |row: &&Row| {
                let mut samples = values.iter();
                samples.any(|sample| (sample.run, sample.repeat) == (row.run, row.cell.repeat))
            };
            samples.rows(place, target).filter(counts).collect()
        };
        let of_base = rows(base_name, &draft.row.base_values);
        let of_target = rows(target, &draft.row.values);
        let trees = initial_tree::difference(&of_base, &of_target);
        draft.row.reasons.extend(trees.map(|it| it.to_string()));
    }
    Some(draft)
}

impl UndecidedRow {
    /// Returns a row without values.
    pub fn new(place: Place<'_>, target: &str, metric: &str) -> Self {
        let row = ComparedStep {
            cell: CellKey::new(target, place.load.0, place.load.1, 0),
            workload: place.workload.to_owned(),
            step: place.step.to_owned(),
            metric: metric.to_owned(),
            more_is_better: more_is_better(metric),
            ..ComparedStep::default()
        };
        Self { row, estimate: None, rounding: 0.0, has_hidden_drift: false }
    }

    /// Fills in its values, ratio and estimate, and the verdict if there is no estimate.
    pub fn fill(
        &mut self,
        samples: &Samples<'_>,
        sides: [(&str, &Side); 2],
        options: &CompareOptions,
    ) {
        let row = &mut self.row;
        let [(base_name, base), (target, side)] = sides;
        for (_, side) in sides {
            row.reasons.extend(side.reasons.iter().cloned());
        }
        let matched = samples.matched(base_name, base, target, side);
        row.pairing = matched.pairing;
        row.machines.count = matched.machine_count;
        self.rounding = matched.rounding;
        row.base_values = matched.base;
        row.values = matched.values;
        row.reasons.extend(matched.reasons);
        for (name, side) in sides.iter().filter(|(_, side)| side.values.is_empty()) {
            match (side.invalid, side.not_applicable) {
                (0, 0) => row.reasons.push(format!("{name} does not have the step")),
                (0, _) => row.reasons.push(format!("{name}: not applicable")),
                _ => row.verdict = Verdict::Invalid,
            }
        }
        if row.base_values.is_empty() || row.values.is_empty() {
            return;
        }
        let values = |samples: &[Sample]| samples.iter().map(|s| s.value).collect::<Vec<f64>>();
        let (base, values) = (values(&row.base_values), values(&row.values));
        let mut all = base.iter().chain(&values);
        if !all.clone().all(|value| *value > 0.0) {
            // A quotient of zeros is undefined, but two zeros are equal.
            if all.all(|value| *value == 0.0) {
                row.ratio = Some(1.0);
                row.verdict = match row.pairing {
                    Pairing::Single => Verdict::Single,
                    _ => Verdict::NoChangeShown,
                };
                row.reasons.push("zero in all repeats of both".to_owned());
            } else {
                row.reasons.push("not above zero in every repeat: there is no ratio".to_owned());
            }
            return;
        }
        let (resamples, seed) = (options.resamples, options.seed);
        let estimate = match row.pairing {
            Pairing::Paired => {
                row.machines.variance_share = anova::between_machines(&matched.pairs);
                self.has_hidden_drift = drift::is_hidden(&matched.pairs);
                Estimate::of_pairs(&matched.pairs, matched.rounding, resamples, seed)
            }
            Pairing::Independent => {
                Estimate::of_samples(&base, &values, matched.rounding, resamples, seed)
            }
            Pairing::Single => {
                let ln_mean = |values: &[f64]| {
                    values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64
                };
                row.ratio = Some((ln_mean(&values) - ln_mean(&base)).exp());
                row.verdict = Verdict::Single;
                // If both have one repeat, the verdict says so.
                let alone = match (base.len(), values.len()) {
                    (1, 2..) => Some(base_name),
                    (2.., 1) => Some(target),
                    _ => None,
                };
                let alone = alone.map(|name| format!("{name} has one repeat that counts"));
                row.reasons.extend(alone);
                return;
            }
        };
        row.ratio = Some(estimate.ratio());
        row.p_value = Some(estimate.p_value());
        row.spread = Some(estimate.spread);
        row.machines.ratio_spread = estimate.machine_spread;
        if estimate.machine_spread.is_some() {
            row.reasons.push(format!(
                "the ratio differs between machines, so the interval rests on {} machines, not on {}",
                row.machines.count,
                counted(row.values.len(), "repeat")
            ));
        }
        if estimate.is_coarse {
            row.reasons.push(coarse_reason(&row.metric).to_owned());
        }
        self.estimate = Some(estimate);
    }

    /// Returns what it knows about noise, to lend it to others; `None` if it knows nothing.
    fn spread(&self) -> Option<Spread> {
        let estimate = self.estimate.as_ref()?;
        Some(Spread {
            variance: estimate.spread * estimate.spread,
            freedom: estimate.spread_freedom()?,
            residuals: self.residuals(),
        })
    }

    /// Returns the distance of each repeat from the mean.
    fn residuals(&self) -> BTreeMap<RepeatKey, f64> {
        let logarithms = |samples: &[Sample]| -> Vec<f64> {
            samples.iter().map(|sample| sample.value.ln()).collect()
        };
        let (base, values) = (logarithms(&self.row.base_values), logarithms(&self.row.values));
        if self.row.pairing == Pairing::Paired {
            let ratios: Vec<f64> =
                values.iter().zip(&base).map(|(value, base)| value - base).collect();
            return distances(0, &self.row.values, &ratios).collect();
        }
        let of_base = distances(1, &self.row.base_values, &base);
        let of_target = distances(2, &self.row.values, &values);
        // What makes the base slower makes the target look faster.
        of_base.map(|(repeat, distance)| (repeat, -distance)).chain(of_target).collect()
    }

    /// Moderates its error by what other comparisons know.
    fn borrow(&mut self, prior: Prior) {
        let Some(estimate) = &mut self.estimate else {
            return;
        };
        estimate.borrow(prior);
        self.row.p_value = Some(estimate.p_value());
        self.row.moderated = Some(ModeratedSpread {
            spread: estimate.moderated_spread(),
            freedom: estimate.freedom(),
            borrowed_freedom: prior.freedom,
        });
    }

    /// Sets the verdict at the level of its family.
    fn judge(&mut self, level: f64, options: &CompareOptions) {
        let (row, Some(estimate)) = (&mut self.row, &self.estimate) else {
            return;
        };
        let (low, high) = estimate.interval(level);
        let interval = Interval { low, high, confidence: 1.0 - level };
        row.interval = Some(interval);
        let is_more = low > 1.0;
        let is_shown = is_more || high < 1.0;
        let is_close = low >= 1.0 - options.effect && high <= 1.0 + options.effect;
        row.verdict = match is_shown {
            true if is_more == row.more_is_better => Verdict::Faster,
            true => Verdict::Slower,
            false if is_close => Verdict::NoChangeShown,
            false => Verdict::TooNoisy,
        };
        if estimate.is_coarse {
            return;
        }
        let Some(mut needed) = row.repeats_for(options.effect) else {
            return;
        };
        if row.verdict == Verdict::TooNoisy {
            // The measured repeats were too few, even if their spread promises enough.
            let there = row.values.len().max(row.base_values.len()) as u32;
            needed = needed.max(there + 1).min(REPEATS_CAP);
        }
        row.repeats_needed = Some(needed);
    }
}

/// Returns the distances of logarithms from their mean, by side and repeat.
fn distances(
    side: u8,
    samples: &[Sample],
    logarithms: &[f64],
) -> impl Iterator<Item = (RepeatKey, f64)> {
    let center = mean(logarithms);
    let repeats = samples.iter().map(move |sample| (side, sample.run, sample.repeat));
    repeats.zip(logarithms.iter().map(move |logarithm| logarithm - center))
}

/// Returns the verdicts of comparisons of one metric, say of throughput, of all targets.
///
/// All of them lend each other what they know about noise. But each target is a family of its own,
/// so that another target in the table takes nothing away from what this one shows.
pub(super) fn decide_by_target(
    mut comparisons: Vec<&mut UndecidedRow>,
    options: &CompareOptions,
) -> FamilyDecision {
    if options.lend_spreads {
        borrow_spreads(&mut comparisons);
    }

    let targets = comparisons.iter().map(|draft| draft.row.cell.target.as_str());
    let targets: Vec<String> = distinct(targets).into_iter().map(str::to_owned).collect();
    let mut decided = FamilyDecision::default();
    for target in targets {
        let of_target: Vec<&mut UndecidedRow> = comparisons
            .iter_mut()
            .filter(|draft| draft.row.cell.target == target)
            .map(|draft| &mut **draft)
            .collect();
        decided.add(decide_family(of_target, options));
    }
    decided
}

/// Returns the verdicts of comparisons that are one family.
pub(super) fn decide(
    mut comparisons: Vec<&mut UndecidedRow>,
    options: &CompareOptions,
) -> FamilyDecision {
    if options.lend_spreads {
        borrow_spreads(&mut comparisons);
    }

    let mut decided = FamilyDecision::default();
    decided.add(decide_family(comparisons, options));
    decided
}

/// Decides the comparisons of one family at one level.
fn decide_family(comparisons: Vec<&mut UndecidedRow>, options: &CompareOptions) -> LevelDecision {
    let p_values: Vec<f64> = comparisons.iter().filter_map(|draft| draft.row.p_value).collect();
    let level = family::level(&p_values, options.error_rate);

    let mut decided = LevelDecision { count: p_values.len(), shown: 0, level };
    for draft in comparisons {
        draft.judge(level, options);
        decided.shown +=
            usize::from(matches!(draft.row.verdict, Verdict::Faster | Verdict::Slower));
    }
    decided
}

/// Moderates the error of each comparison by the spreads of those of the same metric.
fn borrow_spreads(comparisons: &mut [&mut UndecidedRow]) {
    let metrics = comparisons.iter().map(|draft| draft.row.metric.as_str());
    let metrics: Vec<String> = distinct(metrics).into_iter().map(str::to_owned).collect();
    for metric in metrics {
        let of_metric = comparisons.iter_mut().filter(|draft| draft.row.metric == metric);
        let mut lending: Vec<(&mut UndecidedRow, Spread)> = of_metric
            .filter_map(|draft| {
                let spread = draft.spread()?;
                Some((&mut **draft, spread))
            })
            .collect();
        let spreads: Vec<Spread> = lending.iter().map(|(_, spread)| spread.clone()).collect();
        for ((draft, _), prior) in lending.iter_mut().zip(priors(&spreads)) {
            if let Some(prior) = prior {
                draft.borrow(prior);
            }
        }
    }
}

impl FamilyDecision {
    fn add(&mut self, family: LevelDecision) {
        if family.count == 0 {
            return;
        }
        self.count += family.count;
        self.shown += family.shown;
        self.count_of_target = self.count_of_target.max(family.count);
        let (low, high) = self.levels.unwrap_or((family.level, family.level));
        self.levels = Some((low.min(family.level), high.max(family.level)));
    }

    pub fn note(&self, what: &str) -> Option<String> {
        let (low, high) = self.levels?;
        let shown = match self.shown {
            0 => "none shows a change".to_owned(),
            shown => format!(
                "{shown} {} a change, each with an error probability of at most {}%",
                if shown == 1 { "shows" } else { "show" },
                percent(high)
            ),
        };
        let confidence = if low < high {
            format!("between {}% and {}%, by target", percent(1.0 - high), percent(1.0 - low))
        } else {
            format!("{}%", percent(1.0 - low))
        };
        Some(format!(
            "{} of {what}: {shown}; the confidence of each interval is {confidence}",
            counted(self.count, "comparison")
        ))
    }
}

/// Returns the reason why more repeats of coarse figures don't help.
fn coarse_reason(metric: &str) -> &'static str {
    if Metric::named(metric).is_some_and(Metric::is_operation_time) {
        "repeats differ by less than a bucket of the histogram, so more repeats would not help"
    } else {
        "repeats differ by less than the ticks of 10 ms in which the kernel counts this: longer steps tell more, \
         further repeats don't"
    }
}

/// Returns the notes on all comparisons.
fn notes(rows: &[ComparedStep], options: &CompareOptions) -> Vec<String> {
    let mut notes = Vec::new();
    let has_base = rows.iter().any(|row| !row.base_values.is_empty());
    if !rows.is_empty() && !has_base {
        notes.push(format!(
            "no result of the base {} is valid, so there is nothing to compare with",
            options.base
        ));
    }
    notes.extend(notes_of_repeats(rows.iter()));
    notes
}

/// Returns notes on the number and the order of repeats.
pub(super) fn notes_of_repeats<'a>(
    rows: impl Iterator<Item = &'a ComparedStep> + Clone,
) -> Vec<String> {
    let mut notes = Vec::new();
    let rows = || rows.clone();
    if rows().any(|row| row.verdict == Verdict::Single) {
        notes.push(
            "a single run has no interval: its seconds depend on each other, so they are not repeats"
                .to_owned(),
        );
    }
    let mut alone =
        rows().filter(|row| row.pairing == Pairing::Independent && row.p_value.is_some());
    if let Some(first) = alone.next() {
        let has_several = |row: &ComparedStep| row.machines.count > 1;
        let changes = if has_several(first) || alone.any(has_several) {
            "changes of the machine, and differences between machines, look"
        } else {
            "changes of the machine look"
        };
        notes.push(format!(
            "where base and target did not take turns, or too few of their repeats are pairs, {changes} like changes of the \
             target"
        ));
    }
    let fewest = rows()
        .filter(|row| row.p_value.is_some())
        .map(|row| row.values.len().min(row.base_values.len()))
        .min();
    if let Some(fewest) = fewest.filter(|&fewest| fewest < REPEATS_ADVISED) {
        notes.push(format!(
            "{fewest} repeats are too few to estimate the noise, and a few bursts of it can look like a change: use at \
             least {REPEATS_ADVISED}"
        ));
    }
    notes
}

/// Counts the unfinished cells by their status; `None`: there are none.
pub(super) fn unfinished(figures: &Figures) -> Option<String> {
    let parts = [
        (Some(Status::Failed), "failed"),
        (Some(Status::Interrupted), "interrupted"),
        (Some(Status::Incomplete), "in progress or killed"),
        (None, "not measured"),
    ]
    .map(|(status, label)| {
        let cells = figures.unfinished.iter();
        (cells.filter(|cell| cell.status == status).count(), label)
    });
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, label)| format!("{count} {label}")).collect();
    (!parts.is_empty()).then(|| {
        format!(
            "the comparison is not finished: cells are missing ({}), and verdicts can change once they are measured",
            parts.join(", ")
        )
    })
}

/// Formats a share in percent with three significant digits, but with all of its nines: `5`,
/// `0.152`, `99.848`.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let small = percent.min(100.0 - percent);
    let decimals =
        if small > 0.0 { (2.0 - small.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };
    let text = format!("{percent:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn percentages_keep_their_digits() {
        let levels = [0.05, 0.05 / 33.0, 1.0 - 0.05 / 33.0, 0.95, 0.03, 1.0].map(percent);
        assert_eq!(levels, ["5", "0.152", "99.848", "95", "3", "100"]);
    }
}
