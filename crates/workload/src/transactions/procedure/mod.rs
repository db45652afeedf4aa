//! Transactions as stored procedures: each has the parameters that its input gives, and is called in
//! one round trip. A block is the same without a procedure, and with its input as literals.
//!
//! ```text
//! Transaction ──► places (what it reads and assigns) ──► routine ──► language ──► create procedure
//!                                                           └──► call, block (a connection's)
//! ```

mod block;
mod call;
mod language;
mod mysql;
mod places;
mod postgres;
mod routine;

#[cfg(test)]
mod tests;

use plan::transactions::{ScriptStatements, Transaction};
use words::Engine;

pub(super) use block::Block;
pub(super) use call::Call;
use language::Language;
use mysql::Mysql;
use postgres::Postgres;
use routine::Routine;

/// A stored procedure of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Procedure {
    /// The name for `drop procedure`: with the types of the parameters on engines where several
    /// procedures may have the same name.
    pub signature: String,
    /// The statement that creates it.
    pub create: String,
}

impl Procedure {
    /// Returns the procedure of a transaction; `None` on an engine without procedures.
    pub(super) fn new(
        engine: Engine,
        statements: ScriptStatements,
        transaction: &Transaction,
    ) -> Option<Self> {
        let language = language_of(engine)?;
        let routine = Routine::new(language, statements, transaction);
        let name = procedure_name(transaction);
        let create = language.procedure(&routine.parts(&name));
        let signature = language.signature(&name, &routine.kinds());
        Some(Self { signature, create })
    }
}

/// Returns the name of a transaction's procedure.
fn procedure_name(transaction: &Transaction) -> String {
    format!("assay_{}", transaction.name)
}

/// Returns the statements that each session with calls or blocks runs first.
pub(super) fn session_settings(engine: Option<Engine>) -> &'static [&'static str] {
    match engine.and_then(language_of) {
        Some(language) => language.session_settings(),
        None => &[],
    }
}

/// Returns the language of an engine's procedures; [`Language::of_blocks`] is that of its blocks.
fn language_of(engine: Engine) -> Option<&'static dyn Language> {
    match engine {
        Engine::Postgres => Some(&Postgres { is_block: false }),
        Engine::Mysql => Some(&Mysql),
        _ => None,
    }
}
