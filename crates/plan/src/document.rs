//! The text of a plan file -> its tree, or what in it is not TOML.

use toml::de::{DeTable, Error};

use crate::diagnostic::{Diagnostic, Place, Span};
use crate::tree::Table;
use crate::wording::code;

/// Parses a plan file.
///
/// # Errors
/// What is not TOML, up to the first error after which the rest of the file may mean something else.
pub(crate) fn read(text: &str) -> Result<Table, Vec<Diagnostic>> {
    let (root, mut errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(Table::new(root.get_ref(), &|range| {
            Place::File(range.into())
        }));
    }
    let span = |error: &Error| error.span().map_or(Span::from(0..0), Span::from);
    errors.sort_by_key(|error| span(error).start);
    let mut diagnostics = Vec::new();
    for error in &errors {
        let is_key = error.message() == "duplicate key";
        let is_value = error.message().starts_with("string values must be quoted");
        diagnostics.push(if is_key {
            duplicate(text, span(error))
        } else {
            syntax(text, span(error), error.message())
        });
        if !is_value && (!is_key || line_at(text, span(error).start).1.starts_with('[')) {
            break;
        }
    }
    Err(diagnostics)
}

fn syntax(text: &str, span: Span, message: &str) -> Diagnostic {
    let (what, expected) = message.split_once(", expected ").unwrap_or((message, ""));
    let error = |what: &str| {
        let message = format!("the plan is not TOML: {what}");
        Diagnostic::error("plan::syntax", Place::File(span), message)
    };
    let offending = text.get(span.start..span.end).unwrap_or_default();
    match offending {
        _ if !what.starts_with("string values must be quoted") => {
            error(what).label(format!("expected {expected}"))
        }
        "" => error("a value is missing").label("expected a value"),
        _ => error(what)
            .label("a string needs quotes")
            .help(format!("write {}", code(&format!("\"{offending}\"")))),
    }
}

/// Reports a key or a table that is given again.
fn duplicate(text: &str, span: Span) -> Diagnostic {
    let (start, line) = line_at(text, span.start);
    let key = &text[span.start..span.end];
    let (name, end) = match line.find(']') {
        Some(end) if line.starts_with('[') => (&line[..=end], end + 1),
        _ => (key, line.find(key).unwrap_or(0) + key.len()),
    };
    let message = format!("{} is given twice", code(name));
    let diagnostic =
        Diagnostic::error("plan::duplicate-key", Place::File(span), message).label("given again");
    // Good enough for a label: the nearest line above that begins in the same way.
    let before = format!("\n{}", &text[..start]);
    let Some(first) = before.rfind(&format!("\n{}", &line[..end])) else {
        return diagnostic;
    };
    let at = first + span.start - start;
    diagnostic.also(Place::File((at..at + key.len()).into()), "first given here")
}

/// Returns the line that a byte is in, and where it starts.
fn line_at(text: &str, at: usize) -> (usize, &str) {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    (start, text[start..].lines().next().unwrap_or(""))
}
