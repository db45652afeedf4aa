//! Diagnostics as text for a terminal.

use annotate_snippets::{
    Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet,
};
use words::{counted, mask};

use crate::diagnostic::{Diagnostic, Place, Severity, Span};
use crate::wording::code;

/// More than this many help nobody at once.
const MOST: usize = 20;

/// Writes diagnostics as people read them, sorted by position, with the lines that they are about, and after errors a
/// line that says how many there are. `path`, `text` and `sets` are what [`crate::parse`] was given. Passwords of URLs
/// are blotted out.
pub fn render(
    diagnostics: &[Diagnostic],
    path: &str,
    text: &str,
    sets: &[String],
    colour: bool,
) -> String {
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let sources = Sources {
        path,
        text: mask(text),
        sets: sets
            .iter()
            .map(|set| format!("{SET}{}", mask(set)))
            .collect(),
    };

    // Errors go before warnings where not all can be shown.
    let mut shown: Vec<&Diagnostic> = diagnostics.iter().collect();
    shown.sort_by_key(|diagnostic| (diagnostic.severity == Severity::Warning, diagnostic.place));
    let left_out = shown.len().saturating_sub(MOST);
    shown.truncate(MOST);
    shown.sort_by_key(|diagnostic| diagnostic.place);

    let mut out = String::new();
    for diagnostic in shown {
        out.push_str(&renderer.render(&[sources.group(diagnostic)]));
        out.push_str("\n\n");
    }
    if left_out > 0 {
        out.push_str(&format!("and {left_out} more\n\n"));
    }
    match summary(diagnostics, path) {
        Some(summary) => {
            out.push_str(
                &renderer.render(&[Group::with_title(Level::ERROR.primary_title(summary))]),
            );
            out.push('\n');
        }
        // The empty line stands between diagnostics.
        None => out.truncate(out.trim_end().len() + usize::from(!out.is_empty())),
    }
    out
}

const SET: &str = "--set ";

fn summary(diagnostics: &[Diagnostic], path: &str) -> Option<String> {
    let errors = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .count();
    let warnings = diagnostics.len() - errors;
    let is_set = |diagnostic: &Diagnostic| matches!(diagnostic.place, Place::Set { .. });
    let place = if diagnostics.iter().all(is_set) {
        "`--set`".to_owned()
    } else {
        format!("`{path}`")
    };
    match (errors, warnings) {
        (0, _) => None,
        (_, 0) => Some(format!(
            "{} in {place}; nothing was run",
            counted(errors, "error")
        )),
        _ => {
            let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
            Some(format!(
                "{errors} and {warnings} in {place}; nothing was run"
            ))
        }
    }
}

/// What places are ranges of.
struct Sources<'a> {
    path: &'a str,
    text: String,
    /// As they were typed, with the flag.
    sets: Vec<String>,
}

impl Sources<'_> {
    fn group<'s>(&'s self, diagnostic: &'s Diagnostic) -> Group<'s> {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level
            .primary_title(diagnostic.message.as_str())
            .id(diagnostic.code);
        let mut elements: Vec<Element<'s>> = Vec::new();
        match diagnostic.place {
            Place::Nowhere => elements.push(Origin::path(self.path).into()),
            place => {
                let label = Some(diagnostic.label.as_str()).filter(|label| !label.is_empty());
                let primary = AnnotationKind::Primary.span(self.span(place)).label(label);
                let beside = self.others(diagnostic, |other| same_source(place, other));
                elements.push(
                    self.snippet(place)
                        .annotation(primary)
                        .annotations(beside)
                        .into(),
                );
            }
        }
        // Places elsewhere stand below: those in the file with their lines, arguments as they are.
        let elsewhere = diagnostic
            .secondary
            .iter()
            .filter(|(place, _)| !same_source(diagnostic.place, *place));
        let mut notes = Vec::new();
        let mut is_file_shown = false;
        for (place, label) in elsewhere {
            match place {
                Place::Set { index, .. } => {
                    let argument = self.sets.get(*index).map_or("", String::as_str);
                    notes.push(
                        Level::NOTE
                            .message(format!("{label}: {}", code(argument)))
                            .into(),
                    );
                }
                Place::File(_) if !is_file_shown => {
                    is_file_shown = true;
                    let others = self.others(diagnostic, |other| same_source(*place, other));
                    elements.push(self.snippet(*place).annotations(others).into());
                }
                Place::File(_) | Place::Nowhere => {}
            }
        }
        elements.extend(notes);
        elements.extend(
            diagnostic
                .help
                .iter()
                .map(|help| Level::HELP.message(help.as_str()).into()),
        );
        Group::with_title(title).elements(elements)
    }

    fn others<'s>(
        &'s self,
        diagnostic: &'s Diagnostic,
        is_wanted: impl Fn(Place) -> bool,
    ) -> Vec<Annotation<'s>> {
        let wanted = diagnostic
            .secondary
            .iter()
            .filter(|(place, _)| is_wanted(*place));
        wanted
            .map(|(place, label)| {
                AnnotationKind::Context
                    .span(self.span(*place))
                    .label(label.as_str())
            })
            .collect()
    }

    fn snippet(&self, place: Place) -> Snippet<'_, Annotation<'_>> {
        match place {
            Place::Set { index, .. } => {
                Snippet::source(self.sets.get(index).map_or("", String::as_str))
                    .line_numbering(false)
            }
            Place::File(_) | Place::Nowhere => Snippet::source(self.text.as_str()).path(self.path),
        }
    }

    /// A range of what [`Sources::snippet`] shows.
    fn span(&self, place: Place) -> std::ops::Range<usize> {
        let (text, span, shift) = match place {
            Place::Set { index, span } => (
                self.sets.get(index).map_or("", String::as_str),
                span,
                SET.len(),
            ),
            Place::File(span) => (self.text.as_str(), span, 0),
            Place::Nowhere => ("", Span { start: 0, end: 0 }, 0),
        };
        let start = text.floor_char_boundary(span.start + shift);
        let end = text.ceil_char_boundary(span.end + shift).max(start);
        start..end
    }
}

fn same_source(one: Place, other: Place) -> bool {
    match (one, other) {
        (Place::File(_), Place::File(_)) | (Place::Nowhere, Place::Nowhere) => true,
        (Place::Set { index: one, .. }, Place::Set { index: other, .. }) => one == other,
        _ => false,
    }
}
