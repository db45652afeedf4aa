//! The text of a plan file -> its tree, and everything in it that is no TOML.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Place, Span};
use crate::tree::{Builder, Table};
use crate::wording::code;

/// A plan file that was taken apart.
pub(crate) struct Document {
    pub(crate) root: Table,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The first byte from which on keys may be missing or in the wrong table, because the parser lost its way.
    pub(crate) lost_at: Option<usize>,
}

/// The parser's message for a key or a table that is defined again.
const DUPLICATE: &str = "duplicate key";

pub(crate) fn read(text: &str) -> Document {
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut values = Values::default();
    values.add_table(root.get_ref());
    let errors: Vec<Error> = errors
        .iter()
        .map(|error| Error::new(error, text, &values))
        .collect();

    let mut broken = Vec::new();
    let mut lost_at: Option<usize> = None;
    let mut diagnostics = Vec::new();
    for error in &errors {
        match error.sort {
            Sort::Duplicate => {
                if !is_in_duplicate_table(text, error.span, &errors) {
                    diagnostics.push(duplicate(text, error.span));
                }
                continue;
            }
            Sort::InValue => {}
            // An error within one value leaves the rest of the file readable; any other may not.
            Sort::Open(_) | Sort::Other => {
                lost_at =
                    Some(lost_at.map_or(error.span.start, |first| first.min(error.span.start)));
            }
        }
        broken.push(error.span);
        // What stands in a list that is never closed was not meant to be in it.
        let is_consequence = match error.sort {
            Sort::Open(_) => errors.iter().find(|other| other.sort == error.sort) != Some(error),
            _ => errors.iter().any(|other| match other.sort {
                Sort::Open(list) => list.start < error.span.start && error.span.end <= list.end,
                _ => false,
            }),
        };
        if !is_consequence {
            diagnostics.push(syntax(text, error));
        }
    }

    let place = |range: std::ops::Range<usize>| {
        Place::File(Span {
            start: range.start,
            end: range.end,
        })
    };
    let root = Builder {
        place: &place,
        broken: &broken,
    }
    .table(root.get_ref());
    Document {
        root,
        diagnostics,
        lost_at,
    }
}

/// What the parser has to say.
#[derive(PartialEq)]
struct Error {
    span: Span,
    message: String,
    sort: Sort,
}

#[derive(PartialEq)]
enum Sort {
    /// A key or a table is defined again.
    Duplicate,
    /// Within one value.
    InValue,
    /// A list or an inline table that is never closed, and how far it goes.
    Open(Span),
    Other,
}

impl Error {
    fn new(error: &toml::de::Error, text: &str, values: &Values) -> Self {
        let range = error.span().unwrap_or(0..0);
        let span = Span {
            start: range.start.min(text.len()),
            end: range.end.min(text.len()),
        };
        let touches = |value: &&Span| span.start <= value.end && value.start <= span.end;
        let message = error.message();
        let sort = if message == DUPLICATE {
            Sort::Duplicate
        } else if message.starts_with("unclosed array")
            || message.starts_with("unclosed inline table")
        {
            // The outermost: if it were closed, what is in it would be too.
            values
                .lists
                .iter()
                .filter(touches)
                .min_by_key(|list| list.start)
                .map_or(Sort::Other, |list| Sort::Open(*list))
        } else if values.scalars.iter().any(|value| touches(&value)) {
            Sort::InValue
        } else {
            Sort::Other
        };
        Self {
            span,
            message: message.to_owned(),
            sort,
        }
    }
}

fn syntax(text: &str, error: &Error) -> Diagnostic {
    let (what, expected) = match error.message.split_once(", expected ") {
        Some((what, expected)) => (what, format!("expected {expected}")),
        None => (error.message.as_str(), String::new()),
    };
    let report = |span: Span, what: &str, label: String| {
        Diagnostic::error(
            "plan::syntax",
            Place::File(span),
            format!("the plan is not TOML: {what}"),
        )
        .label(label)
    };
    if let Sort::Open(list) = error.sort {
        return report(
            Span {
                start: list.start,
                end: list.start + 1,
            },
            what,
            format!("never closed, {expected}"),
        );
    }
    let offending = text
        .get(error.span.start..error.span.end)
        .unwrap_or_default();
    if !what.starts_with("string values must be quoted") || offending.contains('"') {
        return report(error.span, what, expected);
    }
    if offending.is_empty() {
        return report(
            error.span,
            "a value is missing",
            "expected a value".to_owned(),
        );
    }
    report(error.span, what, "a string needs quotes".to_owned())
        .help(format!("write {}", code(&format!("\"{offending}\""))))
}

/// Whether a key stands in a table that is itself there twice, so that it is not worth a word.
fn is_in_duplicate_table(text: &str, key: Span, errors: &[Error]) -> bool {
    let line_start = line_start_of(text, key.start);
    if text[line_start..].trim_start().starts_with('[') {
        return false;
    }
    let mut end = line_start;
    while end > 0 {
        let start = line_start_of(text, end - 1);
        if text[start..end].trim_start().starts_with('[') {
            return errors.iter().any(|error| {
                error.sort == Sort::Duplicate && start <= error.span.start && error.span.end <= end
            });
        }
        end = start;
    }
    false
}

fn line_start_of(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

fn duplicate(text: &str, span: Span) -> Diagnostic {
    let line = &text[line_start_of(text, span.start)..];
    let name = match line.lines().next().and_then(header_of) {
        Some(header) => format!("[{header}]"),
        None => text
            .get(span.start..span.end)
            .unwrap_or_default()
            .to_owned(),
    };
    let mut diagnostic = Diagnostic::error(
        "plan::duplicate-key",
        Place::File(span),
        format!("{} is given twice", code(&name)),
    )
    .label("given again");
    if let Some(first) = first_of(text, span) {
        diagnostic = diagnostic.also(Place::File(first), "first given here");
    }
    diagnostic
}

/// Where a key or table that is defined again at `span` was defined first, found by looking at the lines above: good
/// enough for a label.
fn first_of(text: &str, span: Span) -> Option<Span> {
    let key = text.get(span.start..span.end)?;
    let line_start = line_start_of(text, span.start);
    let is_header = text[line_start..].trim_start().starts_with('[');
    let header = text[line_start..].lines().next().and_then(header_of);
    let mut end = line_start;
    while end > 0 {
        let start = line_start_of(text, end - 1);
        let line = &text[start..end];
        let indent = line.len() - line.trim_start().len();
        if is_header {
            if header.is_some() && header_of(line) == header {
                let at = start + line.rfind(key)?;
                return Some(Span {
                    start: at,
                    end: at + key.len(),
                });
            }
        } else if let Some(rest) = line.trim_start().strip_prefix(key)
            && rest.trim_start().starts_with(['=', '.'])
        {
            return Some(Span {
                start: start + indent,
                end: start + indent + key.len(),
            });
        } else if line.trim_start().starts_with('[') {
            return None;
        }
        end = start;
    }
    None
}

/// What stands between the brackets of a table's header.
fn header_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let end = line.rfind(']')?;
    line.starts_with('[')
        .then(|| line[..end].trim_matches(['[', ']', ' ', '\t']))
}

/// Where values are.
#[derive(Default)]
struct Values {
    scalars: Vec<Span>,
    /// Lists and tables; of a table with a header, the header.
    lists: Vec<Span>,
}

impl Values {
    fn add_table(&mut self, table: &DeTable<'_>) {
        table.values().for_each(|value| self.add(value));
    }

    fn add(&mut self, value: &Spanned<DeValue<'_>>) {
        let span = Span {
            start: value.span().start,
            end: value.span().end,
        };
        match value.get_ref() {
            DeValue::Table(table) => {
                self.lists.push(span);
                self.add_table(table);
            }
            DeValue::Array(list) => {
                self.lists.push(span);
                list.iter().for_each(|value| self.add(value));
            }
            _ => self.scalars.push(span),
        }
    }
}
