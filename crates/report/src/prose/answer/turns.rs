//! The sentences about typical turns, where targets took turns with each other.

use analysis::counted;
use analysis::explain::{Change, TargetAnswer};

use super::{AnswerWriter, NAMED};
use crate::model::number::{listed, percent};
use crate::prose::amount::AmountChange;
use crate::prose::numbers::{factor_within, list_any};

/// Returns whether any step of a target is shown to be slower or faster.
fn changes(target: &TargetAnswer) -> bool {
    !target.slower.is_empty() || !target.faster.is_empty()
}

impl AnswerWriter<'_> {
    /// Returns what is shown of typical turns and of stalls. Of several targets, those that are only
    /// equal are left to [`Self::equal_in_typical_turns`].
    pub(super) fn of_turns(&self) -> Vec<String> {
        let is_only = self.answer.targets.len() == 1;
        let mut typical: Vec<&TargetAnswer> = self.answer.typical.iter().collect();
        typical.retain(|target| is_only || changes(target) && !self.says_turns_of(&target.target));
        let stalls = self.answer.steadiness.iter().take(NAMED);

        let mut sentences: Vec<String> =
            typical.into_iter().take(NAMED).map(|target| self.typical(target)).collect();
        sentences.extend(self.answer.typical_cpu.iter().take(NAMED).map(|target| self.cpu(target)));
        sentences.extend(stalls.flat_map(|target| self.stalls(target)));
        sentences
    }

    /// Returns the sentence about targets of several that are equal in a typical turn, and of whose
    /// typical turns no other sentence tells: `In a typical turn, b.x and c.x are equal to a.x within 3%
    /// in up to 2 steps.`
    pub(super) fn equal_in_typical_turns(&self) -> Option<String> {
        // The answer about a single target begins with its equality.
        if self.answer.targets.len() == 1 {
            return None;
        }

        let targets = &self.answer.typical;
        let mut equal: Vec<&TargetAnswer> = targets.iter().collect();
        equal.retain(|target| {
            let is_left = !changes(target) || self.says_turns_of(&target.target);
            is_left && target.equal > 0
        });
        let names = list_any(equal.iter().map(|target| target.target.clone()))?;
        let be = if equal.len() == 1 { "is" } else { "are" };
        let most = equal.iter().map(|target| target.equal).max()?;
        let least = equal.iter().map(|target| target.equal).min()?;
        let up_to = if least == most { "" } else { "up to " };
        Some(format!(
            "In a typical turn, {names} {be} {} in {up_to}{}.",
            self.equal_to_base(),
            self.count(most)
        ))
    }

    /// Returns `No`, or that what follows is about all turns where another sentence is about typical
    /// ones.
    pub(super) fn opening_without_change(&self) -> &'static str {
        if self.answer.typical.is_empty() { "No" } else { "Over all turns, stalls included, no" }
    }

    /// Returns what the typical rate of a target says more than its throughput: `In a typical turn,
    /// b.x is slower than a.x in point-query (1.02x), and equal within 3% in 2 other steps.`
    fn typical(&self, target: &TargetAnswer) -> String {
        let base = &self.answer.base;
        let mut parts = Vec::new();
        for (word, changes) in [("slower than", &target.slower), ("faster than", &target.faster)] {
            if !changes.is_empty() {
                parts.push(format!("{word} {base} in {}", self.steps_with_factors(changes)));
            }
        }

        if target.equal > 0 {
            parts.push(if parts.is_empty() {
                format!("{} in {}", self.equal_to_base(), self.count(target.equal))
            } else {
                let others = counted(target.equal, &format!("other {}", self.noun()));
                format!("{} in {others}", self.equal().trim_start())
            });
        }

        format!("In a typical turn, {} is {}.", target.target, parts.join(", and "))
    }

    /// Returns `equal to a.x within 3%`.
    fn equal_to_base(&self) -> String {
        let base = &self.answer.base;
        format!("equal to {base} within {}", percent(self.answer.effect))
    }

    /// Returns the sentence about a target that is shown to use more or less CPU in a typical turn: `In
    /// a typical turn, b.x uses 3.4% more CPU per operation than a.x in insert.`
    fn cpu(&self, target: &TargetAnswer) -> String {
        let base = &self.answer.base;
        let mut parts = Vec::new();
        for change in target.slower.iter().chain(&target.faster) {
            let amount = AmountChange::new(change.ratio, change.interval);
            let (text, than, step) = (amount.text(), amount.than(), self.place(change));
            parts.push(if parts.is_empty() {
                format!("{text} CPU per operation {than} {base} in {step}")
            } else {
                format!("{text} in {step}")
            });
        }
        format!("In a typical turn, {} uses {}.", target.target, listed(&parts, NAMED, ", and "))
    }

    /// Returns the sentences about a target that is shown to stall more, or less, than the base:
    /// `Stalls make b.x slower than a.x in insert (1.07x).`
    fn stalls(&self, target: &TargetAnswer) -> Vec<String> {
        let base = &self.answer.base;
        let who = &target.target;
        let mut sentences = Vec::new();
        if !target.slower.is_empty() {
            let steps = self.steps_with_factors(&target.slower);
            sentences.push(format!("Stalls make {who} slower than {base} in {steps}."));
        }
        if !target.faster.is_empty() {
            let steps = self.steps_with_factors(&target.faster);
            sentences.push(format!("Fewer stalls make {who} faster than {base} in {steps}."));
        }
        sentences
    }

    /// Lists steps with the factors by which they are slower or faster: `point-query (1.02x)`.
    pub(super) fn steps_with_factors(&self, changes: &[Change]) -> String {
        let mut steps = Vec::new();
        for change in changes {
            let factor = factor_within(change.ratio, change.interval);
            steps.push(format!("{} ({factor})", self.place(change)));
        }
        listed(&steps, NAMED, ", ")
    }
}
