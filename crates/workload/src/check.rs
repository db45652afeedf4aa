//! Comparisons of what an engine holds with what the workload did.

use engine::{IndexRows, Table};
use words::Check;

/// Compares the number of rows of `table` in its index `index`.
pub(crate) fn index_check(table: &Table, index: &str, expected: u64, found: &IndexRows) -> Check {
    let what = format!("rows in index {index} of {}", table.name);
    match found {
        IndexRows::Counted(rows) => Check::equal(what, expected, *rows),
        IndexRows::NoIndex => Check::new(what, expected, "no such index", false),
        IndexRows::NotCounted(why) => Check::left_out(what, why),
    }
}

/// Counts rows, entries or values that are compared one by one.
#[derive(Debug, Default)]
pub(crate) struct ValueCheck {
    pub(crate) count: u64,
    pub(crate) wrong: u64,
    /// The fault of the first wrong one.
    pub(crate) first: Option<String>,
}

impl ValueCheck {
    /// Counts one, and what is wrong with it, if anything.
    pub(crate) fn add(&mut self, wrong: Option<String>) {
        self.count += 1;
        self.wrong += u64::from(wrong.is_some());
        self.first = self.first.take().or(wrong);
    }

    /// Returns the check that none of them is wrong.
    pub(crate) fn check(self, what: impl Into<String>) -> Check {
        let Self { count, wrong, first } = self;
        let found = match first {
            None => format!("0 wrong; {count} compared"),
            Some(first) => format!("{wrong} wrong; {count} compared; the first: {first}"),
        };
        Check::new(what, "0 wrong", found, wrong == 0)
    }
}
