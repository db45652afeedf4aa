//! A transaction as a block of procedural code, as one connection sends it.

use std::fmt::Write as _;

use engine::{Error, ErrorClass, Session};
use plan::transactions::Transaction;

use super::call::{list_values, run_whole};
use super::language::{BlockText, Language};
use super::language_of;
use super::routine::{Argument, Routine};
use crate::Executed;
use crate::transactions::compiled::Compiler;
use crate::transactions::connection::{Body, Boundaries, Progress};
use crate::transactions::literal::write_literal;
use crate::transactions::values::Values;

/// The text of a block, and the input in it.
pub(in crate::transactions) struct Block {
    template: BlockText,
    arguments: Vec<Argument>,
    /// The block with its input; reused.
    text: String,
    language: &'static dyn Language,
}

impl Block {
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
                Argument::Text(slot) => {
                    write_literal(Some(self.language.engine()), &values.texts[*slot], text);
                }
                Argument::List(list) => {
                    text.push('\'');
                    self.language.write_list(list_values(*list, values), text);
                    text.push('\'');
                }
            }
        }
        text.push_str(&self.template.end);
    }
}

impl<S: Session> Body<S> for Block {
    /// Writes the block of a transaction.
    ///
    /// # Errors
    /// An engine without blocks.
    fn prepare(compiler: &mut Compiler<'_, S>, transaction: &Transaction) -> Result<Self, Error> {
        let Some(of_procedures) = compiler.dialect.engine().and_then(language_of) else {
            let what = "the engine has no blocks of statements";
            return Err(Error::new(ErrorClass::Other, what));
        };

        let language = of_procedures.of_blocks();
        let routine = Routine::new(language, compiler.statements, transaction);
        Ok(Self {
            template: language.block(&routine.parts("")),
            arguments: routine.arguments,
            text: String::new(),
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
        self.write(values);
        session.start_text(&self.text);
        run_whole(session, self.language, progress)
    }
}
