//! The judgments of the gate and of requirements, a sentence each.

use analysis::compare::{
    ComparedStep, ComparedWork, RequirementResult, THROUGHPUT, Verdict, WorkVerdict, metric_label,
};

use crate::tables::compared::ratio_with_bounds;

/// Returns the judgment of a comparison: its verdict, its ratio to the `base`, and the threshold
/// `limit`, a share.
pub fn comparison_sentence(row: &ComparedStep, base: &str, limit: f64) -> String {
    let mut text = row.cell.target.clone();
    if let Some(variant) = &row.cell.variant {
        text += &format!(" {variant}");
    }

    text += &format!(" c{} {}: ", row.cell.clients, row.step);
    if row.metric != THROUGHPUT {
        text += &format!("{} ", metric_label(&row.metric));
    }

    text += &match (row.verdict, row.more_is_better) {
        (Verdict::Slower, false) => "higher".to_owned(),
        (verdict, _) => verdict.to_string(),
    };

    if let Some(ratio) = row.ratio {
        text += &format!(", {}", ratio_with_bounds(ratio, row.interval));
        let percent = format!("{:.1}", limit * 100.0);
        let percent = percent.trim_end_matches(".0");
        text += &format!(" of {base}; the threshold is {percent}%");
    }

    if !row.reasons.is_empty() {
        text += &format!("; {}", row.reasons.join("; "));
    }
    text
}

/// Returns the judgment of a connection's work, with the threshold `limit`, a share.
pub fn work_sentence(work: &ComparedWork, base: &str, limit: f64) -> String {
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

/// Returns the result of a requirement.
pub fn requirement_sentence(result: &RequirementResult) -> String {
    let target = result.cell.target_and_load();
    format!("{}: {} for {target}", result.verdict, result.requirement.text)
}

#[cfg(test)]
mod tests {
    use analysis::compare::{ChangedFunction, ComparedPart, Interval, WorkChanges};

    use super::*;

    fn row(metric: &str, verdict: Verdict) -> ComparedStep {
        ComparedStep {
            cell: record::CellKey::new("pg.next", None, 8, 0),
            step: "l.i1".into(),
            metric: metric.into(),
            more_is_better: metric == THROUGHPUT,
            verdict,
            ..ComparedStep::default()
        }
    }

    #[test]
    fn a_cost_that_grew_is_higher() {
        let own = row("own_cpu_us_per_op", Verdict::Slower);
        assert_eq!(
            comparison_sentence(&own, "pg.base", 0.03),
            "pg.next c8 l.i1: own CPU per operation higher"
        );
    }

    #[test]
    fn the_sentence_of_a_comparison_has_its_reasons() {
        let mut noisy = row(THROUGHPUT, Verdict::TooNoisy);
        (noisy.cell.variant, noisy.ratio) = (Some("cached".into()), Some(0.9712));
        noisy.interval = Some(Interval { low: 0.9, high: 1.05, confidence: 0.95 });
        noisy.reasons = vec!["pg.next, repeat 2 is left out: it failed".into()];
        assert_eq!(
            comparison_sentence(&noisy, "pg.base", 0.025),
            "pg.next cached c8 l.i1: too noisy to say, 0.97 (0.90-1.05) of pg.base; the threshold is 2.5%; \
             pg.next, repeat 2 is left out: it failed"
        );
    }

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
            work_sentence(&work(), "pg.base", 0.0),
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
            work_sentence(&wild, "pg.base", 0.01),
            "pg.next q100: exact work of query: not deterministic, 1.0213 of pg.base; a change of 8% is shown; \
             the threshold is 1%; pg.next, exact cell 3 is left out: it failed"
        );
    }
}
