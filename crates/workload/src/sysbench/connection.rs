//! What each kind of connection of the sysbench workload does.

use std::any::Any;
use std::ops::RangeInclusive;

use engine::{Error, ErrorClass, Interrupt, Session, Statement};

use plan::sysbench::Effect;

use super::data::Rows;
use super::event::{Drawn, Event, Streams};
use crate::{Executed, Kind, Next, Program};

/// What was done to the number of rows, by the number of the table: what a program gives account of.
pub(super) type ByTable = Vec<(u32, Changes)>;

/// What was done to the number of a table's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Rows inserted, but for those that the same transaction had deleted.
    pub inserted: u64,
    /// Rows deleted, but for those that the same transaction inserted again.
    pub deleted: u64,
    /// There may have been more or fewer: a connection was lost before the server answered, or a statement does what
    /// can't be counted.
    pub is_unsure: bool,
}

impl Changes {
    /// Takes in what else was done.
    pub(super) fn add(&mut self, more: Self) {
        self.inserted += more.inserted;
        self.deleted += more.deleted;
        self.is_unsure |= more.is_unsure;
    }
}

/// Whether the server may have done what it was asked although it didn't answer.
fn leaves_doubt(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::Interrupted | ErrorClass::ConnectionLost | ErrorClass::Protocol
    )
}

/// Rows of one table that a connection loads by one statement each time.
pub(super) struct Batches {
    pub(super) statement: Statement,
    /// Rows of each.
    pub(super) rows: u32,
    /// The keys of all; their number is a multiple of `rows`.
    pub(super) keys: RangeInclusive<u64>,
    pub(super) source: Rows,
    /// The table's place in [`Loader::changes`].
    pub(super) table: usize,
}

/// Loads rows with the keys that it gives them.
pub struct Loader<S> {
    pub(super) session: S,
    /// What is still to be loaded, the last first.
    pub(super) batches: Vec<Batches>,
    pub(super) changes: ByTable,
    /// Rows of the current statement, and their table's place.
    pub(super) current: (u32, usize),
}

impl<S: Session> Program for Loader<S> {
    fn kinds(&self) -> &'static [Kind] {
        &[Kind("insert")]
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
            self.current = (batches.rows, batches.table);
            return Next::Ready(0);
        }
        Next::Done
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        let result = self.session.execute();
        let (_, changes) = &mut self.changes[self.current.1];
        match &result {
            Ok(outcome) => changes.inserted += outcome.rows,
            Err(error) => changes.is_unsure |= leaves_doubt(error.class),
        }
        let expected = self.current.0.into();
        Ok(Executed::new(result?.rows, (expected, expected)))
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.session.interrupt().map(Some)
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.session.server_thread()
    }

    fn account(&mut self, _: u64) -> Result<Box<dyn Any>, Error> {
        Ok(Box::new(self.changes.clone()))
    }
}

/// Creates the indexes of some tables.
pub struct Indexer<S> {
    pub(super) session: S,
    pub(super) statements: Vec<String>,
    pub(super) next: usize,
}

impl<S: Session> Program for Indexer<S> {
    fn kinds(&self) -> &'static [Kind] {
        &[Kind("create_index")]
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
pub(super) enum Control {
    Prepared(Statement),
    /// The server doesn't prepare this one, or is not to.
    Text(&'static str),
}

impl Control {
    /// Prepared where the server does that, unless it is to be sent as text.
    pub(super) fn new<S: Session>(
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
    fn run<S: Session>(&self, session: &mut S) -> Result<(), Error> {
        match self {
            Self::Prepared(statement) => {
                session.start(*statement);
                session.execute().map(|_| ())
            }
            Self::Text(sql) => session.query(sql).map(|_| ()),
        }
    }
}

/// How a connection begins and ends transactions.
pub(super) struct Transactions {
    pub(super) begin: Control,
    /// For those events of a test that writes which only read.
    pub(super) begin_reading: Option<Control>,
    pub(super) commit: Control,
    pub(super) rollback: Control,
}

/// How far an event is.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The statement that is executed next, and how often it was already.
    statement: usize,
    execution: u32,
    /// It is in the session, with its parameters.
    is_started: bool,
    /// Its transaction is open.
    is_open: bool,
    /// Rows of all statements so far.
    rows: u64,
    /// A statement had other rows than are right.
    is_wrong: bool,
    /// What its transaction did.
    pending: Changes,
}

/// What a runner needs of a table that it works on.
pub(super) struct OfTable {
    pub(super) number: u32,
    pub(super) name: String,
    /// The event's statements; `None` for those that are sent as text.
    pub(super) statements: Vec<Option<Statement>>,
}

/// Runs events of one test.
pub struct Runner<S> {
    pub(super) session: S,
    event: Event,
    /// Its transactions insert again what they delete.
    puts_back: bool,
    drawn: Drawn,
    streams: Streams,
    /// The tables that it works on, in the order of `changes`.
    tables: Vec<OfTable>,
    /// The text of a statement that is not prepared.
    text: String,
    transactions: Option<Transactions>,
    pub(super) changes: ByTable,
    /// The place of the event's table in `changes`.
    table: usize,
    progress: Progress,
}

impl<S: Session> Runner<S> {
    /// One that works on `tables`. With `transactions` each event is one.
    pub(super) fn new(
        session: S,
        event: Event,
        streams: Streams,
        tables: Vec<OfTable>,
        transactions: Option<Transactions>,
    ) -> Self {
        let no_changes = |table: &OfTable| (table.number, Changes::default());
        Self {
            session,
            drawn: event.room(),
            puts_back: event.puts_back(),
            event,
            streams,
            transactions,
            changes: tables.iter().map(no_changes).collect(),
            tables,
            text: String::new(),
            table: 0,
            progress: Progress::default(),
        }
    }

    /// Before the first statement of the event that was drawn.
    #[inline]
    fn beginning(&self) -> Progress {
        Progress {
            statement: self.event.next(0, &self.drawn),
            ..Progress::default()
        }
    }

    /// Gives the next statement to the session.
    #[inline]
    fn start_next(&mut self) {
        let Progress {
            statement,
            execution,
            ..
        } = self.progress;
        let (event, drawn) = (&self.event, &self.drawn);
        let table = &self.tables[self.table];
        match table.statements.get(statement) {
            None => return,
            Some(Some(prepared)) => {
                self.session.start(*prepared);
                event.push(statement, execution, drawn, &mut self.session);
            }
            Some(None) => {
                self.text.clear();
                event.write(statement, &table.name, execution, drawn, &mut self.text);
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
                Some(reading) if !self.event.choice_writes(&self.drawn) => reading,
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
        })
    }

    /// Counts the rows of the statement that succeeded, and goes on to the next.
    #[inline]
    fn count(&mut self, rows: u64) {
        let progress = &mut self.progress;
        let place = progress.statement;
        let statement = &self.event.test.statements[place];
        progress.rows += rows;
        let (event, drawn) = (&self.event, &self.drawn);
        progress.is_wrong |= !event.is_right(place, rows, progress.execution, drawn);
        match statement.effect {
            Effect::Reads | Effect::Changes => {}
            Effect::Inserts => progress.pending.inserted += rows,
            Effect::Deletes => progress.pending.deleted += rows,
            Effect::Unknown => progress.pending.is_unsure = true,
        }
        progress.is_started = false;
        progress.execution += 1;
        if progress.execution == statement.repeat {
            progress.execution = 0;
            progress.statement = self.event.next(place + 1, &self.drawn);
        }
        if self.transactions.is_none() {
            self.settle_changes();
        }
    }

    /// What is pending is done.
    #[inline]
    fn settle_changes(&mut self) {
        let mut pending = std::mem::take(&mut self.progress.pending);
        if self.puts_back {
            let put_back = pending.inserted.min(pending.deleted);
            pending.inserted -= put_back;
            pending.deleted -= put_back;
        }
        self.changes[self.table].1.add(pending);
    }

    /// Brings the connection to where the event can be tried again: from its beginning in a transaction, else from the
    /// statement that failed.
    #[cold]
    fn give_up(&mut self, class: ErrorClass) {
        let is_write = !self.event.has_no_effect();
        if leaves_doubt(class) && is_write {
            self.changes[self.table].1.is_unsure = true;
        }
        let Some(transactions) = &self.transactions else {
            return;
        };
        if self.progress.is_open && !class.ends_session() {
            // The server may have rolled back by itself, and some then refuse to.
            let _ = transactions.rollback.run(&mut self.session);
        }
        self.progress = self.beginning();
    }

    #[cfg(test)]
    pub(super) fn next_random(&mut self) -> u64 {
        self.streams.choices.next_u64()
    }
}

impl<S: Session> Program for Runner<S> {
    fn kinds(&self) -> &'static [Kind] {
        &[Kind("event")]
    }

    fn prepare(&mut self) -> Next {
        self.table = self.streams.choices.below(self.changes.len() as u64) as usize;
        self.event.draw(&mut self.streams, &mut self.drawn);
        self.progress = self.beginning();
        if self.transactions.is_none() {
            self.start_next();
        }
        Next::Ready(0)
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        let result = self.run();
        if let Err(error) = &result {
            self.give_up(error.class);
        }
        result
    }

    fn may_retry(&self, class: ErrorClass) -> bool {
        // Another connection put the same row back between its own delete and insert. Done again, it deletes that one.
        class.is_transient() || class == ErrorClass::DuplicateKey && self.puts_back
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.session.interrupt().map(Some)
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.session.server_thread()
    }

    fn account(&mut self, _: u64) -> Result<Box<dyn Any>, Error> {
        Ok(Box::new(self.changes.clone()))
    }
}
