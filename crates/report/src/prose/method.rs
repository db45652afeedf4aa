//! Describes a comparison in sentences: what was compared, how many repeats there were, and how
//! sure the verdicts are.

use std::collections::BTreeMap;

use analysis::{
    compare::{Compared, ComparedStep, Effects, Pairing, THROUGHPUT},
    counted, distinct,
};
use words::capitalized;

use super::run::ended;
use crate::model::comparison::ComparedRun;
use crate::model::number::{moment, percent};

/// The comparison of work where no time was measured.
const WORK_ALONE: &str = "Only work was counted. A change is shown if it exceeds several times the range of a target's exact cells, and 0.5%.";

/// Returns the title of a comparison.
pub(crate) fn title(compared: &Compared) -> String {
    let of_time = compared.rows.iter().map(|row| &row.cell);
    let of_work = compared.work.iter().map(|work| &work.cell);
    let targets = distinct(of_time.chain(of_work).map(|cell| cell.target.as_str()));
    match targets[..] {
        [one] => format!("{one} compared with {}", compared.base),
        _ => format!("{} targets compared with {}", targets.len(), compared.base),
    }
}

/// Describes each run in a line.
pub(crate) fn runs<'a>(runs: &'a [ComparedRun<'a>]) -> impl Iterator<Item = String> + 'a {
    runs.iter().enumerate().map(move |(index, ComparedRun { name, run })| {
        let number = match runs.len() {
            1 => String::new(),
            _ => format!("run {}: ", index + 1),
        };
        format!("{number}{}, {}, {} ({name})", run.name, moment(run.started_unix_ns), ended(run))
    })
}

/// The way in which targets or the levels of factors were compared.
pub(crate) struct Method {
    /// The note that cells are missing; `None` if none are.
    pub unfinished: Option<String>,
    /// The basis of the verdicts, a paragraph each.
    pub paragraphs: Vec<String>,
}

impl Method {
    pub(crate) fn of_comparison(compared: &Compared) -> Self {
        let unfinished = compared.unfinished.as_deref().map(sentence);
        if compared.is_work_alone() {
            return Self { unfinished, paragraphs: vec![WORK_ALONE.to_owned()] };
        }

        let rows: Vec<&ComparedStep> = compared.rows.iter().collect();
        Self {
            unfinished,
            paragraphs: paragraphs(
                &rows,
                &Limits { effect: compared.effect, error_rate: compared.error_rate },
                &compared.notes,
            ),
        }
    }

    pub(crate) fn of_effects(effects: &Effects) -> Self {
        let rows: Vec<&ComparedStep> = effects.rows.iter().map(|effect| &effect.compared).collect();
        Self {
            unfinished: effects.unfinished.as_deref().map(sentence),
            paragraphs: paragraphs(
                &rows,
                &Limits { effect: effects.effect, error_rate: effects.error_rate },
                &effects.notes,
            ),
        }
    }

    /// Returns all paragraphs. That cells are missing comes first, since it concerns all others.
    pub(crate) fn all(&self) -> impl Iterator<Item = &String> {
        self.unfinished.iter().chain(&self.paragraphs)
    }
}

/// The smallest change that matters, and the share of verdicts that may be wrong.
struct Limits {
    effect: f64,
    error_rate: f64,
}

fn paragraphs(all_rows: &[&ComparedStep], limits: &Limits, notes: &[String]) -> Vec<String> {
    let rows: Vec<&ComparedStep> =
        all_rows.iter().copied().filter(|row| is_compared(row)).collect();

    let mut texts = vec![repeats_used(&rows)];
    if rows.iter().any(|row| row.interval.is_some()) {
        texts.push(format!(
            "Each ratio has a confidence interval. For a target that did not change, at most {} of such tables show any step as faster or slower. \
             \"Equal\" means that a 90% interval, with an error rate of 5% for each direction, rules out a change of {} or more.",
            percent(limits.error_rate),
            percent(limits.effect),
        ));
    }
    texts.extend(notes.iter().map(|note| sentence(note)));
    texts
}

/// The repeats that a comparison uses. Comparisons with equal ones are counted together, in this
/// order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RepeatsUsed {
    kind: RepeatKind,
    base: usize,
    target: usize,
    machines: usize,
}

/// Pairs of repeats, other repeats or single runs, in the order in which a sentence lists them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RepeatKind {
    Pairs,
    Independent,
    Single,
}

impl RepeatsUsed {
    fn of(row: &ComparedStep) -> Self {
        Self {
            kind: match row.pairing {
                Pairing::Paired => RepeatKind::Pairs,
                Pairing::Independent => RepeatKind::Independent,
                Pairing::Single => RepeatKind::Single,
            },
            base: row.base_values.len(),
            target: row.values.len(),
            machines: row.machines.count,
        }
    }

    fn text(&self) -> String {
        let &Self { kind, base, target, machines } = self;

        let text = match kind {
            RepeatKind::Pairs => {
                format!("{} of each target and of the base, in pairs", repeats(target.min(base)))
            }
            RepeatKind::Independent if base == target => {
                format!("{} of each target and of the base, not in pairs", repeats(base))
            }
            RepeatKind::Independent => {
                format!("{} of a target and {base} of the base, not in pairs", repeats(target))
            }
            RepeatKind::Single if base == target => "single runs".to_string(),
            RepeatKind::Single => {
                format!("{} of a target and {base} of the base", repeats(target))
            }
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

/// Turns a remark into a sentence.
fn sentence(note: &str) -> String {
    let text = capitalized(note);
    if text.ends_with('.') { text } else { text + "." }
}

fn repeats(count: usize) -> String {
    counted(count, "repeat")
}

/// Returns true if both sides have values of throughput.
fn is_compared(row: &ComparedStep) -> bool {
    row.metric == THROUGHPUT && !row.values.is_empty() && !row.base_values.is_empty()
}
