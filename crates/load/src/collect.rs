//! The collector: takes what the workers counted, second by second, and passes it on to the record.
//! It works on the thread that started the step, outside of the measured path.

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use words::{IntervalRow, Ops};
use workload::{OpKind, Schedule, Task};

use crate::new_histogram;
use crate::tally::{Lap, Tally};

/// A kind of latency: when it begins, and for which operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LatencyKind {
    /// From sending to reply.
    Service,
    /// From the time at which the operation was due to the reply. Kinds of operations without a
    /// schedule have no response time, since it would equal the service time.
    Response,
    /// From sending to failure, of operations that failed after all attempts.
    Failed,
}

impl LatencyKind {
    /// Returns the kind's name in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Response => "response",
            Self::Failed => "failed",
        }
    }
}

/// The progress of a step, for a display.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The time since the step began.
    pub elapsed_ns: u64,
    /// Operations of the last second that every running connection has reported, by kind;
    /// `None` before the first.
    pub last_second: Option<BTreeMap<&'static str, OpCount>>,
    /// Operations since the step began, by kind.
    pub total: BTreeMap<&'static str, OpCount>,
}

/// Operations of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpCount {
    /// Operations that succeeded.
    pub ok: u64,
    /// The rows of these operations.
    pub rows: u64,
}

impl OpCount {
    fn add(&mut self, ok: u64, rows: u64) {
        self.ok += ok;
        self.rows += rows;
    }
}

/// Follows the progress of a step.
#[derive(Default)]
pub(crate) struct ProgressMeter {
    progress: Progress,
    by_second: BTreeMap<(u32, &'static str), OpCount>,
}

impl ProgressMeter {
    /// Adds operations that ended in `second`.
    pub(crate) fn add(&mut self, second: u32, kind: &'static str, ok: u64, rows: u64) {
        self.progress.total.entry(kind).or_default().add(ok, rows);
        self.by_second.entry((second, kind)).or_default().add(ok, rows);
    }

    /// Returns the progress at `now_ns` since the step began.
    pub(crate) fn at(&mut self, now_ns: u64) -> &Progress {
        let second = (now_ns / 1_000_000_000) as u32;
        self.progress.elapsed_ns = now_ns;
        if let Some(last) = second.checked_sub(1 + SECONDS_KEPT) {
            let of_last_second = self.by_second.range((last, "")..(last + 1, ""));
            let counts = of_last_second.map(|(&(_, kind), &count)| (kind, count)).collect();
            self.progress.last_second = Some(counts);
            self.by_second = self.by_second.split_off(&(last, ""));
        }
        &self.progress
    }
}

/// Thread ids of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionThreads {
    /// The client's thread; `None` if that is in another process.
    pub client: Option<u32>,
    /// The server's thread; see [`workload::Task::server_thread`].
    pub server: Option<u32>,
}

/// Receives what a step measures, while it runs. Called from the thread that called [`crate::run`].
pub trait Sink {
    /// Returns the time at which the step begins, by the step's clock: `earliest` or later. Called
    /// when every connection has its threads. These are in the order of the tasks.
    ///
    /// # Errors
    /// The reason why the step cannot begin; it then fails.
    fn begin(&mut self, earliest: u64, connections: &[ConnectionThreads]) -> Result<u64, String> {
        let _ = connections;
        Ok(earliest)
    }

    /// Returns whether connections in other processes still work on this step. Until they have
    /// ended, background connections continue.
    fn others_run(&mut self) -> bool {
        false
    }

    /// Called when all connections have done their work, before they are closed.
    fn before_close(&mut self) {}

    /// Receives rows of completed seconds, in no particular order.
    ///
    /// # Errors
    /// The reason why it cannot be recorded; the step then fails.
    fn intervals(&mut self, rows: &[IntervalRow<'static>]) -> Result<(), String> {
        let _ = rows;
        Ok(())
    }

    /// Receives the latencies of operations of one kind that ended in `second`, over all clients. A
    /// second may come again if a connection reports it late.
    ///
    /// # Errors
    /// The reason why it cannot be recorded; the step then fails.
    fn latencies(
        &mut self,
        second: u32,
        kind: &str,
        time: LatencyKind,
        histogram: &Histogram<u64>,
    ) -> Result<(), String> {
        let _ = (second, kind, time, histogram);
        Ok(())
    }

    /// Receives a sample of a host of other processes: the first rank on that host, the time since
    /// the step began, and the values.
    ///
    /// # Errors
    /// The reason why it cannot be recorded; the step then fails.
    fn client_host(&mut self, rank: u32, at_ns: u64, values: &[Option<i64>]) -> Result<(), String> {
        let _ = (rank, at_ns, values);
        Ok(())
    }

    /// Called a few times a second.
    ///
    /// # Errors
    /// The reason why the step cannot be recorded; it then fails.
    fn progress(&mut self, progress: &Progress) -> Result<(), String> {
        let _ = progress;
        Ok(())
    }
}

/// Discards everything.
impl Sink for () {}

/// The collector's knowledge of a worker.
pub(crate) struct WorkerInfo {
    pub(crate) client: u32,
    pub(crate) kinds: &'static [OpKind],
    /// The worker has a schedule.
    pub(crate) is_open: bool,
    /// The scheduled rate of each kind of operation, per second; kinds after the last have none.
    rates: Vec<f64>,
    /// The first second without a row.
    next_second: u32,
}

impl WorkerInfo {
    pub(crate) fn new(task: &Task) -> Self {
        let rates = match task.schedule {
            Schedule::Open { period_ns, .. } => {
                let shares = task.program.shares().into_iter();
                shares.map(|share| share * 1e9 / period_ns).collect()
            }
            Schedule::Closed | Schedule::Paused => Vec::new(),
        };
        Self {
            client: task.client,
            kinds: task.program.kinds(),
            is_open: task.schedule != Schedule::Closed,
            rates,
            next_second: 0,
        }
    }
}

/// Seconds for which latencies wait for late connections: a connection reports a second with its
/// first operation after that second.
const SECONDS_KEPT: u32 = 2;

/// The operations whose latencies are in one histogram. Keys sort by second first, so that the
/// oldest histograms are found at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct HistogramKey {
    second: u32,
    kind: &'static str,
    time: LatencyKind,
}

pub(crate) struct Collector<'a> {
    sink: &'a mut dyn Sink,
    workers: Vec<WorkerInfo>,
    pub(crate) totals: BTreeMap<&'static str, Ops>,
    /// The successful operations of each worker.
    pub(crate) done: Vec<OpCount>,
    /// Kinds that at least one connection runs on a schedule.
    scheduled: BTreeSet<&'static str>,
    /// The latencies of seconds that connections may still report.
    histograms: BTreeMap<HistogramKey, Histogram<u64>>,
    spare_histograms: Vec<Histogram<u64>>,
    rows: Vec<IntervalRow<'static>>,
    progress: ProgressMeter,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink, workers: Vec<WorkerInfo>) -> Self {
        let mut totals: BTreeMap<&'static str, Ops> = BTreeMap::new();
        let mut scheduled = BTreeSet::new();
        for worker in &workers {
            for kind in worker.kinds {
                let none = || Ops { retried_ns: Some(0), ..Ops::of_role(kind.role) };
                totals.entry(kind.name).or_insert_with(none);
                if worker.is_open {
                    scheduled.insert(kind.name);
                }
            }
            for (kind, rate) in worker.kinds.iter().zip(&worker.rates) {
                let total = totals.entry(kind.name).or_default();
                *total.rate_target_ops_per_s.get_or_insert(0.0) += rate;
            }
        }

        Self {
            sink,
            totals,
            scheduled,
            done: vec![OpCount::default(); workers.len()],
            workers,
            histograms: BTreeMap::new(),
            spare_histograms: Vec::new(),
            rows: Vec::new(),
            progress: ProgressMeter::default(),
        }
    }

    /// Announces the start of the step to the sink.
    pub(crate) fn begin(
        &mut self,
        earliest: u64,
        connections: &[ConnectionThreads],
    ) -> Result<u64, String> {
        self.sink.begin(earliest, connections)
    }

    /// Announces the end of all connections to the sink.
    pub(crate) fn before_close(&mut self) {
        self.sink.before_close();
    }

    /// Returns whether connections in other processes still work on this step.
    pub(crate) fn others_run(&mut self) -> bool {
        self.sink.others_run()
    }

    pub(crate) fn add_error(&mut self, number: usize, kind: usize, error: &engine::Error) {
        let name = self.workers[number].kinds[kind].name;
        let total = self.totals.entry(name).or_default();
        let class = error.class.name();
        *total.errors.entry(class.into()).or_default() += 1;
        total.error_examples.entry(class.into()).or_insert_with(|| error.to_string());
    }

    /// Adds the lap of the worker with that number, and clears it for the worker's next second.
    pub(crate) fn add_lap(&mut self, number: usize, lap: &mut Lap) -> Result<(), String> {
        self.fill_gaps(number, lap.second)?;
        let worker = &mut self.workers[number];
        worker.next_second = lap.second + 1;

        let (client, is_open, kinds) = (worker.client, worker.is_open, worker.kinds);
        for (&OpKind { name: kind, .. }, tally) in kinds.iter().zip(&mut lap.tallies) {
            assert_eq!(
                tally.response.is_some(),
                is_open,
                "a tally has a response time if and only if its worker has a schedule"
            );
            self.add_to_totals(number, kind, tally);
            self.add_latencies(lap.second, kind, tally);

            // Without a schedule, the response time equals the service time.
            let response = tally.response.as_ref().unwrap_or(&tally.service);
            self.rows.push(IntervalRow {
                second: lap.second,
                client,
                kind,
                ok: tally.ok,
                failed: tally.failed,
                retried: tally.retried,
                rows: tally.rows,
                service_ns_max: tally.service.ns_max,
                response_ns_max: response.ns_max,
            });
            self.progress.add(lap.second, kind, tally.ok, tally.rows);
            tally.clear();
        }
        self.flush_rows()
    }

    fn add_to_totals(&mut self, number: usize, kind: &'static str, tally: &Tally) {
        let total = self.totals.get_mut(kind).expect("every kind of every worker has a total");
        total.offered += tally.sent;
        total.ok += tally.ok;
        total.failed += tally.failed;
        total.retried += tally.retried;
        *total.retried_ns.get_or_insert(0) += tally.retried_ns;
        total.rows += tally.rows;
        total.rolled_back += tally.rolled_back;
        total.unexpected_rows += tally.unexpected_rows;
        self.done[number].add(tally.ok, tally.rows);
    }

    fn add_latencies(&mut self, second: u32, kind: &'static str, tally: &Tally) {
        if tally.ok > 0 {
            let service = HistogramKey { second, kind, time: LatencyKind::Service };
            tally.service.add_to(self.histogram(service));

            // Other connections may run this kind on a schedule. Then the response times of all of
            // them are in one histogram.
            if self.scheduled.contains(kind) {
                let response = HistogramKey { second, kind, time: LatencyKind::Response };
                let times = tally.response.as_ref().unwrap_or(&tally.service);
                times.add_to(self.histogram(response));
            }
        }

        if tally.failed > 0
            && let Some(failed_service) = &tally.failed_service
        {
            let failed = HistogramKey { second, kind, time: LatencyKind::Failed };
            failed_service.add_to(self.histogram(failed));
        }
    }

    fn histogram(&mut self, key: HistogramKey) -> &mut Histogram<u64> {
        self.histograms
            .entry(key)
            .or_insert_with(|| self.spare_histograms.pop().unwrap_or_else(new_histogram))
    }

    /// Adds rows of zeros for the seconds before `end` that worker `number` has not reported.
    pub(crate) fn fill_gaps(&mut self, number: usize, end: u32) -> Result<(), String> {
        let worker = &mut self.workers[number];
        for second in worker.next_second..end {
            for kind in worker.kinds {
                self.rows.push(IntervalRow {
                    second,
                    client: worker.client,
                    kind: kind.name,
                    ..IntervalRow::default()
                });
            }
        }
        worker.next_second = worker.next_second.max(end);
        Ok(())
    }

    /// Passes on what is complete at `now_ns` since the step began.
    pub(crate) fn tick(&mut self, now_ns: u64) -> Result<(), String> {
        let second = (now_ns / 1_000_000_000) as u32;
        self.sink.progress(self.progress.at(now_ns))?;
        self.flush_latencies(second.saturating_sub(SECONDS_KEPT))
    }

    /// Passes on what remains at the end of a step of `seconds` seconds.
    pub(crate) fn finish(&mut self, seconds: u32) -> Result<(), String> {
        for number in 0..self.workers.len() {
            self.fill_gaps(number, seconds)?;
        }
        self.flush_rows()?;
        self.flush_latencies(u32::MAX)
    }

    fn flush_rows(&mut self) -> Result<(), String> {
        let result = self.sink.intervals(&self.rows);
        self.rows.clear();
        result
    }

    fn flush_latencies(&mut self, before: u32) -> Result<(), String> {
        while let Some(oldest) = self.histograms.first_entry()
            && oldest.key().second < before
        {
            let (HistogramKey { second, kind, time }, mut histogram) = oldest.remove_entry();
            self.sink.latencies(second, kind, time, &histogram)?;
            histogram.reset();
            self.spare_histograms.push(histogram);
        }
        Ok(())
    }
}
