//! The figures of a step that can be compared but are not among its metrics: the share of the
//! requested rate, fairness, and the times of its operations.

use words::OPERATION_TIMES;

use crate::figures::metrics::system_calls;
use crate::figures::{OpFigures, Percentiles, Row};

/// One of [`OPERATION_TIMES`], of one kind of operation.
struct OperationTime<'a> {
    /// The time counts from when the schedule wanted the operation, not from sending.
    is_response: bool,
    /// Such as `p99`: see [`Percentiles::NAMES`].
    statistic: &'a str,
    /// `None`: the step's main kind.
    kind: Option<&'a str>,
}

impl<'a> OperationTime<'a> {
    fn named(name: &'a str) -> Option<Self> {
        // Every value of every metric is asked for its time, and few are one.
        if !name.starts_with("response_") && !name.starts_with("service_") {
            return None;
        }

        let (time, kind) = match name.split_once(':') {
            Some((time, kind)) => (time, Some(kind)),
            None => (name, None),
        };
        if !OPERATION_TIMES.iter().any(|metric| metric.name == time) {
            return None;
        }

        let (which, statistic) = time.split_once('_')?;
        Some(Self { is_response: which == "response", statistic, kind })
    }

    fn operations<'r>(&self, row: &'r Row) -> Option<&'r OpFigures> {
        row.ops.get(self.kind.or(row.main_op.as_deref())?)
    }
}

/// Returns a figure of [`words::metric::STEP_FIGURES`] or [`OPERATION_TIMES`], or of one kind of
/// system call; `None`: not applicable.
pub(crate) fn figure(row: &Row, name: &str) -> Option<f64> {
    match name {
        "sla" => row.sla.as_ref().map(|sla| 100.0 * sla.achieved / sla.target),
        "fairness" => row.fairness.as_ref().map(|fairness| fairness.pct),
        _ if name.starts_with(system_calls::METRIC) => {
            system_calls::of_kind(&row.system_calls, name)
        }
        _ => {
            let time = OperationTime::named(name)?;
            let operations = time.operations(row)?;
            let times =
                if time.is_response { &operations.response_us } else { &operations.service_us };

            times.of_operations(time.statistic, operations.count)
        }
    }
}

/// Returns the number of operations that a metric needs, if a step has fewer of them.
pub fn operations_needed(row: &Row, metric: &str) -> Option<u64> {
    let time = OperationTime::named(metric)?;
    let needed = Percentiles::operations_needed(time.statistic)?;
    let count = time.operations(row)?.count;
    (count < needed).then_some(needed)
}

/// The number of bits of a histogram's value that are kept: three significant digits.
const HISTOGRAM_BITS: u32 = 11;

/// Returns the error of a percentile from the width of the histogram's buckets: the standard
/// deviation of a uniform distribution, as a share of the value. It is zero for other figures; the
/// longest time is exact.
pub(crate) fn rounding(metric: &str, value: f64) -> f64 {
    match OperationTime::named(metric) {
        Some(time) if time.statistic.starts_with('p') && value > 0.0 => {
            let ns = value * 1e3;
            let width = 1_u64 << (ns as u64 >> (HISTOGRAM_BITS - 1)).max(1).ilog2();
            width as f64 / 12.0_f64.sqrt() / ns
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn row(count: u64) -> Row {
        let times = |us: f64| Percentiles {
            p50: us,
            p99: 10.0 * us,
            p99_9: 20.0 * us,
            ..Percentiles::default()
        };
        let operations = |us: f64| OpFigures {
            count,
            service_us: times(us),
            response_us: times(2.0 * us),
            ..OpFigures::default()
        };
        Row {
            main_op: Some("query".into()),
            ops: BTreeMap::from([
                ("query".to_owned(), operations(1.0)),
                ("insert".to_owned(), operations(100.0)),
            ]),
            sla: Some(crate::figures::Sla {
                target: 200.0,
                achieved: 190.0,
                ..crate::figures::Sla::default()
            }),
            fairness: Some(crate::figures::Fairness {
                pct: 12.5,
                ..crate::figures::Fairness::default()
            }),
            ..Row::default()
        }
    }

    #[test]
    fn times_are_of_the_main_operation_or_of_the_kind_that_is_named() {
        let row = row(1000);
        assert_eq!(row.metric("response_p99"), Some(20.0));
        assert_eq!(row.metric("service_p50"), Some(1.0));
        assert_eq!(row.metric("response_p99:insert"), Some(2000.0));
        assert_eq!(row.metric("response_p99:delete"), None);
        assert_eq!(row.metric("sla"), Some(95.0));
        assert_eq!(row.metric("fairness"), Some(12.5));
    }

    #[test]
    fn a_percentile_of_too_few_operations_is_not_applicable() {
        assert_eq!(row(99).metric("response_p99"), None);
        assert_eq!(operations_needed(&row(99), "response_p99"), Some(100));
        assert_eq!(row(100).metric("response_p99"), Some(20.0));
        assert_eq!(operations_needed(&row(100), "response_p99"), None);
        assert_eq!(row(999).metric("response_p99.9"), None);
    }

    #[test]
    fn the_rounding_error_is_that_of_the_histogram() {
        let mut histogram = record::latency_histogram();
        for ns in [1_500, 5_000, 1_234_567, 9_876_543_210] {
            histogram.record(ns).unwrap();
            let width = histogram.equivalent_range(ns) as f64;
            let expected = width / 12.0_f64.sqrt() / ns as f64;
            let got = rounding("response_p99:get", ns as f64 / 1e3);
            assert!((got / expected - 1.0).abs() < 1e-9, "{ns}: {got} {expected}");
        }
        assert_eq!(rounding("response_max", 5.0), 0.0);
        assert_eq!(rounding("cpupq", 5.0), 0.0);
    }
}
