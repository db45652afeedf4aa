//! The most important findings, and the number of the others.
//!
//! Each kind of statement has its words in a file; [`wording`] chooses the file. `tests.rs` puts every
//! statement in words, so that its snapshot is a page with all sentences.

pub(crate) mod cause;
mod caveat;
mod change;
mod clients;
mod difference;
mod disk_floor;
pub(crate) mod gap;
mod hidden_cost;
mod machines;
mod response;
mod sequence;
mod setting;
mod single;
mod swing;
#[cfg(test)]
mod tests;
mod witnesses;
pub(crate) mod wording;

use analysis::explain::{Evidence, FINDINGS_SHOWN_MAX, Finding};

use self::wording::Wording;
use super::Passage;
use super::amount::AmountChange;
use super::numbers::figure;
use crate::model::table::{Cell, Table};

/// The figure that always comes first.
const THROUGHPUT: &str = "throughput";
/// The figures in microseconds per operation that are no part of an operation's time.
const NO_PARTS: [&str; 3] = ["time of an operation", "background CPU", "CPU of the whole host"];
const PER_OPERATION: &str = "us/op";
/// The unit of response times.
const RESPONSE: &str = "us";

/// The maximum number of figures that a finding lists.
const FIGURES_MAX: usize = 10;

/// Findings as passages, the most important first.
#[derive(Default)]
pub(crate) struct FindingPassages {
    pub shown: Vec<Passage>,
    /// The number of the findings that are not shown, in a sentence.
    pub remainder: Option<String>,
}

impl FindingPassages {
    /// Returns the passages of `findings`, which are sorted. `microseconds` is the unit that the
    /// printer can show: `us` or `\u{b5}s`.
    pub(crate) fn of(findings: &[Finding], microseconds: &str) -> Self {
        let shown = findings.iter().take(FINDINGS_SHOWN_MAX).enumerate();
        Self {
            shown: shown
                .map(|(index, finding)| passage(finding, index + 1, microseconds))
                .collect(),
            remainder: remainder(findings.len()),
        }
    }
}

fn passage(finding: &Finding, number: usize, microseconds: &str) -> Passage {
    let wording = Wording::of(finding);
    Passage {
        heading: wording.title,
        sentences: wording.sentences,
        doubt: caveats(finding),
        figures: vec![evidence(finding, number, microseconds)],
        ..Passage::default()
    }
}

/// Lists the reasons to doubt a finding in one sentence.
fn caveats(finding: &Finding) -> Option<String> {
    let caveats = wording::caveats(finding);
    if caveats.is_empty() { None } else { Some(format!("Caveat: {}.", caveats.join("; "))) }
}

/// Returns the figures of a finding that changed, the most important first.
fn evidence(finding: &Finding, number: usize, microseconds: &str) -> Table {
    // The names of figures that are not compared have their targets.
    let is_compared = finding.evidence.iter().any(|figure| figure.base.is_some());
    let base = finding.base.as_deref().unwrap_or("expected");
    let heads = if is_compared { vec![base, &finding.target, "change"] } else { vec!["value"] };

    let mut table = Table::new(
        format!("finding-{number}"),
        "Figures",
        vec!["figure".to_owned(), "unit".to_owned()],
        heads,
    );
    for shown in by_importance(&finding.evidence).into_iter().take(FIGURES_MAX) {
        let mut cells = vec![value_cell(shown.value)];
        if is_compared {
            cells.insert(0, value_cell(shown.base));
            cells.push(Cell::plain(change(shown).unwrap_or_default()));
        }

        let unit = match shown.unit.strip_prefix("us") {
            Some(rest) => format!("{microseconds}{rest}"),
            None => shown.unit.clone(),
        };
        table.push(vec![shown.name.clone(), unit], cells);
    }

    table
}

/// Returns the figures that are shown. Throughput is followed by the figures that the title names, then
/// by the part of an operation's time and the count that changed the most. Figures whose repeats show no
/// change come last.
fn by_importance(evidence: &[Evidence]) -> Vec<&Evidence> {
    let mut rest: Vec<&Evidence> = evidence.iter().filter(|figure| figure.is_shown()).collect();
    // Of other findings, the rule has put the most important figure first.
    let is_of_change = rest.first().is_some_and(|first| first.name == THROUGHPUT);

    let mut leading = Vec::new();

    if is_of_change {
        leading.push(rest.remove(0));
        leading.extend(take_named(&mut rest));
        for size in [size_in_time, size_of_count] {
            let sizes =
                rest.iter().enumerate().filter_map(|(at, figure)| Some((at, size(figure)?)));
            let largest = sizes.max_by(|(_, a), (_, b)| a.total_cmp(b));
            if let Some((at, _)) = largest {
                leading.push(rest.remove(at));
            }
        }
    }

    let (noise, changed): (Vec<&Evidence>, Vec<&Evidence>) =
        rest.into_iter().partition(|figure| figure.is_noise);
    [leading, changed, noise].concat()
}

/// Takes the figures that the title names out of the others. Of two response times, the first stands for
/// both.
fn take_named<'e>(rest: &mut Vec<&'e Evidence>) -> Vec<&'e Evidence> {
    let mut named: Vec<&Evidence> = Vec::new();
    rest.retain(|&figure| {
        let is_second_time =
            figure.unit == RESPONSE && named.iter().any(|known| known.unit == RESPONSE);
        let is_named = figure.is_cause && !is_second_time;
        if is_named {
            named.push(figure);
        }
        !is_named
    });
    named
}

/// Returns the change of a part of an operation's time, in microseconds.
fn size_in_time(figure: &Evidence) -> Option<f64> {
    let is_part = figure.unit == PER_OPERATION
        && !NO_PARTS.contains(&figure.name.as_str())
        && !figure.is_noise;
    is_part.then_some((figure.value? - figure.base?).abs())
}

/// Returns the logarithm of the change of a figure that is no time.
fn size_of_count(figure: &Evidence) -> Option<f64> {
    let is_count = !figure.unit.starts_with("us") && !figure.is_noise;
    is_count.then_some(figure.ratio?.ln().abs())
}

fn value_cell(value: Option<f64>) -> Cell {
    Cell::plain(value.map(figure).unwrap_or_default())
}

/// Returns by how much a figure changed: `19% more`, `3.22x`. A figure in percent changes by
/// points.
fn change(shown: &Evidence) -> Option<String> {
    if shown.is_noise {
        return Some("within noise".to_owned());
    }

    if shown.unit.starts_with('%') {
        let points = shown.value? - shown.base?;
        let less = if points < 0.0 { "less" } else { "more" };
        return Some(format!("{} points {less}", figure(points.abs())));
    }
    Some(AmountChange::new(shown.ratio?, None).short())
}

/// Returns the number of findings that are not shown, in a sentence.
fn remainder(count: usize) -> Option<String> {
    let not_shown = count.saturating_sub(FINDINGS_SHOWN_MAX);
    (not_shown > 0).then(|| {
        format!("{not_shown} less important findings are not shown: `assay compare --format json` lists all.")
    })
}
