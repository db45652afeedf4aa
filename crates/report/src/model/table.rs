//! A table as data, independent of its format.

use std::collections::BTreeSet;

use analysis::Shade;

use crate::model::number::fixed;

/// The meaning of a cell's figure, shown as a color and as a mark. Legends list the marks in this
/// order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tone {
    /// No special meaning.
    #[default]
    Plain,
    /// In the best quarter of its column's range.
    Good,
    /// In the worst quarter of its column's range.
    Bad,
    /// A ratio of one repeat, which has no interval and so no verdict.
    Unjudged,
    /// Faster than the base; repeats show it.
    Faster,
    /// Slower than the base; repeats show it.
    Slower,
    /// A cost above the base's; repeats show it.
    CostsMore,
    /// A cost below the base's; repeats show it.
    CostsLess,
    /// A function or a state that takes more time than in the base; the samples show it.
    TimeGrew,
    /// A function or a state that takes less time than in the base; the samples show it.
    TimeShrank,
    /// More work than in the base; the exact cells show it.
    WorkGrew,
    /// Less work than in the base; the exact cells show it.
    WorkShrank,
    /// Repeats differ by more than the effect.
    Noisy,
    /// The requested rate was missed.
    SlaMissed,
    /// More than 5% of the figure may be rounding.
    Coarse,
    /// Must not be compared.
    Invalid,
    /// There is no figure because the step failed.
    Failed,
    /// There is no figure, for no bad reason.
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
    pub(crate) fn mark(self) -> &'static str {
        self.marked(false).0
    }

    /// Returns the mark and its meaning; `across` if the figures of a row are compared, not those
    /// of a column.
    fn marked(self, across: bool) -> (&'static str, &'static str) {
        match self {
            Self::Good if across => ("+", "in the best quarter of the row's range"),
            Self::Bad if across => ("-", "in the worst quarter of the row's range"),
            Self::Good => ("+", "in the best quarter of the column's range"),
            Self::Bad => ("-", "in the worst quarter of the column's range"),
            Self::SlaMissed => ("*", "less than 95% of the requested rate"),
            Self::Faster => ("▲", "faster: the interval is above 1"),
            Self::Slower => ("▼", "slower: the interval is below 1"),
            Self::CostsMore => ("▲", "costs more: the interval is above 1"),
            Self::CostsLess => ("▼", "costs less: the interval is below 1"),
            Self::TimeGrew => ("▲", "costs more: the interval is above 0"),
            Self::TimeShrank => ("▼", "costs less: the interval is below 0"),
            Self::WorkGrew => {
                ("▲", "more work: the change exceeds what the cells' differences explain")
            }
            Self::WorkShrank => {
                ("▼", "less work: the change exceeds what the cells' differences explain")
            }
            Self::Noisy => {
                ("?", "too noisy to say: the interval includes 1, and changes that matter")
            }
            Self::Coarse => ("~", "more than 5% of it may be rounding by the engine"),
            Self::Invalid => ("!", "invalid: not compared"),
            Self::Plain | Self::Unjudged | Self::Failed | Self::Absent => ("", ""),
        }
    }
}

/// A figure with its mark and meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The figure, or the word instead of it.
    pub text: String,
    /// The text right after the figure: `!a`.
    pub mark: String,
    pub tone: Tone,
    /// The figure's share of the row from 0 to 20, for shading.
    pub share: u8,
}

impl Cell {
    /// Returns a figure without a special meaning.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns a figure with a meaning and its mark.
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self::marked(text, tone.mark(), tone)
    }

    /// Returns a figure with a meaning and its own mark.
    pub(crate) fn marked(text: impl Into<String>, mark: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), mark: mark.into(), tone, ..Self::default() }
    }

    /// Returns a figure with this number of decimals, or `n/a`.
    pub(crate) fn number(value: Option<f64>, decimals: usize) -> Self {
        value.map_or_else(Self::not_applicable, |value| Self::plain(fixed(value, decimals)))
    }

    /// Returns the cell of a step that was not run.
    pub(crate) fn not_run() -> Self {
        Self::toned("-", Tone::Absent)
    }

    /// Returns the cell of a figure that does not exist for this engine, host or step.
    pub(crate) fn not_applicable() -> Self {
        Self::toned("n/a", Tone::Absent)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TableRow {
    /// The texts on the left, one for each `lead` column.
    pub lead: Vec<String>,
    /// The figures, one for each of the `columns`.
    pub cells: Vec<Cell>,
    /// True if the row shows the requested rate.
    pub target: bool,
}

/// The mark of a figure with many failed operations.
pub(crate) const FAILURES: &str = "†";

/// The columns on the left that group rows: rows are compared with each other within a group.
const GROUPING: [&str; 2] = ["variant", "clients"];

/// The header of the column of tests.
pub(crate) const TEST: &str = "test";

/// The header of the column of steps.
pub(crate) const STEP: &str = "step";

/// A table: texts on the left that identify each row, figures on the right.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// Unique in a report: made of letters, digits and `-`.
    pub id: String,
    /// The title, with the unit.
    pub title: String,
    /// Heads of the columns on the left.
    pub lead: Vec<String>,
    /// Heads of the columns of figures; they may contain line breaks.
    pub columns: Vec<String>,
    /// The target of each column, if several columns may be the repeats of a target.
    pub column_targets: Vec<String>,
    /// The columns that belong to the one before: ratios next to a figure.
    pub beside: Vec<usize>,
    pub rows: Vec<TableRow>,
    /// Explanations of short names: `rps: disk reads`.
    pub names: Vec<String>,
    /// Remarks below the table.
    pub notes: Vec<String>,
    /// True if the figures of a row are compared with each other, not those of a column.
    pub across: bool,
}

/// The names of a table of a step.
#[derive(Clone, Copy)]
pub(crate) struct TableHeading<'t> {
    /// The identifier without the step.
    pub id: &'t str,
    pub title: &'t str,
}

impl Table {
    /// Returns a table without rows.
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

    pub(crate) fn push(&mut self, lead: Vec<String>, cells: Vec<Cell>) {
        self.rows.push(TableRow { lead, cells, target: false });
    }

    /// Removes a column of figures.
    pub(crate) fn remove_column(&mut self, removed: usize) {
        self.columns.remove(removed);
        if removed < self.column_targets.len() {
            self.column_targets.remove(removed);
        }
        for row in &mut self.rows {
            row.cells.remove(removed);
        }

        self.beside.retain(|column| *column != removed);
        for column in &mut self.beside {
            *column -= usize::from(*column > removed);
        }
    }

    /// Returns true if there is nothing to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.columns.is_empty()
    }

    /// Returns all cells, row by row.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.rows.iter().flat_map(|row| &row.cells)
    }

    /// Returns the meaning of every tone in the table, marks first: `* less than 95% of the
    /// requested rate`.
    pub(crate) fn legend(&self) -> Vec<(Tone, &'static str)> {
        let mut tones: BTreeSet<Tone> = self.cells().map(|cell| cell.tone).collect();
        // A cell may be the worst of its column and also miss its rate: then it has one color but
        // both marks.
        let missed = Tone::SlaMissed;
        if self.cells().any(|cell| cell.mark.contains(missed.mark())) {
            tones.insert(missed);
        }

        tones
            .into_iter()
            .map(|tone| (tone, tone.marked(self.across).1))
            .filter(|(_, meaning)| !meaning.is_empty())
            .collect()
    }

    /// Splits the rows into groups of rows that are compared with each other. Each group has a
    /// name, such as `cached, 8 clients`, and lacks the columns in it. A single group has an
    /// empty name.
    pub(crate) fn groups(&self) -> Vec<(String, Self)> {
        let (grouping, kept): (Vec<usize>, Vec<usize>) = (0..self.lead.len())
            .partition(|&column| GROUPING.contains(&self.lead[column].as_str()));
        let kept_of = |texts: &[String]| kept.iter().map(|&column| texts[column].clone()).collect();

        let mut groups: Vec<(String, Self)> = Vec::new();
        for row in &self.rows {
            let name = self.group_name(row, &grouping);
            let known = groups.iter().position(|(known, _)| *known == name);

            let at = known.unwrap_or_else(|| {
                let mut group = Self::new("", "", kept_of(&self.lead), &self.columns);
                group.beside.clone_from(&self.beside);
                groups.push((name, group));
                groups.len() - 1
            });
            groups[at].1.rows.push(TableRow { lead: kept_of(&row.lead), ..row.clone() });
        }
        groups
    }

    /// Returns true if anything was measured or failed.
    pub(crate) fn has_figures(&self) -> bool {
        self.cells().any(|cell| cell.tone != Tone::Absent)
    }

    fn group_name(&self, row: &TableRow, columns: &[usize]) -> String {
        let mut texts = Vec::new();
        for &column in columns {
            let text = &row.lead[column];
            match self.lead[column].as_str() {
                _ if text.is_empty() => {}
                "clients" if text == "1" => texts.push("1 client".to_string()),
                "clients" => texts.push(format!("{text} clients")),
                _ => texts.push(text.clone()),
            }
        }

        texts.join(", ")
    }

    /// Returns true if a row is about the same test as the row above.
    pub(crate) fn continues_test(&self, row: usize) -> bool {
        let is_of_tests = self.lead.first().is_some_and(|head| head == TEST || head == STEP);
        // Without another column on the left, each row is a test of its own.
        if !is_of_tests || self.lead.len() < 2 || row == 0 {
            return false;
        }
        self.rows[row].lead.first() == self.rows[row - 1].lead.first()
    }

    /// Returns true if a row is the first of a test, except in the first row, and if tests have
    /// several rows.
    pub(crate) fn begins_test(&self, row: usize) -> bool {
        let has_several_rows = (1..self.rows.len()).any(|row| self.continues_test(row));
        has_several_rows && row > 0 && !self.continues_test(row)
    }

    /// Returns true if a row is the first of a group, except in the first row.
    pub(crate) fn begins_group(&self, row: usize) -> bool {
        if row == 0 {
            return false;
        }
        let is_grouping = |column: &usize| GROUPING.contains(&self.lead[*column].as_str());
        let columns: Vec<usize> = (0..self.lead.len()).filter(is_grouping).collect();
        let before = self.group_name(&self.rows[row - 1], &columns);
        self.group_name(&self.rows[row], &columns) != before
    }

    /// Adds notes about marks and about ratios without an interval.
    pub(crate) fn explained(mut self) -> Self {
        if self.cells().any(|cell| cell.tone == Tone::Unjudged) {
            self.notes.push("one repeat: no interval".to_string());
        }
        if self.cells().any(|cell| cell.mark.contains(FAILURES)) {
            self.notes
                .push(format!("`{FAILURES}` more than 1% of the step's main operations failed"));
        }
        self
    }
}

/// Returns a name as part of an identifier; different names stay different.
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
