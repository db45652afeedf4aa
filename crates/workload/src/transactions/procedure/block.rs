//! A transaction as a block of procedural code, as one connection sends it.

use std::fmt::Write as _;

use engine::{Error, ErrorClass, Session};
use plan::transactions::Transaction;
use words::Engine;

use super::call::{ListForm, run_whole, write_list};
use super::language::{BlockText, Language};
use super::mysql::{Mysql, write_literal};
use super::postgres::Postgres;
use super::routine::{Argument, Routine};
use crate::Executed;
use crate::transactions::compiled::Compiler;
use crate::transactions::connection::{Body, Boundaries, Progress};
use crate::transactions::values::Values;

/// The text of a block, and the input in it.
pub(in crate::transactions) struct Block {
    template: BlockText,
    arguments: Vec<Argument>,
    /// The block with its input; reused.
    text: String,
    is_postgres: bool,
}

impl Block {
    /// Writes the block of a transaction.
    ///
    /// # Errors
    /// An engine without blocks.
    pub(in crate::transactions) fn new<S: Session>(
        compiler: &Compiler<'_, S>,
        transaction: &Transaction,
    ) -> Result<Self, Error> {
        let engine = compiler.dialect.engine();
        let (engine, language): (Engine, &dyn Language) = match engine {
            Some(Engine::Postgres) => (Engine::Postgres, &Postgres { is_block: true }),
            Some(Engine::Mysql) => (Engine::Mysql, &Mysql),
            _ => {
                let what = "the engine has no blocks of statements";
                return Err(Error::new(ErrorClass::Other, what));
            }
        };

        let routine = Routine::new(language, engine, compiler.statements, transaction);
        Ok(Self {
            template: language.block(&routine.parts("")),
            arguments: routine.arguments,
            text: String::new(),
            is_postgres: engine == Engine::Postgres,
        })
    }

    /// Writes the block with its input.
    fn write(&mut self, values: &Values) {
        let text = &mut self.text;
        text.clear();
        for (before, argument) in self.template.inputs.iter().zip(&self.arguments) {
            text.push_str(before);
            match argument {
                Argument::Integer(slot) => {
                    // Writing to a string never fails.
                    let _ = write!(text, "{}", values.integers[*slot]);
                }
                Argument::Text(slot) if self.is_postgres => {
                    write_postgres_text(&values.texts[*slot], text);
                }
                Argument::Text(slot) => write_literal(&values.texts[*slot], text),
                Argument::List(list) => {
                    let form = if self.is_postgres { ListForm::Array } else { ListForm::Columns };
                    text.push('\'');
                    write_list(form, *list, &values.integers, text);
                    text.push('\'');
                }
            }
        }
        text.push_str(&self.template.end);
    }
}

impl<S: Session> Body<S> for Block {
    fn run(
        &mut self,
        session: &mut S,
        _: &Boundaries,
        values: &mut Values,
        progress: &mut Progress,
    ) -> Result<Executed, Error> {
        self.write(values);
        session.start_text(&self.text);
        run_whole(session, !self.is_postgres, progress)
    }
}

/// Writes a literal of PostgreSQL. A `$` could end the block that the literal is in.
fn write_postgres_text(value: &str, text: &mut String) {
    text.push_str("e'");
    for letter in value.chars() {
        match letter {
            '\'' => text.push_str("''"),
            '\\' => text.push_str("\\\\"),
            '$' => text.push_str("\\x24"),
            _ => text.push(letter),
        }
    }
    text.push('\'');
}
