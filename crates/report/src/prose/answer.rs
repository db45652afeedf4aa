//! The answer to a comparison in a few sentences, with the verdicts that it rests on and what makes
//! them doubtful.

mod alone;
mod apart;
mod effects;
mod once;
mod work;

use std::collections::BTreeMap;

use analysis::{
    counted, distinct,
    explain::{Answer, Change, TargetAnswer, factor_within, range},
    figures::Figures,
};
use record::Status;
use words::capitalized;

use super::validity::Validity;
use super::{Passage, searches};
use crate::model::comparison::Comparison;
use crate::model::names::short_names;
use crate::model::number::{listed, percent};
use crate::tables::compared::{effects as effect_tables, verdicts};

/// The maximum number of changes that a sentence lists.
const NAMED: usize = 4;

/// Returns the result of a search or of a comparison: first the answer, then why and how sure that
/// is.
pub(crate) fn passage(comparison: &Comparison<'_>) -> Passage {
    let Comparison { run, figures, compared, effects, findings, .. } = *comparison;
    let doubt = Validity::of(figures).doubt();
    if run.search.is_some() {
        return Passage { doubt, ..searches::results(run, figures) };
    }

    if compared.is_work_alone() {
        return work::passage(compared);
    }

    let answer = Answer::new(figures, compared, effects, findings);
    let mut said = AnswerWriter::new(&answer, figures).passage();
    if let Some(incomplete) = incomplete(figures) {
        said.heading = format!("{incomplete} {}", said.heading);
    }
    let mut tables = Vec::new();
    if !answer.factors.is_empty() || answer.without_effect.is_some() {
        tables = effect_tables::of_throughput(&comparison.factor_effects());
    }
    // The targets of a design differ from the base in many factors, so each alone says little.
    if answer.without_effect.is_none() {
        tables.extend(verdicts(comparison));
    }
    Passage { doubt, figures: tables, ..said }
}

/// Returns the sentence that comes first if most steps are missing: `Incomplete: 44 of 198 step
/// results.`
fn incomplete(figures: &Figures) -> Option<String> {
    let complete = figures.rows.iter().filter(|row| row.status == Status::Complete).count();
    let all = figures.rows.len() + figures.missing.len();
    (2 * complete < all)
        .then(|| format!("Incomplete: {complete} of {}.", counted(all, "step result")))
}

/// Turns an answer into sentences.
struct AnswerWriter<'a> {
    answer: &'a Answer,
    figures: &'a Figures,
    /// Names of targets without the build or the config that all of them share.
    short: BTreeMap<&'a str, &'a str>,
}

impl<'a> AnswerWriter<'a> {
    fn new(answer: &'a Answer, figures: &'a Figures) -> Self {
        Self { answer, figures, short: short_names(figures) }
    }

    /// Returns the answer without the figures that it rests on.
    fn passage(&self) -> Passage {
        let answer = self.answer;
        if let Some(without_effect) = answer.without_effect {
            return self.of_design(without_effect);
        }
        let has_single = answer.targets.iter().any(|target| !target.single.is_empty());
        let said = match answer.targets.as_slice() {
            [] => return self.with_sequences(self.without_others()),
            _ if has_single && answer.repeats.is_none() => return self.measured_once(),
            [one] => Passage { heading: self.one_target(one), ..Passage::default() },
            _ => self.several_targets(),
        };
        self.with_sequences(self.headed_by_effects(said))
    }

    /// Adds what is far apart, the cause of the changes, and the interval of the largest.
    fn with_evidence(&self, mut said: Passage) -> Passage {
        said.sentences.extend(self.apart());
        said.sentences.extend(self.cause());
        said.sentences.extend(self.largest());
        said
    }

    /// Returns a target's short name, for a sentence that also has another target's full name.
    fn short(&self, target: &'a str) -> &'a str {
        self.short.get(target).copied().unwrap_or(target)
    }

    /// Formats a count: `7 steps`.
    fn count(&self, count: usize) -> String {
        match self.answer.load_count {
            0 | 1 => counted(count, "step"),
            _ => counted(count, "comparison"),
        }
    }

    /// Returns the sentence for a run with nothing to compare.
    fn without_others(&self) -> Passage {
        let targets = distinct(self.figures.rows.iter().map(|row| &row.cell.target));
        let heading = match targets.first() {
            None => "Nothing was measured.".to_owned(),
            Some(only) => format!(
                "{only} is the only target that was measured: there is nothing to compare it with."
            ),
        };
        Passage { heading, ..Passage::default() }
    }

    fn one_target(&self, target: &'a TargetAnswer) -> String {
        let (who, base) = (&target.target, self.short(&self.answer.base));
        let comparisons = target.comparison_count();
        let count = self.count(comparisons);
        let unchanged = self.without_change(target).join(", ");

        if let Some(shown) = self.shown(target, &format!(" than {base}")) {
            return match unchanged.as_str() {
                "" => format!("{who} is {shown}."),
                unchanged => format!("{who} is {shown}; {unchanged}."),
            };
        }
        if comparisons == 0 {
            return format!("{who} was not measured.");
        }
        if comparisons == target.not_compared {
            return format!(
                "{who} is not compared with {base}: none of {count} is valid and complete on both sides."
            );
        }
        format!("No change is shown between {who} and {base} in {count}: {unchanged}.")
    }

    /// Lists the changes that are shown: `faster than a in 2 of 7 steps (scan 1.57x, insert 1.56x),
    /// slower in none`.
    fn shown(&self, target: &TargetAnswer, than: &str) -> Option<String> {
        let (faster, slower) = (&target.faster, &target.slower);
        let count = self.count(target.comparison_count());
        let first = |word: &str, changes: &[Change]| {
            let place = format!("{} of {count}", changes.len());
            self.changes(&format!("{word}{than}"), changes, &place)
        };
        match (faster.is_empty(), slower.is_empty()) {
            (true, true) => None,
            (false, true) => Some(first("faster", faster) + ", slower in none"),
            (true, false) => Some(first("slower", slower) + ", faster in none"),
            (false, false) => {
                let slower = self.changes("slower", slower, &slower.len().to_string());
                Some(format!("{}, {slower}", first("faster", faster)))
            }
        }
    }

    /// Lists changes in one direction, the largest first: `faster in 2 of 7 steps (scan 1.57x,
    /// insert 1.56x)`.
    fn changes(&self, what: &str, changes: &[Change], place: &str) -> String {
        let texts: Vec<String> = changes
            .iter()
            .map(|change| {
                format!("{} {}", self.place(change), factor_within(change.ratio, change.interval))
            })
            .collect();
        format!("{what} in {place} ({})", listed(&texts, NAMED, ", "))
    }

    fn place(&self, change: &Change) -> String {
        self.place_of(&change.step, change.variant.as_deref(), change.clients)
    }

    /// Returns a place: `scan`, `scan of small at 8 clients`.
    fn place_of(&self, step: &str, variant: Option<&str>, clients: u32) -> String {
        if self.answer.load_count < 2 {
            return step.to_owned();
        }
        let variant = variant.map(|variant| format!(" of {variant}"));
        let clients = counted(clients as usize, "client");
        format!("{step}{} at {clients}", variant.unwrap_or_default())
    }

    /// Counts the comparisons that show no change, by the reason.
    fn without_change(&self, target: &TargetAnswer) -> Vec<String> {
        let all = target.comparison_count();
        let no_change = self.no_change();
        let texts = [
            count_text(target.too_noisy, all, IS, " too noisy to say"),
            count_text(target.no_change_shown, all, SHOWS, &no_change),
            count_text(target.single.len(), all, WAS, " measured once"),
            count_text(target.not_compared, all, IS, " not compared"),
        ];
        texts.into_iter().flatten().collect()
    }

    /// Returns ` no change of 3% or more`.
    fn no_change(&self) -> String {
        format!(" no change of {} or more", percent(self.answer.effect))
    }

    /// Returns the numbers of faster and slower targets, and the best and worst target.
    fn several_targets(&self) -> Passage {
        let targets = &self.answer.targets;
        let steps = targets.iter().map(TargetAnswer::comparison_count).max().unwrap_or(0);
        let heading = format!(
            "{} against {} in {}: {}.",
            counted(targets.len(), "target"),
            self.answer.base,
            self.count(steps),
            self.outcomes().join(", ")
        );

        let mut sentences = Vec::new();
        for (target, which) in [(self.answer.best(), "best"), (self.answer.worst(), "worst")] {
            sentences.extend(target.and_then(|target| {
                let shown = self.shown(target, "")?;
                Some(format!("{} does {which}: {shown}.", self.short(&target.target)))
            }));
        }
        Passage { heading, sentences, ..Passage::default() }
    }

    /// Counts the targets by their outcome.
    fn outcomes(&self) -> Vec<String> {
        let targets = &self.answer.targets;
        let place = match self.answer.load_count {
            0 | 1 => "steps",
            _ => "comparisons",
        };

        let mut texts = Vec::new();
        for outcome in Outcome::ALL {
            let count = targets.iter().filter(|target| Outcome::of(target) == outcome).count();
            let text = count_text(count, targets.len(), outcome.verb(), &self.what(outcome, place));
            texts.extend(text);
        }
        texts
    }

    /// Returns what follows the verb about a target with this outcome.
    fn what(&self, outcome: Outcome, place: &str) -> String {
        let no_change = self.no_change();
        match outcome {
            Outcome::Faster => format!(" faster in some {place}"),
            Outcome::Slower => format!(" slower in some {place}"),
            Outcome::Both => format!(" faster in some {place} and slower in others"),
            Outcome::NoChange => no_change,
            Outcome::TooNoisy => " too noisy to say".to_owned(),
            Outcome::PartlyTooNoisy => {
                format!("{no_change} in some {place} and too much noise in others")
            }
            Outcome::Single => " measured once".to_owned(),
            Outcome::NotCompared => " not compared".to_owned(),
        }
    }

    /// Returns the sentence about the cause of all changes that are shown.
    fn cause(&self) -> Option<String> {
        let targets = self.answer.targets.iter();
        let shown: usize = targets.map(|target| target.faster.len() + target.slower.len()).sum();
        let what = match shown {
            0 => return None,
            1 => "it".to_owned(),
            2 => "both".to_owned(),
            shown => format!("all {shown}"),
        };
        let cause = capitalized(self.answer.cause.as_deref()?);
        Some(format!("{cause} explains {what}."))
    }

    /// Returns the interval of the largest change, and the number of repeats.
    fn largest(&self) -> Option<String> {
        let repeats = match self.answer.repeats? {
            (least, most) if least == most => counted(most, "repeat"),
            (least, most) => format!("{least} to {most} repeats"),
        };
        let sentence = self.largest_change().and_then(|(target, change)| {
            let interval = change.interval?;
            let who = match self.answer.targets.len() {
                1 => "it",
                _ => self.short(&target.target),
            };
            Some(format!(
                "Over {repeats} {who} is {} {} in {}.",
                range(interval),
                if change.ratio < 1.0 { "slower" } else { "faster" },
                self.place(change)
            ))
        });
        let has_gaps = self.answer.targets.iter().any(TargetAnswer::has_gaps);
        let what = if has_gaps { "Each compared step" } else { "Each target" };
        Some(sentence.unwrap_or_else(|| format!("{what} has {repeats}.")))
    }

    fn largest_change(&self) -> Option<(&'a TargetAnswer, &'a Change)> {
        let targets = self.answer.targets.iter();
        let changes = targets.filter_map(|target| Some((target, target.largest()?)));
        changes.max_by(|(_, a), (_, b)| a.size().total_cmp(&b.size()))
    }
}

/// The outcome of all comparisons of a target together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Faster,
    Slower,
    Both,
    NoChange,
    TooNoisy,
    PartlyTooNoisy,
    Single,
    NotCompared,
}

impl Outcome {
    /// In the order in which a sentence counts them.
    const ALL: [Self; 8] = [
        Self::Faster,
        Self::Slower,
        Self::Both,
        Self::NoChange,
        Self::TooNoisy,
        Self::PartlyTooNoisy,
        Self::Single,
        Self::NotCompared,
    ];

    fn of(target: &TargetAnswer) -> Self {
        // A change in any step outweighs what the other steps don't show.
        if !target.faster.is_empty() && !target.slower.is_empty() {
            return Self::Both;
        }
        if !target.faster.is_empty() {
            return Self::Faster;
        }
        if !target.slower.is_empty() {
            return Self::Slower;
        }

        match (target.no_change_shown, target.too_noisy) {
            (0, 0) if target.single.is_empty() => Self::NotCompared,
            (0, 0) => Self::Single,
            (_, 0) => Self::NoChange,
            (0, _) => Self::TooNoisy,
            _ => Self::PartlyTooNoisy,
        }
    }

    fn verb(self) -> Verb {
        match self {
            Self::Faster | Self::Slower | Self::Both | Self::TooNoisy | Self::NotCompared => IS,
            Self::NoChange | Self::PartlyTooNoisy => SHOWS,
            Self::Single => WAS,
        }
    }
}

/// A verb in the singular and in the plural.
#[derive(Clone, Copy)]
struct Verb {
    one: &'static str,
    several: &'static str,
}

const IS: Verb = Verb { one: "is", several: "are" };
const WAS: Verb = Verb { one: "was", several: "were" };
const SHOWS: Verb = Verb { one: "shows", several: "show" };

/// Counts comparisons in words: `1 is not compared`, `all 9 are not compared`; `None` for 0.
fn count_text(count: usize, all: usize, verb: Verb, what: &str) -> Option<String> {
    let Verb { one, several } = verb;
    match count {
        0 => None,
        1 => Some(format!("1 {one}{what}")),
        2 if all == 2 => Some(format!("both {several}{what}")),
        _ if count == all => Some(format!("all {count} {several}{what}")),
        _ => Some(format!("{count} {several}{what}")),
    }
}

#[cfg(test)]
mod tests {
    use analysis::{
        compare::{
            Compared, ComparedStep, Effects, Interval, Pairing, Sample, THROUGHPUT, Verdict,
        },
        explain::{Finding, FindingKind},
        figures::Row,
    };
    use record::CellKey;

    use super::*;

    const STEPS: [&str; 7] = ["l.i0", "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500"];

    /// Target, and of each step the ratio with the verdict.
    type Target<'a> = (&'a str, &'a [(f64, Verdict)]);

    fn row(target: &str, step: &str, ratio: f64, verdict: Verdict) -> ComparedStep {
        let sample = Sample { run: 0, repeat: 1, value: 1.0 };
        let is_single = verdict == Verdict::Single;
        let is_absent = matches!(verdict, Verdict::Invalid | Verdict::NotComparable);
        ComparedStep {
            cell: CellKey::new(target, None, 1, 0),
            step: step.into(),
            metric: THROUGHPUT.into(),
            ratio: (!is_absent).then_some(ratio),
            interval: (!is_single && !is_absent).then_some(Interval {
                low: ratio * 0.95,
                high: ratio * 1.05,
                confidence: 0.98,
            }),
            pairing: if is_single || is_absent { Pairing::Single } else { Pairing::Paired },
            values: vec![sample; if is_single { 1 } else { 5 }],
            verdict,
            ..ComparedStep::default()
        }
    }

    /// Returns the sentences about some targets against `base`, which all have rows in the figures.
    fn text_of(base: &str, targets: &[Target<'_>], cause: Option<&str>) -> String {
        let mut figures = Figures::default();
        let names = targets.iter().map(|(name, _)| *name);
        for name in std::iter::once(base).chain(names) {
            let (build, config) = name.split_once('.').unwrap_or((name, ""));
            figures.rows.push(Row {
                cell: CellKey::new(name, None, 1, 1),
                build: build.into(),
                config: config.into(),
                ..Row::default()
            });
        }
        let rows = targets.iter().flat_map(|(name, steps)| {
            let steps = STEPS.iter().zip(*steps);
            steps.map(|(step, &(ratio, verdict))| row(name, step, ratio, verdict))
        });
        let compared = Compared {
            base: base.into(),
            effect: 0.03,
            rows: rows.collect(),
            ..Compared::default()
        };
        let finding = cause.map(|cause| Finding {
            kind: FindingKind::Cpu,
            cause: Some(cause.into()),
            target: String::new(),
            targets: targets.iter().map(|(name, _)| (*name).to_owned()).collect(),
            base: None,
            workload: String::new(),
            variant: None,
            clients: None,
            step: None,
            steps: STEPS.map(str::to_owned).to_vec(),
            title: String::new(),
            text: String::new(),
            evidence: Vec::new(),
            caveats: Vec::new(),
            weight: 1.0,
        });
        let findings: Vec<Finding> = finding.into_iter().collect();
        said_of(&figures, &compared, &findings)
    }

    fn said_of(figures: &Figures, compared: &Compared, findings: &[Finding]) -> String {
        let answer = Answer::new(figures, compared, &Effects::default(), findings);
        let said = AnswerWriter::new(&answer, figures).passage();
        said.whole()
    }

    use Verdict::{Faster, Invalid, NoChangeShown, Single, Slower, TooNoisy};

    #[test]
    fn the_largest_change_comes_first_and_a_cause_explains_all() {
        let steps = [
            (1.05, TooNoisy),
            (1.56, Faster),
            (1.57, Faster),
            (1.0, NoChangeShown),
            (0.9, TooNoisy),
        ];
        assert_eq!(
            text_of("pg15.base", &[("pg17.base", &steps)], Some("less CPU per operation")),
            "pg17.base is faster than pg15 in 2 of 5 steps (l.i1 1.57x, l.x 1.56x), slower in none; 2 are too noisy to say, \
             1 shows no change of 3% or more. Less CPU per operation explains both. Over 5 repeats it is 1.49x to 1.65x \
             faster in l.i1."
        );
    }

    #[test]
    fn what_is_slower_is_so_by_a_factor_above_one() {
        let steps = [(0.003_21, Slower), (1.2, Faster), (1.0, Invalid)];
        assert_eq!(
            text_of("lite.full", &[("lite.off", &steps)], None),
            "lite.off is faster than full in 1 of 3 steps (l.x 1.20x), slower in 1 (l.i0 312x); 1 is not compared. Over 5 \
             repeats it is 297x to 328x slower in l.i0."
        );
        assert_eq!(
            text_of("lite.full", &[("lite.off", &[(0.5, Slower)])], Some("more CPU per operation")),
            "lite.off is slower than full in 1 of 1 step (l.i0 2.00x), faster in none. More CPU per operation explains it. \
             Over 5 repeats it is 1.90x to 2.11x slower in l.i0."
        );
    }

    #[test]
    fn without_a_change_that_is_shown_nothing_is_faster() {
        let steps = [(1.5, TooNoisy), (1.0, NoChangeShown), (1.0, NoChangeShown)];
        assert_eq!(
            text_of("a.x", &[("b.y", &steps)], None),
            "No change is shown between b.y and a.x in 3 steps: 1 is too noisy to say, 2 show no change of 3% or more. \
             Each target has 5 repeats."
        );
        let targets: [Target<'_>; 4] = [
            ("b.x", &[(1.5, TooNoisy), (1.5, TooNoisy)]),
            ("c.x", &[(1.0, NoChangeShown), (1.5, TooNoisy)]),
            ("d.x", &[(1.0, NoChangeShown), (1.0, NoChangeShown)]),
            ("e.x", &[(1.0, NoChangeShown), (1.0, NoChangeShown)]),
        ];
        assert_eq!(
            text_of("a.x", &targets, None),
            "4 targets against a.x in 2 steps: 2 show no change of 3% or more, 1 is too noisy to say, 1 shows no change of \
             3% or more in some steps and too much noise in others. Each target has 5 repeats."
        );
        let noisy = text_of("a.x", &[targets[0], ("f.x", targets[0].1)], None);
        assert!(noisy.contains("in 2 steps: both are too noisy to say."), "{noisy}");
    }

    #[test]
    fn one_run_shows_nothing() {
        let steps = [(0.83, Single), (1.2, Single), (1.0, Invalid)];
        assert_eq!(
            text_of("a.x", &[("b.x", &steps)], None),
            "b.x had 0.83x to 1.20x the throughput of a in 2 steps, measured once: one run can't show a change; 1 is not \
             compared. `assay run --resume RUN --repeats 5` adds the repeats that verdicts need."
        );
        let answer = text_of("a.x", &[("b.x", &steps[..1]), ("c.x", &steps[..1])], None);
        let first = "2 targets had 0.83x the throughput of a.x in 1 step, measured once: one run can't show a change.";
        assert!(answer.starts_with(first), "{answer}");
    }

    #[test]
    fn targets_that_were_not_measured_do_not_count() {
        let once: &[(f64, Verdict)] = &[(0.83, Single), (1.2, Single)];
        let none: &[(f64, Verdict)] = &[(1.0, Invalid), (1.0, Invalid)];
        let answer = text_of("a.x", &[("b.x", once), ("c.x", once), ("d.x", none)], None);
        assert!(answer.starts_with("2 targets had 0.83x to 1.20x"), "{answer}");

        let noisy: &[(f64, Verdict)] = &[(1.5, TooNoisy), (1.5, TooNoisy)];
        let answer = text_of("a.x", &[("b.x", noisy), ("d.x", none)], None);
        assert!(answer.ends_with(" Each compared step has 5 repeats."), "{answer}");
    }

    #[test]
    fn of_many_targets_the_best_and_the_worst_are_named() {
        let targets: [Target<'_>; 5] = [
            ("pg13.x", &[(1.2, Faster), (1.0, TooNoisy)]),
            ("pg14.x", &[(0.5, Slower), (1.0, TooNoisy)]),
            ("pg15.x", &[(1.9, Faster), (0.9, Slower)]),
            ("pg16.x", &[(1.0, TooNoisy), (1.0, TooNoisy)]),
            ("pg17.x", &[(1.0, Invalid), (1.0, Invalid)]),
        ];
        assert_eq!(
            text_of("pg12.x", &targets, None),
            "5 targets against pg12.x in 2 steps: 1 is faster in some steps, 1 is slower in some steps, 1 is faster in some \
             steps and slower in others, 1 is too noisy to say, 1 is not compared. pg15 does best: faster in 1 of 2 steps (l.i0 1.90x), slower in \
             1 (l.x 1.11x). pg14 does worst: slower in 1 of 2 steps (l.i0 2.00x), faster in none. Over 5 repeats pg14 is \
             1.90x to 2.11x slower in l.i0."
        );
    }

    #[test]
    fn what_has_no_other_target_or_no_base_is_not_compared() {
        assert_eq!(
            text_of("a.x", &[], None),
            "a.x is the only target that was measured: there is nothing to compare it with."
        );
        assert_eq!(
            text_of("run 1", &[("run 2", &[(1.0, Invalid), (1.0, Invalid)])], None),
            "run 2 is not compared with run 1: none of 2 steps is valid and complete on both sides."
        );
        let nothing = said_of(&Figures::default(), &Compared::default(), &[]);
        assert_eq!(nothing, "Nothing was measured.");
    }
}
