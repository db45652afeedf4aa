//! The sentences about several targets: the changes of each of a few, and of many the best, the worst
//! and the losses of the others.

use analysis::counted;
use analysis::explain::{Change, TargetAnswer};

use super::AnswerWriter;
use crate::model::number::listed;
use crate::prose::Passage;
use crate::prose::numbers::{NAMED, factor_within};

/// The number of targets up to which each has a sentence with its changes.
const EACH: usize = 3;

impl AnswerWriter<'_> {
    /// Returns what is shown of several targets, the result first: of a few targets the changes of one,
    /// and of many the targets that are faster and slower.
    pub(super) fn several_targets(&self) -> Passage {
        let targets: Vec<&TargetAnswer> = self.answer.targets.iter().collect();
        let steps = targets.iter().map(|target| target.comparison_count()).max().unwrap_or(0);
        let compared = format!(
            "{} against {} in {}",
            counted(targets.len(), self.figures.sides.noun()),
            self.answer.base,
            self.count(steps)
        );

        if self.names_each()
            && let Some((first, others)) = self.of_each(steps).split_first()
        {
            return Passage {
                heading: format!("Of {compared}, {first}"),
                sentences: others.to_vec(),
                ..Passage::default()
            };
        }

        Passage {
            heading: format!("{compared}: {}.", self.outcomes(&targets, steps).join("; ")),
            sentences: self.of_many(),
            ..Passage::default()
        }
    }

    /// Returns whether each target has a sentence. Effects of factors say more than those.
    fn names_each(&self) -> bool {
        let targets = &self.answer.targets;
        (2..=EACH).contains(&targets.len()) && self.answer.factors.is_empty()
    }

    /// Returns whether the sentence with a target's changes also has those of its typical turns.
    pub(super) fn says_turns_of(&self, name: &str) -> bool {
        let mut targets = self.answer.targets.iter();
        self.names_each()
            && targets.any(|target| target.target == name && target.largest().is_some())
    }

    /// Returns a sentence for each target with a change, the one with the largest loss first, and one
    /// about those without. Empty if none has a change.
    fn of_each(&self, steps: usize) -> Vec<String> {
        let mut changed: Vec<&TargetAnswer> = self.answer.targets.iter().collect();
        let mut unchanged = changed.clone();
        changed.retain(|target| target.largest().is_some());
        if changed.is_empty() {
            return Vec::new();
        }
        sort_by_loss(&mut changed);
        let mut sentences: Vec<String> =
            changed.into_iter().map(|target| self.of_one(target)).collect();

        // What all steps of a target show together has a sentence of its own.
        unchanged.retain(|target| target.largest().is_none() && target.together.is_none());
        if !unchanged.is_empty() {
            sentences.push(format!("{}.", self.outcomes(&unchanged, steps).join("; ")));
        }
        sentences
    }

    /// Returns what is shown of one of a few targets: `c.x is slower in scan (1.16x) and faster in load
    /// (1.25x), and slower in insert (1.09x) only in a typical turn.`
    fn of_one(&self, target: &TargetAnswer) -> String {
        let changes = self.losses_and_gains(target).join(" and ");
        let mut said = format!("{} is {changes}", target.target);
        if let Some(typical) = self.only_in_typical_turns(target) {
            said += &format!(", and {typical}");
        }
        said + "."
    }

    /// Lists the changes of a target, losses first: `slower in scan (1.16x)`, `faster in load
    /// (1.25x)`.
    fn losses_and_gains(&self, target: &TargetAnswer) -> Vec<String> {
        let mut parts = Vec::new();
        for (word, changes) in [("slower", &target.slower), ("faster", &target.faster)] {
            if !changes.is_empty() {
                parts.push(format!("{word} in {}", self.steps_with_factors(changes)));
            }
        }
        parts
    }

    /// Returns the changes of one of several targets that only its typical turns show: `slower in scan
    /// (1.09x) only in a typical turn`. `None` without any, and of a single target, whose typical
    /// turns have a sentence of their own.
    pub(super) fn only_in_typical_turns(&self, target: &TargetAnswer) -> Option<String> {
        if self.answer.targets.len() == 1 {
            return None;
        }

        let mut answers = self.answer.typical.iter();
        let typical = answers.find(|typical| typical.target == target.target)?;
        let parts = self.losses_and_gains(typical);
        if parts.is_empty() {
            return None;
        }
        Some(format!("{} only in a typical turn", parts.join(" and ")))
    }

    /// Returns the best and the worst of many targets, and the largest loss of each of the others.
    fn of_many(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut told = Vec::new();
        for (chosen, which) in [(self.answer.best(), "best"), (self.answer.worst(), "worst")] {
            let Some(target) = chosen else {
                continue;
            };
            if let Some(shown) = self.shown(target, "") {
                sentences.push(format!("{} does {which}: {shown}.", target.target));
                told.push(target.target.as_str());
            }
        }
        sentences.extend(self.losses_of_others(&told));
        sentences
    }

    /// Names the targets that no sentence has told of and that lose, each with its largest loss: `c.x is
    /// slower in scan (1.11x) and 2 other steps, d.x in load (1.05x).` Those that lose the least are
    /// only counted.
    fn losses_of_others(&self, told: &[&str]) -> Option<String> {
        let mut losing: Vec<&TargetAnswer> = self.answer.targets.iter().collect();
        losing.retain(|target| !told.contains(&target.target.as_str()));
        sort_by_loss(&mut losing);

        let mut losses = Vec::new();
        for target in losing {
            let Some((largest, others)) = target.slower.split_first() else {
                continue;
            };
            let is = if losses.is_empty() { " is slower" } else { "" };
            let factor = factor_within(largest.ratio, largest.interval);
            let mut loss = format!("{}{is} in {} ({factor})", target.target, self.place(largest));
            if !others.is_empty() {
                let noun = format!("other {}", self.noun());
                loss += &format!(" and {}", counted(others.len(), &noun));
            }
            losses.push(loss);
        }

        if losses.is_empty() { None } else { Some(listed(&losses, NAMED, ", ") + ".") }
    }
}

/// Sorts targets by their largest loss, the largest first. Those without one follow, the largest gain
/// first.
fn sort_by_loss(targets: &mut [&TargetAnswer]) {
    targets.sort_by(|a, b| {
        let by_loss = largest_size(&b.slower).total_cmp(&largest_size(&a.slower));
        by_loss.then_with(|| largest_size(&b.faster).total_cmp(&largest_size(&a.faster)))
    });
}

/// Returns the size of the largest of some changes, which comes first; 0 without any.
fn largest_size(changes: &[Change]) -> f64 {
    changes.first().map_or(0.0, Change::size)
}
