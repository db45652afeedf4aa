//! One step: connections, load, probes, checks, and their record.

mod evidence;
mod profiling;
mod remarks;
mod replicas;
pub mod sampling;
mod session_states;
mod sink;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use engine::{CounterKind, Observer, SettleLimits};
use load::{Clock as _, Limits, Sink, StepEnd, StepOutcome};
use plan::{Checks, StepPolicy, StepRun};
use probe::{Sample, Sampler, Targets};
use record::{
    CellDir, Check, Connection, Counter, Failure, HostColumn, Settle, Status, Step, StepKind,
    StepWriter, StorageSize, Warning,
};
use workload::Task;

use crate::events::LoadBegin;
use crate::failure::{LOG_LINES, failure_of};
use crate::remote::{ConnectionInfo, LoadRanks, LostRank, RankedStep};
use crate::session::RunSession;
use crate::time::unix_now_ns;
use crate::workloads::{StepEngine, WorkloadRunner, find_server_threads};
use profiling::Profiler;
use remarks::{add_rank_remarks, note_unfinished};
use sampling::note_held_up;
use sink::{Followers, Instruments, StepSink, both_sides};
pub use sink::{cpu, seen_states};

/// Connections that still wait for a reply this long after the end of the step are cut off.
const GRACE: Duration = Duration::from_secs(300);

/// Runs the steps of a cell.
pub struct StepRunner<'a> {
    session: &'a RunSession<'a>,
    engine: &'a dyn StepEngine,
    runner: &'a mut dyn WorkloadRunner,
    policy: &'a StepPolicy,
    clients: u32,
    sampler: Option<Sampler>,
    /// Reads all counters before and after a step.
    observer: Box<dyn Observer>,
    /// Reads the cheap ones each second.
    second_observer: Option<Box<dyn Observer>>,
    notes: CellNotes,
    /// The way to profile the cell, if it is profiled.
    profiling: Option<profile::Settings>,
}

/// Warnings and reasons that apply to every step of a cell.
#[derive(Clone, Default)]
pub struct CellNotes {
    /// Warnings about the results.
    pub warnings: Vec<Warning>,
    /// The reasons why no step can be valid.
    pub shortfalls: Vec<String>,
}

impl<'a> StepRunner<'a> {
    pub fn new(
        session: &'a RunSession<'a>,
        engine: &'a dyn StepEngine,
        runner: &'a mut dyn WorkloadRunner,
        policy: &'a StepPolicy,
        planned: plan::Cell,
        notes: CellNotes,
    ) -> anyhow::Result<Self> {
        let observer =
            engine.observer(runner.tables()).context("the engine's counters can't be read")?;
        Ok(Self {
            session,
            engine,
            runner,
            policy,
            clients: planned.clients,
            sampler: None,
            observer,
            second_observer: None,
            notes,
            profiling: planned
                .profiled
                .then(|| profiling::settings(session.plan().profile, engine.engine())),
        })
    }

    /// Runs step `number` of the plan, from 0, and records it, however it ends.
    pub fn run(
        &mut self,
        cell: &CellDir,
        number: usize,
        planned: &StepRun<'_>,
    ) -> anyhow::Result<Step> {
        let columns: Vec<HostColumn<'_>> = Sample::COLUMNS
            .iter()
            .map(|column| HostColumn {
                name: column.name,
                cumulative: column.kind == CounterKind::Cumulative,
            })
            .collect();
        self.session.events.step_begins(planned.name, planned.measures);
        let mut writer = cell.begin_step(number as u32 + 1, planned.name, &columns)?;
        let mut record = Step {
            name: planned.name.into(),
            clients: self.clients,
            rows_before: self.runner.rows(),
            unreported: !planned.reported,
            started_unix_ns: unix_now_ns(),
            ..Step::default()
        };
        let result = self.run_phases(number, planned, &mut record, &mut writer);
        if let Err(error) = result {
            let stopped = self.session.is_stopped() && !error.is::<LostRank>();
            record.status = if stopped { Status::Interrupted } else { Status::Failed };
            record.failure = (!stopped).then(|| failure_of(&error));
        }
        if let Some(failure) = &mut record.failure {
            // The client saw only that a connection was lost.
            if let Some(why) = self.engine.engine().killed_for_memory() {
                failure.causes.insert(0, why);
            }
            if failure.log_tail.is_empty() {
                failure.log_tail = self.engine.engine().log_tail(LOG_LINES);
            }
            record.reasons.extend(failure.causes.first().cloned());
        }
        if record.status == Status::Interrupted {
            record.reasons.push("it was interrupted".into());
        }
        record.warnings.extend_from_slice(&self.notes.warnings);
        record.reasons.extend_from_slice(&self.notes.shortfalls);
        record.valid = record.status == Status::Complete && record.reasons.is_empty();
        writer.finish(&record)?;
        self.session.events.step_ends(&record);
        Ok(record)
    }

    fn run_phases(
        &mut self,
        number: usize,
        planned: &StepRun<'_>,
        record: &mut Step,
        writer: &mut StepWriter,
    ) -> anyhow::Result<()> {
        if planned.measures {
            self.measure(number, planned, record, writer)?;
        } else {
            record.kind = StepKind::Settle;
            record.counters_before = self.counters()?;
            record.status = Status::Complete;
        }
        if record.status != Status::Complete {
            return Ok(());
        }
        let began = self.session.clock.now();
        if let Some(settle) = planned.settle {
            self.settle(settle, record)?;
            self.catch_up_after_settling(record)?;
        }
        if planned.measures {
            // Compaction goes on while the data is checked, and settling is mostly that.
            record.counters_end = self.counters()?;
        } else {
            record.elapsed_ns = self.session.clock.now().saturating_sub(began);
            record.counters_after = self.counters()?;
            record.storage = self.storage();
            record.data_bytes = Some(self.runner.data_bytes());
        }
        Ok(())
    }

    /// Runs the warm-up; returns `false` if it did not complete, which ends the step.
    fn warm_up(
        &mut self,
        number: usize,
        time: Duration,
        record: &mut Step,
    ) -> anyhow::Result<bool> {
        let limits = self.limits(Some(time));
        let load = self.prepare(number, true, limits)?;
        let mut followers = self.followers();
        let outcome = self.run_load(load, limits, &mut followers, &mut Step::default())?;
        if let Some(lost) = followers.lost {
            return Err(lost);
        }
        record.warm_up_ops.clone_from(&outcome.totals);
        self.apply(number, &outcome)?;
        Ok(is_complete(record, &outcome.end))
    }

    fn followers(&self) -> Followers<'a> {
        Followers { replication: self.engine.replication(), lost: None }
    }

    fn limits(&self, time: Option<Duration>) -> Limits {
        Limits {
            time,
            error_limit: self.policy.error_limit,
            attempts: self.policy.attempts,
            grace: GRACE,
        }
    }

    /// Opens the connections of a step or its warm-up.
    fn prepare(
        &mut self,
        number: usize,
        is_warm_up: bool,
        limits: Limits,
    ) -> anyhow::Result<StepLoad<'a>> {
        if let Some(ranks) = &self.session.ranks {
            let mut step = ranks.prepare(number, is_warm_up, limits)?;
            step.find_server_threads(self.engine.engine());
            return Ok(StepLoad::Ranks(ranks, step));
        }
        let mut tasks = self.runner.tasks(number, is_warm_up)?;
        find_server_threads(self.engine.engine(), &mut tasks);
        Ok(StepLoad::Local(tasks))
    }

    /// Runs the load of a step, and records which rank did what.
    fn run_load(
        &self,
        load: StepLoad<'_>,
        limits: Limits,
        sink: &mut dyn Sink,
        record: &mut Step,
    ) -> anyhow::Result<StepOutcome> {
        let (clock, stop) = (&self.session.clock, &self.session.stop);
        match load {
            StepLoad::Local(tasks) => Ok(load::run(tasks, limits, clock, stop, sink)),
            StepLoad::Ranks(ranks, step) => {
                let ranked = ranks.run(&step, sink)?;
                record.ranks = ranked.ranks;
                record.held_up = ranked.pauses;
                Ok(ranked.outcome)
            }
        }
    }

    /// Takes note of what a step or its warm-up did, in all processes, and returns the checks of
    /// what it read.
    fn apply(&mut self, number: usize, outcome: &StepOutcome) -> anyhow::Result<Vec<Check>> {
        let (summaries, totals) = (&outcome.summaries, &outcome.totals);
        if let Some(ranks) = &self.session.ranks
            && outcome.end == StepEnd::Complete
        {
            ranks.apply(number, summaries, totals)?;
        }
        Ok(self.runner.apply(number, summaries, totals))
    }

    fn settle_limits(&self) -> SettleLimits {
        SettleLimits { at_least: self.policy.settle_at_least, at_most: self.policy.settle_at_most }
    }

    fn settle(&self, settle: plan::Settle, record: &mut Step) -> anyhow::Result<()> {
        let limits = self.settle_limits();
        let tables = self.runner.tables();
        let stop = &self.session.stop;
        let settled = self.engine.settle(tables, settle, limits, stop)?;
        note_unfinished(record, settled.unfinished);
        record.settle = Some(Settle {
            actions: settled
                .actions
                .into_iter()
                .map(|act| (act.what, act.took.as_nanos() as u64))
                .collect(),
            pending_before: settled.pending_before,
            pending_after: settled.pending_after,
        });
        if self.session.is_stopped() {
            record.status = Status::Interrupted;
        }
        Ok(())
    }

    fn measure(
        &mut self,
        number: usize,
        planned: &StepRun<'_>,
        record: &mut Step,
        writer: &mut StepWriter,
    ) -> anyhow::Result<()> {
        self.runner.describe(number, record);
        self.note_lag_before(record);
        if !planned.warmup.is_zero() && !self.warm_up(number, planned.warmup, record)? {
            return Ok(());
        }
        let time = planned.time;
        record.time_given_ns = time.map(|time| time.as_nanos() as u64);
        record.counters_before = self.counters()?;
        let limits = self.limits(time);
        let load = self.prepare(number, false, limits)?;
        let sampler = self.sampler.take();
        let sampler = sampler.unwrap_or_else(|| self.new_sampler());
        let mut observer = match self.second_observer.take() {
            Some(observer) => observer,
            None => self.engine.observer(self.runner.tables())?,
        };
        let session = self.session;
        let rows = self.runner.planned_rows(number);
        session.events.load_begins(&LoadBegin { step: record, rows, roles: load.roles() });
        let clock = &session.clock;
        let mut profiler = self.profiling.map(|settings| {
            let engine = self.engine.engine();
            Profiler::start(settings, engine, &session.data_root)
        });
        let instruments = Instruments {
            sampler,
            is_embedded: self.engine.engine().capabilities().embedded,
            own_thread: observer.server_thread(),
            observer,
        };
        let followers = self.followers();
        let mut sink = StepSink::new(writer, session.events, clock, instruments, followers);
        profiler.iter_mut().for_each(Profiler::enable);
        let outcome = self.run_load(load, limits, &mut sink, record);
        let ended_ns = clock.now();
        profiler.iter_mut().for_each(Profiler::disable);
        let started_ns = sink.started_ns();
        let lost = sink.followers.lost.take();
        let (sampled, error) = sink.end(record);
        let elapsed_ns = outcome.as_ref().map(|outcome| outcome.elapsed_ns).ok();
        self.record_lag(started_ns, elapsed_ns, writer)?;
        record.profile = profiler.map(|it| it.finish(writer, &session.stop)).transpose()?;
        let mut outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                // Only a complete outcome knows when the last operation ended.
                record.elapsed_ns = ended_ns.saturating_sub(started_ns.unwrap_or(ended_ns));
                return Err(error);
            }
        };
        (self.sampler, self.second_observer) = (sampled.sampler, sampled.observer);
        record.elapsed_ns = outcome.elapsed_ns;
        add_rank_remarks(record);
        note_held_up(record);
        record.ops.clone_from(&outcome.totals);
        let states = sampled.states.iter().flat_map(|states| states.counts());
        let mut states = states.map(seen_states);
        for connection in &outcome.connections {
            record.cpu.client_user_ns += connection.cpu_user_ns;
            record.cpu.client_system_ns += connection.cpu_system_ns;
            let sampled = states.next().unwrap_or_default();
            record.connections.push(Connection {
                states: if record.ranks.is_empty() {
                    sampled
                } else {
                    both_sides(&connection.states, &sampled)
                },
                ..connection.clone()
            });
        }
        self.add_remarks(record, &outcome);
        if let Some(reason) = error {
            outcome.end = StepEnd::Failed(vec![reason]);
        }
        if !is_complete(record, &outcome.end) {
            return lost.map_or(Ok(()), Err);
        }
        let checks = self.apply(number, &outcome)?;
        if self.checks_data() {
            record.checks = checks;
        }
        record.catch_up_ns = self.catch_up(record)?;
        if record.status != Status::Complete {
            return Ok(());
        }
        record.counters_after = self.counters()?;
        record.storage = self.storage();
        record.data_bytes = Some(self.runner.data_bytes());
        self.keep_engine_status(record, writer)?;
        self.explain(number, record);
        self.check(record)
    }

    fn checks_data(&self) -> bool {
        self.policy.checks != Checks::Off && self.engine.engine().capabilities().stores_data
    }

    /// Compares what the engine holds with what the workload did.
    fn check(&mut self, record: &mut Step) -> anyhow::Result<()> {
        let began = self.session.clock.now();
        if self.checks_data() {
            let checks = self.engine.before_check().map_err(anyhow::Error::from);
            let checks = checks.and_then(|()| self.runner.check());
            let checks = checks.context("the data can't be checked")?;
            record.checks.splice(0..0, checks);
            if record.catch_up_ns.is_some() {
                let indexes = self.policy.checks == Checks::Full;
                let compared = self.engine.compare_replicas(self.runner.tables(), indexes);
                record.checks.extend(compared.context("the replicas can't be compared")?);
            }
            self.read_bloat(record);
        }
        for check in record.checks.iter().filter(|check| !check.holds) {
            record.reasons.push(format!(
                "wrong data: {} is {}, expected {}",
                check.what, check.found, check.expected
            ));
        }
        record.checks_ns = self.session.clock.now().saturating_sub(began);
        Ok(())
    }

    fn counters(&mut self) -> anyhow::Result<Vec<Counter>> {
        self.observer.counters().context("the engine's counters can't be read")
    }

    fn new_sampler(&mut self) -> Sampler {
        let storage = self.engine.engine().storage();
        let mut sampler = Sampler::new(Targets {
            server_pid: self.engine.engine().process_id(),
            data: storage.data,
            logs: storage.logs,
        });
        let notes = sampler.notes().iter();
        let notes = notes.map(|note| Warning::new("host::disk", note));
        self.notes.warnings.extend(notes);
        // The first sample opens the files of the server's processes: that is not the step's time.
        let _ = sampler.sample();
        sampler
    }

    fn storage(&self) -> Option<StorageSize> {
        let storage = self.engine.engine().storage();
        if storage.data.is_empty() {
            return None;
        }
        let (data_bytes, log_bytes) = probe::storage_size(&storage.data, &storage.logs).ok()?;
        Some(StorageSize { data_bytes, log_bytes })
    }
}

/// The load of a step whose connections are open.
enum StepLoad<'a> {
    /// This process makes it.
    Local(Vec<Task>),
    /// Load ranks make it.
    Ranks(&'a LoadRanks, RankedStep),
}

impl StepLoad<'_> {
    /// Returns the role of the connections that do each kind of operation.
    fn roles(&self) -> BTreeMap<String, String> {
        match self {
            Self::Local(tasks) => {
                let kinds = |task: &Task| {
                    let role = task.role;
                    let kinds = task.program.kinds().iter();
                    kinds.map(move |kind| (kind.0.to_owned(), role.to_owned()))
                };
                tasks.iter().flat_map(kinds).collect()
            }
            Self::Ranks(_, step) => {
                let kinds = |it: &ConnectionInfo| {
                    let role = it.role.clone();
                    let kinds = it.kinds.clone().into_iter();
                    kinds.map(move |kind| (kind, role.clone()))
                };
                step.connections().flat_map(kinds).collect()
            }
        }
    }
}

/// Records how the load ended; returns whether it did all of its work.
fn is_complete(record: &mut Step, end: &StepEnd) -> bool {
    record.status = match end {
        StepEnd::Complete => Status::Complete,
        StepEnd::Interrupted => Status::Interrupted,
        StepEnd::Failed(causes) => {
            record.failure = Some(Failure { causes: causes.clone(), ..Failure::default() });
            Status::Failed
        }
    };
    record.status == Status::Complete
}
