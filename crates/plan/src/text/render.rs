//! Writes diagnostics as text for a terminal.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use words::{counted, mask};

use crate::text::diagnostic::{Diagnostic, Place, Severity};

/// The most diagnostics that are shown at once.
const SHOWN_MAX: usize = 20;

/// Writes diagnostics for people: sorted by position, each with the lines that it is about. If
/// there are errors, the last line counts them. `path`, `text` and `sets` are the arguments of
/// [`crate::parse`]. Passwords in URLs are masked.
pub fn render(
    diagnostics: &[Diagnostic],
    path: &str,
    text: &str,
    sets: &[String],
    color: bool,
) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let mut sources = vec![Source { path: Some(path), text: mask(text) }];
    for set in sets {
        sources.push(Source { path: None, text: format!("{SET}{}", mask(set)) });
    }

    // Errors go before warnings where not all can be shown.
    let mut shown: Vec<&Diagnostic> = diagnostics.iter().collect();
    shown.sort_by_key(|diagnostic| (diagnostic.severity == Severity::Warning, diagnostic.place));
    let left_out = shown.len().saturating_sub(SHOWN_MAX);
    shown.truncate(SHOWN_MAX);
    shown.sort_by_key(|diagnostic| diagnostic.place);

    let mut out = String::new();
    for diagnostic in shown {
        out.push_str(&renderer.render(&[group(&sources, diagnostic)]));
        out.push_str("\n\n");
    }
    if left_out > 0 {
        out.push_str(&format!("... and {left_out} more\n\n"));
    }

    match summary(diagnostics, path) {
        Some(summary) => {
            out.push_str(
                &renderer.render(&[Group::with_title(Level::ERROR.primary_title(summary))]),
            );
            out.push('\n');
        }
        // The empty line only separates diagnostics.
        None => out.truncate(out.trim_end().len() + usize::from(!out.is_empty())),
    }
    out
}

const SET: &str = "--set ";

/// Counts errors and warnings; `None` without errors.
fn summary(diagnostics: &[Diagnostic], path: &str) -> Option<String> {
    let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
    let errors = diagnostics.iter().filter(is_error).count();

    let warnings = match diagnostics.len() - errors {
        _ if errors == 0 => return None,
        0 => String::new(),
        warnings => format!(" and {}", counted(warnings, "warning")),
    };

    let is_set = |diagnostic: &Diagnostic| matches!(diagnostic.place, Place::Set { .. });
    let place = if diagnostics.iter().all(is_set) { "--set" } else { path };
    let errors = counted(errors, "error");

    Some(format!("{errors}{warnings} in `{place}`; nothing was run"))
}

/// The text that places refer to: the plan, or one argument as it was typed, with its flag.
struct Source<'a> {
    path: Option<&'a str>,
    text: String,
}

/// Returns the index of a place's source and the range in it.
fn locate(sources: &[Source<'_>], place: Place) -> Option<(usize, Range<usize>)> {
    let (at, span, shift) = match place {
        Place::File(span) => (0, span, 0),
        Place::Set { index, span } => (index + 1, span, SET.len()),
        Place::Nowhere => return None,
    };

    let text = &sources.get(at)?.text;
    let start = text.floor_char_boundary(span.start + shift);
    let end = text.ceil_char_boundary(span.end + shift).max(start);
    Some((at, start..end))
}

/// A range of a source's text with its label.
struct LabeledRange<'s> {
    source: usize,
    range: Range<usize>,
    label: &'s str,
    kind: AnnotationKind,
}

/// Makes the parts of one diagnostic: its title, the lines of each source, and its help.
fn group<'s>(sources: &'s [Source<'s>], diagnostic: &'s Diagnostic) -> Group<'s> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code);

    let mut elements: Vec<Element<'s>> = Vec::new();
    if diagnostic.place == Place::Nowhere {
        elements.extend(sources[0].path.map(|path| Origin::path(path).into()));
    }

    let mut labels = labels(sources, diagnostic);
    let mut notes = Vec::new();

    // All labels in one source are shown together.
    while let Some(first) = labels.first() {
        let (source, label) = (first.source, first.label);
        let of_source: Vec<LabeledRange<'s>> =
            labels.extract_if(.., |other| other.source == source).collect();

        let Source { path, text } = &sources[source];
        if path.is_none() && !elements.is_empty() {
            notes.push(Level::NOTE.message(format!("{label}: `{text}`")).into());
            continue;
        }

        let annotations = of_source.into_iter().map(|labeled| {
            let label = Some(labeled.label).filter(|label| !label.is_empty());
            labeled.kind.span(labeled.range).label(label)
        });
        let snippet = Snippet::source(text.as_str()).path(*path).line_numbering(path.is_some());
        elements.push(snippet.annotations(annotations).into());
    }
    elements.extend(notes);

    for help in &diagnostic.help {
        elements.push(Level::HELP.message(help.as_str()).into());
    }
    Group::with_title(title).elements(elements)
}

/// Returns the labels of a diagnostic that have a place, its own first.
fn labels<'s>(sources: &[Source<'_>], diagnostic: &'s Diagnostic) -> Vec<LabeledRange<'s>> {
    let own = (diagnostic.place, &diagnostic.label, AnnotationKind::Primary);
    let mut places = vec![own];
    for (place, label) in &diagnostic.secondary {
        places.push((*place, label, AnnotationKind::Context));
    }

    let mut labels = Vec::new();
    for (place, label, kind) in places {
        if let Some((source, range)) = locate(sources, place) {
            labels.push(LabeledRange { source, range, label, kind });
        }
    }
    labels
}
