//! The tables of single seconds, of clients, and of debt.

use report::tables;

use crate::synthetic::{ALL_STEPS, SMALL, Size, figures, source};
use crate::{PLAIN, check_once, html};

const WHOLE: Size = Size { targets: 2, clients: 2, seconds: 12, steps: ALL_STEPS };

/// Returns a table by the beginning of its title, up to the next one.
fn table<'t>(text: &'t str, title: &str) -> &'t str {
    let from =
        text.find(&format!("\n{title}")).unwrap_or_else(|| panic!("no table `{title}`:\n{text}"));
    let table = &text[from + 1..];
    table.split("\n\n").next().unwrap()
}

#[test]
fn a_step_shows_how_even_it_was_and_what_changed_when_it_was_not() {
    let text = tables(&source(SMALL).run, &figures(SMALL), PLAIN);
    let step = text.split("━━ qr100 ").nth(1).unwrap();
    let parts: Vec<&str> =
        ["Quality of service", "Stalls", "Shifts", "Requested rate, second by second"]
            .map(|title| table(step, title))
            .to_vec();
    insta::assert_snapshot!(parts.join("\n\n"));
    let load = text.split("━━ l.i0 ").nth(1).unwrap();
    insta::assert_snapshot!("clients_ends", table(load, "Clients"));
}

#[test]
fn debt_is_shown_by_step_with_the_cost_of_settling() {
    let text = tables(&source(WHOLE).run, &figures(WHOLE), PLAIN);
    insta::assert_snapshot!(table(&text, "Debt that each step left"));
    // Without settling there is no such table.
    let text = tables(&source(SMALL).run, &figures(SMALL), PLAIN);
    assert!(!text.contains("Debt that each step left"));
}

#[test]
fn invalid_figures_are_marked() {
    let mut figures = figures(SMALL);
    for row in &mut figures.rows {
        row.valid = false;
        row.reasons = vec!["made so".to_string()];
    }
    let text = tables(&source(SMALL).run, &figures, PLAIN);
    let step = text.split("━━ qr100 ").nth(1).unwrap();
    for title in ["Quality of service", "Stalls", "Shifts", "Requested rate"] {
        let rows = table(step, title);
        let first = rows.lines().find(|line| line.starts_with("pg15.base")).unwrap();
        assert!(first.contains('!'), "{rows}");
    }
}

#[test]
fn more_stalls_than_are_listed_are_counted() {
    let mut figures = figures(SMALL);
    for quality in figures.rows.iter_mut().filter_map(|row| row.quality.as_mut()) {
        if let Some(stall) = quality.stalls.first().cloned() {
            quality.stalls = vec![stall; 10];
            quality.stall_count = 33;
        }
        if let Some(shift) = quality.shifts.first().cloned() {
            quality.shifts = vec![shift; 10];
            quality.shift_count = 44;
        }
    }
    let text = tables(&source(SMALL).run, &figures, PLAIN);
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("pg15.base: the longest 10 of 33 stalls"));
    assert!(joined.contains("pg15.base: the largest 10 of 44 shifts: the rate oscillates"));
}

#[test]
fn the_report_has_the_same_tables() {
    let report = html(&[source(WHOLE)], &figures(WHOLE));
    check_once(
        &report,
        &[
            "debt",
            "quality-qr100",
            "stalls-qr100",
            "shifts-qr100",
            "rate-history-qr100",
            "ends-l-i0",
        ],
    );
    assert!(report.contains("<code>disk_write_bytes</code> 381 MB/s, otherwise 47.7 MB/s (x8.00)"));
}
