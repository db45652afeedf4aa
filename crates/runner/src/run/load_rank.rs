//! A load rank: makes the load of its clients, and nothing else.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, bail};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2Serializer};
use load::{
    Clock as _, ConnectionThreads, LatencyKind, Limits, Progress, Sink, StepEnd, SystemClock,
};
use plan::Workload;
use probe::{Sample, Sampler, Targets, ThreadStates};
use ranks::Ranks;
use record::{Assay, IntervalRow, LoadPause};
use workload::Task;
use workload::sysbench::Options;

use crate::ground::failure::{self, failure_of};
use crate::prepare::plan_file;
use crate::remote::hosts::RankHost;
use crate::remote::protocol::{
    CellOrder, ConnectionInfo, EndedPart, Numbered, Order, Report, decode, encode,
};
use crate::remote::reach::reachable;
use crate::steps::sampling::{HostSampler, Sampling, StepReading};
use crate::steps::{cpu, seen_states};
use crate::targets::engines;
use crate::targets::workloads::sql::{LoadEngine, SqlWorkload};
use crate::turns::StepClock;

/// The interval between looks for orders.
const POLL: Duration = Duration::from_millis(1);
/// After a question for the time another is likely: the rank looks for it without a pause for this
/// long.
const ALERT_NS: u64 = 20_000_000;
/// The time to wait for orders after `mpirun` or the operator has asked assay to end.
const ORPHANED_NS: u64 = 3_000_000_000;

/// Serves rank 0 until it ends the run.
pub fn serve(
    ranks: Ranks,
    assay: &Assay,
    clock: SystemClock,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let mut rank = LoadRank { ranks, clock, stop, order: 0, alert_until: 0, sampler: None };

    rank.report(&Report::Hello(Box::new(RankHost::of_this_process(assay))))?;

    loop {
        match rank.next_order()? {
            Order::Cell(order) => {
                let result = rank.serve_cell(&order);
                rank.report_failure(result)?;
            }
            Order::Reach(addresses) => rank.report(&Report::Reached(reachable(&addresses)))?,
            Order::EndCell => rank.report(&Report::Done)?,
            Order::Quit => {
                rank.report(&Report::Done)?;
                // Rank 0 waits for this report, so it must have left before this process does.
                while !rank.ranks.is_sent()? {
                    std::thread::sleep(POLL);
                }
                rank.ranks.leave();
                return Ok(());
            }
            // Orders about a cell that failed here.
            _ => {}
        }
    }
}

/// A rank that makes load.
struct LoadRank<'a> {
    ranks: Ranks,
    clock: SystemClock,
    /// Set by a signal.
    stop: &'a AtomicBool,
    /// The number of the order that it follows.
    order: u64,
    /// Until when to look for orders without pauses.
    alert_until: u64,
    /// Samples this host; `None` before the first step.
    sampler: Option<Sampler>,
}

impl LoadRank<'_> {
    /// Connects to the target of a cell, and makes the load of its steps.
    fn serve_cell(&mut self, order: &CellOrder) -> anyhow::Result<()> {
        let plan = plan_file::recorded_quietly(&order.plan)?.plan;

        let target =
            plan.targets.get(order.target).context("the plan of rank 0 has different targets")?;
        let variant = plan
            .variants
            .get(order.variant)
            .context("the plan of rank 0 has different variants")?;

        let row = engines::of(plan.builds[target.build].engine);
        let engine = row.connect(order.url.as_deref())?;
        self.run_cell(&*engine, order, plan.seed, &variant.workload)
    }

    /// Follows the orders about a cell until it ends.
    fn run_cell(
        &mut self,
        engine: &dyn LoadEngine,
        order: &CellOrder,
        seed: u64,
        planned: &Workload,
    ) -> anyhow::Result<()> {
        let options = Options {
            seed,
            nonce: order.nonce,
            clients: order.clients,
            share: order.share,
            writers_max: engine.writers_max(),
            is_unlimited: order.is_unlimited,
        };
        let mut workload = SqlWorkload::new(planned, options)?;
        if !workload.loads() {
            engine.adopt_tables(&mut workload)?;
        }

        let mut runner = engine.runner(&mut workload);
        let round_trip_ns = engine.round_trip_ns(&self.clock)?;
        self.report(&Report::Connected { round_trip_ns })?;

        loop {
            match self.next_order()? {
                Order::Prepare { step, is_warm_up, limits, samples_host } => {
                    let tasks = runner.tasks(step, is_warm_up);
                    let result = tasks.and_then(|tasks| self.run_step(tasks, limits, samples_host));
                    self.report_failure(result)?;
                }
                Order::Apply { step, summaries, totals } => {
                    runner.apply(step, &summaries, &totals);
                    self.report(&Report::Done)?;
                }
                Order::EndCell => return self.report(&Report::Done),
                Order::Quit => bail!("rank 0 ended the run in the middle of a cell"),
                // Orders about a step that failed here.
                _ => {}
            }
        }
    }

    /// Opens and runs the connections of a step, and reports its part of it.
    fn run_step(
        &mut self,
        mut tasks: Vec<Task>,
        limits: Limits,
        samples_host: bool,
    ) -> anyhow::Result<()> {
        let connections = tasks.iter_mut().map(connection_info).collect();
        let clock = self.clock.clone();
        let sampler = match self.sampler.take() {
            Some(sampler) => sampler,
            None => Sampler::new(Targets::default()),
        };

        let halt = AtomicBool::new(false);

        let mut sink = RankSink {
            rank: self,
            halt: &halt,
            connections: Some(connections),
            is_waiting: false,
            all_ended: false,
            sampler: Some(sampler),
            samples_host,
            sampling: None,
            pauses: Vec::new(),
            first_sample: None,
            last_sample: None,
            serializer: V2Serializer::new(),
            bytes: Vec::new(),
        };

        let mut outcome = load::run(tasks, limits, &clock, &halt, &mut sink);
        // The load did not begin: rank 0 waits for the reason, not for a part of the step.
        if let (Some(_), StepEnd::Failed(reasons)) = (&sink.connections, &outcome.end) {
            bail!("{}", reasons.join("; "));
        }

        let sampled = sink.sampling.take().map(Sampling::end).unwrap_or_default();
        sink.take_readings(sampled.readings)?;
        let cpu = cpu(sink.first_sample.as_ref(), sink.last_sample.as_ref());
        let pauses = sink.pauses;

        self.sampler = sampled.sampler;
        let states = sampled.states.iter().flat_map(ThreadStates::counts);
        for (connection, counts) in outcome.connections.iter_mut().zip(states) {
            connection.states = seen_states(counts);
        }

        let part = EndedPart { outcome, pauses, cpu_ns: cpu.assay_ns, host_cpu_ns: cpu.host_ns };
        self.report(&Report::Ended(Box::new(part)))
    }

    fn report(&mut self, message: &Report<'_>) -> anyhow::Result<()> {
        self.report_with(message, &[])
    }

    fn report_with(&mut self, message: &Report<'_>, tail: &[u8]) -> anyhow::Result<()> {
        let order = self.order;
        let bytes = encode(&Numbered { order, message }, tail);
        Ok(self.ranks.send(0, bytes)?)
    }

    /// Reports why an order could not be followed.
    fn report_failure(&mut self, result: anyhow::Result<()>) -> anyhow::Result<()> {
        match result {
            Ok(()) => Ok(()),
            Err(error) => self.report(&Report::Failed(failure_of(&error))),
        }
    }

    /// Returns the next order if there is one. Answers questions for the time itself.
    fn poll(&mut self) -> anyhow::Result<Option<Order>> {
        let Some((_, bytes)) = self.ranks.receive()? else {
            return Ok(None);
        };
        let (Numbered { order, message }, _) = decode(&bytes)?;

        // The answer's way is part of the measured round trip, so nothing comes before it.
        if let Order::ReadClock = message {
            let now = self.clock.now();
            let answer = Numbered { order, message: Report::Clock { now } };
            self.ranks.send(0, encode(&answer, &[]))?;
            self.alert_until = now + ALERT_NS;
            return Ok(None);
        }

        self.order = order;
        Ok(Some(message))
    }

    /// Waits for the next order.
    fn next_order(&mut self) -> anyhow::Result<Order> {
        let mut stopped_at = None;
        loop {
            if let Some(order) = self.poll()? {
                return Ok(order);
            }

            let now = self.clock.now();
            if self.stop.load(Relaxed) && now > *stopped_at.get_or_insert(now) + ORPHANED_NS {
                bail!(
                    "load rank {} was stopped by a signal, and rank 0 sends no more orders",
                    self.ranks.rank()
                );
            }
            // Questions for the time come in a row, and are answered without a pause.
            if now >= self.alert_until {
                std::thread::sleep(POLL);
            }
        }
    }
}

/// Returns what rank 0 needs to know of a connection.
fn connection_info(task: &mut Task) -> ConnectionInfo {
    ConnectionInfo {
        server_thread: task.program.server_thread(),
        client: task.client,
        role: task.role.to_owned(),
        kinds: task.program.kinds().iter().map(|kind| kind.name.to_owned()).collect(),
    }
}

/// Sends rank 0 what the load measures.
struct RankSink<'a, 'b> {
    rank: &'a mut LoadRank<'b>,
    halt: &'a AtomicBool,
    /// The connections, until they are ready.
    connections: Option<Vec<ConnectionInfo>>,
    /// Only background connections are left here.
    is_waiting: bool,
    /// All connections of all ranks that the step waits for have ended.
    all_ended: bool,
    /// Samples this host, until the step begins.
    sampler: Option<Sampler>,
    /// Rank 0 gets the samples.
    samples_host: bool,
    /// Samples this host, and detects stalls of this process.
    sampling: Option<Sampling>,
    pauses: Vec<LoadPause>,
    first_sample: Option<Sample>,
    last_sample: Option<Sample>,
    serializer: V2Serializer,
    bytes: Vec<u8>,
}

impl RankSink<'_, '_> {
    /// Follows the orders that have arrived.
    fn follow(&mut self) -> anyhow::Result<()> {
        while let Some(order) = self.rank.poll()? {
            match order {
                Order::AllEnded => self.all_ended = true,
                // Any other order means that rank 0 has given up this step.
                _ => self.halt.store(true, Relaxed),
            }
        }

        Ok(())
    }

    fn take_readings(
        &mut self,
        readings: impl IntoIterator<Item = StepReading>,
    ) -> anyhow::Result<()> {
        for reading in readings {
            match reading {
                StepReading::LoadPause(pause) => self.pauses.push(pause),
                StepReading::Host(at_ns, Ok(sample)) => {
                    if self.samples_host {
                        let values = sample.values.iter().map(|(_, value)| *value).collect();
                        self.rank.report(&Report::HostSample { at_ns, values })?;
                    }
                    self.first_sample.get_or_insert_with(|| sample.clone());
                    self.last_sample = Some(sample);
                }
                // A sample that is missing leaves a gap, which the record shows.
                StepReading::Host(_, Err(_)) | StepReading::Engine(..) => {}
            }
        }

        Ok(())
    }

    /// Begins to sample this process and the threads of its connections when the step begins.
    fn begin_sampling(&mut self, at: u64, threads: &[ConnectionThreads]) -> Result<(), String> {
        let Some(sampler) = self.sampler.take() else {
            return Ok(());
        };

        let clients: Vec<Option<u32>> = threads.iter().map(|thread| thread.client).collect();
        let states = ThreadStates::of_one_side(&clients);
        let clock = StepClock::Host(self.rank.clock.clone());
        let sampling =
            Sampling::begin(&clock, at, HostSampler { sampler, share: None }, None, Some(states));
        self.sampling = Some(sampling.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Tells rank 0 that the step continues.
    fn alive(&mut self) -> anyhow::Result<()> {
        self.follow()?;
        let readings: Vec<StepReading> = self.sampling.iter().flat_map(Sampling::drain).collect();
        self.take_readings(readings)?;

        let is_waiting = self.is_waiting;
        let sent_at = self.rank.clock.now();
        self.rank.report(&Report::Alive { is_waiting, sent_at })
    }
}

impl Sink for RankSink<'_, '_> {
    fn begin(&mut self, _: u64, threads: &[ConnectionThreads]) -> Result<u64, String> {
        let connections = self.connections.take().unwrap_or_default();
        let ready = self.rank.report(&Report::Prepared { connections });
        let order = ready.and_then(|()| self.rank.next_order());
        match order.map_err(error_text)? {
            Order::Begin { at } => {
                self.begin_sampling(at, threads)?;
                Ok(at)
            }
            _ => Err("rank 0 has given up the step".into()),
        }
    }

    fn others_run(&mut self) -> bool {
        self.is_waiting = true;
        // Reporting may bring the order that all have ended.
        let can_wait = self.all_ended || self.alive().is_ok();
        can_wait && !self.all_ended
    }

    fn before_close(&mut self) {
        if self.sampling.is_none() || self.halt.load(Relaxed) {
            return;
        }
        // The server ends its threads with the connections: rank 0 measures them first. Any order
        // but one means that it has, or that it has given up the step.
        let mut order = self.rank.report(&Report::Idle).map(|()| Order::AllEnded);
        while let Ok(Order::AllEnded) = order {
            order = self.rank.next_order();
        }
    }

    fn intervals(&mut self, rows: &[IntervalRow<'static>]) -> Result<(), String> {
        if rows.is_empty() {
            return Ok(());
        }
        let report = Report::Intervals(rows.to_vec());
        self.rank.report(&report).map_err(error_text)
    }

    fn latencies(
        &mut self,
        second: u32,
        kind: &str,
        time: LatencyKind,
        histogram: &Histogram<u64>,
    ) -> Result<(), String> {
        self.bytes.clear();
        self.serializer
            .serialize(histogram, &mut self.bytes)
            .map_err(|error| format!("a histogram cannot be sent to rank 0: {error:?}"))?;

        let report = Report::Latencies { second, kind, time };
        let sent = self.rank.report_with(&report, &self.bytes);
        sent.map_err(error_text)
    }

    fn progress(&mut self, _: &Progress) -> Result<(), String> {
        self.alive().map_err(error_text)
    }
}

fn error_text(error: anyhow::Error) -> String {
    failure::error_text(&error)
}
