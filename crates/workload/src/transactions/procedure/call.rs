//! A call of a transaction's procedure, as one connection makes it.

use engine::{Error, ErrorClass, ParamType, Session, Statement};
use plan::transactions::{List, Transaction};

use super::language::{Kind, Language};
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
    language: &'static dyn Language,
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
            language,
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
                    self.language.write_list(list_values(*list, values), &mut self.list);
                    session.text(&self.list);
                }
            }
        }

        run_whole(session, self.language, progress)
    }
}

/// Runs the started statement, which is a whole transaction.
///
/// # Errors
/// The engine's own; no outcome, such as of a server that sends no notices.
pub(super) fn run_whole<S: Session>(
    session: &mut S,
    language: &dyn Language,
    progress: &mut Progress,
) -> Result<Executed, Error> {
    // The server commits before it answers.
    let is_open = language.leaves_failed_transactions_open();
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

/// Returns the values of a list.
pub(super) fn list_values(list: List, values: &Values) -> &[i64] {
    let count = usize::try_from(values.integers[list.count]).unwrap_or(0);
    &values.integers[list.first..list.first + count]
}
