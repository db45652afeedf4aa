//! What is wrong with a plan, and where.

/// A range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl From<std::ops::Range<usize>> for Span {
    fn from(range: std::ops::Range<usize>) -> Self {
        Self {
            start: range.start,
            end: range.end,
        }
    }
}

/// Where a diagnostic points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A range of the plan's text.
    File(Span),
    /// A range of a `--set` argument.
    Set {
        /// Which argument, from 0.
        index: usize,
        /// The range in it.
        span: Span,
    },
    /// The plan as a whole: what is wrong is that something is absent.
    Nowhere,
}

impl Place {
    /// Returns the place of the bytes `start..end` of what is here.
    pub(crate) fn part(mut self, start: usize, end: usize) -> Self {
        if let Self::File(span) | Self::Set { span, .. } = &mut self {
            *span = (span.start + start..span.start + end).into();
        }
        self
    }

    /// Returns the line and column, from 1, in the plan's text, the column in characters; `None` when it is not there.
    pub fn position(self, text: &str) -> Option<(u32, u32)> {
        let Self::File(span) = self else {
            return None;
        };
        let before = &text[..text.floor_char_boundary(span.start)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let from_one = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
        Some((
            from_one(before.matches('\n').count()),
            from_one(before[line_start..].chars().count()),
        ))
    }

    /// Returns this place, or `other` if this one is nowhere.
    pub(crate) fn or(self, other: Self) -> Self {
        match self {
            Self::Nowhere => other,
            _ => self,
        }
    }
}

/// Whether a plan can be run in spite of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It can't.
    Error,
    /// It can, but it may not be what was meant.
    Warning,
}

/// One thing that is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// A stable name: `plan::unknown-key`.
    pub code: &'static str,
    /// Whether the plan can be run in spite of it.
    pub severity: Severity,
    /// What is wrong, in a line.
    pub message: String,
    /// Where.
    pub place: Place,
    /// What is said at the place itself; may be empty.
    pub label: String,
    /// Other places that matter, and what is said at them.
    pub secondary: Vec<(Place, String)>,
    /// Ways out.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// Returns an error at `place`, without a label and help.
    pub fn error(code: &'static str, place: Place, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            place,
            label: String::new(),
            secondary: Vec::new(),
            help: Vec::new(),
        }
    }

    /// Sets what is said at the place itself.
    pub fn label(&mut self, label: impl Into<String>) -> &mut Self {
        self.label = label.into();
        self
    }

    /// Adds another place; one that is nowhere says nothing and is left out.
    pub fn also(&mut self, place: Place, label: impl Into<String>) -> &mut Self {
        if place != Place::Nowhere {
            self.secondary.push((place, label.into()));
        }
        self
    }

    /// Adds a way out; an empty one is left out.
    pub fn help(&mut self, help: impl Into<String>) -> &mut Self {
        let help = help.into();
        if !help.is_empty() {
            self.help.push(help);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "a\nüb = 1\r\n\nz";
        let position = |byte| Place::File((byte..byte).into()).position(text);
        assert_eq!(position(0), Some((1, 1)));
        assert_eq!(position(2), Some((2, 1)));
        let after_two_bytes = position(4);
        assert_eq!(after_two_bytes, Some((2, 2)), "of one character");
        assert_eq!(position(text.len()), Some((4, 2)));
        let within_a_character = position(3);
        assert_eq!(within_a_character, Some((2, 1)));
        assert_eq!(Place::Nowhere.position(text), None);
    }
}
