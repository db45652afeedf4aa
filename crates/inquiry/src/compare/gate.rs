//! The gate: whether a comparison shows a regression, rules one out, or neither.

mod judged_steps;
mod more_repeats;
mod ruled_out;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use analysis::compare::{
    self, Compared, ComparedStep, Gate, REPEATS_CAP, THROUGHPUT, Thresholds, judged_work,
    metric_label,
};
use analysis::figures::Figures;
use analysis::{counted, distinct};
use report::{Judgement, JudgementOutcome, comparison_sentence, terminal_text, work_sentence};
use words::share_of;

pub use self::judged_steps::JudgedSteps;
use self::work::WorkJudgement;
use super::Judged;
use super::arguments::Threshold;
use super::lines::{Line, Runs};

/// The number of comparisons that are listed.
const LISTED_MAX: usize = 20;

/// Judges the steps of a comparison by the thresholds that are wanted.
pub fn judged_steps<'a>(wanted: &[Threshold], compared: &'a Compared) -> JudgedSteps<'a> {
    JudgedSteps::of(compared, thresholds(wanted, compared.effect))
}

/// Judges a comparison. Without a clear result, also says what to do.
pub fn judge(
    steps: &JudgedSteps<'_>,
    runs: &Runs,
    figures: &Figures,
    lines: &[Line<'_>],
) -> Judged {
    let compared = steps.compared;
    let mut said = Vec::new();
    let of_work = judge_work(compared, &steps.thresholds, &mut said);
    // Nothing else is worth a line if work alone decides.
    let passes = steps.gate == Gate::Pass;
    if of_work != JudgementOutcome::Passed && (passes || compared.is_work_alone()) {
        return Judged { outcome: of_work, lines: said };
    }

    let of_steps = judge_steps(steps, runs, figures, lines, &mut said);
    Judged { outcome: of_work.min(of_steps), lines: said }
}

/// Judges the exact work of connections, and says what does not pass.
fn judge_work(
    compared: &Compared,
    thresholds: &Thresholds,
    said: &mut Vec<String>,
) -> JudgementOutcome {
    let judgement = WorkJudgement::of(compared, thresholds);
    if let Some(headline) = judgement.headline() {
        said.push(headline);
        say_first(judgement.sentences(), said);
    }
    if judgement.outcome() == JudgementOutcome::Undecided {
        let help = "help: more exact cells show smaller changes: raise `repeats` in `[exact]`";
        said.push(help.to_owned());
    }
    judgement.outcome()
}

/// Says the result of the gate on steps, and returns it.
fn judge_steps(
    steps: &JudgedSteps<'_>,
    runs: &Runs,
    figures: &Figures,
    lines: &[Line<'_>],
    said: &mut Vec<String>,
) -> JudgementOutcome {
    let JudgedSteps { compared, thresholds, gate, .. } = steps;
    let mut comparisons: Vec<&ComparedStep> = compared.rows.iter().collect();
    comparisons.retain(|row| thresholds.of(&row.metric).is_some());
    let missing_loads = missing(compared, lines);
    let without_rows: Vec<&str> = thresholds.without_rows(compared).collect();
    let is_incomplete =
        !figures.unfinished.is_empty() || !missing_loads.is_empty() || !without_rows.is_empty();

    match gate {
        Gate::Regressed(indexes) => {
            let rows = rows_at(compared, indexes);
            said.push(format!("regression: {}", by_metric(Some(&rows), &comparisons)));
            say_rows(&compared.base, &rows, thresholds, said);
            JudgementOutcome::Failed
        }
        Gate::Doubtful(indexes) if !indexes.is_empty() => {
            let rows = rows_at(compared, indexes);
            let doubtful = by_metric(Some(&rows), &comparisons);
            said.push(format!(
                "not certain: no regression is shown, but Assay cannot judge {doubtful}"
            ));
            say_rows(&compared.base, &rows, thresholds, said);
            say_missing(&missing_loads, &without_rows, said);
            say_doubtful(&rows, thresholds, runs, &compared.base, lines, said);
            say_unfinished(&runs.paths, figures, said);
            JudgementOutcome::Undecided
        }
        Gate::Pass if !is_incomplete => {
            // Without any timed step, only work was judged.
            let judged_text = if compared.is_work_alone() {
                work::count_text(compared)
            } else {
                by_metric(None, &comparisons)
            };
            said.push(format!("no regression is shown: {judged_text}"));
            say_first(ruled_out::sentences(steps).into_iter(), said);
            JudgementOutcome::Passed
        }
        // None of the comparisons is doubtful, but something was not compared.
        Gate::Doubtful(_) | Gate::Pass => {
            say_incomplete(&comparisons, &missing_loads, &without_rows, said);
            say_unfinished(&runs.paths, figures, said);
            JudgementOutcome::Undecided
        }
    }
}

/// Returns the comparisons with these indexes.
fn rows_at<'a>(compared: &'a Compared, indexes: &[usize]) -> Vec<&'a ComparedStep> {
    indexes.iter().map(|&index| &compared.rows[index]).collect()
}

/// Says how doubtful comparisons can become certain.
fn say_doubtful(
    rows: &[&ComparedStep],
    thresholds: &Thresholds,
    runs: &Runs,
    base: &str,
    lines: &[Line<'_>],
    said: &mut Vec<String>,
) {
    say_commands(&more_repeats::commands(runs, base, rows, thresholds, lines), said);
    if rows.iter().any(|row| row.is_of_different_runs()) {
        let help = "help: measure base and target in one run: runs differ by themselves, and repeats of one run \
                    don't show by how much";
        said.push(help.to_owned());
    }
    say_impractical(rows, thresholds, said);
}

/// Says the commands that measure doubtful comparisons again.
fn say_commands(commands: &[String], said: &mut Vec<String>) {
    for command in commands {
        said.push(format!(
            "help: measure only these comparisons again: {}",
            terminal_text(command)
        ));
    }
    if !commands.is_empty() {
        let help = "help: then judge again, as often as you need: the intervals of a run with added repeats allow for that";
        said.push(help.to_owned());
    }
}

/// Counts `rows` among the `judged` comparisons, by metric: `throughput in 2 of 7 comparisons`.
/// Without `rows`, counts all comparisons.
fn by_metric(rows: Option<&[&ComparedStep]>, judged: &[&ComparedStep]) -> String {
    let metrics: Vec<&str> = rows.unwrap_or(judged).iter().map(|row| row.metric.as_str()).collect();
    if metrics.is_empty() {
        return "nothing was compared".to_owned();
    }

    let mut texts = Vec::new();
    for name in distinct(metrics) {
        let all = count_of_metric(judged, name);
        let comparisons = match rows {
            Some(rows) => share_of(count_of_metric(rows, name), all, "comparison"),
            None => counted(all, "comparison"),
        };
        texts.push(format!("{} in {comparisons}", metric_label(name)));
    }
    texts.join(", ")
}

fn count_of_metric(rows: &[&ComparedStep], metric: &str) -> usize {
    rows.iter().filter(|row| row.metric == metric).count()
}

/// Returns a sentence for each variant and number of clients that the base was measured with and a
/// target was not. No row of the comparison shows these.
fn missing(compared: &Compared, lines: &[Line<'_>]) -> Vec<String> {
    let mut of_base: BTreeSet<_> = BTreeSet::new();
    let mut of_targets: BTreeMap<&str, BTreeSet<_>> = BTreeMap::new();
    for Line { key, .. } in lines.iter().filter(|line| line.key.kind.is_measured()) {
        if key.target == compared.base {
            of_base.insert(key.load());
        } else {
            of_targets.entry(&key.target).or_default().insert(key.load());
        }
    }

    let mut missing = Vec::new();
    for (target, measured) in of_targets {
        for (variant, clients) in of_base.difference(&measured) {
            let variant_text = match variant {
                Some(variant) => format!("{variant} "),
                None => String::new(),
            };
            missing.push(format!(
                "{target} {variant_text}c{clients}: was not measured, unlike {}",
                compared.base
            ));
        }
    }

    missing
}

/// Says the first sentences, one per line, and the number of the others.
fn say_first(sentences: impl ExactSizeIterator<Item = String>, said: &mut Vec<String>) {
    let more = sentences.len().saturating_sub(LISTED_MAX);
    for sentence in sentences.take(LISTED_MAX) {
        said.push(format!("  {}", terminal_text(&sentence)));
    }

    if more > 0 {
        said.push(format!("  and {more} more"));
    }
}

fn say_missing(missing: &[String], without_rows: &[&str], said: &mut Vec<String>) {
    say_first(missing.iter().cloned(), said);
    for metric in without_rows {
        said.push(format!(
            "  {metric}: has a threshold, but none of the compared steps has this metric"
        ));
    }
}

/// Says that the `judged` comparisons pass, and what is missing.
fn say_incomplete(
    judged: &[&ComparedStep],
    missing_loads: &[String],
    without_rows: &[&str],
    said: &mut Vec<String>,
) {
    let judged_text = by_metric(None, judged);
    said.push(format!(
        "not certain: no regression is shown, but some measurements are missing; judged: {judged_text}"
    ));
    say_missing(missing_loads, without_rows, said);
}

fn thresholds(wanted: &[Threshold], effect: f64) -> Thresholds {
    let mut thresholds = Thresholds { default: effect, by_metric: BTreeMap::new() };
    for threshold in wanted {
        let share = threshold.percent / 100.0;
        match &threshold.metric {
            Some(metric) => {
                thresholds.by_metric.insert(metric.clone(), share);
            }
            None => thresholds.default = share,
        }
    }

    thresholds
}

/// Says a sentence for each comparison.
fn say_rows(base: &str, rows: &[&ComparedStep], thresholds: &Thresholds, said: &mut Vec<String>) {
    let sentences = rows.iter().map(|row| {
        let limit = thresholds.of(&row.metric).unwrap_or_default();
        comparison_sentence(row, base, limit)
    });
    say_first(sentences, said);
}

/// Says the number of comparisons that would need an impractical number of repeats.
fn say_impractical(rows: &[&ComparedStep], thresholds: &Thresholds, said: &mut Vec<String>) {
    let needed = rows.iter().filter_map(|row| more_repeats::repeats_needed(row, thresholds));
    let count = needed.filter(|&needed| needed >= REPEATS_CAP).count();
    if count > 0 {
        said.push(format!(
            "help: {} would need {REPEATS_CAP} or more repeats at this threshold; `assay run --aa` shows which changes \
             this machine can detect: use a larger `--threshold`, or a quieter machine",
            counted(count, "comparison")
        ));
    }
}

fn say_unfinished(paths: &[PathBuf], figures: &Figures, said: &mut Vec<String>) {
    for (run, path) in paths.iter().enumerate() {
        let of_run = figures.unfinished.iter().filter(|cell| cell.run == run);
        let cells = match of_run.count() {
            0 => continue,
            1 => "1 cell is".to_owned(),
            count => format!("{count} cells are"),
        };

        said.push(format!(
            "help: {cells} not complete; measure the rest with `assay run --resume {}`",
            terminal_text(&words::shell_quoted(&path.display().to_string()))
        ));
    }
}

/// Returns the judgments of the gate: of each comparison, and what is missing.
pub fn judgements(
    steps: &JudgedSteps<'_>,
    figures: &Figures,
    lines: &[Line<'_>],
) -> Vec<Judgement> {
    let JudgedSteps { compared, thresholds, judged, .. } = steps;

    let mut judgements = Vec::new();
    let closest = ruled_out::closest(steps);
    for &(index, outcome) in judged {
        let row = &compared.rows[index];
        let threshold = thresholds.of(&row.metric).unwrap_or_default();
        judgements.push(Judgement {
            subject: row.cell.target_and_load(),
            what: format!("{}: {}", row.step, metric_label(&row.metric)),
            outcome: judgement_outcome(outcome),
            sentence: comparison_sentence(row, &compared.base, threshold),
            is_closest: closest.contains(&index),
        });
    }

    for (index, outcome) in judged_work(compared, thresholds) {
        let work = &compared.work[index];
        judgements.push(Judgement {
            subject: work.cell.target_and_load(),
            what: format!("{}: exact work of {}", work.step, work.part.name()),
            outcome: judgement_outcome(outcome),
            sentence: work_sentence(work, &compared.base, thresholds.of_work()),
            is_closest: false,
        });
    }

    judgements.extend(missing_judgements(figures, compared, thresholds, lines));
    // A file without judgments would look as if all had passed.
    if judgements.is_empty() {
        judgements.push(undecided("all targets", "throughput", "nothing was compared"));
    }

    judgements
}

fn judgement_outcome(outcome: compare::Judged) -> JudgementOutcome {
    match outcome {
        compare::Judged::Passed => JudgementOutcome::Passed,
        compare::Judged::Regressed => JudgementOutcome::Failed,
        compare::Judged::Doubtful => JudgementOutcome::Undecided,
    }
}

/// Returns a judgment for each measurement that is missing.
fn missing_judgements(
    figures: &Figures,
    compared: &Compared,
    thresholds: &Thresholds,
    lines: &[Line<'_>],
) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    for sentence in missing(compared, lines) {
        judgements.push(undecided(&compared.base, "same loads as the base", &sentence));
    }

    for metric in thresholds.without_rows(compared) {
        let sentence = "it has a threshold, but none of the compared steps has this metric";
        judgements.push(undecided("all targets", metric, sentence));
    }

    for cell in &figures.unfinished {
        let what = format!("{} in repeat {}", THROUGHPUT, cell.cell.repeat);
        let sentence = match cell.causes.first() {
            Some(cause) => format!("the cell is not complete: {cause}"),
            None => "the cell is not complete".to_owned(),
        };
        judgements.push(undecided(&cell.cell.target_and_load(), &what, &sentence));
    }

    judgements
}

fn undecided(subject: &str, what: &str, sentence: &str) -> Judgement {
    Judgement {
        subject: subject.to_owned(),
        what: what.to_owned(),
        outcome: JudgementOutcome::Undecided,
        sentence: sentence.to_owned(),
        is_closest: false,
    }
}

#[cfg(test)]
mod tests {
    use analysis::compare::{Pairing, Verdict};

    use super::*;

    /// Returns a comparison of throughput without values.
    pub fn row(verdict: Verdict, repeats_needed: Option<u32>) -> ComparedStep {
        ComparedStep {
            cell: record::CellKey::new("pg.next", None, 8, 0),
            step: "l.i1".into(),
            metric: THROUGHPUT.into(),
            more_is_better: true,
            pairing: Pairing::Paired,
            verdict,
            repeats_needed,
            ..ComparedStep::default()
        }
    }

    #[test]
    fn what_the_base_has_and_a_target_lacks_is_reported() {
        let cell = |target: &str, variant: Option<&str>, clients| {
            record::CellRef::new(target, "insert", variant, clients, 1)
        };
        let cells = [
            cell("a", None, 1),
            cell("a", None, 8),
            cell("a", Some("cached"), 1),
            cell("b", None, 1),
            cell("b", Some("cached"), 1),
            cell("c", None, 1),
            cell("c", None, 8),
            cell("c", None, 64),
            cell("c", Some("cached"), 1),
        ];
        // The run of a cell does not matter.
        let mut lines = Vec::new();
        for (run, cell) in cells.iter().enumerate() {
            let key = cell.key.clone();
            lines.push(Line { key, run, cell });
        }
        let missing_of = |base: &str| {
            let base = base.to_owned();
            let compared = Compared { base, ..Compared::default() };
            missing(&compared, &lines)
        };
        assert_eq!(missing_of("a"), ["b c8: was not measured, unlike a"]);
        assert!(missing_of("b").is_empty());
        assert_eq!(missing_of("c").len(), 3);
    }

    #[test]
    fn comparisons_are_counted_by_metric() {
        let own = ComparedStep {
            metric: "own_cpu_us_per_op".into(),
            more_is_better: false,
            ..row(Verdict::Slower, None)
        };
        let same = row(Verdict::Equal, None);
        let all = [&same, &own, &same, &own];
        assert_eq!(by_metric(Some(&all[3..]), &all), "own CPU per operation in 1 of 2 comparisons");
        assert_eq!(
            by_metric(Some(&all[1..]), &all),
            "own CPU per operation in both comparisons, throughput in 1 of 2 comparisons"
        );
        assert_eq!(
            by_metric(None, &all[..3]),
            "throughput in 2 comparisons, own CPU per operation in 1 comparison"
        );
        assert_eq!(by_metric(None, &[]), "nothing was compared");
    }
}
