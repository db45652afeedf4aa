//! The sentences about the effects of factors. They come first: an effect over all targets may be
//! shown where each target alone is too noisy to say.

use analysis::{
    counted, distinct,
    explain::{Change, FactorAnswer, factor_within, range},
};

use super::{AnswerWriter, NAMED};
use crate::prose::Passage;

impl AnswerWriter<'_> {
    /// Puts the shown effects of factors before what is said about targets.
    pub(super) fn headed_by_effects(&self, about_targets: Passage) -> Passage {
        let factors = &self.answer.factors;
        let mut effects = factors.iter().take(NAMED).map(|factor| self.effect(factor));
        let Some(largest) = effects.next() else {
            return about_targets;
        };

        let mut sentences: Vec<String> = effects.collect();
        if factors.len() > NAMED {
            let more = counted(factors.len() - NAMED, "other level");
            sentences.push(format!("The tables show the effects of {more}."));
        }
        sentences.push(about_targets.heading);
        sentences.extend(about_targets.sentences);
        Passage { heading: format!("All else equal, {largest}"), sentences, ..about_targets }
    }

    /// Returns the sentence about a level: `synchronous=off is faster than synchronous=full in 2 of
    /// 3 steps: 7.1x in scan to 11.3x in insert (interval 9.90x to 12.8x); 1 is too noisy to say.`
    fn effect(&self, factor: &FactorAnswer) -> String {
        let FactorAnswer { factor: name, base_level, level, outcome, .. } = factor;
        let count = self.count(outcome.comparison_count());
        let base = format!("{name}={base_level}");

        let mut parts = Vec::new();
        for (word, changes) in [("faster", &outcome.faster), ("slower", &outcome.slower)] {
            let Some(extent) = self.extent(changes) else {
                continue;
            };
            let steps = changes.len();
            parts.push(if parts.is_empty() {
                format!("is {word} than {base} in {steps} of {count}: {extent}")
            } else {
                format!("{word} in {steps}: {extent}")
            });
        }
        if factor.differing > 0 {
            let steps = self.count(factor.differing);
            parts.push(format!("in {steps} the effect depends on the other factors"));
        }
        parts.extend(self.without_change(outcome));

        format!("{}{name}={level} {}.", self.engine_prefix(&factor.engine), parts.join("; "))
    }

    /// Returns the smallest and the largest of some changes in one direction, with the interval of
    /// the largest; `None` without changes.
    fn extent(&self, changes: &[Change]) -> Option<String> {
        let (largest, smallest) = (changes.first()?, changes.last()?);
        let [least, most] =
            [smallest, largest].map(|change| factor_within(change.ratio, change.interval));
        let place = self.place(largest);
        let are_alike = changes.len() > 1 && least == most;

        let mut text = if are_alike {
            format!("{most} in each")
        } else if changes.len() > 1 {
            format!("{least} in {} to {most} in {place}", self.place(smallest))
        } else {
            format!("{most} in {place}")
        };
        if let Some(interval) = largest.interval {
            let of_largest = if are_alike { format!(" in {place}") } else { String::new() };
            text += &format!(" (interval {}{of_largest})", range(interval));
        }
        Some(text)
    }

    /// Returns the engine with a space if there are several, since their factors may have the same
    /// name.
    fn engine_prefix(&self, engine: &str) -> String {
        let profiles = self.figures.settings.profiles.iter();
        match distinct(profiles.map(|profile| &profile.engine)).len() {
            0 | 1 => String::new(),
            _ => format!("{engine} "),
        }
    }
}

#[cfg(test)]
mod tests {
    use analysis::{
        compare::Interval,
        explain::{Answer, TargetAnswer},
        figures::Figures,
    };

    use super::*;

    fn change(step: &str, ratio: f64) -> Change {
        let interval = Interval { low: ratio * 0.9, high: ratio * 1.1, confidence: 0.95 };
        Change {
            step: step.into(),
            variant: None,
            clients: 1,
            ratio,
            interval: Some(interval),
            repeats: 3,
        }
    }

    /// Returns the answer about these factors and a target that is too noisy in each step.
    fn text_of(factors: Vec<FactorAnswer>) -> String {
        let noisy =
            TargetAnswer { target: "lite.off".into(), too_noisy: 3, ..TargetAnswer::default() };
        let answer = Answer {
            base: "lite.full".into(),
            effect: 0.03,
            factors,
            targets: vec![noisy],
            load_count: 1,
            repeats: Some((3, 3)),
            ..Answer::default()
        };
        AnswerWriter::new(&answer, &Figures::default()).passage().whole()
    }

    fn factor(name: &str, outcome: TargetAnswer) -> FactorAnswer {
        FactorAnswer {
            engine: "sqlite".into(),
            factor: name.into(),
            base_level: "full".into(),
            level: "off".into(),
            differing: 0,
            outcome,
        }
    }

    #[test]
    fn a_shown_effect_of_a_factor_heads_what_is_too_noisy_target_by_target() {
        let outcome = TargetAnswer {
            faster: vec![change("insert", 11.3), change("update", 8.0), change("mixed", 7.12)],
            ..TargetAnswer::default()
        };
        assert_eq!(
            text_of(vec![factor("synchronous", outcome)]),
            "All else equal, synchronous=off is faster than synchronous=full in 3 of 3 steps: 7.1x in mixed to 11.3x in \
             insert (interval 10.2x to 12.4x). No change is shown between lite.off and lite.full in 3 steps: all 3 are too \
             noisy to say. Each target has 3 repeats."
        );
    }

    #[test]
    fn an_effect_is_told_with_its_other_direction_and_with_what_is_not_shown() {
        let outcome = TargetAnswer {
            faster: vec![change("insert", 2.0)],
            slower: vec![change("scan", 0.5)],
            too_noisy: 1,
            ..TargetAnswer::default()
        };
        let text =
            text_of(vec![FactorAnswer { differing: 1, ..factor("page_size", outcome.clone()) }]);
        let expected = "All else equal, page_size=off is faster than page_size=full in 1 of 3 steps: 2.00x in insert \
                        (interval 1.80x to 2.20x); slower in 1: 2.00x in scan (interval 1.82x to 2.22x); in 1 step the \
                        effect depends on the other factors; 1 is too noisy to say. ";
        assert!(text.starts_with(expected), "{text}");

        let many = text_of(vec![factor("page_size", outcome); 6]);
        assert_eq!(many.matches("page_size=off is faster").count(), 4);
        assert!(many.contains(" The tables show the effects of 2 other levels. "), "{many}");
    }

    #[test]
    fn equal_effects_are_told_once() {
        let outcome = TargetAnswer {
            faster: vec![change("scan", 15.0), change("insert", 14.98)],
            ..TargetAnswer::default()
        };
        let text = text_of(vec![factor("synchronous", outcome)]);
        let expected = "All else equal, synchronous=off is faster than synchronous=full in 2 of 2 steps: 15.0x in each \
                        (interval 13.5x to 16.5x in scan). ";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn without_a_shown_effect_the_answer_is_that_of_targets() {
        assert!(text_of(Vec::new()).starts_with("No change is shown between lite.off"));
    }
}
