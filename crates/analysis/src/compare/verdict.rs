//! Compares targets, and decides the verdicts: those of a family together, so that the error rate
//! holds for all of them.

use record::Status;

use super::borrowed::moderate_spreads;
use super::client_cpu::share_verdict_of_own_cpu;
use super::concerned::SomeComparisons;
use super::draft::{TargetPair, UndecidedRow, draft};
use super::family::FamilyParts;
use super::in_tables::InTables;
use super::metric::{THROUGHPUT, families, family_of, has_verdict, part_of};
use super::note::{Note, REPEATS_ADVISED};
use super::overall::overall;
use super::plans::compare_plans;
use super::power::REPEATS_CAP;
use super::profile::compare_profiles;
use super::reason::Reason;
use super::samples::{Samples, TargetStep};
use super::shown::ShownChanges;
use super::system_calls::compare_system_calls;
use super::typical::{TURN_METRICS, TurnMetric};
use super::waits::compare_waits;
use super::work::compare_work;
use super::{
    CompareOptions, Compared, ComparedStep, Interval, Pairing, Verdict, databases, equality,
    family, requirement,
};
use crate::figures::{Figures, Looks};
use crate::order::distinct;

/// Compares every target with the base, step by step. The figures may be of several runs, whose
/// repeats are distinct.
pub fn compare(figures: &Figures, options: &CompareOptions) -> Compared {
    let samples = Samples::new(figures);
    let comparisons = samples.comparisons(&options.base);
    let mut drafts = drafts_of(&samples, &comparisons, options);
    let mut decisions = decide_all(&mut drafts, options);

    let has_hidden_drift = drafts.iter().any(|draft| draft.has_hidden_drift);
    let mut rows: Vec<ComparedStep> = drafts.into_iter().map(|draft| draft.row).collect();
    share_verdict_of_own_cpu(&mut rows);
    let in_tables = InTables::of(&rows.iter().collect::<Vec<_>>(), options);
    for decision in &mut decisions {
        decision.recount(&rows, &in_tables);
    }

    let mut waits = compare_waits(&samples.index, &rows, &options.base, options.error_rate);
    let mut system_calls =
        compare_system_calls(&samples.index, &rows, &options.base, options.error_rate);
    let mut profiles = compare_profiles(figures, &samples.index, &options.base, options.error_rate);

    // The steps that are not shown had their part in the decisions.
    rows.retain(|row| options.shows(&row.step));
    waits.retain(|waits| options.shows(&waits.step));
    system_calls.retain(|calls| options.shows(&calls.step));
    profiles.retain(|profile| options.shows(&profile.step));

    let mut work = compare_work(figures, &options.base);
    work.retain(|work| options.shows(&work.step));

    let of_throughput = decisions.iter().find(|decision| decision.family == THROUGHPUT);
    let comparison_count = of_throughput.map_or(0, FamilyDecision::target_comparison_count);

    let mut notes = Vec::new();
    if !rows.is_empty() && rows.iter().all(|row| row.base_values.is_empty()) {
        notes.push(Note::NoBase { base: options.base.clone() });
    }
    let rows_in_tables: Vec<&ComparedStep> =
        rows.iter().filter(|row| in_tables.have(row)).collect();
    notes.extend(notes_on_repeats(&rows_in_tables, has_hidden_drift));
    notes.extend(note_on_layout(&rows, &options.base));
    notes.extend(decisions.into_iter().filter_map(FamilyDecision::note));
    notes.extend(databases::notes(&figures.begun));

    Compared {
        base: options.base.clone(),
        effect: options.effect,
        error_rate: options.error_rate,
        shown_metrics: options.shown_metrics.clone(),
        requirements: requirement::judge(&samples, options),
        comparison_count,
        plans: compare_plans(&samples.index, &rows, &options.base),
        waits,
        system_calls,
        profiles,
        work,
        rows,
        overall: overall(&samples, &comparisons, options),
        looks: samples.looks(),
        unfinished: unfinished(figures),
        notes: notes.iter().map(Note::to_string).collect(),
    }
}

/// Returns all comparisons before they are decided, metric by metric.
fn drafts_of(
    samples: &Samples<'_>,
    comparisons: &[TargetStep<'_>],
    options: &CompareOptions,
) -> Vec<UndecidedRow> {
    let of_turns = TURN_METRICS.iter().map(|metric| metric.name);
    let all_metrics = options.all_metrics(&options.metrics).into_iter().chain(of_turns);
    let metrics = distinct(all_metrics);

    let mut drafts = Vec::new();
    for &TargetStep { place, target } in comparisons {
        let targets = TargetPair { place, base: &options.base, target };
        for metric in &metrics {
            drafts.extend(draft(samples, targets, metric));
        }
    }
    drafts
}

/// Decides all comparisons, family by family, in the order in which families begin.
fn decide_all(drafts: &mut [UndecidedRow], options: &CompareOptions) -> Vec<FamilyDecision> {
    let mut decisions = Vec::new();
    for family in families(drafts.iter().map(|draft| draft.row.metric.as_str())) {
        let members = drafts.iter_mut().filter(|draft| family_of(&draft.row.metric) == family);
        decisions.push(decide_by_target(&family, members.collect(), options));
    }
    decisions
}

/// The comparisons of a family, of one target or of all, and those of them that are shown.
pub(super) struct FamilyDecision {
    family: String,
    parts: Vec<DecidedPart>,
}

/// Comparisons that were decided at one level: of effects all of a family, otherwise those of a target.
struct DecidedPart {
    /// The first target.
    target: String,
    /// The name by [`part_of`].
    name: String,
    comparison_count: usize,
    /// The number of them that tables have.
    table_count: usize,
    level: f64,
    shown: ShownChanges,
}

impl FamilyDecision {
    fn none(family: &str) -> Self {
        Self { family: family.to_owned(), parts: Vec::new() }
    }

    /// Decides comparisons at one level, and counts them.
    fn decide(&mut self, mut members: Vec<&mut UndecidedRow>, options: &CompareOptions) {
        if options.moderate_spreads {
            moderate_spreads(&mut members);
        }

        let p_values: Vec<f64> = members.iter().filter_map(|draft| draft.row.p_value).collect();
        let level = family::level(&p_values, options.error_rate);
        for draft in &mut members {
            draft.judge(level, options);
        }

        let Some(first) = members.first().filter(|_| !p_values.is_empty()) else {
            return;
        };
        let mut part = DecidedPart {
            target: first.row.cell.target.clone(),
            name: part_of(&first.row.metric).to_owned(),
            comparison_count: p_values.len(),
            table_count: 0,
            level,
            shown: ShownChanges::default(),
        };
        let rows: Vec<&ComparedStep> = members.iter().map(|draft| &draft.row).collect();
        part.count(&rows, &InTables::of(&rows, options));
        self.parts.push(part);
    }

    /// Counts anew, for verdicts that have changed since, and for tables of all targets and metrics.
    fn recount(&mut self, rows: &[ComparedStep], in_tables: &InTables<'_>) {
        for part in &mut self.parts {
            let of_part: Vec<&ComparedStep> = rows.iter().filter(|row| part.has(row)).collect();
            part.count(&of_part, in_tables);
        }
    }

    /// Leaves out metrics that no table has.
    fn leave_out_hidden(&mut self) {
        let in_tables = self.parts.iter().filter(|part| part.table_count > 0);
        let names: Vec<String> = in_tables.map(|part| part.name.clone()).collect();
        self.parts.retain(|part| names.contains(&part.name));
    }

    /// Returns the number of comparisons with an interval.
    pub fn comparison_count(&self) -> usize {
        self.parts.iter().map(|part| part.comparison_count).sum()
    }

    /// Returns the number of them that show a change.
    pub fn shown_count(&self) -> usize {
        self.parts.iter().map(|part| part.shown.count()).sum()
    }

    /// Returns the parts of each target.
    fn by_target(&self) -> impl Iterator<Item = &[DecidedPart]> {
        self.parts.chunk_by(|part, next| part.target == next.target)
    }

    /// Returns the most comparisons of one target, where each is decided by itself.
    fn target_comparison_count(&self) -> usize {
        let counts = self
            .by_target()
            .map(|parts| parts.iter().map(|part| part.comparison_count).sum::<usize>());
        counts.max().unwrap_or(0)
    }

    /// Returns the note on the family; `None` if tables have no comparison of it.
    pub fn note(mut self) -> Option<Note> {
        self.leave_out_hidden();
        if self.parts.is_empty() {
            return None;
        }

        let levels = || self.parts.iter().map(|part| part.level);

        Some(Note::Family {
            family: self.family.clone(),
            comparison_count: self.comparison_count(),
            table_count: self.parts.iter().map(|part| part.table_count).sum(),
            shown: ShownChanges::of_all(self.parts.iter().map(|part| &part.shown)),
            level_min: levels().fold(f64::INFINITY, f64::min),
            level_max: levels().fold(0.0, f64::max),
            parts: FamilyParts {
                target_count: self.by_target().count(),
                metric_count: self.by_target().map(<[_]>::len).max().unwrap_or(0),
            },
        })
    }
}

impl DecidedPart {
    /// Returns whether a comparison of targets is one of these.
    fn has(&self, row: &ComparedStep) -> bool {
        row.cell.target == self.target && part_of(&row.metric) == self.name
    }

    /// Counts the comparisons that tables have, and the changes.
    fn count(&mut self, rows: &[&ComparedStep], in_tables: &InTables<'_>) {
        let with_interval = rows.iter().filter(|row| row.p_value.is_some());
        self.table_count = with_interval.filter(|row| in_tables.have(row)).count();
        self.shown = ShownChanges::among(rows, in_tables);
    }
}

/// Returns the verdicts of a family.
pub(super) fn decide(
    family: &str,
    members: Vec<&mut UndecidedRow>,
    options: &CompareOptions,
) -> FamilyDecision {
    let mut decided = FamilyDecision::none(family);
    decided.decide(members, options);
    decided
}

/// Returns the verdicts of the comparisons of one metric, of all targets.
///
/// The comparisons of a target lend each other what they know about noise, and are a family of
/// their own, so that another target in the table takes nothing away from what this one shows.
fn decide_by_target(
    family: &str,
    mut members: Vec<&mut UndecidedRow>,
    options: &CompareOptions,
) -> FamilyDecision {
    let targets = distinct(members.iter().map(|draft| draft.row.cell.target.as_str()));
    let targets: Vec<String> = targets.into_iter().map(str::to_owned).collect();

    let mut decided = FamilyDecision::none(family);
    for target in targets {
        let of_target = members.iter_mut().filter(|draft| draft.row.cell.target == target);
        let of_target: Vec<&mut UndecidedRow> = of_target.map(|draft| &mut **draft).collect();

        let parts = parts_of_family(of_target);
        let error_rate = options.error_rate / parts.len() as f64;
        let options = CompareOptions { error_rate, ..options.clone() };
        for part in parts {
            decided.decide(part, &options);
        }
    }
    decided
}

/// Divides the comparisons of a family into the parts that are decided together.
fn parts_of_family(members: Vec<&mut UndecidedRow>) -> Vec<Vec<&mut UndecidedRow>> {
    let mut parts: Vec<Vec<&mut UndecidedRow>> = Vec::new();
    for member in members {
        let part = part_of(&member.row.metric);
        match parts.iter_mut().find(|known| part_of(&known[0].row.metric) == part) {
            Some(known) => known.push(member),
            None => parts.push(vec![member]),
        }
    }
    parts
}

impl UndecidedRow {
    /// Sets the verdict at the level of its family.
    fn judge(&mut self, level: f64, options: &CompareOptions) {
        let Some(estimate) = &self.estimate else {
            return;
        };
        // No number of repeats helps where figures are too coarse.
        let repeats_help = !estimate.is_coarse;
        let row = &mut self.row;
        let (low, high) = estimate.interval(level);
        let of_family = Interval { low, high, confidence: 1.0 - level };
        let of_equality = equality::interval(estimate);
        row.interval = Some(of_family);
        row.equality = Some(of_equality);
        row.family_level = Some(level);

        let is_more = low > 1.0;
        let is_less = high < 1.0;
        row.verdict = if is_more || is_less {
            if is_more == row.more_is_better { Verdict::Faster } else { Verdict::Slower }
        } else if equality::is_within(of_equality, options.effect) {
            Verdict::Equal
        } else {
            Verdict::TooNoisy
        };

        // What is shown beside a verdict is what it rests on.
        if row.verdict == Verdict::Equal {
            row.interval = row.equality;
        }

        if row.verdict == Verdict::TooNoisy {
            self.say_if_apart();
        }

        if repeats_help {
            self.row.repeats_needed = repeats_needed(&self.row, options.effect);
        }
    }

    /// Says that all repeats point the same way, where the interval cannot.
    fn say_if_apart(&mut self) {
        let row = &self.row;
        let repeat_count = row.repeats() as usize;
        if repeat_count < APART_REPEATS_MIN || !row.is_apart() {
            return;
        }

        let is_above = row.ratio.is_some_and(|ratio| ratio > 1.0);
        let [base, target] = self.names.clone();
        // The two sides of an interaction have no names.
        if base.is_empty() {
            return;
        }
        let (above, below) = if is_above { (target, base) } else { (base, target) };
        self.add_reasons(&[Reason::Apart { above, below, repeat_count }]);
    }
}

/// The fewest repeats of which it is worth saying that they are apart: those of two equal targets
/// are in one of ten cases with three repeats, and in one of three with two.
const APART_REPEATS_MIN: usize = 3;

/// Returns the number of repeats that show a change of `effect`; `None` without repeats.
fn repeats_needed(row: &ComparedStep, effect: f64) -> Option<u32> {
    let needed = row.repeats_for(effect, row.family_power()?)?;
    if row.verdict != Verdict::TooNoisy {
        return Some(needed);
    }
    // The measured repeats were too few, even if their spread promises enough.
    let measured = row.values.len().max(row.base_values.len()) as u32;
    Some(needed.max(measured + 1).min(REPEATS_CAP))
}

/// Returns notes on the number and the order of repeats of the comparisons that tables have.
pub(super) fn notes_on_repeats(rows: &[&ComparedStep], has_hidden_drift: bool) -> Vec<Note> {
    let mut notes = Vec::new();
    if rows.iter().any(|row| row.verdict == Verdict::Single) {
        notes.push(Note::SingleRun);
    }

    let mut estimated = rows.to_vec();
    estimated.retain(|row| row.p_value.is_some());

    let mut not_in_turns = estimated.clone();
    not_in_turns.retain(|row| row.pairing == Pairing::Independent);
    if !not_in_turns.is_empty() {
        notes.push(Note::NotInTurns {
            has_several_machines: not_in_turns.iter().any(|row| row.machines.count > 1),
            comparisons: SomeComparisons::among(&not_in_turns, &estimated),
        });
    }

    let mut with_few = estimated.clone();
    with_few.retain(|row| (row.repeats() as usize) < REPEATS_ADVISED);
    // The note names the first.
    with_few.sort_by_key(|row| row.repeats());
    if let (Some(first), Some(last)) = (with_few.first(), with_few.last()) {
        notes.push(Note::FewRepeats {
            fewest: first.repeats(),
            most: last.repeats(),
            comparisons: SomeComparisons::among(&with_few, &estimated),
        });
    }

    notes.extend(note_on_looks(&estimated));
    if has_hidden_drift {
        notes.push(Note::HiddenDrift);
    }
    notes
}

/// The size of a change that the layout of code alone can make: see `docs/exact.md`.
const LAYOUT_EFFECT: f64 = 0.02;

/// Returns the note on small changes between two builds: they are true of these files, and may say
/// nothing of their sources.
fn note_on_layout(rows: &[ComparedStep], base: &str) -> Option<Note> {
    let build_of_base = build_of(base)?;
    for row in rows.iter().filter(|row| is_as_small_as_layout(row)) {
        let build = build_of(&row.cell.target);
        if build.is_some_and(|build| build != build_of_base) {
            return Some(Note::Layout);
        }
    }
    None
}

/// Returns whether a comparison shows a change of speed that the layout of code alone can make.
fn is_as_small_as_layout(row: &ComparedStep) -> bool {
    let is_of_speed = has_verdict(&row.metric) || TurnMetric::named(&row.metric).is_some();
    let is_small = row.ratio.is_some_and(|ratio| ratio.ln().abs() <= LAYOUT_EFFECT.ln_1p());
    is_of_speed && is_small && row.verdict.is_change()
}

/// Returns the build in the name of a target; `None` if it is the name of a run.
fn build_of(target: &str) -> Option<&str> {
    target.split_once('.').map(|(build, _)| build)
}

/// Returns the note on results that are looked at more than once.
fn note_on_looks(rows: &[&ComparedStep]) -> Option<Note> {
    let is_any = |wanted: &[Looks]| rows.iter().any(|row| wanted.contains(&row.looks));
    if is_any(&[Looks::TimeUp, Looks::TimeUpAgain]) {
        Some(Note::TimeUp)
    } else if is_any(&[Looks::AnyTime, Looks::Growing]) {
        Some(Note::OpenEnded)
    } else {
        None
    }
}

/// Counts the unfinished cells by their status; `None`: there are none.
pub(super) fn unfinished(figures: &Figures) -> Option<String> {
    const LABELS: [(Option<Status>, &str); 4] = [
        (Some(Status::Failed), "failed"),
        (Some(Status::Interrupted), "interrupted"),
        (Some(Status::Incomplete), "in progress or killed"),
        (None, "not measured"),
    ];

    let mut parts = Vec::new();
    for (status, label) in LABELS {
        let count = figures.unfinished.iter().filter(|cell| cell.status == status).count();
        if count > 0 {
            parts.push(format!("{count} {label}"));
        }
    }

    if parts.is_empty() {
        return None;
    }

    Some(format!(
        "the comparison is not finished: cells are missing ({}), and verdicts can change once they are measured",
        parts.join(", ")
    ))
}
