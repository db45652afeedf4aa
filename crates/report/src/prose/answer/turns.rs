//! The sentences about typical turns, where targets took turns with each other.

use analysis::explain::{Change, TargetAnswer, factor_within};

use super::{AnswerWriter, NAMED};
use crate::model::number::listed;

impl AnswerWriter<'_> {
    /// Returns what is shown of typical turns and of stalls.
    pub(super) fn of_turns(&self) -> Vec<String> {
        let typical = self.answer.typical.iter().take(NAMED);
        let stalls = self.answer.steadiness.iter().take(NAMED);

        let mut sentences: Vec<String> =
            typical.filter_map(|target| self.typical(target)).collect();
        sentences.extend(stalls.flat_map(|target| self.stalls(target)));
        sentences
    }

    /// Returns `No`, or that what follows is about all turns where another sentence is about typical
    /// ones.
    pub(super) fn no(&self) -> &'static str {
        if self.answer.typical.is_empty() { "No" } else { "Over all turns, stalls included, no" }
    }

    /// Returns the sentence about a target whose typical rate is shown to differ: `In a typical turn,
    /// b.x is slower than a in 1 of 5 steps (point-query 1.02x), faster in none.`
    fn typical(&self, target: &TargetAnswer) -> Option<String> {
        let than = format!(" than {}", self.short(&self.answer.base));
        let shown = self.shown(target, &than)?;
        Some(format!("In a typical turn, {} is {shown}.", target.target))
    }

    /// Returns the sentences about a target that is shown to stall more, or less, than the base:
    /// `b.x loses more time to stalls than a in insert (1.07x).`
    fn stalls(&self, target: &TargetAnswer) -> Vec<String> {
        let base = self.short(&self.answer.base);
        let mut sentences = Vec::new();
        for (word, changes) in [("more", &target.slower), ("less", &target.faster)] {
            if changes.is_empty() {
                continue;
            }

            let steps: Vec<String> = changes.iter().map(|change| self.lost(change)).collect();
            let steps = listed(&steps, NAMED, ", ");
            sentences.push(format!(
                "{} loses {word} time to stalls than {base} in {steps}.",
                target.target
            ));
        }
        sentences
    }

    /// Returns a step with the factor by which stalls make the target slower or faster.
    fn lost(&self, change: &Change) -> String {
        format!("{} ({})", self.place(change), factor_within(change.ratio, change.interval))
    }
}
