//! Checks that a step's record does not contradict itself. A step that does is invalid.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use record::{Ops, Status, Step};

use crate::figures::OpSeries;

/// Returns the reasons why a step's figures are invalid, beyond the reasons that the record itself
/// gives.
pub(crate) fn contradictions(
    step: &Step,
    series: &BTreeMap<String, OpSeries>,
    histograms: &BTreeMap<String, Histogram<u64>>,
) -> Vec<String> {
    let mut reasons = Vec::new();
    if step.status != Status::Complete && step.reasons.is_empty() {
        reasons.push(ended(step.status).to_owned());
    }

    // The files of a failed step end where they could no longer be written, and its reason is
    // known. Other tools round their seconds, or have none.
    let has_whole_files = step.status != Status::Failed && step.imported.is_none();
    let no_seconds = OpSeries::default();
    for (kind, ops) in &step.ops {
        reasons.extend(unbalanced(kind, ops));
        if has_whole_files {
            let seconds = series.get(kind).unwrap_or(&no_seconds);
            reasons.extend(differences_from_seconds(kind, ops, seconds));
            reasons.extend(differences_from_latencies(kind, ops, histograms));
        }
    }

    // A step that was interrupted may have ended before it was added up.
    let has_totals = step.status != Status::Interrupted || !step.ops.is_empty();
    if has_whole_files && has_totals {
        for kind in series.keys().filter(|kind| !step.ops.contains_key(*kind)) {
            reasons.push(format!(
                "the seconds of `{kind}` were recorded, but not their sum (`step.json`): measure the repeat again"
            ));
        }
    }
    reasons
}

fn ended(status: Status) -> &'static str {
    match status {
        Status::Failed => "the step failed",
        Status::Interrupted => "the step was interrupted",
        _ => "the step was never finished",
    }
}

/// Compares totals with the sums of all seconds.
fn differences_from_seconds(kind: &str, ops: &Ops, seconds: &OpSeries) -> Vec<String> {
    let counts = [
        ("successes", ops.ok, &seconds.ok),
        ("failures", ops.failed, &seconds.failed),
        ("rows", ops.rows, &seconds.rows),
    ];

    let reasons = counts.into_iter().filter_map(|(what, total, seconds)| {
        difference(kind, what, total, seconds.iter().sum(), "intervals.parquet")
    });
    reasons.collect()
}

/// Compares successes with the operations in the histograms.
fn differences_from_latencies(
    kind: &str,
    ops: &Ops,
    histograms: &BTreeMap<String, Histogram<u64>>,
) -> Vec<String> {
    let service = histograms.get(&format!("{kind}.service")).map_or(0, Histogram::len);
    // Kinds without a schedule have no response times.
    let response = histograms.get(&format!("{kind}.response")).map_or(service, Histogram::len);

    let counts = [("service time", service), ("response time", response)];
    let reasons = counts.into_iter().filter_map(|(time, found)| {
        let file = format!("latency_total.hlog ({time})");
        difference(kind, "successes", ops.ok, found, &file)
    });
    reasons.collect()
}

fn difference(kind: &str, what: &str, total: u64, found: u64, file: &str) -> Option<String> {
    (total != found).then(|| format!("`{kind}`: {total} {what} in step.json, {found} in {file}"))
}

/// Returns the error if `offered = skipped + ok + failed` does not hold.
fn unbalanced(kind: &str, ops: &Ops) -> Option<String> {
    let Ops { offered, skipped, ok, failed, .. } = *ops;
    let sum = u128::from(skipped) + u128::from(ok) + u128::from(failed);
    (u128::from(offered) != sum).then(|| {
        format!("`{kind}`: {offered} operations offered, but {skipped} skipped + {ok} ok + {failed} failed = {sum}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(ops: Ops) -> Step {
        let status = Status::Complete;
        Step { status, ops: BTreeMap::from([("insert".to_owned(), ops)]), ..Step::default() }
    }

    fn seconds(ok: &[u64]) -> BTreeMap<String, OpSeries> {
        let rows = ok.iter().map(|ok| ok * 50).collect();
        let series = OpSeries { ok: ok.to_vec(), failed: vec![0, 1], rows, ..OpSeries::default() };
        BTreeMap::from([("insert".to_owned(), series)])
    }

    fn latencies(count: u64) -> BTreeMap<String, Histogram<u64>> {
        let mut histogram = record::latency_histogram();
        histogram.record_n(1000, count).unwrap();
        ["insert.service", "insert.response"].map(|tag| (tag.to_owned(), histogram.clone())).into()
    }

    fn balanced() -> Ops {
        Ops { offered: 8, skipped: 2, ok: 5, failed: 1, rows: 250, ..Ops::default() }
    }

    #[test]
    fn a_record_that_agrees_has_no_contradictions() {
        assert_eq!(
            contradictions(&step(balanced()), &seconds(&[2, 3]), &latencies(5)),
            Vec::<String>::new()
        );
    }

    #[test]
    fn operations_that_went_missing_are_found() {
        let ops = Ops { offered: 9, ..balanced() };
        let reasons = contradictions(&step(ops), &seconds(&[2, 3]), &latencies(5));
        assert_eq!(
            reasons,
            ["`insert`: 9 operations offered, but 2 skipped + 5 ok + 1 failed = 8"]
        );
    }

    #[test]
    fn a_sum_that_overflows_is_found_and_does_not_panic() {
        let ops = Ops { skipped: u64::MAX, ..balanced() };
        let reasons = contradictions(&step(ops), &seconds(&[2, 3]), &latencies(5));
        assert_eq!(reasons.len(), 1);
    }

    #[test]
    fn seconds_and_latencies_that_went_missing_are_found() {
        let reasons = contradictions(&step(balanced()), &seconds(&[2, 2]), &latencies(4));
        assert_eq!(
            reasons,
            [
                "`insert`: 5 successes in step.json, 4 in intervals.parquet",
                "`insert`: 250 rows in step.json, 200 in intervals.parquet",
                "`insert`: 5 successes in step.json, 4 in latency_total.hlog (service time)",
                "`insert`: 5 successes in step.json, 4 in latency_total.hlog (response time)",
            ]
        );
    }

    #[test]
    fn seconds_without_a_sum_are_found_unless_the_step_was_interrupted() {
        let reasons = |status| {
            let step = Step { status, ..Step::default() };
            contradictions(&step, &seconds(&[2, 3]), &BTreeMap::new())
        };
        assert_eq!(
            reasons(Status::Complete),
            [
                "the seconds of `insert` were recorded, but not their sum (`step.json`): measure the repeat again"
            ]
        );
        assert_eq!(reasons(Status::Interrupted), ["the step was interrupted"]);
    }

    #[test]
    fn an_incomplete_step_is_named_even_without_a_recorded_reason() {
        for status in [Status::Failed, Status::Interrupted, Status::Incomplete] {
            let step = Step { status, ..Step::default() };
            assert_eq!(contradictions(&step, &BTreeMap::new(), &BTreeMap::new()).len(), 1);
        }
    }
}
