//! One cell: brings its target up, makes the tables, runs the steps, and takes the target down.

mod keyed;

use std::ops::Range;

use anyhow::Context;
use engine::limits::Applied;
use engine::notation;
use engine::{DataDir, Engine, ServerEngine, SqlEngine, Table};
use plan::Workload;
use record::{Cell, CellDir, CellRef, Failure, RecordError, ServerHost, Setting, Status, Warning};
use workload::insert::Insert;
use workload::sysbench::Sysbench;

use super::step::{Bench, Remarks};
use super::subject::insert::InsertRunner;
use super::subject::sysbench::SysbenchRunner;
use super::subject::{Sql, StepEngine, WorkloadRunner};
use super::target::{self, Up};
use super::{Conductor, isolated, tables, unix_now_ns};
use crate::outcome::{causes_of, help_of, log_tail_of};
use crate::output::print_failure;

/// Lines of a server's log that a failure shows.
pub const LOG_LINES: usize = 20;

/// Runs a cell and records how it ended. Its failure is not the run's: only a record that can't be written is.
pub fn run(
    conductor: &Conductor<'_>,
    reference: &CellRef,
    cell: plan::Cell,
) -> anyhow::Result<Status> {
    let plan = conductor.plan();
    let target = &plan.targets[cell.target];
    let build = &plan.builds[target.build];
    let directory = conductor.directory.begin_cell(reference)?;
    let mut record = Cell {
        key: reference.key.clone(),
        build: build.name.clone(),
        config: plan.configs[target.config].name.clone(),
        engine: build.engine.name().into(),
        workload: reference.workload.clone(),

        started_unix_ns: unix_now_ns(),
        invocation: conductor.invocation,
        steps: step_names(&plan.variants[cell.variant].workload),
        ..Cell::default()
    };
    if build.engine == plan::Engine::RocksDb {
        let result = isolated::run(conductor, reference, cell, &directory, &mut record);
        return match result {
            Ok(status) => Ok(status),
            // Not the cell's failure but the run's.
            Err(error) if error.is::<isolated::Unrecorded>() => Err(error),
            Err(error) => end(conductor, &directory, record, Err(error)),
        };
    }
    directory.write(&record)?;
    measure(conductor, &directory, record, cell)
}

/// Runs a cell whose record has begun, in this process, and records how it ended.
pub fn measure(
    conductor: &Conductor<'_>,
    directory: &CellDir,
    mut record: Cell,
    cell: plan::Cell,
) -> anyhow::Result<Status> {
    let mut running = Running {
        conductor,
        directory,
        record: &mut record,
        keep: conductor.plan().keep_data,
        notes: Vec::new(),
        shortfalls: Vec::new(),
    };
    let result = running.run(cell);
    end(conductor, directory, record, result)
}

/// Records how a cell ended.
fn end(
    conductor: &Conductor<'_>,
    directory: &CellDir,
    mut record: Cell,
    result: anyhow::Result<Status>,
) -> anyhow::Result<Status> {
    let (status, failure) = match &result {
        Ok(status) => (*status, None),
        Err(_) if conductor.is_stopped() => (Status::Interrupted, None),
        Err(error) => {
            let failure = Failure {
                causes: causes_of(error),
                help: help_of(error),
                log_tail: log_tail_of(error),
            };
            (Status::Failed, Some(failure))
        }
    };
    record.status = status;
    record.failure = record.failure.or(failure);
    record.ended_unix_ns = Some(unix_now_ns());
    let written = directory.write(&record);
    if let Err(error) = result
        && error.chain().any(|cause| cause.is::<RecordError>())
    {
        // Not the cell's failure but the run's, which says it.
        return Err(error);
    }
    written?;
    if let Some(failure) = &record.failure {
        conductor
            .display
            .suspend(|| print_failure(&failure.causes, failure.help.as_deref(), &failure.log_tail));
    }
    Ok(status)
}

struct Running<'a> {
    conductor: &'a Conductor<'a>,
    directory: &'a CellDir,
    record: &'a mut Cell,
    /// The database is kept when the cell has ended.
    keep: bool,
    /// What is to be known of every step.
    notes: Vec<Warning>,
    /// Why no step can be valid.
    shortfalls: Vec<String>,
}

impl Running<'_> {
    fn run(&mut self, cell: plan::Cell) -> anyhow::Result<Status> {
        match target::bring_up(self.conductor, cell, self.directory)? {
            Up::Null(engine) => self.measure(engine, |this, engine| this.sql(engine, cell, false)),
            Up::Sqlite(engine, data_dir) => {
                let result = self.measure(engine, |this, engine| this.sql(engine, cell, false));
                self.leave(Some(data_dir), result)
            }
            Up::Postgres(engine) => self.measure_server(*engine, cell),
            Up::Mysql(engine) => self.measure_server(*engine, cell),
            Up::RocksDb(rocks) => self.rocksdb(*rocks, cell),
        }
    }

    fn measure_server(
        &mut self,
        engine: impl ServerEngine,
        cell: plan::Cell,
    ) -> anyhow::Result<Status> {
        self.record.server_user = engine.server_user().map(str::to_owned);
        self.note("server::config", engine.notes());
        let data_dir = engine.data_dir().cloned();
        let foreign = data_dir.is_none();
        let result = self.measure(engine, |this, engine| this.sql(engine, cell, foreign));
        self.leave(data_dir, result)
    }

    /// Says where what the target may use of the machine is not what was asked for.
    fn note_limits(&mut self, limits: &[Applied]) {
        for limit in limits {
            self.shortfalls.extend(limit.shortfall());
            if let Some(reason) = &limit.reason {
                let Applied { what, asked, .. } = limit;
                let text = format!("`{what} = \"{asked}\"`: {reason}");
                self.note("server::limits", &[text]);
            }
        }
    }

    /// Says what a server has to say of its config, and keeps it for every step.
    fn note(&mut self, code: &str, notes: &[String]) {
        for text in notes {
            let note = Warning {
                code: code.into(),
                text: text.clone(),
            };
            // An engine that is brought up twice may have the same to say.
            if !self.notes.contains(&note) {
                self.conductor
                    .display
                    .warn(&format!("warning[{code}]: {text}"));
                self.notes.push(note);
            }
        }
    }

    /// Removes the database, unless it is to be kept; what failed before is not hidden by what fails here.
    fn leave(
        &self,
        data_dir: Option<DataDir>,
        result: anyhow::Result<Status>,
    ) -> anyhow::Result<Status> {
        let removed = data_dir.filter(|_| !self.keep).map_or(Ok(()), |data_dir| {
            let home = data_dir.path().parent().map(std::path::Path::to_path_buf);
            let removed = data_dir.remove();
            // The target's directory goes with its last database; one that holds anything stays.
            let _ = home.map(fs_err::remove_dir);
            removed
        });
        let status = result?;
        removed.context("the database can't be removed")?;
        Ok(status)
    }

    /// Runs `steps` on an engine that is up, and stops it.
    fn measure<E: Engine>(
        &mut self,
        engine: E,
        steps: impl FnOnce(&mut Self, &E) -> anyhow::Result<Status>,
    ) -> anyhow::Result<Status> {
        let result = self.describe(&engine).and_then(|()| steps(self, &engine));
        if self.record.status == Status::Failed || result.is_err() {
            let log_tail = engine.log_tail(LOG_LINES);
            if let Some(failure) = &mut self.record.failure {
                failure.log_tail = log_tail;
            }
        }
        let kept = engine
            .log_path()
            .map_or(Ok(()), |log| target::keep_log(self.directory, &log));
        let stopped = engine.stop();
        let status = result?;
        kept?;
        if status == Status::Complete {
            stopped?;
        }
        Ok(status)
    }

    /// Records what the engine says of itself.
    fn describe(&mut self, engine: &impl Engine) -> anyhow::Result<()> {
        let is_first = self.record.engine_version.is_empty();
        self.record.engine_version = engine.version().into();
        self.record.embedded = engine.capabilities().embedded;
        self.record.server_host = match engine.is_on_other_host() {
            true => ServerHost::Remote,
            false => ServerHost::Local,
        };
        self.record.settings = engine.settings()?;
        if is_first {
            record_limits(self.record, engine.limits());
            self.note_limits(&limits(self.record));
        }
        self.record.settings.extend(limit_settings(self.record));
        self.describe_settings()?;
        self.directory.write(self.record)?;
        Ok(())
    }

    /// Records what settings mean, and which of the declared ones the engine does not have.
    fn describe_settings(&mut self) -> anyhow::Result<()> {
        let file = self.conductor.file;
        let mut configs = file.plan.configs.iter();
        let config = configs.find(|config| {
            config.name == self.record.config && config.engine.name() == self.record.engine
        });
        let declared = match config {
            Some(config) => file.declared(config)?,
            None => Vec::new(),
        };
        let of_engine = engine::notation_of(&self.record.engine);
        self.record.not_had = notation::describe(of_engine, &mut self.record.settings, &declared);
        Ok(())
    }

    /// A workload on an engine that speaks SQL. `foreign`: a server that assay did not start, in which nothing is left.
    fn sql<E: SqlEngine>(
        &mut self,
        engine: &E,
        cell: plan::Cell,
        foreign: bool,
    ) -> anyhow::Result<Status> {
        let plan = self.conductor.plan();
        let clients = cell.clients;
        match &plan.variants[cell.variant].workload {
            Workload::Insert(insert) => {
                let mut workload = Insert::new(insert, clients, plan.seed);
                let tables = workload.tables().to_vec();
                let create = workload.create_statements(engine.dialect());
                self.with_tables(engine, &tables, &create, foreign, |this| {
                    let mut runner = InsertRunner {
                        database: &workload::insert::sql::Sql(engine),
                        workload: &mut workload,
                    };
                    this.all_steps(engine, &mut runner, cell)
                })
            }
            Workload::Sysbench(sysbench) => {
                let writers_max = if engine.capabilities().concurrent_writers {
                    u32::MAX
                } else {
                    1
                };
                let options = workload::sysbench::Options {
                    seed: plan.seed,
                    // Another attempt at the cell begins at another time.
                    nonce: self.record.started_unix_ns,
                    clients,
                    writers_max,
                };
                let mut workload = Sysbench::new(sysbench, options);
                let tables = workload.tables().to_vec();
                let create = workload.create_statements(engine.dialect())?;
                if foreign && !sysbench.loads() {
                    let differences = workload
                        .take_over(engine)
                        .context("the tables that are there are not what the plan needs")?;
                    self.note("sysbench::tables", &differences);
                    let workload = &mut workload;
                    let mut runner = SysbenchRunner { engine, workload };
                    return self.all_steps(engine, &mut runner, cell);
                }
                self.with_tables(engine, &tables, &create, foreign, |this| {
                    let workload = &mut workload;
                    let mut runner = SysbenchRunner { engine, workload };
                    this.all_steps(engine, &mut runner, cell)
                })
            }
            Workload::Kv(_) => {
                anyhow::bail!("the key-value sequence does not run on an engine that speaks SQL")
            }
        }
    }

    /// Makes the tables, runs `steps`, and in somebody else's server drops them again.
    fn with_tables<E: SqlEngine>(
        &mut self,
        engine: &E,
        tables: &[Table],
        create: &[String],
        foreign: bool,
        steps: impl FnOnce(&mut Self) -> anyhow::Result<Status>,
    ) -> anyhow::Result<Status> {
        let mut session = engine.connect()?;
        if !foreign {
            tables::make(&mut session, create)?;
            return steps(self);
        }
        let others = tables::Foreign {
            run: self.conductor.directory,
            directory: self.directory,
        };
        others.drop_what_was_left(&self.record.build, &mut session)?;
        let made = others.make(self.record, engine, tables, &mut session);
        // A server may end a session that is idle for as long as the steps take.
        drop(session);
        let result = made.and_then(|()| steps(self));
        if !self.keep {
            let dropped = engine
                .connect()
                .context("the tables can't be dropped")
                .and_then(|mut session| {
                    tables::drop_all(&mut session, &mut self.record.tables_left)
                });
            // What failed before is not hidden by what fails here.
            let status = result?;
            dropped?;
            return Ok(status);
        }
        if result
            .as_ref()
            .is_ok_and(|&status| status == Status::Complete)
        {
            // They are the operator's now.
            self.record.tables_left.clear();
        }
        result
    }

    fn all_steps<E: SqlEngine>(
        &mut self,
        engine: &E,
        runner: &mut dyn WorkloadRunner,
        cell: plan::Cell,
    ) -> anyhow::Result<Status> {
        let all = 0..self.record.steps.len();
        self.each_step(&Sql(engine), runner, all, cell)
    }

    /// Runs those steps of the workload that `part` says.
    fn each_step(
        &mut self,
        engine: &dyn StepEngine,
        runner: &mut dyn WorkloadRunner,
        part: Range<usize>,
        cell: plan::Cell,
    ) -> anyhow::Result<Status> {
        let remarks = Remarks {
            warnings: self.notes.clone(),
            shortfalls: self.shortfalls.clone(),
        };
        let workload = &self.conductor.plan().variants[cell.variant].workload;
        let (terms, steps) = (workload.terms(), workload.steps());
        let mut bench = Bench::new(self.conductor, engine, runner, terms, cell.clients, remarks)?;
        for number in part {
            let step = bench.run(self.directory, number, &steps[number])?;
            match step.status {
                Status::Complete => {}
                Status::Interrupted => return Ok(Status::Interrupted),
                Status::Failed | Status::Incomplete => {
                    let mut failure = step.failure.unwrap_or_default();
                    failure.causes.insert(
                        0,
                        format!(
                            "step `{}` of `{}` failed",
                            step.name, self.record.key.target
                        ),
                    );
                    self.record.failure = Some(failure);
                    self.record.status = Status::Failed;
                    return Ok(Status::Failed);
                }
            }
            if self.conductor.is_stopped() {
                return Ok(Status::Interrupted);
            }
        }
        Ok(Status::Complete)
    }
}

/// The names of a workload's steps.
pub fn step_names(workload: &Workload) -> Vec<String> {
    let steps = workload.steps();
    steps.iter().map(|step| step.name.to_owned()).collect()
}

/// The limits of a server as settings: what was asked for where that holds, for the kernel may have rounded it.
fn limit_settings(record: &Cell) -> Vec<Setting> {
    let setting = |what| {
        let limit = record.limits.iter().find(|limit| limit.what == what);
        let value = limit.and_then(|limit| match limit.reason {
            None => Some(limit.asked.as_str()),
            Some(_) => limit.effective.as_deref(),
        });
        notation::limit_setting(what, value)
    };
    match record.embedded && record.limits.is_empty() {
        true => Vec::new(),
        false => ["cpus", "memory"].map(setting).into(),
    }
}

/// Records what came of the limits of a target.
pub fn record_limits(record: &mut Cell, limits: &[Applied]) {
    record
        .limits
        .extend(limits.iter().map(|limit| record::Limit {
            what: limit.what.clone(),
            asked: limit.asked.clone(),
            effective: limit.effective.clone(),
            reason: limit.reason.clone(),
        }));
}

fn limits(record: &Cell) -> Vec<Applied> {
    let applied = |limit: &record::Limit| Applied {
        what: limit.what.clone(),
        asked: limit.asked.clone(),
        effective: limit.effective.clone(),
        reason: limit.reason.clone(),
    };
    record.limits.iter().map(applied).collect()
}
