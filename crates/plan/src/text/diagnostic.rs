//! Diagnostics: what is wrong with a plan, and where.

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
        Self { start: range.start, end: range.end }
    }
}

/// The place that a diagnostic points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A range of the plan's text.
    File(Span),
    /// A range of a `--set` argument.
    Set {
        /// The argument's index, from 0.
        index: usize,
        /// The range in it.
        span: Span,
    },
    /// The plan as a whole: something is missing.
    Nowhere,
}

impl Place {
    /// Returns the place of the bytes `start..end` within this one.
    pub(crate) fn part(mut self, start: usize, end: usize) -> Self {
        if let Self::File(span) | Self::Set { span, .. } = &mut self {
            *span = (span.start + start..span.start + end).into();
        }
        self
    }

    /// Returns the line and the column (in characters) in the plan's text, both from 1; `None`
    /// outside of that text.
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

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The plan cannot run.
    Error,
    /// The plan can run, but may not do what its author meant.
    Warning,
}

/// One thing that is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// A stable name: `plan::unknown-key`.
    pub code: &'static str,
    /// The severity, which decides whether the plan can run.
    pub severity: Severity,
    /// The fault, in one line.
    pub message: String,
    /// The place of the fault.
    pub place: Place,
    /// The text at the place itself; may be empty.
    pub label: String,
    /// Other places that matter, each with its text.
    pub secondary: Vec<(Place, String)>,
    /// The remedies, one line each.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// Returns an error at `place`, without a label or help.
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

    /// Sets the text at the place itself.
    pub fn label(&mut self, label: impl Into<String>) -> &mut Self {
        self.label = label.into();
        self
    }

    /// Adds another place, unless it is [`Place::Nowhere`].
    pub fn also(&mut self, place: Place, label: impl Into<String>) -> &mut Self {
        if place != Place::Nowhere {
            self.secondary.push((place, label.into()));
        }
        self
    }

    /// Adds a line of help, unless it is empty.
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
        assert_eq!(after_two_bytes, Some((2, 2)), "one character has two bytes");
        assert_eq!(position(text.len()), Some((4, 2)));
        let within_a_character = position(3);
        assert_eq!(within_a_character, Some((2, 1)));
        assert_eq!(Place::Nowhere.position(text), None);
    }
}
