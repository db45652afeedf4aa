//! The parts of a page that compare: an answer's basis, the summary, and exact work. Each has a part
//! for each group of targets that share a base.

use analysis::figures::Figures;
use maud::{Markup, html as markup};
use record::Run;

use super::{NamedMatrix, Source, marked, measured_targets, overview, passages, permalink, plots};
use crate::model::comparison::{ComparedGroup, Comparison};
use crate::model::matrix::Matrix;
use crate::model::names::Names;
use crate::model::table::{Table, anchor};
use crate::model::text::clean;
use crate::printers::page::table::table;
use crate::prose::method::Method;
use crate::prose::run::targets;
use crate::tables::compared::{self, Board};
use crate::tables::{classic, grouped, homes, lsm, max_rates, pauses, quality, searches};

/// A group of targets, and the board that its matrices, plots and tables share.
pub(super) struct GroupBoard<'a> {
    group: &'a ComparedGroup<'a>,
    board: Board<'a>,
}

impl<'a> GroupBoard<'a> {
    /// Returns each group with its board.
    pub(super) fn of_all(groups: &'a [ComparedGroup<'a>]) -> Vec<Self> {
        let boards =
            groups.iter().map(|group| Self { group, board: Board::new(&group.comparison) });
        boards.collect()
    }

    fn has_rows(&self) -> bool {
        !self.group.comparison.compared.rows.is_empty()
    }
}

/// Returns what the answer rests on: the matrices and the findings.
pub(super) fn basis_of_answer(
    named: NamedMatrix<'_>,
    groups: &[GroupBoard<'_>],
    across: Option<&Comparison<'_>>,
) -> Markup {
    let NamedMatrix { matrix, names } = named;
    let is_compared = groups.iter().any(GroupBoard::has_rows);

    markup! {
        section id="answer" aria-label="the basis of the answer" {
            @for GroupBoard { group, board } in groups {
                @let Comparison { run, figures, findings, .. } = group.comparison;
                (overview::overview(board, &scope(group)))
                @if run.search.is_some() { (tables(names, searches::table(run, figures).into_iter().collect())) }
                (passages::findings(findings, &scope(group)))
            }

            @if let Some(across) = across { (overview::across(across)) }
            @let is_search = groups.iter().any(|each| each.group.comparison.run.search.is_some());
            @if !is_compared && !is_search { (tables(names, classic::summary(matrix))) }
        }
    }
}

/// Returns the end of the identifiers of a group's parts, which differ from those of other groups.
fn scope(group: &ComparedGroup<'_>) -> String {
    group.name.map_or_else(String::new, |name| format!("-{}", anchor(name)))
}

/// Returns the tables of a group with identifiers of their own.
fn tables_of(names: &Names<'_>, group: &ComparedGroup<'_>, mut all: Vec<Table>) -> Markup {
    for table in &mut all {
        table.id += &scope(group);
    }
    tables(names, all)
}

fn tables(names: &Names<'_>, tables: Vec<Table>) -> Markup {
    markup! { @for each in &tables { (table(names, each)) } }
}

/// Returns the section with the plots and the tables over all steps.
pub(super) fn summary(
    named: NamedMatrix<'_>,
    groups: &[GroupBoard<'_>],
    sources: &[Source],
    figures: &Figures,
) -> Markup {
    let NamedMatrix { matrix, names } = named;

    markup! {
        section id="results" {
            h2 { "Summary" (permalink("results")) }
            @for GroupBoard { group, board } in groups {
                (plots::sections(board, &scope(group)))
                (passages::effects(&group.comparison.factor_effects(), &scope(group)))
            }
            (compared_summary(named, groups))

            // Runs that are compared have the same rates.
            (tables(names, sources.iter().find_map(|source| max_rates::table(&source.run)).into_iter().collect()))
            (tables(names, classic::rates(matrix)))
            (table(names, &lsm::stalled(matrix)))
            (table(names, &classic::fairness(matrix)))
            (tables(names, grouped::costs(matrix)))

            (folded("times, lengths and debt of each target", markup! {
                (tables(names, grouped::times(matrix)))
                (tables(names, classic::lengths(matrix)))
                (table(names, &homes::homes(matrix)))
                (table(names, &pauses::pauses(matrix)))
                (table(names, &quality::debt(matrix)))
            }))
            (folded("targets", markup! { @for (number, source) in sources.iter().enumerate() {
                    (target_list(&source.run, &measured_targets(figures, number)))
                } }))

            (unreported(matrix))
        }
    }
}

/// Returns the tables of a summary that need something to compare.
fn compared_summary(named: NamedMatrix<'_>, groups: &[GroupBoard<'_>]) -> Markup {
    let NamedMatrix { matrix, names } = named;

    markup! {
        @if groups.iter().any(GroupBoard::has_rows) { (tables(names, classic::summary(matrix))) }
        @for GroupBoard { group, board } in groups.iter().filter(|each| each.has_rows()) {
            @let comparison = &group.comparison;
            @let ratios = tables_of(names, group, compared::verdicts(board));
            @if board.has_one_target() {
                (ratios)
            } @else {
                (folded("throughput relative to the base, in figures", ratios))
            }
            (tables_of(names, group, compared::other_verdicts(board)))
            (tables_of(names, group, compared::costs(board)))

            (folded("waits and plans that differ", markup! {
                (tables_of(names, group, compared::waits(comparison)))
                (tables_of(names, group, compared::system_calls(comparison)))
                (tables_of(names, group, compared::plans(comparison)))
            }))

            (folded("how targets were compared", markup! {
                @for text in Method::of_comparison(comparison.compared).all() { p { (marked(text)) } }
            }))
        }
    }
}

/// Returns the section of exact work; empty without exact cells.
pub(super) fn work(names: &Names<'_>, groups: &[ComparedGroup<'_>]) -> Markup {
    let of_groups =
        groups.iter().map(|group| tables_of(names, group, compared::work(&group.comparison)));
    let has_exact = |group: &ComparedGroup<'_>| !group.comparison.figures.exact.is_empty();
    let of_groups: Vec<Markup> = of_groups.collect();
    markup! {
        @if groups.iter().any(has_exact) {
            section id="exact-work" {
                h2 { "Work" (permalink("exact-work")) }
                @for tables in of_groups { (tables) }
            }
        }
    }
}

/// Returns folded content; nothing without content.
fn folded(what: &str, content: Markup) -> Markup {
    let is_empty = content.0.is_empty();
    markup! { @if !is_empty { details { summary { (what) } (content) } } }
}

/// Returns the targets of a run that were measured as a list.
fn target_list(run: &Run, measured: &[&str]) -> Markup {
    let is_planned = |name: &str| run.targets.iter().any(|target| target.name == name);
    let mut lines = targets(run);

    // What all targets of an engine share has a line without a target.
    lines.retain(|line| {
        measured.is_empty() || !is_planned(&line.name) || measured.contains(&line.name.as_str())
    });

    markup! {
        dl.targets {
            @for target in &lines { div { dt { (clean(&target.name)) } dd { (clean(&target.text)) } } }
        }
    }
}

/// Returns the steps that are not reported, in one folded line.
fn unreported(matrix: &Matrix<'_>) -> Markup {
    let steps = &matrix.unreported;
    let names: Vec<String> = steps.iter().map(|step| clean(step.name)).collect();

    markup! {
        @if !names.is_empty() {
            details id="unreported" {
                summary { "steps that were run but not reported (" (names.len()) ")" }
                p { (names.join(", ")) }
            }
        }
    }
}
