//! A transaction of a script as one connection runs it: its statements are prepared, and the blocks
//! of other engines are gone.

use engine::{Dialect, Error, ErrorClass, ParamType, Session, Statement};
use plan::transactions::{
    Action, List, Number, ScriptStatement, ScriptStatements, SqlPiece, Taken, Transaction,
};
use words::excerpt;

use super::connection::Body;
use super::values::{Computation, Constants, TextComputation, Values};

/// The maximum length of a statement in a message, in characters.
const EXCERPT_CHARS: usize = 200;

/// A transaction of one connection.
pub(super) struct CompiledTransaction<B> {
    pub(super) name: &'static str,
    pub(super) input: Vec<CompiledAction>,
    /// The work of an attempt.
    pub(super) body: B,
    /// The index in the script.
    pub(super) index: usize,
    /// The number of integers that its values and variables take.
    pub(super) integer_count: usize,
    /// The number of texts.
    pub(super) text_count: usize,
}

/// The actions of an attempt, whose statements are sent one by one.
pub(super) struct Statements {
    pub(super) actions: Vec<CompiledAction>,
    /// A statement may write.
    pub(super) writes: bool,
    /// Each statement commits by itself.
    pub(super) is_autocommitted: bool,
}

/// An action; see [`Action`].
pub(super) enum CompiledAction {
    Number { slot: usize, value: Computation },
    Text { slot: usize, value: TextComputation },
    List { list: List, count: Computation, value: Computation },
    Statement(Box<CompiledStatement>),
    If { condition: Computation, then: Vec<Self>, otherwise: Vec<Self> },
    ForEach { lists: Vec<(usize, List)>, body: Vec<Self> },
    ForRange { slot: usize, from: Computation, to: Computation, body: Vec<Self> },
    Abort,
}

/// A prepared statement with its parameters.
pub(super) struct CompiledStatement {
    statement: Statement,
    parameters: Vec<Parameter>,
    /// The fewest and the most rows.
    rows: Option<(Computation, Computation)>,
    into: Vec<Taken>,
    /// The beginning of the text, for messages.
    sql: String,
}

/// A parameter of a statement.
enum Parameter {
    Int4(Computation),
    Int8(Computation),
    Text(usize),
}

/// The end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next action follows.
    Continue,
    /// The transaction is to be rolled back, as meant.
    Abort,
}

/// Prepares transactions on one session.
pub(super) struct Compiler<'a, S> {
    pub(super) session: &'a mut S,
    pub(super) dialect: &'a dyn Dialect,
    pub(super) statements: ScriptStatements,
    pub(super) constants: Constants,
}

impl<S: Session> Compiler<'_, S> {
    /// Prepares a transaction of the script.
    ///
    /// # Errors
    /// Those of [`Body::prepare`].
    pub(super) fn transaction<B: Body<S>>(
        &mut self,
        index: usize,
        transaction: &Transaction,
    ) -> Result<CompiledTransaction<B>, Error> {
        let named = |error: Error| Error {
            message: format!("transaction `{}`: {}", transaction.name, error.message),
            ..error
        };
        Ok(CompiledTransaction {
            name: super::lasting::name(&transaction.name),
            input: self.block(&transaction.input).map_err(named)?,
            body: B::prepare(self, transaction).map_err(named)?,
            index,
            integer_count: transaction.integers,
            text_count: transaction.texts,
        })
    }

    /// Prepares a block.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub(super) fn block(&mut self, actions: &[Action]) -> Result<Vec<CompiledAction>, Error> {
        let mut compiled = Vec::new();
        for action in actions {
            self.add(action, &mut compiled)?;
        }
        Ok(compiled)
    }

    /// Prepares an action, and adds it to a block. The actions of the branch for this engine are
    /// added one by one, so that a choice of the engine costs nothing when a transaction runs.
    fn add(&mut self, action: &Action, block: &mut Vec<CompiledAction>) -> Result<(), Error> {
        let compiled = match action {
            Action::Number { slot, value } => {
                CompiledAction::Number { slot: *slot, value: self.computation(value) }
            }
            Action::Text { slot, value } => CompiledAction::Text {
                slot: *slot,
                value: TextComputation::new(value, self.constants),
            },
            Action::List { list, count, value } => CompiledAction::List {
                list: *list,
                count: self.computation(count),
                value: self.computation(value),
            },

            Action::Statement(statement) => {
                CompiledAction::Statement(Box::new(self.statement(statement)?))
            }

            Action::If { condition, then, otherwise } => CompiledAction::If {
                condition: self.computation(condition),
                then: self.block(then)?,
                otherwise: self.block(otherwise)?,
            },
            Action::ForEach { lists, body } => {
                CompiledAction::ForEach { lists: lists.clone(), body: self.block(body)? }
            }
            Action::ForRange { slot, from, to, body } => CompiledAction::ForRange {
                slot: *slot,
                from: self.computation(from),
                to: self.computation(to),
                body: self.block(body)?,
            },
            Action::Abort => CompiledAction::Abort,

            Action::On { engines, is_native, then, otherwise } => {
                let engine = self.dialect.engine();
                let is_first = self.statements.choose_first(engines, *is_native, engine);
                let branch = if is_first { then } else { otherwise };
                block.extend(self.block(branch)?);
                return Ok(());
            }
        };

        block.push(compiled);
        Ok(())
    }

    fn computation(&self, value: &Number) -> Computation {
        Computation::new(value, self.constants)
    }

    fn statement(&mut self, statement: &ScriptStatement) -> Result<CompiledStatement, Error> {
        let mut sql = String::new();
        let mut types = Vec::new();
        let mut parameters = Vec::new();
        for piece in &statement.pieces {
            let (kind, parameter) = match piece {
                SqlPiece::Fixed(fixed) => {
                    sql.push_str(fixed);
                    continue;
                }
                SqlPiece::ForUpdate => {
                    if self.dialect.engine() != Some(words::Engine::Sqlite) {
                        sql.push_str("for update");
                    }
                    continue;
                }
                SqlPiece::Number { value, is_wide: false } => {
                    (ParamType::Int4, Parameter::Int4(self.computation(value)))
                }
                SqlPiece::Number { value, is_wide: true } => {
                    (ParamType::Int8, Parameter::Int8(self.computation(value)))
                }
                SqlPiece::Text(slot) => (ParamType::Text, Parameter::Text(*slot)),
            };
            types.push(kind);
            parameters.push(parameter);
            sql.push_str(&self.dialect.parameter(types.len()));
        }

        let shown = excerpt(&sql, EXCERPT_CHARS);
        // An engine without data answers with one row.
        let sql = self.dialect.statement(sql, 1);
        let prepared = self
            .session
            .prepare(&sql, &types)
            .map_err(|error| Error { message: format!("`{shown}`: {}", error.message), ..error })?;
        if !statement.into.is_empty() {
            self.session.keep_row(prepared);
        }

        let rows = statement
            .rows
            .as_ref()
            .map(|(least, most)| (self.computation(least), self.computation(most)));
        let into = statement.into.clone();
        Ok(CompiledStatement { statement: prepared, parameters, rows, into, sql: shown })
    }
}

/// Runs a block, and adds the rows of its statements to `rows`.
///
/// # Errors
/// The engine's own; a wrong number of rows; a value that has no result.
pub(super) fn run<S: Session>(
    actions: &[CompiledAction],
    session: &mut S,
    values: &mut Values,
    rows: &mut u64,
) -> Result<Flow, Error> {
    for action in actions {
        if execute(action, session, values, rows)? == Flow::Abort {
            return Ok(Flow::Abort);
        }
    }
    Ok(Flow::Continue)
}

#[inline]
fn execute<S: Session>(
    action: &CompiledAction,
    session: &mut S,
    values: &mut Values,
    rows: &mut u64,
) -> Result<Flow, Error> {
    match action {
        CompiledAction::Number { slot, value } => {
            values.integers[*slot] = value.value(values)?;
        }
        CompiledAction::Text { slot, value } => {
            // Taken out, since other texts may be part of it.
            let mut text = std::mem::take(&mut values.texts[*slot]);
            text.clear();
            let written = value.write(values, &mut text);
            values.texts[*slot] = text;
            written?;
        }
        CompiledAction::List { list, count, value } => {
            let count = count.value(values)?;
            let count = usize::try_from(count).unwrap_or(0).min(list.capacity);
            values.integers[list.count] = count as i64;
            for place in list.first..list.first + count {
                values.integers[place] = value.value(values)?;
            }
        }

        CompiledAction::Statement(statement) => {
            *rows += statement.run(session, values)?;
        }

        CompiledAction::If { condition, then, otherwise } => {
            let block = if condition.value(values)? != 0 { then } else { otherwise };
            return run(block, session, values, rows);
        }
        CompiledAction::ForEach { lists, body } => {
            let count = lists.first().map_or(0, |(_, list)| values.integers[list.count]);
            return repeat(0..count, body, session, values, rows, |values, turn| {
                for (slot, list) in lists {
                    values.integers[*slot] = values.integers[list.first + turn as usize];
                }
            });
        }
        CompiledAction::ForRange { slot, from, to, body } => {
            let from = from.value(values)?;
            let end = to.value(values)?.saturating_add(1);
            return repeat(from..end, body, session, values, rows, |values, turn| {
                values.integers[*slot] = turn;
            });
        }

        CompiledAction::Abort => return Ok(Flow::Abort),
    }

    Ok(Flow::Continue)
}

/// Runs a block once for each number of a range, after `begin` has set the variables of the turn.
fn repeat<S: Session>(
    range: std::ops::Range<i64>,
    body: &[CompiledAction],
    session: &mut S,
    values: &mut Values,
    rows: &mut u64,
    begin: impl Fn(&mut Values, i64),
) -> Result<Flow, Error> {
    for turn in range {
        begin(values, turn);
        if run(body, session, values, rows)? == Flow::Abort {
            return Ok(Flow::Abort);
        }
    }
    Ok(Flow::Continue)
}

impl CompiledStatement {
    /// Executes the statement, and assigns the variables that take its first row. Returns the number
    /// of rows.
    fn run<S: Session>(&self, session: &mut S, values: &mut Values) -> Result<u64, Error> {
        session.start(self.statement);
        for parameter in &self.parameters {
            match parameter {
                // A narrow value fits: its bounds guarantee that.
                Parameter::Int4(value) => session.int4(value.value(values)? as i32),
                Parameter::Int8(value) => session.int8(value.value(values)?),
                Parameter::Text(slot) => session.text(&values.texts[*slot]),
            }
        }

        let rows = session.execute()?.rows;
        // A session that runs no statements has no rows either.
        let is_run = session.row().is_some();
        if is_run && let Some((least, most)) = &self.rows {
            let (least, most) = (least.value(values)?, most.value(values)?);
            let found = i64::try_from(rows).unwrap_or(i64::MAX);
            if found < least || found > most {
                return Err(self.wrong_rows(found, least, most));
            }
        }

        for (column, taken) in self.into.iter().enumerate() {
            self.take(session, values, column, *taken)?;
        }
        Ok(rows)
    }

    /// Assigns a variable the value of a column. Without a row, it is 0 or an empty text.
    fn take<S: Session>(
        &self,
        session: &S,
        values: &mut Values,
        column: usize,
        taken: Taken,
    ) -> Result<(), Error> {
        let row = session.row().filter(|row| !row.is_empty());
        match (taken, row) {
            (Taken::Integer(slot), None) => values.integers[slot] = 0,
            (Taken::Text(slot), None) => values.texts[slot].clear(),
            (Taken::Integer(slot), Some(row)) => match row.integer(column) {
                Some(value) => values.integers[slot] = value,
                None => return Err(self.wrong_value(column, "an integer")),
            },
            (Taken::Text(slot), Some(row)) => match row.text(column) {
                Some(text) => {
                    values.texts[slot].clear();
                    values.texts[slot].push_str(text);
                }
                None => return Err(self.wrong_value(column, "a text")),
            },
        }
        Ok(())
    }

    #[cold]
    fn wrong_rows(&self, found: i64, least: i64, most: i64) -> Error {
        let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let message = format!("a statement has {found} rows instead of {expected}: `{}`", self.sql);
        Error::new(ErrorClass::Other, message)
    }

    #[cold]
    fn wrong_value(&self, column: usize, expected: &str) -> Error {
        let message = format!("column {} is not {expected}: `{}`", column + 1, self.sql);
        Error::new(ErrorClass::Other, message)
    }
}
