//! Two targets side by side: of one run, or of two.

use maud::{Markup, html as markup};

use super::run::select;
use super::{address, page, paths, shown};
use crate::model::comparison::Comparison;
use crate::model::names::Names;
use crate::model::number::typeset;
use crate::model::table::Table;
use crate::model::text::clean;
use crate::printers::page::{finding_section, marked, overview, table};
use crate::prose::answer;
use crate::prose::method::Method;
use crate::tables::compared::{self, Board};

/// The two sides of a comparison.
#[derive(Clone, Debug)]
pub struct ComparedSides<'a> {
    /// The side with which the other is compared.
    pub base: SideChoice<'a>,
    /// The other side.
    pub other: SideChoice<'a>,
}

/// A side of a comparison, with the other targets that it could be.
#[derive(Clone, Debug)]
pub struct SideChoice<'a> {
    /// The name of the run's directory.
    pub run: &'a str,
    /// The target.
    pub target: &'a str,
    /// All targets of the run.
    pub targets: &'a [String],
}

/// Returns a comparison as a page.
pub fn comparison_page(sides: &ComparedSides<'_>, comparison: &Comparison<'_>) -> String {
    let answer = answer::passage(comparison);
    let board = Board::new(comparison);

    let tables = [
        answer.figures.clone(),
        compared::other_verdicts(&board),
        compared::work(comparison),
        compared::costs(&board),
        compared::waits(comparison),
        compared::system_calls(comparison),
        compared::plans(comparison),
    ];
    let text = answer.text();

    let body = markup! {
        header {
            h1 { (prose(&answer.heading)) }
            @if !text.is_empty() { p { (prose(&text)) } }
            @if let Some(doubt) = &answer.doubt { p.note { (prose(doubt)) } }
            (choice(sides))
        }

        main {
            (overview(&board, ""))
            (tables_of(&tables.concat()))
            (finding_section(comparison.findings, ""))

            h2 { "Method" }
            @for text in Method::of_comparison(comparison.compared).all() { p.note { (marked(text)) } }
        }
    };
    page("Comparison", false, body)
}

/// Returns a page that says why two targets cannot be compared.
pub fn refused_page(sides: &ComparedSides<'_>, why: &str, help: Option<&str>) -> String {
    let body = markup! {
        header {
            h1 { "These targets cannot be compared" }
            p { (marked(why)) }
            @if let Some(help) = help { p { (marked(help)) } }
            (choice(sides))
        }
    };
    page("Comparison", false, body)
}

fn prose(text: &str) -> String {
    typeset(&clean(text))
}

fn tables_of(tables: &[Table]) -> Markup {
    markup! { @for of_comparison in tables { (table(&Names::default(), of_comparison)) } }
}

/// Returns the form with both sides, in which other targets can be chosen.
fn choice(sides: &ComparedSides<'_>) -> Markup {
    let ComparedSides { base, other } = sides;
    let swapped = [
        ("base", other.run),
        ("base_target", other.target),
        ("other", base.run),
        ("other_target", base.target),
    ];

    let [chosen_base, chosen_other] =
        [base, other].map(|side| side.targets.iter().find(|target| *target == side.target));

    markup! {
        form method="get" action=(address(paths::COMPARE, &[])) {
            input type="hidden" name="base" value=(base.run);
            input type="hidden" name="other" value=(other.run);
            p {
                "A: " (run_link(base.run)) " " (select("base_target", base.targets, chosen_base))
                " B: " (run_link(other.run)) " " (select("other_target", other.targets, chosen_other))
                " " button { "Compare" } " " a href=(address(paths::COMPARE, &swapped)) { "swap" }
            }
        }
    }
}

fn run_link(run: &str) -> Markup {
    markup! { a href=(address(paths::RUN, &[("name", run)])) { (shown(run)) } }
}
