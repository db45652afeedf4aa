//! Judges exact work.

use analysis::compare::{Compared, ComparedWork, Judged, Thresholds, WorkVerdict, judged_work};
use analysis::counted;

use crate::exit::Exit;

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

    pub(super) fn exit(&self) -> Exit {
        if !self.regressed.is_empty() {
            Exit::Regressed
        } else if !self.doubtful.is_empty() {
            Exit::Invalid
        } else {
            Exit::Ok
        }
    }

    /// Returns the result in one line; `None` if all pass.
    pub(super) fn headline(&self) -> Option<String> {
        let all = counted(self.count, "comparison");
        match self.exit() {
            Exit::Regressed => {
                Some(format!("regression: exact work in {} of {all}", self.regressed.len()))
            }
            Exit::Invalid => Some(format!(
                "not certain: no regression is shown, but Assay can't judge exact work in {} of {all}",
                self.doubtful.len()
            )),
            _ => None,
        }
    }

    /// Returns a sentence for each connection that decided.
    pub(super) fn sentences(&self) -> impl ExactSizeIterator<Item = String> {
        let decided = if self.regressed.is_empty() { &self.doubtful } else { &self.regressed };
        decided.iter().map(|work| sentence(work, self.base, self.threshold))
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

/// Returns the judgement of a connection's work in a sentence.
pub(in crate::commands::compare) fn sentence(
    work: &ComparedWork,
    base: &str,
    limit: f64,
) -> String {
    let mut text = work.cell.target.clone();
    if let Some(variant) = &work.cell.variant {
        text += &format!(" {variant}");
    }
    text += &format!(" {}: exact work of {}: {}", work.step, work.part.name(), work.verdict);
    if let Some(ratio) = work.ratio {
        text += &format!(", {ratio:.4} of {base}");
    }
    if let Some(shown_from) = work.shown_from {
        text += &format!("; a change of {} is shown", percent(shown_from));
    }
    if limit > 0.0 {
        text += &format!("; the threshold is {}", percent(limit));
    }

    if work.verdict == WorkVerdict::More
        && let Some(function) = work.main_function()
    {
        text += &format!("; {:+.0} instructions in {}", function.difference, function.name);
    }

    if !work.reasons.is_empty() {
        text += &format!("; {}", work.reasons.join("; "));
    }

    text
}

fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use analysis::compare::{ChangedFunction, ComparedPart, WorkChanges};

    use super::*;

    fn changed(name: &str, difference: f64) -> ChangedFunction {
        ChangedFunction { name: name.into(), difference, ..ChangedFunction::default() }
    }

    fn work() -> ComparedWork {
        ComparedWork {
            cell: record::CellKey::new("pg.next", None, 1, 0),
            step: "q100".into(),
            part: ComparedPart {
                connection: Some("query".into()),
                operations: vec!["query".into()],
            },
            ratio: Some(1.0213),
            floor: Some(0.0003),
            shown_from: Some(0.005),
            verdict: WorkVerdict::More,
            functions: Some(WorkChanges {
                // The largest change is that of a function that does less.
                functions: vec![changed("prepare", -1682.0), changed("ExecInterpExpr", 1310.4)],
                shifts: Vec::new(),
            }),
            ..ComparedWork::default()
        }
    }

    #[test]
    fn the_sentence_of_work_has_its_ratio_and_the_function() {
        assert_eq!(
            sentence(&work(), "pg.base", 0.0),
            "pg.next q100: exact work of query: more work, 1.0213 of pg.base; a change of 0.5% is shown; \
             +1310 instructions in ExecInterpExpr"
        );
        let wild = ComparedWork {
            verdict: WorkVerdict::NotDeterministic,
            shown_from: Some(0.08),
            reasons: vec!["pg.next, exact cell 3 is left out: it failed".into()],
            ..work()
        };
        assert_eq!(
            sentence(&wild, "pg.base", 0.01),
            "pg.next q100: exact work of query: not deterministic, 1.0213 of pg.base; a change of 8% is shown; \
             the threshold is 1%; pg.next, exact cell 3 is left out: it failed"
        );
    }

    #[test]
    fn more_work_fails_the_gate_and_doubt_only_if_it_was_asked_for() {
        let exit = |work, thresholds: &[(&str, f64)]| {
            let compared = Compared { work: vec![work], ..Compared::default() };
            let by_metric = thresholds.iter().map(|(name, t)| ((*name).into(), *t)).collect();
            let thresholds = Thresholds { by_metric, ..Thresholds::default() };
            WorkJudgement::of(&compared, &thresholds).exit()
        };
        assert_eq!(exit(work(), &[]), Exit::Regressed);
        assert_eq!(exit(work(), &[("work", 0.03)]), Exit::Ok);
        let wild = ComparedWork {
            verdict: WorkVerdict::NotDeterministic,
            shown_from: Some(0.08),
            ..work()
        };
        assert_eq!(exit(wild.clone(), &[]), Exit::Ok);
        assert_eq!(exit(wild, &[("work", 0.01)]), Exit::Invalid);
    }
}
