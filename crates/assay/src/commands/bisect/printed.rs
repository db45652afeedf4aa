//! What a search prints: its trials, the table of candidates with a chart, and the answer.

use std::path::Path;

use analysis::bisect::{Change, ChangeEnd, Finding, Link, Outcome, Trial, TrialKind};
use analysis::compare::{CompareOptions, compare};
use inquiry::reading::retain_steps;
use record::RunDir;
use report::{ComparedRun, Comparison, VersionChart, VersionLevel, terminal_text};

use super::log::{Candidate, Log, Question};
use crate::exit::Exit;
use crate::output::{columns, style};

/// The width of the chart in characters.
const CHART_WIDTH: usize = 40;
/// The least range of the chart, so that noise does not fill it: 2 %.
const CHART_RANGE_MIN: f64 = 0.02;

/// Returns the trial that is measured next: `trial 3: 10.7.5 between 10.5.1 and 10.10.1`.
pub(super) fn trial(log: &Log, trial: &Trial) -> String {
    let number = log.trials.iter().filter(|logged| logged.result.is_some()).count() + 1;
    let (low, high) = (title(log, trial.low), title(log, trial.high));

    let what = match trial.kind {
        TrialKind::Ends => format!("the ends, {low} and {high}"),
        TrialKind::Middle(middle) => format!("{} between {low} and {high}", title(log, middle)),
        TrialKind::Confirmation => format!("{low} and {high} once more"),
    };
    format!("trial {number}: {what}")
}

/// Returns the comparison of two candidates: `10.6.2 differs from 10.5.1: 0.70x (0.69 to 0.71)`.
pub(super) fn link(log: &Log, older: usize, newer: usize, link: &Link) -> String {
    let (older, newer) = (title(log, older), title(log, newer));
    let what = match link.finding {
        Finding::Differs => format!("{newer} differs from {older}"),
        Finding::Same => format!("{newer} does not differ from {older}"),
        Finding::Undecided => format!("it is not decided whether {newer} differs from {older}"),
    };
    format!("{what}: {}", size(log, link))
}

/// Returns the size of a difference: `throughput 0.702x (0.691 to 0.713)`.
fn size(log: &Log, link: &Link) -> String {
    let metric = &log.question.metric;
    match (link.ratio, link.interval) {
        (Some(ratio), Some([low, high])) => {
            format!("{metric} {ratio:.3}x ({low:.3} to {high:.3})")
        }
        (Some(ratio), None) => format!("{metric} {ratio:.3}x, without an interval"),
        (None, _) => format!("no {metric} to compare"),
    }
}

fn title(log: &Log, index: usize) -> String {
    terminal_text(&log.candidates[index].title)
}

/// A candidate's level, relative to the oldest candidate.
#[derive(Clone, Copy)]
struct Level {
    ratio: f64,
    /// The interval of the comparison with an older candidate; `None` for the oldest one.
    interval: Option<[f64; 2]>,
}

/// Returns the level of each candidate that was measured.
fn levels(log: &Log) -> Vec<Option<Level>> {
    let mut levels = vec![None; log.candidates.len()];
    levels[0] = Some(Level { ratio: 1.0, interval: None });
    for logged in &log.trials {
        let newer = match logged.trial.kind {
            TrialKind::Ends => logged.trial.high,
            TrialKind::Middle(middle) => middle,
            TrialKind::Confirmation => continue,
        };
        let Some(link) = logged.result.as_ref().and_then(|result| result.links.first()) else {
            continue;
        };
        if let (Some(base), Some(ratio)) = (levels[logged.trial.low], link.ratio) {
            let base: Level = base;
            // Links are relative to the older end of their trial, and levels to the oldest of all.
            let interval = link.interval.map(|interval| interval.map(|end| end * base.ratio));
            levels[newer] = Some(Level { ratio: base.ratio * ratio, interval });
        }
    }

    levels
}

/// Returns the table of all candidates, with a chart of their levels.
pub(super) fn table(log: &Log) -> String {
    // All lines have the same scale, so it is chosen first.
    let levels = levels(log);
    let chart = Chart::new(&levels);
    let metric = format!("{} of the oldest", log.question.metric);
    let mut lines = vec![["candidate".to_owned(), metric, "interval".to_owned(), chart.scale()]];
    for (index, Candidate { title, .. }) in log.candidates.iter().enumerate() {
        let level = levels[index];
        let ratio = match (level, log.unusable.get(&index)) {
            (Some(level), _) => format!("{:.3}", level.ratio),
            (None, Some(_)) => "skipped".to_owned(),
            (None, None) => "not measured".to_owned(),
        };

        let interval = match level.and_then(|level| level.interval) {
            Some([low, high]) => format!("{low:.3} to {high:.3}"),
            None => String::new(),
        };
        let drawn = level.map(|level| chart.line(level)).unwrap_or_default();
        lines.push([terminal_text(title), ratio, interval, drawn]);
    }
    columns(&lines)
}

/// Returns the chart of the candidates that were measured, as an SVG file.
pub(super) fn drawing(log: &Log, threshold: f64) -> String {
    let mut measured = Vec::new();
    for (candidate, level) in log.candidates.iter().zip(levels(log)) {
        if let Some(Level { ratio, interval }) = level {
            let name = terminal_text(&candidate.title);
            measured.push(VersionLevel { name, ratio, interval });
        }
    }

    let Question { step, metric, .. } = &log.question;
    VersionChart { step, metric, threshold, levels: &measured }.file()
}

/// A chart of levels on a logarithmic scale.
struct Chart {
    low: f64,
    high: f64,
}

impl Chart {
    fn new(levels: &[Option<Level>]) -> Self {
        let (mut low, mut high) = (1.0 - CHART_RANGE_MIN, 1.0 + CHART_RANGE_MIN);
        for level in levels.iter().flatten() {
            let [least, most] = level.interval.unwrap_or([level.ratio; 2]);
            low = least.min(low);
            high = most.max(high);
        }

        // An interval may be unbounded.
        Self { low: low.max(0.01), high: high.min(100.0) }
    }

    fn scale(&self) -> String {
        let (low, high) = (format!("{:.2}", self.low), format!("{:.2}", self.high));
        let width = CHART_WIDTH.saturating_sub(low.len());
        format!("{low}{high:>width$}")
    }

    /// Draws a level with its interval: `   ├──●──┤   `.
    fn line(&self, level: Level) -> String {
        let mut line = vec![' '; CHART_WIDTH];
        if let Some([low, high]) = level.interval {
            let (from, to) = (self.column(low), self.column(high));
            for place in &mut line[from..=to] {
                *place = '─';
            }
            line[from] = '├';
            line[to] = '┤';
        }

        line[self.column(level.ratio)] = '●';
        line.into_iter().collect::<String>().trim_end().to_owned()
    }

    fn column(&self, value: f64) -> usize {
        let place = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        let last = (CHART_WIDTH - 1) as f64;
        (place.clamp(0.0, 1.0) * last).round() as usize
    }
}

/// Returns the answer in sentences.
pub(super) fn answer(log: &Log, outcome: &Outcome) -> String {
    let step = &log.question.step;
    let (oldest, newest) = (title(log, 0), title(log, log.candidates.len() - 1));
    let mut text = String::from("\n");

    match outcome {
        Outcome::NoChange => {
            text += &format!("{step} does not differ between {oldest} and {newest}.\n");
            if !log.question.explores {
                text += "A change may have come and gone: `--explore` measures the middle, too.\n";
            }
        }
        Outcome::EndsUndecided => {
            text += &format!(
                "It is not decided whether {step} differs between {oldest} and {newest}: a larger `--repeats-max`, longer \
                 steps or a quieter machine help.\n"
            );
        }
        Outcome::Changes(changes) => {
            for change in changes {
                text += &sentences(log, change);
            }
        }
    }

    for (index, why) in &log.unusable {
        text += &format!("{} was skipped: {}\n", title(log, *index), terminal_text(why));
    }
    text
}

fn sentences(log: &Log, change: &Change) -> String {
    let Change { older, newer, link, skipped, end } = change;
    let step = &log.question.step;
    let (from, to) = (title(log, *older), title(log, *newer));
    let size = size(log, link);

    let answer = match end {
        ChangeEnd::Confirmed if skipped.is_empty() => {
            format!("{step} changed in {to}: {size} of {from}. New instances of both confirm it.")
        }
        ChangeEnd::Confirmed => format!(
            "{step} changed after {from}, in {to} or one of the {} before it that were skipped: {size}. New instances confirm it.",
            skipped.len()
        ),
        ChangeEnd::NotConfirmed => format!(
            "{step} seemed to change in {to}: {size} of {from}. New instances of both did not confirm it."
        ),
        ChangeEnd::Gradual => format!(
            "{step} changed between {from} and {to}: {size}. No step in between is as large as the threshold: the change came \
             in smaller ones. A smaller `--threshold` may find them."
        ),
        ChangeEnd::Undecided => format!(
            "{step} changed between {from} and {to}: {size}. The candidates in between could not be decided: a larger \
             `--repeats-max` may do it."
        ),
        ChangeEnd::NotExcluded => format!(
            "It is not decided whether {step} also changed between {from} and {to}: {size}. A larger `--repeats-max` may do it."
        ),
    };
    answer + "\n"
}

/// Returns the exit code of a search.
pub(super) fn exit(outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Changes(changes)
            if changes.iter().all(|change| {
                matches!(change.end, ChangeEnd::Confirmed | ChangeEnd::NotExcluded)
            }) =>
        {
            Exit::Ok
        }
        _ => Exit::Invalid,
    }
}

/// Returns what `assay compare` says of the step in a run, and how the settings of its targets
/// differ.
pub(super) fn explanation(run: &Path, step: &str) -> anyhow::Result<String> {
    let directory = RunDir::open(run)?;
    let record = directory.read_run()?;

    let mut figures = analysis::figures::figures(std::slice::from_ref(&directory))?;
    retain_steps(&mut figures, &[step.to_owned()]);

    let options = CompareOptions { base: record.base.clone(), ..CompareOptions::default() };
    let compared = compare(&figures, &options);
    let effects = report::effects_of_matrices(&figures, &options);
    let findings = analysis::explain::explain(&figures, &compared);

    let comparison = Comparison {
        run: &record,
        runs: &[ComparedRun { name: run.display().to_string(), run: &record }],
        figures: &figures,
        compared: &compared,
        effects: &effects,
        findings: &findings,
    };
    Ok(format!("\n{}", report::compared(&comparison, style())))
}
