//! The form in which a client sends a transaction.

use words::{Engine, named_enum};

use super::{Action, Number, ScriptStatement, SqlPiece, Transaction};

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
    /// Returns the reason why an engine cannot run transactions in this form; `None` if it can.
    pub(crate) fn not_applicable_to(self, engine: Engine) -> Option<&'static str> {
        match (self, engine) {
            (Self::Statements, _) | (_, Engine::Postgres | Engine::Mysql) => None,
            (Self::Procedure, _) => Some("has no stored procedures"),
            (Self::Block, _) => Some("has no blocks of statements"),
        }
    }

    /// Returns what this form cannot run of a transaction; `None` if it can run all.
    pub(crate) fn unfit(self, transaction: &Transaction) -> Option<Unfit<'_>> {
        if self == Self::Statements { None } else { unfit(&transaction.body) }
    }
}

/// A part of a transaction that a procedural language cannot run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unfit<'a> {
    /// A statement takes the columns of one of several rows.
    Several(&'a ScriptStatement),
    /// A number of a statement or a loop has a function that only clients compute.
    OfClient(&'static str),
}

/// Returns the first part of a block that a procedural language cannot run.
fn unfit(actions: &[Action]) -> Option<Unfit<'_>> {
    actions.iter().find_map(|action| match action {
        Action::Statement(statement) => unfit_statement(statement),
        Action::If { then, otherwise, .. } | Action::On { then, otherwise, .. } => {
            unfit(then).or_else(|| unfit(otherwise))
        }
        Action::ForEach { body, .. } => unfit(body),
        Action::ForRange { from, to, body, .. } => {
            let function = from.function_of_client().or_else(|| to.function_of_client());
            function.map(Unfit::OfClient).or_else(|| unfit(body))
        }
        Action::Number { .. } | Action::Text { .. } | Action::List { .. } | Action::Abort => None,
    })
}

fn unfit_statement(statement: &ScriptStatement) -> Option<Unfit<'_>> {
    let takes_one = match &statement.rows {
        Some((_, Number::Constant(most))) => *most <= 1,
        _ => false,
    };
    if !statement.into.is_empty() && !takes_one {
        return Some(Unfit::Several(statement));
    }

    let function = statement.pieces.iter().find_map(|piece| match piece {
        SqlPiece::Number { value, .. } => value.function_of_client(),
        SqlPiece::Fixed(_) | SqlPiece::Text(_) | SqlPiece::ForUpdate => None,
    });
    function.map(Unfit::OfClient)
}
