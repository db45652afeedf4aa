//! Proposes commands that add repeats to the comparisons that could not be judged.

use std::collections::{BTreeMap, BTreeSet};

use analysis::compare::{ComparedStep, REPEATS_CAP, Thresholds, Verdict, repeats_to_judge};
use glob::Pattern;

use crate::compare::lines::{Line, Runs};

/// The repeats to propose for a comparison that was measured once or is invalid. Fewer give no
/// usable spread.
const REPEATS: u32 = 5;

/// The cells of a run that are measured again.
#[derive(Default)]
struct Again {
    /// The number of repeats that each gets in all.
    repeats: u32,
    /// The filters that select them.
    filters: Vec<String>,
}

/// Returns the commands that add repeats to the cells of some comparisons, one for each run.
pub(super) fn commands(
    runs: &Runs,
    base: &str,
    rows: &[&ComparedStep],
    thresholds: &Thresholds,
    lines: &[Line<'_>],
) -> Vec<String> {
    let mut by_run: BTreeMap<usize, Again> = BTreeMap::new();
    for row in rows {
        let Some(more) = more_repeats(row, thresholds) else {
            continue;
        };

        let base_lines = lines_of(row, base, lines);
        let own_lines = lines_of(row, &row.cell.target, lines);

        // Both are measured again in the last run that has both, so that they take turns. More
        // repeats of runs that have only one of them say nothing about how the runs differ.
        let base_runs: BTreeSet<usize> = base_lines.iter().map(|line| line.run).collect();
        let own_runs: BTreeSet<usize> = own_lines.iter().map(|line| line.run).collect();
        let common_run = own_runs.intersection(&base_runs).max();
        if common_run.is_none() && !base_runs.is_empty() && !own_runs.is_empty() {
            continue;
        }

        for (lines, own) in [(&base_lines, &base_runs), (&own_lines, &own_runs)] {
            if let Some(run) = common_run.or(own.last()) {
                by_run.entry(*run).or_default().add(lines, *run, more);
            }
        }
    }

    by_run.into_iter().map(|(run, again)| again.command(runs, run)).collect()
}

/// Returns the lines of a target in the place of the row's own one.
fn lines_of<'a>(row: &ComparedStep, target: &str, lines: &'a [Line<'a>]) -> Vec<&'a Line<'a>> {
    let key = row.cell.of_target(target);
    lines.iter().filter(|line| line.key.is_repeat_of(&key)).collect()
}

impl Again {
    /// Adds the cells of these lines that are of this run.
    fn add(&mut self, lines: &[&Line<'_>], run: usize, more: NeededRepeats) {
        let of_run: Vec<_> = lines.iter().filter(|line| line.run == run).collect();
        self.repeats = self.repeats.max(more.total_with(of_run.len() as u32));

        // All of them are repeats of the first.
        let Some(first) = of_run.first() else { return };
        let directory = first.cell.name();
        let parent = directory.rsplit_once('/').map_or(directory, |(parent, _)| parent);
        let filter = format!("{}/*", Pattern::escape(parent));

        if !self.filters.contains(&filter) {
            self.filters.push(filter);
        }
    }

    /// Returns the command that measures the cells again.
    fn command(&self, runs: &Runs, run: usize) -> String {
        let plan = if runs.recorded[run].run.plan.password_removed { " PLAN" } else { "" };
        let path = words::shell_quoted(&runs.paths[run].display().to_string());

        let mut command = format!("assay run --resume {path}{plan} --repeats {}", self.repeats);
        for filter in &self.filters {
            command += &format!(" --only '{filter}'");
        }

        command
    }
}

/// The number of repeats that would allow a verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
enum NeededRepeats {
    /// At least this many in total, and at least one more than exist.
    AtLeast(u32),
    /// This many in addition to the existing ones.
    More(u32),
}

impl NeededRepeats {
    /// Returns the total for a run that has `existing` repeats.
    fn total_with(self, existing: u32) -> u32 {
        match self {
            Self::AtLeast(repeats) => repeats.max(existing + 1),
            Self::More(repeats) => existing + repeats,
        }
    }
}

/// Returns the repeats that would allow a verdict. `None` if more repeats don't help: the step does
/// not exist, or the number is impractical.
fn more_repeats(row: &ComparedStep, thresholds: &Thresholds) -> Option<NeededRepeats> {
    match row.verdict {
        Verdict::Single | Verdict::Invalid => Some(NeededRepeats::AtLeast(REPEATS)),
        Verdict::NotComparable => None,
        _ => {
            let existing = row.values.len().max(row.base_values.len()) as u32;
            let needed = repeats_needed(row, thresholds).filter(|&needed| needed < REPEATS_CAP)?;
            Some(NeededRepeats::More(needed.saturating_sub(existing)))
        }
    }
}

/// Returns the total number of repeats that a verdict needs at the comparison's threshold.
pub(super) fn repeats_needed(row: &ComparedStep, thresholds: &Thresholds) -> Option<u32> {
    repeats_to_judge(row, thresholds.of(&row.metric)?)
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;

    /// Returns a noisy comparison of five pairs, whose ratios vary by 10%, and a threshold of
    /// `percent`.
    fn noisy(percent: f64) -> (ComparedStep, Thresholds) {
        let value = analysis::compare::Sample { run: 0, repeat: 1, value: 1.0 };
        let row = ComparedStep {
            values: vec![value; 5],
            base_values: vec![value; 5],
            interval: Some(analysis::compare::Interval { low: 0.77, high: 1.14, confidence: 0.95 }),
            family_level: Some(0.05),
            spread: Some(0.1),
            ..row(Verdict::TooNoisy, Some(REPEATS_CAP))
        };
        let thresholds = Thresholds { default: percent / 100.0, ..Thresholds::default() };
        (row, thresholds)
    }

    #[test]
    fn there_are_always_more_repeats_than_before() {
        let thresholds = Thresholds::default();
        let once = more_repeats(&row(Verdict::Single, None), &thresholds).unwrap();
        assert_eq!((once.total_with(1), once.total_with(7)), (5, 8));
        let invalid = more_repeats(&row(Verdict::Invalid, None), &thresholds);
        assert_eq!(invalid, Some(NeededRepeats::AtLeast(5)));
        let (row, thresholds) = noisy(90.0);
        assert_eq!(more_repeats(&row, &thresholds), Some(NeededRepeats::More(1)));
    }

    #[test]
    fn the_threshold_determines_the_repeats_which_add_to_those_of_all_runs() {
        let (row, thresholds) = noisy(10.0);
        // Power tables: a change of one standard deviation needs 10 pairs, and 10% less is 1.05
        // standard deviations. Intervals that hold after a look at the first pairs are 1.5 times as
        // wide, and so need twice as many.
        let more = more_repeats(&row, &thresholds).unwrap();
        assert!(matches!(more, NeededRepeats::More(13..=18)), "{more:?}");
        assert_eq!(more.total_with(3) - 3, more.total_with(5) - 5);
        // A threshold of 2% would need a hundred or more.
        let (row, thresholds) = noisy(2.0);
        assert_eq!(more_repeats(&row, &thresholds), None);
        assert_eq!(repeats_needed(&row, &thresholds), Some(REPEATS_CAP));
    }
}
