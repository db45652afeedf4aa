//! How to measure just what is in doubt again.

use std::collections::BTreeMap;

use analysis::{ComparedStep, REPEATS_CAP, Thresholds, Verdict, repeats_to_judge};
use glob::Pattern;

use super::{Line, Runs};

/// Repeats of what was measured once, or is invalid: with less there is no spread to speak of.
const REPEATS: u32 = 5;

/// The commands that add repeats to the cells behind some comparisons, one for each run.
pub(super) fn commands(
    runs: &Runs,
    base: &str,
    rows: &[&ComparedStep],
    thresholds: &Thresholds,
    lines: &[Line<'_>],
) -> Vec<String> {
    let mut by_run: BTreeMap<usize, (u32, Vec<String>)> = BTreeMap::new();
    for row in rows {
        let Some(more) = more_repeats(row, thresholds) else {
            continue;
        };
        let of = |target: &str| -> Vec<&Line<'_>> {
            let key = row.cell.of_target(target);
            let lines = lines.iter();
            lines.filter(|line| line.key.is_repeat_of(&key)).collect()
        };
        let (of_base, own) = (of(base), of(&row.cell.target));
        // Both are measured again where they were measured together last, so that they take turns.
        let has = |lines: &[&Line<'_>], run: usize| lines.iter().any(|line| line.run == run);
        let both = own
            .iter()
            .map(|line| line.run)
            .filter(|&run| has(&of_base, run))
            .max();
        let last = |lines: &[&Line<'_>]| lines.iter().map(|line| line.run).max();
        for (lines, run) in [
            (&of_base, both.or(last(&of_base))),
            (&own, both.or(last(&own))),
        ] {
            let Some(run) = run else { continue };
            let of_run = || lines.iter().filter(|line| line.run == run);
            let cells = || of_run().map(|line| line.cell);
            let have = cells().map(|cell| cell.key.repeat).max().unwrap_or(0);
            let (repeats, filters) = by_run.entry(run).or_default();
            *repeats = (*repeats).max(more.in_all_of(have));
            for cell in cells().take(1) {
                let directory = cell.name();
                let above = directory.rsplit_once('/');
                let above = above.map_or(directory, |(above, _)| above);
                let filter = format!("{}/*", Pattern::escape(above));
                if !filters.contains(&filter) {
                    filters.push(filter);
                }
            }
        }
    }
    let command = |(run, (repeats, filters)): (usize, (u32, Vec<String>))| {
        let plan = match runs.recorded[run].run.plan.password_removed {
            true => " PLAN",
            false => "",
        };
        let only = filters.iter().map(|filter| format!(" --only '{filter}'"));
        let only: String = only.collect();
        format!(
            "assay run --resume {}{plan} --repeats {repeats}{only}",
            quoted(&runs.paths[run].display().to_string())
        )
    };
    by_run.into_iter().map(command).collect()
}

/// How many repeats would let a comparison be judged.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Repeats {
    /// At least so many, and one more than there are.
    Least(u32),
    /// So many beside those that there are.
    More(u32),
}

impl Repeats {
    /// The repeats in all of a run that has so many.
    fn in_all_of(self, have: u32) -> u32 {
        match self {
            Self::Least(repeats) => repeats.max(have + 1),
            Self::More(repeats) => have + repeats,
        }
    }
}

/// `None`: more of what is not there is still nothing, of what is too coarse it is no finer, and so many repeats as a
/// hundred are nobody's way out.
fn more_repeats(row: &ComparedStep, thresholds: &Thresholds) -> Option<Repeats> {
    match row.verdict {
        Verdict::Single | Verdict::Invalid => Some(Repeats::Least(REPEATS)),
        Verdict::NotComparable => None,
        _ => {
            let there = row.values.len().max(row.base_values.len()) as u32;
            let needed = repeats_needed(row, thresholds).filter(|&needed| needed < REPEATS_CAP)?;
            Some(Repeats::More(needed.saturating_sub(there)))
        }
    }
}

/// The repeats that it takes at the threshold by which a comparison is judged, in all.
pub(super) fn repeats_needed(row: &ComparedStep, thresholds: &Thresholds) -> Option<u32> {
    repeats_to_judge(row, thresholds.of(&row.metric)?)
}

/// A path as a shell takes it for one word.
fn quoted(path: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "./_-+:,@=".contains(letter);
    match path.chars().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;

    /// A noisy comparison of five pairs, whose ratios vary by 10 %, at a threshold of `percent`.
    fn noisy(percent: f64) -> (ComparedStep, Thresholds) {
        let value = analysis::Sample {
            run: 0,
            repeat: 1,
            value: 1.0,
        };
        let row = ComparedStep {
            values: vec![value; 5],
            base_values: vec![value; 5],
            interval: Some(analysis::Interval {
                low: 0.77,
                high: 1.14,
                confidence: 0.95,
            }),
            spread: Some(0.1),
            ..row(Verdict::TooNoisy, Some(REPEATS_CAP))
        };
        let thresholds = Thresholds {
            default: percent / 100.0,
            ..Thresholds::default()
        };
        (row, thresholds)
    }

    #[test]
    fn there_are_always_more_repeats_than_before() {
        let thresholds = Thresholds::default();
        let once = more_repeats(&row(Verdict::Single, None), &thresholds).unwrap();
        assert_eq!((once.in_all_of(1), once.in_all_of(7)), (5, 8));
        let invalid = more_repeats(&row(Verdict::Invalid, None), &thresholds);
        assert_eq!(invalid, Some(Repeats::Least(5)));
        let (row, thresholds) = noisy(90.0);
        assert_eq!(more_repeats(&row, &thresholds), Some(Repeats::More(1)));
    }

    #[test]
    fn repeats_are_counted_for_the_threshold_and_added_to_those_of_all_runs() {
        let (row, thresholds) = noisy(10.0);
        // Power tables: 10 pairs for a change of one standard deviation, and 10 % less is 1.05 of them.
        let more = more_repeats(&row, &thresholds).unwrap();
        assert!(matches!(more, Repeats::More(4..=6)), "{more:?}");
        assert_eq!(more.in_all_of(3) - 3, more.in_all_of(5) - 5);
        // For 2 % it would be a hundred or more.
        let (row, thresholds) = noisy(2.0);
        assert_eq!(more_repeats(&row, &thresholds), None);
        assert_eq!(repeats_needed(&row, &thresholds), Some(REPEATS_CAP));
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
