//! A table of figures in a page, with the meaning of its marks and colors.

use maud::{Markup, html as markup};

use crate::model::names::{Names, Subject};
use crate::model::table::{STEP, TEST, Table, Tone};
use crate::model::text::clean;
use crate::printers::page::{marked, permalink};

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::SlaMissed => "sla",
        // Lower costs are as good as higher speed.
        Tone::Faster | Tone::CostsLess | Tone::TimeShrank => "better",
        Tone::Slower | Tone::CostsMore | Tone::TimeGrew => "worse",
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

    let legend = table.legend();
    // Without any mark, no cell keeps room for one.
    let bare = table.cells().all(|cell| cell.mark.is_empty());
    markup! {
        div.block id=(table.id) {
            h4 { span id={ "title-" (table.id) } { (clean(&table.title)) } (permalink(&table.id)) }
            div.scroll tabindex="0" role="group" aria-labelledby={ "title-" (table.id) } {
                table class={ "figures" @if bare { " bare" } } aria-labelledby={ "title-" (table.id) } {
                    (table_head(names, table, bare))
                    (table_body(names, table, bare))
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
                @let HeadText { name, title, text } = head_of(subject.as_ref(), head);
                th.n scope="col" data-of=[name] title=[title] { (text) @if !bare { span.m {} } }
            }
        } }
    }
}

fn table_body(names: &Names<'_>, table: &Table, bare: bool) -> Markup {
    markup! {
        tbody {
            @for (number, row) in table.rows.iter().enumerate() {
                tr class=[row_class(table, number)] {
                    @for (head, text) in table.lead.iter().zip(&row.lead) {
                        @let subject = row_subject(names, head, text);
                        @let HeadText { name, title, text } = head_of(subject.as_ref(), text);
                        th scope="row" data-of=[name] title=[title] { (text) }
                    }
                    @for cell in &row.cells {
                        @let class = tone_class(cell.tone);
                        td class=[(!class.is_empty()).then_some(class)] style=[share(cell.share)] {
                            (clean(&cell.text)) @if !bare { span.m { (mark(&cell.mark)) } }
                        }
                    }
                }
            }
        }
    }
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

/// Returns the style for the shade of a share.
fn share(share: u8) -> Option<String> {
    (share > 0).then(|| format!("--share:{}%", u32::from(share) * 2))
}

/// Returns a mark with a minus sign that is as visible as a plus.
fn mark(mark: &str) -> String {
    mark.replace('-', "\u{2212}")
}
