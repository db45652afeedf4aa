//! A step whose load the ranks make: it begins at one time on all of them, their measurements are
//! passed on while it runs, and their parts are merged when all have ended.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{anyhow, bail};
use engine::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use load::{Clock as _, ConnectionThreads, Limits, Merge, Sink, StepEnd, StepOutcome, ThreadMeter};
use record::{IntervalRow, LoadPause, RankLoad, ThreadUse};

use super::channel::{ANSWER_NS, RankChannel, SILENT_NS};
use super::clock::ClockOffset;
use super::hosts::first_on_host;
use super::protocol::{ConnectionInfo, EndedPart, Order, Report};
use crate::ground::server_threads::on_this_host;

/// The interval between looks for messages while a step runs, in which each look takes a processor
/// from the server for 20 us.
const STEP_POLL: Duration = Duration::from_millis(5);
/// Time from the order to begin a step until it begins.
const LEAD_NS: u64 = 100_000_000;
/// The interval between reports of progress.
const TICK_NS: u64 = 250_000_000;

/// A step whose connections are open.
pub struct RankedStep {
    pub(super) order: u64,
    pub(super) limits: Limits,
    /// The connections of each load rank.
    pub(super) connections: Vec<Vec<ConnectionInfo>>,
}

impl RankedStep {
    /// Returns the connections of all ranks.
    pub fn connections(&self) -> impl Iterator<Item = &ConnectionInfo> {
        self.connections.iter().flatten()
    }

    /// Keeps only those threads of the server that are on this host.
    pub fn find_server_threads(&mut self, engine: &dyn Engine) {
        for connection in self.connections.iter_mut().flatten() {
            connection.server_thread = on_this_host(engine, connection.server_thread);
        }
    }

    /// Returns the threads of the connections, in the order of the connections of the outcome.
    fn threads(&self) -> Vec<ConnectionThreads> {
        let mut connections: Vec<&ConnectionInfo> = self.connections().collect();
        connections.sort_by_key(|connection| connection.client);

        let mut threads = Vec::new();
        for connection in connections {
            threads.push(ConnectionThreads { client: None, server: connection.server_thread });
        }
        threads
    }

    /// Starts to measure the server's threads that serve the connections of each rank.
    fn meters(&self) -> Vec<Vec<Option<ThreadMeter>>> {
        let mut meters = Vec::new();
        for connections in &self.connections {
            let threads = connections.iter().map(|connection| connection.server_thread);
            meters.push(threads.map(|thread| ThreadMeter::begin(thread?)).collect());
        }

        meters
    }
}

/// The results of all ranks in a step.
pub struct RankedOutcome {
    /// The whole step.
    pub outcome: StepOutcome,
    /// Each rank's part.
    pub ranks: Vec<RankLoad>,
    /// Stalls of load ranks.
    pub pauses: Vec<LoadPause>,
}

impl RankChannel {
    /// Runs a step that was prepared.
    pub(super) fn run(
        &mut self,
        step: &RankedStep,
        stop: &AtomicBool,
        sink: &mut dyn Sink,
    ) -> anyhow::Result<RankedOutcome> {
        let before = self.clock_offsets()?;
        let start_at = self.clock.now() + LEAD_NS;
        let begun = sink.begin(start_at, &step.threads());
        let start_at = begun.map_err(|why| anyhow!(why))?;

        let mut supervision = Supervision::begin(step, start_at, &before);

        // Reading the clocks gave orders of their own: what follows is about the prepared step.
        self.order = step.order;
        for (index, offset) in before.iter().enumerate() {
            let at = offset.theirs(start_at);
            self.send(index, Order::Begin { at })?;
        }

        let mut merge = Merge::new(sink);
        let end = self.supervise(step, start_at, stop, &mut supervision, &mut merge)?;

        // Read after the step: while it runs a rank answers late.
        let delays_ns = std::mem::take(&mut supervision.delays_ns);
        let parts = supervision.parts();

        let after = self.clock_offsets()?;
        let mut ranks = Vec::new();
        let mut pauses = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let clocks = RankClock {
                before: before[index],
                after: after[index],
                delay_ns_max: delays_ns[index],
            };
            ranks.push(self.rank_load(index, part, clocks));
            pauses.extend_from_slice(&part.pauses);
        }

        let outcome = self.merged(step, parts, merge, end)?;
        Ok(RankedOutcome { outcome, ranks, pauses })
    }

    /// Returns the record of a rank's part in a step.
    fn rank_load(&self, index: usize, part: &EndedPart, clocks: RankClock) -> RankLoad {
        let RankClock { before, after, delay_ns_max } = clocks;
        let connections = &part.outcome.connections;
        let clients: BTreeSet<u32> =
            connections.iter().map(|connection| connection.client).collect();

        RankLoad {
            rank: index as u32 + 1,
            host: self.hosts[index].name.clone(),
            is_server_host: self.is_here(index),
            host_rank: first_on_host(&self.hosts, index) as u32 + 1,
            cpu_ns: part.cpu_ns,
            host_cpu_ns: part.host_cpu_ns,
            processors: self.hosts[index].host.cpu_count,
            clients: clients.len() as u32,
            rows: connections.iter().map(|connection| connection.rows).sum(),
            round_trip_ns: self.round_trips_ns.get(index).copied().unwrap_or(0),
            clock_offset_ns: before.offset_ns,
            clock_drift_ns: after.offset_ns - before.offset_ns,
            clock_uncertainty_ns: before.uncertainty_ns.max(after.uncertainty_ns),
            report_delay_ns_max: delay_ns_max,
        }
    }

    /// Merges the parts of all ranks. `end` is the step's end if the ranks did not end
    /// it themselves.
    fn merged(
        &self,
        step: &RankedStep,
        parts: Vec<EndedPart>,
        merge: Merge<'_>,
        end: Option<StepEnd>,
    ) -> anyhow::Result<StepOutcome> {
        let mut named_parts = Vec::new();
        for (index, part) in parts.into_iter().enumerate() {
            let mut outcome = part.outcome;
            if let StepEnd::Failed(reasons) = &mut outcome.end {
                let host = &self.hosts[index].name;
                for reason in reasons {
                    *reason = format!("on host `{host}`: {reason}");
                }
            }

            let mut kinds = Vec::new();
            for connection in &step.connections[index] {
                let own = connection.kinds.iter().map(|kind| interned(kind)).collect();
                kinds.push((connection.client, own));
            }
            named_parts.push((kinds, outcome));
        }

        let mut outcome = merge.finish(named_parts).map_err(|why| anyhow!(why))?;
        if let Some(end) = end {
            outcome.end = end;
        }
        Ok(outcome)
    }

    /// Passes on what the ranks measure until all have ended. Returns how the step ended if that
    /// was not their own doing.
    fn supervise(
        &mut self,
        step: &RankedStep,
        start_at: u64,
        stop: &AtomicBool,
        supervision: &mut Supervision<'_>,
        merge: &mut Merge<'_>,
    ) -> anyhow::Result<Option<StepEnd>> {
        let mut end = None;
        let (mut has_halted, mut all_ended) = (false, false);
        let mut next_tick = TICK_NS;
        while let Some(missing) = supervision.ended.iter().position(Option::is_none) {
            let now = self.clock.now();
            let received = self
                .receive(|index, report, tail| supervision.take(index, now, report, tail, merge))?;

            if let Some(index) = supervision.idle.take() {
                self.send(index, Order::Close)?;
            }

            // Progress is due even if no rank reports anything.
            let elapsed_ns = now.saturating_sub(start_at);
            if elapsed_ns >= next_tick && supervision.recorded.is_ok() {
                supervision.recorded = merge.tick(elapsed_ns);
                next_tick = elapsed_ns + TICK_NS;
            }

            if end.is_none() {
                end = supervision.early_end(step, stop, merge);
            }

            let has_failed = supervision.has_failed();
            if !has_halted && (end.is_some() || has_failed) {
                has_halted = true;
                self.repeat(|_| Order::Halt)?;
            }

            if !all_ended && supervision.is_foreground_over() {
                all_ended = true;
                self.repeat(|_| Order::AllEnded)?;
            }

            // `mpirun` also asks all ranks to end when one of them has died.
            let patience_ns = if stop.load(Relaxed) { ANSWER_NS } else { SILENT_NS };
            if now.saturating_sub(supervision.heard_at[missing]) > patience_ns {
                return Err(self.lost(missing).into());
            }

            if !received {
                std::thread::sleep(STEP_POLL);
            }
        }

        Ok(end)
    }
}

/// The facts about a rank's clock and the delays of its reports.
struct RankClock {
    before: ClockOffset,
    after: ClockOffset,
    delay_ns_max: u64,
}

/// The state of a step that the ranks run.
struct Supervision<'a> {
    /// The time at which the step begins.
    start_at: u64,
    /// The parts of the ranks that have ended.
    ended: Vec<Option<EndedPart>>,
    /// Ranks that only wait for the others.
    is_waiting: Vec<bool>,
    /// The time at which each rank was last heard from.
    heard_at: Vec<u64>,
    /// The offset of each rank's clock.
    offsets: &'a [ClockOffset],
    /// The longest time in transit of a report of each rank.
    delays_ns: Vec<u64>,
    recorded: Result<(), String>,
    histograms: Deserializer,
    /// Measures the threads of the server, by rank and connection.
    meters: Vec<Vec<Option<ThreadMeter>>>,
    /// The use of these threads in ranks whose connections have done their work.
    server_use: Vec<Vec<Option<ThreadUse>>>,
    /// A rank that waits to close its connections.
    idle: Option<usize>,
}

impl<'a> Supervision<'a> {
    /// Begins to supervise a step that starts at `start_at`, with ranks whose clocks have these
    /// offsets.
    fn begin(step: &RankedStep, start_at: u64, offsets: &'a [ClockOffset]) -> Self {
        let count = offsets.len();
        Self {
            start_at,
            ended: (0..count).map(|_| None).collect(),
            is_waiting: vec![false; count],
            heard_at: vec![start_at; count],
            offsets,
            delays_ns: vec![0; count],
            recorded: Ok(()),
            histograms: Deserializer::new(),
            meters: step.meters(),
            server_use: (0..count).map(|_| Vec::new()).collect(),
            idle: None,
        }
    }

    /// Returns the parts of all ranks, with the use of the server's threads.
    fn parts(self) -> Vec<EndedPart> {
        let mut parts: Vec<EndedPart> = self.ended.into_iter().flatten().collect();
        for (part, server_use) in parts.iter_mut().zip(self.server_use) {
            for (connection, used) in part.outcome.connections.iter_mut().zip(server_use) {
                connection.server_thread = used;
            }
        }

        parts
    }

    fn take(
        &mut self,
        index: usize,
        now: u64,
        report: Report<'_>,
        tail: &[u8],
        merge: &mut Merge<'_>,
    ) -> anyhow::Result<()> {
        self.heard_at[index] = self.heard_at[index].max(now);
        if let Some(what) = impossible(&report, now.saturating_sub(self.start_at)) {
            bail!("load rank {} reports {what}", index + 1);
        }

        // Once the record cannot be written, measurements are dropped until the ranks have ended.
        match report {
            Report::Intervals(rows) if self.recorded.is_ok() => {
                let mut interned_rows = Vec::new();
                for row in &rows {
                    interned_rows.push(IntervalRow { kind: interned(row.kind), ..*row });
                }
                self.recorded = merge.intervals(&interned_rows);
            }
            Report::Latencies { second, kind, time } if self.recorded.is_ok() => {
                let mut bytes = tail;
                let histogram: Histogram<u64> =
                    self.histograms.deserialize(&mut bytes).map_err(|error| {
                        anyhow!("a histogram of a load rank cannot be read: {error:?}")
                    })?;
                self.recorded = merge.latencies(second, kind, time, &histogram);
            }
            Report::HostSample { at_ns, values } if self.recorded.is_ok() => {
                self.recorded = merge.client_host(index as u32 + 1, at_ns, &values);
            }
            Report::Idle => {
                let meters = std::mem::take(&mut self.meters[index]).into_iter();
                self.server_use[index] = meters.map(|meter| meter?.end()).collect();
                self.idle = Some(index);
            }
            Report::Alive { is_waiting, sent_at } => {
                self.is_waiting[index] = is_waiting;
                let delay_ns = now.saturating_sub(self.offsets[index].ours(sent_at));
                self.delays_ns[index] = self.delays_ns[index].max(delay_ns);
            }
            Report::Ended(part) => self.ended[index] = Some(*part),
            _ => {}
        }
        Ok(())
    }

    /// Returns how the step ends if it cannot continue.
    fn early_end(
        &self,
        step: &RankedStep,
        stop: &AtomicBool,
        merge: &Merge<'_>,
    ) -> Option<StepEnd> {
        if stop.load(Relaxed) {
            return Some(StepEnd::Interrupted);
        }

        if let Err(why) = &self.recorded {
            let reason = format!("cannot write the record: {why}");
            return Some(StepEnd::Failed(vec![reason]));
        }

        let (failed, limit) = (merge.failed(), step.limits.error_limit);
        // Where one rank alone exceeds the limit, it says so with the last error.
        if failed <= limit || self.has_failed() {
            return None;
        }

        let reason =
            format!("{failed} operations failed on all load ranks, more than the limit of {limit}");
        Some(StepEnd::Failed(vec![reason]))
    }

    fn has_failed(&self) -> bool {
        let failed = |part: &EndedPart| matches!(part.outcome.end, StepEnd::Failed(_));
        self.ended.iter().flatten().any(failed)
    }

    /// Returns whether all connections that the step waits for have ended.
    fn is_foreground_over(&self) -> bool {
        let mut both = self.ended.iter().zip(&self.is_waiting);
        both.all(|(ended, is_waiting)| ended.is_some() || *is_waiting)
    }
}

/// The time by which the times of a rank may exceed those of rank 0. Rank 0 keeps a value for each
/// second, so that an absurd one would take all of its memory.
const EXCESS_S: u64 = 24 * 60 * 60;

/// Returns what in the report of a rank cannot be, so long after the step began.
fn impossible(report: &Report<'_>, elapsed_ns: u64) -> Option<String> {
    const NS_PER_S: u64 = 1_000_000_000;
    let last_second = elapsed_ns / NS_PER_S + EXCESS_S;

    let second = match report {
        Report::Intervals(rows) => rows.iter().map(|row| u64::from(row.second)).max()?,
        Report::Latencies { second, .. } => u64::from(*second),
        Report::HostSample { at_ns, .. } => at_ns / NS_PER_S,
        Report::Ended(part) => {
            // Of a host with any number of processors.
            let cpu_s = part.cpu_ns.max(part.host_cpu_ns) / NS_PER_S;
            if cpu_s / PROCESSORS_MAX > last_second {
                return Some(format!("a CPU time of {cpu_s} s"));
            }
            part.outcome.elapsed_ns / NS_PER_S
        }
        _ => return None,
    };

    (second > last_second)
        .then(|| format!("second {second} of a step that began {} s ago", elapsed_ns / NS_PER_S))
}

/// More processors than a host has.
const PROCESSORS_MAX: u64 = 1 << 16;

/// Interns the name of a kind of operation. The memory is never freed; a plan has few kinds.
fn interned(kind: &str) -> &'static str {
    static KINDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kinds = KINDS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = kinds.get(kind) {
        return known;
    }

    let kept: &'static str = Box::leak(kind.to_owned().into_boxed_str());
    kinds.insert(kept);

    kept
}

#[cfg(test)]
mod tests {
    use load::LatencyKind;

    use super::*;

    #[test]
    fn what_a_rank_can_not_have_measured_is_told() {
        let hour_ns = 3_600_000_000_000;
        let latencies =
            |second| Report::Latencies { second, kind: "insert", time: LatencyKind::Service };
        assert_eq!(impossible(&latencies(3_600), hour_ns), None);
        let told = impossible(&latencies(u32::MAX), hour_ns).unwrap();
        assert_eq!(told, "second 4294967295 of a step that began 3600 s ago");

        let row = IntervalRow { second: u32::MAX, ..IntervalRow::default() };
        assert!(impossible(&Report::Intervals(vec![row]), hour_ns).is_some());
        assert_eq!(impossible(&Report::Intervals(Vec::new()), hour_ns), None);
        let sample = |at_ns| Report::HostSample { at_ns, values: Vec::new() };
        assert_eq!(impossible(&sample(hour_ns), hour_ns), None);
        assert!(impossible(&sample(u64::MAX), hour_ns).is_some());
        assert_eq!(impossible(&Report::Done, hour_ns), None);
    }
}
