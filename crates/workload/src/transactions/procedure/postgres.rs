//! The language PL/pgSQL. A procedure that is called outside of a transaction is one itself: it commits
//! when it ends.

use std::fmt::Write as _;

use engine::OUTCOME_SQLSTATE;
use plan::transactions::{List, Number, NumberOperator};
use words::Engine;

use super::language::{
    BlockText, Kind, Language, OUTCOME, Parts, Piece, ROWS, Sql, constant, integer_name,
};
use crate::transactions::values::SYLLABLES;

/// The language of PostgreSQL.
pub(super) struct Postgres {
    /// The code is that of a block, not of a procedure.
    pub(super) is_block: bool,
}

impl Language for Postgres {
    fn engine(&self) -> Engine {
        Engine::Postgres
    }

    fn of_blocks(&self) -> &'static dyn Language {
        &Postgres { is_block: true }
    }

    /// The first makes `select ... into` look for a second row. The second lets the outcome of a block
    /// through, which is a notice.
    fn session_settings(&self) -> &'static [&'static str] {
        &["set plpgsql.extra_warnings = 'too_many_rows'", "set client_min_messages = notice"]
    }

    fn leaves_failed_transactions_open(&self) -> bool {
        false
    }

    /// Appends an array: `{5,-7}`.
    fn write_list(&self, values: &[i64], text: &mut String) {
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

    fn loop_words(&self) -> [&'static str; 2] {
        ["loop", "end loop;"]
    }

    fn assignment(&self, variable: &str, value: &str) -> String {
        format!("{variable} := {value};")
    }

    /// Returns an expression in which all values but constants have 64 bits, so that no operation has a
    /// narrower result.
    fn number(&self, number: &Number) -> String {
        match number {
            Number::Constant(value) => constant(*value),
            Number::Variable(slot) => integer_name(*slot),
            Number::Binary(operator, sides) => {
                let symbol = match operator {
                    NumberOperator::Add => "+",
                    NumberOperator::Subtract => "-",
                    NumberOperator::Multiply => "*",
                    NumberOperator::Divide => "/",
                    NumberOperator::Remainder => "%",
                    _ => return format!("{}::int::bigint", self.condition(number)),
                };
                format!("({} {symbol} {})", self.number(&sides[0]), self.number(&sides[1]))
            }
            Number::Choose(parts) => {
                let [condition, first, second] = &**parts;
                let chosen = self.choice(condition, [self.number(first), self.number(second)]);
                format!("{chosen}::bigint")
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
        let Number::Binary(operator, sides) = number else {
            return format!("({} <> 0)", self.number(number));
        };

        let compared = |symbol: &str| {
            format!("({} {symbol} {})", self.number(&sides[0]), self.number(&sides[1]))
        };
        let combined = |word: &str| {
            format!("({} {word} {})", self.condition(&sides[0]), self.condition(&sides[1]))
        };
        match operator {
            NumberOperator::Equal => compared("="),
            NumberOperator::Unequal => compared("<>"),
            NumberOperator::Less => compared("<"),
            NumberOperator::AtMost => compared("<="),
            NumberOperator::And => combined("and"),
            NumberOperator::Or => combined("or"),
            _ => format!("({} <> 0)", self.number(number)),
        }
    }

    fn choice(&self, condition: &Number, [first, second]: [String; 2]) -> String {
        format!("(case when {} then {first} else {second} end)", self.condition(condition))
    }

    fn joined(&self, texts: &[String]) -> String {
        format!("({})", texts.join(" || "))
    }

    fn syllables(&self, number: &str) -> [String; 3] {
        let syllables = format!("('{{{}}}'::text[])", SYLLABLES.join(","));
        let digits = ["/ 100", "/ 10 % 10", "% 10"];
        digits.map(|digit| format!("{syllables}[({number} {digit})::int + 1]"))
    }

    fn element(&self, list: &str, index: &str) -> String {
        format!("{list}[{index} + 1]")
    }

    fn length(&self, list: &str) -> String {
        format!("cardinality({list})")
    }

    fn repeated(&self, list: List, value: &Number, count: &Number) -> String {
        let (value, count) = (self.number(value), self.number(count));
        let count = format!("least(greatest({count}, 0), {})", list.capacity);
        format!("array_fill({value}::bigint, array[{count}::int])")
    }

    fn parameter(&self, value: &str, is_wide: bool) -> String {
        if is_wide { value.to_owned() } else { format!("{value}::int") }
    }

    fn has_expressions_as_parameters(&self) -> bool {
        true
    }

    /// A `select ... into` of several rows counts two: with the settings of the session, it looks for
    /// a second row.
    fn run(&self, sql: &Sql<'_>, _: &[String]) -> Vec<String> {
        let statement = sql.with_into();
        let keyword_bytes = statement.find(|letter: char| !letter.is_ascii_alphabetic());
        let (keyword, after) = statement.split_at(keyword_bytes.unwrap_or(statement.len()));

        // Rows that nothing takes are read, but not kept.
        let statement = if !sql.into.is_empty() || !sql.returns_rows {
            statement
        } else if keyword.eq_ignore_ascii_case("select") {
            format!("perform{after}")
        } else {
            format!("perform * from ({statement}) as assay_q")
        };
        vec![format!("{statement};"), format!("get diagnostics {ROWS} = row_count;")]
    }

    fn failure(&self, message: &[Piece<'_>]) -> Vec<String> {
        vec![format!("raise exception using message = {};", self.message(message))]
    }

    fn abort(&self) -> Vec<String> {
        let mut lines = vec!["rollback;".to_owned(), format!("{OUTCOME} := -1 - {OUTCOME};")];
        lines.extend(self.is_block.then(notice));
        lines.push("return;".to_owned());
        lines
    }

    fn procedure(&self, parts: &Parts<'_>) -> String {
        let Parts { name, parameters, variables, body } = parts;
        let typed = |(name, kind): &(String, Kind)| format!("{name} {}", type_of(*kind));

        let mut all: Vec<String> = parameters.iter().map(typed).collect();
        all.push(format!("inout {OUTCOME} bigint"));
        let variables: Vec<String> =
            variables.iter().map(|variable| format!("    {};\n", typed(variable))).collect();

        let quote = quote_around(body);
        format!(
            "create procedure {name}({}) language plpgsql as {quote}\n\
             declare\n{}begin\n{body}end\n{quote}",
            all.join(", "),
            variables.concat()
        )
    }

    fn signature(&self, name: &str, parameters: &[Kind]) -> String {
        let mut types: Vec<&str> = parameters.iter().map(|kind| type_of(*kind)).collect();
        types.push("inout bigint");
        format!("{name}({})", types.join(", "))
    }

    fn block(&self, parts: &Parts<'_>) -> BlockText {
        let quote = quote_around(parts.body);
        let mut inputs = Vec::new();
        let mut before = format!("do {quote}\ndeclare\n");
        for (name, kind) in parts.parameters {
            inputs.push(format!("{before}    {name} {} := ", type_of(*kind)));
            before = ";\n".to_owned();
        }

        let mut end = before;
        for (name, kind) in parts.variables {
            end += &format!("    {name} {};\n", type_of(*kind));
        }
        end += &format!(
            "    {OUTCOME} bigint := 0;\nbegin\n{}    {}\nend\n{quote}",
            parts.body,
            notice()
        );
        BlockText { inputs, end }
    }

    fn call(&self, name: &str, parameters: &[Kind]) -> String {
        let mut all = Vec::new();
        for (number, kind) in (1..).zip(parameters) {
            all.push(match kind {
                Kind::Integer | Kind::Text => format!("${number}"),
                Kind::List(_) => format!("${number}::bigint[]"),
            });
        }
        all.push("0".to_owned());
        format!("call {name}({})", all.join(", "))
    }
}

/// Returns the statement that tells the client the outcome of a block.
fn notice() -> String {
    format!("raise notice using errcode = '{OUTCOME_SQLSTATE}', message = {OUTCOME}::text;")
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Integer => "bigint",
        Kind::Text => "text",
        Kind::List(_) => "bigint[]",
    }
}

/// Returns the dollar quote for a body, which has none like it.
fn quote_around(body: &str) -> String {
    let mut quote = "$assay$".to_owned();
    while body.contains(&quote) {
        quote.insert(1, '_');
    }
    quote
}
