//! Placeholders in the text of a statement: `{name}` is a placeholder, `{{` and `}}` are one brace
//! each.

use std::ops::Range;

use super::parser::{self, ExpressionError};
use crate::text::diagnostic::{Diagnostic, Place};

const HELP: &str = "write a parameter as `{id}`, and a brace as `{{` or `}}`";

/// A part of a statement's text.
#[derive(Debug, PartialEq)]
pub(crate) enum Segment<'a> {
    /// Text that is sent as it is.
    Text(String),
    /// A name in braces, with the range of its bytes, braces included.
    Name { name: &'a str, span: Range<usize> },
}

fn bad(span: Range<usize>, message: &str, label: &str) -> ExpressionError {
    let mut error = Diagnostic::error("plan::bad-sql", Place::File(span.into()), message);
    error.label(label).help(HELP);
    Box::new(error)
}

/// Splits a statement into segments, or reports the first brace that does not belong to a
/// placeholder.
pub(crate) fn segments(sql: &str) -> Result<Vec<Segment<'_>>, ExpressionError> {
    let mut segments = Vec::new();
    let mut text = String::new();
    let mut is_quoted = false;
    // The place of the brace that began the placeholder.
    let mut open: Option<usize> = None;

    let mut chars = sql.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();

        let Some(start) = open else {
            match c {
                '{' | '}' if chars.next_if(|(_, next)| *next == c).is_some() => text.push(c),
                '{' if is_quoted => {
                    return Err(bad(at..end, "a parameter within quotes", "must not be in quotes"));
                }
                '{' => open = Some(at),
                '}' => return Err(bad(at..end, "a `}` without a `{`", "no `{` before it")),
                _ => {
                    is_quoted ^= c == '\'';
                    text.push(c);
                }
            }
            continue;
        };

        match c {
            '{' => {
                let message = "a `{` within a placeholder";
                return Err(bad(start..end, message, "expected `}` before the next `{`"));
            }
            '}' => {
                let (name, span) = (&sql[start + 1..at], start..end);
                if !parser::is_identifier(name) {
                    return Err(bad(span, "no name between braces", "expected a name"));
                }

                segments.push(Segment::Text(std::mem::take(&mut text)));
                segments.push(Segment::Name { name, span });
                open = None;
            }
            // A part of the name.
            _ => {}
        }
    }

    segments.push(Segment::Text(text));
    match open {
        None => Ok(segments),
        Some(start) => Err(bad(start..start + 1, "a `{` without a `}`", "never closed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_braces_are_text_also_within_quotes() {
        let shown = |sql| -> String {
            let segments = segments(sql).unwrap();
            let shown = segments.into_iter().map(|segment| match segment {
                Segment::Text(text) => text,
                Segment::Name { name, .. } => format!("<{name}>"),
            });
            shown.collect()
        };
        assert_eq!(shown(r#"select '{{"a": {{"b": 1}}}}'"#), r#"select '{"a": {"b": 1}}'"#);
        assert_eq!(shown(r#"select {x}}} {{{y} '{{z}}'"#), "select <x>} {<y> '{z}'");
        assert!(segments("select '{{x}'").is_err());
        assert!(segments("select '{{{x}}}'").is_err());
    }
}
