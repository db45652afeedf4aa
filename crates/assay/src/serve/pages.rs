//! The pages: what an address shows of the runs.

use std::time::Duration;

use analysis::compare::{CompareOptions, EFFECT, Effects, compare, costs};
use analysis::compat::{Incomparable, Recorded, RunTarget, by_pair};
use analysis::explain::explain;
use analysis::figures::Series;
use inquiry::page;
use inquiry::reading::{figures, read_until_stable};
use inquiry::shelf::{Index, IndexedRun};
use record::RunDir;
use report::{
    CatalogRow, ComparedRun, ComparedSides, Comparison, Curves, Outline, RunList, RunPage,
    RunState, SideChoice, paths,
};

use super::query::Query;
use super::step_history::step_history;
use crate::http::{Content, HTML};

/// The number of runs on a page.
const RUNS_A_PAGE: usize = 100;
/// The time for which a page waits until records were read.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// Returns the page at an address.
pub(super) fn answer(target: &str, index: &Index) -> anyhow::Result<Content> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = Query::read(query);

    match path {
        paths::LIST => list(&query, index),
        paths::RUN => {
            // A reader does not wait until the results of all newer runs were read.
            index.run_with_results(query.text("name"))?;
            of_run(index, query.text("name"), |run, outline| Ok(run_page(run, outline)))
        }
        paths::REPORT => of_run(index, query.text("name"), |run, _| report_of(run)),
        paths::HISTORY => of_run(index, query.text("name"), |_, outline| {
            step_history(index, outline, query.text("step"))
        }),
        paths::COMPARE => of_run(index, query.text("base"), |base, _| {
            let Some(other) = index.run(query.text("other"))? else {
                return Ok(not_found(query.text("other")));
            };
            compared(&query, base, &other)
        }),
        _ => Ok(Content::text("404 Not Found", "there is no such page")),
    }
}

/// Returns a page about a run whose facts can be read.
fn of_run<P: Into<Page>>(
    index: &Index,
    name: &str,
    page: impl FnOnce(&IndexedRun, &Outline) -> anyhow::Result<P>,
) -> anyhow::Result<Content> {
    let Some(run) = index.run(name)? else {
        return Ok(not_found(name));
    };

    match &run.outline {
        Some(Ok(outline)) => Ok(page(&run, outline)?.into().0),
        Some(Err(why)) => {
            Ok(Content::text("422 Unprocessable Content", &report::terminal_text(why)))
        }
        None => Ok(not_found(name)),
    }
}

/// An answer that is a page, or another one.
struct Page(Content);

impl From<String> for Page {
    fn from(html: String) -> Self {
        Self(Content::ok(HTML, html))
    }
}

impl From<Content> for Page {
    fn from(content: Content) -> Self {
        Self(content)
    }
}

fn not_found(name: &str) -> Content {
    let name = report::terminal_text(name);
    Content::text("404 Not Found", &format!("there is no run `{name}`"))
}

fn run_page(run: &IndexedRun, outline: &Outline) -> String {
    let steps = run.known_results().map_or(&[][..], |results| &results.summary.steps);
    let result = result_of(run).unwrap_or("Its results were not read yet.");
    report::run_page(&RunPage { name: &run.name, outline, result, steps })
}

/// Returns the result of a run in a few words, or why it has none; `None`: it was not read yet.
fn result_of(run: &IndexedRun) -> Option<&str> {
    match run.results.as_ref()? {
        Ok(results) => Some(&results.brief),
        Err(why) => Some(why),
    }
}

fn list(query: &Query, index: &Index) -> anyhow::Result<Content> {
    let runs = index.runs(PATIENCE)?;
    let filter = query.text("q");
    let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
    let selected: Vec<&IndexedRun> =
        runs.iter().filter(|run| words.iter().all(|word| has_word(run, word))).collect();

    let page_count = selected.len().div_ceil(RUNS_A_PAGE).max(1);
    let page = query.text("page").parse().unwrap_or(1).clamp(1, page_count);
    let rows = selected.iter().skip((page - 1) * RUNS_A_PAGE).take(RUNS_A_PAGE);
    let folder = index.folder().display().to_string();
    // A run whose facts cannot be read has no results either.
    let is_read = |run: &&IndexedRun| run.results.is_some() || matches!(run.outline, Some(Err(_)));

    Ok(Content::ok(
        HTML,
        report::list_page(&RunList {
            folder: &folder,
            filter,
            rows: rows.map(|run| row(run)).collect(),
            selected: selected.len(),
            count: runs.len(),
            outlines_read: runs.iter().filter(|run| run.outline.is_some()).count(),
            results_read: runs.iter().filter(is_read).count(),
            page,
            page_count,
        }),
    ))
}

fn row(run: &IndexedRun) -> CatalogRow<'_> {
    let outline = run.outline.as_ref().map(|outline| match outline {
        Ok(outline) => Ok(&**outline),
        Err(why) => Err(why.as_str()),
    });

    let result = run.results.as_ref().map(|results| match results {
        Ok(results) => Ok(results.brief.as_str()),
        Err(why) => Err(why.as_str()),
    });

    CatalogRow { name: &run.name, outline, result }
}

/// Returns whether a run has a word, in small letters, in anything that the list shows of it.
fn has_word(run: &IndexedRun, word: &str) -> bool {
    let has = |text: &str| text.to_lowercase().contains(word);
    let is_in_facts = run.facts().is_some_and(|outline| {
        let lists = [&outline.targets, &outline.steps, &outline.engines];
        has(&outline.plan)
            || is_named(outline.state, word)
            || lists.into_iter().flatten().any(|name| has(name))
    });

    has(&run.name) || is_in_facts || result_of(run).is_some_and(has)
}

/// Returns whether a word begins one of a state's own: `complete` is not a part of `incomplete`.
fn is_named(state: RunState, word: &str) -> bool {
    state.text().split(' ').any(|own| own.starts_with(word))
}

fn report_of(run: &IndexedRun) -> anyhow::Result<String> {
    read_until_stable(&[&run.path], || {
        let directories = [RunDir::open(&run.path)?];
        let (figures, curves) = figures(&directories, Curves::take)?;
        page::html_of(&directories[0], &figures, &curves)
    })
}

/// Compares a target of one run with a target of another, or of the same run.
fn compared(query: &Query, base: &IndexedRun, other: &IndexedRun) -> anyhow::Result<Content> {
    let (Some(base_facts), Some(other_facts)) = (base.facts(), other.facts()) else {
        return Ok(not_found(&other.name));
    };
    let is_same_run = base.name == other.name;

    let base_target = query.given("base_target").unwrap_or(&base_facts.base);
    let other_target = query
        .given("other_target")
        .unwrap_or_else(|| default_other(other_facts, base_target, is_same_run));
    let sides = ComparedSides {
        base: SideChoice { run: &base.name, target: base_target, targets: &base_facts.targets },
        other: SideChoice { run: &other.name, target: other_target, targets: &other_facts.targets },
    };

    let runs = if is_same_run { vec![base] } else { vec![base, other] };
    let places: Vec<_> = runs.iter().map(|run| &run.path).collect();
    let html = read_until_stable(&places, || comparison_html(&sides, &runs))?;

    Ok(Content::ok(HTML, html))
}

/// Returns the target that is compared if none is chosen: in another run the same one, if it has
/// it.
fn default_other<'o>(other: &'o Outline, base_target: &'o str, is_same_run: bool) -> &'o str {
    let has_base = other.targets.iter().any(|target| target == base_target);
    if has_base && !is_same_run {
        return base_target;
    }

    let different = other.targets.iter().find(|target| *target != base_target);
    different.unwrap_or(&other.base)
}

fn comparison_html(sides: &ComparedSides<'_>, runs: &[&IndexedRun]) -> anyhow::Result<String> {
    let opened: Result<Vec<_>, _> = runs.iter().map(|run| RunDir::open(&run.path)).collect();
    let directories = opened?;
    let recorded = Recorded::read(&directories)?;
    // The seconds of many long steps would take gigabytes; the rows have their totals.
    let (mut figures, _) = figures(&directories, |row| row.series = Series::default())?;

    let of_sides = [
        RunTarget { run: 0, target: sides.base.target },
        RunTarget { run: runs.len() - 1, target: sides.other.target },
    ];
    let (shown, notes) = match by_pair(&recorded, &mut figures, of_sides) {
        Ok(pair) => pair,
        Err(refusal) => return Ok(refused(sides, &refusal)),
    };

    let options = CompareOptions {
        base: shown.base.clone(),
        effect: figures.effect.unwrap_or(EFFECT),
        metrics: costs(&figures),
        ..CompareOptions::default()
    };
    let mut compared = compare(&figures, &options);
    compared.notes.extend(notes);
    let findings = explain(&figures, &compared);

    let mut compared_runs = Vec::new();
    for (run, recorded) in runs.iter().zip(&recorded) {
        compared_runs.push(ComparedRun { name: run.name.clone(), run: &recorded.run });
    }
    let comparison = Comparison {
        run: &shown,
        runs: &compared_runs,
        figures: &figures,
        compared: &compared,
        effects: &Effects::default(),
        findings: &findings,
    };

    Ok(report::comparison_page(sides, &comparison))
}

fn refused(sides: &ComparedSides<'_>, refusal: &Incomparable) -> String {
    report::refused_page(sides, &refusal.to_string(), Some(refusal.help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_for_complete_runs_leaves_out_incomplete_ones() {
        assert!(is_named(RunState::Complete, "complete"));
        assert!(!is_named(RunState::Incomplete, "complete"));
        assert!(is_named(RunState::Incomplete, "incomp"));
        assert!(is_named(RunState::InProgress, "progress"));
    }
}
