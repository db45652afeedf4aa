//! Merges what several processes measured in one step that they run together. Histograms and counts
//! are added, never averaged: a percentile of all operations cannot be computed from the percentiles
//! of the parts.

use std::ops::Range;

use hdrhistogram::Histogram;
use words::IntervalRow;

use crate::collect::{LatencyKind, ProgressMeter, Sink};
use crate::step::{StepEnd, StepOutcome};

/// The client and the kinds of operation of one connection.
pub type ConnectionKinds = (u32, Vec<&'static str>);

/// Merges the parts of a step into one sink and one outcome.
pub struct Merge<'a> {
    sink: &'a mut dyn Sink,
    progress: ProgressMeter,
    failed: u64,
}

impl<'a> Merge<'a> {
    /// Returns a merge that passes everything on to `sink`.
    pub fn new(sink: &'a mut dyn Sink) -> Self {
        Self { sink, progress: ProgressMeter::default(), failed: 0 }
    }

    /// Returns the number of operations that have failed, over all parts.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Adds rows of a part; see [`Sink::intervals`].
    ///
    /// # Errors
    /// The sink's own.
    pub fn intervals(&mut self, rows: &[IntervalRow<'static>]) -> Result<(), String> {
        for row in rows {
            self.failed += row.failed;
            self.progress.add(row.second, row.kind, row.ok, row.rows);
        }
        self.sink.intervals(rows)
    }

    /// Adds latencies of a part; see [`Sink::latencies`].
    ///
    /// # Errors
    /// The sink's own.
    pub fn latencies(
        &mut self,
        second: u32,
        kind: &str,
        time: LatencyKind,
        histogram: &Histogram<u64>,
    ) -> Result<(), String> {
        self.sink.latencies(second, kind, time, histogram)
    }

    /// Adds a sample of a host; see [`Sink::client_host`].
    ///
    /// # Errors
    /// The sink's own.
    pub fn client_host(
        &mut self,
        rank: u32,
        at_ns: u64,
        values: &[Option<i64>],
    ) -> Result<(), String> {
        self.sink.client_host(rank, at_ns, values)
    }

    /// Reports the progress at `now_ns` since the step began.
    ///
    /// # Errors
    /// The sink's own.
    pub fn tick(&mut self, now_ns: u64) -> Result<(), String> {
        self.sink.progress(self.progress.at(now_ns))
    }

    /// Returns the outcome of the whole step, given that of each part and its connections.
    ///
    /// # Errors
    /// The sink's own.
    pub fn finish(
        self,
        parts: Vec<(Vec<ConnectionKinds>, StepOutcome)>,
    ) -> Result<StepOutcome, String> {
        let elapsed_ns = parts.iter().map(|(_, part)| part.elapsed_ns).max().unwrap_or(0);
        let mut whole = StepOutcome { elapsed_ns, ..StepOutcome::default() };
        let mut reasons = Vec::new();
        for (connections, part) in parts {
            // Every connection has a row for every second of the step, also for those in which only
            // other parts worked.
            let idle = seconds(part.elapsed_ns)..seconds(whole.elapsed_ns);
            self.sink.intervals(&idle_rows(idle, &connections))?;

            match part.end {
                StepEnd::Complete => {}
                StepEnd::Failed(why) => reasons.extend(why),
                StepEnd::Interrupted => whole.end = StepEnd::Interrupted,
            }

            whole.connections.extend(part.connections);
            whole.summaries.extend(part.summaries);
            for (kind, ops) in &part.totals {
                whole.totals.entry(kind.clone()).or_default().add(ops);
            }
            whole.handover_wait_ns_max = whole.handover_wait_ns_max.max(part.handover_wait_ns_max);
        }

        // If one part fails, the others are interrupted. The step as a whole has failed.
        if !reasons.is_empty() {
            whole.end = StepEnd::Failed(reasons);
        }

        // As a single process orders them: by client.
        whole.connections.sort_by_key(|connection| connection.client);
        Ok(whole)
    }
}

/// Returns the number of seconds of a step, of which the last may be incomplete.
fn seconds(elapsed_ns: u64) -> u32 {
    elapsed_ns.div_ceil(1_000_000_000) as u32
}

/// Returns the rows of connections that did nothing in these seconds.
fn idle_rows(idle: Range<u32>, connections: &[ConnectionKinds]) -> Vec<IntervalRow<'static>> {
    let mut rows = Vec::new();
    for second in idle {
        for (client, kinds) in connections {
            for kind in kinds {
                rows.push(IntervalRow { second, client: *client, kind, ..IntervalRow::default() });
            }
        }
    }
    rows
}
