//! A history, for a terminal or as Markdown.

use super::writer::{TableStyle, TerminalWriter};
use crate::model::history::HistoryView;
use crate::prose::history::{detail, heading, method};
use crate::tables::history;

/// The most changes whose circumstances are told; the page and JSON have all.
const DETAILS_MAX: usize = 12;
/// The most changes in the table.
const CHANGES_MAX: usize = 40;

/// Formats a history as tables for a terminal.
pub fn history(view: &HistoryView<'_>, style: TableStyle) -> String {
    let mut out = TerminalWriter::new(style);
    write(&mut out, view);
    out.finish()
}

/// Formats a history as Markdown.
pub fn history_markdown(view: &HistoryView<'_>) -> String {
    let mut out = TerminalWriter::markdown();
    write(&mut out, view);
    out.finish()
}

fn write(out: &mut TerminalWriter, view: &HistoryView<'_>) {
    out.main_title("History");
    out.wrapped("", &heading(view));

    out.table(&history::changes(view, CHANGES_MAX));

    let changes = view.history.changes();
    for (series, change) in changes.iter().take(DETAILS_MAX) {
        out.wrapped("  ", &detail(view, series, change));
    }

    out.table(&history::pending(view));

    for sentence in method(view) {
        out.wrapped("  ", &sentence);
    }
}
