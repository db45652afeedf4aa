//! The procedural language of an engine, as far as transactions need it.

use plan::transactions::{List, Number, TextValue};
use words::Engine;

use crate::transactions::literal::literal;

/// The declarations and the body of a procedure.
pub(super) struct Parts<'a> {
    /// The name.
    pub(super) name: &'a str,
    /// The name and the kind of each parameter.
    pub(super) parameters: &'a [(String, Kind)],
    /// The name and the kind of each variable.
    pub(super) variables: &'a [(String, Kind)],
    /// The statements of the body, in lines.
    pub(super) body: &'a str,
}

/// The text of a block, without the values of its input.
pub(super) struct BlockText {
    /// The text before the literal of each input.
    pub(super) inputs: Vec<String>,
    /// The text after the last literal.
    pub(super) end: String,
}

/// The kind of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A 64-bit integer.
    Integer,
    /// A text.
    Text,
    /// A list of at most this many integers.
    List(usize),
}

/// A statement of a script in a procedure.
pub(super) struct Sql<'a> {
    /// The text before the place of `into`.
    pub(super) text: &'a str,
    /// The locking clause at its end, before which `into` comes; empty without one.
    pub(super) locking: &'a str,
    /// The variables that take the columns of its row.
    pub(super) into: &'a [String],
    /// The statement reads only, and so returns rows.
    pub(super) returns_rows: bool,
}

impl Sql<'_> {
    /// Returns the statement with `into`, if it has variables that take its columns.
    pub(super) fn with_into(&self) -> String {
        let mut sql = self.text.trim_end().to_owned();
        if !self.into.is_empty() {
            sql += &format!(" into {}", self.into.join(", "));
        }
        if !self.locking.is_empty() {
            sql += &format!(" {}", self.locking);
        }
        sql
    }
}

/// A piece of a message.
pub(super) enum Piece<'a> {
    Text(&'a str),
    /// An expression.
    Value(&'a str),
}

/// The procedural language of an engine. Statements are returned as lines with a semicolon.
pub(super) trait Language: Sync {
    /// Returns the engine.
    fn engine(&self) -> Engine;

    /// Returns the language of the engine's blocks.
    fn of_blocks(&self) -> &'static dyn Language;

    /// Returns the statements that each session with calls or blocks runs first.
    fn session_settings(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns whether a transaction that failed in a call or a block stays open.
    fn leaves_failed_transactions_open(&self) -> bool;

    /// Appends a list as the text of the parameter that takes it.
    fn write_list(&self, values: &[i64], text: &mut String);

    /// Returns the words between the condition of a loop and its body, and after the body.
    fn loop_words(&self) -> [&'static str; 2];

    /// Returns the statement that assigns a variable.
    fn assignment(&self, variable: &str, value: &str) -> String;

    /// Returns the expression of a 64-bit integer.
    fn number(&self, number: &Number) -> String;

    /// Returns the expression of a condition: a number that is not 0.
    fn condition(&self, number: &Number) -> String;

    /// Returns the first of two expressions if a condition holds, otherwise the second.
    fn choice(&self, condition: &Number, values: [String; 2]) -> String;

    /// Returns the expression that concatenates others.
    fn joined(&self, texts: &[String]) -> String;

    /// Returns the syllables of a last name, one for each digit of a number from 0 to 999.
    fn syllables(&self, number: &str) -> [String; 3];

    /// Returns a constant text.
    fn literal(&self, text: &str) -> String {
        literal(self.engine(), text)
    }

    /// Returns the expression of a text.
    fn text(&self, text: &TextValue) -> String {
        match text {
            TextValue::Constant(text) => self.literal(text),
            TextValue::Variable(slot) => text_name(*slot),
            TextValue::LastName(number) => {
                // From 0 to 999, also for a negative number.
                let number = format!("((({0} % 1000) + 1000) % 1000)", self.number(number));
                self.joined(&self.syllables(&number))
            }
            TextValue::Either(condition, texts) => {
                self.choice(condition, [self.text(&texts[0]), self.text(&texts[1])])
            }
            TextValue::Numbered(before, number) => {
                self.joined(&[self.literal(before), self.number(number)])
            }
            // Only input has these, and the client computes input.
            TextValue::Letters(..) | TextValue::Digits(_) => "null".to_owned(),
        }
    }

    /// Returns the expression of a message, which concatenates its pieces.
    fn message(&self, pieces: &[Piece<'_>]) -> String {
        let mut arguments = Vec::new();
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Text(more) => text.push_str(more),
                Piece::Value(value) => {
                    arguments.push(self.literal(&std::mem::take(&mut text)));
                    arguments.push((*value).to_owned());
                }
            }
        }

        arguments.push(self.literal(&text));
        format!("concat({})", arguments.join(", "))
    }

    /// Returns the value of a list at an index, from 0.
    fn element(&self, list: &str, index: &str) -> String;

    /// Returns the number of values of a list.
    fn length(&self, list: &str) -> String;

    /// Returns a list that has the same value `count` times.
    fn repeated(&self, list: List, value: &Number, count: &Number) -> String;

    /// Returns the parameter of a statement of SQL with the value of a variable or a constant. A
    /// narrow one has 32 bits.
    fn parameter(&self, value: &str, is_wide: bool) -> String;

    /// Returns whether the value of a parameter may be any expression, not just a variable or a
    /// constant.
    fn has_expressions_as_parameters(&self) -> bool;

    /// Returns the lines that run a statement of SQL and assign its number of rows to [`ROWS`].
    /// `on_several_rows` are the lines that fail because the statement returns several rows, where its `into`
    /// takes one.
    fn run(&self, sql: &Sql<'_>, on_several_rows: &[String]) -> Vec<String>;

    /// Returns the lines that end the procedure with an error.
    fn failure(&self, message: &[Piece<'_>]) -> Vec<String>;

    /// Returns the lines that roll the transaction back and end the procedure, with the outcome of
    /// a rollback.
    fn abort(&self) -> Vec<String>;

    /// Returns the statement that creates the procedure.
    fn procedure(&self, parts: &Parts<'_>) -> String;

    /// Returns the name by which `drop procedure` finds a procedure with these parameters.
    fn signature(&self, name: &str, parameters: &[Kind]) -> String;

    /// Returns the block that does the work of the procedure.
    fn block(&self, parts: &Parts<'_>) -> BlockText;

    /// Returns the statement that calls a procedure with these parameters.
    fn call(&self, name: &str, parameters: &[Kind]) -> String;
}

/// The variable with the number of rows of the last statement.
pub(super) const ROWS: &str = "assay_n";
/// The variable with the number of rows of all statements, which is the outcome of a commit. The
/// outcome of a rollback is -1 minus this number, and so always negative.
pub(super) const OUTCOME: &str = "assay_rows";

/// Returns a constant as SQL writes it.
pub(super) fn constant(value: i64) -> String {
    if value == i64::MIN {
        // Without its sign, the number would need more than 64 bits.
        format!("({} - 1)", value + 1)
    } else if value < 0 {
        format!("({value})")
    } else {
        value.to_string()
    }
}

/// Returns the name of the variable with the integer at a place.
pub(super) fn integer_name(slot: usize) -> String {
    format!("assay_i{slot}")
}

/// Returns the name of the variable with the text at a place.
pub(super) fn text_name(slot: usize) -> String {
    format!("assay_t{slot}")
}

/// Returns the name of the variable with a list.
pub(super) fn list_name(list: List) -> String {
    format!("assay_l{}", list.count)
}
