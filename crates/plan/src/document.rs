//! The text of a plan file -> its tree, or what in it is not TOML.

use toml::de::{DeTable, Error};

use crate::diagnostic::{Place, Span};
use crate::reader::Context;
use crate::tree::Table;
use crate::wording::code;

/// Parses a plan file. Reports what is not TOML, up to the first error after which the rest of the file may mean
/// something else.
pub(crate) fn read(cx: &mut Context<'_>, text: &str) -> Option<Table> {
    let (root, mut errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Some(Table::new(root.get_ref(), &|range| {
            Place::File(range.into())
        }));
    }
    let span = |error: &Error| error.span().map_or(Span::from(0..0), Span::from);
    errors.sort_by_key(|error| span(error).start);
    for error in &errors {
        let is_key = error.message() == "duplicate key";
        let is_value = error.message().starts_with("string values must be quoted");
        if is_key {
            report_duplicate(cx, text, span(error));
        } else {
            report_syntax(cx, text, span(error), error.message());
        }
        if !is_value && (!is_key || line_at(text, span(error).start).1.starts_with('[')) {
            break;
        }
    }
    None
}

fn report_syntax(cx: &mut Context<'_>, text: &str, span: Span, message: &str) {
    let (what, expected) = message.split_once(", expected ").unwrap_or((message, ""));
    let offending = text.get(span.start..span.end).unwrap_or_default();
    let (what, label, help) = match offending {
        _ if !what.starts_with("string values must be quoted") => {
            (what, format!("expected {expected}"), String::new())
        }
        "" => (
            "a value is missing",
            "expected a value".to_owned(),
            String::new(),
        ),
        _ => {
            let help = format!("write {}", code(&format!("\"{offending}\"")));
            (what, "a string needs quotes".to_owned(), help)
        }
    };
    let message = format!("the plan is not TOML: {what}");
    cx.error("plan::syntax", Place::File(span), message)
        .label(label)
        .help(help);
}

/// Reports a key or a table that is given again.
fn report_duplicate(cx: &mut Context<'_>, text: &str, span: Span) {
    let (start, line) = line_at(text, span.start);
    let key = &text[span.start..span.end];
    let (name, end) = match line.find(']') {
        Some(end) if line.starts_with('[') => (&line[..=end], end + 1),
        _ => (key, line.find(key).unwrap_or(0) + key.len()),
    };
    let message = format!("{} is given twice", code(name));
    // Good enough for a label: the nearest line above that begins in the same way.
    let before = format!("\n{}", &text[..start]);
    let first = before.rfind(&format!("\n{}", &line[..end]));
    let first = first.map_or(Place::Nowhere, |first| {
        let at = first + span.start - start;
        Place::File((at..at + key.len()).into())
    });
    cx.error("plan::duplicate-key", Place::File(span), message)
        .label("given again")
        .also(first, "first given here");
}

/// Returns the line that a byte is in, and where it starts.
fn line_at(text: &str, at: usize) -> (usize, &str) {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    (start, text[start..].lines().next().unwrap_or(""))
}
