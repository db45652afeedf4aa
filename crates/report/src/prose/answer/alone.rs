//! The answer's sentences about steps in sequence that are not shown to differ from the same steps
//! alone. If they are, that is a finding.

use analysis::explain::UnshownSequence;

use super::AnswerWriter;
use crate::model::number::ratio_text;
use crate::prose::Passage;

/// The most steps that have a sentence.
const SENTENCES_MAX: usize = 3;

impl AnswerWriter<'_> {
    /// Adds the sentences.
    pub(super) fn with_sequences(&self, mut said: Passage) -> Passage {
        let sequences = self.answer.unshown_sequences.iter().take(SENTENCES_MAX);
        said.sentences.extend(sequences.map(|sequence| self.sequence(sequence)));
        said
    }

    fn sequence(&self, sequence: &UnshownSequence) -> String {
        let variant = sequence.variant.as_deref();
        let place = self.place_of(&sequence.step, variant, sequence.clients);
        let who = &sequence.target;

        let Some(ratio) = sequence.ratio else {
            return format!(
                "{place} of {who} in sequence cannot be compared with the same step alone."
            );
        };

        let interval = sequence.interval.map(|interval| {
            format!(" ({} to {})", ratio_text(interval.low), ratio_text(interval.high))
        });

        format!(
            "In sequence, {place} of {who} has {}x{} the throughput that it has alone: {}.",
            ratio_text(ratio),
            interval.unwrap_or_default(),
            sequence.verdict,
        )
    }
}
