//! The text of a bisection: its trials, their results, and the answer.

use std::collections::BTreeMap;

use analysis::bisect::{BisectOutcome, Change, ChangeEnd, Finding, Link, Search, Trial, TrialKind};

use super::SECOND_TRIAL;
use crate::model::text::terminal_text;

/// A search for a change among candidates, with what is known so far.
#[derive(Clone, Debug)]
pub struct BisectView {
    /// The step.
    pub step: String,
    /// The metric.
    pub metric: String,
    /// The names of the candidates, the oldest first.
    pub titles: Vec<String>,
    /// The trials that have ended.
    pub search: Search,
    /// Why candidates cannot be measured, by their index.
    pub unusable: BTreeMap<usize, String>,
}

impl BisectView {
    /// Returns the trial that is measured next: `trial 3: 10.7.5 between 10.5.1 and 10.10.1`.
    pub fn trial(&self, trial: &Trial) -> String {
        let number = self.search.ended.len() + 1;
        let (low, high) = (self.title(trial.low), self.title(trial.high));

        let what = match trial.kind {
            TrialKind::Ends => format!("the ends, {low} and {high}"),
            TrialKind::Middle(middle) => format!("{} between {low} and {high}", self.title(middle)),
            TrialKind::Confirmation => format!("{low} and {high} once more"),
        };
        format!("trial {number}: {what}")
    }

    /// Returns the comparison of two candidates: `10.6.2 differs from 10.5.1: 0.70x (0.69 to
    /// 0.71)`.
    pub fn link(&self, older: usize, newer: usize, link: &Link) -> String {
        let (older, newer) = (self.title(older), self.title(newer));
        let what = match link.finding {
            Finding::Differs => format!("{newer} differs from {older}"),
            Finding::Same => format!("{newer} does not differ from {older}"),
            Finding::Undecided => format!("it is not decided whether {newer} differs from {older}"),
        };
        format!("{what}: {}", self.size(link))
    }

    /// Returns that a candidate is skipped, and why.
    pub fn skipped(&self, candidate: usize, why: &str) -> String {
        format!("  skipped `{}`: {}", self.title(candidate), terminal_text(why))
    }

    /// Returns the size of a difference: `throughput 0.702x (0.691 to 0.713)`.
    fn size(&self, link: &Link) -> String {
        let metric = &self.metric;
        match (link.ratio, link.interval) {
            (Some(ratio), Some([low, high])) => {
                format!("{metric} {ratio:.3}x ({low:.3} to {high:.3})")
            }
            (Some(ratio), None) => format!("{metric} {ratio:.3}x, without an interval"),
            (None, _) => format!("no {metric} to compare"),
        }
    }

    pub(crate) fn title(&self, index: usize) -> String {
        terminal_text(&self.titles[index])
    }

    /// Returns the answer in sentences.
    pub fn answer(&self, outcome: &BisectOutcome) -> String {
        let step = &self.step;
        let (oldest, newest) = (self.title(0), self.title(self.titles.len() - 1));
        let mut text = String::from("\n");

        match outcome {
            BisectOutcome::NoChange => {
                text += &format!("{step} does not differ between {oldest} and {newest}.\n");
                if !self.search.explores {
                    text +=
                        "A change may have come and gone: `--explore` measures the middle, too.\n";
                }
            }
            BisectOutcome::EndsUndecided => {
                text += &format!(
                    "It is not decided whether {step} differs between {oldest} and {newest}: a larger `--repeats-max`, longer \
                 steps or a quieter machine may help.\n"
                );
            }
            BisectOutcome::Changes(changes) => {
                for change in changes {
                    text += &self.sentences(change);
                }
            }
        }

        for (index, why) in &self.unusable {
            text += &format!("{} was skipped: {}\n", self.title(*index), terminal_text(why));
        }
        text
    }

    fn sentences(&self, change: &Change) -> String {
        let Change { older, newer, link, skipped, end } = change;
        let step = &self.step;
        let (from, to) = (self.title(*older), self.title(*newer));
        let size = self.size(link);

        let answer = match end {
            ChangeEnd::Confirmed if skipped.is_empty() => {
                format!(
                    "{step} changed in {to}: {size} that of {from}. {SECOND_TRIAL} confirms the change."
                )
            }
            ChangeEnd::Confirmed => format!(
                "{step} changed after {from}, in {to} or one of the {} before it that were skipped: {size}. {SECOND_TRIAL} confirms the change.",
                skipped.len()
            ),
            ChangeEnd::NotConfirmed => format!(
                "{step} seemed to change in {to}: {size} that of {from}. {SECOND_TRIAL} did not confirm the change."
            ),
            ChangeEnd::Gradual => format!(
                "{step} changed between {from} and {to}: {size}. No version in between changed it by as much as the threshold: the change \
             came in smaller parts. A smaller `--threshold` may find them."
            ),
            ChangeEnd::Undecided => format!(
                "{step} changed between {from} and {to}: {size}. The candidates in between could not be decided: a larger \
             `--repeats-max` may decide them."
            ),
            ChangeEnd::NotExcluded => format!(
                "It is not decided whether {step} also changed between {from} and {to}: {size}. A larger `--repeats-max` may decide it."
            ),
        };
        answer + "\n"
    }
}
