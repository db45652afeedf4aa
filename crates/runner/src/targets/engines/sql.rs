//! A running SQL engine: the tables of a cell on it, and its replicas.

use anyhow::Context;
use engine::{Engine, HEARTBEAT_TABLE, SqlEngine, Table};
use record::Status;
use words::CellKind;
use workload::ClientShare;
use workload::sysbench::Options;
use workload::transactions::Procedure;

use crate::targets::replicas::{Replication, StoppedReplicas};
use crate::targets::running::{Leftovers, RunningTarget, Stopped, TargetSteps};
use crate::targets::site::CellSite;
use crate::targets::workloads::SqlSteps;
use crate::targets::workloads::sql::SqlWorkload;
use crate::targets::{procedures, tables};

/// A running SQL engine.
pub struct SqlTarget<E: SqlEngine> {
    pub engine: E,
    /// A server that assay did not start, in which it leaves nothing behind.
    pub is_foreign: bool,
    /// The directories to remove at the end.
    pub leftovers: Leftovers,
    /// Gets a server ready for tables.
    pub preparation: Option<Box<dyn Preparation<E>>>,
    replication: Option<Box<dyn Replication>>,
    /// A session with an embedded engine that is open while the steps run: SQLite would clean up
    /// whenever its last session closes, also between two steps. A server needs none, and waits for
    /// the statistics of sessions that are about to close.
    session: Option<E::Session>,
    /// The workload; `None` until its tables are made.
    workload: Option<SqlWorkload>,
    /// The numbers of tables and procedures that the record named before this cell made its own; `None`
    /// before, or where nothing has to be dropped.
    noted: Option<Noted>,
}

/// The numbers of tables and procedures that a record names.
#[derive(Clone, Copy, Debug)]
struct Noted {
    tables: usize,
    procedures: usize,
}

/// Gets a server ready for tables.
pub trait Preparation<E> {
    /// Starts or finds its replicas, and waits until they follow; `None` if there are none.
    fn prepare(
        &mut self,
        cell: &mut CellSite<'_>,
        engine: &E,
    ) -> anyhow::Result<Option<Box<dyn Replication>>>;
}

impl<E: SqlEngine> SqlTarget<E> {
    /// Returns an engine that assay has started, without replicas.
    pub fn new(engine: E, leftovers: Leftovers) -> Self {
        Self {
            engine,
            is_foreign: false,
            leftovers,
            preparation: None,
            replication: None,
            session: None,
            workload: None,
            noted: None,
        }
    }

    /// Creates tables on the engine, and on replicas that get no definitions from it.
    fn create(&mut self, cell: &mut CellSite<'_>, tables: &[Table]) -> anyhow::Result<()> {
        let mut session = self.engine.connect()?;
        if self.is_foreign {
            tables::make(&self.engine, &mut session, tables, |table| cell.note_table(table))?;
        } else {
            tables::make(&self.engine, &mut session, tables, |_| Ok(()))?;
        }

        if cell.record.embedded {
            self.session = Some(session);
        }

        match &self.replication {
            Some(replication) => replication.create_tables(tables),
            None => Ok(()),
        }
    }

    /// Creates the procedures that the workload calls. A copied database has those of its own cell.
    fn create_procedures(
        &self,
        cell: &mut CellSite<'_>,
        procedures: &[Procedure],
    ) -> anyhow::Result<()> {
        if procedures.is_empty() {
            return Ok(());
        }

        let mut session = self.engine.connect()?;
        if self.is_foreign {
            let made = |procedure: &Procedure| cell.note_procedure(procedure);
            procedures::make_in_foreign(&mut session, procedures, made)
        } else {
            procedures::make(&mut session, procedures)
        }
    }
}

impl<E: SqlEngine + 'static> RunningTarget for SqlTarget<E> {
    fn leftovers(&self) -> Leftovers {
        self.leftovers.clone()
    }

    fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    fn prepare(&mut self, cell: &mut CellSite<'_>) -> anyhow::Result<()> {
        if let Some(preparation) = &mut self.preparation {
            self.replication = preparation.prepare(cell, &self.engine)?;
        }
        Ok(())
    }

    fn make_tables(&mut self, cell: &mut CellSite<'_>) -> anyhow::Result<()> {
        let options = Options {
            seed: cell.session.plan().seed,
            nonce: cell.nonce(),
            clients: cell.planned.clients,
            share: ClientShare::ALL,
            writers_max: self.engine.capabilities().writers_max,
            is_unlimited: cell.planned.kind == CellKind::Unlimited,
        };

        let mut workload = SqlWorkload::new(cell.workload(), options)?;

        // Only a server of others may already have tables.
        if self.is_foreign && !workload.loads() {
            let differences = workload.adopt_tables(&self.engine)?;
            cell.note("sysbench::tables", &differences);
            self.workload = Some(workload);
            return Ok(());
        }

        let tables = workload.tables().to_vec();
        let procedures = workload.procedures(self.engine.dialect());
        self.workload = Some(workload);
        if cell.database_to_copy().is_some() {
            // The copy has them.
            if cell.record.embedded {
                self.session = Some(self.engine.connect()?);
            }
            return self.create_procedures(cell, &procedures);
        }
        if self.is_foreign {
            // Others drop what is noted already.
            self.noted = Some(Noted {
                tables: cell.record.tables_left.len(),
                procedures: cell.record.procedures_left.len(),
            });
        }

        self.create(cell, &tables)?;
        self.create_procedures(cell, &procedures)
    }

    fn steps(&mut self, cell: &CellSite<'_>) -> anyhow::Result<TargetSteps<'_>> {
        let workload = self.workload.as_mut().context("the tables were not made")?;

        let replication = self.replication.as_deref();

        Ok(TargetSteps {
            engine: Box::new(SqlSteps { engine: &self.engine, replication }),
            runner: workload.runner(&self.engine),
            part: cell.part_of_steps(),
        })
    }

    fn drop_tables(
        &mut self,
        cell: &mut CellSite<'_>,
        ended: Option<Status>,
    ) -> anyhow::Result<()> {
        self.session = None;
        let Some(noted) = self.noted else {
            return Ok(());
        };

        if cell.keep {
            if ended == Some(Status::Complete) {
                // They belong to the operator now.
                cell.record.tables_left.truncate(noted.tables);
                cell.record.procedures_left.truncate(noted.procedures);
            }
            return Ok(());
        }

        let mut session =
            self.engine.connect_to_clean_up().context("the tables cannot be dropped")?;
        let record = &mut *cell.record;
        procedures::drop_all(&mut session, &mut record.procedures_left, noted.procedures)?;
        tables::drop_all(&mut session, &mut record.tables_left, noted.tables)
    }

    fn stop_replicas(
        &mut self,
        cell: &mut CellSite<'_>,
        ended: Option<Status>,
    ) -> anyhow::Result<()> {
        let Some(replication) = self.replication.take() else {
            return Ok(());
        };
        // The next cell drops the tables of one that failed, but only on the primary.
        let keeps_tables = cell.keep && ended == Some(Status::Complete);

        let StoppedReplicas { cleaned, stopped } = replication.stop(keeps_tables);

        match cleaned {
            Ok(()) => cell.record.tables_left.retain(|table| table != HEARTBEAT_TABLE),
            Err(error) => cell.note("replica::left", &[format!("{error:#}")]),
        }

        stopped
    }

    fn stop(self: Box<Self>, ended: Option<Status>) -> Stopped {
        let result = if ended == Some(Status::Complete) {
            self.engine.stop()
        } else {
            self.engine.abandon()
        };
        Stopped { result, next: None }
    }
}
