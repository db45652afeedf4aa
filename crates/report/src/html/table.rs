//! A table of figures as the page shows it: each mark and colour with its meaning.

use maud::{Markup, html as markup};

use crate::html::{clean, marked};
use crate::table::{Table, Tone};

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::SlaMissed => "sla",
        // What costs less is as good as what is faster.
        Tone::Faster | Tone::CostsLess => "better",
        Tone::Slower | Tone::CostsMore => "worse",
        Tone::Noisy => "sla",
        Tone::Coarse => "coarse",
        Tone::Invalid => "invalid",
        Tone::Failed => "failed",
        Tone::Unjudged | Tone::Absent => "absent",
    }
}

/// A table in a box of its own that scrolls, with the meaning of its marks.
pub(crate) fn table(table: &Table) -> Markup {
    if table.is_empty() {
        return markup! {};
    }
    let legend = table.legend();
    let bare = table.cells().all(|cell| cell.mark.is_empty());
    markup! {
        div.block id=(table.id) {
            h4 id={ "title-" (table.id) } { (clean(&table.title)) }
            div.scroll tabindex="0" role="group" aria-labelledby={ "title-" (table.id) } {
                table class={ "figures" @if bare { " bare" } } aria-labelledby={ "title-" (table.id) } {
                    thead { tr {
                        @for head in &table.lead { th scope="col" { (clean(head)) } }
                        @for head in &table.columns { th.n scope="col" { (clean(head)) @if !bare { span.m {} } } }
                    } }
                    tbody {
                        @for (number, row) in table.rows.iter().enumerate() {
                            tr class=[row_class(table, number)] {
                                @for text in &row.lead { th scope="row" { (clean(text)) } }
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

/// Rows that say what was asked for, and the first of those that are compared with each other.
fn row_class(table: &Table, number: usize) -> Option<&'static str> {
    match (table.rows[number].target, table.begins_group(number)) {
        (true, _) => Some("target"),
        (_, true) => Some("group"),
        _ if table.begins_test(number) => Some("test"),
        _ => None,
    }
}

/// How dark the cell of a share is.
fn share(share: u8) -> Option<String> {
    (share > 0).then(|| format!("--share:{}%", u32::from(share) * 2))
}

/// A mark with a minus that is as easy to see as a plus.
fn mark(mark: &str) -> String {
    mark.replace('-', "\u{2212}")
}
