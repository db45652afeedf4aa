//! Changes of amounts in sentences.

use analysis::compare::Interval;
use analysis::counted;

use super::numbers::{factor, factor_within};

/// The ratio from which an amount is a multiple of the base's. Below, it would be `100% more`.
const MULTIPLE_MIN: f64 = 1.995;
/// The ratio below which whole percents don't say how little is left.
const LITTLE_MAX: f64 = 0.010_5;
/// The ratio below which nearly nothing is left.
const NOTHING_MAX: f64 = 0.000_5;

/// A change of an amount, such as a cost, in the words that all findings and answers use:
///
/// | the amount is | words |
/// |---|---|
/// | less than the base's | the share that is gone: `40% less` |
/// | more, but less than twice the base's | the share that came: `24% more` |
/// | twice the base's or more | the multiple: `2.40x as much` |
///
/// A factor never comes with `more` or `less`: readers take `1.24x more` for 124% more, and `1.67x
/// less` for a subtraction. Only speeds are factors in both directions: `1.33x slower`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AmountChange {
    ratio: f64,
    interval: Option<Interval>,
}

impl AmountChange {
    /// Returns the change to `ratio` times the base's amount.
    pub(crate) fn new(ratio: f64, interval: Option<Interval>) -> Self {
        Self { ratio, interval }
    }

    fn is_multiple(&self) -> bool {
        self.ratio >= MULTIPLE_MIN
    }

    /// Returns the change for a place beside both amounts: `24% more`, `40% less`, `2.40x`.
    pub(crate) fn short(&self) -> String {
        self.in_words("less", "more")
    }

    /// Returns the change for a sentence, in front of what it is an amount of: `24% more`, `2.40x
    /// as much`.
    pub(crate) fn text(&self) -> String {
        let as_much = if self.is_multiple() { " as much" } else { "" };
        self.short() + as_much
    }

    /// Returns the change of a duration: `24% longer`, `2.40x as long`.
    pub(crate) fn duration_text(&self) -> String {
        let as_long = if self.is_multiple() { " as long" } else { "" };
        self.in_words("shorter", "longer") + as_long
    }

    /// Returns the change with a word for each direction, or the multiple.
    fn in_words(&self, less: &str, more: &str) -> String {
        let size = self.size();
        if self.is_multiple() {
            size
        } else if self.ratio < 1.0 {
            format!("{size} {less}")
        } else {
            format!("{size} {more}")
        }
    }

    /// Returns the change without its direction, for a place beside a text that has it: `24%`, `2.40x`.
    pub(crate) fn size(&self) -> String {
        if self.is_multiple() {
            factor_within(self.ratio, self.interval)
        } else if self.ratio < 1.0 {
            percents_less(self.ratio)
        } else {
            percents_more(self.ratio)
        }
    }

    /// Returns the word between the amount and the base: `24% more CPU than a`, `2.40x as much CPU
    /// as a`.
    pub(crate) fn than(&self) -> &'static str {
        if self.is_multiple() { "as" } else { "than" }
    }

    /// Returns the interval in the form of the change, the smaller change first: `18% to 30%`.
    fn range(&self) -> Option<String> {
        let interval = self.interval?;
        let [low, high] = if self.is_multiple() {
            [interval.low, interval.high].map(|bound| interval.digits_of(bound) + "x")
        } else if self.ratio < 1.0 {
            [interval.high, interval.low].map(percents_less)
        } else {
            [interval.low, interval.high].map(percents_more)
        };

        Some(format!("{low} to {high}"))
    }

    /// Returns the interval with the repeats that it comes from: ` (18% to 30% over 5 repeats)`; nothing
    /// without an interval.
    pub(crate) fn range_over(&self, repeat_count: usize) -> String {
        match self.range() {
            Some(range) => format!(" ({range} over {})", counted(repeat_count, "repeat")),
            None => String::new(),
        }
    }
}

/// Formats the share of the base's amount that is gone: `40%`, `99.2%`.
fn percents_less(ratio: f64) -> String {
    match ratio {
        ..NOTHING_MAX => ">99.9%".to_owned(),
        ..LITTLE_MAX => format!("{:.1}%", 100.0 * (1.0 - ratio)),
        _ => percents(1.0 - ratio),
    }
}

/// Formats the share of the base's amount that came: `24%`.
fn percents_more(ratio: f64) -> String {
    // Bounds of two repeats may be extreme.
    if ratio > 1000.0 { factor(ratio) } else { percents(ratio - 1.0) }
}

/// Formats a share in whole percents, or with a decimal if it is small: `3.4%`, `24%`.
fn percents(share: f64) -> String {
    let percent = 100.0 * share;
    let decimals = usize::from(percent.abs() < 9.95);
    format!("{percent:.decimals$}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_is_a_share_and_more_is_a_share_up_to_twice() {
        for (ratio, text) in [
            (0.0, ">99.9% less"),
            (0.008, "99.2% less"),
            (0.17, "83% less"),
            (0.6, "40% less"),
            (0.966, "3.4% less"),
            (1.003, "0.3% more"),
            (1.034, "3.4% more"),
            (1.24, "24% more"),
            (1.99, "99% more"),
            (2.0, "2.00x as much"),
            (12.3, "12.3x as much"),
            (2000.0, ">1000x as much"),
        ] {
            assert_eq!(AmountChange::new(ratio, None).text(), text);
        }
        assert_eq!(AmountChange::new(2.4, None).short(), "2.40x");
        assert_eq!(AmountChange::new(0.6, None).duration_text(), "40% shorter");
        assert_eq!(AmountChange::new(1.24, None).duration_text(), "24% longer");
        assert_eq!(AmountChange::new(2.4, None).duration_text(), "2.40x as long");
        assert_eq!(AmountChange::new(2.4, None).than(), "as");
        assert_eq!(AmountChange::new(0.4, None).than(), "than");
    }

    #[test]
    fn an_interval_has_the_form_of_its_change() {
        let range = |ratio, low, high| {
            let interval = Interval { low, high, confidence: 0.95 };
            AmountChange::new(ratio, Some(interval)).range().unwrap()
        };
        assert_eq!(range(0.6, 0.55, 0.65), "35% to 45%");
        assert_eq!(range(1.24, 1.18, 1.305), "18% to 30%");
        assert_eq!(range(1.9, 1.7, 2.3), "70% to 130%");
        assert_eq!(range(2.4, 1.9, 3.0), "1.9x to 3.0x");
        assert_eq!(range(1.9, 1.1, 4000.0), "10% to >1000x");
    }
}
