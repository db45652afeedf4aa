//! Describes a comparison in sentences: what was compared, how many repeats there were, how sure
//! the verdicts are, and how they could be surer.

use std::collections::BTreeMap;

use ::words::{Metric, capitalized};
use analysis::compare::{
    Compared, ComparedStep, Effects, Pairing, REPEATS_CAP, THROUGHPUT, Verdict, metric_label,
};
use analysis::{counted, distinct};

use super::ComparedRun;
use super::board::Board;
use crate::number::{fixed, moment};
use crate::problems::ended;

/// The maximum number of places whose needed repeats are listed.
const PLACES_MAX: usize = 4;

/// Returns the title of a comparison.
pub(super) fn title(compared: &Compared) -> String {
    let targets = distinct(compared.rows.iter().map(|row| row.cell.target.as_str()));
    match targets[..] {
        [one] => format!("{one} compared with {}", compared.base),
        _ => format!("{} targets compared with {}", targets.len(), compared.base),
    }
}

/// Describes each run in a line.
pub(super) fn runs<'a>(runs: &'a [ComparedRun<'a>]) -> impl Iterator<Item = String> + 'a {
    runs.iter().enumerate().map(move |(index, ComparedRun { name, run })| {
        let number = match runs.len() {
            1 => String::new(),
            _ => format!("run {}: ", index + 1),
        };
        format!("{number}{}, {}, {} ({name})", run.name, moment(run.started_unix_ns), ended(run))
    })
}

/// Comparisons and how they were made.
pub(crate) struct Method<'a> {
    rows: Vec<&'a ComparedStep>,
    effect: f64,
    error_rate: f64,
    unfinished: Option<&'a str>,
    notes: &'a [String],
}

impl<'a> From<&'a Compared> for Method<'a> {
    fn from(compared: &'a Compared) -> Self {
        Self {
            rows: compared.rows.iter().collect(),
            effect: compared.effect,
            error_rate: compared.error_rate,
            unfinished: compared.unfinished.as_deref(),
            notes: &compared.notes,
        }
    }
}

impl<'a> From<&'a Effects> for Method<'a> {
    fn from(effects: &'a Effects) -> Self {
        Self {
            rows: effects.rows.iter().map(|effect| &effect.compared).collect(),
            effect: effects.effect,
            error_rate: effects.error_rate,
            unfinished: effects.unfinished.as_deref(),
            notes: &effects.notes,
        }
    }
}

/// Describes how the comparisons were made, a paragraph each.
pub(crate) fn method(made: &Method<'_>) -> Vec<String> {
    let rows: Vec<_> = made.rows.iter().copied().filter(|row| is_compared(row)).collect();
    let mut texts = vec![repeats_used(&rows)];
    if rows.iter().any(|row| row.interval.is_some()) {
        texts.push(format!(
            "Each ratio has a confidence interval. Of all verdicts of faster or slower, at most {} are expected to be false. \
             \"No change shown\" means that the whole interval is within {} of 1.",
            percent(made.error_rate),
            percent(made.effect),
        ));
    }
    texts.extend(made.notes.iter().map(|note| sentence(note)));
    if rows.iter().any(|row| row.pairing == Pairing::Single) {
        texts.push("Measured once: no interval, so a difference may be noise.".to_string());
    }
    texts
}

/// The repeats that a comparison uses. Comparisons with equal ones are counted together, in this
/// order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RepeatsUsed {
    /// Pairs before other repeats, and single runs last.
    rank: u8,
    base: usize,
    target: usize,
    machines: usize,
}

impl RepeatsUsed {
    fn of(row: &ComparedStep) -> Self {
        Self {
            rank: match row.pairing {
                Pairing::Paired => 0,
                Pairing::Independent => 1,
                Pairing::Single => 2,
            },
            base: row.base_values.len(),
            target: row.values.len(),
            machines: row.machines.count,
        }
    }

    fn text(&self) -> String {
        let &Self { rank, base, target, machines } = self;
        let text = match (rank, base == target) {
            (0, _) => {
                format!("{} of each target and of the base, in pairs", repeats(target.min(base)))
            }
            (1, true) => format!("{} of each target and of the base, not in pairs", repeats(base)),
            (1, false) => {
                format!("{} of a target and {base} of the base, not in pairs", repeats(target))
            }
            (_, true) => "single runs".to_string(),
            (_, false) => format!("{} of a target and {base} of the base", repeats(target)),
        };
        match machines {
            0 | 1 => text,
            _ => format!("{text}, from {}", counted(machines, "machine")),
        }
    }
}

/// Returns the sentence about the repeats that were compared.
fn repeats_used(rows: &[&ComparedStep]) -> String {
    let mut counts: BTreeMap<RepeatsUsed, usize> = BTreeMap::new();
    for row in rows {
        *counts.entry(RepeatsUsed::of(row)).or_default() += 1;
    }

    let texts: Vec<String> = match counts.len() {
        0 => return "Nothing could be compared.".to_string(),
        1 => counts.keys().map(RepeatsUsed::text).collect(),
        _ => counts
            .iter()
            .map(|(used, count)| format!("{} ({})", used.text(), counted(*count, "comparison")))
            .collect(),
    };
    format!("The comparison uses {}.", texts.join("; "))
}

/// Returns the note that cells are missing, which comes first; `None` if none are.
pub(crate) fn unfinished(made: &Method<'_>) -> Option<String> {
    made.unfinished.map(sentence)
}

/// Turns a remark into a sentence.
fn sentence(note: &str) -> String {
    let text = capitalized(note);
    if text.ends_with('.') { text } else { text + "." }
}

fn repeats(count: usize) -> String {
    counted(count, "repeat")
}

/// Formats a share in percent, without needless decimals.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = usize::from((percent - percent.round()).abs() > 0.005);
    format!("{}%", fixed(percent, decimals))
}

/// Returns true if both sides have values of throughput.
fn is_compared(row: &ComparedStep) -> bool {
    row.metric == THROUGHPUT && !row.values.is_empty() && !row.base_values.is_empty()
}

/// Returns the subject of a table: a metric, and the group of steps if there is one. Names of
/// metrics are not capitalized.
pub(super) fn subject(group: Option<&str>, metric: &str) -> String {
    let label = metric_label(metric);
    match group {
        Some(group) => format!("{group}: {label}"),
        None if Metric::named(label).is_some() => label.to_string(),
        None => capitalized(label),
    }
}

/// Explains a metric's name, if neither the name nor its label does.
pub(super) fn meaning(metric: &str) -> Option<String> {
    let known = Metric::named(metric).filter(|_| metric_label(metric) == metric)?;
    // Published names that others would take for times of operations.
    let time = Metric::named(&format!("response_{metric}"));
    let time = time.map(|time| format!("; for the time of operations, compare `{}`", time.name));
    (!known.meaning.is_empty())
        .then(|| format!("{metric}: {}{}", known.meaning, time.unwrap_or_default()))
}

/// Changes above this are not shown in detail.
const LARGE: f64 = 1.0;

/// Returns the smallest change that the comparisons of a table can show: the median, and the range.
pub(super) fn detectable<'a>(rows: impl Iterator<Item = &'a ComparedStep>) -> Option<String> {
    let mut changes: Vec<DetectableChange<'_>> = rows
        .filter_map(|row| Some(DetectableChange { size: row.detectable()?, step: &row.step }))
        .collect();
    changes.sort_by(|a, b| a.size.total_cmp(&b.size));

    let (least, most) = (changes.first()?, changes.last()?);
    let median = changes[changes.len() / 2].text();
    let mut text = format!("the smallest change that could be shown here: {median}");
    if least.text() != most.text() {
        text += &format!(
            " in the median step, from {} in {} to {} in {}",
            least.text(),
            least.step,
            most.text(),
            most.step
        );
    }
    Some(text)
}

/// The smallest change that a step can show.
struct DetectableChange<'a> {
    size: f64,
    step: &'a str,
}

impl DetectableChange<'_> {
    fn text(&self) -> String {
        if self.size > LARGE { format!("more than {}", percent(LARGE)) } else { percent(self.size) }
    }
}

/// Returns the number of repeats that would show a change as small as the effect, if there are too
/// few.
pub(super) fn repeats_needed(board: &Board<'_>, metric: &str) -> Option<String> {
    let mut needs = needs(board, metric);
    if needs.is_empty() {
        return None;
    }

    let count = needs.len();
    needs.retain(|need| need.repeats < REPEATS_CAP);
    let impractical = count - needs.len();
    // The largest numbers first; equal numbers keep the order of the tables.
    needs.sort_by_key(|need| std::cmp::Reverse(need.repeats));

    let mut texts: Vec<String> = needs
        .iter()
        .take(PLACES_MAX)
        .map(|need| format!("{} for {}", need.repeats, need.place))
        .collect();
    let fewer = needs.len().saturating_sub(PLACES_MAX);
    if fewer > 0 {
        texts.push(format!("fewer for {}", counted(fewer, "other")));
    }
    if impractical > 0 {
        let steps = counted(impractical, "step");
        texts.push(format!("{REPEATS_CAP} or more for {steps}, too noisy for such small changes"));
    }
    Some(format!(
        "total repeats needed to show a change of {}: {}",
        percent(board.comparison.compared.effect),
        texts.join(", ")
    ))
}

/// The repeats that a line would need in a step.
struct Need {
    repeats: u32,
    /// The line and the step.
    place: String,
}

/// Returns the needs of all comparisons that are too noisy, in the order of the tables.
fn needs(board: &Board<'_>, metric: &str) -> Vec<Need> {
    let mut needs = Vec::new();
    for line in &board.lines {
        for step in board.matrix.measured() {
            let row = board.row(line, step.name, metric);
            let noisy = row.filter(|row| row.verdict == Verdict::TooNoisy);
            if let Some(repeats) = noisy.and_then(|row| row.repeats_needed) {
                needs.push(Need { repeats, place: format!("{} {}", board.label(line), step.name) });
            }
        }
    }
    needs
}
