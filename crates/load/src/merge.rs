//! A step that several processes run together: merges what each of them measured. Histograms and
//! counts are added, never averaged.

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

    /// Returns the operations that have failed, over all parts.
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
        let elapsed_ns = parts.iter().map(|(_, part)| part.elapsed_ns).max();
        let mut whole =
            StepOutcome { elapsed_ns: elapsed_ns.unwrap_or(0), ..StepOutcome::default() };
        let seconds = |elapsed_ns: u64| elapsed_ns.div_ceil(1_000_000_000) as u32;
        let mut reasons = Vec::new();
        for (connections, part) in parts {
            // The seconds in which only other parts worked.
            let idle = seconds(part.elapsed_ns)..seconds(whole.elapsed_ns);
            let zeros = idle.flat_map(|second| {
                let kinds = connections
                    .iter()
                    .flat_map(|(client, kinds)| kinds.iter().map(|kind| (*client, *kind)));
                kinds.map(move |(client, kind)| IntervalRow {
                    second,
                    client,
                    kind,
                    ..IntervalRow::default()
                })
            });
            self.sink.intervals(&zeros.collect::<Vec<_>>())?;
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
            let waited_ns = whole.handover_wait_ns_max.max(part.handover_wait_ns_max);
            whole.handover_wait_ns_max = waited_ns;
        }
        // Where one part fails, the others are interrupted.
        if !reasons.is_empty() {
            whole.end = StepEnd::Failed(reasons);
        }
        // As a single process orders them: by client.
        whole.connections.sort_by_key(|connection| connection.client);
        Ok(whole)
    }
}
