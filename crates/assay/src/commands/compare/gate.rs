//! `--gate`: whether a regression is shown, in words and as an exit code.

mod again;

use std::collections::{BTreeMap, BTreeSet};

use analysis::{
    Compared, ComparedStep, Figures, Gate, REPEATS_CAP, THROUGHPUT, Thresholds, Verdict, counted,
    distinct, metric_label,
};
use report::{ratio_with_bounds, terminal_text};

use super::{Line, Runs};
use crate::cli::CompareArgs;
use crate::outcome::Exit;
use crate::output::complain;

/// Comparisons that are told one by one.
const SHOWN_MAX: usize = 20;

/// Judges a comparison, says on stderr what came of it, and what to do where that is not known.
pub fn judge(
    args: &CompareArgs,
    runs: &Runs,
    figures: &Figures,
    compared: &Compared,
    lines: &[Line<'_>],
) -> Exit {
    let thresholds = thresholds(args);
    let rows = compared.rows.iter();
    let judged = rows.filter(|row| thresholds.of(&row.metric).is_some());
    let judged: Vec<&ComparedStep> = judged.collect();
    let of = |rows: &[usize]| {
        rows.iter()
            .map(|&row| &compared.rows[row])
            .collect::<Vec<_>>()
    };
    let missing = missing(compared, lines);
    let without_rows: Vec<&str> = thresholds.without_rows(compared).collect();
    match analysis::gate(compared, &thresholds) {
        Gate::Regressed(rows) => {
            let rows = of(&rows);
            complain!("regressed: {}", by_metric(Some(&rows), &judged));
            tell(&compared.base, &rows, &thresholds);
            Exit::Regressed
        }
        Gate::Doubtful(rows) if !rows.is_empty() => {
            let rows = of(&rows);
            let doubtful = by_metric(Some(&rows), &judged);
            complain!("not known: {doubtful} can't be judged, and no regression is shown");
            tell(&compared.base, &rows, &thresholds);
            tell_missing(&missing, &without_rows);
            let commands = again::commands(runs, &compared.base, &rows, &thresholds, lines);
            for command in &commands {
                complain!("help: measure just these again: {}", terminal_text(command));
            }
            if !commands.is_empty() {
                complain!(
                    "help: once, and then judge: to add repeats until something is shown makes errors more frequent than \
                     the error rate says"
                );
            }
            tell_hopeless(&rows, &thresholds);
            tell_unfinished(runs, figures);
            Exit::Invalid
        }
        Gate::Pass
            if figures.unfinished.is_empty() && missing.is_empty() && without_rows.is_empty() =>
        {
            complain!("no regression is shown: {}", by_metric(None, &judged));
            Exit::Ok
        }
        Gate::Doubtful(_) | Gate::Pass => {
            let judged = by_metric(None, &judged);
            complain!("not known: no regression is shown, but not all was compared: {judged}");
            tell_missing(&missing, &without_rows);
            tell_unfinished(runs, figures);
            Exit::Invalid
        }
    }
}

/// Counts comparisons by metric, of those that were `judged`: `throughput in 2 of 7 comparisons`. Without `found` it counts
/// all of them.
fn by_metric(found: Option<&[&ComparedStep]>, judged: &[&ComparedStep]) -> String {
    let rows = found.unwrap_or(judged).iter();
    let metrics: Vec<&str> = rows.map(|row| row.metric.as_str()).collect();
    let count = |rows: &[&ComparedStep], name: &str| {
        let of_metric = rows.iter().filter(|row| row.metric == name);
        of_metric.count()
    };
    let text = |name: &str| {
        let found = found.map_or(String::new(), |rows| format!("{} of ", count(rows, name)));
        let all = counted(count(judged, name), "comparison");
        format!("{} in {found}{all}", metric_label(name))
    };
    match metrics.is_empty() {
        true => "nothing was compared".to_owned(),
        false => distinct(metrics)
            .into_iter()
            .map(text)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// Where the base was to be measured and a target was not, which no comparison tells of: a sentence each.
fn missing(compared: &Compared, lines: &[Line<'_>]) -> Vec<String> {
    let of_base: BTreeSet<_> = lines
        .iter()
        .filter(|line| line.key.target == compared.base)
        .map(|line| line.key.load())
        .collect();
    let mut targets: BTreeMap<&str, BTreeSet<_>> = BTreeMap::new();
    for Line { key, .. } in lines.iter().filter(|it| it.key.target != compared.base) {
        targets.entry(&key.target).or_default().insert(key.load());
    }
    let mut missing = Vec::new();
    for (target, has) in targets {
        for (variant, clients) in of_base.difference(&has) {
            let variant = variant.map_or(String::new(), |variant| format!("{variant} "));
            missing.push(format!(
                "{target} {variant}c{clients}: was not measured, and {} was",
                compared.base
            ));
        }
    }
    missing
}

/// Says the first of some sentences, a line each, and how many more there are.
fn tell_some(sentences: impl ExactSizeIterator<Item = String>) {
    let more = sentences.len().saturating_sub(SHOWN_MAX);
    for sentence in sentences.take(SHOWN_MAX) {
        complain!("  {}", terminal_text(&sentence));
    }
    if more > 0 {
        complain!("  and {more} more");
    }
}

fn tell_missing(missing: &[String], without_rows: &[&str]) {
    tell_some(missing.iter().cloned());
    for metric in without_rows {
        complain!("  {metric}: has a threshold, and no step that is compared has it");
    }
}

fn thresholds(args: &CompareArgs) -> Thresholds {
    let mut thresholds = Thresholds {
        default: args.effect / 100.0,
        by_metric: BTreeMap::new(),
    };
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

/// Says of which comparisons it is.
fn tell(base: &str, rows: &[&ComparedStep], thresholds: &Thresholds) {
    tell_some(rows.iter().map(|row| {
        let limit = thresholds.of(&row.metric).unwrap_or_default();
        sentence(row, base, limit)
    }));
}

fn sentence(row: &ComparedStep, base: &str, limit: f64) -> String {
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

fn tell_hopeless(rows: &[&ComparedStep], thresholds: &Thresholds) {
    let needed = rows
        .iter()
        .filter_map(|row| again::repeats_needed(row, thresholds));
    let count = needed.filter(|&needed| needed >= REPEATS_CAP).count();
    if count > 0 {
        complain!(
            "help: {} would need {REPEATS_CAP} repeats or more at this threshold: `assay run --aa` tells what this \
             machine can show; give a `--threshold` above that, or a quieter machine",
            counted(count, "comparison")
        );
    }
}

fn tell_unfinished(runs: &Runs, figures: &Figures) {
    for (run, path) in runs.paths.iter().enumerate() {
        let of_run = figures.unfinished.iter().filter(|cell| cell.run == run);
        let cells = match of_run.count() {
            0 => continue,
            1 => "1 cell is".to_owned(),
            count => format!("{count} cells are"),
        };
        complain!(
            "help: {cells} not complete: assay run --resume {} measures what is missing",
            terminal_text(&path.display().to_string())
        );
    }
}

#[cfg(test)]
mod tests {
    use analysis::Pairing;

    use super::*;

    /// A comparison of throughput without values.
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
    fn a_place_that_the_base_has_and_a_target_has_not_is_told() {
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
        // In which run a cell is does not matter.
        let mut lines = Vec::new();
        for (run, cell) in cells.iter().enumerate() {
            let key = cell.key.clone();
            lines.push(Line { key, run, cell });
        }
        let missing_of = |base: &str| {
            let base = base.to_owned();
            let compared = Compared {
                base,
                ..Compared::default()
            };
            missing(&compared, &lines)
        };
        assert_eq!(missing_of("a"), ["b c8: was not measured, and a was"]);
        assert!(missing_of("b").is_empty());
        assert_eq!(missing_of("c").len(), 3);
    }

    #[test]
    fn the_family_that_decided_is_named() {
        let own = ComparedStep {
            metric: "own_cpu_us_per_op".into(),
            more_is_better: false,
            ..row(Verdict::Slower, None)
        };
        let same = row(Verdict::NoChangeShown, None);
        let all = [&same, &own, &same, &own];
        assert_eq!(
            by_metric(Some(&all[3..]), &all),
            "own CPU per operation in 1 of 2 comparisons"
        );
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
    fn a_comparison_is_told_with_its_reasons() {
        let mut noisy = row(Verdict::TooNoisy, Some(14));
        (noisy.cell.variant, noisy.ratio) = (Some("cached".into()), Some(0.9712));
        noisy.interval = Some(analysis::Interval {
            low: 0.9,
            high: 1.05,
            confidence: 0.95,
        });
        noisy.reasons = vec!["pg.next, repeat 2 is left out: it failed".into()];
        assert_eq!(
            sentence(&noisy, "pg.base", 0.025),
            "pg.next cached c8 l.i1: too noisy to say, 0.97 (0.90-1.05) of pg.base; the threshold is 2.5%; \
             pg.next, repeat 2 is left out: it failed"
        );
    }
}
