//! The history of runs, with what its tables and pages share.

use analysis::compat::differences_text;
use analysis::history::{
    Cause, Change, Circumstances, History, HistoryPoint, RunSummary, SeriesHistory,
};
use record::FactDifference;

use super::number::{fixed, moment};

/// A history with its runs.
#[derive(Clone, Copy, Debug)]
pub struct HistoryView<'a> {
    /// The folder of the runs.
    pub folder: &'a str,
    /// The runs in the order of their start.
    pub runs: &'a [RunSummary],
    /// The names of their directories.
    pub names: &'a [String],
    /// The series.
    pub history: &'a History,
    /// The share of changes that may be false.
    pub error_rate: f64,
    /// The smallest relative change that is shown.
    pub effect: f64,
}

impl HistoryView<'_> {
    /// Returns the time at which a run started, to the minute: `2026-11-21 19:02`.
    pub(crate) fn started(&self, run: usize) -> String {
        let to_the_second = moment(self.runs[run].started_unix_ns);
        to_the_second.get(..16).unwrap_or(&to_the_second).to_owned()
    }

    /// Returns the version of a series' target in a run.
    pub(crate) fn version(&self, series: &SeriesHistory, run: usize) -> &str {
        let target = self.runs[run].target(&series.key.target);
        target.map_or("", |target| target.version.as_str())
    }

    /// Returns when a change came: the start of the run and the version of the build.
    pub(crate) fn since(&self, series: &SeriesHistory, change: &Change) -> String {
        let run = series.points[change.level.at].run;
        match self.version(series, run) {
            "" => self.started(run),
            version => format!("{} {version}", self.started(run)),
        }
    }

    /// Returns the runs among which the first one of the new level is, if that is not certain.
    pub(crate) fn range(&self, series: &SeriesHistory, change: &Change) -> Option<String> {
        let run = |at: usize| self.names[series.points[at].run].as_str();
        let (earliest, latest) = (change.level.earliest, change.level.latest);
        (earliest != latest).then(|| format!("`{}` to `{}`", run(earliest), run(latest)))
    }
}

/// Returns the change of a level with its interval: `0.912x (0.905-0.919)`.
pub(crate) fn change_text(change: &Change) -> String {
    let level = change.level;
    with_ends(level.ratio, level.low, level.high)
}

/// Formats a ratio with its interval. Levels of many runs are known to a part of a percent.
fn with_ends(ratio: f64, low: f64, high: f64) -> String {
    let decimals = if ratio < 10.0 { 3 } else { 1 };
    let [ratio, low, high] = [ratio, low, high].map(|value| fixed(value, decimals));
    format!("{ratio}x ({low}-{high})")
}

/// Returns the cause of a change in a few words.
pub(crate) fn cause_text(cause: Cause) -> &'static str {
    match cause {
        Cause::Target => "target",
        Cause::Machine => "machine: another one, or changed",
        Cause::Reference => "machine: the reference moved as well",
        Cause::SameTarget => "machine: the target is the same",
        Cause::Assay => "assay: another version measured",
        Cause::Unclear => "unclear: the reference is too noisy",
    }
}

/// Returns what differs between the runs around a change, a text for each kind of fact.
pub(crate) fn differing(circumstances: &Circumstances) -> Vec<String> {
    let Circumstances { build, config, machine, assay, references, .. } = circumstances;
    let kind = |name: &str, facts: &[FactDifference]| {
        (!facts.is_empty()).then(|| format!("{name}: {}", differences_text(facts, "none")))
    };

    let mut texts: Vec<String> = [
        kind("build", build),
        kind("config", config),
        kind("machine", machine),
        kind("measured by", assay),
    ]
    .into_iter()
    .flatten()
    .collect();

    for reference in references {
        let moved = with_ends(reference.ratio, reference.low, reference.high);
        texts.push(format!("reference `{}`: {moved}", reference.target));
    }
    texts
}

/// Returns the name of a series' load: `c8`, or `cached c8`.
pub(crate) fn load_text(series: &SeriesHistory) -> String {
    load_of(series.key.variant.as_deref(), series.key.clients)
}

/// Returns the name of a load: `c8`, or `cached c8`.
pub(crate) fn load_of(variant: Option<&str>, clients: u32) -> String {
    let prefix = variant.map_or(String::new(), |name| format!("{name} "));
    format!("{prefix}c{clients}")
}

/// Returns the plan of a series, with the number of its work if the plan had others.
pub(crate) fn plan_text(series: &SeriesHistory) -> String {
    match series.key.work {
        1 => series.key.plan.clone(),
        work => format!("{} ({work})", series.key.plan),
    }
}

/// Returns the last point of a series.
pub(crate) fn newest(series: &SeriesHistory) -> Option<&HistoryPoint> {
    series.points.last()
}
