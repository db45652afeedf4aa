//! A table of figures in a page, with the meaning of its marks and colors.

use maud::{Markup, html as markup};

use crate::model::names::{Names, Subject};
use crate::model::repeats::{Median, RepeatedColumns, RepeatedRows, by_target, columns_by_target};
use crate::model::table::{Cell, STEP, TEST, Table, TableRow, Tone};
use crate::model::text::clean;
use crate::printers::page::{breakable, marked, permalink};

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::SlaMissed => "sla",
        // Lower costs are as good as higher speed.
        Tone::Faster | Tone::CostsLess | Tone::TimeShrank | Tone::WorkShrank => "better",
        Tone::Slower | Tone::CostsMore | Tone::TimeGrew | Tone::WorkGrew => "worse",
        Tone::Noisy => "sla",
        Tone::Coarse => "coarse",
        Tone::Invalid => "invalid",
        Tone::Failed => "failed",
        Tone::Unjudged | Tone::Absent => "absent",
    }
}

/// Returns a table in a box that scrolls, with the meaning of its marks. Heads of rows and columns
/// name their target or step, for the scripts.
pub(crate) fn table(names: &Names<'_>, table: &Table) -> Markup {
    if table.is_empty() {
        return markup! {};
    }

    let repeated_rows = by_target(table);
    let repeated_columns = columns_by_target(table);
    let has_repeats = repeated_rows.is_some() || repeated_columns.is_some();
    let legend = if has_repeats { without_shades(table.legend()) } else { table.legend() };

    // Without any mark, no cell keeps room for one.
    let bare = table.cells().all(|cell| cell.mark.is_empty());

    markup! {
        div.block id=(table.id) {
            h4 {
                span id={ "title-" (table.id) } { (clean(&table.title)) } (permalink(&table.id))
                @if has_repeats { " " button.repeats type="button" aria-pressed="false" { "each repeat" } }
            }

            div.scroll tabindex="0" role="group" aria-labelledby={ "title-" (table.id) } {
                table class={ "figures" @if bare { " bare" } } aria-labelledby={ "title-" (table.id) } {
                    @if let Some(columns) = &repeated_columns {
                        (head_by_columns(names, table, columns, bare))
                        (body_by_columns(names, table, columns, bare))
                    } @else {
                        (table_head(names, table, bare))
                        @if let Some(rows) = &repeated_rows { (body_by_target(names, table, rows, bare)) }
                        @else { (table_body(names, table, bare)) }
                    }
                }
            }

            @if !legend.is_empty() {
                ul.key {
                    @for (tone, meaning) in &legend { li { b class=(tone_class(*tone)) { (mark(tone.mark())) } (meaning) } }
                }
            }

            @if !table.names.is_empty() { p.note { (marked(&table.names.join("; "))) } }
            @for note in &table.notes { p.note { (marked(note)) } }
        }
    }
}

fn table_head(names: &Names<'_>, table: &Table, bare: bool) -> Markup {
    let subjects = column_subjects(names, table);

    markup! {
        thead { tr {
            @for head in &table.lead { th scope="col" { (clean(head)) } }
            @for (head, subject) in table.columns.iter().zip(&subjects) {
                (column_head(head_of(subject.as_ref(), head), "n", bare))
            }
        } }
    }
}

fn table_body(names: &Names<'_>, table: &Table, bare: bool) -> Markup {
    markup! {
        tbody {
            @for (number, row) in table.rows.iter().enumerate() {
                tr class=[row_class(table, number)] {
                    (row_heads(names, &table.lead, &row.lead))
                    @for cell in &row.cells { (figure(cell, cell.tone, bare)) }
                }
            }
        }
    }
}

/// Returns a row with the medians of each target, and the rows of its repeats, which a button
/// shows.
fn body_by_target(
    names: &Names<'_>,
    table: &Table,
    groups: &[RepeatedRows<'_>],
    bare: bool,
) -> Markup {
    markup! {
        tbody {
            @for group in groups {
                @let class = row_class(table, group.first_row);
                @let is_repeated = group.rows.len() > 1;
                @if is_repeated {
                    tr class=[class] {
                        (row_heads(names, &table.lead, &group.lead))
                        @for median in &group.medians { (median_cell(median, bare)) }
                    }
                }

                @for row in &group.rows {
                    tr class=[if is_repeated { Some(class_of_repeat(row)) } else { class }] {
                        (row_heads(names, &table.lead, &row.lead))
                        @for cell in &row.cells { (figure(cell, without_shade(cell.tone), bare)) }
                    }
                }
            }
        }
    }
}

/// Returns the heads of a table in which each target has a column with its medians, followed by
/// those of its repeats.
fn head_by_columns(
    names: &Names<'_>,
    table: &Table,
    groups: &[RepeatedColumns<'_>],
    bare: bool,
) -> Markup {
    markup! {
        thead { tr {
            @for text in &table.lead { th scope="col" { (clean(text)) } }
            @for group in groups {
                @let is_repeated = group.columns.len() > 1;
                @if is_repeated {
                    @let text = group.head(table);
                    (column_head(head_of(names.target_in(&text).as_ref(), &text), "n", bare))
                }

                @let class = if is_repeated { "n repeat" } else { "n" };
                @for text in group.columns.iter().map(|at| &table.columns[*at]) {
                    (column_head(head_of(names.target_in(text).as_ref(), text), class, bare))
                }
            }
        } }
    }
}

fn column_head(head: HeadText, class: &str, bare: bool) -> Markup {
    let HeadText { name, title, text } = head;
    markup! {
        th class=(class) scope="col" data-of=[name] title=[title] { (breakable(&text)) @if !bare { span.m {} } }
    }
}

fn body_by_columns(
    names: &Names<'_>,
    table: &Table,
    groups: &[RepeatedColumns<'_>],
    bare: bool,
) -> Markup {
    markup! {
        tbody {
            @for (number, row) in table.rows.iter().enumerate() {
                tr class=[row_class(table, number)] {
                    (row_heads(names, &table.lead, &row.lead))

                    @for group in groups {
                        @let is_repeated = group.columns.len() > 1;
                        @if is_repeated { (median_cell(&group.median(row), bare)) }
                        @for cell in group.columns.iter().filter_map(|at| row.cells.get(*at)) {
                            (figure_of(cell, without_shade(cell.tone), bare, is_repeated))
                        }
                    }
                }
            }
        }
    }
}

/// Returns the heads of a row.
fn row_heads(names: &Names<'_>, heads: &[String], texts: &[String]) -> Markup {
    markup! {
        @for (head, text) in heads.iter().zip(texts) {
            @let subject = row_subject(names, head, text);
            @let HeadText { name, title, text } = head_of(subject.as_ref(), text);
            th scope="row" data-of=[name] title=[title] { (text) }
        }
    }
}

fn figure(cell: &Cell, tone: Tone, bare: bool) -> Markup {
    figure_of(cell, tone, bare, false)
}

/// Returns a figure, which a button shows if it is a repeat in a column of its own.
fn figure_of(cell: &Cell, tone: Tone, bare: bool, is_repeat: bool) -> Markup {
    let classes = [tone_class(tone), if is_repeat { "repeat" } else { "" }].join(" ");
    let class = classes.trim();

    // Without its color, the mark of the best and the worst has no meaning.
    let marked = if tone == cell.tone { mark(&cell.mark) } else { String::new() };

    markup! {
        td class=[(!class.is_empty()).then_some(class)] style=[share(cell.share)] {
            (clean(&cell.text)) @if !bare { span.m { (marked) } }
        }
    }
}

/// Returns the median of some repeats with half of their range, unless it is too small to be seen.
fn median_cell(median: &Median, bare: bool) -> Markup {
    let Median { cell, value, .. } = median;
    let class = tone_class(cell.tone);

    markup! {
        td class=[(!class.is_empty()).then_some(class)] style=[share(cell.share)] data-value=[value] {
            (clean(&cell.text)) small.spread { (median.spread_text()) }
            @if !bare { span.m { (mark(&cell.mark)) } }
        }
    }
}

/// Returns the tone of a repeat's figure. The best of the repeats of one target is no merit.
fn without_shade(tone: Tone) -> Tone {
    match tone {
        Tone::Good | Tone::Bad => Tone::Plain,
        tone => tone,
    }
}

fn without_shades(mut legend: Vec<(Tone, &str)>) -> Vec<(Tone, &str)> {
    legend.retain(|(tone, _)| without_shade(*tone) == *tone);
    legend
}

/// Returns the subjects of the columns, if all are targets or all are steps.
fn column_subjects<'n>(names: &Names<'n>, table: &Table) -> Vec<Option<Subject<'n>>> {
    let all_found = |subjects: &Vec<Option<_>>| subjects.iter().all(Option::is_some);
    let targets: Vec<_> = table.columns.iter().map(|head| names.target_in(head)).collect();
    if all_found(&targets) {
        return targets;
    }
    let steps: Vec<_> = table.columns.iter().map(|head| names.step_in(head)).collect();
    if all_found(&steps) { steps } else { vec![None; table.columns.len()] }
}

/// Returns the subject of a row's head, if it has one.
fn row_subject<'n>(names: &Names<'n>, head: &str, text: &str) -> Option<Subject<'n>> {
    match head {
        "target" => names.target_in(text),
        TEST | STEP => names.step_in(text),
        _ => None,
    }
}

/// The head of a row or column.
struct HeadText {
    /// The full name of the target or step, for the scripts.
    name: Option<String>,
    /// The full name if `text` has the short one.
    title: Option<String>,
    text: String,
}

fn head_of(subject: Option<&Subject<'_>>, text: &str) -> HeadText {
    let Some(subject) = subject else {
        return HeadText { name: None, title: None, text: clean(text) };
    };

    let name = clean(subject.name);

    HeadText {
        title: subject.is_short.then(|| name.clone()),
        name: Some(name),
        text: clean(&subject.text),
    }
}

/// Returns the class of rows of requested rates, and of the first row of a group.
fn row_class(table: &Table, number: usize) -> Option<&'static str> {
    if table.rows[number].target {
        Some("target")
    } else if table.begins_group(number) {
        Some("group")
    } else if table.begins_test(number) {
        Some("test")
    } else {
        None
    }
}

/// Returns the class of a row that the button shows.
fn class_of_repeat(row: &TableRow) -> &'static str {
    if row.target { "repeat target" } else { "repeat" }
}

/// Returns the style for the shade of a share.
fn share(share: u8) -> Option<String> {
    (share > 0).then(|| format!("--share:{}%", u32::from(share) * 2))
}

/// Returns a mark with a minus sign that is as visible as a plus.
fn mark(mark: &str) -> String {
    mark.replace('-', "\u{2212}")
}
