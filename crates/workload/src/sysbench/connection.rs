//! The connections of the sysbench workload.

use std::ops::RangeInclusive;

use engine::{Dialect, Error, ErrorClass, Interrupt, Session, Statement};

use plan::sysbench::Effect;

use super::data::LoadedRows;
use super::event::{Event, EventValues, Streams};
use crate::summary::{RowChanges, TableChanges};
use crate::{Executed, Next, OpKind, OpRole, Program, Summary};

/// Inserts the rows of one statement.
pub const INSERT: OpKind = OpKind::new("insert", OpRole::Insert);
/// Creates an index.
pub(super) const CREATE_INDEX: OpKind = OpKind::new("create_index", OpRole::CreateIndex);
/// Runs the statements of a test once.
pub const EVENT: OpKind = OpKind::new("event", OpRole::Event);

/// Returns whether the server may have executed a statement although it did not answer.
fn outcome_is_unknown(class: ErrorClass) -> bool {
    matches!(class, ErrorClass::Interrupted | ErrorClass::ConnectionLost | ErrorClass::Protocol)
}

/// Rows of one table that a connection loads in batches of one statement.
pub(super) struct LoadBatches {
    pub(super) statement: Statement,
    /// Rows per batch.
    pub(super) rows: u32,
    /// The remaining keys; their number is a multiple of `rows`.
    pub(super) keys: RangeInclusive<u64>,
    pub(super) source: LoadedRows,
    /// The table's index in [`Loader::changes`].
    pub(super) table: usize,
}

/// Loads rows with given keys.
pub struct Loader<S> {
    pub(super) session: S,
    /// The batches that are still to load, in reverse order.
    pub(super) batches: Vec<LoadBatches>,
    pub(super) changes: TableChanges,
    pub(super) current: CurrentBatch,
}

/// The rows of a loader's current statement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CurrentBatch {
    rows: u32,
    /// See [`LoadBatches::table`].
    table: usize,
}

impl<S: Session> Program for Loader<S> {
    fn kinds(&self) -> &'static [OpKind] {
        &[INSERT]
    }

    fn prepare(&mut self) -> Next {
        while let Some(batches) = self.batches.last_mut() {
            if batches.keys.is_empty() {
                self.batches.pop();
                continue;
            }

            let first = *batches.keys.start();
            let end = first + u64::from(batches.rows);
            self.session.start(batches.statement);
            for id in first..end {
                let row = batches.source.row(id);
                self.session.int4(id as i32);
                self.session.int4(row.k);
                self.session.text(row.c());
                self.session.text(row.pad());
            }

            batches.keys = end..=*batches.keys.end();
            self.current = CurrentBatch { rows: batches.rows, table: batches.table };
            return Next::Ready(0);
        }
        Next::Done
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        let result = self.session.execute();
        let (_, changes) = &mut self.changes[self.current.table];
        match &result {
            Ok(outcome) => changes.inserted += outcome.rows,
            Err(error) => changes.is_uncertain |= outcome_is_unknown(error.class),
        }
        let expected = self.current.rows.into();
        Ok(Executed::new(result?.rows, (expected, expected)))
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.session.interrupt().map(Some)
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.session.server_thread()
    }

    fn summary(&mut self, _: u64) -> Result<Summary, Error> {
        Ok(Summary::RowChanges(self.changes.clone()))
    }
}

/// Creates the indexes of some tables.
pub struct Indexer<S> {
    pub(super) session: S,
    pub(super) statements: Vec<String>,
    pub(super) next: usize,
}

impl<S: Session> Program for Indexer<S> {
    fn kinds(&self) -> &'static [OpKind] {
        &[CREATE_INDEX]
    }

    fn prepare(&mut self) -> Next {
        if self.next == self.statements.len() {
            return Next::Done;
        }
        self.next += 1;
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        self.session.query(&self.statements[self.next - 1])?;
        Ok(Executed::without_rows())
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.session.interrupt().map(Some)
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.session.server_thread()
    }
}

/// A statement that begins or ends a transaction.
pub(crate) enum TransactionStatement {
    Prepared(Statement),
    /// The server does not prepare this statement, or should not.
    Text(&'static str),
}

impl TransactionStatement {
    /// Prepares the statement if the server can, unless it should be sent as text.
    pub(crate) fn new<S: Session>(
        session: &mut S,
        sql: &'static str,
        is_plain: bool,
    ) -> Result<Self, Error> {
        if is_plain {
            return Ok(Self::Text(sql));
        }
        match session.prepare(sql, &[]) {
            Ok(statement) => Ok(Self::Prepared(statement)),
            Err(error) if error.class.ends_session() => Err(error),
            Err(_) => Ok(Self::Text(sql)),
        }
    }

    #[inline]
    pub(crate) fn run<S: Session>(&self, session: &mut S) -> Result<(), Error> {
        match self {
            Self::Prepared(statement) => {
                session.start(*statement);
                session.execute().map(|_| ())
            }
            Self::Text(sql) => session.query(sql).map(|_| ()),
        }
    }
}

/// The statements that begin and end transactions.
pub(super) struct Transactions {
    pub(super) begin: TransactionStatement,
    /// The statement for read-only events of a test that also writes.
    pub(super) begin_reading: Option<TransactionStatement>,
    pub(super) commit: TransactionStatement,
    pub(super) rollback: TransactionStatement,
}

impl Transactions {
    /// Prepares the statements around the events of a test.
    pub(super) fn new<S: Session>(
        session: &mut S,
        event: &Event,
        dialect: &dyn Dialect,
    ) -> Result<Self, Error> {
        let is_plain = event.is_plain();
        let begin = dialect.begin_transaction(event.writes());
        let begin_reading = dialect.begin_transaction(false);
        Ok(Self {
            begin: TransactionStatement::new(session, begin, is_plain)?,
            begin_reading: if event.writes_sometimes() {
                Some(TransactionStatement::new(session, begin_reading, is_plain)?)
            } else {
                None
            },
            commit: TransactionStatement::new(session, dialect.commit(), is_plain)?,
            rollback: TransactionStatement::new(session, dialect.rollback(), is_plain)?,
        })
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The index of the next statement.
    statement: usize,
    /// The number of times that this statement has been executed.
    execution: u32,
    /// The session has the statement and its parameters.
    is_started: bool,
    /// The event's transaction is open.
    is_open: bool,
    /// Rows of all statements so far.
    rows: u64,
    /// A statement returned or changed a wrong number of rows.
    is_wrong: bool,
    /// The changes of the transaction, which count only if it commits.
    pending: RowChanges,
}

/// A table that a runner works on.
pub(super) struct RunnerTable {
    pub(super) number: u32,
    pub(super) name: String,
    /// The event's prepared statements; `None` for those that are sent as text.
    pub(super) statements: Vec<Option<Statement>>,
}

/// Runs events of one test.
pub struct Runner<S> {
    pub(super) session: S,
    event: Event,
    /// See [`Event::reinserts_deleted`].
    reinserts_deleted: bool,
    values: EventValues,
    streams: Streams,
    /// The tables, in the order of `changes`.
    tables: Vec<RunnerTable>,
    /// The text of a statement that is not prepared.
    text: String,
    transactions: Option<Transactions>,
    pub(super) changes: TableChanges,
    /// The index of the event's table in `changes`.
    table: usize,
    progress: Progress,
}

impl<S: Session> Runner<S> {
    /// Returns a runner on `tables`. With `transactions`, each event is one.
    pub(super) fn new(
        session: S,
        event: Event,
        streams: Streams,
        tables: Vec<RunnerTable>,
        transactions: Option<Transactions>,
    ) -> Self {
        let changes = tables.iter().map(|table| (table.number, RowChanges::default())).collect();
        Self {
            session,
            values: event.template(),
            reinserts_deleted: event.reinserts_deleted(),
            event,
            streams,
            transactions,
            changes,
            tables,
            text: String::new(),
            table: 0,
            progress: Progress::default(),
        }
    }

    /// Returns the progress before the first statement of the drawn event.
    #[inline]
    fn first_progress(&self) -> Progress {
        Progress { statement: self.event.next(0, &self.values), ..Progress::default() }
    }

    #[inline]
    fn start_next(&mut self) {
        let Progress { statement, execution, .. } = self.progress;
        let (event, values) = (&self.event, &self.values);
        let table = &self.tables[self.table];
        match table.statements.get(statement) {
            None => return,
            Some(Some(prepared)) => {
                self.session.start(*prepared);
                event.push(statement, execution, values, &mut self.session);
            }
            Some(None) => {
                self.text.clear();
                event.write(statement, &table.name, execution, values, &mut self.text);
                self.session.start_text(&self.text);
            }
        }
        self.progress.is_started = true;
    }

    #[inline]
    fn run(&mut self) -> Result<Executed, Error> {
        if let Some(transactions) = &self.transactions
            && !self.progress.is_open
        {
            let begin = match &transactions.begin_reading {
                Some(reading) if !self.event.choice_writes(&self.values) => reading,
                _ => &transactions.begin,
            };
            begin.run(&mut self.session)?;
            self.progress.is_open = true;
        }

        while self.progress.statement < self.event.test.statements.len() {
            if !self.progress.is_started {
                self.start_next();
            }
            let rows = self.session.execute()?.rows;
            self.count(rows);
        }

        if let Some(transactions) = &self.transactions {
            transactions.commit.run(&mut self.session)?;
            self.progress.is_open = false;
            self.settle_changes();
        }
        Ok(Executed {
            rows: self.progress.rows,
            is_expected: !self.progress.is_wrong,
            is_rolled_back: false,
        })
    }

    /// Counts the rows of a successful statement, and advances to the next.
    #[inline]
    fn count(&mut self, rows: u64) {
        let progress = &mut self.progress;
        let place = progress.statement;
        let statement = &self.event.test.statements[place];
        let is_right = self.event.is_right(place, rows, progress.execution, &self.values);
        progress.rows += rows;
        progress.is_wrong |= !is_right;
        match statement.effect {
            Effect::Reads | Effect::Changes => {}
            Effect::Inserts => progress.pending.inserted += rows,
            Effect::Deletes => progress.pending.deleted += rows,
            Effect::Unknown => progress.pending.is_uncertain = true,
        }

        progress.is_started = false;
        progress.execution += 1;
        if progress.execution == statement.repeat {
            progress.execution = 0;
            progress.statement = self.event.next(place + 1, &self.values);
        }

        // Without a transaction, each statement commits on its own.
        if self.transactions.is_none() {
            self.settle_changes();
        }
    }

    /// Adds the pending changes to the table's, since they are committed.
    #[inline]
    fn settle_changes(&mut self) {
        let mut pending = std::mem::take(&mut self.progress.pending);
        if self.reinserts_deleted {
            let put_back = pending.inserted.min(pending.deleted);
            pending.inserted -= put_back;
            pending.deleted -= put_back;
        }
        self.changes[self.table].1.add(pending);
    }

    /// Prepares a retry of the event: from its beginning if it is a transaction, else from the
    /// statement that failed.
    #[cold]
    fn roll_back(&mut self, class: ErrorClass) {
        if outcome_is_unknown(class) && !self.event.keeps_row_count() {
            let (_, changes) = &mut self.changes[self.table];
            changes.is_uncertain = true;
        }

        let Some(transactions) = &self.transactions else {
            return;
        };
        if self.progress.is_open && !class.ends_session() {
            // The server may have rolled back already. Some servers then refuse the statement.
            let _ = transactions.rollback.run(&mut self.session);
        }
        self.progress = self.first_progress();
    }

    #[cfg(test)]
    pub(super) fn next_random(&mut self) -> u64 {
        self.streams.choices.next_u64()
    }
}

impl<S: Session> Program for Runner<S> {
    fn kinds(&self) -> &'static [OpKind] {
        &[EVENT]
    }

    fn prepare(&mut self) -> Next {
        self.table = self.streams.choices.below(self.changes.len() as u64) as usize;
        self.event.draw(&mut self.streams, &mut self.values);
        self.progress = self.first_progress();
        if self.transactions.is_none() {
            self.start_next();
        }
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        let result = self.run();
        if let Err(error) = &result {
            self.roll_back(error.class);
        }
        result
    }

    fn may_retry(&self, class: ErrorClass) -> bool {
        // A duplicate key means that another connection reinserted the same row between this
        // event's delete and insert. A retry deletes that row.
        class.is_transient() || class == ErrorClass::DuplicateKey && self.reinserts_deleted
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.session.interrupt().map(Some)
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.session.server_thread()
    }

    fn summary(&mut self, _: u64) -> Result<Summary, Error> {
        Ok(Summary::RowChanges(self.changes.clone()))
    }
}
