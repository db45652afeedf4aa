//! `--gate`: reports whether there is a regression, in words and as an exit code.

mod more_repeats;
pub(super) mod work;

use std::collections::{BTreeMap, BTreeSet};

use analysis::{
    compare::{
        Compared, ComparedStep, Gate, REPEATS_CAP, THROUGHPUT, Thresholds, Verdict, metric_label,
    },
    counted, distinct,
    figures::Figures,
};
use report::{ratio_with_bounds, terminal_text};

use self::work::WorkJudgement;
use super::lines::{Line, Runs};
use crate::cli::CompareArgs;
use crate::exit::Exit;
use crate::output::eprint_line;

/// The number of comparisons that are listed.
const LISTED_MAX: usize = 20;

/// Judges a comparison, and prints the result to stderr. Without a clear result, also prints what
/// to do.
pub fn judge(
    args: &CompareArgs,
    runs: &Runs,
    figures: &Figures,
    compared: &Compared,
    lines: &[Line<'_>],
) -> Exit {
    let thresholds = thresholds(args, compared.effect);
    let of_work = judge_work(compared, &thresholds);
    // Nothing else is worth a line if work alone decides.
    let passes = matches!(analysis::compare::gate(compared, &thresholds), Gate::Pass);
    if of_work != Exit::Ok && (passes || compared.is_work_alone()) {
        return of_work;
    }

    let of_steps = judge_steps(&thresholds, runs, figures, compared, lines);
    super::most_telling(&[of_work, of_steps])
}

/// Judges the exact work of connections, and prints what does not pass.
fn judge_work(compared: &Compared, thresholds: &Thresholds) -> Exit {
    let judgement = WorkJudgement::of(compared, thresholds);
    if let Some(headline) = judgement.headline() {
        eprint_line!("{headline}");
        print_first(judgement.sentences());
    }
    if judgement.exit() == Exit::Invalid {
        eprint_line!("help: more exact cells show smaller changes: raise `repeats` in `[exact]`");
    }
    judgement.exit()
}

/// Judges the comparisons of steps.
fn judge_steps(
    thresholds: &Thresholds,
    runs: &Runs,
    figures: &Figures,
    compared: &Compared,
    lines: &[Line<'_>],
) -> Exit {
    let mut judged: Vec<&ComparedStep> = compared.rows.iter().collect();
    judged.retain(|row| thresholds.of(&row.metric).is_some());
    let missing = missing(compared, lines);
    let without_rows: Vec<&str> = thresholds.without_rows(compared).collect();

    match analysis::compare::gate(compared, thresholds) {
        Gate::Regressed(indexes) => {
            let rows = rows_at(compared, &indexes);
            eprint_line!("regression: {}", by_metric(Some(&rows), &judged));
            print_rows(&compared.base, &rows, thresholds);
            Exit::Regressed
        }
        Gate::Doubtful(indexes) if !indexes.is_empty() => {
            let rows = rows_at(compared, &indexes);
            let doubtful = by_metric(Some(&rows), &judged);
            eprint_line!("not certain: no regression is shown, but Assay can't judge {doubtful}");
            print_rows(&compared.base, &rows, thresholds);

            print_missing(&missing, &without_rows);
            let commands = more_repeats::commands(runs, &compared.base, &rows, thresholds, lines);
            print_commands(&commands);
            if rows.iter().any(|row| row.is_of_different_runs()) {
                eprint_line!(
                    "help: measure base and target in one run: runs differ by themselves, and \
                     repeats of one run don't show by how much"
                );
            }
            print_impractical(&rows, thresholds);
            print_unfinished(runs, figures);
            Exit::Invalid
        }
        Gate::Pass
            if figures.unfinished.is_empty() && missing.is_empty() && without_rows.is_empty() =>
        {
            // Without any timed step, only work was judged.
            let judged = if compared.is_work_alone() {
                work::count_text(compared)
            } else {
                by_metric(None, &judged)
            };
            eprint_line!("no regression is shown: {judged}");
            Exit::Ok
        }
        Gate::Doubtful(_) | Gate::Pass => {
            let judged = by_metric(None, &judged);
            eprint_line!(
                "not certain: no regression is shown, but some measurements are missing; judged: {judged}"
            );
            print_missing(&missing, &without_rows);
            print_unfinished(runs, figures);
            Exit::Invalid
        }
    }
}

/// Returns the comparisons with these indexes.
fn rows_at<'a>(compared: &'a Compared, indexes: &[usize]) -> Vec<&'a ComparedStep> {
    indexes.iter().map(|&index| &compared.rows[index]).collect()
}

/// Prints the commands that measure doubtful comparisons again.
fn print_commands(commands: &[String]) {
    for command in commands {
        eprint_line!("help: measure only these comparisons again: {}", terminal_text(command));
    }
    if !commands.is_empty() {
        eprint_line!(
            "help: then judge again, as often as you need: the intervals of a run with added repeats allow for that"
        );
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
        let share = match rows {
            Some(rows) => format!("{} of ", count_of_metric(rows, name)),
            None => String::new(),
        };
        let all = counted(count_of_metric(judged, name), "comparison");
        texts.push(format!("{} in {share}{all}", metric_label(name)));
    }
    texts.join(", ")
}

fn count_of_metric(rows: &[&ComparedStep], metric: &str) -> usize {
    rows.iter().filter(|row| row.metric == metric).count()
}

/// Returns a sentence for each variant and number of clients that the base was measured with and a
/// target was not. No row of the comparison shows these.
pub(super) fn missing(compared: &Compared, lines: &[Line<'_>]) -> Vec<String> {
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

/// Prints the first sentences, one per line, and the number of the others.
fn print_first(sentences: impl ExactSizeIterator<Item = String>) {
    let more = sentences.len().saturating_sub(LISTED_MAX);
    for sentence in sentences.take(LISTED_MAX) {
        eprint_line!("  {}", terminal_text(&sentence));
    }

    if more > 0 {
        eprint_line!("  and {more} more");
    }
}

fn print_missing(missing: &[String], without_rows: &[&str]) {
    print_first(missing.iter().cloned());
    for metric in without_rows {
        eprint_line!("  {metric}: has a threshold, but none of the compared steps has this metric");
    }
}

pub(super) fn thresholds(args: &CompareArgs, effect: f64) -> Thresholds {
    let mut thresholds = Thresholds { default: effect, by_metric: BTreeMap::new() };
    for threshold in &args.thresholds {
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

/// Prints a sentence for each comparison.
fn print_rows(base: &str, rows: &[&ComparedStep], thresholds: &Thresholds) {
    print_first(rows.iter().map(|row| {
        let limit = thresholds.of(&row.metric).unwrap_or_default();
        sentence(row, base, limit)
    }));
}

pub(super) fn sentence(row: &ComparedStep, base: &str, limit: f64) -> String {
    let mut text = row.cell.target.clone();
    if let Some(variant) = &row.cell.variant {
        text += &format!(" {variant}");
    }

    text += &format!(" c{} {}: ", row.cell.clients, row.step);
    if row.metric != THROUGHPUT {
        text += &format!("{} ", metric_label(&row.metric));
    }

    text += &match (row.verdict, row.more_is_better) {
        (Verdict::Slower, false) => "higher".to_owned(),
        (verdict, _) => verdict.to_string(),
    };

    if let Some(ratio) = row.ratio {
        text += &format!(", {}", ratio_with_bounds(ratio, row.interval));
        let percent = format!("{:.1}", limit * 100.0);
        let percent = percent.trim_end_matches(".0");
        text += &format!(" of {base}; the threshold is {percent}%");
    }

    if !row.reasons.is_empty() {
        text += &format!("; {}", row.reasons.join("; "));
    }
    text
}

/// Prints the number of comparisons that would need an impractical number of repeats.
fn print_impractical(rows: &[&ComparedStep], thresholds: &Thresholds) {
    let needed = rows.iter().filter_map(|row| more_repeats::repeats_needed(row, thresholds));
    let count = needed.filter(|&needed| needed >= REPEATS_CAP).count();
    if count > 0 {
        eprint_line!(
            "help: {} would need {REPEATS_CAP} or more repeats at this threshold; `assay run --aa` shows which changes \
             this machine can detect: use a larger `--threshold`, or a quieter machine",
            counted(count, "comparison")
        );
    }
}

fn print_unfinished(runs: &Runs, figures: &Figures) {
    for (run, path) in runs.paths.iter().enumerate() {
        let of_run = figures.unfinished.iter().filter(|cell| cell.run == run);
        let cells = match of_run.count() {
            0 => continue,
            1 => "1 cell is".to_owned(),
            count => format!("{count} cells are"),
        };

        eprint_line!(
            "help: {cells} not complete; measure the rest with `assay run --resume {}`",
            terminal_text(&words::shell_quoted(&path.display().to_string()))
        );
    }
}

#[cfg(test)]
mod tests {
    use analysis::compare::Pairing;

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
            "own CPU per operation in 2 of 2 comparisons, throughput in 1 of 2 comparisons"
        );
        assert_eq!(
            by_metric(None, &all[..3]),
            "throughput in 2 comparisons, own CPU per operation in 1 comparison"
        );
        assert_eq!(by_metric(None, &[]), "nothing was compared");
        assert_eq!(
            sentence(&own, "pg.base", 0.03),
            "pg.next c8 l.i1: own CPU per operation higher"
        );
    }

    #[test]
    fn the_sentence_of_a_comparison_has_its_reasons() {
        let mut noisy = row(Verdict::TooNoisy, Some(14));
        (noisy.cell.variant, noisy.ratio) = (Some("cached".into()), Some(0.9712));
        noisy.interval =
            Some(analysis::compare::Interval { low: 0.9, high: 1.05, confidence: 0.95 });
        noisy.reasons = vec!["pg.next, repeat 2 is left out: it failed".into()];
        assert_eq!(
            sentence(&noisy, "pg.base", 0.025),
            "pg.next cached c8 l.i1: too noisy to say, 0.97 (0.90-1.05) of pg.base; the threshold is 2.5%; \
             pg.next, repeat 2 is left out: it failed"
        );
    }
}
