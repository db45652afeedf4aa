//! What stands in braces in the text of a statement: `{name}` is a placeholder, `{{` and `}}` are one brace each.

use std::ops::Range;

use super::expression::{self, ExpressionError};
use crate::diagnostic::{Diagnostic, Place};

const HELP: &str =
    "braces hold the name of a parameter: `WHERE id = {id}`; `{{` and `}}` are one brace each";

/// A part of a statement's text.
#[derive(Debug, PartialEq)]
pub(crate) enum Segment<'a> {
    /// As it is sent.
    Text(String),
    /// A name in braces, with the bytes of all of it.
    Name { name: &'a str, span: Range<usize> },
}

fn bad(span: Range<usize>, message: &str, label: &str) -> ExpressionError {
    let mut wrong = Diagnostic::error("plan::bad-sql", Place::File(span.into()), message);
    wrong.label(label).help(HELP);
    Box::new(wrong)
}

/// Takes a statement apart, or returns the first brace that is not a placeholder's.
pub(crate) fn parts(sql: &str) -> Result<Vec<Segment<'_>>, ExpressionError> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut open: Option<usize> = None;
    let mut is_quoted = false;
    let mut letters = sql.char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        let end = at + c.len_utf8();
        match (c, open) {
            ('{' | '}', None) if letters.next_if(|(_, next)| *next == c).is_some() => text.push(c),
            ('{', Some(start)) => {
                return Err(bad(
                    start..end,
                    "a `{` follows a `{`",
                    "two `{` before a `}`",
                ));
            }
            ('{', None) if is_quoted => {
                return Err(bad(at..end, "a parameter within quotes", "takes no quotes"));
            }
            ('{', None) => open = Some(at),
            ('}', None) => return Err(bad(at..end, "a `}` without its `{`", "nothing is open")),
            ('}', Some(start)) => {
                let (name, span) = (&sql[start + 1..at], start..end);
                if !expression::is_identifier(name) {
                    return Err(bad(
                        span,
                        "braces without a name in them",
                        "expected a name",
                    ));
                }
                parts.push(Segment::Text(std::mem::take(&mut text)));
                parts.push(Segment::Name { name, span });
                open = None;
            }
            (_, Some(_)) => {}
            (_, None) => {
                is_quoted ^= c == '\'';
                text.push(c);
            }
        }
    }
    parts.push(Segment::Text(text));
    match open {
        None => Ok(parts),
        Some(start) => Err(bad(
            start..start + 1,
            "a `{` without its `}`",
            "never closed",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_braces_are_text_also_within_quotes() {
        let shown = |sql| -> String {
            let parts = parts(sql).unwrap();
            let shown = parts.into_iter().map(|part| match part {
                Segment::Text(text) => text,
                Segment::Name { name, .. } => format!("<{name}>"),
            });
            shown.collect()
        };
        assert_eq!(
            shown(r#"select '{{"a": {{"b": 1}}}}'"#),
            r#"select '{"a": {"b": 1}}'"#
        );
        assert_eq!(
            shown(r#"select {x}}} {{{y} '{{z}}'"#),
            "select <x>} {<y> '{z}'"
        );
        assert!(parts("select '{{x}'").is_err());
        assert!(parts("select '{{{x}}}'").is_err());
    }
}
