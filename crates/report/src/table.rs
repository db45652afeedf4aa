//! A table as data, before anybody decides how it looks.

use std::collections::BTreeSet;

use analysis::Shade;

use crate::number::fixed;

/// What a cell's figure is worth. It is shown as a colour, and as a mark for those who see none. Legends have the marks in this
/// order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tone {
    /// Nothing to say.
    #[default]
    Plain,
    /// In the best quarter of its column's range.
    Good,
    /// In the worst quarter of its column's range.
    Bad,
    /// A ratio of one repeat, which has no interval and so no verdict.
    Unjudged,
    /// Faster than the base, as repeats show.
    Faster,
    /// Slower than the base, as repeats show.
    Slower,
    /// A cost above the base's, as repeats show.
    CostsMore,
    /// A cost below the base's, as repeats show.
    CostsLess,
    /// Repeats differ by more than what is looked for.
    Noisy,
    /// The rate that was asked for was not had.
    SlaMissed,
    /// Rounding may be more than a twentieth of it.
    Coarse,
    /// Not to be compared.
    Invalid,
    /// There is no figure because the step failed.
    Failed,
    /// There is no figure and nothing is wrong.
    Absent,
}

impl From<Shade> for Tone {
    fn from(shade: Shade) -> Self {
        match shade {
            Shade::None => Self::Plain,
            Shade::Good => Self::Good,
            Shade::Bad => Self::Bad,
            Shade::SlaMissed => Self::SlaMissed,
        }
    }
}

impl Tone {
    /// Returns the mark that says the same without colour.
    pub(crate) fn mark(self) -> &'static str {
        self.marked(false).0
    }

    /// Returns the mark and what it means; `across` says that figures of a row are compared, not those of a column.
    fn marked(self, across: bool) -> (&'static str, &'static str) {
        match self {
            Self::Good if across => ("+", "in the best quarter of the row's range"),
            Self::Bad if across => ("-", "in the worst quarter of the row's range"),
            Self::Good => ("+", "in the best quarter of the column's range"),
            Self::Bad => ("-", "in the worst quarter of the column's range"),
            Self::SlaMissed => ("*", "had less than 95% of the rate that was asked for"),
            Self::Faster => ("▲", "faster: the interval is above 1"),
            Self::Slower => ("▼", "slower: the interval is below 1"),
            Self::CostsMore => ("▲", "costs more: the interval is above 1"),
            Self::CostsLess => ("▼", "costs less: the interval is below 1"),
            Self::Noisy => (
                "?",
                "too noisy to say: the interval has 1 in it, and changes that matter",
            ),
            Self::Coarse => (
                "~",
                "more than 5% of it may be the rounding of what the engine tells",
            ),
            Self::Invalid => ("!", "invalid: not to be compared"),
            Self::Plain | Self::Unjudged | Self::Failed | Self::Absent => ("", ""),
        }
    }
}

/// One figure with what is to be known about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The figure, or the word in its place.
    pub text: String,
    /// What is written right after it: `!a`.
    pub mark: String,
    /// What it is worth.
    pub tone: Tone,
    /// How large a share of its row it is, from 0 to 20, where it is one.
    pub share: u8,
}

impl Cell {
    /// A figure of which there is nothing to say.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A figure and what it is worth.
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self::marked(text, tone.mark(), tone)
    }

    /// A figure and what it is worth, with a mark of its own.
    pub(crate) fn marked(text: impl Into<String>, mark: impl Into<String>, tone: Tone) -> Self {
        Self {
            text: text.into(),
            mark: mark.into(),
            tone,
            ..Self::default()
        }
    }

    /// A figure, if there is one, with so many decimals; else that it is not applicable.
    pub(crate) fn number(value: Option<f64>, decimals: usize) -> Self {
        value.map_or_else(Self::not_applicable, |value| {
            Self::plain(fixed(value, decimals))
        })
    }

    /// A step that was not run.
    pub(crate) fn not_run() -> Self {
        Self::toned("-", Tone::Absent)
    }

    /// A figure that does not exist for this engine, host or step.
    pub(crate) fn not_applicable() -> Self {
        Self::toned("n/a", Tone::Absent)
    }
}

/// One row.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableRow {
    /// What it is about: as many as the table has `lead` columns.
    pub lead: Vec<String>,
    /// Its figures: as many as the table has `columns`.
    pub cells: Vec<Cell>,
    /// It says what was asked for, not what was had.
    pub target: bool,
}

/// The mark of a figure many of whose operations failed.
pub(crate) const FAILURES: &str = "†";

/// Heads of the columns on the left whose values rows share that are compared with each other.
const GROUPING: [&str; 2] = ["variant", "clients"];

/// Head of the column that says which test rows are about, where these are several.
pub(crate) const TEST: &str = "test";

/// The same where steps are no tests.
pub(crate) const STEP: &str = "step";

/// A table: text on the left that says what each row is about, figures on the right.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// Unique in a report: made of letters, digits and `-`.
    pub id: String,
    /// What it shows, with the unit.
    pub title: String,
    /// Heads of the columns on the left.
    pub lead: Vec<String>,
    /// Heads of the columns of figures; they may have line breaks.
    pub columns: Vec<String>,
    /// Those of them that say nothing without the one before: ratios beside what they are of.
    pub beside: Vec<usize>,
    /// The rows.
    pub rows: Vec<TableRow>,
    /// What its short names stand for, those that don't say it themselves: `rps: reads of the disk`.
    pub names: Vec<String>,
    /// What else is to be known, one remark each.
    pub notes: Vec<String>,
    /// Figures of a row are compared with each other, not those of a column.
    pub across: bool,
}

impl Table {
    /// Returns a table that has no rows yet.
    pub(crate) fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        lead: Vec<String>,
        columns: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            lead,
            columns: columns.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, lead: Vec<String>, cells: Vec<Cell>) {
        self.rows.push(TableRow {
            lead,
            cells,
            target: false,
        });
    }

    /// Whether there is nothing in it to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.columns.is_empty()
    }

    /// Returns all cells, row by row.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.rows.iter().flat_map(|row| &row.cells)
    }

    /// Returns the meaning of every tone that occurs, marks first: `* had less than 95% of the rate that was asked for`.
    pub(crate) fn legend(&self) -> Vec<(Tone, &'static str)> {
        let mut tones: BTreeSet<Tone> = self.cells().map(|cell| cell.tone).collect();
        // A cell that is the worst of its column and also missed its rate has one colour but both marks.
        let missed = Tone::SlaMissed.mark();
        tones.extend(
            self.cells()
                .any(|cell| cell.mark.contains(missed))
                .then_some(Tone::SlaMissed),
        );
        let meanings = tones
            .into_iter()
            .map(|tone| (tone, tone.marked(self.across).1));
        meanings
            .filter(|(_, meaning)| !meaning.is_empty())
            .collect()
    }

    /// Rows that are compared with each other, those of a group together: each group with its name, such as
    /// `cached, 8 clients`, and without the columns that say so. One group without a name where there is only one.
    pub(crate) fn groups(&self) -> Vec<(String, Self)> {
        let (named, kept): (Vec<usize>, Vec<usize>) = (0..self.lead.len())
            .partition(|&column| GROUPING.contains(&self.lead[column].as_str()));
        let mut groups: Vec<(String, Self)> = Vec::new();
        for row in &self.rows {
            let name = self.group_name(row, &named);
            let at = groups.iter().position(|(known, _)| *known == name);
            let at = at.unwrap_or_else(|| {
                let lead = kept.iter().map(|&column| self.lead[column].clone());
                let mut group = Self::new("", "", lead.collect(), &self.columns);
                group.beside.clone_from(&self.beside);
                groups.push((name, group));
                groups.len() - 1
            });
            let lead = kept.iter().map(|&column| row.lead[column].clone());
            groups[at].1.rows.push(TableRow {
                lead: lead.collect(),
                ..row.clone()
            });
        }
        groups
    }

    /// Whether anything in it was measured, or failed.
    pub(crate) fn has_figures(&self) -> bool {
        self.cells().any(|cell| cell.tone != Tone::Absent)
    }

    fn group_name(&self, row: &TableRow, columns: &[usize]) -> String {
        let texts = columns.iter().filter_map(|&column| {
            let (head, text) = (&self.lead[column], &row.lead[column]);
            match head.as_str() {
                _ if text.is_empty() => None,
                "clients" if text == "1" => Some("1 client".to_string()),
                "clients" => Some(format!("{text} clients")),
                _ => Some(text.clone()),
            }
        });
        texts.collect::<Vec<_>>().join(", ")
    }

    /// Whether a row is about the same test as the one before it.
    pub(crate) fn goes_on(&self, row: usize) -> bool {
        let test = |row: usize| self.rows[row].lead.first();
        let is_of_tests = self
            .lead
            .first()
            .is_some_and(|head| head == TEST || head == STEP);
        is_of_tests && self.lead.len() > 1 && row > 0 && test(row) == test(row - 1)
    }

    /// Whether a row begins a test, where that is not the first and others go on.
    pub(crate) fn begins_test(&self, row: usize) -> bool {
        let several = (1..self.rows.len()).any(|row| self.goes_on(row));
        several && row > 0 && !self.goes_on(row)
    }

    /// Whether a row begins a group, where that is not the first.
    pub(crate) fn begins_group(&self, row: usize) -> bool {
        let is_grouping = |column: &usize| GROUPING.contains(&self.lead[*column].as_str());
        let columns: Vec<usize> = (0..self.lead.len()).filter(is_grouping).collect();
        let of = |row: &TableRow| self.group_name(row, &columns);
        row > 0 && of(&self.rows[row]) != of(&self.rows[row - 1])
    }

    /// Adds to the notes what else its marks and its ratios without a mark mean.
    pub(crate) fn explained(mut self) -> Self {
        if self.cells().any(|cell| cell.tone == Tone::Unjudged) {
            self.notes.push("one repeat: no interval".to_string());
        }
        if self.cells().any(|cell| cell.mark.contains(FAILURES)) {
            self.notes.push(format!(
                "`{FAILURES}` more than 1% of what the step is about failed"
            ));
        }
        self
    }
}

/// A name as part of an identifier; names that differ stay different.
pub(crate) fn anchor(name: &str) -> String {
    name.chars()
        .map(|letter| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' => letter.to_string(),
            '.' => "-".to_string(),
            other => format!("-{:x}-", u32::from(other)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_hold_only_what_an_identifier_may() {
        assert_eq!(anchor("l.i0"), "l-i0");
        assert_eq!(anchor("<b>"), "-3c-b-3e-");
    }
}
