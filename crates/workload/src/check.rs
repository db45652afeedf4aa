//! Comparisons of what an engine holds with what a workload knows that it did.

use engine::{IndexRows, Table};

/// One comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was compared: `rows of pi1`.
    pub what: String,
    /// What the workload expects: a number, or a bound such as `>= 17`.
    pub expected: String,
    /// What the engine says.
    pub found: String,
    /// Whether they agree; also where they were not compared.
    pub holds: bool,
    /// Why they were not compared, where that is so: then nothing was found.
    pub left_out: Option<String>,
}

impl Check {
    pub(crate) fn new(
        what: impl Into<String>,
        expected: impl ToString,
        found: impl ToString,
        holds: bool,
    ) -> Self {
        Self {
            what: what.into(),
            expected: expected.to_string(),
            found: found.to_string(),
            holds,
            left_out: None,
        }
    }

    pub(crate) fn equal<T: PartialEq + ToString>(
        what: impl Into<String>,
        expected: T,
        found: T,
    ) -> Self {
        let holds = expected == found;
        Self::new(what, expected, found, holds)
    }

    /// Returns what could not be compared, and why.
    pub(crate) fn left_out(what: String, why: impl Into<String>) -> Self {
        Self {
            left_out: Some(why.into()),
            ..Self::new(what, "", "", true)
        }
    }

    /// The rows of `table` by way of its index `index`.
    pub(crate) fn of_index(table: &Table, index: &str, expected: u64, found: &IndexRows) -> Self {
        let what = format!("rows in index {index} of {}", table.name);
        match found {
            IndexRows::Counted(rows) => Self::equal(what, expected, *rows),
            IndexRows::NoIndex => Self::new(what, expected, "no such index", false),
            IndexRows::NotCounted(why) => Self::left_out(what, why),
        }
    }

    /// So many were compared and so many of them are wrong, the `first` in this way.
    pub(crate) fn none_wrong(
        what: String,
        compared: u64,
        wrong: u64,
        first: Option<String>,
    ) -> Self {
        let found = match first {
            None => format!("0 wrong; {compared} compared"),
            Some(first) => format!("{wrong} wrong; {compared} compared; the first: {first}"),
        };
        Self::new(what, "0 wrong", found, wrong == 0)
    }
}
