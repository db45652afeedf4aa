//! Figures of steps that another tool measured: what its files have takes the place of what cannot
//! be computed from them, and the rest is not applicable.

use std::collections::BTreeMap;

use record::{ImportedStep, Step};
use words::METRICS;

use super::latency::{Buckets, Percentiles};
use super::{OpFigures, Series};

/// Metrics that need the seconds of the main operation.
const OF_SECONDS: [&str; 2] = ["p50", "p99"];

/// Returns whether a kind of operation was counted second by second.
pub(super) fn has_seconds(series: &Series, kind: &str) -> bool {
    series.ops.get(kind).is_some_and(|seconds| seconds.ok.iter().any(|ok| *ok > 0))
}

/// Replaces the metrics that the files have, and removes those that need seconds if there are
/// none.
pub(super) fn replace_metrics(
    step: &Step,
    series: &Series,
    metrics: &mut BTreeMap<&'static str, Option<f64>>,
) {
    let Some(imported) = &step.imported else {
        return;
    };

    let counted = step.main_operation().is_some_and(|kind| has_seconds(series, kind));
    if !counted {
        metrics.extend(OF_SECONDS.map(|name| (name, None)));
        metrics.insert("maxop", None);
    }

    let known = METRICS.iter().map(|metric| metric.name);
    for name in known {
        if let Some(value) = imported.metrics.get(name).filter(|value| value.is_finite()) {
            metrics.insert(name, Some(*value));
        }
    }
}

/// Replaces the times of a kind of operation that has no distribution.
pub(super) fn replace_times(imported: &ImportedStep, kind: &str, figures: &mut OpFigures) {
    let no_times = BTreeMap::new();
    let times = imported.times_us.get(kind).unwrap_or(&no_times);
    let time = |name: &str| times.get(name).copied().unwrap_or(f64::NAN);
    let percentiles = Percentiles {
        p50: time("p50"),
        p90: time("p90"),
        p95: time("p95"),
        p99: time("p99"),
        p99_9: time("p99.9"),
        p99_99: time("p99.99"),
        max: time("max"),
        mean: time("mean"),
    };

    let max_seconds = times.get("max").map_or(0.0, |max| max / 1e6);
    let counts = imported.buckets.get(kind).copied().unwrap_or_default();
    let buckets = Buckets { counts, max_seconds };

    figures.service_us = percentiles.clone();
    figures.response_us = percentiles;
    figures.service_buckets = buckets.clone();
    figures.response_buckets = buckets;
}
