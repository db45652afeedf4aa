//! The collector: takes over what the workers counted, second by second, and passes it on to the record.

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;
use words::{IntervalRow, Ops};
use workload::{Kind, Schedule};

use crate::new_histogram;
use crate::tally::{Lap, Latencies, Tally};

/// From when a latency is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Time {
    /// From sending to reply.
    Service,
    /// From when the schedule wanted it sent to reply. Of a kind that no connection does by a schedule there is none: it
    /// would be the service time.
    Response,
    /// From sending to failure, of operations that failed for good.
    Failed,
}

impl Time {
    /// The name under which it is recorded.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Response => "response",
            Self::Failed => "failed",
        }
    }
}

/// How a step is doing, for a display.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Since the step began.
    pub elapsed_ns: u64,
    /// What was done in the last second of which all connections that are at work have told, by kind of operation;
    /// `None` before there is one.
    pub last_second: Option<BTreeMap<&'static str, Amount>>,
    /// What was done since the step began, by kind of operation.
    pub total: BTreeMap<&'static str, Amount>,
}

/// How much was done of one kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Operations that succeeded.
    pub ok: u64,
    /// Their rows.
    pub rows: u64,
}

impl Amount {
    fn add(&mut self, tally: &Tally) {
        self.ok += tally.ok;
        self.rows += tally.rows;
    }
}

/// The threads that do the work of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionThreads {
    /// The load's own.
    pub client: u32,
    /// The server's; see [`workload::Task::server_thread`].
    pub server: Option<u32>,
}

/// Takes what a step measured, as it comes. Called from the thread that called [`crate::run`].
pub trait Sink {
    /// The step begins: told the moment of the common start, by the step's clock, before it comes, and the threads of each
    /// connection in the order of the tasks.
    fn begin(&mut self, start_at: u64, connections: &[ConnectionThreads]) {
        let _ = (start_at, connections);
    }

    /// Rows of seconds that are over, in no particular order.
    ///
    /// # Errors
    /// What keeps it from being recorded: the step then fails.
    fn intervals(&mut self, rows: &[IntervalRow<'static>]) -> Result<(), String> {
        let _ = rows;
        Ok(())
    }

    /// The latencies of one kind of operation over all clients that ended in `second`. A second comes again when a
    /// late connection had more to add to it.
    ///
    /// # Errors
    /// What keeps it from being recorded: the step then fails.
    fn latencies(
        &mut self,
        second: u32,
        kind: &str,
        time: Time,
        histogram: &Histogram<u64>,
    ) -> Result<(), String> {
        let _ = (second, kind, time, histogram);
        Ok(())
    }

    /// Called a few times a second.
    ///
    /// # Errors
    /// What keeps the step from being recorded: it then fails.
    fn progress(&mut self, progress: &Progress) -> Result<(), String> {
        let _ = progress;
        Ok(())
    }
}

/// Keeps nothing.
impl Sink for () {}

/// What the collector must know of a worker.
pub(crate) struct Origin {
    pub(crate) client: u32,
    pub(crate) kinds: &'static [Kind],
    pub(crate) open: bool,
    /// What its schedule asks for of its main kind.
    rate_ops_per_s: Option<f64>,
    /// The first second of which no row was written yet.
    next_second: u32,
}

impl Origin {
    pub(crate) fn new(client: u32, kinds: &'static [Kind], schedule: Schedule) -> Self {
        Self {
            client,
            kinds,
            open: schedule != Schedule::Closed,
            rate_ops_per_s: match schedule {
                Schedule::Open { period_ns, .. } => Some(1e9 / period_ns),
                Schedule::Closed => None,
            },
            next_second: 0,
        }
    }
}

/// A second waits so long for connections that are late before it is passed on: one tells of a second with its first
/// operation after it.
const SECONDS_KEPT: u32 = 2;

pub(crate) struct Collector<'a> {
    sink: &'a mut dyn Sink,
    origins: Vec<Origin>,
    pub(crate) totals: BTreeMap<&'static str, Ops>,
    /// Rows and successes of each worker.
    pub(crate) done: Vec<(u64, u64)>,
    /// Kinds that some connection does by a schedule.
    scheduled: BTreeSet<&'static str>,
    seconds: BTreeMap<(u32, &'static str, Time), Histogram<u64>>,
    idle: Vec<Histogram<u64>>,
    rows: Vec<IntervalRow<'static>>,
    pub(crate) progress: Progress,
    by_second: BTreeMap<(u32, &'static str), Amount>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink, origins: Vec<Origin>) -> Self {
        let kinds = |origin: &Origin| origin.kinds.iter().map(|kind| kind.0);
        let all = origins.iter().flat_map(kinds);
        let scheduled = origins.iter().filter(|origin| origin.open);
        let mut totals: BTreeMap<_, Ops> = all.map(|kind| (kind, Ops::default())).collect();
        for origin in &origins {
            if let (Some(rate), Some(kind)) = (origin.rate_ops_per_s, origin.kinds.first()) {
                let total = totals.entry(kind.0).or_default();
                *total.rate_target_ops_per_s.get_or_insert(0.0) += rate;
            }
        }
        Self {
            sink,
            totals,
            scheduled: scheduled.flat_map(kinds).collect(),
            done: vec![(0, 0); origins.len()],
            origins,
            seconds: BTreeMap::new(),
            idle: Vec::new(),
            rows: Vec::new(),
            progress: Progress::default(),
            by_second: BTreeMap::new(),
        }
    }

    /// Tells the sink that the step begins.
    pub(crate) fn begin(&mut self, start_at: u64, connections: &[ConnectionThreads]) {
        self.sink.begin(start_at, connections);
    }

    fn total(&mut self, kind: &'static str) -> &mut Ops {
        self.totals.entry(kind).or_default()
    }

    pub(crate) fn error(&mut self, number: usize, kind: usize, error: &engine::Error) {
        let kind = self.origins[number].kinds[kind].0;
        let total = self.total(kind);
        let class = error.class.name();
        *total.errors.entry(class.into()).or_default() += 1;
        total
            .error_examples
            .entry(class.into())
            .or_insert_with(|| error.to_string());
    }

    /// Adds a lap and leaves it empty.
    pub(crate) fn lap(&mut self, number: usize, lap: &mut Lap) -> Result<(), String> {
        self.fill(number, lap.second)?;
        let origin = &mut self.origins[number];
        origin.next_second = lap.second + 1;
        let (client, open, kinds) = (origin.client, origin.open, origin.kinds);
        for (kind, tally) in kinds.iter().zip(&mut lap.tallies) {
            let kind = kind.0;
            assert_eq!(
                tally.response.is_some(),
                open,
                "a tally belongs to another schedule"
            );
            let total = self
                .totals
                .get_mut(kind)
                .expect("every kind of every origin has a total");
            total.offered += tally.sent;
            total.ok += tally.ok;
            total.failed += tally.failed;
            total.retried += tally.retried;
            total.rows += tally.rows;
            total.unexpected_rows += tally.unexpected_rows;
            self.done[number].0 += tally.rows;
            self.done[number].1 += tally.ok;
            let service_ns_max = tally.service.ns_max;
            let response_ns_max = tally
                .response
                .as_ref()
                .map_or(service_ns_max, |response| response.ns_max);
            let mut add = |time, latencies: &Latencies| {
                let histogram = self.seconds.entry((lap.second, kind, time));
                latencies.add_to(
                    histogram.or_insert_with(|| self.idle.pop().unwrap_or_else(new_histogram)),
                );
            };
            if tally.ok > 0 {
                add(Time::Service, &tally.service);
                if self.scheduled.contains(kind) {
                    add(
                        Time::Response,
                        tally.response.as_ref().unwrap_or(&tally.service),
                    );
                }
                tally.service.clear();
                tally.response.iter_mut().for_each(Latencies::clear);
            }
            if let Some(failed) = tally.failed_service.as_mut().filter(|_| tally.failed > 0) {
                add(Time::Failed, failed);
                failed.clear();
            }
            self.rows.push(IntervalRow {
                second: lap.second,
                client,
                kind,
                ok: tally.ok,
                failed: tally.failed,
                retried: tally.retried,
                rows: tally.rows,
                service_ns_max,
                response_ns_max,
            });
            self.progress.total.entry(kind).or_default().add(tally);
            let second = self.by_second.entry((lap.second, kind));
            second.or_default().add(tally);
            (tally.sent, tally.ok, tally.failed, tally.retried) = (0, 0, 0, 0);
            (tally.rows, tally.unexpected_rows) = (0, 0);
        }
        self.flush_rows()
    }

    /// Writes rows of zeros for the seconds before `end` of which worker `number` said nothing.
    pub(crate) fn fill(&mut self, number: usize, end: u32) -> Result<(), String> {
        let origin = &mut self.origins[number];
        for second in origin.next_second..end {
            for kind in origin.kinds {
                self.rows.push(IntervalRow {
                    second,
                    client: origin.client,
                    kind: kind.0,
                    ..IntervalRow::default()
                });
            }
        }
        origin.next_second = origin.next_second.max(end);
        Ok(())
    }

    /// Passes on what is complete `now_ns` into the step.
    pub(crate) fn tick(&mut self, now_ns: u64) -> Result<(), String> {
        let second = (now_ns / 1_000_000_000) as u32;
        self.progress.elapsed_ns = now_ns;
        if let Some(last) = second.checked_sub(1 + SECONDS_KEPT) {
            let done = self
                .by_second
                .range((last, "")..(last + 1, ""))
                .map(|(&(_, kind), &amount)| (kind, amount));
            self.progress.last_second = Some(done.collect());
            self.by_second = self.by_second.split_off(&(last, ""));
        }
        self.sink.progress(&self.progress)?;
        self.flush_latencies(second.saturating_sub(SECONDS_KEPT))
    }

    /// Passes on all that is left of a step of so many seconds.
    pub(crate) fn finish(&mut self, seconds: u32) -> Result<(), String> {
        for number in 0..self.origins.len() {
            self.fill(number, seconds)?;
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
        while let Some(entry) = self
            .seconds
            .first_entry()
            .filter(|entry| entry.key().0 < before)
        {
            let ((second, kind, time), mut histogram) = entry.remove_entry();
            self.sink.latencies(second, kind, time, &histogram)?;
            histogram.reset();
            self.idle.push(histogram);
        }
        Ok(())
    }
}
