//! Summarizes a comparison: the effects of factors that are shown, and then target by target the
//! steps that changed, the largest change first, how many are not decided, and the cause that all
//! share.

use record::CellKey;
use serde::Serialize;

use super::alone::{self, UnshownSequence};
use super::apart::Apart;
use super::case::Context;
use super::factor_answer::{FactorAnswer, WithoutEffect, shown_factors};
use super::gap::{self, CostGaps};
use super::shown_costs::{self, ShownCost};
use super::{ChangeCause, Finding, FindingKind, cases, typical};
use crate::compare::databases;
use crate::compare::{Compared, ComparedStep, Effects, Interval, THROUGHPUT, Verdict, has_verdict};
use crate::figures::TYPICAL_CPU;
use crate::figures::index::RowIndex;
use crate::figures::{Competition, Figures, StartedCell, competition};
use crate::order::{distinct, sort_largest_first, sort_smallest_first};

/// The summary of a comparison of throughput. The crate `report` serializes what has words.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    /// The target that others are compared to.
    pub base: String,
    /// The least relative change that matters.
    pub effect: f64,
    /// The levels of factors whose effect on any step is shown, the largest effect first.
    pub factors: Vec<FactorAnswer>,
    /// The levels of a design's factors without a shown effect; `None` without a design.
    pub without_effect: Option<WithoutEffect>,
    /// The other targets, in the order of the figures; those that were not measured come last.
    pub targets: Vec<TargetAnswer>,
    /// The number of loads: combinations of a variant with a number of clients.
    pub load_count: usize,
    /// The fewest and the most repeats of what was compared with an interval; `None`: nothing was.
    pub repeats: Option<(usize, usize)>,
    /// All repeats of a target begin with copies of one database, so that the difference of targets
    /// has in it how this database differs from others that are loaded alike.
    pub is_of_one_database: bool,
    /// The cause of all changes that are shown; `None`: they have no common cause.
    #[serde(skip)]
    pub cause: Option<ChangeCause>,
    /// The largest differences in cost of targets that were measured once, one for each cost.
    #[serde(skip)]
    pub gaps: Vec<CostGaps>,
    /// The comparisons of typical rates that say more than those of throughput: that a step is faster
    /// or slower where throughput does not show that, or equal where throughput is too noisy.
    pub typical: Vec<TargetAnswer>,
    /// The steps in which CPU in a typical turn is shown to differ, and own CPU over all turns is not.
    /// The ratios are those of that CPU.
    pub typical_cpu: Vec<TargetAnswer>,
    /// The steps in which stalls are shown to take more or less of a target's time than of the
    /// base's. The ratios are those of steadiness.
    pub steadiness: Vec<TargetAnswer>,
    /// The work of an operation, its CPU or instructions, shows a change in any step, however small.
    #[serde(skip)]
    pub shows_changes_of_work: bool,
    /// The finding about response times that changed, of the targets whose throughput shows no change in
    /// any step.
    #[serde(skip)]
    pub response: Option<Finding>,
    /// The finding about CPU time that changed, of the targets whose throughput shows no change in any
    /// step. `None` if response times of its target changed: it would repeat their cause.
    #[serde(skip)]
    pub hidden_cost: Option<Finding>,
    /// The costs of an operation that are shown to differ, of the targets whose throughput shows no
    /// change in any step.
    pub shown_costs: Vec<ShownCost>,
    /// If nothing is shown: the comparison of any metric whose repeats are the furthest apart.
    pub apart: Option<Apart>,
    /// The steps that were also measured alone, and are not shown to differ in sequence.
    pub unshown_sequences: Vec<UnshownSequence>,
    /// Competition by other programs, which hides small differences.
    pub host: Option<Competition>,
}

/// The change of a target's throughput over all steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeOfAll {
    /// The geometric mean of target / base over the steps.
    pub ratio: f64,
    /// The interval of that mean.
    pub interval: Interval,
    /// The number of steps in the mean.
    pub step_count: usize,
    /// The number of steps that the target or the base has.
    pub all_step_count: usize,
    /// The steps with the lowest and the highest ratio.
    pub extremes: Option<[Change; 2]>,
}

/// The summary of a target against the base: each comparison is in one of the fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TargetAnswer {
    /// The name.
    pub target: String,
    /// The steps in which it is shown to be faster, the largest change first.
    pub faster: Vec<Change>,
    /// The steps in which it is shown to be slower, the largest change first.
    pub slower: Vec<Change>,
    /// The number of comparisons that show no change and rule out one that matters.
    pub equal: usize,
    /// The number of comparisons that cannot rule out a change that matters.
    pub too_noisy: usize,
    /// Steps that were measured once, in the order of ratios.
    pub single: Vec<Change>,
    /// The number of steps that are invalid, failed or missing.
    pub not_compared: usize,
    /// If no step shows a change: the change of all steps together that is shown.
    pub together: Option<ChangeOfAll>,
}

/// A step's throughput against the base's.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// The step.
    pub step: String,
    /// The variant of the workload.
    pub variant: Option<String>,
    /// Clients.
    pub clients: u32,
    /// Target / base.
    pub ratio: f64,
    /// The interval of the true ratio; `None` without repeats.
    pub interval: Option<Interval>,
    /// The number of repeats of the target that count.
    pub repeats: usize,
}

impl ChangeOfAll {
    /// Returns the change of a target, if it is shown.
    fn of(compared: &Compared, target: &str) -> Option<Self> {
        let mut means = compared.overall.iter();
        let overall = means.find(|overall| overall.compared.cell.target == target)?;
        let mean = &overall.compared;
        // The mean of one step is that step.
        if !mean.verdict.is_change() || overall.step_count < 2 {
            return None;
        }

        Some(Self {
            ratio: mean.ratio?,
            interval: mean.interval?,
            step_count: overall.step_count,
            all_step_count: overall.all_step_count,
            extremes: extreme_steps(compared, target, overall.step_count),
        })
    }
}

/// Returns the steps of a target with the lowest and the highest ratio, of `step_count` that have an
/// interval; `None` if not all of them are in the comparison, because one step was asked for.
fn extreme_steps(compared: &Compared, target: &str, step_count: usize) -> Option<[Change; 2]> {
    let mut steps = Vec::new();
    for row in &compared.rows {
        let is_throughput = row.metric == THROUGHPUT && row.cell.target == target;
        if is_throughput && row.interval.is_some() {
            steps.extend(Change::of(row));
        }
    }
    if steps.len() < step_count {
        return None;
    }

    sort_smallest_first(&mut steps, |step| step.ratio);
    Some([steps.first()?.clone(), steps.last()?.clone()])
}

/// Summarizes each target but the base, from its `rows` about throughput.
fn target_answers(
    figures: &Figures,
    compared: &Compared,
    rows: &[&ComparedStep],
) -> Vec<TargetAnswer> {
    // Targets without any result are named, too.
    let unfinished = figures.unfinished.iter().map(|cell| &cell.cell);
    let cells = rows.iter().map(|row| &row.cell).chain(unfinished);
    let mut names = distinct(cells.map(|cell: &CellKey| cell.target.as_str()));
    names.retain(|name| *name != compared.base);

    let mut answers = Vec::new();
    for name in names {
        let of_target = rows.iter().copied().filter(|row| row.cell.target == name);
        let mut answer = TargetAnswer::new(name, of_target);
        // A step that is shown to change says more than the mean of all steps.
        if answer.largest().is_none() {
            answer.together = ChangeOfAll::of(compared, name);
        }
        answers.push(answer);
    }
    answers
}

/// Returns what is far apart, unless a change of any metric is shown, which says more.
fn apart(compared: &Compared) -> Option<Apart> {
    let shows_change = compared.rows.iter().any(|row| row.verdict.is_change());
    if shows_change { None } else { Apart::furthest(compared) }
}

/// Returns whether repeats of a target in a single run began with copies of one database.
fn is_of_one_database(begun: &[StartedCell]) -> bool {
    let runs = distinct(begun.iter().map(|start| start.run)).len();
    runs == 1 && databases::repeats_share_a_database(begun)
}

/// Returns the first finding of a kind about a target whose throughput did not change.
fn of_unchanged(
    findings: &[Finding],
    targets: &[TargetAnswer],
    kind: FindingKind,
) -> Option<Finding> {
    let is_unchanged = |name: &str| {
        targets.iter().any(|target| target.target == name && target.largest().is_none())
    };
    let mut of_kind = findings.iter().filter(|finding| finding.kind == kind);
    of_kind.find(|finding| is_unchanged(&finding.target)).cloned()
}

/// Returns whether a comparison shows a change in the work of an operation: in CPU or instructions.
fn is_change_of_work(row: &ComparedStep) -> bool {
    let is_of_cpu = has_verdict(&row.metric) || row.metric == TYPICAL_CPU;
    is_of_cpu && row.metric != THROUGHPUT && row.verdict.is_change()
}

/// Returns whether a finding is about a target.
fn is_about(finding: Option<&Finding>, target: &str) -> bool {
    finding.is_some_and(|finding| finding.target == target)
}

impl Answer {
    /// Summarizes a comparison, the effects of the factors in which its targets differ, and its
    /// findings.
    pub fn new(
        figures: &Figures,
        compared: &Compared,
        effects: &Effects,
        findings: &[Finding],
    ) -> Self {
        let rows: Vec<&ComparedStep> =
            compared.rows.iter().filter(|row| row.metric == THROUGHPUT).collect();
        let targets = target_answers(figures, compared, &rows);

        let repeated = rows.iter().filter(|row| row.interval.is_some());
        let repeats: Vec<usize> = repeated.map(|row| row.values.len()).collect();

        let response = of_unchanged(findings, &targets, FindingKind::Response);

        Self {
            base: compared.base.clone(),
            effect: compared.effect,
            factors: shown_factors(effects),
            without_effect: effects.design.as_ref().map(|_| WithoutEffect::of(effects)),
            load_count: distinct(rows.iter().map(|row| row.cell.load())).len(),
            repeats: repeats.iter().copied().min().zip(repeats.iter().copied().max()),
            is_of_one_database: is_of_one_database(&figures.begun),
            cause: cause_of_all(&rows, findings),
            typical: typical::rates(compared, &targets),
            typical_cpu: typical::cpu(compared, &targets),
            steadiness: typical::steadiness(compared, &targets),
            shows_changes_of_work: compared.rows.iter().any(is_change_of_work),
            hidden_cost: of_unchanged(findings, &targets, FindingKind::HiddenCost)
                .filter(|hidden| !is_about(response.as_ref(), &hidden.target)),
            response,
            gaps: gaps(figures, compared),
            shown_costs: shown_costs::without_change(compared, &targets),
            apart: apart(compared),
            unshown_sequences: alone::unshown(figures, compared),
            host: competition(figures),
            targets,
        }
    }

    /// Returns the target with the largest gain over all steps; `None` where no target gains more
    /// than it loses.
    pub fn best(&self) -> Option<&TargetAnswer> {
        let best = self.targets.iter().max_by(|a, b| a.gain().total_cmp(&b.gain()));
        best.filter(|target| target.gain() > 0.0)
    }

    /// Returns the target with the largest loss over all steps.
    pub fn worst(&self) -> Option<&TargetAnswer> {
        let worst = self.targets.iter().min_by(|a, b| a.gain().total_cmp(&b.gain()));
        worst.filter(|target| target.gain() < 0.0)
    }
}

impl TargetAnswer {
    pub(super) fn new<'a>(target: &str, rows: impl Iterator<Item = &'a ComparedStep>) -> Self {
        let mut answer = Self { target: target.to_owned(), ..Self::default() };
        for row in rows {
            match (row.verdict, Change::of(row)) {
                (Verdict::Faster, Some(change)) => answer.faster.push(change),
                (Verdict::Slower, Some(change)) => answer.slower.push(change),
                (Verdict::Single, Some(change)) => answer.single.push(change),
                (Verdict::Equal, _) => answer.equal += 1,
                (Verdict::TooNoisy, _) => answer.too_noisy += 1,
                _ => answer.not_compared += 1,
            }
        }

        // Of a cost, what is faster has a ratio below 1.
        sort_largest_first(&mut answer.faster, Change::size);
        sort_largest_first(&mut answer.slower, Change::size);
        sort_smallest_first(&mut answer.single, |item| item.ratio);
        answer
    }

    /// Returns the number of comparisons of this target.
    pub fn comparison_count(&self) -> usize {
        let changes = self.faster.len() + self.slower.len() + self.single.len();
        changes + self.equal + self.too_noisy + self.not_compared
    }

    /// Returns true if a comparison is missing: of one step, or all of them.
    pub fn lacks_comparisons(&self) -> bool {
        self.not_compared > 0 || self.comparison_count() == 0
    }

    /// Returns the largest change that is shown, in either direction.
    pub fn largest(&self) -> Option<&Change> {
        let firsts = self.faster.first().into_iter().chain(self.slower.first());
        firsts.max_by(|a, b| a.size().total_cmp(&b.size()))
    }

    /// Returns the sum of the logarithms of all changes that are shown.
    fn gain(&self) -> f64 {
        let changes = self.faster.iter().chain(&self.slower);
        changes.map(|change| change.ratio.ln()).sum()
    }
}

impl Change {
    /// Returns the change of a comparison; `None` without a ratio.
    fn of(row: &ComparedStep) -> Option<Self> {
        Some(Self {
            step: row.step.clone(),
            variant: row.cell.variant.clone(),
            clients: row.cell.clients,
            ratio: row.ratio?,
            interval: row.interval,
            repeats: row.values.len(),
        })
    }

    /// Returns the distance from no change, which is equal for twice and half the throughput.
    pub fn size(&self) -> f64 {
        self.ratio.ln().abs()
    }
}

/// Returns the largest differences in cost of targets that were measured once.
fn gaps(figures: &Figures, compared: &Compared) -> Vec<CostGaps> {
    let index = RowIndex::new(figures);
    let cases = cases(Context::new(figures, &index, compared));
    gap::by_cost(&cases).iter().map(|gaps| CostGaps::new(gaps)).collect()
}

/// Returns the cause that the findings of all changes share, which are one for each cause and
/// direction.
fn cause_of_all(rows: &[&ComparedStep], findings: &[Finding]) -> Option<ChangeCause> {
    let mut causes: Vec<ChangeCause> =
        findings.iter().filter_map(|finding| finding.cause).collect();
    // More or fewer fsyncs are a longer or shorter wait for them.
    if !causes.iter().all(|cause| cause.is_fsync_count) {
        for cause in &mut causes {
            cause.is_fsync_count = false;
        }
    }
    let causes = distinct(causes);
    let [cause] = causes.as_slice() else {
        return None;
    };

    let is_explained = |row: &ComparedStep| {
        findings.iter().any(|finding| {
            finding.cause.is_some()
                && finding.targets.contains(&row.cell.target)
                && finding.steps.contains(&row.step)
        })
    };
    let mut changed = rows.iter().filter(|row| row.verdict.is_change());
    let is_of_all = changed.all(|row| is_explained(row));
    (cause.kind.is_cause() && is_of_all).then_some(*cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{CombinationEffect, Deviation, Effect};
    use crate::explain::explanation::Explanation;
    use crate::explain::finding::CellStep;
    use crate::explain::statement::{KnownDifferences, Statement};
    use crate::explain::{Direction, FindingKind};
    use crate::settings::Factor;

    fn row(target: &str, step: &str, verdict: Verdict, ratio: f64) -> ComparedStep {
        let sample = crate::compare::Sample { run: 0, repeat: 1, value: 1.0 };
        ComparedStep {
            cell: CellKey::new(target, None, 1, 0),
            step: step.into(),
            metric: THROUGHPUT.into(),
            ratio: Some(ratio),
            interval: Some(Interval { low: ratio * 0.9, high: ratio * 1.1, confidence: 0.95 }),
            values: vec![sample; 5],
            verdict,
            ..ComparedStep::default()
        }
    }

    fn answer(rows: Vec<ComparedStep>, findings: &[Finding]) -> Answer {
        let compared = Compared { base: "a.x".into(), effect: 0.03, rows, ..Compared::default() };
        Answer::new(&Figures::default(), &compared, &Effects::default(), findings)
    }

    #[test]
    fn each_comparison_counts_once_and_the_largest_changes_come_first() {
        use Verdict::{Equal, Faster, Invalid, Slower, TooNoisy};
        let rows = [
            ("q1", Faster, 1.2),
            ("q2", Faster, 1.5),
            ("q3", Slower, 0.9),
            ("q4", Slower, 0.5),
            ("q5", Equal, 1.0),
            ("q6", TooNoisy, 1.1),
            ("q7", Invalid, 1.0),
        ];
        let rows = rows.map(|(step, verdict, ratio)| row("b.x", step, verdict, ratio));
        let answer = answer(rows.to_vec(), &[]);
        let target = &answer.targets[0];
        let steps = |changes: &[Change]| -> Vec<String> {
            changes.iter().map(|change| change.step.clone()).collect()
        };
        assert_eq!(steps(&target.faster), ["q2", "q1"]);
        assert_eq!(steps(&target.slower), ["q4", "q3"]);
        let counts = (target.equal, target.too_noisy, target.not_compared);
        assert_eq!(counts, (1, 1, 1));
        assert_eq!(target.comparison_count(), 7);
        assert_eq!(answer.repeats, Some((5, 5)));
        assert_eq!(answer.load_count, 1);
    }

    #[test]
    fn best_and_worst_are_those_whose_shown_changes_weigh_most() {
        let rows = vec![
            row("b.x", "q1", Verdict::Faster, 1.2),
            row("c.x", "q1", Verdict::Slower, 0.5),
            row("d.x", "q1", Verdict::TooNoisy, 9.0),
            row("e.x", "q1", Verdict::Faster, 1.4),
        ];
        let all = answer(rows.clone(), &[]);
        let name = |target: Option<&TargetAnswer>| target.map(|target| target.target.clone());
        assert_eq!(name(all.best()).as_deref(), Some("e.x"));
        assert_eq!(name(all.worst()).as_deref(), Some("c.x"));
        let noisy = answer(rows[2..3].to_vec(), &[]);
        assert_eq!((name(noisy.best()), name(noisy.worst())), (None, None));
    }

    #[test]
    fn the_effects_that_are_shown_are_in_the_answer_the_largest_first() {
        let factor = |name: &str, levels: [&str; 2]| Factor {
            engine: "sqlite".into(),
            name: name.into(),
            levels: levels.map(str::to_owned).to_vec(),
            ..Factor::default()
        };
        let effect = |factor, step: &str, verdict, ratio, is_shown| {
            let interval = Interval { low: 0.5, high: 2.0, confidence: 0.95 };
            let deviation = Deviation { ratio: 1.0, interval, p_value: 1.0, is_shown };
            let combination =
                CombinationEffect { deviation: Some(deviation), ..CombinationEffect::default() };
            Effect {
                factor,
                level: 1,
                compared: row("change", step, verdict, ratio),
                combinations: vec![combination],
            }
        };
        let mut cpu = effect(1, "q1", Verdict::Faster, 100.0, false);
        cpu.compared.metric = "cpupq".into();
        let effects = Effects {
            factors: vec![
                factor("page_size", ["4096", "1024"]),
                factor("cache_size", ["2000", "10"]),
                factor("synchronous", ["full", "off"]),
            ],
            rows: vec![
                effect(0, "q1", Verdict::Slower, 0.8, true),
                effect(0, "q2", Verdict::TooNoisy, 0.1, true),
                effect(1, "q1", Verdict::TooNoisy, 20.0, false),
                cpu,
                effect(2, "q1", Verdict::Faster, 7.0, false),
                effect(2, "q2", Verdict::Faster, 11.0, false),
            ],
            ..Effects::default()
        };

        let compared = Compared { base: "a.x".into(), ..Compared::default() };
        let factors = Answer::new(&Figures::default(), &compared, &effects, &[]).factors;
        let [synchronous, page_size] = &factors[..] else {
            panic!("no effect of cache_size is shown: {factors:?}");
        };
        assert_eq!(synchronous.outcome.target, "synchronous: full -> off");
        assert_eq!(synchronous.outcome.largest().unwrap().step, "q2");
        assert_eq!((synchronous.outcome.faster.len(), synchronous.differing), (2, 0));
        assert_eq!((&*page_size.base_level, &*page_size.level), ("4096", "1024"));
        assert_eq!((page_size.outcome.slower.len(), page_size.outcome.too_noisy), (1, 1));
        assert_eq!(page_size.differing, 1, "what is not shown does not count");
    }

    #[test]
    fn a_cause_is_in_the_answer_if_all_changes_share_it() {
        let finding = |kind, cause: Option<ChangeCause>| {
            let statement = Statement::Facts(KnownDifferences::default());
            let cell = CellKey::new("b.x", None, 1, 0);
            let explanation = Explanation {
                statement,
                places: vec![CellStep { cell: &cell, workload: "insert", step: "q1" }],
                evidence: Vec::new(),
                caveats: Vec::new(),
                weight: 1.0,
            };
            Finding { kind, cause, ..Finding::new("a.x", explanation).unwrap() }
        };
        let of_change = |kind, direction| {
            let is_fsync_count = false;
            finding(
                kind,
                Some(ChangeCause { kind, direction, is_too_short: false, is_fsync_count }),
            )
        };
        let faster = |kind| of_change(kind, Some(Direction::Faster));
        let facts = || finding(FindingKind::NoEffect, None);
        let kind = |findings: &[Finding]| {
            let rows = vec![row("b.x", "q1", Verdict::Faster, 1.2)];
            answer(rows, findings).cause.map(|cause| cause.kind)
        };

        let cpu = || faster(FindingKind::Cpu);
        assert_eq!(kind(&[cpu(), facts()]), Some(FindingKind::Cpu));
        assert_eq!(kind(&[cpu(), faster(FindingKind::Fsyncs)]), None);
        assert_eq!(kind(&[cpu(), faster(FindingKind::Unexplained)]), None);
        assert_eq!(kind(&[faster(FindingKind::Unexplained)]), None);
        assert_eq!(kind(&[facts()]), None);

        let slower = of_change(FindingKind::Cpu, Some(Direction::Slower));
        assert_eq!(kind(&[cpu(), slower]), None, "less CPU and more");
        let shift = of_change(FindingKind::LevelShift, None);
        assert_eq!(kind(&[shift.clone(), shift]), Some(FindingKind::LevelShift));

        let rows = ["q1", "q2"].map(|step| row("b.x", step, Verdict::Faster, 1.2));
        assert_eq!(answer(rows.to_vec(), &[cpu()]).cause, None, "q2 has none");
    }
}
