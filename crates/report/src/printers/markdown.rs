//! Tables and text in GitHub's Markdown. It has no colors: marks have the same meaning.

use crate::model::table::Table;
use crate::model::text::terminal_text;

pub(crate) fn heading(level: usize, text: &str) -> String {
    format!("\n{} {}\n\n", "#".repeat(level), escaped(text))
}

/// Formats a paragraph or a list item. Text in backticks is code.
pub(crate) fn paragraph(text: &str, is_item: bool) -> String {
    let text = escaped(text);
    if text.is_empty() {
        return String::new();
    }
    if is_item {
        return format!("- {text}\n");
    }

    // Otherwise the paragraph would continue the list above, or begin a new one.
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    let begins_list = match number {
        "" => text.starts_with(['-', '+']),
        _ => rest.starts_with(['.', ')']),
    };
    let escape = if begins_list { "\\" } else { "" };

    format!("\n{number}{escape}{rest}\n\n")
}

/// Formats a table without its title and notes.
pub(crate) fn table(table: &Table) -> String {
    let mut out = String::from("\n");
    let heads: Vec<String> =
        table.lead.iter().chain(&table.columns).map(|head| in_cell(head)).collect();
    line(&mut out, &heads);

    // Figures are aligned to the right.
    let mut rules = vec!["---".to_string(); table.lead.len()];
    rules.resize(heads.len(), "---:".to_string());
    line(&mut out, &rules);

    for row in &table.rows {
        let mut cells: Vec<String> = row.lead.iter().map(|text| in_cell(text)).collect();
        cells.extend(row.cells.iter().map(|cell| in_cell(&format!("{}{}", cell.text, cell.mark))));
        cells.resize(heads.len(), String::new());
        line(&mut out, &cells);
    }
    out.push('\n');
    out
}

fn line(out: &mut String, cells: &[String]) {
    out.push_str(&format!("| {} |\n", cells.join(" | ")));
}

/// Formats the text of a cell; line breaks become `<br>`.
fn in_cell(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escaped).collect();
    lines.join("<br>")
}

/// Escapes Markdown and HTML, except for code in backticks. Spaces become single ones.
pub fn escaped(text: &str) -> String {
    let text = terminal_text(text);

    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let parts: Vec<&str> = line.split('`').collect();

    // An unpaired backtick is escaped.
    let has_unpaired = parts.len().is_multiple_of(2);
    let last = parts.len() - 1;
    let mut out = String::new();
    for (index, part) in parts.into_iter().enumerate() {
        let is_after_unpaired = has_unpaired && index == last;
        if index > 0 {
            out.push_str(if is_after_unpaired { "\\`" } else { "`" });
        }

        let is_code = index % 2 == 1 && !is_after_unpaired;
        for letter in part.chars() {
            if is_command(letter, is_code) {
                out.push('\\');
            }
            out.push(letter);
        }
    }
    out
}

/// Returns true if a letter has a meaning in Markdown, so that it must be escaped.
fn is_command(letter: char, is_code: bool) -> bool {
    match letter {
        // A bar ends a cell even within code.
        '|' => true,
        '\\' | '*' | '_' | '<' | '>' | '[' | ']' | '~' | '#' | '&' | '$' => !is_code,
        _ => false,
    }
}

/// Replaces several empty lines by one, and removes those at the ends.
pub(crate) fn squeezed(text: &str) -> String {
    let mut out = String::new();
    let mut empty_lines = 0;

    for line in text.trim().lines() {
        empty_lines = if line.is_empty() { empty_lines + 1 } else { 0 };
        if empty_lines < 2 {
            out.push_str(line);
            out.push('\n');
        }
    }

    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::table::{Cell, TableRow};

    #[test]
    fn nothing_of_a_name_is_taken_for_markdown() {
        assert_eq!(
            escaped("a_b*c|d <img> [x](y) #1 ~z~"),
            "a\\_b\\*c\\|d \\<img\\> \\[x\\](y) \\#1 \\~z\\~"
        );
        assert_eq!(escaped("set `a_b = 1` or `x|y`"), "set `a_b = 1` or `x\\|y`");
        assert_eq!(escaped("one ` alone_"), "one \\` alone\\_");
        assert_eq!(escaped("a\u{1b}[31m\n\nb"), "a\\[31m b");
    }

    #[test]
    fn a_paragraph_begins_no_list() {
        assert_eq!(paragraph("- a", false), "\n\\- a\n\n");
        assert_eq!(paragraph("12. a", false), "\n12\\. a\n\n");
        assert_eq!(paragraph("5 repeats", false), "\n5 repeats\n\n");
        assert_eq!(paragraph("a", true), "- a\n");
        assert_eq!(paragraph("  ", false), "");
    }

    #[test]
    fn a_table_has_as_many_cells_in_every_line() {
        let of = Table {
            lead: vec!["target".into()],
            columns: vec!["l.i0\nrows/s".into(), "l.x".into()],
            rows: vec![TableRow {
                lead: vec!["pg.a|b".into()],
                cells: vec![Cell::plain("12")],
                target: false,
            }],
            ..Table::default()
        };
        let expected =
            "\n| target | l.i0<br>rows/s | l.x |\n| --- | ---: | ---: |\n| pg.a\\|b | 12 |  |\n\n";
        assert_eq!(table(&of), expected);
        let text = format!("# a\n\n\n{}\n\nb\n\n", table(&of));
        assert!(!squeezed(&text).contains("\n\n\n"));
        assert!(squeezed(&text).ends_with("|\n\nb\n"));
    }
}
