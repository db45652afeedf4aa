//! The form in which a client sends a transaction.

use words::{Engine, named_enum};

use super::{Action, Number, ScriptStatement, Transaction};

named_enum! {
    /// The form in which a client sends a transaction.
    pub enum Form {
        /// Statement by statement, each in a round trip.
        Statements = "statements",
        /// The call of a stored procedure, in one round trip.
        Procedure = "procedure",
        /// A block of procedural code with the values of the input, in one round trip.
        Block = "block",
    }
}

impl Form {
    /// Returns the reason why an engine can't run transactions in this form; `None` if it can.
    pub(crate) fn not_applicable_to(self, engine: Engine) -> Option<&'static str> {
        match (self, engine) {
            (Self::Statements, _) | (_, Engine::Postgres | Engine::Mysql) => None,
            (Self::Procedure, _) => Some("has no stored procedures"),
            (Self::Block, _) => Some("has no blocks of statements"),
        }
    }

    /// Returns the statement of a transaction that this form can't run; `None` if it can run all. A
    /// procedural language assigns the columns of a single row.
    pub(crate) fn unfit_statement(self, transaction: &Transaction) -> Option<&ScriptStatement> {
        if self == Self::Statements { None } else { taken_of_several(&transaction.body) }
    }
}

/// Returns a statement that takes the columns of one of several rows.
fn taken_of_several(actions: &[Action]) -> Option<&ScriptStatement> {
    actions.iter().find_map(|action| match action {
        Action::Statement(statement) => {
            let takes_one = match &statement.rows {
                Some((_, Number::Constant(most))) => *most <= 1,
                _ => false,
            };
            (!statement.into.is_empty() && !takes_one).then_some(statement)
        }
        Action::If { then, otherwise, .. } | Action::On { then, otherwise, .. } => {
            taken_of_several(then).or_else(|| taken_of_several(otherwise))
        }
        Action::ForEach { body, .. } | Action::ForRange { body, .. } => taken_of_several(body),
        Action::Number { .. } | Action::Text { .. } | Action::List { .. } | Action::Abort => None,
    })
}
