//! Lists for a terminal.

use crate::model::text::terminal_text;

/// Returns lines in aligned columns.
pub fn columns<const COLUMNS: usize>(lines: &[[String; COLUMNS]]) -> String {
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or(0)
    });

    let mut text = String::new();
    for line in lines {
        let mut row = String::new();
        for (width, cell) in widths.iter().zip(line) {
            row.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// Returns lines in aligned columns, without what a terminal would obey: some of the text comes from
/// strangers.
pub fn safe_columns<const COLUMNS: usize>(lines: &[[String; COLUMNS]]) -> String {
    let text = columns(lines);
    text.lines().map(|line| format!("{}\n", terminal_text(line))).collect()
}
