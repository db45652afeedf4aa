//! The connections that run transactions, and those that create indexes.

use engine::{Dialect, Error, ErrorClass, Interrupt, Session};

use plan::transactions::Transaction;

use super::compiled::{CompiledTransaction, Compiler, Flow, Statements, run};
use super::terminal::Terminal;
use super::values::{ClientOfMany, Values};
use crate::numbers::ClientNumbers;
use crate::summary::{Commits, Summary};
use crate::sysbench::TransactionStatement;
use crate::{Executed, Next, OpKind, OpRole, Program};

/// Creates an index.
pub(super) const CREATE_INDEX: OpKind = OpKind::new("create_index", OpRole::CreateIndex);

/// Creates the indexes of some tables.
pub(super) struct Indexer<S> {
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

/// The statements around transactions.
pub(super) struct Boundaries {
    begin: TransactionStatement,
    begin_reading: TransactionStatement,
    commit: TransactionStatement,
    rollback: TransactionStatement,
}

impl Boundaries {
    /// Prepares the statements, as far as the server prepares them.
    pub(super) fn new<S: Session>(session: &mut S, dialect: &dyn Dialect) -> Result<Self, Error> {
        Ok(Self {
            begin: TransactionStatement::new(session, dialect.begin_transaction(true), false)?,
            begin_reading: TransactionStatement::new(
                session,
                dialect.begin_transaction(false),
                false,
            )?,
            commit: TransactionStatement::new(session, dialect.commit(), false)?,
            rollback: TransactionStatement::new(session, dialect.rollback(), false)?,
        })
    }
}

/// The progress of an attempt.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// The transaction is open, and stays so when a statement fails.
    pub(super) is_open: bool,
    /// The commit was sent, and not answered yet.
    pub(super) is_committing: bool,
    /// The transaction was committed, or may be: the reply to its commit got lost.
    pub(super) is_committed: bool,
}

impl Progress {
    /// The progress after a commit.
    pub(super) const COMMITTED: Self =
        Self { is_open: false, is_committing: false, is_committed: true };
}

/// A client, with the values of its transactions, their number and the waits.
pub(super) struct ClientWork {
    pub(super) client: ClientOfMany,
    /// The number of the client is the first integer.
    pub(super) values: Values,
    pub(super) pace: Pace,
}

/// The number of transactions of a client, and its waits.
#[derive(Default)]
pub(super) struct Pace {
    /// The number of transactions that are not prepared yet; `None` means until the step ends.
    pub(super) left: Option<u64>,
    /// The waits before transactions; `None` if the client does not wait.
    pub(super) terminal: Option<Terminal>,
    /// Transactions wait until they are due: by a rate, or as those of a terminal.
    pub(super) is_scheduled: bool,
}

/// The work of a transaction after its input.
pub(super) trait Body<S>: Send + Sized {
    /// Prepares the work of a transaction on a session.
    ///
    /// # Errors
    /// The engine's own; an engine that lacks this form.
    fn prepare(compiler: &mut Compiler<'_, S>, transaction: &Transaction) -> Result<Self, Error>;

    /// Runs the transaction once, from its beginning to its commit or rollback. After an error,
    /// `progress` says whether the transaction is still open.
    ///
    /// # Errors
    /// The engine's own; a wrong number of rows; a value that has no result.
    fn run(
        &mut self,
        session: &mut S,
        boundaries: &Boundaries,
        values: &mut Values,
        progress: &mut Progress,
    ) -> Result<Executed, Error>;
}

impl<S: Session> Body<S> for Statements {
    fn prepare(compiler: &mut Compiler<'_, S>, transaction: &Transaction) -> Result<Self, Error> {
        Ok(Self {
            actions: compiler.block(&transaction.body)?,
            writes: transaction.writes(),
            is_autocommitted: transaction.is_autocommitted,
        })
    }

    #[inline]
    fn run(
        &mut self,
        session: &mut S,
        boundaries: &Boundaries,
        values: &mut Values,
        progress: &mut Progress,
    ) -> Result<Executed, Error> {
        if self.is_autocommitted {
            // The server commits an autocommitted write before it answers.
            progress.is_committing = self.writes;
        } else {
            let begin = if self.writes { &boundaries.begin } else { &boundaries.begin_reading };
            begin.run(session)?;
            progress.is_open = true;
        }

        let mut rows = 0;
        let flow = run(&self.actions, session, values, &mut rows)?;
        if flow == Flow::Abort {
            if progress.is_open {
                boundaries.rollback.run(session)?;
            }
            *progress = Progress::default();
            return Ok(Executed { rows, is_expected: true, is_rolled_back: true });
        }

        if progress.is_open {
            progress.is_committing = true;
            boundaries.commit.run(session)?;
        }
        *progress = Progress::COMMITTED;
        Ok(Executed { rows, is_expected: true, is_rolled_back: false })
    }
}

/// A part of a test's mix.
pub(super) struct MixPart<B> {
    pub(super) transaction: CompiledTransaction<B>,
    pub(super) weight: u64,
}

/// Runs the transactions of a test.
pub(super) struct Runner<S, B> {
    session: S,
    kinds: &'static [OpKind],
    parts: Vec<MixPart<B>>,
    weights: u64,
    boundaries: Boundaries,
    values: Values,
    pace: Pace,
    /// The part that is prepared.
    chosen: usize,
    /// The numbers of rows in the input are shared, and the client waits between its preparation and its
    /// transactions: others would get no newer rows meanwhile, or this client would miss theirs.
    draws_when_due: bool,
    /// The input of the prepared transaction has yet to be drawn.
    is_undrawn: bool,
    /// The error of the prepared transaction's input, which its execution returns.
    fault: Option<Error>,
    progress: Progress,
    commits: Commits,
}

impl<S: Session, B: Body<S>> Runner<S, B> {
    /// Returns a runner of transactions, whose kinds of operation are `kinds`.
    pub(super) fn new(
        session: S,
        kinds: &'static [OpKind],
        parts: Vec<MixPart<B>>,
        boundaries: Boundaries,
        work: ClientWork,
        transactions: usize,
    ) -> Self {
        let ClientWork { mut values, pace, .. } = work;
        let integer_count = parts.iter().map(|part| part.transaction.integer_count).max();
        let text_count = parts.iter().map(|part| part.transaction.text_count).max();
        values.integers.resize(integer_count.unwrap_or(1), 0);
        values.texts.resize(text_count.unwrap_or(0), String::new());

        Self {
            session,
            kinds,
            weights: parts.iter().map(|part| part.weight).sum(),
            parts,
            boundaries,
            draws_when_due: pace.is_scheduled && !values.numbers.is_empty(),
            is_undrawn: false,
            values,
            pace,
            chosen: 0,
            fault: None,
            progress: Progress::default(),
            commits: Commits { counts: vec![0; transactions], is_uncertain: false },
        }
    }

    /// Returns the index of a part, drawn by weight.
    #[inline]
    fn choose(&mut self) -> usize {
        if self.parts.len() == 1 {
            return 0;
        }

        let mut left = self.values.choices.below(self.weights);
        for (index, part) in self.parts.iter().enumerate() {
            if left < part.weight {
                return index;
            }
            left -= part.weight;
        }
        // Never reached: the number is below the sum of all weights.
        self.parts.len() - 1
    }

    /// Draws the input of the chosen transaction.
    #[inline]
    fn draw_input(&mut self) {
        let input = &self.parts[self.chosen].transaction.input;
        let mut rows = 0;
        // Input has no statements, so no session is used.
        self.fault = run(input, &mut self.session, &mut self.values, &mut rows).err();
    }

    #[inline]
    fn attempt(&mut self) -> Result<Executed, Error> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }

        let Self { session, boundaries, values, progress, .. } = self;
        let transaction = &mut self.parts[self.chosen].transaction;
        let executed = transaction.body.run(session, boundaries, values, progress)?;
        if !executed.is_rolled_back {
            self.commits.counts[transaction.index] += 1;
        }
        Ok(executed)
    }

    /// Tells the row numbers of the prepared transaction whether they were committed.
    #[inline]
    fn end_transaction(&mut self) {
        for numbers in &mut self.values.numbers {
            numbers.end_transaction(self.progress.is_committed);
        }
        self.progress.is_committed = false;
    }

    /// Rolls back what an attempt has done.
    #[cold]
    fn roll_back(&mut self, class: ErrorClass) {
        let is_uncertain = self.progress.is_committing && class.ends_session();
        self.commits.is_uncertain |= is_uncertain;

        if self.progress.is_open && !class.ends_session() {
            // The server may have rolled back already. Some servers then refuse the statement.
            let _ = self.boundaries.rollback.run(&mut self.session);
        }
        // Rows that may exist keep their numbers.
        self.progress = Progress { is_committed: is_uncertain, ..Progress::default() };
    }
}

impl<S: Session, B: Body<S>> Program for Runner<S, B> {
    fn kinds(&self) -> &'static [OpKind] {
        self.kinds
    }

    fn shares(&self) -> Vec<f64> {
        let weights = self.weights as f64;
        self.parts.iter().map(|part| part.weight as f64 / weights).collect()
    }

    fn prepare(&mut self) -> Next {
        self.end_transaction();
        if let Some(left) = &mut self.pace.left {
            if *left == 0 {
                return Next::Done;
            }
            *left -= 1;
        }

        self.chosen = self.choose();
        if let Some(terminal) = &mut self.pace.terminal {
            terminal.prepare(self.chosen);
        }

        if self.draws_when_due {
            self.is_undrawn = true;
        } else {
            self.draw_input();
        }
        Next::Ready(self.chosen)
    }

    fn on_due(&mut self) {
        if self.is_undrawn {
            self.is_undrawn = false;
            self.draw_input();
        }
    }

    fn pause_ns(&self) -> u64 {
        self.pace.terminal.as_ref().map_or(0, |terminal| terminal.pause_ns)
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        // Where nothing waits, such as in exact cells, nobody says when the transaction is due.
        self.on_due();
        let result = self.attempt();
        result.map_err(|error| {
            self.roll_back(error.class);
            let name = self.parts[self.chosen].transaction.name;
            Error { message: format!("transaction `{name}`: {}", error.message), ..error }
        })
    }

    fn interrupt(&mut self) -> Result<Option<Interrupt>, Error> {
        self.session.interrupt().map(Some)
    }

    fn server_thread(&mut self) -> Option<u32> {
        self.session.server_thread()
    }

    fn summary(&mut self, _: u64) -> Result<Summary, Error> {
        self.end_transaction();
        let commits = self.commits.clone();
        if self.values.numbers.is_empty() {
            return Ok(Summary::Commits(commits));
        }

        let numbers = self.values.numbers.iter().map(ClientNumbers::summary).collect();
        Ok(Summary::CommitsOfNumberedRows(commits, numbers))
    }
}
