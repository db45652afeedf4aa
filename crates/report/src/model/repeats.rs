//! Folds the rows or columns of repeats in a table: of each target its median, with the spread.

use crate::model::number::fixed;
use crate::model::table::{Cell, Table, TableRow, Tone};

/// The column headers that tell repeats of a target apart.
const OF_REPEATS: [&str; 2] = ["repeat", "run"];

/// The repeats of one target in a table.
pub(crate) struct RepeatedRows<'t> {
    /// The texts on the left, with the number of repeats that have figures instead of a repeat.
    pub lead: Vec<String>,
    /// The medians, one for each column.
    pub medians: Vec<Median>,
    pub rows: Vec<&'t TableRow>,
    /// The number of the first of these rows in the table.
    pub first_row: usize,
}

/// The middle one of some figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Median {
    pub cell: Cell,
    pub value: Option<f64>,
    /// Half of the range of the figures, in percent of the median; `None` with one figure.
    pub spread_pct: Option<f64>,
}

impl Median {
    /// Returns half of the range of the figures: `±9%`, or nothing if it is too small to be seen.
    pub(crate) fn spread_text(&self) -> String {
        match self.spread_pct {
            Some(percent) if percent >= 1000.0 => "\u{b1}>999%".to_owned(),
            Some(percent) if percent >= 0.5 => format!("\u{b1}{percent:.0}%"),
            _ => String::new(),
        }
    }

    /// Returns the median with its spread after the mark.
    fn into_cell(self) -> Cell {
        let spread = self.spread_text();
        let mut cell = self.cell;
        if !spread.is_empty() {
            cell.mark += &format!(" {spread}");
        }
        cell
    }
}

/// Returns a table with one row, or one column, for each target: the medians of its repeats with
/// their spread. `None` if no target has several.
pub(crate) fn folded(table: &Table) -> Option<Table> {
    if let Some(groups) = by_target(table) {
        return Some(folded_rows(table, groups));
    }
    columns_by_target(table).map(|groups| folded_columns(table, &groups))
}

fn folded_rows(table: &Table, groups: Vec<RepeatedRows<'_>>) -> Table {
    let mut folded = Table { rows: Vec::new(), ..table.clone() };
    for group in groups {
        // A row alone is not a median.
        let cells = match group.rows.as_slice() {
            [one] => one.cells.clone(),
            _ => group.medians.into_iter().map(Median::into_cell).collect(),
        };
        folded.rows.push(TableRow { lead: group.lead, cells, target: group.rows[0].target });
    }
    let mut said = note(&folded);

    // A column whose texts are the same everywhere says nothing that the note does not say.
    for at in (0..table.lead.len()).rev().filter(|at| is_of_repeats(table, *at)) {
        let mut texts = folded.rows.iter().map(|row| &row.lead[at]);
        let first = texts.next().cloned().unwrap_or_default();
        if texts.all(|text| *text == first) {
            folded.lead.remove(at);
            folded.rows.iter_mut().for_each(|row| drop(row.lead.remove(at)));
            if !first.is_empty() {
                let noun = if first.ends_with("repeats") { "" } else { " repeats" };
                said = format!("{first}{noun}; {said}");
            }
        }
    }
    folded.names.insert(0, said);
    folded
}

fn folded_columns(table: &Table, groups: &[RepeatedColumns<'_>]) -> Table {
    let mut folded = Table {
        columns: Vec::new(),
        column_targets: Vec::new(),
        beside: Vec::new(),
        ..table.clone()
    };
    for group in groups {
        folded.columns.push(match group.columns.as_slice() {
            [one] => table.columns[*one].clone(),
            _ => group.head(table),
        });
    }

    for (row, of_table) in folded.rows.iter_mut().zip(&table.rows) {
        let of_group = |group: &RepeatedColumns<'_>| match group.columns.as_slice() {
            [one] => of_table.cells.get(*one).cloned().unwrap_or_default(),
            _ => group.median(of_table).into_cell(),
        };
        row.cells = groups.iter().map(of_group).collect();
    }
    let said = note(&folded);
    folded.names.insert(0, said);
    folded
}

/// Returns what the medians of a table are.
fn note(table: &Table) -> String {
    let has_spread = table.cells().any(|cell| cell.mark.contains('\u{b1}'));
    let spread = if has_spread { "`\u{b1}` half of their range; " } else { "" };
    format!("{spread}`assay show --each` shows each repeat")
}

/// Returns the rows of a table by target; `None` if no target has several.
pub(crate) fn by_target(table: &Table) -> Option<Vec<RepeatedRows<'_>>> {
    let first = (0..table.lead.len()).find(|at| is_of_repeats(table, *at))?;

    let mut groups: Vec<(Vec<String>, Vec<usize>)> = Vec::new();
    for (number, row) in table.rows.iter().enumerate() {
        let key = key_of(table, row);
        let of_target = groups.iter().position(|(known, numbers)| {
            *known == key && table.rows[numbers[0]].target == row.target
        });
        match of_target {
            Some(at) => groups[at].1.push(number),
            None => groups.push((key, vec![number])),
        }
    }
    if groups.len() == table.rows.len() {
        return None;
    }

    let mut folded = Vec::new();
    for (_, numbers) in groups {
        let rows: Vec<&TableRow> = numbers.iter().map(|number| &table.rows[*number]).collect();
        let mut lead = rows[0].lead.clone();
        if rows.len() > 1 {
            for at in (0..lead.len()).filter(|at| is_of_repeats(table, *at)) {
                lead[at] = if at == first {
                    count_text(columns_of(&rows), rows.len())
                } else {
                    String::new()
                };
            }
        }
        folded.push(RepeatedRows { lead, medians: medians(&rows), rows, first_row: numbers[0] });
    }
    Some(folded)
}

/// Returns whether a lead column tells repeats apart.
fn is_of_repeats(table: &Table, column: usize) -> bool {
    OF_REPEATS.contains(&table.lead[column].as_str())
}

/// Returns the lead texts that all repeats of a row share.
fn key_of(table: &Table, row: &TableRow) -> Vec<String> {
    let mut key = Vec::new();
    for (column, text) in row.lead.iter().enumerate() {
        if !is_of_repeats(table, column) {
            key.push(text.clone());
        }
    }
    key
}

/// The columns of one target in a table.
pub(crate) struct RepeatedColumns<'t> {
    pub target: &'t str,
    /// The indexes of the columns of its repeats.
    pub columns: Vec<usize>,
}

impl RepeatedColumns<'_> {
    /// Returns the median of the repeats in a row.
    pub(crate) fn median(&self, row: &TableRow) -> Median {
        median(&self.cells(row))
    }

    /// Returns the header of the column with the medians: `a.x`, then `median of 3`.
    pub(crate) fn head(&self, table: &Table) -> String {
        let of_rows = table.rows.iter().map(|row| self.cells(row)).collect();
        format!("{}\n{}", self.target, count_text(of_rows, self.columns.len()))
    }

    /// Returns the cells of the repeats in a row.
    fn cells<'r>(&self, row: &'r TableRow) -> Vec<&'r Cell> {
        self.columns.iter().filter_map(|at| row.cells.get(*at)).collect()
    }
}

/// Returns the columns of a table by target; `None` if no target has several.
pub(crate) fn columns_by_target(table: &Table) -> Option<Vec<RepeatedColumns<'_>>> {
    let mut groups: Vec<RepeatedColumns<'_>> = Vec::new();
    for (at, target) in table.column_targets.iter().enumerate() {
        match groups.iter_mut().find(|group| group.target == target) {
            Some(group) => group.columns.push(at),
            None => groups.push(RepeatedColumns { target, columns: vec![at] }),
        }
    }
    (groups.len() < table.column_targets.len()).then_some(groups)
}

/// Returns the cells of each column.
fn columns_of<'r>(rows: &[&'r TableRow]) -> Vec<Vec<&'r Cell>> {
    let count = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    (0..count).map(|at| rows.iter().filter_map(|row| row.cells.get(at)).collect()).collect()
}

fn medians(rows: &[&TableRow]) -> Vec<Median> {
    columns_of(rows).iter().map(|cells| median(cells)).collect()
}

/// Returns the number of repeats that have figures: `median of 3`, `1 of 3 repeats`, `none of 3
/// repeats`, or `median of 2 to 3` where some figures have fewer. Figures that no repeat has do not
/// count.
fn count_text(figures: Vec<Vec<&Cell>>, repeat_count: usize) -> String {
    let mut figure_counts = Vec::new();
    for cells in figures {
        let count = cells.into_iter().filter(|cell| counts(cell)).count();
        if count > 0 {
            figure_counts.push(count);
        }
    }

    match (figure_counts.iter().min(), figure_counts.iter().max()) {
        (Some(least), Some(most)) if least < most => format!("median of {least} to {most}"),
        (_, Some(1)) => format!("1 of {repeat_count} repeats"),
        (_, Some(most)) => format!("median of {most}"),
        (_, None) => format!("none of {repeat_count} repeats"),
    }
}

/// Returns the median of the cells that count; of an even number of them, the mean of the middle two.
fn median(cells: &[&Cell]) -> Median {
    let mut figures: Vec<(f64, &Cell)> = Vec::new();
    for cell in cells.iter().filter(|cell| counts(cell)) {
        match number(&cell.text) {
            Some(value) => figures.push((value, cell)),
            // Empty cells are zeros that tables leave out.
            None if cell.text.is_empty() => {}
            None => return without_number(cells),
        }
    }
    if figures.is_empty() {
        return without_number(cells);
    }

    figures.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let (least, most) = (figures[0].0, figures[figures.len() - 1].0);
    let (lower, lower_cell) = figures[(figures.len() - 1) / 2];
    let (upper, upper_cell) = figures[figures.len() / 2];
    let value = f64::midpoint(lower, upper);
    let spread = (most - least) / 2.0 / value.abs();

    // The best of the repeats of one target is no merit.
    let is_missed = figures.iter().any(|(_, cell)| cell.tone == Tone::SlaMissed);
    let tone = if is_missed { Tone::SlaMissed } else { Tone::Plain };

    Median {
        cell: Cell {
            text: middle_text(value, &lower_cell.text, &upper_cell.text),
            mark: tone.mark().to_owned(),
            tone,
            share: lower_cell.share.midpoint(upper_cell.share),
        },
        value: Some(value),
        spread_pct: (figures.len() > 1 && spread.is_finite()).then_some(100.0 * spread),
    }
}

/// Formats the middle of two figures as they are, with the decimals of the one that has more.
fn middle_text(middle: f64, lower: &str, upper: &str) -> String {
    if lower == upper {
        return lower.to_owned();
    }
    fixed(middle, decimals(lower).max(decimals(upper)))
}

fn decimals(text: &str) -> usize {
    text.split_once('.').map_or(0, |(_, decimals)| decimals.len())
}

/// Returns whether a cell counts in a median.
fn counts(cell: &Cell) -> bool {
    !matches!(cell.tone, Tone::Invalid | Tone::Failed | Tone::Absent)
}

/// Returns the text that all cells share. Reasons why there are no figures are listed, each once:
/// `failed, missing`.
fn without_number(cells: &[&Cell]) -> Median {
    let Some(first) = cells.first() else {
        return Median::default();
    };

    // Texts such as `59.9 s` have no order, so they have no median.
    let is_shared = cells.iter().all(|cell| cell.text == first.text);
    if !is_shared && cells.iter().any(|cell| counts(cell)) {
        return Median::default();
    }

    let mut texts: Vec<&str> = Vec::new();
    for cell in cells {
        if !cell.text.is_empty() && !texts.contains(&cell.text.as_str()) {
            texts.push(&cell.text);
        }
    }
    Median { cell: Cell { text: texts.join(", "), ..(*first).clone() }, ..Median::default() }
}

/// Parses a figure of a table without a unit: `12,345.6`. A bound, such as `<0.001`, counts as its
/// figure.
fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('<').unwrap_or(text).replace(',', "");
    digits.parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, &str, Cell)]) -> Table {
        let lead = ["target", "repeat"].map(str::to_owned).to_vec();
        let mut table = Table::new("t", "T", lead, ["qps"]);
        for (target, repeat, cell) in rows {
            table.push(vec![(*target).to_owned(), (*repeat).to_owned()], vec![cell.clone()]);
        }
        table
    }

    #[test]
    fn each_target_has_the_median_of_its_repeats_with_the_spread() {
        let good = Cell::toned("1,200", Tone::Good);
        let invalid = Cell::marked("9,999", "!a", Tone::Invalid);
        let table = table(&[
            ("a", "1", Cell::plain("1,000")),
            ("a", "2", good),
            ("a", "3", Cell::plain("1,100")),
            ("b", "1", Cell::plain("50")),
            ("b", "2", invalid),
            ("c", "1", Cell::plain("59.9 s")),
            ("c", "2", Cell::plain("1 min 0 s")),
        ]);
        let groups = by_target(&table).unwrap();
        let leads: Vec<&str> = groups.iter().map(|group| group.lead[1].as_str()).collect();
        assert_eq!(leads, ["median of 3", "1 of 2 repeats", "median of 2"]);
        let medians: Vec<&Median> = groups.iter().map(|group| &group.medians[0]).collect();
        assert_eq!(medians[0].cell, Cell::plain("1,100"));
        let spread = medians[0].spread_pct.unwrap();
        assert!((spread - 100.0 / 11.0).abs() < 1e-9, "{spread}");
        assert_eq!((medians[1].cell.text.as_str(), medians[1].spread_pct), ("50", None));
        assert_eq!(*medians[2], Median::default());
    }

    #[test]
    fn a_bound_counts_as_its_figure_in_a_median() {
        let rows = ["<0.001", "0.004", "0.002"].map(|text| ("a", "1", Cell::plain(text)));
        let folded = folded(&table(&rows)).unwrap();
        assert_eq!(folded.rows[0].cells[0].text, "0.002");
        assert_eq!(number("<0.001"), Some(0.001));
    }

    #[test]
    fn a_folded_table_has_a_row_for_each_target() {
        let rows: Vec<(&str, &str, Cell)> = [("a", "467"), ("a", "456"), ("a", "476"), ("b", "90")]
            .iter()
            .map(|(target, text)| (*target, "1", Cell::plain(*text)))
            .collect();
        let whole = folded(&table(&rows[..3])).unwrap();
        assert_eq!(whole.lead, ["target"]);
        assert_eq!(whole.rows.len(), 1);
        assert_eq!(whole.rows[0].cells, [Cell::marked("467", " \u{b1}2%", Tone::Plain)]);
        assert_eq!(
            whole.names,
            [
                "median of 3 repeats; `\u{b1}` half of their range; `assay show --each` shows each repeat"
            ]
        );

        // Targets with other numbers of repeats keep the column.
        let mixed = folded(&table(&rows)).unwrap();
        assert_eq!(mixed.lead, ["target", "repeat"]);
        let leads: Vec<&str> = mixed.rows.iter().map(|row| row.lead[1].as_str()).collect();
        assert_eq!(leads, ["median of 3", "1"]);
        assert_eq!(mixed.rows[1].cells, [Cell::plain("90")]);
        assert!(folded(&table(&rows[3..])).is_none());
    }

    #[test]
    fn a_target_without_any_figure_has_the_reasons() {
        let table = table(&[
            ("a", "1", Cell::plain("1,000")),
            ("a", "2", Cell::toned("missing", Tone::Absent)),
            ("b", "1", Cell::toned("failed", Tone::Failed)),
            ("b", "2", Cell::toned("missing", Tone::Absent)),
            ("b", "3", Cell::toned("missing", Tone::Absent)),
        ]);
        let groups = by_target(&table).unwrap();
        let leads: Vec<&str> = groups.iter().map(|group| group.lead[1].as_str()).collect();
        assert_eq!(leads, ["1 of 2 repeats", "none of 3 repeats"]);
        assert_eq!(groups[0].medians[0].value, Some(1000.0));
        assert_eq!(groups[1].medians[0].cell.text, "failed, missing");

        let alone = folded(&Table { rows: table.rows[..2].to_vec(), ..table.clone() }).unwrap();
        assert_eq!(alone.names[0], "1 of 2 repeats; `assay show --each` shows each repeat");
    }

    #[test]
    fn repeats_may_be_columns() {
        let mut table = Table::new("t", "T", vec!["test".to_owned()], ["a r1", "a r2", "b r1"]);
        table.push(vec!["scan".to_owned()], ["10", "30", "7"].map(Cell::plain).to_vec());
        assert!(columns_by_target(&table).is_none());
        table.column_targets = ["a", "a", "b"].map(str::to_owned).to_vec();
        let groups = columns_by_target(&table).unwrap();
        let columns: Vec<&[usize]> = groups.iter().map(|group| group.columns.as_slice()).collect();
        assert_eq!(columns, [&[0, 1][..], &[2]]);
        let median = groups[0].median(&table.rows[0]);
        assert_eq!((median.value, median.spread_pct), (Some(20.0), Some(50.0)));
        assert_eq!(groups[0].head(&table), "a\nmedian of 2");

        // One repeat of a test is missing.
        let missing = Cell::toned("missing", Tone::Absent);
        let point = [Cell::plain("10"), missing, Cell::plain("7")].to_vec();
        table.push(vec!["point".to_owned()], point);
        let groups_with_missing = columns_by_target(&table).unwrap();
        assert_eq!(groups_with_missing[0].head(&table), "a\nmedian of 1 to 2");
    }

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        let median_of = |texts: &[&str]| {
            let cells: Vec<Cell> = texts.iter().map(|text| Cell::plain(*text)).collect();
            median(&cells.iter().collect::<Vec<_>>()).into_cell()
        };
        assert_eq!(median_of(&["267", "2,773"]), Cell::marked("1,520", " \u{b1}82%", Tone::Plain));
        assert_eq!(median_of(&["1.5", "9", "1.24", "1"]).text, "1.37");
        assert_eq!(median_of(&["1,000", "1,000"]), Cell::plain("1,000"));
    }

    #[test]
    fn a_table_without_repeats_stays_as_it_is() {
        assert!(by_target(&table(&[("a", "1", Cell::plain("1"))])).is_none());
        let lead = vec!["target".to_owned()];
        assert!(by_target(&Table::new("t", "T", lead, ["qps"])).is_none());
    }
}
