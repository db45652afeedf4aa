//! The list of runs.

use maud::{Markup, html as markup};

use super::{address, page, paths, shown};
use crate::model::number::{listed, whole};
use crate::model::outline::Outline;

/// The most targets of a run that the list names.
const TARGETS_SHOWN: usize = 3;

/// Runs that a filter selects, and those of them that a page shows.
#[derive(Clone, Debug, Default)]
pub struct RunList<'a> {
    /// The folder.
    pub folder: &'a str,
    /// The words of the filter.
    pub filter: &'a str,
    /// The runs of this page.
    pub rows: Vec<CatalogRow<'a>>,
    /// The number of runs that the filter selects.
    pub selected: usize,
    /// The number of runs in the folder.
    pub count: usize,
    /// The number of runs whose `run.json` was read.
    pub outlines_read: usize,
    /// The number of runs whose results are known.
    pub results_read: usize,
    /// The number of this page, from 1.
    pub page: usize,
    /// The number of pages.
    pub page_count: usize,
}

/// A run in the list.
#[derive(Clone, Debug)]
pub struct CatalogRow<'a> {
    /// The name of the directory.
    pub name: &'a str,
    /// The facts of the run; `None`: they were not read yet.
    pub outline: Option<Result<&'a Outline, &'a str>>,
    /// The result in a few words; `None`: it was not read yet.
    pub result: Option<Result<&'a str, &'a str>>,
}

/// Returns the list as a page.
pub fn list_page(list: &RunList<'_>) -> String {
    let is_incomplete = list.outlines_read < list.count;

    let body = markup! {
        header {
            h1 { "Runs in " (shown(list.folder)) }
            p.soft { (extent(list)) }
        }

        main {
            form.filter method="get" action=(address(paths::LIST, &[])) role="search" {
                input type="search" name="q" value=(list.filter) aria-label="words of names, plans, targets, steps, states or results"
                    placeholder="name, plan, target, step, state or result";
                button { "Filter" }
            }
            @if list.rows.is_empty() { p { "No run has all of these words." } } @else { (runs(list)) }
            (pages(list))
        }
    };
    page("Runs", is_incomplete, body)
}

/// Returns how many runs are listed, and how many were not read yet.
fn extent(list: &RunList<'_>) -> String {
    let number = |count: usize| whole(count as u64);

    let mut text = match list.count {
        1 => "1 run".to_owned(),
        count => format!("{} runs", number(count)),
    };

    if !list.filter.is_empty() {
        text = format!("{} of {text}", number(list.selected));
    }

    if list.outlines_read < list.count {
        text += &format!("; {} were read so far", number(list.outlines_read));
    } else if list.results_read < list.count {
        text += &format!("; the results of {} are known so far", number(list.results_read));
    }
    text
}

fn runs(list: &RunList<'_>) -> Markup {
    markup! {
        form method="get" action=(address(paths::COMPARE, &[])) {
            p { button { "Compare" } " the run chosen under A with the one under B; their targets are chosen next." }
            div.scroll tabindex="0" role="group" aria-label="runs" {
                table.figures.bare {
                    thead { tr {
                        @for head in ["A", "B", "run", "started (UTC)", "targets", "steps", "state", "result", ""] {
                            th.text scope="col" { (head) }
                        }
                    } }
                    tbody { @for (number, row) in list.rows.iter().enumerate() { (line(row, number)) } }
                }
            }
        }
    }
}

fn line(row: &CatalogRow<'_>, number: usize) -> Markup {
    let run_address = address(paths::RUN, &[("name", row.name)]);
    let result = match row.result {
        Some(Ok(text) | Err(text)) => shown(text),
        None => "…".to_owned(),
    };

    markup! {
        tr {
            td { input type="radio" name="base" value=(row.name) checked[number == 1] aria-label={ "A: " (row.name) }; }
            td { input type="radio" name="other" value=(row.name) checked[number == 0] aria-label={ "B: " (row.name) }; }
            th.text scope="row" { a href=(run_address) { (shown(row.name)) } }

            @match row.outline {
                Some(Ok(outline)) => {
                    td.text { (outline.started()) }
                    td.text title=(shown(&outline.targets.join(", "))) { (shown(&listed(&outline.targets, TARGETS_SHOWN, ", "))) }
                    td title=(shown(&outline.steps.join(", "))) { (outline.steps.len()) }
                    td.text { (outline.state.text()) }
                    td.text { (result) }
                    td.text { a href=(address(paths::REPORT, &[("name", row.name)])) { "report" } }
                }
                Some(Err(why)) => {
                    td {} td {} td {}
                    td.text { "unreadable" }
                    td.text { (shown(why)) }
                    td {}
                }
                None => { td {} td {} td {} td.text { "…" } td {} td {} }
            }
        }
    }
}

fn pages(list: &RunList<'_>) -> Markup {
    let of_page = |page: usize| {
        let number = page.to_string();
        address(paths::LIST, &[("q", list.filter), ("page", &number)])
    };
    markup! {
        @if list.page_count > 1 {
            p.pages {
                @if list.page > 1 { a href=(of_page(list.page - 1)) { "newer" } }
                span { "page " (list.page) " of " (list.page_count) }
                @if list.page < list.page_count { a href=(of_page(list.page + 1)) { "older" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use record::Run;

    use super::*;

    #[test]
    fn what_a_stranger_wrote_is_text_in_the_list() {
        let run = Run { name: "<script>alert(1)</script>".into(), ..Run::default() };
        let outline = Outline::new(&run);
        let row = CatalogRow {
            name: "2026\"><img src=x>",
            outline: Some(Ok(&outline)),
            result: Some(Ok("<b>")),
        };
        let list = RunList {
            folder: "results",
            rows: vec![row],
            count: 1,
            outlines_read: 1,
            results_read: 1,
            page: 1,
            page_count: 1,
            ..RunList::default()
        };
        let html = list_page(&list);
        assert!(!html.contains("<script>") && !html.contains("<img") && !html.contains("<b>"));
        assert!(html.contains("default-src 'none'"), "{html}");
        assert!(!html.contains("http-equiv=\"refresh\""));
    }
}
