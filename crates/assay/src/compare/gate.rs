//! `--gate`: whether a regression is shown, in words and as an exit code; and how to measure just what is in doubt.

use std::collections::BTreeMap;

use analysis::{
    Compared, ComparedStep, Figures, Gate, REPEATS_CAP, THROUGHPUT, Thresholds, Verdict, counted,
};
use glob::Pattern;
use report::terminal_text;

use super::{Line, Runs};
use crate::cli::CompareArgs;
use crate::outcome::{Exit, complain};

/// Comparisons that are told one by one.
const SHOWN_MAX: usize = 20;

/// Repeats of what was measured once, or is invalid: with less there is no spread to speak of.
const REPEATS: u32 = 5;

/// Judges a comparison, says on stderr what came of it, and what to do where that is not known.
pub fn judge(
    args: &CompareArgs,
    runs: &Runs,
    figures: &Figures,
    compared: &Compared,
    lines: &[Line<'_>],
) -> Exit {
    let thresholds = thresholds(args);
    let judged = compared
        .rows
        .iter()
        .filter(|row| thresholds.of(&row.metric).is_some())
        .count();
    match analysis::gate(compared, &thresholds) {
        Gate::Regressed(rows) => {
            complain!(
                "regressed: {} of {}",
                rows.len(),
                counted(judged, "comparison")
            );
            tell(compared, &rows, &thresholds);
            Exit::Regressed
        }
        Gate::Doubtful(rows) => {
            complain!(
                "not known: {} of {} can't be judged",
                rows.len(),
                counted(judged, "comparison")
            );
            tell(compared, &rows, &thresholds);
            for command in commands(runs, compared, &rows, lines) {
                complain!(
                    "help: measure just these again: {}",
                    terminal_text(&command)
                );
            }
            tell_hopeless(compared, &rows);
            tell_unfinished(runs, figures);
            Exit::Invalid
        }
        Gate::Pass if !figures.unfinished.is_empty() => {
            complain!("not known: cells are not complete");
            tell_unfinished(runs, figures);
            Exit::Invalid
        }
        Gate::Pass => {
            complain!(
                "no regression is shown in {}",
                counted(judged, "comparison")
            );
            Exit::Ok
        }
    }
}

fn thresholds(args: &CompareArgs) -> Thresholds {
    let mut thresholds = Thresholds {
        default: args.effect / 100.0,
        by_metric: BTreeMap::new(),
    };
    for threshold in &args.thresholds {
        let share = threshold.percent / 100.0;
        let metric = threshold.metric.as_deref().unwrap_or(THROUGHPUT);
        thresholds.by_metric.insert(metric.to_owned(), share);
    }
    thresholds
}

/// Says of which comparisons it is, a line each.
fn tell(compared: &Compared, rows: &[usize], thresholds: &Thresholds) {
    let rows: Vec<&ComparedStep> = rows
        .iter()
        .filter_map(|&row| compared.rows.get(row))
        .collect();
    for row in rows.iter().take(SHOWN_MAX) {
        let limit = thresholds.of(&row.metric).unwrap_or_default();
        complain!("  {}", terminal_text(&sentence(row, &compared.base, limit)));
    }
    if rows.len() > SHOWN_MAX {
        complain!("  and {} more", rows.len() - SHOWN_MAX);
    }
}

fn sentence(row: &ComparedStep, base: &str, limit: f64) -> String {
    let mut text = row.target.clone();
    if let Some(variant) = &row.variant {
        text += &format!(" {variant}");
    }
    text += &format!(" c{} {}: ", row.clients, row.step);
    if row.metric != THROUGHPUT {
        text += &format!("{} ", row.metric);
    }
    text += &row.verdict.to_string();
    if let Some(ratio) = row.ratio {
        text += &format!(", {ratio:.3}");
        if let Some(interval) = row.interval {
            text += &format!(" ({:.3}-{:.3})", interval.low, interval.high);
        }
        let percent = format!("{:.1}", limit * 100.0);
        let percent = percent.trim_end_matches(".0");
        text += &format!(" of {base}; the threshold is {percent}%");
    }
    if !row.reasons.is_empty() {
        text += &format!("; {}", row.reasons.join("; "));
    }
    text
}

/// The commands that add repeats to the cells behind some comparisons, one for each run.
fn commands(runs: &Runs, compared: &Compared, rows: &[usize], lines: &[Line<'_>]) -> Vec<String> {
    let mut by_run: BTreeMap<usize, (u32, Vec<String>)> = BTreeMap::new();
    let rows = rows.iter().filter_map(|&row| compared.rows.get(row));
    // More of what is not there is still nothing, and so many repeats are nobody's way out.
    for row in rows.filter(|row| row.verdict != Verdict::NotComparable && !is_hopeless(row)) {
        let of = |target: &str| -> Vec<&Line<'_>> {
            let lines = lines.iter().filter(|line| {
                (&line.target, &line.variant, line.cell.clients)
                    == (&target.to_owned(), &row.variant, row.clients)
            });
            lines.collect()
        };
        let (base, own) = (of(&compared.base), of(&row.target));
        // Both are measured again where they were measured together last, so that they take turns.
        let has = |lines: &[&Line<'_>], run: usize| lines.iter().any(|line| line.run == run);
        let both = own
            .iter()
            .map(|line| line.run)
            .filter(|&run| has(&base, run))
            .max();
        let last = |lines: &[&Line<'_>]| lines.iter().map(|line| line.run).max();
        for (lines, run) in [(&base, both.or(last(&base))), (&own, both.or(last(&own)))] {
            let Some(run) = run else { continue };
            let cells = || {
                lines
                    .iter()
                    .filter(|line| line.run == run)
                    .map(|line| line.cell)
            };
            let have = cells().map(|cell| cell.repeat).max().unwrap_or(0);
            let (repeats, filters) = by_run.entry(run).or_default();
            *repeats = (*repeats).max(repeats_for(row, have));
            for cell in cells().take(1) {
                let directory = crate::run::cell_name(cell);
                let above = directory
                    .rsplit_once('/')
                    .map_or(directory, |(above, _)| above);
                let filter = format!("{}/*", Pattern::escape(above));
                if !filters.contains(&filter) {
                    filters.push(filter);
                }
            }
        }
    }
    let command = |(run, (repeats, filters)): (usize, (u32, Vec<String>))| {
        let plan = if runs.records[run].plan.password_removed {
            " PLAN"
        } else {
            ""
        };
        let only: String = filters
            .iter()
            .map(|filter| format!(" --only '{filter}'"))
            .collect();
        format!(
            "assay run --resume {}{plan} --repeats {repeats}{only}",
            quoted(&runs.paths[run].display().to_string())
        )
    };
    by_run.into_iter().map(command).collect()
}

/// Whether it would take more repeats than anybody has the time for.
fn is_hopeless(row: &ComparedStep) -> bool {
    row.repeats_needed
        .is_some_and(|needed| needed >= REPEATS_CAP)
}

fn tell_hopeless(compared: &Compared, rows: &[usize]) {
    let rows = rows.iter().filter_map(|&row| compared.rows.get(row));
    let count = rows.filter(|row| is_hopeless(row)).count();
    if count > 0 {
        complain!(
            "help: {} would need {REPEATS_CAP} repeats or more: `assay run --aa` tells what this machine can show; give \
             `--effect` and `--threshold` above that, or a quieter machine",
            counted(count, "comparison")
        );
    }
}

/// How many repeats there have to be, where there are `have`.
fn repeats_for(row: &ComparedStep, have: u32) -> u32 {
    let needed = match row.verdict {
        Verdict::Single | Verdict::Invalid => REPEATS.max(have + 1),
        _ => row.repeats_needed.unwrap_or(REPEATS),
    };
    // What a finer threshold than the effect needs is not known: twice as many say more.
    if needed > have { needed } else { 2 * have }.min(REPEATS_CAP)
}

/// A path as a shell takes it for one word.
fn quoted(path: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "./_-+:,@=".contains(letter);
    if path.chars().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

fn tell_unfinished(runs: &Runs, figures: &Figures) {
    for (run, path) in runs.paths.iter().enumerate() {
        let count = figures
            .unfinished
            .iter()
            .filter(|cell| cell.run == run)
            .count();
        if count > 0 {
            complain!(
                "help: {} not complete: assay run --resume {} measures what is missing",
                if count == 1 {
                    "1 cell is".to_owned()
                } else {
                    format!("{count} cells are")
                },
                terminal_text(&path.display().to_string())
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use analysis::Pairing;

    use super::*;

    fn row(verdict: Verdict, repeats_needed: Option<u32>) -> ComparedStep {
        ComparedStep {
            target: "pg.next".into(),
            workload: "insert".into(),
            variant: None,
            clients: 8,
            step: "l.i1".into(),
            group: None,
            metric: THROUGHPUT.into(),
            more_is_better: true,
            base_values: Vec::new(),
            values: Vec::new(),
            ratio: None,
            interval: None,
            pairing: Pairing::Paired,
            verdict,
            p_value: None,
            spread: None,
            repeats_needed,
            reasons: Vec::new(),
        }
    }

    #[test]
    fn there_are_always_more_repeats_than_before() {
        assert_eq!(repeats_for(&row(Verdict::Single, None), 1), 5);
        assert_eq!(repeats_for(&row(Verdict::Invalid, None), 7), 8);
        assert_eq!(repeats_for(&row(Verdict::TooNoisy, Some(14)), 5), 14);
        assert_eq!(repeats_for(&row(Verdict::NoChangeShown, Some(4)), 5), 10);
        assert!(is_hopeless(&row(Verdict::TooNoisy, Some(REPEATS_CAP))));
    }

    #[test]
    fn a_comparison_is_told_with_its_reasons() {
        let mut noisy = row(Verdict::TooNoisy, Some(14));
        (noisy.variant, noisy.ratio) = (Some("cached".into()), Some(0.9712));
        noisy.interval = Some(analysis::Interval {
            low: 0.9,
            high: 1.05,
            confidence: 0.95,
        });
        noisy.reasons = vec!["pg.next, repeat 2 is left out: it failed".into()];
        assert_eq!(
            sentence(&noisy, "pg.base", 0.025),
            "pg.next cached c8 l.i1: too noisy to say, 0.971 (0.900-1.050) of pg.base; the threshold is 2.5%; \
             pg.next, repeat 2 is left out: it failed"
        );
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(
            quoted("results/20261121T190211Z-a.b"),
            "results/20261121T190211Z-a.b"
        );
        assert_eq!(quoted("my runs/it's"), "'my runs/it'\\''s'");
    }
}
