//! The language of stored procedures of MySQL and MariaDB. A procedure begins and commits its
//! transaction.
//!
//! These servers have no lists. A list is a text, in which each value takes [`VALUE_CHARS`] characters.

use std::fmt::Write as _;

use plan::transactions::{List, Number, NumberOperator};
use words::Engine;

use super::language::{
    BlockText, Kind, Language, OUTCOME, Parts, Piece, ROWS, Sql, constant, integer_name,
};
use crate::transactions::values::SYLLABLES;

/// The width of a value in a list: that of the smallest integer.
const VALUE_CHARS: usize = 20;
/// The longest message of an error that a procedure may send, in characters.
const MESSAGE_CHARS: usize = 128;
/// The variable with that message.
const MESSAGE: &str = "assay_message";
/// The label of a procedure's body.
const BODY: &str = "assay_body";
/// The error of a `select ... into` that returns several rows.
const SEVERAL_ROWS: u32 = 1172;

/// The language of MySQL and MariaDB.
pub(super) struct Mysql;

impl Language for Mysql {
    fn engine(&self) -> Engine {
        Engine::Mysql
    }

    fn of_blocks(&self) -> &'static dyn Language {
        &Mysql
    }

    fn leaves_failed_transactions_open(&self) -> bool {
        true
    }

    fn write_list(&self, values: &[i64], text: &mut String) {
        for value in values {
            // Writing to a string never fails.
            let _ = write!(text, "{value:VALUE_CHARS$}");
        }
    }

    fn loop_words(&self) -> [&'static str; 2] {
        ["do", "end while;"]
    }

    fn assignment(&self, variable: &str, value: &str) -> String {
        format!("set {variable} = {value};")
    }

    fn number(&self, number: &Number) -> String {
        match number {
            Number::Constant(value) => constant(*value),
            Number::Variable(slot) => integer_name(*slot),
            Number::Binary(operator, sides) => {
                let symbol = match operator {
                    NumberOperator::Add => "+",
                    NumberOperator::Subtract => "-",
                    NumberOperator::Multiply => "*",
                    NumberOperator::Divide => "div",
                    NumberOperator::Remainder => "%",
                    NumberOperator::Equal => "=",
                    NumberOperator::Unequal => "<>",
                    NumberOperator::Less => "<",
                    NumberOperator::AtMost => "<=",
                    NumberOperator::And => "and",
                    NumberOperator::Or => "or",
                };
                let [left, right] = [0, 1].map(|side| self.number(&sides[side]));
                let operation = format!("({left} {symbol} {right})");

                let is_divided = matches!(symbol, "div" | "%");
                if is_divided && !matches!(sides[1], Number::Constant(_)) {
                    // A division by 0 is NULL here, but an error in scripts. The second value needs more
                    // than 64 bits, so its computation fails.
                    format!("ifnull({operation}, {} + 1 + abs({right}))", i64::MAX)
                } else {
                    operation
                }
            }
            Number::Choose(parts) => {
                let [condition, first, second] = &**parts;
                self.choice(condition, [self.number(first), self.number(second)])
            }
            // Only input has these, and the client computes input.
            Number::Draw(_)
            | Number::At(_)
            | Number::Hash(_)
            | Number::Next(_)
            | Number::Newest(_)
            | Number::Home(_)
            | Number::HomeCount(_) => "null".to_owned(),
        }
    }

    fn condition(&self, number: &Number) -> String {
        self.number(number)
    }

    fn choice(&self, condition: &Number, [first, second]: [String; 2]) -> String {
        format!("if({}, {first}, {second})", self.condition(condition))
    }

    fn joined(&self, texts: &[String]) -> String {
        format!("concat({})", texts.join(", "))
    }

    fn syllables(&self, number: &str) -> [String; 3] {
        let syllables = SYLLABLES.map(|syllable| self.literal(syllable)).join(", ");
        let digits = ["div 100", "div 10 % 10", "% 10"];
        digits.map(|digit| format!("elt({number} {digit} + 1, {syllables})"))
    }

    fn element(&self, list: &str, index: &str) -> String {
        format!("cast(substr({list}, {index} * {VALUE_CHARS} + 1, {VALUE_CHARS}) as signed)")
    }

    fn length(&self, list: &str) -> String {
        format!("length({list}) div {VALUE_CHARS}")
    }

    fn repeated(&self, list: List, value: &Number, count: &Number) -> String {
        let (value, count) = (self.number(value), self.number(count));
        let count = format!("least(greatest({count}, 0), {})", list.capacity);
        format!("repeat(lpad({value}, {VALUE_CHARS}, ' '), {count})")
    }

    fn parameter(&self, value: &str, _: bool) -> String {
        value.to_owned()
    }

    /// `limit` takes only variables and constants.
    fn has_expressions_as_parameters(&self) -> bool {
        false
    }

    /// Rows that nothing takes are sent to the client.
    fn run(&self, sql: &Sql<'_>, on_several_rows: &[String]) -> Vec<String> {
        let statement = format!("{};", sql.with_into());
        let count = |function: &str| format!("set {ROWS} = {function}();");
        if sql.into.is_empty() {
            let function = if sql.returns_rows { "found_rows" } else { "row_count" };
            return vec![statement, count(function)];
        }

        let mut lines =
            vec!["begin".to_owned(), format!("    declare exit handler for {SEVERAL_ROWS} begin")];
        lines.extend(on_several_rows.iter().map(|line| format!("        {line}")));
        lines.push("    end;".to_owned());
        lines.push(format!("    {statement}"));
        lines.push(format!("    {}", count("row_count")));
        lines.push("end;".to_owned());
        lines
    }

    fn failure(&self, message: &[Piece<'_>]) -> Vec<String> {
        let message = self.message(message);
        vec![
            format!("set {MESSAGE} = left({message}, {MESSAGE_CHARS});"),
            format!("signal sqlstate '45000' set message_text = {MESSAGE};"),
        ]
    }

    fn abort(&self) -> Vec<String> {
        vec!["rollback;".to_owned(), format!("select -1 - {OUTCOME};"), format!("leave {BODY};")]
    }

    fn procedure(&self, parts: &Parts<'_>) -> String {
        let Parts { name, parameters, .. } = parts;
        let parameters: Vec<String> = parameters.iter().map(typed).collect();

        format!("create procedure {name}({})\n{}", parameters.join(", "), labeled(parts))
    }

    fn signature(&self, name: &str, _: &[Kind]) -> String {
        name.to_owned()
    }

    fn block(&self, parts: &Parts<'_>) -> BlockText {
        let mut inputs = Vec::new();
        let mut before = "begin not atomic\n".to_owned();
        for (name, kind) in parts.parameters {
            inputs.push(format!("{before}declare {name} {} default ", type_of(*kind)));
            before = ";\n".to_owned();
        }
        BlockText { inputs, end: format!("{before}{};\nend", labeled(parts)) }
    }

    fn call(&self, name: &str, parameters: &[Kind]) -> String {
        format!("call {name}({})", vec!["?"; parameters.len()].join(", "))
    }
}

/// Returns the block of a procedure, which `leave` can end.
fn labeled(parts: &Parts<'_>) -> String {
    let mut declared = String::new();
    for variable in parts.variables {
        declared += &format!("    declare {};\n", typed(variable));
    }
    declared += &format!("    declare {MESSAGE} varchar({MESSAGE_CHARS});\n");
    declared += &format!("    declare {OUTCOME} bigint default 0;\n");

    format!(
        "{BODY}: begin\n{declared}    start transaction;\n{}    commit;\n    select {OUTCOME};\nend",
        parts.body
    )
}

fn typed((name, kind): &(String, Kind)) -> String {
    format!("{name} {}", type_of(*kind))
}

fn type_of(kind: Kind) -> String {
    match kind {
        Kind::Integer => "bigint".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::List(capacity) => {
            let length = capacity.max(1) * VALUE_CHARS;
            format!("varchar({length}) character set ascii")
        }
    }
}
