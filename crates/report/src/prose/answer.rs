//! The answer to a comparison in a few sentences, with the verdicts that it rests on and what makes
//! them doubtful.

mod alone;
mod apart;
mod costs;
mod effects;
mod once;
mod outcomes;
mod several;
mod turns;
mod work;

use analysis::{
    counted,
    explain::{Answer, Change, Finding, FindingKind, TargetAnswer},
    figures::Figures,
};
use record::Status;
use words::{capitalized, share_of};

use super::findings::cause::in_brief;
use super::findings::wording::Wording;
use super::numbers::{factor_within, range};
use super::validity::Validity;
use super::{Passage, at_load, searches};
use crate::model::comparison::Comparison;
use crate::model::number::{listed, percent, ratio_text};
use crate::tables::compared::{Board, effects as effect_tables, verdicts};

/// The maximum number of changes that a sentence lists.
const NAMED: usize = 4;

/// Returns the result of a search or of a comparison: first the answer, then why and how certain
/// that is.
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
    // Nobody can add repeats to what another tool measured.
    if run.imported.is_some() {
        said.remedy = None;
    }
    if let Some(incomplete) = incomplete(figures) {
        said.heading = format!("{incomplete} {}", said.heading);
    }

    let mut tables = Vec::new();
    if !answer.factors.is_empty() || answer.without_effect.is_some() {
        tables = effect_tables::of_throughput(&comparison.factor_effects());
    }

    // The targets of a design differ from the base in many factors, so each alone says little.
    if answer.without_effect.is_none() {
        tables.extend(verdicts(&Board::new(comparison)));
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

/// The changes of a target in one direction.
struct OneWay<'a> {
    /// `faster` or `slower`.
    word: &'static str,
    changes: &'a [Change],
}

/// Turns an answer into sentences.
struct AnswerWriter<'a> {
    answer: &'a Answer,
    figures: &'a Figures,
}

impl<'a> AnswerWriter<'a> {
    fn new(answer: &'a Answer, figures: &'a Figures) -> Self {
        Self { answer, figures }
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

    /// Puts what is shown nevertheless before an answer that no step shows a change in throughput.
    /// If a step shows one, this says more than the costs of targets that neither gain nor lose.
    fn headed_by_findings(&self, about_targets: Passage) -> Passage {
        let targets = &self.answer.targets;
        let is_shown = targets.iter().any(|target| target.largest().is_some());
        // The counts of several targets name what is shown of all steps together.
        let is_only = targets.len() == 1;

        let mut said = Vec::new();
        if !is_shown {
            said.extend(self.of_turns());
        }
        if is_only {
            said.extend(self.changes_together());
        }
        if !is_shown {
            said.extend(self.costs());
        }

        said.push(about_targets.heading);
        said.extend(about_targets.sentences);
        said.extend(self.equal_in_typical_turns());
        if is_shown {
            said.extend(self.of_turns());
            said.extend(self.costs());
        }
        if !is_only {
            said.extend(self.changes_together());
        }

        let heading = said.remove(0);
        Passage { heading, sentences: said, ..Passage::default() }
    }

    /// Returns the changes of all steps together, of the targets of which these are shown.
    fn changes_together(&self) -> Vec<String> {
        let targets = self.answer.targets.iter();
        targets.filter_map(|target| self.together(target)).take(NAMED).collect()
    }

    /// Returns the response times and costs that are shown to differ of targets whose throughput is not.
    fn costs(&self) -> Vec<String> {
        let mut costs = title_of(self.answer.response.as_ref());
        costs.extend(title_of(self.answer.hidden_cost.as_ref()));
        costs.extend(self.shown_costs());
        costs
    }

    /// Returns the change of all steps of a target together, and how far its steps are from that.
    fn together(&self, target: &TargetAnswer) -> Option<String> {
        let all = target.together.as_ref()?;

        let steps = share_of(all.step_count, all.all_step_count, self.noun());
        let mut said = format!(
            "{} is {} {} than {} over {steps} together ({})",
            target.target,
            factor_within(all.ratio, Some(all.interval)),
            if all.ratio < 1.0 { "slower" } else { "faster" },
            self.answer.base,
            range(all.interval),
        );

        if let Some([least, most]) = &all.extremes {
            said += &format!(
                "; its steps have ratios of {} ({}) to {} ({})",
                ratio_text(least.ratio),
                self.place(least),
                ratio_text(most.ratio),
                self.place(most)
            );
        }
        Some(said + ".")
    }

    /// Adds what is far apart, the cause of the changes, and the interval of the largest.
    fn with_evidence(&self, mut said: Passage) -> Passage {
        said.sentences.extend(self.apart());
        said.sentences.extend(self.cause());
        said.sentences.extend(self.largest());
        said
    }

    /// Returns what is counted: under several loads, a step has several comparisons.
    fn noun(&self) -> &'static str {
        if self.answer.load_count > 1 { "comparison" } else { "step" }
    }

    /// Formats a count: `7 steps`.
    fn count(&self, count: usize) -> String {
        counted(count, self.noun())
    }

    /// Returns the sentence for a run with nothing to compare.
    fn without_others(&self) -> Passage {
        const ALONE: &str = "there is nothing to compare it with";
        let measured = self.figures.rows.first();
        let counted = self.figures.exact.first();

        let heading = if let Some(row) = measured {
            format!("{} is the only target that was measured: {ALONE}.", row.cell.target)
        } else if let Some(step) = counted {
            let target = &step.row.cell.target;
            format!("{target} is the only target whose work was counted: {ALONE}.")
        } else {
            "Nothing was measured.".to_owned()
        };

        Passage { heading, ..Passage::default() }
    }

    fn one_target(&self, target: &TargetAnswer) -> String {
        let (who, base) = (&target.target, &self.answer.base);

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
            let none = match comparisons {
                1 => format!("its only {} is not", self.noun()),
                _ => format!("none of its {count} is"),
            };
            return format!(
                "{who} is not compared with {base}: {none} valid and complete on both sides."
            );
        }

        let no = self.opening_without_change();
        let answer = self.answer;
        let shows_costs = answer.response.is_some()
            || answer.hidden_cost.is_some()
            || answer.shows_changes_of_work
            || !answer.shown_costs.is_empty();
        let change = if shows_costs { "change in throughput" } else { "change" };
        format!("{no} {change} is shown between {who} and {base} in {count}: {unchanged}.")
    }

    /// Lists the changes that are shown: `faster than a in 2 of 7 steps (scan 1.57x, insert 1.56x),
    /// slower in none`; `None` without any.
    fn shown(&self, target: &TargetAnswer, than: &str) -> Option<String> {
        let faster = OneWay { word: "faster", changes: &target.faster };
        let slower = OneWay { word: "slower", changes: &target.slower };
        let (first, second) =
            if faster.changes.is_empty() { (slower, faster) } else { (faster, slower) };
        if first.changes.is_empty() {
            return None;
        }

        let all = target.comparison_count();
        let place = share_of(first.changes.len(), all, self.noun());
        let mut said = self.changes(&format!("{}{than}", first.word), first.changes, &place);

        // If all steps change in one direction, none is left for the other.
        let word = second.word;
        if !second.changes.is_empty() {
            let place = second.changes.len().to_string();
            said += &format!(", {}", self.changes(word, second.changes, &place));
        } else if let Some(typical) = self.only_in_typical_turns(target) {
            said += &format!(", {typical}");
        } else if first.changes.len() < all {
            said += &format!(", {word} in none");
        }
        Some(said)
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
        format!("{step}{}", at_load(variant, clients))
    }

    /// Counts the comparisons that show no change, by the reason.
    fn without_change(&self, target: &TargetAnswer) -> Vec<String> {
        let all = target.comparison_count();
        let texts = [
            count_text(target.too_noisy, all, IS, " too noisy to say"),
            count_text(target.equal, all, IS, &self.equal()),
            count_text(target.single.len(), all, WAS, " measured once"),
            count_text(target.not_compared, all, IS, " not compared"),
        ];

        texts.into_iter().flatten().collect()
    }

    /// Returns ` equal within 3%`.
    fn equal(&self) -> String {
        format!(" equal within {}", percent(self.answer.effect))
    }

    /// Returns the sentence about the cause of all changes that are shown.
    fn cause(&self) -> Option<String> {
        let targets = self.answer.targets.iter();

        let shown: usize = targets.map(|target| target.faster.len() + target.slower.len()).sum();
        let what = match shown {
            0 => return None,
            1 => "the change".to_owned(),
            2 => "both".to_owned(),
            shown => format!("all {shown}"),
        };

        let cause = self.answer.cause?;
        let explains = match cause.kind {
            FindingKind::Fsyncs if cause.is_fsync_count => "explain",
            FindingKind::Retries | FindingKind::Stall | FindingKind::WriteStalls => "explain",
            _ => "explains",
        };
        Some(format!("{} {explains} {what}.", capitalized(&in_brief(cause))))
    }

    /// Returns the interval of the largest change, and the number of repeats.
    fn largest(&self) -> Option<String> {
        let of_database =
            if self.answer.is_of_one_database { " from one loaded database" } else { "" };
        let repeats = match self.answer.repeats? {
            (least, most) if least == most => format!("{}{of_database}", counted(most, "repeat")),
            (least, most) => format!("{least} to {most} repeats{of_database}"),
        };

        let sentence = self.largest_change().and_then(|(target, change)| {
            let interval = change.interval?;
            Some(format!(
                "Over {}{of_database}, {} is {} {} in {}.",
                counted(change.repeats, "repeat"),
                target.target,
                range(interval),
                if change.ratio < 1.0 { "slower" } else { "faster" },
                self.place(change)
            ))
        });

        let lacks_comparisons = self.answer.targets.iter().any(TargetAnswer::lacks_comparisons);
        let what = if lacks_comparisons { "compared step" } else { self.figures.sides.noun() };
        Some(sentence.unwrap_or_else(|| format!("Each {what} has {repeats}.")))
    }

    fn largest_change(&self) -> Option<(&'a TargetAnswer, &'a Change)> {
        let targets = self.answer.targets.iter();
        let changes = targets.filter_map(|target| Some((target, target.largest()?)));
        changes.max_by(|(_, a), (_, b)| a.size().total_cmp(&b.size()))
    }
}

/// Returns the title of a finding as a sentence; none without a finding.
fn title_of(finding: Option<&Finding>) -> Vec<String> {
    let titles = finding.map(|finding| format!("{}.", Wording::of(finding).title));
    titles.into_iter().collect()
}

/// A verb in the singular and in the plural.
#[derive(Clone, Copy)]
struct Verb {
    one: &'static str,
    several: &'static str,
}

impl Verb {
    /// Returns the form for so many things.
    fn of(self, count: usize) -> &'static str {
        if count == 1 { self.one } else { self.several }
    }
}

const IS: Verb = Verb { one: "is", several: "are" };
const WAS: Verb = Verb { one: "was", several: "were" };
const SHOWS: Verb = Verb { one: "shows", several: "show" };

/// Counts comparisons in words: `1 is not compared`, `all 9 are not compared`, `it is not compared`
/// of a single one; `None` for 0.
fn count_text(count: usize, all: usize, verb: Verb, what: &str) -> Option<String> {
    let Verb { one, several } = verb;
    match count {
        0 => None,
        1 if all == 1 => Some(format!("it {one}{what}")),
        1 => Some(format!("1 {one}{what}")),
        2 if all == 2 => Some(format!("both {several}{what}")),
        _ if count == all => Some(format!("all {count} {several}{what}")),
        _ => Some(format!("{count} {several}{what}")),
    }
}

#[cfg(test)]
mod tests;
