//! The notes below a table of ratios: the changes that could be shown, and what more repeats would
//! show.

use std::collections::BTreeMap;

use analysis::compare::{
    CHANGE_ADVISED_MAX, ComparedStep, REPEATS_ADVISED_MAX, Verdict, metric_label,
};
use analysis::figures::{Figures, median};
use analysis::{counted, distinct};
use record::{ResolvedValue, Run};
use words::Engine;

use super::board::Board;
use crate::model::number::{enumerated, listed, percent};
use crate::model::table::Table;

/// The number of lines up to which a note names them.
const LINES_MAX: usize = 4;

/// Returns the smallest change that the comparisons of a table can show: the median, and the range.
pub(super) fn detectable<'a>(rows: impl Iterator<Item = &'a ComparedStep>) -> Option<String> {
    let rows: Vec<&ComparedStep> = rows.collect();
    let has_several_targets = distinct(rows.iter().map(|row| &row.cell.target)).len() > 1;

    let mut changes = Vec::new();
    for row in rows {
        let Some(size) = row.detectable() else { continue };
        let place = if has_several_targets {
            format!("{} of {}", row.step, row.cell.target)
        } else {
            row.step.clone()
        };
        changes.push(DetectableChange { size, place });
    }
    changes.sort_by(|a, b| a.size.total_cmp(&b.size));

    let (least, most) = (changes.first()?, changes.last()?);
    let middle = median(changes.iter().map(|change| change.size))?;

    let unit = if has_several_targets { "comparison" } else { "step" };
    let mut text = format!("the smallest change that could be shown here: {}", size_text(middle));
    if least.text() != most.text() {
        text += &format!(
            " in the median {unit}, from {} in {} to {} in {}",
            least.text(),
            least.place,
            most.text(),
            most.place
        );
    }

    Some(text)
}

/// The comparisons of a metric.
pub(super) struct MetricRows<'a> {
    pub metric: &'a str,
    pub rows: Vec<&'a ComparedStep>,
}

/// Returns the smallest change that the comparisons of each metric can show, in the median step.
pub(super) fn detectable_by_metric(metrics: &[MetricRows<'_>]) -> Option<String> {
    let mut texts = Vec::new();
    let mut step_count = 0;
    for MetricRows { metric, rows } in metrics {
        let sizes: Vec<f64> = rows.iter().filter_map(|row| row.detectable()).collect();
        step_count = step_count.max(sizes.len());
        if let Some(size) = median(sizes) {
            texts.push(format!("{} in {}", size_text(size), metric_label(metric)));
        }
    }

    let place = if step_count > 1 { "in the median step" } else { "here" };
    (!texts.is_empty())
        .then(|| format!("the smallest change that could be shown {place}: {}", texts.join(", ")))
}

/// The smallest change that a step can show.
struct DetectableChange {
    size: f64,
    /// The step, and its target if there are several.
    place: String,
}

impl DetectableChange {
    fn text(&self) -> String {
        size_text(self.size)
    }
}

/// Formats the size of a change.
fn size_text(size: f64) -> String {
    if size > CHANGE_ADVISED_MAX {
        format!("more than {}", percent(CHANGE_ADVISED_MAX))
    } else {
        percent(size)
    }
}

/// Adds the note on repeats that have not begun. The note is about all tables, so the first one that
/// is shown has it.
pub(super) fn add_not_begun(board: &Board<'_>, tables: &mut [Table]) {
    if let Some(first) = tables.iter_mut().find(|table| table.has_figures()) {
        first.notes.extend(not_begun(board));
    }
}

/// Returns which repeats have not begun: `repeats 2 and 3 have not begun; repeat 4 of pg.b has not
/// begun`. `None` if all have.
fn not_begun(board: &Board<'_>) -> Option<String> {
    // The repeats of a run by the lines that lack them; a line may be a load of a target.
    let mut of_repeats: BTreeMap<(usize, u32), Vec<String>> = BTreeMap::new();
    for line in &board.lines {
        for unfinished in &board.comparison.figures.unfinished {
            let cell = &unfinished.cell;
            if unfinished.status.is_none() && cell.is_repeat_of(&line.cell) {
                let lines = of_repeats.entry((unfinished.run, cell.repeat)).or_default();
                lines.push(board.label(line));
            }
        }
    }

    let mut all: Vec<Unbegun> = Vec::new();
    for ((run, repeat), lines) in of_repeats {
        match all.iter_mut().find(|known| known.run == run && known.lines == lines) {
            Some(known) => known.repeats.push(repeat.to_string()),
            None => all.push(Unbegun { run, lines, repeats: vec![repeat.to_string()] }),
        }
    }

    let sentences: Vec<String> =
        all.iter().map(|unbegun| unbegun.sentence(board.lines.len())).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// Repeats of a run that have not begun.
struct Unbegun {
    run: usize,
    /// The labels of the lines that lack them.
    lines: Vec<String>,
    repeats: Vec<String>,
}

impl Unbegun {
    /// Returns what is said of them, if there are `line_count` lines in all.
    fn sentence(&self, line_count: usize) -> String {
        let (repeats, have) =
            if self.repeats.len() > 1 { ("repeats", "have") } else { ("repeat", "has") };
        let mut text = format!("{repeats} {}", enumerated(&self.repeats));
        if self.lines.len() < line_count {
            text += &format!(" of {}", listed(&self.lines, LINES_MAX, ", "));
        }
        if self.run > 0 {
            text += &format!(" of run {}", self.run + 1);
        }
        format!("{text} {have} not begun")
    }
}

/// The total repeats of which [`more_repeats`] says what they would show.
const REPEATS: [u32; 4] = [5, 10, 20, REPEATS_ADVISED_MAX];

/// The beginning of an advice.
const TOO_NOISY: &str = "where it is too noisy to say";

/// The end of [`USELESS`] where the work of the targets could be counted, and was not.
const COUNT_INSTEAD: &str = "; `assay run PLAN --exact --repeats 0` counts instructions instead, \
                             which other programs do not disturb";

/// The advice for the comparisons of a table that are too noisy to say.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Advice {
    /// The changes that more repeats would show.
    text: String,
    /// The smallest number of repeats that helps; `None`: no number does.
    repeats: Option<u32>,
    /// The words about longer steps, after a semicolon; may be empty.
    of_longer_steps: String,
}

impl Advice {
    /// Returns whether more repeats would show smaller changes.
    pub(super) fn helps(&self) -> bool {
        self.repeats.is_some()
    }

    /// Returns the advice with the name of the metric that it is about.
    pub(super) fn about(self, label: &str) -> Self {
        let text = self.text.replacen(TOO_NOISY, &format!("where {label} is too noisy to say"), 1);
        Self { text, ..self }
    }

    /// Returns the advice as a note; with the name of a `run`, it has the command that adds repeats.
    fn note(&self, run: Option<&str>) -> String {
        let command = match (self.repeats, run) {
            (Some(repeats), Some(run)) => {
                format!(" (`assay run --resume {run} --repeats {repeats}`)")
            }
            _ => String::new(),
        };
        format!("{}{command}{}", self.text, self.of_longer_steps)
    }
}

/// Adds the advice of each table, of which some have none.
pub(super) fn add_advice(board: &Board<'_>, tables: &mut [Table], advice: Vec<Option<Advice>>) {
    for (table, note) in tables.iter_mut().zip(said_once(advice, board.only_run())) {
        table.notes.extend(note);
    }
}

/// Returns the notes of tables that have advice or none. What is said of several alike is said once,
/// and the first that advises repeats of the `run` has the command.
fn said_once(advice: Vec<Option<Advice>>, run: Option<&str>) -> Vec<Option<String>> {
    let mut said: Vec<Advice> = Vec::new();
    let mut notes = Vec::new();
    for of_table in advice {
        let Some(unsaid) = of_table.filter(|known| !said.contains(known)) else {
            notes.push(None);
            continue;
        };

        let has_command = said.iter().any(|earlier| earlier.repeats.is_some());
        notes.push(Some(unsaid.note(run.filter(|_| !has_command))));
        said.push(unsaid);
    }
    notes
}

/// Returns what more repeats would show where some of these comparisons are too noisy to say;
/// `None` if none is.
pub(super) fn more_repeats(board: &Board<'_>, rows: &[&ComparedStep]) -> Option<Advice> {
    let noisy = noisy_rows(rows);
    let measured = noisy.iter().map(|row| measured_repeats(board, row)).max()?;
    let size_now = median(noisy.iter().filter_map(|row| row.detectable()))?;

    let mut texts = Vec::new();
    let mut advised = None;
    let mut last_size = None;
    for repeats in REPEATS.into_iter().filter(|repeats| *repeats > measured) {
        let sizes = noisy.iter().filter_map(|row| row.detectable_with(repeats));
        let Some(size) = median(sizes) else {
            continue;
        };
        last_size = Some(size);

        // A number of repeats that shows nothing but the largest changes is no advice.
        if size <= CHANGE_ADVISED_MAX && size < size_now {
            texts.push(format!("{} with {repeats}", percent(size)));
            advised = advised.or(Some(repeats));
        }
    }
    let Some(advised) = advised else {
        let is_useless = last_size.is_some_and(|size| size > CHANGE_ADVISED_MAX);
        return is_useless.then(|| Advice {
            text: useless(board.comparison.run, board.comparison.figures),
            repeats: None,
            of_longer_steps: String::new(),
        });
    };

    let which = if noisy.len() == 1 { "" } else { " in the median step" };
    Some(Advice {
        text: format!(
            "{TOO_NOISY}, more repeats would show smaller changes{which}: {}, instead of {} now",
            texts.join(", "),
            size_text(size_now)
        ),
        repeats: Some(advised),
        of_longer_steps: longer_steps(&noisy),
    })
}

/// Returns the comparisons that are too noisy to say and of which more repeats would tell more.
fn noisy_rows<'a>(rows: &[&'a ComparedStep]) -> Vec<&'a ComparedStep> {
    let mut noisy = rows.to_vec();
    noisy.retain(|row| {
        row.verdict == Verdict::TooNoisy && row.detectable_with(REPEATS[0]).is_some()
    });
    noisy
}

/// Returns the number of repeats of a step, some of which may not count for every metric.
fn measured_repeats(board: &Board<'_>, row: &ComparedStep) -> u32 {
    let all = board.comparison.compared.rows.iter();
    let of_step = all.filter(|other| other.cell == row.cell && other.step == row.step);
    of_step.map(ComparedStep::repeats).max().unwrap_or_default()
}

/// Returns in which of the noisy comparisons longer steps help as well.
fn longer_steps(noisy: &[&ComparedStep]) -> String {
    let helped = noisy.iter().filter(|row| row.longer_steps_help() != Some(false)).count();
    match helped {
        0 => "; longer steps don't help".to_owned(),
        helped if helped == noisy.len() => "; longer steps help as well".to_owned(),
        helped => format!(
            "; longer steps help as well in {helped} of {}: `--why STEP` says in which",
            counted(noisy.len(), "comparison")
        ),
    }
}

/// Returns the advice where no number of [`REPEATS`] would do.
fn useless(run: &Run, figures: &Figures) -> String {
    let mut text = format!(
        "{TOO_NOISY}, more repeats would not help: even {REPEATS_ADVISED_MAX} would only show a change of more than \
         {}; measure longer steps, in turns, or on a quieter machine",
        percent(CHANGE_ADVISED_MAX)
    );
    if figures.exact.is_empty() && is_countable(run) {
        text += COUNT_INSTEAD;
    }
    text
}

/// Returns whether exact cells could count the work of every target: Assay starts its engine, which
/// stores data, and nothing else takes part.
fn is_countable(run: &Run) -> bool {
    let has_others = |value: &ResolvedValue| {
        value.key.ends_with(".replicas") || value.key.ends_with(".load-with")
    };
    if run.imported.is_some() || run.plan.resolved.iter().any(has_others) {
        return false;
    }

    run.builds.iter().all(|build| {
        let is_url = build.source.contains("://");
        let engine = Engine::named(&build.engine);
        !is_url && engine.is_some_and(|engine| engine.facts().stores_data)
    })
}

#[cfg(test)]
mod tests {
    use record::Build;

    use super::*;

    #[test]
    fn the_first_advice_of_repeats_has_the_command_and_none_is_given_twice() {
        let advice = |text: &str, repeats| Advice {
            text: text.to_owned(),
            repeats,
            of_longer_steps: "; and so on".to_owned(),
        };
        let of_no_use = advice("of no use", None);
        let of_five = advice("5 help", Some(5));
        let of_ten = advice("10 help", Some(10));
        let of_tables = [Some(of_no_use), None, Some(of_five.clone()), Some(of_five), Some(of_ten)];

        let notes = said_once(of_tables.to_vec(), Some("a-run"));
        let texts: Vec<&str> = notes.iter().map(|note| note.as_deref().unwrap_or("-")).collect();
        assert_eq!(
            texts,
            [
                "of no use; and so on",
                "-",
                "5 help (`assay run --resume a-run --repeats 5`); and so on",
                "-",
                "10 help; and so on"
            ]
        );
        assert!(
            said_once(of_tables.to_vec(), None).iter().flatten().all(|note| !note.contains('`'))
        );
    }

    #[test]
    fn longer_steps_are_no_advice_where_the_turns_of_a_repeat_explain_little() {
        let row = |within| ComparedStep {
            spread: Some(0.03),
            error_within: Some(within),
            ..ComparedStep::default()
        };
        let (mostly_starts, mostly_turns) = (row(0.01), row(0.025));
        let unknown = ComparedStep { error_within: None, ..row(0.0) };

        assert_eq!(longer_steps(&[&mostly_starts]), "; longer steps don't help");
        assert_eq!(longer_steps(&[&mostly_turns, &unknown]), "; longer steps help as well");
        assert_eq!(
            longer_steps(&[&mostly_turns, &mostly_starts, &unknown]),
            "; longer steps help as well in 2 of 3 comparisons: `--why STEP` says in which"
        );
    }

    fn run_of(engine: &str, source: &str) -> Run {
        let build = Build {
            name: "b".into(),
            engine: engine.into(),
            version: "17.2".into(),
            source: source.into(),
            files: Vec::new(),
            commit: None,
        };
        Run { builds: vec![build], ..Run::default() }
    }

    #[test]
    fn where_repeats_would_not_help_counting_instructions_is_advised_if_the_engine_can_be_counted()
    {
        let advises = |run: &Run| useless(run, &Figures::default()).contains("--exact");
        assert!(advises(&run_of("postgres", "/builds/postgres-17.2/root")));
        assert!(advises(&run_of("sqlite", "bundled")));
        assert!(!advises(&run_of("postgres", "postgresql://db.example/test")));
        assert!(!advises(&run_of("null", "bundled")));

        // A server with replicas cannot be counted.
        let mut replicated = run_of("postgres", "/builds/postgres-17.2/root");
        replicated.plan.resolved.push(ResolvedValue {
            key: "config.postgres.base.replicas".into(),
            value: "1".into(),
            origin: "plan:3:1".into(),
        });
        assert!(!advises(&replicated));
    }
}
