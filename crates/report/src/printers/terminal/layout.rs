//! Lays out tables for a terminal: the widths of columns, and how wide tables are split.

use std::ops::Range;

use comfy_table::{
    Attribute, Cell as Styled, CellAlignment, Color, ContentArrangement, ContentLineStyle,
    LineStyle, TableStyle as Lines,
};
use unicode_width::UnicodeWidthStr;

use super::writer::TableStyle;
use crate::model::table::{Cell, Table, Tone};
use crate::model::text::terminal_text;

/// The space between two columns.
const GAP: usize = 2;

/// A line below the heads only.
const RULED: Lines = Lines::new()
    .header_lines(ContentLineStyle::none())
    .header_separator(LineStyle::none().fill('─'))
    .content_lines(ContentLineStyle::none());

/// The width of a column, including its marks.
struct Width {
    figure: usize,
    mark: usize,
}

impl Width {
    fn total(&self) -> usize {
        self.figure + self.mark
    }
}

fn widest<'t>(texts: impl Iterator<Item = &'t str>) -> usize {
    texts.map(|text| terminal_text(text).width()).max().unwrap_or(0)
}

fn widths(table: &Table) -> Vec<Width> {
    let width = |(index, head): (usize, &String)| {
        let cells = || table.rows.iter().filter_map(move |row| row.cells.get(index));
        let mark = cells().map(|cell| cell.mark.width()).max().unwrap_or(0);
        let figure = widest(cells().map(|cell| cell.text.as_str()));
        // A head also uses the space of the marks.
        let head = widest(head.lines()).saturating_sub(mark);
        Width { figure: figure.max(head), mark }
    };

    table.columns.iter().enumerate().map(width).collect()
}

/// Splits the columns of a table into groups that fit next to the lead columns. Each group has at
/// least one column, and keeps ratios with their figures.
pub(super) fn split(table: &Table, width: Option<usize>) -> Vec<Range<usize>> {
    let lead_width = |(index, head): (usize, &String)| {
        let texts = table.rows.iter().filter_map(|row| row.lead.get(index));
        head.width().max(widest(texts.map(String::as_str))) + GAP
    };

    let lead: usize = table.lead.iter().enumerate().map(lead_width).sum();
    let room = width.map_or(usize::MAX - GAP, |width| width.saturating_sub(lead));

    // A figure and the ratios next to it are one piece, from `begin` to `end`.
    let widths = widths(table);
    let ends = (1..=widths.len()).filter(|index| !table.beside.contains(index));
    let mut groups = Vec::new();
    let (mut first, mut used, mut begin) = (0, 0, 0);

    for end in ends {
        let wanted: usize = widths[begin..end].iter().map(|width| width.total() + GAP).sum();
        if begin > first && used + wanted > room + GAP {
            groups.push(first..begin);
            (first, used) = (begin, 0);
        }

        used += wanted;
        begin = end;
    }

    groups.push(first..table.columns.len());
    groups
}

/// Formats some columns of a table, with its lead.
pub(super) fn rendered(table: &Table, columns: Range<usize>, style: TableStyle) -> String {
    let mut out = comfy_table::Table::new();
    out.set_content_arrangement(ContentArrangement::Disabled);
    out.load_style(RULED);
    if style.color {
        out.enforce_styling();
    } else {
        out.force_no_tty();
    }

    out.set_header(heads(table, columns.clone()));

    let widths = widths(table);

    for (number, row) in table.rows.iter().enumerate() {
        // The name of a test is shown once.
        let repeated = usize::from(table.continues_test(number));
        let lead = row.lead.iter().enumerate().map(|(index, text)| {
            let text = if index < repeated { "" } else { text };
            let cell = Styled::new(terminal_text(text));
            if row.target { cell.add_attribute(Attribute::Dim) } else { cell }
        });

        let cells = columns.clone().map(|index| {
            let cell = row.cells.get(index).cloned().unwrap_or_default();
            styled(&cell, &widths[index])
        });
        out.add_row(lead.chain(cells).collect::<Vec<_>>());
    }

    let last = table.lead.len() + columns.len() - 1;
    for (index, column) in out.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { GAP as u16 }));
    }

    out.trim_fmt()
}

fn heads(table: &Table, columns: Range<usize>) -> Vec<Styled> {
    let mut heads: Vec<Styled> =
        table.lead.iter().map(|head| Styled::new(terminal_text(head))).collect();
    for head in &table.columns[columns] {
        let lines: Vec<String> = head.lines().map(terminal_text).collect();
        heads.push(Styled::new(lines.join("\n")).set_alignment(CellAlignment::Right));
    }
    // A table without styles ignores attributes.
    heads.into_iter().map(|head| head.add_attribute(Attribute::Bold)).collect()
}

/// Returns a cell with its mark. Marks are padded, so that figures line up.
fn styled(cell: &Cell, width: &Width) -> Styled {
    let text = format!("{}{:<width$}", terminal_text(&cell.text), cell.mark, width = width.mark);
    let styled = Styled::new(text).set_alignment(CellAlignment::Right);

    match cell.tone {
        Tone::Plain | Tone::Coarse => styled,
        Tone::Good => styled.fg(Color::Green),
        Tone::Bad | Tone::Failed => styled.fg(Color::Red),
        Tone::Faster | Tone::CostsLess | Tone::TimeShrank | Tone::WorkShrank => {
            styled.fg(Color::Cyan)
        }
        Tone::Slower | Tone::CostsMore | Tone::TimeGrew | Tone::WorkGrew => {
            styled.fg(Color::Yellow)
        }
        Tone::SlaMissed | Tone::Unjudged | Tone::Noisy | Tone::Invalid | Tone::Absent => {
            styled.fg(Color::DarkGrey)
        }
    }
}
