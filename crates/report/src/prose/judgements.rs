//! The judgments of the gate and of requirements, a sentence each.

use analysis::compare::{
    ComparedStep, ComparedWork, Interval, RequirementResult, THROUGHPUT, Verdict, WorkVerdict,
    gate_interval, metric_label,
};
use words::share_of;

use crate::model::number::fixed;
use crate::tables::compared::ratio_with_bounds;
use crate::tables::compared::requirements::{measured_text, measured_unit};

/// Returns the judgment of a comparison: its verdict, its ratio to the `base`, the threshold
/// `limit`, a share, and the interval that decides where it is not that of the verdict.
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
        text += &format!(" of {base}; the threshold is {}", percent(limit));
    }

    // The verdict of two that are equal rests on this interval as well.
    let is_shown = row.verdict == Verdict::Equal;
    if let Some(interval) = gate_interval(row, limit).filter(|_| !is_shown) {
        text += &format!(", and the {} decides", gate_interval_text(&interval));
    }

    if !row.reasons.is_empty() {
        text += &format!("; {}", row.reasons.join("; "));
    }
    text
}

/// Returns what the gate rules out in `count` comparisons of one metric, of which `closest` is the
/// closest to the threshold `limit`, a share. `None` if that has no interval.
pub fn ruled_out_sentence(closest: &ComparedStep, limit: f64, count: usize) -> Option<String> {
    let interval = gate_interval(closest, limit)?;
    Some(format!(
        "{}: {} of more than {} is ruled out in {} (closest: {} {}, {})",
        metric_label(&closest.metric),
        if closest.more_is_better { "a loss" } else { "an increase" },
        percent(limit),
        share_of(count, count, "comparison"),
        closest.cell.target_and_load(),
        closest.step,
        gate_interval_text(&interval)
    ))
}

/// Formats the interval by which the gate decides: `90% interval 1.003-1.058`. It has more digits
/// than that of a verdict, since a threshold can be close.
fn gate_interval_text(interval: &Interval) -> String {
    let confidence = fixed(100.0 * interval.confidence, 0);
    let (low, high) = (bound_text(interval, interval.low), bound_text(interval, interval.high));
    let between = if high.starts_with('>') { " to " } else { "-" };
    format!("{confidence}% interval {low}{between}{high}")
}

fn bound_text(interval: &Interval, bound: f64) -> String {
    if (0.001..=1000.0).contains(&bound) { fixed(bound, 3) } else { interval.digits_of(bound) }
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

/// Returns the result of a requirement, with the measured value.
pub fn requirement_sentence(result: &RequirementResult) -> String {
    let target = result.cell.target_and_load();
    let mut text = format!("{}: {} for {target}", result.verdict, result.requirement.text);
    if let Some(measured) = measured_text(result) {
        let unit = measured_unit(&result.requirement);
        text += format!("; measured {measured} {unit}").trim_end();
    }
    text
}

#[cfg(test)]
mod tests {
    use analysis::compare::{
        ChangedFunction, ComparedPart, GivenUnit, Interval, Requirement, RequirementVerdict,
        WorkChanges,
    };

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
        let of_fine_limit = comparison_sentence(&noisy, "pg.base", 0.0125);
        assert!(of_fine_limit.contains("the threshold is 1.25%;"), "{of_fine_limit}");
    }

    #[test]
    fn the_interval_that_decides_is_shown_where_the_verdict_has_another() {
        let mut noisy = row(THROUGHPUT, Verdict::TooNoisy);
        noisy.ratio = Some(1.03);
        noisy.interval = Some(Interval { low: 0.97, high: 1.09, confidence: 0.995 });
        noisy.equality = Some(Interval { low: 1.003, high: 1.058, confidence: 0.9 });
        assert_eq!(
            comparison_sentence(&noisy, "pg.base", 0.03),
            "pg.next c8 l.i1: too noisy to say, 1.03 (0.97-1.09) of pg.base; the threshold is 3%, and the 90% interval \
             1.003-1.058 decides"
        );
        assert_eq!(
            ruled_out_sentence(&noisy, 0.03, 2).unwrap(),
            "throughput: a loss of more than 3% is ruled out in both comparisons (closest: pg.next c8 l.i1, 90% \
             interval 1.003-1.058)"
        );

        let equal = ComparedStep { verdict: Verdict::Equal, interval: noisy.equality, ..noisy };
        let sentence = comparison_sentence(&equal, "pg.base", 0.03);
        assert!(!sentence.contains("decides"), "{sentence}");
        let cost = ComparedStep { more_is_better: false, ..equal };
        let sentence = ruled_out_sentence(&cost, 0.1, 1).unwrap();
        assert!(sentence.contains("an increase of more than 10% is ruled out in the only"));
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
    fn the_sentence_of_a_requirement_has_the_measured_value_if_there_is_one() {
        let missed = RequirementResult {
            requirement: Requirement {
                text: "point-query throughput > 90k".into(),
                metric: THROUGHPUT.into(),
                ..Requirement::default()
            },
            cell: record::CellKey::new("pg.next", None, 8, 0),
            mean: Some(37_634.0),
            verdict: RequirementVerdict::Missed,
            ..RequirementResult::default()
        };
        let sentence = "missed: point-query throughput > 90k for pg.next c8";
        assert_eq!(requirement_sentence(&missed), format!("{sentence}; measured 37,634 /s"));
        let absent = RequirementResult { mean: None, ..missed };
        assert_eq!(requirement_sentence(&absent), sentence);
    }

    #[test]
    fn the_measured_value_of_a_requirement_has_the_unit_of_the_bound() {
        let requirement = Requirement {
            text: "readrandom response_max < 5ms".into(),
            metric: "response_max".into(),
            given_unit: Some(GivenUnit { name: "ms".into(), size: 1000.0 }),
            ..Requirement::default()
        };
        let missed = RequirementResult {
            requirement,
            cell: record::CellKey::new("r10.a", None, 8, 0),
            mean: Some(38_960.0),
            interval: Some(Interval { low: 8_120.0, high: 190_420.0, confidence: 0.95 }),
            verdict: RequirementVerdict::Missed,
            ..RequirementResult::default()
        };
        let sentence = requirement_sentence(&missed);
        assert!(sentence.ends_with("; measured 38.96 (8.12-190.42) ms"), "{sentence}");
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
