//! Decides what a search measures next.

use std::collections::BTreeSet;

use super::{ERROR_RATE, Finding, Link, Trial, TrialKind, TrialResult};

/// The share of the error rate that each of four kinds of trials has.
const SHARE: f64 = ERROR_RATE / 4.0;

/// The candidates of an interval that are tried before it is left as it is. A noisy step would
/// otherwise measure all of them.
const UNDECIDED_MAX: usize = 3;

/// A search over candidates, with the trials that have ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Search {
    /// The number of candidates, at least two.
    pub count: usize,
    /// Measures the middle even if the ends do not differ.
    pub explores: bool,
    /// The trials that ended, in their order.
    pub ended: Vec<(Trial, TrialResult)>,
    /// Candidates that cannot be measured.
    pub unusable: BTreeSet<usize>,
}

/// The next action of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Measures these candidates.
    Measure(Trial),
    /// Nothing: it has ended.
    End(BisectOutcome),
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum BisectOutcome {
    /// The ends do not differ by the threshold, and neither does the middle if it was explored.
    NoChange,
    /// No comparison of the ends decided whether they differ.
    EndsUndecided,
    /// The changes, in the order of the candidates.
    Changes(Vec<Change>),
}

/// A change between two candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The last candidate before the change.
    pub older: usize,
    /// The first candidate after it.
    pub newer: usize,
    /// The comparison that shows it.
    pub link: Link,
    /// The candidates between the two that were skipped.
    pub skipped: Vec<usize>,
    /// The end of the search for it.
    pub end: ChangeEnd,
}

/// The end of the search for one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeEnd {
    /// The neighbors were measured again, and differ in the same direction.
    Confirmed,
    /// They were measured again, and it is not shown that they differ.
    NotConfirmed,
    /// A candidate between the two differs from neither of them: the change is the sum of smaller
    /// ones.
    Gradual,
    /// Several candidates between the two could not be decided.
    Undecided,
    /// No comparison decided whether the two differ. A change beside them was found.
    NotExcluded,
}

/// Two candidates that differ.
#[derive(Clone, Copy)]
struct Interval {
    low: usize,
    high: usize,
    link: Link,
}

/// A candidate's level, relative to the oldest candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CandidateLevel {
    /// The ratio to the oldest candidate.
    pub ratio: f64,
    /// The interval of the comparison with an older candidate; `None` for the oldest one.
    pub interval: Option<[f64; 2]>,
}

impl Search {
    /// Returns the level of each candidate that was measured.
    pub fn levels(&self) -> Vec<Option<CandidateLevel>> {
        let mut levels = vec![None; self.count];
        levels[0] = Some(CandidateLevel { ratio: 1.0, interval: None });
        for (trial, result) in &self.ended {
            let newer = match trial.kind {
                TrialKind::Ends => trial.high,
                TrialKind::Middle(middle) => middle,
                TrialKind::Confirmation => continue,
            };
            let Some(link) = result.links.first() else {
                continue;
            };
            if let (Some(base), Some(ratio)) = (levels[trial.low], link.ratio) {
                let base: CandidateLevel = base;
                // Links are relative to the older end of their trial, and levels to the oldest of
                // all.
                let interval = link.interval.map(|interval| interval.map(|end| end * base.ratio));
                levels[newer] = Some(CandidateLevel { ratio: base.ratio * ratio, interval });
            }
        }

        levels
    }

    /// Returns what to measure next, or the result.
    pub fn next(&self) -> Next {
        let (low, high) = (0, self.count - 1);
        let Some(ends) = self.result(TrialKind::Ends, low, high) else {
            return Next::Measure(Trial { kind: TrialKind::Ends, low, high, level: SHARE });
        };

        let link = ends.links[0];

        let mut changes = Vec::new();
        let needed = match link.finding {
            Finding::Differs => self.narrow(Interval { low, high, link }, &mut changes),
            Finding::Same if self.explores => self.explore(low, high, &mut changes),
            Finding::Same => None,
            Finding::Undecided => return Next::End(BisectOutcome::EndsUndecided),
        };

        match needed {
            Some(trial) => Next::Measure(trial),
            None if changes.is_empty() => Next::End(BisectOutcome::NoChange),
            None => Next::End(BisectOutcome::Changes(changes)),
        }
    }

    /// Compares the middle with ends that do not differ. Returns the trial that is needed first.
    fn explore(&self, low: usize, high: usize, changes: &mut Vec<Change>) -> Option<Trial> {
        let tried: Vec<usize> = self.middles(low, high).map(|(middle, _)| middle).collect();

        let Some((middle, result)) =
            self.middles(low, high).find(|(_, result)| result.says_where_to_go())
        else {
            let next = self.nearest_to_middle(low, high, &tried)?;
            let gives_up = tried.len() >= UNDECIDED_MAX;
            return (!gives_up).then(|| self.middle_trial(next, low, high));
        };

        self.narrow_beside(low, middle, high, result, changes)
    }

    /// Narrows a change down to neighbors, and adds what is known to `changes`. Returns the trial
    /// that is needed first; `None` if nothing more is.
    fn narrow(&self, interval: Interval, changes: &mut Vec<Change>) -> Option<Trial> {
        let Interval { low, high, .. } = interval;
        if let Some((middle, result)) =
            self.middles(low, high).find(|(_, result)| result.says_where_to_go())
        {
            if result.links.iter().all(|link| link.finding == Finding::Same) {
                changes.push(self.change(interval, ChangeEnd::Gradual));
                return None;
            }
            return self.narrow_beside(low, middle, high, result, changes);
        }

        let tried: Vec<usize> = self.middles(low, high).map(|(middle, _)| middle).collect();
        let Some(next) = self.nearest_to_middle(low, high, &tried) else {
            return self.confirm(interval, !tried.is_empty(), changes);
        };
        if tried.len() >= UNDECIDED_MAX {
            changes.push(self.change(interval, ChangeEnd::Undecided));
            return None;
        }
        Some(self.middle_trial(next, low, high))
    }

    /// Continues on each side of a candidate, where it differs from the end. Where that is not
    /// decided, a change may remain.
    fn narrow_beside(
        &self,
        low: usize,
        middle: usize,
        high: usize,
        result: &TrialResult,
        changes: &mut Vec<Change>,
    ) -> Option<Trial> {
        let sides = [
            Interval { low, high: middle, link: result.links[0] },
            Interval { low: middle, high, link: result.links[1] },
        ];

        for side in sides {
            let needed = match side.link.finding {
                Finding::Differs => self.narrow(side, changes),
                Finding::Same => None,
                Finding::Undecided => {
                    changes.push(self.change(side, ChangeEnd::NotExcluded));
                    None
                }
            };
            if needed.is_some() {
                return needed;
            }
        }
        None
    }

    /// Measures neighbors again. If a candidate between them was not decided, they are none.
    fn confirm(
        &self,
        interval: Interval,
        has_undecided: bool,
        changes: &mut Vec<Change>,
    ) -> Option<Trial> {
        let Interval { low, high, link } = interval;
        if has_undecided {
            changes.push(self.change(interval, ChangeEnd::Undecided));
            return None;
        }

        let Some(again) = self.result(TrialKind::Confirmation, low, high) else {
            let earlier = self.count_of(|kind| kind == TrialKind::Confirmation);
            let level = SHARE * share_of_endless(earlier + 1);
            return Some(Trial { kind: TrialKind::Confirmation, low, high, level });
        };

        let is_same_way = is_more(again.links[0]) == is_more(link);
        let is_confirmed = again.links[0].finding == Finding::Differs && is_same_way;
        let end = if is_confirmed { ChangeEnd::Confirmed } else { ChangeEnd::NotConfirmed };
        changes.push(self.change(interval, end));
        None
    }

    fn change(&self, interval: Interval, end: ChangeEnd) -> Change {
        let Interval { low, high, link } = interval;
        let skipped = (low + 1..high).filter(|candidate| self.unusable.contains(candidate));
        Change { older: low, newer: high, link, skipped: skipped.collect(), end }
    }

    /// Returns the result of a trial that ended.
    fn result(&self, kind: TrialKind, low: usize, high: usize) -> Option<&TrialResult> {
        let is_it = |trial: &Trial| trial.kind == kind && (trial.low, trial.high) == (low, high);
        self.ended.iter().find(|(trial, _)| is_it(trial)).map(|(_, result)| result)
    }

    /// Returns the candidates that were measured with the ends of an interval.
    fn middles(&self, low: usize, high: usize) -> impl Iterator<Item = (usize, &TrialResult)> {
        self.ended.iter().filter_map(move |(trial, result)| match trial.kind {
            TrialKind::Middle(middle) if (trial.low, trial.high) == (low, high) => {
                Some((middle, result))
            }
            _ => None,
        })
    }

    /// Returns the candidate to measure between two others; `None` if there is none left.
    fn nearest_to_middle(&self, low: usize, high: usize, tried: &[usize]) -> Option<usize> {
        let usable =
            |candidate: &usize| !self.unusable.contains(candidate) && !tried.contains(candidate);
        let from_middle = |candidate: &usize| (2 * candidate).abs_diff(low + high);
        (low + 1..high).filter(usable).min_by_key(from_middle)
    }

    fn middle_trial(&self, middle: usize, low: usize, high: usize) -> Trial {
        let number = 1 + self.count_of(|kind| matches!(kind, TrialKind::Middle(_)));
        let halvings = self.count.next_power_of_two().ilog2() as usize;
        let share = if number <= halvings {
            SHARE / halvings as f64
        } else {
            SHARE * share_of_endless(number - halvings)
        };

        // It compares the candidate with two others.
        Trial { kind: TrialKind::Middle(middle), low, high, level: share / 2.0 }
    }

    fn count_of(&self, is_wanted: impl Fn(TrialKind) -> bool) -> usize {
        self.ended.iter().filter(|(trial, _)| is_wanted(trial.kind)).count()
    }
}

/// Returns the share of the trial with this number, from 1, in a rate that suffices for any number
/// of trials: the shares add up to 1.
fn share_of_endless(number: usize) -> f64 {
    1.0 / (number * (number + 1)) as f64
}

fn is_more(link: Link) -> Option<bool> {
    link.ratio.map(|ratio| ratio > 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches candidates with these levels, of which some cannot be measured. Levels that differ
    /// by less than 3% are the same. Returns the result and the number of trials.
    fn search(levels: &[f64], broken: &[usize], explores: bool) -> (BisectOutcome, usize) {
        let mut search = Search { count: levels.len(), explores, ..Search::default() };
        let link = |low: usize, high: usize| {
            let ratio = levels[high] / levels[low];
            let differs = (ratio - 1.0).abs() > 0.03;
            let finding = if differs { Finding::Differs } else { Finding::Same };
            Link { ratio: Some(ratio), interval: None, finding }
        };
        loop {
            match search.next() {
                Next::End(outcome) => return (outcome, search.ended.len()),
                Next::Measure(trial) => match trial.kind {
                    TrialKind::Middle(middle) if broken.contains(&middle) => {
                        search.unusable.insert(middle);
                    }
                    _ => {
                        let links = trial.pairs().iter().map(|p| link(p.older, p.newer)).collect();
                        search.ended.push((trial, TrialResult { links }));
                    }
                },
            }
            assert!(search.ended.len() < 100, "the search does not end");
        }
    }

    fn steps(outcome: &BisectOutcome) -> Vec<(usize, usize, ChangeEnd)> {
        match outcome {
            BisectOutcome::Changes(changes) => {
                changes.iter().map(|change| (change.older, change.newer, change.end)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn levels(steps: &[(usize, f64)]) -> Vec<f64> {
        let level = |at: usize| steps.iter().rfind(|(from, _)| at >= *from).map(|step| step.1);
        (0..32).map(|at| level(at).unwrap_or(1.0)).collect()
    }

    #[test]
    fn every_place_of_one_change_is_found_with_few_trials() {
        for at in 1..32 {
            let (outcome, trials) = search(&levels(&[(at, 0.8)]), &[], false);
            assert_eq!(steps(&outcome), [(at - 1, at, ChangeEnd::Confirmed)]);
            // The ends, five halvings, and the confirmation.
            assert!(trials <= 7, "{at}: {trials}");
        }
    }

    #[test]
    fn a_change_in_two_steps_is_two_and_one_that_came_and_went_is_both() {
        let (two, _) = search(&levels(&[(5, 0.9), (20, 0.8)]), &[], false);
        let found = [(4, 5, ChangeEnd::Confirmed), (19, 20, ChangeEnd::Confirmed)];
        assert_eq!(steps(&two), found);
        let gone = levels(&[(10, 0.8), (22, 1.0)]);
        assert_eq!(search(&gone, &[], false).0, BisectOutcome::NoChange);
        let found = [(9, 10, ChangeEnd::Confirmed), (21, 22, ChangeEnd::Confirmed)];
        assert_eq!(steps(&search(&gone, &[], true).0), found);
    }

    #[test]
    fn candidates_that_can_not_be_measured_leave_a_range() {
        let (outcome, _) = search(&levels(&[(12, 0.8)]), &[11, 12, 13], false);
        let BisectOutcome::Changes(changes) = outcome else { panic!("{outcome:?}") };
        assert_eq!((changes[0].older, changes[0].newer), (10, 14));
        assert_eq!(changes[0].skipped, [11, 12, 13]);
        assert_eq!(changes[0].end, ChangeEnd::Confirmed);
    }

    #[test]
    fn a_change_of_many_small_steps_is_gradual() {
        let gradual: Vec<f64> = (0..8).map(|at| 1.0 + 0.007 * f64::from(at)).collect();
        let (outcome, trials) = search(&gradual, &[], false);
        assert_eq!(steps(&outcome), [(0, 7, ChangeEnd::Gradual)]);
        assert_eq!(trials, 2);
    }

    #[test]
    fn undecided_candidates_are_left_after_a_few_tries() {
        let undecided = Link { ratio: Some(1.0), interval: None, finding: Finding::Undecided };
        let differs = Link { ratio: Some(2.0), finding: Finding::Differs, ..undecided };
        let mut search = Search { count: 9, ..Search::default() };
        let mut middles = Vec::new();
        let outcome = loop {
            match search.next() {
                Next::End(outcome) => break outcome,
                Next::Measure(trial) => {
                    let link = match trial.kind {
                        TrialKind::Middle(middle) => {
                            middles.push(middle);
                            undecided
                        }
                        _ => differs,
                    };
                    let links = vec![link; trial.pairs().len()];
                    search.ended.push((trial, TrialResult { links }));
                }
            }
        };
        assert_eq!(middles, [4, 3, 5]);
        assert_eq!(steps(&outcome), [(0, 8, ChangeEnd::Undecided)]);
    }

    #[test]
    fn a_candidate_that_differs_from_one_end_leads_there_though_the_other_is_undecided() {
        let link = |finding| Link { ratio: Some(2.0), interval: None, finding };
        let (differs, undecided) = (link(Finding::Differs), link(Finding::Undecided));
        let mut search = Search { count: 4, ..Search::default() };
        let outcome = loop {
            match search.next() {
                Next::End(outcome) => break outcome,
                Next::Measure(trial) => {
                    let links = match trial.kind {
                        TrialKind::Middle(1) => vec![undecided, differs],
                        TrialKind::Middle(2) => vec![differs, link(Finding::Same)],
                        _ => vec![differs],
                    };
                    search.ended.push((trial, TrialResult { links }));
                }
            }
        };
        let found = [(0, 1, ChangeEnd::NotExcluded), (1, 2, ChangeEnd::Confirmed)];
        assert_eq!(steps(&outcome), found);
    }

    #[test]
    fn the_levels_of_all_trials_add_up_to_the_error_rate() {
        let search = Search { count: 32, ..Search::default() };
        let mut all = SHARE;
        let mut ended = search.clone();
        let result = TrialResult { links: Vec::new() };
        for _ in 0..200 {
            let trial = ended.middle_trial(1, 0, 31);
            all += 2.0 * trial.level;
            ended.ended.push((trial, result.clone()));
        }
        all += (1..200).map(|number| SHARE * share_of_endless(number)).sum::<f64>();
        assert!(all <= ERROR_RATE && all > 0.99 * ERROR_RATE, "{all}");
    }
}
