//! Exact work in tables and in the page.

use analysis::figures::{ExactStep, Figures};
use report::{TableStyle, steps_with_table, tables_brief, tables_named};

use crate::synthetic::{SMALL, add_exact, figures, source};
use crate::{WIDE, check_once, html};

fn counted() -> Figures {
    let mut figures = figures(SMALL);
    add_exact(&mut figures);
    figures
}

/// Returns the table of work by its name.
fn table(figures: &Figures) -> String {
    tables_named(&source(SMALL).run, figures, &["work".to_string()], WIDE).unwrap()
}

/// Returns the words of the line that begins with these.
fn words<'t>(text: &'t str, first: &str) -> Vec<&'t str> {
    let found = text.lines().find(|line| line.trim_start().starts_with(first));
    found.unwrap_or_else(|| panic!("no {first:?} in:\n{text}")).split_whitespace().collect()
}

#[test]
fn work_has_a_row_for_each_connection_with_its_floor_and_verdict() {
    let text = table(&counted());
    assert!(text.contains("Work per operation: instructions, relative to pg15.base"), "{text}");
    let row = words(&text, "qr100");
    assert_eq!(
        row,
        ["qr100", "query", "55,010", "58,010", "1.0545▲", "0.000", "0.500", "more", "work"]
    );
    assert!(text.contains("Instructions say nothing of waits"), "{text}");
}

#[test]
fn the_functions_that_changed_stand_below_the_row() {
    let text = table(&counted());
    let (_, functions) = text.split_once("Functions with the change of work").unwrap();
    let row = words(functions, "estimate").join(" ");
    assert_eq!(row, "estimate serve > plan +3000▲ 20,000 23,000 1.00 1.00");

    let page = html(&[source(SMALL)], &counted());
    check_once(&page, &["work-functions-1"]);
}

#[test]
fn system_calls_whose_number_changed_stand_below_the_functions() {
    let text = table(&counted());
    let (_, calls) = text.split_once("System calls and allocations per operation").unwrap();
    let row = words(calls, "pg15.embedded").join(" ");
    assert_eq!(row, "pg15.embedded/c1 qr100 system call pread64 3.000 1.000 -2.000▼");
}

#[test]
fn a_target_by_itself_has_its_work_too() {
    let mut figures = counted();
    let base = figures.rows[0].cell.target.clone();
    figures.rows.retain(|row| row.cell.target == base);
    figures.exact.retain(|step| step.row.cell.target == base);
    let row = words(&table(&figures), "qr100").join(" ");
    assert_eq!(row, "qr100 query pg15.base/c1 55,010 0.000");
}

#[test]
fn the_steps_of_a_run_that_only_counted_work_have_its_table() {
    let mut figures = counted();
    figures.rows.clear();
    assert_eq!(steps_with_table(&source(SMALL).run, &figures, "work"), ["qr100"]);
}

#[test]
fn cells_that_do_not_count_are_told_below_the_table() {
    let mut figures = counted();
    let lost: &mut ExactStep = figures.exact.last_mut().unwrap();
    lost.work.missing = Some("the engine does not run under valgrind".to_string());
    let text = table(&figures);
    assert!(words(&text, "qr100").join(" ").contains("single cell"), "{text}");
    assert!(text.contains("exact cell 2 is left out: the engine does not run under"), "{text}");

    // Equal reasons are one line, however many cells they are of.
    for step in &mut figures.exact {
        step.work.missing =
            Some("the step ended before its 2000 operations of warm-up".to_string());
        if step.row.cell.repeat == 1 {
            step.work.missing = None;
        }
    }
    let text = table(&figures).replace('\n', " ");
    assert_eq!(text.matches("2000 operations of warm-up").count(), 1, "{text}");
    assert!(text.contains("pg15.base and pg15.embedded, exact cell 2 are left out"), "{text}");
}

#[test]
fn the_end_of_a_run_and_the_page_have_work_only_with_exact_cells() {
    let run = source(SMALL).run;
    let [without, with] = [figures(SMALL), counted()].map(|figures| {
        let text = tables_brief(&run, &figures, TableStyle::default());
        (text, html(&[source(SMALL)], &figures))
    });
    assert!(!without.0.contains("Work per operation"));
    assert!(!without.1.contains("href=\"#exact-work\""));
    assert!(with.0.contains("Work per operation"), "{}", with.0);
    check_once(&with.1, &["work", "exact-work"]);
    assert!(with.1.contains("href=\"#exact-work\""));
}
