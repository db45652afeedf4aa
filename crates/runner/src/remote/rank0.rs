//! Rank 0's side: gives orders to the load ranks, and merges what they measure.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{anyhow, bail};
use engine::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use load::{
    Clock as _, ConnectionThreads, Limits, Merge, Sink, StepEnd, StepOutcome, SystemClock,
    ThreadMeter,
};
use ranks::Ranks;
use record::{Assay, ClientHost, Failure, IntervalRow, LoadPause, RankLoad, ThreadUse, Warning};
use workload::{ClientShare, Summaries};

use super::clock::{self, ClockOffset, Reading};
use super::hosts::{self, RankHost, first_on_host};
use super::protocol::{
    CellOrder, ConnectionInfo, EndedPart, Numbered, Order, Report, decode, encode,
};
use super::reach::Listeners;
use crate::workloads::{Totals, on_this_host};

/// The interval between looks for messages.
const POLL: Duration = Duration::from_millis(1);
/// The same while a step runs, in which each look takes a processor from the server for 20 us.
const STEP_POLL: Duration = Duration::from_millis(5);
/// The maximum time until a rank has started.
const JOIN_NS: u64 = 60_000_000_000;
/// The maximum time that a rank takes for an order: connections may each take 10 s.
const ORDER_NS: u64 = 300_000_000_000;
/// A rank that was not heard from for this long while a step runs is lost. They report four times a
/// second.
const SILENT_NS: u64 = 30_000_000_000;
/// The maximum time until a rank answers after the operator or `mpirun` has asked assay to end,
/// which then kills all ranks after a second.
const ANSWER_NS: u64 = 400_000_000;
/// The largest number of questions for the time, of which the shortest counts.
const CLOCK_READINGS_MAX: usize = 100;
/// Time from the order to begin a step until it begins.
const LEAD_NS: u64 = 100_000_000;
/// The interval between reports of progress.
const TICK_NS: u64 = 250_000_000;

/// A load rank that does not answer.
#[derive(Debug, thiserror::Error)]
#[error(
    "load rank {rank} on host `{host}` does not answer: its process or its host died, hangs or can't be reached"
)]
pub struct LostRank {
    pub rank: usize,
    pub host: String,
}

/// The load ranks of a run.
pub struct LoadRanks {
    inner: RefCell<Inner>,
    /// Set by a signal.
    stop: Arc<AtomicBool>,
}

struct Inner {
    ranks: Ranks,
    clock: SystemClock,
    /// The host of each load rank, which are numbered from 1.
    hosts: Vec<RankHost>,
    /// The host of rank 0, where the servers are.
    here: RankHost,
    /// The shortest time that a query of each rank took.
    round_trips_ns: Vec<u64>,
    /// The number of the current order.
    order: u64,
}

/// A step whose connections are open.
pub struct RankedStep {
    order: u64,
    limits: Limits,
    /// The connections of each load rank.
    connections: Vec<Vec<ConnectionInfo>>,
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
        let threads =
            |it: &ConnectionInfo| ConnectionThreads { client: None, server: it.server_thread };
        connections.into_iter().map(threads).collect()
    }

    /// Starts to measure the server's threads of each rank's connections.
    fn meters(&self) -> Vec<Vec<Option<ThreadMeter>>> {
        let begin = |it: &ConnectionInfo| ThreadMeter::begin(it.server_thread?);
        let of_rank = |connections: &Vec<_>| connections.iter().map(begin).collect();
        self.connections.iter().map(of_rank).collect()
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

impl LoadRanks {
    /// Waits for all load ranks.
    pub fn join(
        ranks: Ranks,
        assay: &Assay,
        clock: SystemClock,
        stop: Arc<AtomicBool>,
    ) -> anyhow::Result<Self> {
        let load_ranks = ranks.size() as usize - 1;
        let unknown = |rank| RankHost { name: format!("of rank {rank}"), ..RankHost::default() };
        let hosts = (1..=load_ranks).map(unknown);
        let mut inner = Inner {
            ranks,
            clock,
            hosts: hosts.collect(),
            here: RankHost::of_this_process(assay),
            round_trips_ns: Vec::new(),
            order: 0,
        };
        inner.hosts = inner.each_answers(JOIN_NS, Some(&stop), |report| match report {
            Report::Hello(host) => Some(*host),
            _ => None,
        })?;
        let refused = hosts::refuse_other_assay(&inner.hosts, &inner.here);
        // Dropping this ends the other ranks.
        let joined = Self { inner: RefCell::new(inner), stop };
        refused?;
        Ok(joined)
    }

    /// Returns the clock by which all ranks begin a step.
    pub fn clock(&self) -> SystemClock {
        self.inner.borrow().clock.clone()
    }

    /// Returns the flag that a signal sets.
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Returns the hosts of load ranks, without this one.
    pub fn client_hosts(&self) -> Vec<ClientHost> {
        let inner = self.inner.borrow();
        hosts::client_hosts(&inner.hosts, &inner.here)
    }

    /// Returns warnings about the hosts.
    pub fn warnings(&self) -> Vec<Warning> {
        let inner = self.inner.borrow();
        hosts::warnings(&inner.hosts, &inner.here)
    }

    /// Returns whether a rank makes load on another host.
    pub fn has_other_host(&self) -> bool {
        let inner = self.inner.borrow();
        (0..inner.hosts.len()).any(|index| !inner.is_here(index))
    }

    /// Returns whether a rank makes load on this host, beside the server.
    pub fn has_server_host(&self) -> bool {
        let inner = self.inner.borrow();
        (0..inner.hosts.len()).any(|index| inner.is_here(index))
    }

    /// Returns an address of this host that all load ranks reach: the one that the plan names, or
    /// else any.
    pub fn reached_address(&self, planned: Option<IpAddr>) -> anyhow::Result<IpAddr> {
        let listeners = Listeners::open(planned);
        let candidates = listeners.addresses();
        let inner = &mut *self.inner.borrow_mut();
        inner.give(|_| Order::Reach(candidates.clone()))?;
        let reached = inner.each_answers(ORDER_NS, None, |report| match report {
            Report::Reached(addresses) => Some(addresses),
            _ => None,
        })?;
        let by_all = |address: &&SocketAddr| reached.iter().all(|it| it.contains(address));
        match candidates.iter().find(by_all) {
            Some(address) => Ok(address.ip()),
            None => {
                let list: Vec<String> = candidates.iter().map(|it| it.ip().to_string()).collect();
                let planned = planned.map_or("", |_| ", the `listen` of the plan");
                bail!(
                    "the load ranks reach no common address of this host: tried {}{planned}",
                    list.join(", ")
                )
            }
        }
    }

    /// Has all ranks connect to a cell's target. `order` gets each rank's clients.
    pub fn begin_cell(&self, order: impl Fn(ClientShare) -> CellOrder) -> anyhow::Result<()> {
        let inner = &mut *self.inner.borrow_mut();
        let parts = inner.hosts.len() as u32;
        inner.give(|part| Order::Cell(Box::new(order(ClientShare { part, parts }))))?;
        inner.round_trips_ns = inner.each_answers(ORDER_NS, None, |report| match report {
            Report::Connected { round_trip_ns } => Some(round_trip_ns),
            _ => None,
        })?;
        Ok(())
    }

    /// Has all ranks open the connections of a step.
    pub fn prepare(
        &self,
        step: usize,
        is_warm_up: bool,
        limits: Limits,
    ) -> anyhow::Result<RankedStep> {
        let inner = &mut *self.inner.borrow_mut();
        let is_first = |index| first_on_host(&inner.hosts, index) == index;
        let sampled: Vec<bool> = (0..inner.hosts.len())
            .map(|index| !is_warm_up && !inner.is_here(index) && is_first(index))
            .collect();
        inner.give(|index| Order::Prepare {
            step,
            is_warm_up,
            limits,
            samples_host: sampled[index as usize],
        })?;
        let order = inner.order;
        let prepared = inner.each_answers(ORDER_NS, None, |report| match report {
            Report::Prepared { connections } => Some(connections),
            _ => None,
        });
        match prepared {
            Ok(connections) => Ok(RankedStep { order, limits, connections }),
            Err(error) => {
                // The others wait for the step to begin.
                inner.repeat(|_| Order::Halt)?;
                Err(error)
            }
        }
    }

    /// Runs a step that was prepared.
    pub fn run(&self, step: &RankedStep, sink: &mut dyn Sink) -> anyhow::Result<RankedOutcome> {
        let inner = &mut *self.inner.borrow_mut();
        let result = inner.run(step, &self.stop, sink);
        if result.is_err() {
            inner.order = step.order;
            let _ = inner.repeat(|_| Order::Halt);
        }
        result
    }

    /// Tells all ranks what the connections of all of them did.
    pub fn apply(&self, step: usize, summaries: &Summaries, totals: &Totals) -> anyhow::Result<()> {
        let inner = &mut *self.inner.borrow_mut();
        inner.give(|_| Order::Apply {
            step,
            summaries: summaries.clone(),
            totals: totals.clone(),
        })?;
        inner.all_done()
    }

    /// Has all ranks disconnect from the cell's target.
    pub fn end_cell(&self) -> anyhow::Result<()> {
        let inner = &mut *self.inner.borrow_mut();
        inner.give(|_| Order::EndCell)?;
        inner.all_done()
    }

    /// Fails if a rank does not answer. When a rank dies, `mpirun` asks all others to end: then
    /// this tells it from an interruption by the operator.
    pub fn check_alive(&self) -> anyhow::Result<()> {
        let inner = &mut *self.inner.borrow_mut();
        inner.give(|_| Order::ReadClock)?;
        let answers = inner.each_answers(ANSWER_NS, None, |report| match report {
            Report::Clock { .. } => Some(()),
            _ => None,
        });
        answers.map(drop)
    }
}

impl Drop for LoadRanks {
    /// Ends all ranks: `mpirun` calls it a failure if rank 0 just exits. One that does not answer
    /// is left to `mpirun`.
    fn drop(&mut self) {
        let inner = self.inner.get_mut();
        if inner.give(|_| Order::Quit).is_ok() && inner.all_done().is_ok() {
            inner.ranks.leave();
        }
    }
}

impl Inner {
    /// Returns whether a load rank is on this host.
    fn is_here(&self, index: usize) -> bool {
        self.hosts[index].network == self.here.network
    }

    /// Gives all load ranks a new order; `order` gets their indices, from 0.
    fn give(&mut self, order: impl Fn(u32) -> Order) -> anyhow::Result<()> {
        self.order += 1;
        self.repeat(order)
    }

    /// Gives all load ranks a further order about the current one.
    fn repeat(&mut self, order: impl Fn(u32) -> Order) -> anyhow::Result<()> {
        for index in 0..self.hosts.len() {
            self.send(index, order(index as u32))?;
        }
        Ok(())
    }

    fn send(&mut self, index: usize, message: Order) -> anyhow::Result<()> {
        let order = self.order;
        let bytes = encode(&Numbered { order, message }, &[]);
        Ok(self.ranks.send(index as u32 + 1, bytes)?)
    }

    /// Passes the next message to `take`, if there is one about the current order: with the rank's
    /// index and what follows the report. Returns whether there was a message.
    fn receive(
        &mut self,
        mut take: impl FnMut(usize, Report<'_>, &[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        let Some((rank, bytes)) = self.ranks.receive()? else {
            return Ok(false);
        };
        let index = rank as usize - 1;
        let (numbered, tail) = decode::<Numbered<Report<'_>>>(&bytes)?;
        if numbered.order == self.order {
            match numbered.message {
                Report::Failed(failure) => return Err(self.failure(index, failure)),
                report => take(index, report, tail)?,
            }
        }
        Ok(true)
    }

    /// Returns the failure of a rank as an error with its host.
    fn failure(&self, index: usize, failure: Failure) -> anyhow::Error {
        let host = &self.hosts[index].name;
        let mut causes = failure.causes.into_iter().rev();
        let root = anyhow!(causes.next().unwrap_or_default());
        let error = causes.fold(root, |error, cause| error.context(cause));
        error.context(format!("load rank {} on host `{host}` failed", index + 1))
    }

    fn lost(&self, index: usize) -> LostRank {
        LostRank { rank: index + 1, host: self.hosts[index].name.clone() }
    }

    /// Returns one answer of each rank.
    fn each_answers<T>(
        &mut self,
        timeout_ns: u64,
        stop: Option<&AtomicBool>,
        take: impl Fn(Report<'_>) -> Option<T>,
    ) -> anyhow::Result<Vec<T>> {
        let mut answers: Vec<Option<T>> = self.hosts.iter().map(|_| None).collect();
        let until = self.clock.now() + timeout_ns;
        while let Some(missing) = answers.iter().position(Option::is_none) {
            let received = self.receive(|index, report, _| {
                answers[index] = take(report).or(answers[index].take());
                Ok(())
            })?;
            if stop.is_some_and(|stop| stop.load(Relaxed)) {
                bail!("it was interrupted");
            }
            if self.clock.now() > until {
                return Err(self.lost(missing).into());
            }
            if !received {
                std::thread::sleep(POLL);
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    fn all_done(&mut self) -> anyhow::Result<()> {
        let done = |report: Report<'_>| matches!(report, Report::Done).then_some(());
        self.each_answers(ORDER_NS, None, done).map(drop)
    }

    /// Reads the clocks of all ranks.
    fn clock_offsets(&mut self) -> anyhow::Result<Vec<ClockOffset>> {
        (0..self.hosts.len()).map(|index| self.clock_offset(index)).collect()
    }

    fn clock_offset(&mut self, index: usize) -> anyhow::Result<ClockOffset> {
        let mut readings = Vec::new();
        while readings.len() < CLOCK_READINGS_MAX && !clock::is_settled(&readings) {
            self.order += 1;
            let asked_at = self.clock.now();
            self.send(index, Order::ReadClock)?;
            let mut theirs = None;
            // Without pauses, which would be part of the round trip.
            while theirs.is_none() {
                self.receive(|_, report, _| {
                    if let Report::Clock { now } = report {
                        theirs = Some(now);
                    }
                    Ok(())
                })?;
                if self.clock.now() > asked_at + SILENT_NS {
                    return Err(self.lost(index).into());
                }
            }
            readings.extend(theirs.map(|theirs| Reading {
                asked_at,
                theirs,
                answered_at: self.clock.now(),
            }));
        }
        Ok(ClockOffset::of(&readings).unwrap_or_default())
    }

    fn run(
        &mut self,
        step: &RankedStep,
        stop: &AtomicBool,
        sink: &mut dyn Sink,
    ) -> anyhow::Result<RankedOutcome> {
        let before = self.clock_offsets()?;
        let start_at = self.clock.now() + LEAD_NS;
        let begun = sink.begin(start_at, &step.threads());
        let start_at = begun.map_err(|why| anyhow!(why))?;
        let mut supervision = Supervision {
            ended: self.hosts.iter().map(|_| None).collect(),
            is_waiting: vec![false; self.hosts.len()],
            heard_at: vec![start_at; self.hosts.len()],
            offsets: &before,
            delays_ns: vec![0; self.hosts.len()],
            recorded: Ok(()),
            histograms: Deserializer::new(),
            meters: step.meters(),
            server_use: self.hosts.iter().map(|_| Vec::new()).collect(),
            idle: None,
        };
        self.order = step.order;
        for (index, offset) in before.iter().enumerate() {
            let at = offset.theirs(start_at);
            self.send(index, Order::Begin { at })?;
        }
        let mut merge = Merge::new(sink);
        let end = self.supervise(step, start_at, stop, &mut supervision, &mut merge)?;
        let delays_ns = std::mem::take(&mut supervision.delays_ns);
        let parts = supervision.parts();
        // After the step: while it runs a rank answers late.
        let after = self.clock_offsets()?;
        let mut ranks = Vec::new();
        let mut pauses = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let connections = &part.outcome.connections;
            let clients: BTreeSet<u32> = connections.iter().map(|it| it.client).collect();
            let worst = before[index].uncertainty_ns.max(after[index].uncertainty_ns);
            ranks.push(RankLoad {
                rank: index as u32 + 1,
                host: self.hosts[index].name.clone(),
                is_server_host: self.is_here(index),
                host_rank: first_on_host(&self.hosts, index) as u32 + 1,
                cpu_ns: part.cpu_ns,
                host_cpu_ns: part.host_cpu_ns,
                processors: self.hosts[index].host.cpu_count,
                clients: clients.len() as u32,
                rows: connections.iter().map(|it| it.rows).sum(),
                round_trip_ns: self.round_trips_ns.get(index).copied().unwrap_or(0),
                clock_offset_ns: before[index].offset_ns,
                clock_drift_ns: after[index].offset_ns - before[index].offset_ns,
                clock_uncertainty_ns: worst,
                report_delay_ns_max: delays_ns[index],
            });
            pauses.extend_from_slice(&part.pauses);
        }
        let named = step.connections.iter().map(|connections| {
            let kinds = |it: &ConnectionInfo| {
                (it.client, it.kinds.iter().map(|kind| interned(kind)).collect())
            };
            connections.iter().map(kinds).collect()
        });
        let parts = parts.into_iter().enumerate().map(|(index, part)| {
            let mut outcome = part.outcome;
            if let StepEnd::Failed(reasons) = &mut outcome.end {
                let host = &self.hosts[index].name;
                for reason in reasons {
                    *reason = format!("on host `{host}`: {reason}");
                }
            }
            outcome
        });
        let mut outcome = merge.finish(named.zip(parts).collect()).map_err(|why| anyhow!(why))?;
        if let Some(end) = end {
            outcome.end = end;
        }
        Ok(RankedOutcome { outcome, ranks, pauses })
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

/// The state of a step that the ranks run.
struct Supervision<'a> {
    /// The parts of the ranks that have ended.
    ended: Vec<Option<EndedPart>>,
    /// Ranks that only wait for the others.
    is_waiting: Vec<bool>,
    /// The time at which each rank was last heard from.
    heard_at: Vec<u64>,
    /// The offset of each rank's clock.
    offsets: &'a [ClockOffset],
    /// The longest time that a report of each rank was on its way.
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

impl Supervision<'_> {
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
        match report {
            Report::Intervals(rows) if self.recorded.is_ok() => {
                let rows = rows.iter().map(|row| IntervalRow { kind: interned(row.kind), ..*row });
                self.recorded = merge.intervals(&rows.collect::<Vec<_>>());
            }
            Report::Latencies { second, kind, time } if self.recorded.is_ok() => {
                let mut bytes = tail;
                let histogram: Histogram<u64> =
                    self.histograms.deserialize(&mut bytes).map_err(|error| {
                        anyhow!("a histogram of a load rank can't be read: {error:?}")
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

    /// Returns how the step ends if it can't continue.
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
        (failed > limit && !self.has_failed()).then(|| {
            let reason = format!(
                "{failed} operations failed on all load ranks, more than the limit of {limit}"
            );
            StepEnd::Failed(vec![reason])
        })
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

/// Returns a kind of operation as a text that lasts. A plan has few of them.
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
