//! Reads the statements of a script: SQL up to a semicolon, with parameters in braces.

use super::bounded::Bounded;
use super::parser::{Fault, Parser, Symbol, fault};
use crate::spec::sysbench::Effect;
use crate::spec::transactions::{ScriptStatement, SqlPiece};
use crate::text::wording::code;

/// The first words of SQL that a `let` may take a row of.
const QUERIES: [&str; 6] = ["select", "insert", "update", "delete", "with", "call"];

impl Parser<'_> {
    /// Returns whether a statement that returns rows comes next.
    pub(super) fn is_query_ahead(&self) -> bool {
        QUERIES.contains(&self.ahead().to_ascii_lowercase().as_str())
    }

    /// Takes SQL up to its semicolon. The statement has the rows that its first word implies.
    pub(super) fn sql(&mut self) -> Result<ScriptStatement, Fault> {
        let start = self.peek().start;
        let mut pieces = Vec::new();
        let mut fixed = String::new();
        self.at = start;

        loop {
            let Some(next) = self.text[self.at..].chars().next() else {
                let what = "a statement without a `;` at its end";
                let end = self.text[start..].find('\n').map_or(self.text.len(), |end| start + end);
                return Err(fault("plan::bad-sql", start..end, what, "begins here"));
            };
            match next {
                ';' => break,
                '\'' | '"' => fixed.push_str(self.quotation()?),
                '-' if self.text[self.at..].starts_with("--") => {
                    let rest = &self.text[self.at..];
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                // A doubled brace is one of the SQL.
                '{' | '}' if self.text[self.at + 1..].starts_with(next) => {
                    fixed.push(next);
                    self.at += 2;
                }
                '{' => {
                    pieces.push(SqlPiece::Fixed(std::mem::take(&mut fixed)));
                    pieces.push(self.parameter()?);
                }
                '}' => {
                    let span = self.at..self.at + 1;
                    let what = "a `}` without a `{`";
                    return Err(fault("plan::bad-sql", span, what, "no `{` before it"));
                }
                _ => {
                    push_collapsed(&mut fixed, next);
                    self.at += next.len_utf8();
                }
            }
        }

        let end = self.at;
        self.at += 1;
        pieces.push(SqlPiece::Fixed(fixed.trim_end().to_owned()));
        if end == start {
            return Err(fault("plan::bad-sql", start..end + 1, "an empty statement", "no SQL"));
        }
        Ok(statement(pieces))
    }

    /// Takes a text or a name with the quotes around it.
    fn quotation(&mut self) -> Result<&str, Fault> {
        let quoted = self.peek();
        if quoted.len() == 1 {
            let what = "a quote that is not closed";
            return Err(fault("plan::bad-sql", quoted, what, "opens here"));
        }

        self.at = quoted.end;
        Ok(&self.text[quoted])
    }

    /// Takes a parameter in braces.
    fn parameter(&mut self) -> Result<SqlPiece, Fault> {
        self.expect("{")?;
        if self.take("for") {
            self.expect("update")?;
            self.expect("}")?;
            return Ok(SqlPiece::ForUpdate);
        }

        let span = self.peek();
        let name = &self.text[span.clone()];
        if let Some(Symbol::Text(slot)) = self.scope.find(name) {
            let slot = *slot;
            self.at = span.end;
            self.expect("}")?;
            return Ok(SqlPiece::Text(slot));
        }

        let value: Bounded = self.number()?;
        if value.draws {
            let message = format!("{} is random", code(&self.text[span.start..self.at]));
            let mut fault =
                fault("plan::bad-sql", span.start..self.at, message, "a retry would draw another");
            fault.help("draw it with `let` before the first statement, and use its name here");
            return Err(fault);
        }
        self.expect("}")?;
        let is_wide = value.is_wide();
        Ok(SqlPiece::Number { value: value.number, is_wide })
    }
}

/// Appends a character, or one space for several.
fn push_collapsed(text: &mut String, next: char) {
    if !next.is_whitespace() {
        text.push(next);
    } else if !text.ends_with(' ') {
        text.push(' ');
    }
}

/// Returns a statement with the rows that its first word implies.
fn statement(pieces: Vec<SqlPiece>) -> ScriptStatement {
    let mut text = String::new();
    let mut locks = false;
    for piece in &pieces {
        match piece {
            SqlPiece::Fixed(fixed) => text.push_str(fixed),
            SqlPiece::ForUpdate => locks = true,
            SqlPiece::Number { .. } | SqlPiece::Text(_) => text.push('0'),
        }
    }

    let effect = Effect::of(&text);
    let first_word = text.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let changes_one = ["insert", "update", "delete"].contains(&first_word.as_str());
    let one = || Bounded::constant(1).number;
    ScriptStatement {
        pieces,
        rows: changes_one.then(|| (one(), one())),
        into: Vec::new(),
        only_reads: effect == Effect::Reads && !locks,
    }
}
