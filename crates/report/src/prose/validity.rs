//! Remarks that say how far the figures of a report can be trusted.
//!
//! The verdict stands in the first line of each report, because a reader must not have to look for
//! it: a single figure that is not valid, or another program that used the processors, is reason
//! enough to doubt a comparison.

use analysis::{
    counted,
    figures::{ExactStep, Figures, Row},
};
use record::{Status, StepKind};
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
        let mut of_work: Vec<&ExactStep> = figures.exact.iter().collect();
        // Nothing of a step in which the engine settles is counted.
        of_work.retain(|step| step.row.kind != StepKind::Settle);
        let known = of_work.iter().filter(|step| step.missing().is_none()).count();
        let loads = of_work.iter().filter(|step| is_uncounted_load(step)).count();

        if known > 0 && known + loads == of_work.len() {
            let results = counted(known, "exact step result");
            let mut text = format!("work was counted in {results}");
            if loads > 0 {
                let uncounted = counted(loads, "load");
                text += &format!(", and not in {uncounted}, which ended before the warm-up did");
            }
            return Self { text, is_good: true };
        }

        let results = counted(of_work.len(), "exact step result");
        Self { text: format!("work was counted in {known} of {results}"), is_good: false }
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

/// Returns whether a step is a valid load that had too few operations to be counted.
fn is_uncounted_load(step: &ExactStep) -> bool {
    let row = &step.row;
    let is_valid = row.valid && row.status == Status::Complete;
    is_valid && row.kind == StepKind::Load && step.work.ended_in_warmup()
}

fn count(figures: &Figures, is_counted: impl Fn(&Row) -> bool) -> usize {
    figures.rows.iter().filter(|row| is_counted(row)).count()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use record::StepWork;
    use words::{WorkPart, WorkRole};

    use super::*;

    fn exact(kind: StepKind, missing: Option<&str>) -> ExactStep {
        let part = WorkPart {
            role: WorkRole::Serving,
            name: "event".to_owned(),
            operations: Vec::new(),
            instructions: 1,
            events: BTreeMap::new(),
        };
        ExactStep {
            row: Row { kind, status: Status::Complete, valid: true, ..Row::default() },
            work: StepWork {
                parts: if missing.is_none() { vec![part] } else { Vec::new() },
                missing: missing.map(str::to_owned),
                ..StepWork::default()
            },
            graphs: BTreeMap::new(),
        }
    }

    #[test]
    fn steps_that_exact_cells_do_not_count_are_not_called_missing() {
        let of = |steps: [ExactStep; 3]| {
            Validity::of_exact_steps(&Figures { exact: steps.into(), ..Figures::default() })
        };
        let too_short = "the step ended before its 1000 operations of warm-up, or did not complete";
        let settled = || exact(StepKind::Settle, Some(too_short));
        let counted_query = || exact(StepKind::Query, None);

        let good = of([exact(StepKind::Load, Some(too_short)), settled(), counted_query()]);
        assert_eq!(
            good.text,
            "work was counted in 1 exact step result, and not in 1 load, which ended before the warm-up did"
        );
        assert!(good.is_good);

        let short_query = exact(StepKind::Query, Some(too_short));
        let failed_load = exact(StepKind::Load, Some("callgrind does not answer"));
        for missing in [short_query, failed_load] {
            let bad = of([missing, settled(), counted_query()]);
            assert_eq!(bad.text, "work was counted in 1 of 2 exact step results");
            assert!(!bad.is_good);
        }
    }
}
