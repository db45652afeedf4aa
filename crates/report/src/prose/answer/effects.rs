//! The sentences about the effects of factors. They come first: an effect over all targets may be
//! shown where each target alone is too noisy to say.

use analysis::{
    counted, distinct,
    explain::{Change, FactorAnswer, WithoutEffect},
};
use words::share_of;

use super::{AnswerWriter, IS, NAMED, Verb};
use crate::model::number::{percent, ratio_text};
use crate::prose::Passage;
use crate::prose::numbers::{factor_within, list};

const RULES_OUT: Verb = Verb { one: "rules out", several: "rule out" };
const HAS: Verb = Verb { one: "has", several: "have" };

impl AnswerWriter<'_> {
    /// Puts the shown effects of factors before what is said about targets.
    pub(super) fn headed_by_effects(&self, about_targets: Passage) -> Passage {
        let factors = &self.answer.factors;
        let mut effects = factors.iter().take(NAMED).map(|factor| self.effect(factor));
        let Some(largest) = effects.next() else {
            return self.with_evidence(self.headed_by_findings(about_targets));
        };

        let mut sentences: Vec<String> = effects.collect();
        if factors.len() > NAMED {
            let more = counted(factors.len() - NAMED, "other level");
            sentences.push(format!("The tables show the effects of {more}."));
        }

        // The best and the worst target, and the losses of others, say enough: the effects explain the
        // rest.
        let mut of_targets = about_targets.sentences.iter();
        match of_targets.next() {
            Some(first) => {
                let targets = counted(self.answer.targets.len(), self.figures.sides.noun());
                sentences.push(format!("Of {targets} against {}, {first}", self.answer.base));
            }
            None => sentences.push(about_targets.heading),
        }

        sentences.extend(of_targets.cloned());
        sentences.extend(self.shown_costs());

        Passage { heading: format!("All else equal, {largest}"), sentences, ..Passage::default() }
    }

    /// Returns the answer of a design: the effects that are shown, and what is known of the others.
    pub(super) fn of_design(&self, others: WithoutEffect) -> Passage {
        let mut effects = self.answer.factors.iter().take(NAMED).map(|factor| self.effect(factor));
        let heading = match effects.next() {
            Some(largest) => format!("All else equal, {largest}"),
            None => "No factor is shown to change the throughput of any step.".to_owned(),
        };

        let mut sentences: Vec<String> = effects.collect();
        let shown_count = self.answer.factors.len();
        if shown_count > NAMED {
            let more = counted(shown_count - NAMED, "other level");
            sentences.push(format!("The tables show the effects of {more}."));
        }

        sentences.extend(self.without_effect(others));
        Passage { heading, sentences, ..Passage::default() }
    }

    /// Returns what is known of the levels without a shown effect.
    fn without_effect(&self, others: WithoutEffect) -> Option<String> {
        if others.level_count == 0 {
            return None;
        }

        let noun = if self.answer.factors.is_empty() { "level" } else { "other level" };
        let levels = counted(others.level_count, noun);

        let mut parts = Vec::new();
        for (count, verb, what) in [
            (others.equal, RULES_OUT, format!(" an effect above {}", percent(self.answer.effect))),
            (others.too_noisy, IS, " too noisy to say".to_owned()),
            (others.not_compared, HAS, " no verdict".to_owned()),
        ] {
            if count > 0 {
                parts.push(format!("{} {}{what}", self.count(count), verb.of(count)));
            }
        }

        Some(format!("For the {levels}, {}.", parts.join("; ")))
    }

    /// Returns the sentence about a level: `synchronous=off is faster than synchronous=full in 2 of
    /// 3 steps: 7.1x in scan to 11.3x (interval 9.90 to 12.8) in insert; 1 is too noisy to say.`
    /// Settings that change with it are named: `synchronous=off together with page_size=8192`.
    fn effect(&self, factor: &FactorAnswer) -> String {
        let FactorAnswer { factor: name, base_level, level, with, outcome, .. } = factor;
        let all = outcome.comparison_count();
        let base = format!("{name}={base_level}");

        let mut parts = Vec::new();
        for (word, changes) in [("faster", &outcome.faster), ("slower", &outcome.slower)] {
            let Some(extent) = self.extent(changes) else {
                continue;
            };
            parts.push(if parts.is_empty() {
                let steps = share_of(changes.len(), all, self.noun());
                format!("is {word} than {base} in {steps}: {extent}")
            } else {
                format!("{word} in {}: {extent}", changes.len())
            });
        }

        if factor.differing > 0 {
            let steps = self.count(factor.differing);
            parts.push(format!("in {steps} the effect depends on the other factors"));
        }

        parts.extend(self.without_change(outcome));

        let together =
            if with.is_empty() { String::new() } else { format!(" together with {}", list(with)) };
        let engine = self.engine_prefix(&factor.engine);
        format!("{engine}{name}={level}{together} {}.", parts.join("; "))
    }

    /// Returns the smallest and the largest of some changes in one direction, as factors and as the
    /// ratios that tables have, with the interval of the largest; `None` without changes.
    fn extent(&self, changes: &[Change]) -> Option<String> {
        let (largest, smallest) = (changes.first()?, changes.last()?);
        let [least, most] =
            [smallest, largest].map(|change| factor_within(change.ratio, change.interval));
        let place = self.place(largest);

        if changes.len() > 1 && least == most {
            let interval = interval_note(largest).map(|note| format!("{note} in {place}"));
            let notes = in_parentheses(ratio_note(largest), interval);
            return Some(format!("{most} in each{notes}"));
        }

        let notes = in_parentheses(ratio_note(largest), interval_note(largest));
        let of_largest = format!("{most}{notes} in {place}");
        if changes.len() == 1 {
            return Some(of_largest);
        }

        let notes = in_parentheses(ratio_note(smallest), None);
        Some(format!("{least}{notes} in {} to {of_largest}", self.place(smallest)))
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

/// Returns the ratio of a slower level, which tables have in the place of the factor: `ratio
/// 0.055`.
fn ratio_note(change: &Change) -> Option<String> {
    let ratio = match change.interval {
        Some(interval) => interval.digits_of(change.ratio),
        None => ratio_text(change.ratio),
    };
    (change.ratio < 1.0).then(|| format!("ratio {ratio}"))
}

/// Returns the interval of a change as tables have it: `interval 0.016 to 0.055`.
fn interval_note(change: &Change) -> Option<String> {
    let interval = change.interval?;
    let [low, high] = [interval.low, interval.high].map(|bound| interval.digits_of(bound));
    Some(format!("interval {low} to {high}"))
}

/// Joins two notes on a figure: ` (ratio 0.031, interval 0.016 to 0.055)`; empty without any.
fn in_parentheses(first: Option<String>, second: Option<String>) -> String {
    let notes: Vec<String> = first.into_iter().chain(second).collect();
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) }
}

#[cfg(test)]
mod tests {
    use analysis::{
        compare::Interval,
        explain::{Answer, ShownCost, TargetAnswer},
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
    fn answer_of(factors: Vec<FactorAnswer>) -> Answer {
        let noisy =
            TargetAnswer { target: "lite.off".into(), too_noisy: 3, ..TargetAnswer::default() };
        Answer {
            base: "lite.full".into(),
            effect: 0.03,
            factors,
            targets: vec![noisy],
            load_count: 1,
            repeats: Some((3, 3)),
            ..Answer::default()
        }
    }

    fn said(answer: &Answer) -> String {
        AnswerWriter::new(answer, &Figures::default()).passage().whole()
    }

    fn text_of(factors: Vec<FactorAnswer>) -> String {
        said(&answer_of(factors))
    }

    fn factor(name: &str, outcome: TargetAnswer) -> FactorAnswer {
        FactorAnswer {
            engine: "sqlite".into(),
            factor: name.into(),
            base_level: "full".into(),
            level: "off".into(),
            with: Vec::new(),
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
            "All else equal, synchronous=off is faster than synchronous=full in all 3 steps: 7.1x in mixed to 11.3x \
             (interval 10.2 to 12.4) in insert. No change is shown between lite.off and lite.full in 3 steps: all 3 are too \
             noisy to say."
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
        let expected = "All else equal, page_size=off is faster than page_size=full in 1 of 3 steps: 2.00x \
                        (interval 1.80 to 2.20) in insert; slower in 1: 2.00x (ratio 0.50, interval 0.45 to 0.55) in scan; in 1 step the \
                        effect depends on the other factors; 1 is too noisy to say. ";
        assert!(text.starts_with(expected), "{text}");

        let many = text_of(vec![factor("page_size", outcome); 6]);
        assert_eq!(many.matches("page_size=off is faster").count(), 4);
        assert!(many.contains(" The tables show the effects of 2 other levels. "), "{many}");
    }

    #[test]
    fn settings_that_change_with_a_level_are_named_beside_it() {
        let outcome =
            TargetAnswer { faster: vec![change("ycsb_a", 1.46)], ..TargetAnswer::default() };
        let with = vec!["compression=kZSTD".to_owned(), "doublewrite".to_owned()];
        let text = text_of(vec![FactorAnswer { with, ..factor("write_buffer_size", outcome) }]);
        let expected = "All else equal, write_buffer_size=off together with compression=kZSTD and doublewrite is faster \
                        than write_buffer_size=full in the only step: 1.46x (interval 1.31 to 1.61) in ycsb_a. ";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn costs_that_targets_show_follow_the_effects() {
        let outcome = TargetAnswer { faster: vec![change("scan", 2.0)], ..TargetAnswer::default() };
        let changes = TargetAnswer {
            target: "lite.off".into(),
            faster: vec![change("insert", 0.5)],
            ..TargetAnswer::default()
        };
        let answer = Answer {
            shown_costs: vec![ShownCost { metric: "w_amp".into(), changes }],
            ..answer_of(vec![factor("synchronous", outcome)])
        };
        let text = said(&answer);
        assert!(
            text.contains("all 3 are too noisy to say. lite.off has 0.50x the bytes"),
            "{text}"
        );
    }

    #[test]
    fn equal_effects_are_told_once() {
        let outcome = TargetAnswer {
            faster: vec![change("scan", 15.0), change("insert", 14.98)],
            ..TargetAnswer::default()
        };
        let text = text_of(vec![factor("synchronous", outcome)]);
        let expected = "All else equal, synchronous=off is faster than synchronous=full in both steps: 15.0x in each \
                        (interval 13.5 to 16.5 in scan). ";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn what_is_known_of_levels_without_a_shown_effect_is_counted_in_steps() {
        let others = WithoutEffect { level_count: 4, equal: 7, too_noisy: 1, not_compared: 0 };
        let answer = Answer {
            effect: 0.03,
            without_effect: Some(others),
            load_count: 1,
            ..Answer::default()
        };
        assert_eq!(
            AnswerWriter::new(&answer, &Figures::default()).passage().whole(),
            "No factor is shown to change the throughput of any step. For the 4 levels, 7 steps rule out an effect above \
             3%; 1 step is too noisy to say."
        );
    }

    #[test]
    fn without_a_shown_effect_the_answer_is_that_of_targets() {
        assert!(text_of(Vec::new()).starts_with("No change is shown between lite.off"));
    }
}
