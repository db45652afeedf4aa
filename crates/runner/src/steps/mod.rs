//! Measures one step and records it, however it ends.
//!
//! A step has phases, and each may end it: warm-up, load, what the workload learns from it,
//! replicas that catch up, counters, checks, settling. What is sampled *during* the load goes
//! through [`StepSink`](sink::StepSink). What is read *after* it is read in the order of
//! [`measure`], because reading disturbs the engine: counters before statements are explained, and
//! both before the data is checked, which reads all of it.
//!
//! * [`measure`] has the load and what follows from it, and [`connections`] what makes it.
//! * [`sink`] and [`sampling`] record what happens while the load runs.
//! * [`evidence`] and [`replicas`] read what the engine and its replicas say afterward.
//! * [`system_calls`] counts the engine's system calls while the load runs.
//! * [`exact`] counts the engine's work instead of time.
//! * [`commands`] runs the plan's commands before and after all of that.
//! * [`remarks`] judges the step by its own behavior.

mod commands;
mod connections;
mod evidence;
pub mod exact;
mod measure;
mod profiling;
mod remarks;
mod replicas;
pub mod sampling;
mod session_states;
mod sink;
mod system_calls;

use std::sync::Arc;

use anyhow::Context;
use engine::{CounterKind, Observer, SettleLimits};
use load::Clock as _;
use plan::{Checks, HostMetrics, StepPolicy, StepRun};
use probe::{Sample, Sampler};
use record::{
    CellDir, Counter, HostColumn, Settle, Status, Step, StepKind, StepWriter, StorageSize,
};
use words::CellKind;

use crate::ground::failure::{LOG_LINES, failure_of};
use crate::ground::time::unix_now_ns;
use crate::remote::LostRank;
use crate::session::RunSession;
use crate::targets::site::CellNotes;
use crate::targets::workloads::{StepEngine, WorkloadRunner};
use crate::turns::{Placing, Seat, StepClock};
pub use commands::Commands;
use commands::Moment;
use exact::Counting;
use remarks::note_unfinished;
pub use sink::{cpu, seen_states};
use system_calls::CellCalls;

/// Runs the steps of a cell.
pub struct StepRunner<'a> {
    session: &'a RunSession<'a>,
    engine: &'a dyn StepEngine,
    runner: &'a mut dyn WorkloadRunner,
    policy: &'a StepPolicy,
    clients: u32,
    sampler: Option<Sampler>,
    /// The exporter of the server's host, if that is another one and the cell takes no turns.
    host_metrics: Option<HostMetrics>,
    /// Reads all counters before and after a step.
    observer: Box<dyn Observer>,
    /// Reads the cheap ones each second.
    second_observer: Option<Box<dyn Observer>>,
    notes: CellNotes,
    /// The cell's seat among those that take turns; `None` if it is measured alone.
    seat: Option<&'a Seat>,
    placing: Arc<Placing>,
    /// The way to profile the cell, if it is profiled.
    profiling: Option<profile::Settings>,
    /// Counts the engine's work, if the cell is exact.
    counting: Option<Counting>,
    /// Counts system calls, if the plan says so.
    system_calls: Option<CellCalls>,
    /// The commands around each step, if the plan has some.
    commands: Option<Commands>,
}

impl<'a> StepRunner<'a> {
    pub fn new(
        session: &'a RunSession<'a>,
        engine: &'a dyn StepEngine,
        runner: &'a mut dyn WorkloadRunner,
        policy: &'a StepPolicy,
        planned: plan::Cell,
        notes: CellNotes,
        seat: Option<&'a Seat>,
    ) -> anyhow::Result<Self> {
        let observer =
            engine.observer(runner.tables()).context("the engine's counters cannot be read")?;

        let plan = session.plan();
        let target = &plan.targets[planned.target];
        let build = &plan.builds[target.build];
        let home = build.home();
        let limits = &plan.configs[target.config].limits;
        let cpus = limits.cpus.as_deref();
        let placing = Arc::new(Placing::of(engine.engine(), plan.placement, cpus, plan.seed)?);
        if let Some(seat) = seat {
            seat.set_placing(Arc::clone(&placing));
        }

        let is_profiled = planned.kind == CellKind::Profiled;
        let profiling = is_profiled.then(|| profiling::settings(plan.profile, engine.engine()));
        Ok(Self {
            session,
            engine,
            runner,
            policy,
            clients: planned.clients,
            sampler: None,
            // What other targets do between two pages would count as this one's.
            host_metrics: build.host_metrics.clone().filter(|_| seat.is_none()),
            observer,
            second_observer: None,
            notes,
            seat,
            placing,
            profiling,
            counting: None,
            system_calls: CellCalls::of(
                session.system_calls.as_ref(),
                planned,
                home,
                engine.engine().process_id(),
            ),
            commands: None,
        })
    }

    /// Returns why the engine cannot run a step; `None` if the engine can.
    pub fn not_applicable(&self, number: usize) -> Option<String> {
        self.runner.not_applicable(number)
    }

    /// Makes the steps count the engine's work instead of time.
    pub fn count_work(&mut self, counting: Counting) {
        self.counting = Some(counting);
    }

    /// Runs commands before and after each step.
    pub fn run_around_steps(&mut self, commands: Option<Commands>) {
        self.commands = commands;
    }

    /// Runs step `number` of the plan, from 0, and records it, however it ends.
    pub fn run(
        &mut self,
        cell: &CellDir,
        number: usize,
        planned: &StepRun<'_>,
    ) -> anyhow::Result<Step> {
        self.session.events.step_begins(planned.name, planned.measures);
        let mut writer = cell.begin_step(number as u32 + 1, planned.name, &host_columns())?;
        let mut record = Step {
            name: planned.name.into(),
            clients: self.clients,
            rows_before: self.runner.rows(),
            unreported: !planned.reported,
            started_unix_ns: unix_now_ns(),
            ..Step::default()
        };

        let ready = self.run_command(Moment::Before, &mut record);
        let result =
            ready.and_then(|()| self.run_phases(number, planned, &mut record, &mut writer));
        if let Err(error) = result {
            self.note_error(&mut record, &error);
        }

        // Also after a step that failed: it may end what the other command began.
        if let Err(error) = self.run_command(Moment::After, &mut record)
            && record.status == Status::Complete
        {
            self.note_error(&mut record, &error);
        }

        self.judge(&mut record);

        writer.finish(&record)?;
        self.session.events.step_ends(&record);
        Ok(record)
    }

    /// Records the error that ended a step. When the operator interrupts a run, errors follow from
    /// that; only a lost rank is a failure then, too.
    fn note_error(&self, record: &mut Step, error: &anyhow::Error) {
        if self.session.is_stopped() && !error.is::<LostRank>() {
            record.status = Status::Interrupted;
            record.failure = None;
        } else {
            record.status = Status::Failed;
            record.failure = Some(failure_of(error));
        }
    }

    /// Adds what explains a failure, and decides whether the step is valid.
    fn judge(&self, record: &mut Step) {
        if let Some(failure) = &mut record.failure {
            let engine = self.engine.engine();
            // The client saw only that a connection was lost.
            if let Some(why) = engine.killed_for_memory() {
                failure.causes.insert(0, why);
            }
            if failure.log_tail.is_empty() {
                failure.log_tail = engine.log_tail(LOG_LINES);
            }
            record.reasons.extend(failure.causes.first().cloned());
        }

        if record.status == Status::Interrupted {
            record.reasons.push("it was interrupted".into());
        }

        record.warnings.extend_from_slice(&self.notes.warnings);
        record.reasons.extend_from_slice(&self.notes.shortfalls);
        record.valid = record.status == Status::Complete && record.reasons.is_empty();
    }

    /// Runs the phases of a step, of which each may end it.
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
            // Compaction continues while the data is checked, and settling is mostly that.
            record.counters_end = self.counters()?;
        } else {
            record.elapsed_ns = self.session.clock.now().saturating_sub(began);
            record.counters_after = self.counters()?;
            record.storage = self.storage();
            record.data_bytes = Some(self.runner.data_bytes());
        }

        Ok(())
    }

    /// Returns the clock of the load.
    fn clock(&self) -> StepClock {
        match self.seat {
            Some(seat) => seat.clock(),
            None => StepClock::Host(self.session.clock.clone()),
        }
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
        let mut actions = Vec::new();
        for action in settled.actions {
            actions.push((action.what, action.took.as_nanos() as u64));
        }
        record.settle = Some(Settle {
            actions,
            pending_before: settled.pending_before,
            pending_after: settled.pending_after,
        });

        if self.session.is_stopped() {
            record.status = Status::Interrupted;
        }
        Ok(())
    }

    fn checks_data(&self) -> bool {
        self.policy.checks != Checks::Off && self.engine.engine().capabilities().stores_data
    }

    /// Compares what the engine holds with what the workload did.
    fn check(&mut self, record: &mut Step) -> anyhow::Result<()> {
        let began = self.session.clock.now();
        if self.checks_data() {
            let ready = self.engine.before_check().map_err(anyhow::Error::from);
            let checks = ready.and_then(|()| self.runner.check());
            let checks = checks.context("the data cannot be checked")?;

            // Before those of what the step read.
            record.checks.splice(0..0, checks);

            if record.catch_up_ns.is_some() {
                let indexes = self.policy.checks == Checks::Full;
                let compared = self.engine.compare_replicas(self.runner.tables(), indexes);
                record.checks.extend(compared.context("the replicas cannot be compared")?);
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
        self.observer.counters().context("the engine's counters cannot be read")
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

/// Returns the columns of the host's samples.
fn host_columns() -> Vec<HostColumn<'static>> {
    let mut columns = Vec::new();
    for column in Sample::COLUMNS {
        columns.push(HostColumn {
            name: column.name,
            cumulative: column.kind == CounterKind::Cumulative,
        });
    }
    columns
}
