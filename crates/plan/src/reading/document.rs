//! Parses the text of a plan file into its tree, or reports what is not TOML.

use toml::de::{DeTable, Error};

use crate::reading::context::Context;
use crate::text::diagnostic::{Place, Span};
use crate::text::tree::Table;
use crate::text::wording::code;

/// Parses a plan file. Reports errors of syntax, up to the first one that may change the meaning of
/// what follows it.
pub(crate) fn read(cx: &mut Context<'_>, text: &str) -> Option<Table> {
    let (root, mut errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Some(Table::new(root.get_ref(), &|range| Place::File(range.into())));
    }

    let span = |error: &Error| error.span().map_or(Span::from(0..0), Span::from);
    errors.sort_by_key(|error| span(error).start);

    for error in &errors {
        let is_key = error.message() == "duplicate key";
        let is_value = error.message().starts_with("string values must be quoted");
        if is_key {
            report_duplicate(cx, text, span(error));
        } else {
            report_syntax(cx, text, span(error), error);
        }

        if !is_value && (!is_key || line_at(text, span(error).start).1.starts_with('[')) {
            break;
        }
    }

    None
}

/// Splits a message of the TOML parser into what is wrong and what was expected.
pub(crate) fn message_of(error: &Error) -> (&str, &str) {
    let (what, expected) =
        (error.message().split_once(", expected ")).unwrap_or((error.message(), "something else"));

    match (what, expected) {
        // The parser calls strings in double quotes basic, and those in single quotes literal.
        ("invalid basic string", "`\"`") | ("invalid literal string", "`'`") => {
            ("unclosed string", expected)
        }
        ("string values must be quoted", _) => (what, "quotes around this string"),
        _ => (what, expected),
    }
}

fn report_syntax(cx: &mut Context<'_>, text: &str, span: Span, error: &Error) {
    let (mut what, mut expected) = message_of(error);
    let mut help = String::new();

    if what == "string values must be quoted" {
        match text.get(span.start..span.end).unwrap_or_default() {
            "" => (what, expected) = ("a value is missing", "a value"),
            value => help = format!("write {}", code(&format!("\"{value}\""))),
        }
    }

    let message = format!("the plan is not valid TOML: {what}");
    cx.error("plan::syntax", Place::File(span), message)
        .label(format!("expected {expected}"))
        .help(help);
}

/// Reports a key or a table that the text has twice.
fn report_duplicate(cx: &mut Context<'_>, text: &str, span: Span) {
    let (start, line) = line_at(text, span.start);
    let key = &text[span.start..span.end];

    let (name, end) = match line.find(']') {
        Some(end) if line.starts_with('[') => (&line[..=end], end + 1),
        _ => (key, line.find(key).unwrap_or(0) + key.len()),
    };

    let message = format!("{} is given twice", code(name));

    // The nearest line above that starts in the same way is good enough for a label.
    let before = format!("\n{}", &text[..start]);
    let found = before.rfind(&format!("\n{}", &line[..end]));
    let first = found.map_or(Place::Nowhere, |line_start| {
        let at = line_start + span.start - start;
        Place::File((at..at + key.len()).into())
    });

    let help = if line.starts_with('[') {
        "merge the two tables, or rename one of them"
    } else {
        "remove one of them"
    };

    cx.error("plan::duplicate-key", Place::File(span), message)
        .label("given again")
        .also(first, "first given here")
        .help(help);
}

/// Returns the line that contains a byte, and where it starts.
fn line_at(text: &str, at: usize) -> (usize, &str) {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    (start, text[start..].lines().next().unwrap_or(""))
}
