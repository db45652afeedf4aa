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
        reasons.push(
            match step.status {
                Status::Failed => "the step failed",
                Status::Interrupted => "the step was interrupted",
                _ => "the step was never finished",
            }
            .to_owned(),
        );
    }
    for (kind, ops) in &step.ops {
        reasons.extend(unbalanced(kind, ops));
        if step.status == Status::Failed {
            // Its files end where they could no longer be written, and its reason is known.
            continue;
        }
        let default = OpSeries::default();
        let seconds = series.get(kind).unwrap_or(&default);
        let histogram = |time: &str| histograms.get(&format!("{kind}.{time}"));
        let service = histogram("service").map_or(0, Histogram::len);
        // Kinds without a schedule have no response times.
        let response = histogram("response").map_or(service, Histogram::len);
        let sum = |counts: &[u64]| counts.iter().sum();
        let (intervals, latencies) = ("intervals.parquet", "latency_total.hlog");
        let (of_service, of_response) =
            (format!("{latencies} (service time)"), format!("{latencies} (response time)"));
        for (what, total, found, place) in [
            ("successes", ops.ok, sum(&seconds.ok), intervals),
            ("failures", ops.failed, sum(&seconds.failed), intervals),
            ("rows", ops.rows, sum(&seconds.rows), intervals),
            ("successes", ops.ok, service, &of_service),
            ("successes", ops.ok, response, &of_response),
        ] {
            if total != found {
                reasons.push(format!("`{kind}`: {total} {what} in step.json, {found} in {place}"));
            }
        }
    }
    let is_failed = step.status == Status::Failed;
    for kind in series.keys().filter(|kind| !is_failed && !step.ops.contains_key(*kind)) {
        reasons.push(format!("`{kind}` is in intervals.parquet and not in step.json"));
    }
    reasons
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
    fn an_incomplete_step_is_named_even_without_a_recorded_reason() {
        for status in [Status::Failed, Status::Interrupted, Status::Incomplete] {
            let step = Step { status, ..Step::default() };
            assert_eq!(contradictions(&step, &BTreeMap::new(), &BTreeMap::new()).len(), 1);
        }
    }
}
