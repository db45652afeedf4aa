//! Doubts about a file, and its faults.

/// A doubt about the contents of a file, which is read nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The code, such as `import::since-boot`.
    pub code: &'static str,
    /// The line, from 1; `None` if it is about the whole file.
    pub line: Option<u64>,
    /// The doubt, and what was done.
    pub text: String,
}

impl Doubt {
    /// Returns a doubt about one line.
    pub(crate) fn at(code: &'static str, line: u64, text: impl Into<String>) -> Self {
        Self { code, line: Some(line), text: text.into() }
    }

    /// Returns a doubt about a whole file.
    pub(crate) fn of_file(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, line: None, text: text.into() }
    }
}

/// The reason why a file is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{text}", self.place())]
pub struct Refusal {
    /// The path of the file; empty as long as only its reader knows of the reason.
    pub path: String,
    /// The line, from 1; `None` if it is about the whole file.
    pub line: Option<u64>,
    /// The reason.
    pub text: String,
}

impl Refusal {
    /// Returns a reason that one line gives.
    pub(crate) fn at(line: u64, text: impl Into<String>) -> Self {
        Self { path: String::new(), line: Some(line), text: text.into() }
    }

    /// Returns a reason that the whole file gives.
    pub(crate) fn of_file(text: impl Into<String>) -> Self {
        Self { path: String::new(), line: None, text: text.into() }
    }

    /// Sets the path of the file.
    pub(crate) fn in_file(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    fn place(&self) -> String {
        match (self.path.is_empty(), self.line) {
            (true, None) => String::new(),
            (true, Some(line)) => format!("line {line}: "),
            (false, None) => format!("{}: ", self.path),
            (false, Some(line)) => format!("{}:{line}: ", self.path),
        }
    }
}
