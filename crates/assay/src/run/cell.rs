//! One cell: brings its target up, makes the tables, runs the steps, and takes the target down.

use anyhow::Context;
use engine::limits::Applied;
use engine::{DataDir, Engine, IndexStatements, Partitions, ServerEngine, Session};
use plan::{IndexSet, Insert, InsertStep, InsertStepKind, Query, Tables, Workload};
use record::{Cell, CellDir, CellRef, Failure, RecordError, Setting, Status, Warning};
use workload::insert;

use super::step::{Bench, Remarks, StepRun};
use super::target::{self, Up};
use super::{Conductor, unix_now_ns};
use crate::builds;
use crate::outcome::{causes_of, help_of, log_tail_of, print_failure};
use crate::preflight;

/// Lines of a server's log that a failure shows.
const LOG_LINES: usize = 20;

/// Runs a cell and records how it ended. Its failure is not the run's: only a record that can't be written is.
pub fn run(
    conductor: &Conductor<'_>,
    reference: &CellRef,
    cell: plan::Cell,
) -> anyhow::Result<Status> {
    let plan = conductor.plan();
    let target = &plan.targets[cell.target];
    let directory = conductor.directory.begin_cell(reference)?;
    let Workload::Insert(insert) = &plan.variants[cell.variant].workload else {
        return Err(preflight::no_rocksdb());
    };
    let mut record = Cell {
        target: target.name.clone(),
        build: plan.builds[target.build].name.clone(),
        config: plan.configs[target.config].name.clone(),
        engine: builds::engine_name(plan.builds[target.build].engine).into(),
        workload: reference.workload.clone(),
        variant: reference.variant.clone(),
        clients: cell.clients,
        repeat: cell.repeat,
        started_unix_ns: unix_now_ns(),
        sitting: conductor.sitting,
        steps: insert.steps.iter().map(|step| step.name.clone()).collect(),
        ..Cell::default()
    };
    directory.write(&record)?;
    let mut running = Running {
        conductor,
        directory: &directory,
        record: &mut record,
        insert,
        keep: plan.keep_data,
        notes: Vec::new(),
        shortfalls: Vec::new(),
    };
    let result = running.run(cell);
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
    insert: &'a Insert,
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
            Up::Null(engine) => self.measure(engine, cell.clients, false),
            Up::Sqlite(engine, data_dir) => {
                let result = self.measure(engine, cell.clients, false);
                self.leave(Some(data_dir), result)
            }
            Up::Postgres(engine) => self.measure_server(*engine, cell.clients),
            Up::Mysql(engine) => self.measure_server(*engine, cell.clients),
        }
    }

    fn measure_server(
        &mut self,
        engine: impl ServerEngine,
        clients: u32,
    ) -> anyhow::Result<Status> {
        self.record.server_user = engine.server_user().map(str::to_owned);
        self.note("server::config", engine.notes());
        let data_dir = engine.data_dir().cloned();
        let foreign = data_dir.is_none();
        let result = self.measure(engine, clients, foreign);
        self.leave(data_dir, result)
    }

    /// Records what a server may use of the machine, and says where that is not what was asked for.
    fn note_limits(&mut self, limits: &[Applied]) {
        for limit in limits {
            self.record.limits.push(record::Limit {
                what: limit.what.into(),
                asked: limit.asked.clone(),
                effective: limit.effective.clone(),
                reason: limit.reason.clone(),
            });
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
            self.conductor
                .display
                .warn(&format!("warning[{code}]: {text}"));
            self.notes.push(Warning {
                code: code.into(),
                text: text.clone(),
            });
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

    /// Runs all steps and stops the engine. `foreign`: a server that assay did not start, in which nothing is left.
    fn measure<E: Engine>(
        &mut self,
        engine: E,
        clients: u32,
        foreign: bool,
    ) -> anyhow::Result<Status> {
        let result = self.steps(&engine, clients, foreign);
        if self.record.status == Status::Failed || result.is_err() {
            let log_tail = engine.log_tail(LOG_LINES);
            if let Some(failure) = &mut self.record.failure {
                failure.log_tail = log_tail;
            }
        }
        let stopped = engine.stop();
        let status = result?;
        if status == Status::Complete {
            stopped?;
        }
        Ok(status)
    }

    fn steps<E: Engine>(
        &mut self,
        engine: &E,
        clients: u32,
        foreign: bool,
    ) -> anyhow::Result<Status> {
        self.record.engine_version = engine.version().into();
        self.record.embedded = engine.capabilities().embedded;
        self.record.settings = engine
            .settings()?
            .into_iter()
            .map(|setting| Setting {
                name: setting.name,
                value: setting.value,
                source: setting.source,
            })
            .collect();
        self.note_limits(engine.limits());
        self.directory.write(self.record)?;
        let mut workload =
            insert::Insert::new(options(self.insert, clients, self.conductor.plan().seed));
        let mut session = engine.connect()?;
        if !foreign {
            for sql in workload.create_statements(engine.dialect()) {
                session.query(&sql).with_context(|| format!("`{sql}`"))?;
            }
            return self.each_step(engine, &mut workload, clients);
        }
        self.drop_what_was_left(&mut session)?;
        let result = self
            .make_foreign_tables(engine, &workload, &mut session)
            .and_then(|()| self.each_step(engine, &mut workload, clients));
        if !self.keep {
            drop_tables(&mut session, &mut self.record.tables_left)?;
        } else if result
            .as_ref()
            .is_ok_and(|&status| status == Status::Complete)
        {
            // They are the operator's now.
            self.record.tables_left.clear();
        }
        result
    }

    /// Makes the tables in a server that others use too, and notes which: only those are ever dropped.
    fn make_foreign_tables<E: Engine>(
        &mut self,
        engine: &E,
        workload: &insert::Insert,
        session: &mut E::Session,
    ) -> anyhow::Result<()> {
        for table in workload.tables() {
            for sql in engine.dialect().create_table(table) {
                session.query(&sql).with_context(|| {
                    format!(
                        "`{sql}`: a table of that name that assay did not make is left as it is"
                    )
                })?;
            }
            self.record.tables_left.push(table.name.clone());
            self.directory.write(self.record)?;
        }
        Ok(())
    }

    /// Drops the tables that cells of this run made in this server and could not drop: a server or assay was killed.
    fn drop_what_was_left(&self, session: &mut impl Session) -> anyhow::Result<()> {
        for directory in self.conductor.directory.begun_cells()? {
            let mut record = directory.read()?;
            if record.build == self.record.build && !record.tables_left.is_empty() {
                drop_tables(session, &mut record.tables_left)?;
                directory.write(&record)?;
            }
        }
        Ok(())
    }

    fn each_step<E: Engine>(
        &mut self,
        engine: &E,
        workload: &mut insert::Insert,
        clients: u32,
    ) -> anyhow::Result<Status> {
        let remarks = Remarks {
            warnings: std::mem::take(&mut self.notes),
            shortfalls: std::mem::take(&mut self.shortfalls),
        };
        let mut bench = Bench::new(
            self.conductor,
            engine,
            workload,
            self.insert,
            clients,
            remarks,
        )?;
        for (number, plan_step) in self.insert.steps.iter().enumerate() {
            let step_run = StepRun {
                number: number as u32 + 1,
                name: &plan_step.name,
                step: step(number, plan_step),
            };
            let step = bench.run(self.directory, &step_run, time(plan_step))?;
            match step.status {
                Status::Complete => {}
                Status::Interrupted => return Ok(Status::Interrupted),
                Status::Failed | Status::Incomplete => {
                    let mut failure = step.failure.unwrap_or_default();
                    failure.causes.insert(
                        0,
                        format!("step `{}` of `{}` failed", step.name, self.record.target),
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

fn drop_tables(session: &mut impl Session, tables: &mut Vec<String>) -> anyhow::Result<()> {
    while let Some(table) = tables.last() {
        let sql = format!("drop table if exists {table}");
        session.query(&sql).with_context(|| format!("`{sql}`"))?;
        tables.pop();
    }
    Ok(())
}

fn options(insert: &Insert, clients: u32, seed: u64) -> insert::Options {
    insert::Options {
        seed,
        clients,
        shared_table: insert.tables == Tables::Shared,
        delete_per_insert: insert.delete_per_insert,
        indexes: match insert.indexes {
            IndexSet::Current => insert::IndexSet::Current,
            IndexSet::Before2023Dec => insert::IndexSet::Before2023Dec,
        },
        data_length: insert.data_length,
        partitions: (insert.partitions > 0).then(|| Partitions {
            count: insert.partitions,
            rows_each: (rows_per_table(insert, clients) / u64::from(insert.partitions)).max(1),
        }),
        index_statements: match insert.index_statements {
            plan::IndexStatements::Usual => IndexStatements::Usual,
            plan::IndexStatements::One => IndexStatements::One,
            plan::IndexStatements::Each => IndexStatements::Each,
        },
        bulk_load: insert.bulk_load,
        long_transaction_seconds: insert.long_transaction.map(|hold| hold.as_secs_f64()),
    }
}

/// Keys that each table gets in the whole of a cell (methodology a12 of the Insert Benchmark's scripts: all rows of
/// all steps).
fn rows_per_table(insert: &Insert, clients: u32) -> u64 {
    let writers = if insert.tables == Tables::Shared {
        f64::from(clients)
    } else {
        1.0
    };
    let rows = |step: &InsertStep| match step.kind {
        InsertStepKind::Load { rows, .. }
        | InsertStepKind::Index { rows, .. }
        | InsertStepKind::Write { rows, .. } => rows,
        InsertStepKind::Query { rate, time, .. } => (rate * time.as_secs_f64() * writers) as u64,
        InsertStepKind::Settle => 0,
    };
    insert.steps.iter().map(rows).sum()
}

fn time(step: &InsertStep) -> Option<std::time::Duration> {
    match step.kind {
        InsertStepKind::Query { time, .. } => Some(time),
        _ => None,
    }
}

fn step(number: usize, step: &InsertStep) -> Option<insert::Step> {
    let kind = match step.kind {
        InsertStepKind::Load {
            rows,
            rows_per_commit,
        } => insert::StepKind::Load {
            rows,
            rows_per_commit,
        },
        InsertStepKind::Index {
            rows,
            rows_per_commit,
        } => insert::StepKind::Index {
            rows,
            rows_per_commit,
        },
        InsertStepKind::Write {
            rows,
            rows_per_commit,
        } => insert::StepKind::Write {
            rows,
            rows_per_commit,
        },
        InsertStepKind::Query {
            query,
            rate,
            rows_per_commit,
            ..
        } => insert::StepKind::Query {
            point: query == Query::Point,
            rate,
            rows_per_commit,
        },
        InsertStepKind::Settle => return None,
    };
    Some(insert::Step {
        number: number as u32,
        kind,
    })
}
