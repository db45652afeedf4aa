//! One self-contained HTML file: tables that can be read without scripts and without color, and
//! charts that are drawn when they come into view.
//!
//! ```text
//! Row ──► Curves ──► Chart ──► Plot       one row, a chart of all lines, JSON in the page
//!           │          └─ Budget          fewer points per curve, until the page is small enough
//!           ├─ load, host, engine, tree, waits
//!           └─ turns                      ratios to the base, turn by turn
//! Page ─┬─ head, answer, summary
//!       ├─ passages    findings, effects of factors
//!       ├─ overview    the matrix of all steps and targets
//!       ├─ groups      what each base is compared with
//!       ├─ plots       charts over targets, clients and rates
//!       ├─ problems    what failed, and what to do
//!       ├─ step        a section for each step: tables, charts, marks
//!       ├─ legend      a color for each target
//!       ├─ functions   flame graphs
//!       └─ appendix    host, settings, plan, method
//! ```
//!
//! A report can be mailed, so everything in it is bounded: [`Curves`] replace a row's seconds as
//! soon as the row was read, all charts share a [`Budget`], and flame graphs lose small frames.
//! uPlot draws the charts; it is embedded once and is small (50 KB). The files in `page/uplot` are
//! those of version 1.6.32, unchanged, with their license.
//!
//! Text comes from engines, plans and other hosts, so [`clean`] removes its control characters, and
//! the page's content security policy forbids it to load anything.

mod appendix;
mod brief;
mod charts;
mod curve;
mod distributions;
pub(crate) mod encode;
mod engine;
mod flame;
mod functions;
mod groups;
mod host;
mod legend;
mod live;
mod load;
mod marks;
mod overview;
mod passages;
mod plots;
mod problems;
mod seconds;
mod step;
mod table;
mod tree;
mod turns;
mod waits;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;

use analysis::{compat::VariantSides, counted, distinct, figures::Figures};
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};
use record::{Cell, Run, Status, Step};

use crate::model::comparison::{ComparedGroup, Subject};
use crate::model::matrix::{CellLine, Keys, Matrix};
use crate::model::names::Names;
use crate::model::number::{moment, typeset};
use crate::model::table::anchor;
use crate::model::text::clean;
use crate::plot;
use crate::printers::html::{Head, STYLE};
use crate::prose::answer;
use crate::prose::problems::{Problem, problems as all_problems};
use crate::prose::run::{ended, took};
use crate::prose::validity::Validity;
use charts::{Budget, Index};
use groups::GroupBoard;
use legend::Legend;
pub(crate) use overview::overview;
pub(crate) use passages::findings as finding_section;
use problems::failures;
use step::StepCharts;
pub(crate) use table::table;

pub use curve::Curves;
pub use live::live_page;

/// The scripts: the one that draws charts, and one for each concern. All need `view.js`; the last
/// scrolls to the part that the address names.
const SCRIPTS: [&str; 13] = [
    UPLOT_SCRIPT,
    include_str!("script/view.js"),
    include_str!("script/tips.js"),
    include_str!("script/data.js"),
    include_str!("script/charts.js"),
    include_str!("script/flame.js"),
    include_str!("script/filter.js"),
    include_str!("script/sort.js"),
    include_str!("script/rank.js"),
    include_str!("script/repeats.js"),
    include_str!("script/folds.js"),
    include_str!("script/cut.js"),
    include_str!("script/contents.js"),
];
const UPLOT_SCRIPT: &str = include_str!("uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("uplot/uPlot.min.css");
const UPLOT_LICENSE: &str = include_str!("uplot/LICENSE");

/// The record of a run, which a report needs besides the figures.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// `run.json`
    pub run: Run,
    /// The cells that were begun.
    pub cells: Vec<CellRecord>,
}

/// The record of a cell.
#[derive(Clone, Debug, Default)]
pub struct CellRecord {
    /// `cell.json`
    pub cell: Cell,
    /// `step.json` of each of its steps.
    pub steps: Vec<Step>,
}

/// The contents of a report.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The runs. The first one determines the base and the order of targets; without a run the
    /// report is empty.
    pub sources: &'a [Source],
    /// The figures of all runs.
    pub figures: &'a Figures,
    /// The curves of the figures' rows, in their order.
    pub curves: &'a [Curves],
    /// Remarks on how several runs differ, a sentence each.
    pub notes: &'a [String],
}

/// Returns a report as one HTML file.
pub fn html_page(page: &Page<'_>) -> String {
    let planned = first_run(page.sources);
    let subject = Subject::of(&planned, page.figures);
    let sources = sources_of(page, &subject);
    page_about(&subject, &Page { sources: &sources, figures: &subject.figures, ..*page })
}

/// Returns a page about a subject. Its records and figures have the subject's names already.
fn page_about(subject: &Subject<'_>, page: &Page<'_>) -> String {
    let Page { sources, figures, .. } = *page;
    let run = &*subject.run;
    let matrix = Matrix::new(run, figures);
    let names = Names::new(&matrix, figures);
    let named = NamedMatrix { matrix: &matrix, names: &names };

    // What the page says: verdicts, and what went wrong.
    let explained = subject.explained();
    let compared = explained.all();
    let groups = GroupBoard::of_all(&compared);
    let across = explained.across(run, figures);
    let runs: Vec<&Run> = sources.iter().map(|source| &source.run).collect();
    let problems = all_problems(&runs, figures, &matrix);

    // What it draws. All charts share one budget, which bounds the size of the page.
    let index = Index::new(figures, page.curves);
    let steps: Vec<_> =
        matrix.measured().map(|step| StepCharts::of(&matrix, &index, step)).collect();
    let ratios = steps.iter().filter_map(|step| step.ratios.as_ref());
    let budget = Budget::of(steps.iter().flat_map(|step| &step.charts), ratios);

    let legend = Legend::of(&matrix);

    let head = Head {
        title: &window_title(sources),
        scripts: &SCRIPTS,
        styles: &[UPLOT_STYLE, STYLE, plot::STYLE],
        ..Head::default()
    };

    markup! {
        (DOCTYPE)
        html lang="en" {
            (head)

            body {
                a.skip href="#answer" { "Skip to the answer" }
                (contents(&matrix, figures))
                (header(page, run, &names, &compared, &problems))
                main {
                    (groups::basis_of_answer(named, &groups, across.as_ref()))
                    (groups::summary(named, &groups, sources, figures))

                    (problems::section(page, &problems))
                    (step::sections(named, &compared, &legend, &steps, budget, sources))
                    (groups::work(&names, &compared))
                    (functions::section(&names, figures, &compared))
                    (appendix::sections(&names, sources, figures))
                }

                (legend.data(named))
                @for each in SCRIPTS { script { (PreEscaped(each)) } }
            }
        }
    }
    .into_string()
}

/// Returns the title of the window: the names of the runs.
fn window_title(sources: &[Source]) -> String {
    let names: Vec<String> = sources.iter().map(|source| clean(&source.run.name)).collect();
    format!("{} - Assay", names.join(", "))
}

/// Returns the records of a page, with variants in the place of targets if these are compared.
fn sources_of<'p>(page: &Page<'p>, subject: &Subject<'_>) -> Cow<'p, [Source]> {
    let Some(sides) = &subject.variants else {
        return Cow::Borrowed(page.sources);
    };

    let mut sources = page.sources.to_vec();
    variants_as_targets(&mut sources, sides, &subject.run.base);
    Cow::Owned(sources)
}

/// Gives records the names of variants in the place of targets; `base` is the base variant.
pub fn variants_as_targets(sources: &mut [Source], sides: &VariantSides, base: &str) {
    for source in sources {
        source.run = sides.run(&source.run, base);
        for record in &mut source.cells {
            record.cell.key = sides.key(&record.cell.key);
        }
    }
}

/// Returns the first run, whose plan says which bases there are. If there are several, it has the
/// targets of the other runs, too: each has a base by its engine or build.
fn first_run(sources: &[Source]) -> Run {
    let mut run = sources.first().map(|source| source.run.clone()).unwrap_or_default();
    let others = sources.iter().skip(1).flat_map(|source| &source.run.targets);
    for target in others.filter(|_| !run.bases.is_empty()) {
        if run.targets.iter().all(|known| known.name != target.name) {
            run.targets.push(target.clone());
        }
    }
    run
}

/// The lines and steps of a page, with their names.
#[derive(Clone, Copy)]
struct NamedMatrix<'p> {
    matrix: &'p Matrix<'p>,
    names: &'p Names<'p>,
}

impl NamedMatrix<'_> {
    /// Returns the label of a line without what all targets share.
    fn short_label(&self, line: &CellLine<'_>) -> String {
        clean(&self.names.short(&self.matrix.label(line)))
    }
}

/// Returns the first screen: the runs, the answer, and reasons to doubt it.
fn header(
    page: &Page<'_>,
    run: &Run,
    names: &Names<'_>,
    groups: &[ComparedGroup<'_>],
    problems: &[Problem],
) -> Markup {
    let sources = page.sources;
    let answers = groups.iter().map(|group| answer::passage(&group.comparison));
    markup! {
        header {
            @for (number, source) in sources.iter().enumerate() {
                (head(names, source, &Measured::of(page.figures, number), (sources.len() > 1).then_some(number + 1)))
            }

            @for answer in answers {
                h1 { (typeset(&clean(&answer.heading))) }
                @for sentence in answer.sentences.iter().chain(&answer.remedy) { p.more { (marked(sentence)) } }
            }

            (other_bases(sources, run))
            (judgement(page.figures))
            (failures(problems, sources))
        }
    }
}

/// Returns a sentence about each base that is not that of the plan.
fn other_bases(sources: &[Source], run: &Run) -> Markup {
    let mut replaced: Vec<(&str, &str)> = Vec::new();
    if let Some(source) = sources.first() {
        let planned = &source.run;
        replaced.push((&planned.base, &run.base));
        for base in &run.bases {
            let mut before = planned.bases.iter();
            let before = before.find(|planned| planned.group == base.group);
            replaced.extend(before.map(|before| (before.target.as_str(), base.target.as_str())));
        }
    }
    replaced.retain(|(planned, measured)| planned != measured);

    markup! {
        @for (planned, measured) in distinct(replaced) {
            p.note { "The plan's base, " (clean(planned)) ", was not measured: " (clean(measured)) " takes its place." }
        }
    }
}

/// Returns a link from a heading to itself.
pub(crate) fn permalink(id: &str) -> Markup {
    markup! { a.permalink href={ "#" (id) } aria-label="link to this part" { "#" } }
}

/// Returns whether all results are valid, as a paragraph.
fn judgement(figures: &Figures) -> Markup {
    let Validity { text, is_good } = Validity::of(figures);
    markup! {
        @if is_good {
            p { span.status.good { "\u{2713} " (text) } }
        } @else {
            p { a.status.doubt href="#problems" { "! " (text) } }
        }
    }
}

/// Returns the targets of a run, by its index, that were measured.
fn measured_targets(figures: &Figures, run: usize) -> Vec<&str> {
    distinct(figures.rows.iter().filter(|row| row.run == run).map(|row| row.cell.target.as_str()))
}

/// The targets and the repeats of a run that were measured.
struct Measured<'a> {
    targets: Vec<&'a str>,
    /// The noun for one of the targets.
    noun: &'static str,
    /// The most repeats that any target has.
    repeats: usize,
}

impl<'a> Measured<'a> {
    /// Returns those of a run, by its index.
    fn of(figures: &'a Figures, run: usize) -> Self {
        let targets = measured_targets(figures, run);
        let of_run = || figures.rows.iter().filter(|row| row.run == run);
        let repeats_of = |target: &&str| {
            let rows = of_run().filter(|row| row.cell.target == **target);
            distinct(rows.map(|row| row.cell.repeat)).len()
        };
        let repeats = targets.iter().map(repeats_of).max().unwrap_or(0);
        Self { targets, noun: figures.sides.noun(), repeats }
    }
}

/// Counts what was measured: `5 targets`, or `5 of 15 targets` of the plan.
fn measured_count(measured: usize, planned: usize, what: &str) -> String {
    if measured == 0 || measured >= planned {
        return counted(planned.max(measured), what);
    }
    format!("{measured} of {}", counted(planned, what))
}

/// Returns the plan of a run, its time and its outcome. Of several runs it has a number.
fn head(
    names: &Names<'_>,
    source: &Source,
    measured: &Measured<'_>,
    number: Option<usize>,
) -> Markup {
    let run = &source.run;
    let targets = &measured.targets;
    let class = if run.status == Status::Complete { "status" } else { "status bad" };
    let is_measured = |target: &str| targets.is_empty() || targets.contains(&target);
    let cells = run.cells.iter().map(|cell| &cell.key).filter(|cell| is_measured(&cell.target));

    let counts: BTreeSet<u32> = cells.clone().map(|cell| cell.clients).collect();
    let clients: Vec<String> = counts.iter().map(u32::to_string).collect();
    let repeats = cells.map(|cell| cell.repeat).max().unwrap_or(0);

    markup! {
        p.run {
            @if let Some(number) = number { "run " (number) ", " }
            b { (clean(&run.name)) } ": "
            span class=(class) { (ended(run)) } @if let Some(took) = took(run) { " in " (took) }
            ", started " (moment(run.started_unix_ns))
            " · " (measured_count(targets.len(), run.targets.len(), measured.noun))
            @if let Some(shared) = names.shared() { " · " (clean(&shared)) }
            @if !clients.is_empty() { " · " (clients.join(", ")) @if clients == ["1"] { " client" } @else { " clients" } }

            @if repeats > 1 { " · " (measured_count(measured.repeats, repeats as usize, "repeat")) }
            " · seed " (run.seed) " · assay " (clean(&run.assay.to_string()))
        }
    }
}

/// Returns the navigation, which stays in sight: links to the parts of the page, and the filter.
fn contents(matrix: &Matrix<'_>, figures: &Figures) -> Markup {
    let mut sections = vec![
        ("answer", "Answer"),
        ("results", "Summary"),
        ("problems", "Problems and warnings"),
        ("steps", "Steps"),
        ("exact-work", "Work"),
        ("functions", "Functions"),
        ("host", "Host"),
        ("settings", "Settings"),
        ("plan", "Plan"),
        ("method", "Method"),
    ];
    sections.retain(|(id, _)| match *id {
        "exact-work" => !figures.exact.is_empty(),
        "functions" => !figures.profiled.is_empty(),
        _ => true,
    });

    let filter = "show only matching targets and steps";

    markup! {
        nav aria-label="contents" {
            button.here type="button" aria-expanded="false" { "Contents" }
            ul { @for (id, title) in sections { li { a href={ "#" (id) } { (title) } } } }
            ul.steps {
                @for step in matrix.measured() {
                    li data-of=(clean(step.name)) { a href={ "#step-" (anchor(step.name)) } { (clean(step.name)) } }
                }
            }

            div.filter role="search" {
                input type="search" aria-label=(filter) placeholder="filter: pg17.* l.i*" autocomplete="off" spellcheck="false";
                output {}
            }
        }
    }
}

/// Returns text whose parts in backticks are code.
pub(crate) fn marked(text: &str) -> Markup {
    let text = clean(text);
    markup! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (typeset(part)) }
        }
    }
}

/// Returns a name that may be broken after dots, hyphens and underscores, but not within words.
pub(crate) fn breakable(name: &str) -> Markup {
    let name = clean(name);
    markup! {
        @for part in name.split_inclusive(['.', '_', '-']) { (part) wbr; }
    }
}

fn cell_label(cell: &Cell) -> String {
    let keys = Keys { variant: true, clients: true, repeat: true, run: false };
    clean(&keys.label(&cell.key, 0))
}
