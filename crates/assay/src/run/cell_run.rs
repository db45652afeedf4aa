//! A cell while its target is up: records the engine's settings, creates the tables, runs the
//! steps, and leaves nothing behind.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Context;
use engine::notation;
use engine::{DataDir, Engine, LogParser, SqlEngine, Table};
use plan::Workload;
use record::{Cell, CellDir, Limit, LogEvent, ServerHost, Setting, Status, Warning};
use workload::ClientShare;
use workload::sysbench::Options;

use super::conductor::{Conductor, unix_now_ns};
use super::ranks::CellOrder;
use super::replication::Replication;
use super::runners::sql::SqlWorkload;
use super::runners::{SqlSteps, StepEngine, WorkloadRunner};
use super::step::{CellNotes, StepRunner};
use super::tables;
use crate::outcome::failure_of;

/// Lines of a server's log that a failure shows.
pub const LOG_LINES: usize = 20;

/// A cell that is being measured.
pub struct CellRun<'a> {
    pub conductor: &'a Conductor<'a>,
    pub directory: &'a CellDir,
    pub record: &'a mut Cell,
    /// The cell in the plan.
    pub planned: plan::Cell,
    /// Keep the database when the cell has ended.
    pub keep: bool,
    /// The URL at which load ranks reach the server; `None` for an engine without one.
    pub url: Option<String>,
    /// The events of the engine's log so far.
    events: Vec<LogEvent>,
    /// The server's replicas.
    pub replication: Option<Rc<dyn Replication>>,
    /// Warnings for every step, and reasons why none can be valid.
    notes: CellNotes,
}

impl<'a> CellRun<'a> {
    pub fn new(
        conductor: &'a Conductor<'a>,
        directory: &'a CellDir,
        record: &'a mut Cell,
        planned: plan::Cell,
    ) -> Self {
        Self {
            conductor,
            directory,
            record,
            planned,
            keep: conductor.plan().keep_data,
            url: None,
            events: Vec::new(),
            replication: None,
            notes: CellNotes::default(),
        }
    }

    fn target(&self) -> &'a plan::Target {
        &self.conductor.plan().targets[self.planned.target]
    }

    pub fn build(&self) -> &'a plan::Build {
        &self.conductor.plan().builds[self.target().build]
    }

    pub fn config(&self) -> &'a plan::Config {
        &self.conductor.plan().configs[self.target().config]
    }

    pub fn workload(&self) -> &'a Workload {
        &self.conductor.plan().variants[self.planned.variant].workload
    }

    /// Returns the target's directory.
    pub fn home(&self) -> PathBuf {
        self.conductor.data_root.join(&self.target().name)
    }

    /// Creates an empty directory for a database in the target's directory.
    pub fn empty_directory(&self, name: &str) -> anyhow::Result<DataDir> {
        let data_dir = DataDir::create(&self.home(), name)?;
        data_dir.wipe()?;
        Ok(data_dir)
    }

    /// Records limits of the target, and warns about those that are not as requested.
    pub fn note_limits(&mut self, limits: &[Limit]) {
        for limit in limits {
            if let Some(reason) = &limit.reason {
                let text = format!("`{} = \"{}\"`: {reason}", limit.what, limit.asked);
                self.note("server::limits", &[text]);
            }
        }
        let shortfalls = limits.iter().filter_map(Limit::shortfall);
        self.notes.shortfalls.extend(shortfalls);
        self.record.limits.extend_from_slice(limits);
    }

    /// Prints warnings, and keeps them for every step.
    pub fn note(&mut self, code: &str, notes: &[String]) {
        for text in notes {
            let note = Warning::new(code, text);
            // An engine that is started twice may warn twice.
            if !self.notes.warnings.contains(&note) {
                let display = &self.conductor.display;
                display.warn(&format!("warning[{code}]: {text}"));
                self.notes.warnings.push(note);
            }
        }
    }

    /// Removes the database unless it should be kept. An earlier error takes precedence.
    pub fn clean_up(
        &self,
        data_dir: Option<DataDir>,
        result: anyhow::Result<Status>,
    ) -> anyhow::Result<Status> {
        let removed = data_dir.filter(|_| !self.keep).map_or(Ok(()), |data_dir| {
            let home = data_dir.path().parent().map(Path::to_path_buf);
            let removed = data_dir.remove();
            // Removes the target's directory if it is empty.
            let _ = home.map(fs_err::remove_dir);
            removed
        });
        let status = result?;
        removed.context("the database can't be removed")?;
        Ok(status)
    }

    /// Runs `steps` on a started engine, and stops it.
    pub fn measure<E: Engine>(
        &mut self,
        engine: E,
        steps: impl FnOnce(&mut Self, &E) -> anyhow::Result<Status>,
    ) -> anyhow::Result<Status> {
        let result = self.describe(&engine).and_then(|()| steps(self, &engine));
        if let Some(failure) = &mut self.record.failure
            && failure.log_tail.is_empty()
        {
            failure.log_tail = engine.log_tail(LOG_LINES);
        }
        let (log, parser) = (engine.log_path(), engine.log_parser());
        let stopped = engine.stop();
        // Now the log has all of its lines.
        let kept = log.map_or(Ok(()), |log| keep_log(self.directory, &log));
        let kept = kept.and_then(|()| parser.map_or(Ok(()), |parser| self.keep_events(parser)));
        let status = result?;
        kept?;
        if status == Status::Complete {
            stopped?;
        }
        Ok(status)
    }

    /// Adds the events of the kept log to the record.
    fn keep_events(&mut self, parser: LogParser) -> anyhow::Result<()> {
        let log = self.directory.log_path();
        if !log.exists() {
            return Ok(());
        }
        match engine::log_events(&log, parser) {
            Ok(events) => self.events.extend(events),
            Err(error) => {
                let text = format!("the events of the engine's log can't be read: {error}");
                self.note("engine::log", &[text]);
                return Ok(());
            }
        }
        Ok(self.directory.write_log_events(&self.events)?)
    }

    /// Records the engine's version, settings and limits.
    fn describe(&mut self, engine: &impl Engine) -> anyhow::Result<()> {
        let is_first = self.record.engine_version.is_empty();
        self.record.engine_version = engine.version().into();
        self.record.embedded = engine.capabilities().embedded;
        self.record.server_host =
            if engine.is_on_other_host() { ServerHost::Remote } else { ServerHost::Local };
        self.record.settings = engine.settings()?;
        if is_first {
            self.note_limits(engine.limits());
        }
        self.record.settings.extend(limit_settings(self.record));
        let of_replicas = self.config().replica_options().into_iter();
        let of_replicas = of_replicas.map(|(name, value)| Setting::new(name, value));
        self.record.settings.extend(of_replicas);
        self.describe_settings()?;
        self.directory.write(self.record)?;
        Ok(())
    }

    /// Records the meaning of settings, and which of the declared ones the engine does not have.
    pub fn describe_settings(&mut self) -> anyhow::Result<()> {
        let declared = self.conductor.file.declared(self.config())?;
        let of_engine = engine::notation_of(&self.record.engine);
        self.record.unmet_options =
            notation::describe(of_engine, &mut self.record.settings, &declared);
        Ok(())
    }

    /// Runs a workload on a SQL engine. `foreign`: a server that assay did not start, in which it
    /// leaves nothing behind.
    pub fn sql<E: SqlEngine>(&mut self, engine: &E, foreign: bool) -> anyhow::Result<Status> {
        let options = Options {
            seed: self.conductor.plan().seed,
            // Another attempt at the cell starts at another time.
            nonce: self.record.started_unix_ns,
            clients: self.planned.clients,
            share: ClientShare::ALL,
            writers_max: engine.capabilities().writers_max,
        };
        let mut workload = SqlWorkload::new(self.workload(), options)?;
        let makes_tables = !foreign || workload.loads();
        if !makes_tables {
            let differences = workload.adopt_tables(engine)?;
            self.note("sysbench::tables", &differences);
        }
        let tables = workload.tables().to_vec();
        let mut runner = workload.runner(engine);
        if makes_tables {
            self.with_tables(engine, &tables, foreign, |this| {
                this.run_all_steps(engine, &mut *runner, options.nonce)
            })
        } else {
            self.run_all_steps(engine, &mut *runner, options.nonce)
        }
    }

    /// Creates the tables, runs `steps`, and drops the tables again in a foreign server.
    fn with_tables<E: SqlEngine>(
        &mut self,
        engine: &E,
        tables: &[Table],
        foreign: bool,
        steps: impl FnOnce(&mut Self) -> anyhow::Result<Status>,
    ) -> anyhow::Result<Status> {
        let mut session = engine.connect()?;
        if !foreign {
            tables::make(engine, &mut session, tables, |_| Ok(()))?;
            self.create_on_replicas(tables)?;
            return steps(self);
        }
        // Others drop what is noted already.
        let noted = self.record.tables_left.len();
        let made = tables::make(engine, &mut session, tables, |it| self.note_table(it));
        // A server may close a session that is idle for as long as the steps take.
        drop(session);
        let made = made.and_then(|()| self.create_on_replicas(tables));
        let result = made.and_then(|()| steps(self));
        if !self.keep {
            let dropped = engine
                .connect_to_clean_up()
                .context("the tables can't be dropped")
                .and_then(|mut session| {
                    tables::drop_all(&mut session, &mut self.record.tables_left, noted)
                });
            // An earlier error takes precedence.
            let status = result?;
            dropped?;
            return Ok(status);
        }
        if matches!(result, Ok(Status::Complete)) {
            // They belong to the operator now.
            self.record.tables_left.truncate(noted);
        }
        result
    }

    /// Notes a new table in a foreign server. Only noted tables are ever dropped.
    pub fn note_table(&mut self, table: &Table) -> anyhow::Result<()> {
        self.record.tables_left.push(table.name.clone());
        Ok(self.directory.write(self.record)?)
    }

    /// Drops tables that earlier cells of this run left behind in a foreign server.
    pub fn drop_leftover_tables<E: SqlEngine>(&self, engine: &E) -> anyhow::Result<()> {
        let run = self.conductor.directory;
        tables::drop_leftover_tables(run, &self.record.build, &mut engine.connect_to_clean_up()?)
    }

    /// Creates new tables on replicas that get no definitions from the server.
    fn create_on_replicas(&self, tables: &[Table]) -> anyhow::Result<()> {
        let replication = self.replication.as_ref();
        replication.map_or(Ok(()), |it| it.create_tables(tables))
    }

    fn run_all_steps<E: SqlEngine>(
        &mut self,
        engine: &E,
        runner: &mut dyn WorkloadRunner,
        nonce: u64,
    ) -> anyhow::Result<Status> {
        let all = 0..self.record.steps.len();
        let steps = SqlSteps { engine, replication: self.replication.clone() };
        let Some(ranks) = &self.conductor.ranks else {
            return self.run_steps(&steps, runner, all);
        };
        let plan = self.conductor.file.to_record();
        let begun = ranks.begin_cell(|share| CellOrder {
            plan: plan.clone(),
            target: self.planned.target,
            variant: self.planned.variant,
            clients: self.planned.clients,
            nonce,
            share,
            url: self.url.clone(),
        });
        let result = begun.and_then(|()| self.run_steps(&steps, runner, all));
        let alive = if self.conductor.is_stopped() { ranks.check_alive() } else { Ok(()) };
        if let Err(error) = alive {
            // Before the server is stopped: `mpirun` kills this process soon.
            self.record.failure = Some(failure_of(&error));
            self.record.status = Status::Failed;
            self.record.ended_unix_ns = Some(unix_now_ns());
            self.directory.write(self.record)?;
            return Err(error);
        }
        let ended = ranks.end_cell();
        // An earlier error takes precedence.
        let status = result?;
        ended?;
        Ok(status)
    }

    /// Runs the steps in the range `part`.
    pub fn run_steps(
        &mut self,
        engine: &dyn StepEngine,
        runner: &mut dyn WorkloadRunner,
        part: Range<usize>,
    ) -> anyhow::Result<Status> {
        let notes = self.notes.clone();
        let (policy, steps) = (self.workload().policy(), self.workload().steps());
        let planned = self.planned;
        let mut step_runner =
            StepRunner::new(self.conductor, engine, runner, policy, planned, notes)?;
        for number in part {
            let step = step_runner.run(self.directory, number, &steps[number])?;
            match step.status {
                Status::Complete => {}
                Status::Interrupted => return Ok(Status::Interrupted),
                Status::Failed | Status::Incomplete => {
                    let target = &self.record.key.target;
                    let mut failure = step.failure.unwrap_or_default();
                    let what = format!("step `{}` of `{target}` failed", step.name);
                    failure.causes.insert(0, what);
                    self.record.failure = Some(failure);
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

/// Copies an engine's log from its data directory into the record.
pub fn keep_log(directory: &CellDir, log: &Path) -> anyhow::Result<()> {
    let kept = directory.log_path();
    let is_there =
        fs_err::canonicalize(&kept).is_ok_and(|kept| Some(kept) == fs_err::canonicalize(log).ok());
    // A server's log may be in the record already: copying a file onto itself would empty it.
    if is_there || !log.exists() {
        return Ok(());
    }
    // The server's user can replace its log by a link to what only root can read.
    let mut log = record::open_regular(log).context("cannot read the engine's log")?;
    if kept.symlink_metadata().is_ok() {
        fs_err::remove_file(&kept)?;
    }
    std::io::copy(&mut log, &mut fs_err::File::create_new(kept)?)?;
    Ok(())
}

/// Removes the rest of a database in a target's directory. The next cell of this target wipes files
/// that can't be removed now.
pub fn remove_database(home: &Path, name: &str) {
    let _ = DataDir::create(home, name).and_then(DataDir::remove);
    let _ = fs_err::remove_dir(home);
}

/// Returns the limits of a server as settings: the requested value if it is in force, since the
/// kernel may round it.
fn limit_settings(record: &Cell) -> Vec<Setting> {
    let setting = |what| {
        let limit = record.limits.iter().find(|limit| limit.what == what);
        let value = limit.and_then(|limit| match limit.reason {
            None => Some(limit.asked.as_str()),
            Some(_) => limit.effective.as_deref(),
        });
        notation::limit_setting(what, value)
    };
    if record.embedded && record.limits.is_empty() {
        Vec::new()
    } else {
        ["cpus", "cpu-quota", "memory"].map(setting).into()
    }
}
