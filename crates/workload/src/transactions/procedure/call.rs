//! A call of a transaction's procedure, as one connection makes it.

use std::fmt::Write as _;

use engine::{Error, ErrorClass, ParamType, Session, Statement};
use plan::transactions::{List, Transaction};
use words::Engine;

use super::language::Kind;
use super::mysql::VALUE_CHARS;
use super::routine::{Argument, Routine};
use super::{language_of, name_of};
use crate::Executed;
use crate::transactions::compiled::Compiler;
use crate::transactions::connection::{Body, Boundaries, Progress};
use crate::transactions::values::Values;

/// The prepared call of a procedure.
pub(in crate::transactions) struct Call {
    statement: Statement,
    arguments: Vec<Argument>,
    /// A list as text; reused.
    list: String,
    form: ListForm,
    /// A transaction that fails stays open.
    stays_open: bool,
}

/// The form of lists as texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListForm {
    /// An array of PostgreSQL: `{5,-7}`.
    Array,
    /// Values of the same width, [`VALUE_CHARS`] each.
    Columns,
}

impl Call {
    /// Prepares the call of a transaction's procedure.
    ///
    /// # Errors
    /// The engine's own; an engine without procedures.
    pub(in crate::transactions) fn new<S: Session>(
        compiler: &mut Compiler<'_, S>,
        transaction: &Transaction,
    ) -> Result<Self, Error> {
        let engine = compiler.dialect.engine();
        let found = engine.and_then(|engine| Some((engine, language_of(engine)?)));
        let Some((engine, language)) = found else {
            let what = "the engine has no stored procedures";
            return Err(Error::new(ErrorClass::Other, what));
        };

        let routine = Routine::new(language, engine, compiler.statements, transaction);
        let kinds = routine.kinds();
        let types = kinds.iter().map(|kind| match kind {
            Kind::Integer => ParamType::Int8,
            Kind::Text | Kind::List(_) => ParamType::Text,
        });
        let types: Vec<ParamType> = types.collect();

        let sql = language.call(&name_of(transaction), &kinds);
        let is_postgres = engine == Engine::Postgres;
        Ok(Self {
            statement: compiler.session.prepare(&sql, &types)?,
            arguments: routine.arguments,
            list: String::new(),
            form: if is_postgres { ListForm::Array } else { ListForm::Columns },
            stays_open: !is_postgres,
        })
    }

    /// Returns statements that each session with calls or blocks runs first.
    pub(in crate::transactions) fn settings(engine: Option<Engine>) -> &'static [&'static str] {
        match engine {
            // The first makes `select ... into` look for a second row. The second lets the outcome of a
            // block through, which is a notice.
            Some(Engine::Postgres) => &[
                "set plpgsql.extra_warnings = 'too_many_rows'",
                "set client_min_messages = notice",
            ],
            _ => &[],
        }
    }
}

impl<S: Session> Body<S> for Call {
    fn run(
        &mut self,
        session: &mut S,
        _: &Boundaries,
        values: &mut Values,
        progress: &mut Progress,
    ) -> Result<Executed, Error> {
        session.start(self.statement);
        for argument in &self.arguments {
            match argument {
                Argument::Integer(slot) => session.int8(values.integers[*slot]),
                Argument::Text(slot) => session.text(&values.texts[*slot]),
                Argument::List(list) => {
                    self.list.clear();
                    write_list(self.form, *list, &values.integers, &mut self.list);
                    session.text(&self.list);
                }
            }
        }

        run_whole(session, self.stays_open, progress)
    }
}

/// Runs the started statement, which is a whole transaction. `stays_open` says that the transaction
/// stays open when the statement fails.
///
/// # Errors
/// The engine's own.
pub(super) fn run_whole<S: Session>(
    session: &mut S,
    stays_open: bool,
    progress: &mut Progress,
) -> Result<Executed, Error> {
    // The server commits before it answers.
    *progress = Progress { is_open: stays_open, is_committing: true, is_committed: false };
    let outcome = session.execute()?.value.unwrap_or(0);
    let is_rolled_back = outcome < 0;
    *progress = if is_rolled_back { Progress::default() } else { Progress::COMMITTED };

    // The routine has encoded both facts in one number: see `language::OUTCOME`.
    let rows = if is_rolled_back { -1 - outcome } else { outcome };
    Ok(Executed { rows: rows.unsigned_abs(), is_expected: true, is_rolled_back })
}

/// Appends a list as text.
pub(super) fn write_list(form: ListForm, list: List, integers: &[i64], text: &mut String) {
    let count = usize::try_from(integers[list.count]).unwrap_or(0);
    let values = &integers[list.first..list.first + count];
    match form {
        ListForm::Array => {
            text.push('{');
            for (place, value) in values.iter().enumerate() {
                if place > 0 {
                    text.push(',');
                }
                // Writing to a string never fails.
                let _ = write!(text, "{value}");
            }
            text.push('}');
        }
        ListForm::Columns => {
            for value in values {
                let _ = write!(text, "{value:VALUE_CHARS$}");
            }
        }
    }
}
