//! Judges exact work.

use analysis::compare::{Compared, ComparedWork, Judged, Thresholds, judged_work};
use analysis::counted;
use report::{JudgementOutcome, work_sentence};
use words::share_of;

/// The exact work of connections that does not pass.
pub(super) struct WorkJudgement<'a> {
    regressed: Vec<&'a ComparedWork>,
    doubtful: Vec<&'a ComparedWork>,
    /// The number of all connections that were compared.
    count: usize,
    base: &'a str,
    threshold: f64,
}

impl<'a> WorkJudgement<'a> {
    pub(super) fn of(compared: &'a Compared, thresholds: &Thresholds) -> Self {
        let judged = judged_work(compared, thresholds);
        let those = |wanted: Judged| {
            let found = judged.iter().filter(|(_, judged)| *judged == wanted);
            found.map(|(index, _)| &compared.work[*index]).collect()
        };

        Self {
            regressed: those(Judged::Regressed),
            doubtful: those(Judged::Doubtful),
            count: count(compared),
            base: &compared.base,
            threshold: thresholds.of_work(),
        }
    }

    pub(super) fn outcome(&self) -> JudgementOutcome {
        if !self.regressed.is_empty() {
            JudgementOutcome::Failed
        } else if !self.doubtful.is_empty() {
            JudgementOutcome::Undecided
        } else {
            JudgementOutcome::Passed
        }
    }

    /// Returns the result in one line; `None` if all pass.
    pub(super) fn headline(&self) -> Option<String> {
        match self.outcome() {
            JudgementOutcome::Failed => {
                let regressed = share_of(self.regressed.len(), self.count, "comparison");
                Some(format!("regression: exact work in {regressed}"))
            }
            JudgementOutcome::Undecided => {
                let doubtful = share_of(self.doubtful.len(), self.count, "comparison");
                Some(format!(
                    "not certain: no regression is shown, but Assay cannot judge exact work in {doubtful}"
                ))
            }
            _ => None,
        }
    }

    /// Returns a sentence for each connection that decided.
    pub(super) fn sentences(&self) -> impl ExactSizeIterator<Item = String> {
        let decided = if self.regressed.is_empty() { &self.doubtful } else { &self.regressed };
        decided.iter().map(|work| work_sentence(work, self.base, self.threshold))
    }
}

/// Counts the connections whose work was compared.
fn count(compared: &Compared) -> usize {
    compared.work.iter().filter(|work| work.part.connection.is_some()).count()
}

/// Returns what was judged: `exact work in 7 comparisons`.
pub(super) fn count_text(compared: &Compared) -> String {
    format!("exact work in {}", counted(count(compared), "comparison"))
}

#[cfg(test)]
mod tests {
    use analysis::compare::{ComparedPart, WorkVerdict};

    use super::*;

    fn work() -> ComparedWork {
        ComparedWork {
            cell: record::CellKey::new("pg.next", None, 1, 0),
            part: ComparedPart {
                connection: Some("query".into()),
                operations: vec!["query".into()],
            },
            ratio: Some(1.0213),
            floor: Some(0.0003),
            shown_from: Some(0.005),
            verdict: WorkVerdict::More,
            ..ComparedWork::default()
        }
    }

    #[test]
    fn more_work_fails_the_gate_and_doubt_only_if_it_was_asked_for() {
        let outcome = |work, thresholds: &[(&str, f64)]| {
            let compared = Compared { work: vec![work], ..Compared::default() };
            let by_metric = thresholds.iter().map(|(name, t)| ((*name).into(), *t)).collect();
            let thresholds = Thresholds { by_metric, ..Thresholds::default() };
            WorkJudgement::of(&compared, &thresholds).outcome()
        };
        assert_eq!(outcome(work(), &[]), JudgementOutcome::Failed);
        assert_eq!(outcome(work(), &[("work", 0.03)]), JudgementOutcome::Passed);
        let wild = ComparedWork {
            verdict: WorkVerdict::NotDeterministic,
            shown_from: Some(0.08),
            ..work()
        };
        assert_eq!(outcome(wild.clone(), &[]), JudgementOutcome::Passed);
        assert_eq!(outcome(wild, &[("work", 0.01)]), JudgementOutcome::Undecided);
    }
}
