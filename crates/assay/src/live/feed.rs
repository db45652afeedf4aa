//! Sends the progress of a step while it runs.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use load::LatencyKind;
use record::IntervalRow;

use super::{BOUNDS, Count, Event, Latency, Live, Progress};

/// Collects what a step writes to its record, and sends it a few times a second.
#[derive(Default)]
pub struct StepFeed {
    counts: BTreeMap<(u32, &'static str), Count>,
    latencies: Vec<Latency>,
    elapsed_s: f64,
    lag_s: Option<f64>,
}

impl StepFeed {
    /// Takes rows of seconds that have ended.
    pub fn intervals(&mut self, rows: &[IntervalRow<'static>]) {
        for row in rows {
            let count = self.counts.entry((row.second, row.kind)).or_default();
            count.ok += row.ok;
            count.failed += row.failed;
            count.retried += row.retried;
            count.rows += row.rows;
        }
    }

    /// Takes the latencies of one kind of operation that ended in `second`.
    pub fn latencies(&mut self, second: u32, kind: &str, time: LatencyKind, all: &Histogram<u64>) {
        if time == LatencyKind::Failed {
            return;
        }
        let mut latency = Latency {
            second,
            kind: kind.into(),
            is_response: time == LatencyKind::Response,
            buckets: vec![0; BOUNDS.len() + 1],
            max_ns: all.max(),
            ..Latency::default()
        };

        // Once: there are thousands of buckets.
        for step in all.iter_recorded() {
            let (ns, count) = (step.value_iterated_to(), step.count_at_value());
            let least = all.lowest_equivalent(ns);
            latency.buckets[BOUNDS.partition_point(|&bound| bound < least)] += count;
            latency.sum_s += all.median_equivalent(ns) as f64 / 1e9 * count as f64;
            let quantiles = [(0.5, &mut latency.p50_ns), (0.99, &mut latency.p99_ns)];
            for (quantile, value) in quantiles {
                if *value == 0 && step.quantile() >= quantile {
                    *value = ns;
                }
            }
        }

        self.latencies.push(latency);
    }

    /// Sends what was collected so far, `elapsed_ns` after the step's start, with the lag of
    /// replicas now.
    pub fn progress(&mut self, live: &Live, elapsed_ns: u64, lag: Option<Duration>) {
        self.elapsed_s = elapsed_ns as f64 / 1e9;
        self.lag_s = lag.map(|lag| lag.as_secs_f64());
        self.send(live);
    }

    fn send(&mut self, live: &Live) {
        live.send(|| {
            let mut counts = Vec::new();
            for ((second, kind), count) in std::mem::take(&mut self.counts) {
                counts.push(Count { second, kind: kind.into(), ..count });
            }

            Event::Progress(Progress {
                elapsed_s: self.elapsed_s,
                lag_s: self.lag_s,
                counts,
                latencies: std::mem::take(&mut self.latencies),
            })
        });
    }

    /// Sends what remains at the end of the measurement.
    pub fn end(&mut self, live: &Live) {
        self.send(live);
        live.send(|| Event::Loaded);
    }
}
