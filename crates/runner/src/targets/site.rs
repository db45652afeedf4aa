//! A cell as its target sees it: what belongs to it in the plan, its record so far, and its files.

use std::path::{Path, PathBuf};

use anyhow::Context;
use engine::notation;
use engine::{DataDir, SqlEngine, Table, Wrapper};
use plan::Workload;
use record::{Cell, CellDir, Limit, RunDir, Warning};
use workload::transactions::Procedure;

use super::part::Part;
use super::tables;
use crate::session::RunSession;

/// The site of a cell, on which its target is built. A target gets no more than this of its cell.
pub struct CellSite<'a> {
    pub session: &'a RunSession<'a>,
    /// The run's directory.
    pub run: &'a RunDir,
    pub directory: &'a CellDir,
    pub record: &'a mut Cell,
    /// The cell in the plan.
    pub planned: plan::Cell,
    /// The tool under which a server runs; `None` if it runs by itself.
    pub wrapper: Option<&'a dyn Wrapper>,
    /// Keep the database when the cell has ended.
    pub keep: bool,
    /// The URL at which load ranks reach the server; `None` for an engine without one.
    pub url: Option<String>,
    /// The steps that the target runs.
    pub part: Part,
    /// Warnings for every step, and reasons why none can be valid.
    notes: CellNotes,
}

/// Warnings and reasons that apply to every step of a cell.
#[derive(Clone, Default)]
pub struct CellNotes {
    /// Warnings about the results.
    pub warnings: Vec<Warning>,
    /// The reasons why no step can be valid.
    pub shortfalls: Vec<String>,
}

impl<'a> CellSite<'a> {
    pub fn new(
        session: &'a RunSession<'a>,
        run: &'a RunDir,
        directory: &'a CellDir,
        record: &'a mut Cell,
        planned: plan::Cell,
    ) -> Self {
        let count = record.steps.len();
        Self {
            session,
            run,
            directory,
            record,
            planned,
            wrapper: None,
            keep: session.plan().keep_data,
            url: None,
            part: Part { steps: 0..count, database: None },
            notes: CellNotes::default(),
        }
    }

    fn target(&self) -> &'a plan::Target {
        &self.session.plan().targets[self.planned.target]
    }

    pub fn build(&self) -> &'a plan::Build {
        &self.session.plan().builds[self.target().build]
    }

    pub fn config(&self) -> &'a plan::Config {
        &self.session.plan().configs[self.target().config]
    }

    /// Returns the target that loads the database of this one, if that is another.
    pub fn loader(&self) -> Option<&'a plan::Target> {
        Some(&self.session.plan().targets[self.target().load_with?])
    }

    /// Returns the build that loads the database.
    pub fn loading_build(&self) -> &'a plan::Build {
        let target = self.loader().unwrap_or(self.target());
        &self.session.plan().builds[target.build]
    }

    pub fn workload(&self) -> &'a Workload {
        &self.session.plan().variants[self.planned.variant].workload
    }

    /// Returns the target's directory.
    pub fn home(&self) -> PathBuf {
        self.session.data_root.join(&self.target().name)
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
                self.session.events.warn(Some(code), text);
                self.notes.warnings.push(note);
            }
        }
    }

    /// Returns a number that differs between attempts at the cell: each starts at another time.
    pub fn nonce(&self) -> u64 {
        self.record.started_unix_ns
    }

    /// Returns warnings for every step, and reasons why none can be valid.
    pub fn notes(&self) -> &CellNotes {
        &self.notes
    }

    /// Gives the kept log of the load another name, before the target is opened again.
    pub fn set_load_log_aside(&self) -> anyhow::Result<()> {
        let log = self.directory.log_path();
        if !log.exists() {
            return Ok(());
        }

        // A target may be opened more than twice, each time with a log of its own.
        let mut place = self.directory.path().join("load.log");
        let mut number = 2;
        while place.exists() {
            place = self.directory.path().join(format!("load-{number}.log"));
            number += 1;
        }

        Ok(fs_err::rename(log, place)?)
    }

    /// Returns the identifier of the run.
    pub fn run_id(&self) -> anyhow::Result<String> {
        Ok(self.run.read_run()?.id)
    }

    /// Records the meaning of settings, and which of the declared ones the engine does not have.
    pub fn describe_settings(&mut self) -> anyhow::Result<()> {
        let declared = self.session.file.declared(self.config())?;
        let of_engine = engine::notation_of(&self.record.engine);
        self.record.unmet_options =
            notation::describe(of_engine, &mut self.record.settings, &declared);
        Ok(())
    }

    /// Notes a new table in a foreign server. Only noted tables are ever dropped.
    pub fn note_table(&mut self, table: &Table) -> anyhow::Result<()> {
        self.record.tables_left.push(table.name.clone());
        Ok(self.directory.write(self.record)?)
    }

    /// Notes a new procedure in a foreign server. Only noted procedures are ever dropped.
    pub fn note_procedure(&mut self, procedure: &Procedure) -> anyhow::Result<()> {
        self.record.procedures_left.push(procedure.signature.clone());
        Ok(self.directory.write(self.record)?)
    }

    /// Drops what earlier cells of this run left behind in a foreign server.
    pub fn drop_leftovers<E: SqlEngine>(&self, engine: &E) -> anyhow::Result<()> {
        tables::drop_leftovers(self.run, &self.record.build, &mut engine.connect_to_clean_up()?)
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
/// that cannot be removed now.
pub fn remove_database(home: &Path, name: &str) {
    let _ = DataDir::create(home, name).and_then(DataDir::remove);
    let _ = fs_err::remove_dir(home);
}
