//! A call of a transaction's procedure, as one connection makes it.

use std::fmt::Write as _;

use engine::{Error, ErrorClass, ParamType, Session, Statement};
use plan::transactions::{List, Transaction};
use words::Engine;

use super::language::Kind;
use super::mysql::VALUE_CHARS;
use super::routine::{Argument, Routine};
use super::{language_of, procedure_name};
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
    engine: Engine,
}

impl Call {
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
    /// Prepares the call of a transaction's procedure.
    ///
    /// # Errors
    /// The engine's own; an engine without procedures.
    fn prepare(compiler: &mut Compiler<'_, S>, transaction: &Transaction) -> Result<Self, Error> {
        let Some(language) = compiler.dialect.engine().and_then(language_of) else {
            let what = "the engine has no stored procedures";
            return Err(Error::new(ErrorClass::Other, what));
        };

        let routine = Routine::new(language, compiler.statements, transaction);
        let kinds = routine.kinds();
        let types = kinds.iter().map(|kind| match kind {
            Kind::Integer => ParamType::Int8,
            Kind::Text | Kind::List(_) => ParamType::Text,
        });
        let types: Vec<ParamType> = types.collect();

        let sql = language.call(&procedure_name(transaction), &kinds);
        Ok(Self {
            statement: compiler.session.prepare(&sql, &types)?,
            arguments: routine.arguments,
            list: String::new(),
            engine: language.engine(),
        })
    }

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
                    write_list(self.engine, *list, &values.integers, &mut self.list);
                    session.text(&self.list);
                }
            }
        }

        run_whole(session, self.engine, progress)
    }
}

/// Runs the started statement, which is a whole transaction.
///
/// # Errors
/// The engine's own; no outcome, such as of a server that sends no notices.
pub(super) fn run_whole<S: Session>(
    session: &mut S,
    engine: Engine,
    progress: &mut Progress,
) -> Result<Executed, Error> {
    // The server commits before it answers. In MySQL, a transaction that failed stays open.
    let is_open = engine == Engine::Mysql;
    *progress = Progress { is_open, is_committing: true, is_committed: false };
    let Some(outcome) = session.execute()?.value else {
        return Err(Error::new(
            ErrorClass::Other,
            "the server did not return whether it committed",
        ));
    };
    let is_rolled_back = outcome < 0;
    *progress = if is_rolled_back { Progress::default() } else { Progress::COMMITTED };

    // The routine has encoded both facts in one number: see `language::OUTCOME`.
    let rows = if is_rolled_back { -1 - outcome } else { outcome };
    Ok(Executed { rows: rows.unsigned_abs(), is_expected: true, is_rolled_back })
}

/// Appends a list as text: an array of PostgreSQL, such as `{5,-7}`, or [`VALUE_CHARS`] for each value.
pub(super) fn write_list(engine: Engine, list: List, integers: &[i64], text: &mut String) {
    let count = usize::try_from(integers[list.count]).unwrap_or(0);
    let values = &integers[list.first..list.first + count];
    // Writing to a string never fails.
    if engine == Engine::Postgres {
        text.push('{');
        for (place, value) in values.iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            let _ = write!(text, "{value}");
        }
        text.push('}');
    } else {
        for value in values {
            let _ = write!(text, "{value:VALUE_CHARS$}");
        }
    }
}
