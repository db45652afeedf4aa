//! The matrix that a page begins with.

use analysis::figures::{Figures, Row};

use crate::html;
use crate::plots::repeated;
use crate::synthetic::{ALL_STEPS, SMALL, Size, figures, source, target_names};

/// Three targets in three steps.
const FEW: Size =
    Size { targets: 3, steps: const { &[ALL_STEPS[0], ALL_STEPS[5], ALL_STEPS[7]] }, ..SMALL };

/// Returns the matrix of a page.
fn matrix(page: &str) -> &str {
    let (_, rest) = page.split_once("id=\"matrix\"").unwrap();
    rest.split("</table>").next().unwrap()
}

/// Returns the texts that stand between these two in a page.
fn between<'p>(page: &'p str, before: &str, after: &str) -> Vec<&'p str> {
    page.split(before).skip(1).filter_map(|rest| rest.split(after).next()).collect()
}

#[test]
fn the_page_begins_with_one_matrix_of_steps_in_their_order_and_targets() {
    let page = html(&[source(FEW)], &repeated(FEW, &[2]));
    assert!(page.find("<h1>").unwrap() < page.find("id=\"matrix\"").unwrap());
    assert!(page.find("id=\"matrix\"").unwrap() < page.find("id=\"results\"").unwrap());
    assert!(!page.contains("id=\"plot-forest\""), "the matrix has its figures");

    let matrix = matrix(&page);
    let body = matrix.split_once("<tbody>").unwrap().1;
    let steps = between(body, "<th scope=\"row\" data-of=\"", "\"");
    assert_eq!(steps, step_names());
    assert_eq!(between(matrix, " scope=\"col\" data-of=\"", "\"").len(), 3);
    // The base has its throughput, the others a strip in each step and one for all steps.
    assert_eq!(matrix.matches("<div class=\"square\"><svg").count(), 2 * (3 + 1) + 2);
    assert!(matrix.contains("class=\"dot\""), "repeats are dots");
    assert_eq!(between(matrix, "data-rank=\"", "\"").len(), 3);
}

fn step_names() -> Vec<&'static str> {
    FEW.steps.iter().map(|(name, ..)| *name).collect()
}

#[test]
fn all_strips_have_one_scale() {
    let page = html(&[source(FEW)], &repeated(FEW, &[2]));
    let axes = between(
        matrix(&page),
        "<svg class=\"strip drawn\" width=\"100%\" height=\"16\" aria-hidden=\"true\">",
        "</svg>",
    );
    assert_eq!(axes.len(), 2);
    assert!(axes.windows(2).all(|pair| pair[0] == pair[1]), "{axes:?}");
}

#[test]
fn what_was_measured_once_is_shaded_by_its_size_and_says_so() {
    let page = html(&[source(FEW)], &figures(FEW));
    let matrix = matrix(&page);
    let ratios = matrix.matches("data-value=").count() - 1;
    // The heads of the three targets say so, and not each of their cells.
    assert_eq!(matrix.matches("<small class=\"once\">once</small>").count(), 3);
    let (head, _) = matrix.split_once("</tr>").unwrap();
    assert_eq!(head.matches(">once<").count(), 3);
    assert_eq!(matrix.matches("style=\"--much:").count(), ratios);
    assert!(!matrix.contains("\"better\"") && !matrix.contains("\"worse\""), "no verdict");
}

#[test]
fn what_is_missing_has_no_star_and_what_was_not_measured_no_column() {
    let mut figures = repeated(FEW, &[2]);
    let names = target_names(3);
    let (base, second, third) = (&names[0], &names[1], &names[2]);
    for row in &mut figures.rows {
        if row.cell.target == *base && row.step == "qr100" {
            let sla = row.sla.as_mut().expect("the step requests a rate");
            sla.met = false;
        }
    }
    let is_missing = |row: &Row| row.cell.target == *second && row.step == "qr100";
    let (missing, kept) = figures.rows.into_iter().partition(is_missing);
    (figures.missing, figures.rows) = (missing, kept);
    let page = html(&[source(FEW)], &figures);
    let with_gap = matrix(&page);
    assert!(with_gap.contains(">missing<small></small>"), "{with_gap}");
    assert!(with_gap.contains("<span class=\"m\">") && with_gap.contains("*</span>"), "{with_gap}");

    let is_missing = |row: &Row| row.cell.target == *third;
    let (missing, kept) = figures.rows.into_iter().partition(is_missing);
    figures.missing.extend::<Vec<Row>>(missing);
    figures.rows = kept;
    let page = html(&[source(FEW)], &figures);
    assert_eq!(between(matrix(&page), " scope=\"col\" data-of=\"", "\"").len(), 2);
    assert_eq!(third, "pg15.a16");
    let note = "Without results, so not shown: a16 (missing).";
    assert!(page.contains(note), "{}", between(&page, "<p class=\"note\">", "</p>").join("\n"));
}

#[test]
fn without_a_shown_change_of_a_mean_targets_have_no_ranks() {
    let mut figures = repeated(FEW, &[2]);
    let ranked = html(&[source(FEW)], &figures);
    assert!(matrix(&ranked).contains("data-rank") && matrix(&ranked).contains("sort by rank"));

    // All targets do the same in each repeat, but for noise.
    let base: Vec<Row> = figures
        .rows
        .iter()
        .filter(|row| row.cell.target == figures.rows[0].cell.target)
        .cloned()
        .collect();
    for row in &mut figures.rows {
        let noise = [0.8, 1.2, 0.9, 1.1, 1.0][row.cell.repeat as usize % 5];
        let is_base = row.cell.target == base[0].cell.target;
        let same = base
            .iter()
            .find(|other| (&other.step, other.cell.repeat) == (&row.step, row.cell.repeat));
        for (name, value) in &mut row.metrics {
            let same = same.and_then(|row| row.metrics.get(name).copied().flatten());
            *value = same.map(|same| if is_base { same } else { same * noise });
        }
    }
    let page = html(&[source(FEW)], &figures);
    assert!(!matrix(&page).contains("data-rank"), "{}", matrix(&page));
    assert!(!matrix(&page).contains("sort by rank"));
}

#[test]
fn a_page_of_which_most_is_missing_says_so_first() {
    let mut figures = figures(FEW);
    let count = figures.rows.len();
    figures.missing = figures.rows.split_off(count / 3);
    let complete = figures.rows.len();
    let page = html(&[source(FEW)], &figures);
    let says = format!("<h1>Incomplete: {complete} of {count} step results. ");
    assert!(page.contains(&says), "{}", between(&page, "<h1>", "</h1>")[0]);
}

#[test]
fn many_targets_are_rows() {
    let size = Size { targets: 12, ..FEW };
    let page = html(&[source(size)], &repeated(size, &[2]));
    let matrix = matrix(&page);
    let columns = between(matrix, "<th class=\"n\" scope=\"col\" data-of=\"", "\"");
    assert_eq!(columns, step_names());
    assert_eq!(between(matrix, "<th scope=\"row\" data-of=\"", "\"").len(), 12);
}

#[test]
fn the_header_counts_the_targets_that_were_measured_and_the_first_takes_the_place_of_the_base() {
    let size = Size { targets: 4, ..FEW };
    let source = source(size);
    let mut figures: Figures = repeated(size, &[2]);
    let base = source.run.base.clone();
    figures.rows.retain(|row| row.cell.target != base);
    let second = source.run.targets[1].name.clone();
    let page = html(&[source], &figures);
    assert!(page.contains(&format!("{base}, was not measured: {second} takes its place")));
    assert!(
        page.contains(" · 3 of 5 targets"),
        "{}",
        between(&page, "<p class=\"run\">", "</p>")[0]
    );
    assert!(page.contains("id=\"matrix\""));
}

#[test]
fn the_host_is_folded_and_sizes_have_units() {
    let mut source = source(SMALL);
    source.run.host.memory_total_bytes = 25_276_502_016;
    source.run.host.facts.retain(|(name, _)| name != "memory_total_bytes");
    let page = html(&[source], &figures(SMALL));
    let (_, host) = page.split_once("id=\"host\"").unwrap();
    let (before, folded) = host.split_once("<details>").unwrap();
    assert!(before.contains("23.5 GiB of memory") && !before.contains("<table"), "{before}");
    assert!(folded.contains("<td title=\"25276502016\">23.5 GiB</td>"));
}

#[test]
fn a_table_of_repeats_has_a_row_of_each_target() {
    let page = html(&[source(FEW)], &repeated(FEW, &[2]));
    let (_, table) = page.split_once("id=\"summary\"").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    assert_eq!(table.matches(">median of 5<").count(), 3);
    assert_eq!(table.matches("<tr class=\"repeat\">").count(), 15);
    assert!(table.contains("each repeat</button>"));
    assert!(table.contains("\u{b1}1%"), "{table}");
}

#[test]
fn a_page_can_be_entered_without_its_contents() {
    let page = html(&[source(SMALL)], &figures(SMALL));
    let (_, body) = page.split_once("<body>").unwrap();
    assert!(body.starts_with("<a class=\"skip\" href=\"#answer\">"), "{}", &body[..80]);
    // All times of an operation have one unit.
    assert!(!page.contains(">us<") && !page.contains(">us/op<"));
}
