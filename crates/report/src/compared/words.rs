//! Describes a comparison in sentences: what was compared, how many repeats there were, how sure
//! the verdicts are, and how they could be surer.

use std::collections::BTreeMap;

use ::words::{Metric, capitalized};
use analysis::{
    Compared, ComparedStep, Effects, Pairing, REPEATS_CAP, THROUGHPUT, Verdict, counted,
    metric_label,
};

use super::ComparedRun;
use super::board::Board;
use crate::number::{fixed, moment};
use crate::problems::ended;

/// The maximum number of places whose needed repeats are listed.
const PLACES_MAX: usize = 4;

/// Returns the title of a comparison.
pub(super) fn title(compared: &Compared) -> String {
    let mut targets: Vec<&str> = Vec::new();
    for row in &compared.rows {
        if !targets.contains(&row.cell.target.as_str()) {
            targets.push(&row.cell.target);
        }
    }
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
            rows: effects.rows.iter().map(|it| &it.compared).collect(),
            effect: effects.effect,
            error_rate: effects.error_rate,
            unfinished: effects.unfinished.as_deref(),
            notes: &effects.notes,
        }
    }
}

/// Describes how the comparisons were made, a paragraph each.
pub(crate) fn method(made: &Method<'_>) -> Vec<String> {
    let rows = || made.rows.iter().filter(|row| is_compared(row));
    let mut forms: BTreeMap<(u8, usize, usize, usize), usize> = BTreeMap::new();
    for row in rows() {
        let pairing = match row.pairing {
            Pairing::Paired => 0,
            Pairing::Independent => 1,
            Pairing::Single => 2,
        };
        let counts = (row.base_values.len(), row.values.len());
        let form = (pairing, counts.0, counts.1, row.machines.count);
        *forms.entry(form).or_default() += 1;
    }
    let mut texts = Vec::new();
    let has_several = forms.len() > 1;
    let forms: Vec<String> = forms
        .into_iter()
        .map(|((pairing, base, other, machines), count)| {
            let mut text = form(pairing, base, other);
            if machines > 1 {
                text += &format!(", from {}", counted(machines, "machine"));
            }
            if has_several { format!("{text} ({})", counted(count, "comparison")) } else { text }
        })
        .collect();
    if forms.is_empty() {
        texts.push("Nothing could be compared.".to_string());
    } else {
        texts.push(format!("The comparison uses {}.", forms.join("; ")));
    }
    if rows().any(|row| row.interval.is_some()) {
        texts.push(format!(
            "Each ratio has a confidence interval. Of all verdicts of faster or slower, at most {} are expected to be false. \
             \"No change shown\" means that the whole interval is within {} of 1.",
            percent(made.error_rate),
            percent(made.effect),
        ));
    }
    texts.extend(made.notes.iter().map(|note| sentence(note)));
    if rows().any(|row| row.pairing == Pairing::Single) {
        texts.push("Measured once: no interval, so a difference may be noise.".to_string());
    }
    texts
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

fn form(pairing: u8, base: usize, other: usize) -> String {
    match (pairing, base == other) {
        (0, _) => format!("{} of each target and of the base, in pairs", repeats(other.min(base))),
        (1, true) => format!("{} of each target and of the base, not in pairs", repeats(base)),
        (1, false) => {
            format!("{} of a target and {base} of the base, not in pairs", repeats(other))
        }
        (_, true) => "single runs".to_string(),
        (_, false) => format!("{} of a target and {base} of the base", repeats(other)),
    }
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
    let changes = rows.filter_map(|row| Some((row.detectable()?, row.step.as_str())));
    let mut changes: Vec<(f64, &str)> = changes.collect();
    changes.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let text_of = |&(change, _): &(f64, &str)| match change {
        change if change > LARGE => format!("more than {}", percent(LARGE)),
        change => percent(change),
    };
    let (least, most) = (changes.first()?, changes.last()?);
    let median = text_of(&changes[changes.len() / 2]);
    let mut text = format!("the smallest change that could be shown here: {median}");
    if text_of(least) != text_of(most) {
        text += &format!(
            " in the median step, from {} in {} to {} in {}",
            text_of(least),
            least.1,
            text_of(most),
            most.1
        );
    }
    Some(text)
}

/// Returns the number of repeats that would show a change as small as the effect, if there are too
/// few.
pub(super) fn repeats_needed(board: &Board<'_>, metric: &str) -> Option<String> {
    let compared = board.comparison.compared;
    let mut needs: Vec<(u32, String)> = board
        .lines
        .iter()
        .flat_map(|line| {
            board.matrix.measured().filter_map(move |step| {
                let row = board.row(line, step.name, metric)?;
                let needed = row.repeats_needed.filter(|_| row.verdict == Verdict::TooNoisy)?;
                Some((needed, format!("{} {}", board.label(line), step.name)))
            })
        })
        .collect();
    if needs.is_empty() {
        return None;
    }
    let all = needs.len();
    needs.retain(|(needed, _)| *needed < REPEATS_CAP);
    let impractical = all - needs.len();
    // The largest numbers first; equal numbers keep the order of the tables.
    needs.sort_by_key(|(needed, _)| std::cmp::Reverse(*needed));
    let mut texts: Vec<String> = needs
        .iter()
        .take(PLACES_MAX)
        .map(|(needed, place)| format!("{needed} for {place}"))
        .collect();
    let fewer = needs.len().saturating_sub(PLACES_MAX);
    texts.extend((fewer > 0).then(|| format!("fewer for {}", counted(fewer, "other"))));
    texts.extend((impractical > 0).then(|| {
        let steps = counted(impractical, "step");
        format!("{REPEATS_CAP} or more for {steps}, too noisy for such small changes")
    }));
    Some(format!(
        "total repeats needed to show a change of {}: {}",
        percent(compared.effect),
        texts.join(", ")
    ))
}
