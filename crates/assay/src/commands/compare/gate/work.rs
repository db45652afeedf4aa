//! Judges exact work.

use analysis::compare::{Compared, ComparedWork, Judged, Thresholds, WorkVerdict, judged_work};
use analysis::counted;

use crate::exit::Exit;
use crate::output::eprint_line;

/// Judges the exact work of connections, and prints what does not pass.
pub(super) fn judge(compared: &Compared, thresholds: &Thresholds) -> Exit {
    let judged = judged_work(compared, thresholds);
    let those = |wanted: Judged| -> Vec<&ComparedWork> {
        let found = judged.iter().filter(|(_, judged)| *judged == wanted);
        found.map(|(index, _)| &compared.work[*index]).collect()
    };
    let connections = compared.work.iter().filter(|work| work.part.connection.is_some()).count();
    let all = counted(connections, "comparison");

    let regressed = those(Judged::Regressed);
    if !regressed.is_empty() {
        eprint_line!("regression: exact work in {} of {all}", regressed.len());
        print(&regressed, compared, thresholds);
        return Exit::Regressed;
    }
    let doubtful = those(Judged::Doubtful);
    if doubtful.is_empty() {
        return Exit::Ok;
    }
    eprint_line!(
        "not certain: no regression is shown, but Assay can't judge exact work in {} of {all}",
        doubtful.len()
    );
    print(&doubtful, compared, thresholds);
    eprint_line!("help: more exact cells show smaller changes: raise `repeats` in `[exact]`");
    Exit::Invalid
}

fn print(work: &[&ComparedWork], compared: &Compared, thresholds: &Thresholds) {
    super::print_first(
        work.iter().map(|work| sentence(work, &compared.base, thresholds.of_work())),
    );
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

    let functions = work.functions.iter().flat_map(|changes| &changes.functions);
    if let Some(first) = functions.take(1).next().filter(|_| work.verdict == WorkVerdict::More) {
        text += &format!("; {:+.0} instructions in {}", first.difference, first.name);
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
                functions: vec![ChangedFunction {
                    name: "ExecInterpExpr".into(),
                    difference: 1310.4,
                    ..ChangedFunction::default()
                }],
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
            judge(&compared, &Thresholds { by_metric, ..Thresholds::default() })
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
