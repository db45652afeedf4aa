//! Remarks that say how far the figures of a report can be trusted.
//!
//! The verdict stands in the first line of each report, because a reader must not have to look for
//! it: a single figure that is not valid, or another program that used the processors, is reason
//! enough to doubt a comparison.

use analysis::{
    counted,
    figures::{Figures, Row},
};
use record::Status;
use words::capitalized;

use super::uneven;

/// The validity of all figures.
pub(crate) struct Validity {
    /// The numbers of valid and other steps, in a few words.
    pub text: String,
    /// True if there is no reason to doubt any figure.
    pub is_good: bool,
}

impl Validity {
    pub(crate) fn of(figures: &Figures) -> Self {
        let steps = Self::of_steps(figures);
        match uneven::busy(figures) {
            Some(busy) if steps.is_good => {
                Self { text: format!("{}, but {busy}", steps.text), is_good: false }
            }
            Some(busy) => Self { text: format!("{}; {busy}", steps.text), is_good: false },
            None => steps,
        }
    }

    /// Returns the validity of a run that counted work and measured no time. How busy the host was
    /// does not matter to it.
    fn of_exact_steps(figures: &Figures) -> Self {
        let all = figures.exact.len();
        let known = figures.exact.iter().filter(|step| step.missing().is_none()).count();
        let results = counted(all, "exact step result");
        if known == all {
            Self { text: format!("work was counted in {results}"), is_good: true }
        } else {
            Self { text: format!("work was counted in {known} of {results}"), is_good: false }
        }
    }

    /// Returns the validity of the steps, whatever else ran at the same time.
    fn of_steps(figures: &Figures) -> Self {
        let missing = figures.missing.len();
        let all = figures.rows.len() + missing;
        let complete = count(figures, |row| row.status == Status::Complete);
        let valid = count(figures, |row| row.status == Status::Complete && row.valid);
        let damaged = count(figures, |row| row.damaged);
        let cells = figures.unfinished.len();

        if all == 0 && !figures.exact.is_empty() {
            return Self::of_exact_steps(figures);
        }

        if all == 0 {
            return Self { text: "nothing was measured".to_string(), is_good: false };
        }

        if valid == all && cells == 0 {
            let text = match all {
                1 => "the only step is valid".to_string(),
                _ => format!("all {all} step results are valid"),
            };
            return Self { text, is_good: true };
        }

        let mut texts = vec![format!("{valid} of {} valid", counted(all, "step result"))];
        let shortfalls = [
            (complete - valid, "invalid"),
            (all - complete - damaged - missing, "not finished"),
            (damaged, "damaged"),
            (missing, "missing"),
        ];
        for (count, what) in shortfalls {
            if count > 0 {
                texts.push(format!("{count} {what}"));
            }
        }

        if cells > 0 {
            texts.push(format!("{} not finished", counted(cells, "cell")));
        }

        Self { text: texts.join(", "), is_good: false }
    }

    /// Returns the reason to doubt the figures as a sentence, if there is one.
    pub(crate) fn doubt(self) -> Option<String> {
        (!self.is_good).then(|| format!("{}.", capitalized(&self.text)))
    }
}

fn count(figures: &Figures, is_counted: impl Fn(&Row) -> bool) -> usize {
    figures.rows.iter().filter(|row| is_counted(row)).count()
}
