//! Finds the highest rate at which a step meets its bounds: what was tried, which rate to try next, and the result.

use std::collections::BTreeMap;

use record::{CellKey, RateSearch, Run};
use serde::Serialize;

use crate::{Figures, LagVerdict, Row, operation};

/// The search for one target with one number of clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchedTarget {
    /// The target's name.
    pub target: String,
    /// The number of clients.
    pub clients: u32,
    /// The rates that were tried, the lowest first; then the cell without a rate, if there is one.
    pub trials: Vec<RateTrial>,
    /// The next rate to try, or the result.
    pub state: SearchState,
}

/// One rate that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateTrial {
    /// The variant of the workload that has the rate.
    pub variant: Option<String>,
    /// The requested rate of all clients, in rows or events per second; `None`: as fast as possible.
    pub rate: Option<f64>,
    /// The achieved rate of all clients, the lowest of all repeats; `None` without a valid repeat.
    pub achieved: Option<f64>,
    /// The 99th percentile of response times in milliseconds: the longest of all repeats and scheduled kinds of operations.
    pub p99_ms: Option<f64>,
    /// The largest lag of a replica in milliseconds, over all repeats.
    pub lag_ms_max: Option<f64>,
    /// How fast the lag grew, in milliseconds per second: the fastest of all repeats.
    pub lag_ms_slope: Option<f64>,
    /// Whether the bounds were met.
    pub verdict: TrialVerdict,
}

/// Whether a rate meets the bounds of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialVerdict {
    /// Every valid repeat met all bounds.
    Sustained,
    /// A repeat missed these bounds.
    Missed(Vec<MissedBound>),
    /// There is no answer, for this reason.
    NotJudged(String),
}

/// A bound that was missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissedBound {
    /// The rate itself was not reached.
    Rate,
    /// The 99th percentile of response times.
    ResponseTime,
    /// The lag of replicas: too large, or growing.
    Lag,
}

/// The next rate to try, or the result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchState {
    /// To try next: a rate per second and client, or `None` for as fast as possible.
    Next(Option<f64>),
    /// The highest rate that met all bounds, and the lowest that did not, per second of all clients. The latter is that of
    /// the cell without a rate if no other missed a bound.
    Found {
        /// The highest sustained rate.
        sustained: f64,
        /// The lowest rate that missed a bound.
        missed: f64,
    },
    /// The highest rate that was to be tried met all bounds: the rate per second of all clients.
    NotLimited(f64),
    /// No rate met all bounds: the lowest one that was tried, per second of all clients.
    NoneSustained(f64),
    /// The search cannot continue, for this reason.
    Stopped(String),
}

/// The share of the highest rate below which no rate is tried.
const LOWEST_SHARE: f64 = 1.0 / 64.0;
/// The operations without which a 99th percentile says nothing.
const OPS_MIN: u64 = 100;

/// Returns the state of a run's search for each target and number of clients, in the order of its cells. Empty if the run has
/// no search.
pub fn rate_searches(record: &Run, figures: &Figures) -> Vec<SearchedTarget> {
    let Some(search) = &record.search else {
        return Vec::new();
    };
    let mut searched: Vec<SearchedTarget> = Vec::new();
    for cell in record.cells.iter().map(|cell| &cell.key) {
        let is_known = |it: &SearchedTarget| it.target == cell.target && it.clients == cell.clients;
        if cell.profiled || searched.iter().any(is_known) {
            continue;
        }
        let trials = trials(search, record, cell, figures);
        searched.push(SearchedTarget {
            target: cell.target.clone(),
            clients: cell.clients,
            state: state(search, &trials, cell.clients),
            trials,
        });
    }
    searched
}

/// Returns the rates that were tried on the target of a cell, with its number of clients.
fn trials(search: &RateSearch, record: &Run, of: &CellKey, figures: &Figures) -> Vec<RateTrial> {
    let cells = record.cells.iter().map(|cell| &cell.key);
    let cells =
        cells.filter(|it| it.target == of.target && it.clients == of.clients && !it.profiled);
    let mut rows: BTreeMap<Option<&str>, Vec<Option<&Row>>> = BTreeMap::new();
    for cell in cells {
        let row = figures
            .rows
            .iter()
            .find(|row| row.step == search.step && row.cell == *cell);
        rows.entry(cell.variant.as_deref()).or_default().push(row);
    }
    let trial = |(variant, rows): (Option<&str>, Vec<Option<&Row>>)| trial(search, variant, &rows);
    let mut trials: Vec<RateTrial> = rows.into_iter().map(trial).collect();
    let rate = |trial: &RateTrial| trial.rate.unwrap_or(f64::INFINITY);
    trials.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    trials
}

/// Judges the repeats of one variant. A repeat without a row has failed or was not measured.
fn trial(search: &RateSearch, variant: Option<&str>, repeats: &[Option<&Row>]) -> RateTrial {
    let rows: Vec<&Row> = repeats.iter().flatten().copied().collect();
    let valid: Vec<&Row> = rows.iter().copied().filter(|row| row.valid).collect();
    let largest = |figure: &dyn Fn(&Row) -> Option<f64>| {
        valid.iter().filter_map(|row| figure(row)).reduce(f64::max)
    };
    let rate = rows.iter().find_map(|row| Some(row.sla.as_ref()?.target));
    let verdict = match valid.is_empty() {
        true => {
            let mut reasons = rows.iter().flat_map(|row| &row.reasons);
            let reason = reasons.next().cloned();
            TrialVerdict::NotJudged(reason.unwrap_or_else(|| "its cell has no such step".into()))
        }
        false => together(valid.iter().map(|row| verdict(search, row))),
    };
    RateTrial {
        variant: variant.map(str::to_owned),
        rate,
        achieved: valid
            .iter()
            .filter_map(|row| achieved(row))
            .reduce(f64::min),
        p99_ms: largest(&p99_ms),
        lag_ms_max: largest(&|row| row.metric("lag_ms_max")),
        lag_ms_slope: largest(&|row| row.metric("lag_ms_slope")),
        verdict,
    }
}

/// Returns the verdict of several repeats: a bound that one of them misses is missed.
fn together(verdicts: impl Iterator<Item = TrialVerdict>) -> TrialVerdict {
    let mut missed = Vec::new();
    let mut unknown = None;
    for verdict in verdicts {
        match verdict {
            TrialVerdict::Sustained => {}
            TrialVerdict::Missed(bounds) => missed.extend(bounds),
            TrialVerdict::NotJudged(reason) => unknown = Some(reason),
        }
    }
    missed.sort();
    missed.dedup();
    match (missed.is_empty(), unknown) {
        (false, _) => TrialVerdict::Missed(missed),
        (true, Some(reason)) => TrialVerdict::NotJudged(reason),
        (true, None) => TrialVerdict::Sustained,
    }
}

/// Returns the rate that a step achieved: rows or events per second.
fn achieved(row: &Row) -> Option<f64> {
    if let Some(sla) = &row.sla {
        return Some(sla.achieved);
    }
    let kind = row.main_op.as_deref()?;
    let op = row.ops.get(kind)?;
    Some(match operation::has_rate_in_rows(kind) {
        true => op.rows_per_second,
        false => op.per_second,
    })
}

/// Returns the longest 99th percentile of response times in milliseconds; `None` without operations that have a schedule.
fn p99_ms(row: &Row) -> Option<f64> {
    let scheduled = row.ops.values().filter(|op| op.scheduled && op.count > 0);
    scheduled
        .map(|op| op.response_us.p99 / 1e3)
        .reduce(f64::max)
}

fn verdict(search: &RateSearch, row: &Row) -> TrialVerdict {
    let rate = row.sla.iter().filter(|sla| !sla.met);
    let rate = rate.map(|_| TrialVerdict::Missed(vec![MissedBound::Rate]));
    let p99 = search.p99_ms.iter().map(|bound| match p99_ms(row) {
        None => TrialVerdict::NotJudged("without a rate there is no response time".into()),
        Some(_) if row.ops.values().map(|op| op.count).sum::<u64>() < OPS_MIN => {
            let reason = format!(
                "fewer than {OPS_MIN} operations have no 99th percentile: make the step longer"
            );
            TrialVerdict::NotJudged(reason)
        }
        Some(p99) if p99 > *bound => TrialVerdict::Missed(vec![MissedBound::ResponseTime]),
        Some(_) => TrialVerdict::Sustained,
    });
    // The plan's bound is that of the search.
    let lag = search
        .lag_ms
        .iter()
        .map(|_| match row.lag.map(|lag| lag.verdict) {
            Some(LagVerdict::Bounded) => TrialVerdict::Sustained,
            Some(LagVerdict::Grows | LagVerdict::TooLarge) => {
                TrialVerdict::Missed(vec![MissedBound::Lag])
            }
            Some(LagVerdict::NotApplicable(reason)) => TrialVerdict::NotJudged(reason.to_owned()),
            None => TrialVerdict::NotJudged("the target has no replicas".to_owned()),
        });
    together(rate.chain(p99).chain(lag))
}

/// Returns what follows from the trials, by bisection between the highest rate that met all bounds and the lowest that did
/// not.
fn state(search: &RateSearch, trials: &[RateTrial], clients: u32) -> SearchState {
    let clients = f64::from(clients);
    let unlimited = trials.iter().find(|trial| trial.rate.is_none());
    let top = match (search.rate_max, unlimited) {
        (Some(rate), _) => rate * clients,
        (None, None) => return SearchState::Next(None),
        (None, Some(trial)) => match (trial.achieved, &trial.verdict) {
            (Some(rate), TrialVerdict::Sustained) => return SearchState::NotLimited(rate),
            (Some(rate), _) => rate,
            (None, TrialVerdict::NotJudged(reason)) => return stopped(trial, reason),
            (None, _) => return stopped(trial, "it achieved nothing"),
        },
    };
    let rated = || trials.iter().filter(|trial| trial.rate.is_some());
    for trial in rated() {
        if let TrialVerdict::NotJudged(reason) = &trial.verdict {
            return stopped(trial, reason);
        }
    }
    let rates = |is_sustained: bool| {
        let such =
            rated().filter(move |it| (it.verdict == TrialVerdict::Sustained) == is_sustained);
        such.filter_map(|trial| trial.rate)
    };
    let missed = rates(false).reduce(f64::min);
    let ceiling = missed.unwrap_or(top);
    let sustained = rates(true).filter(|rate| *rate < ceiling).reduce(f64::max);
    if missed.is_none() && search.rate_max.is_some() {
        // The highest rate first: it may be the answer.
        let highest = rates(true).reduce(f64::max);
        return match highest {
            Some(rate) => SearchState::NotLimited(rate),
            None => SearchState::Next(search.rate_max),
        };
    }
    let next = rounded((sustained.unwrap_or(0.0) + ceiling) / 2.0 / clients);
    let was_tried = rated().any(|trial| {
        trial
            .rate
            .is_some_and(|rate| (rate / (next * clients) - 1.0).abs() < 1e-9)
    });
    match sustained {
        Some(sustained) if was_tried || sustained >= ceiling * (1.0 - search.tolerance) => {
            SearchState::Found {
                sustained,
                missed: ceiling,
            }
        }
        None if was_tried || ceiling <= top * LOWEST_SHARE => SearchState::NoneSustained(ceiling),
        _ => SearchState::Next(Some(next)),
    }
}

fn stopped(trial: &RateTrial, reason: &str) -> SearchState {
    let what = trial.variant.as_deref().unwrap_or("a cell");
    SearchState::Stopped(format!("{what} can't be judged: {reason}"))
}

/// Rounds a rate to three significant digits.
fn rounded(rate: f64) -> f64 {
    let digits = 10_f64.powf(2.0 - rate.log10().floor());
    (rate * digits).round() / digits
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEARCH: RateSearch = RateSearch {
        step: String::new(),
        p99_ms: Some(20.0),
        lag_ms: None,
        rate_max: None,
        tolerance: 0.05,
    };

    fn trial(rate: Option<f64>, achieved: f64, verdict: TrialVerdict) -> RateTrial {
        RateTrial {
            variant: Some("tried".into()),
            rate,
            achieved: Some(achieved),
            p99_ms: None,
            lag_ms_max: None,
            lag_ms_slope: None,
            verdict,
        }
    }

    /// Searches with four clients a system that sustains `limit` per second and achieves 4,000 per second without a rate.
    fn search(limit: f64, search: &RateSearch) -> (SearchState, usize) {
        let mut trials = Vec::new();
        loop {
            let next = match state(search, &trials, 4) {
                SearchState::Next(next) => next,
                state => return (state, trials.len()),
            };
            let missed = TrialVerdict::Missed(vec![MissedBound::ResponseTime]);
            trials.push(match next.map(|rate| rate * 4.0) {
                None => trial(None, 4000.0, TrialVerdict::NotJudged("no rate".into())),
                Some(rate) if rate <= limit => trial(Some(rate), rate, TrialVerdict::Sustained),
                Some(rate) => trial(Some(rate), limit, missed),
            });
            assert!(trials.len() < 20, "{trials:?}");
        }
    }

    #[test]
    fn the_limit_lies_between_the_rates_that_are_found() {
        for limit in [100.0, 777.0, 1600.0, 2900.0, 3800.0, 3999.0] {
            let (state, trials) = search(limit, &SEARCH);
            let SearchState::Found { sustained, missed } = state else {
                panic!("{state:?}");
            };
            assert!(sustained <= limit && limit < missed, "{state:?}");
            assert!(sustained >= 0.94 * missed, "{state:?}");
            assert!(trials <= 11, "{trials} trials for {limit}");
        }
    }

    #[test]
    fn a_rate_that_nothing_sustains_ends_the_search() {
        let (state, _) = search(10.0, &SEARCH);
        let is_low = |rate| (10.0..=4000.0 / 64.0).contains(&rate);
        assert!(
            matches!(state, SearchState::NoneSustained(rate) if is_low(rate)),
            "{state:?}"
        );
    }

    #[test]
    fn the_highest_rate_is_tried_first_and_may_be_the_answer() {
        let capped = RateSearch {
            rate_max: Some(500.0),
            ..SEARCH
        };
        let found = search(2500.0, &capped);
        assert_eq!(found, (SearchState::NotLimited(2000.0), 1));
        let (state, _) = search(1000.0, &capped);
        let SearchState::Found { sustained, .. } = state else {
            panic!("{state:?}");
        };
        assert!((950.0..=1000.0).contains(&sustained), "{sustained}");
    }

    #[test]
    fn a_lag_that_is_bounded_without_a_rate_ends_the_search() {
        let trials = [trial(None, 4000.0, TrialVerdict::Sustained)];
        let of_lag = RateSearch {
            p99_ms: None,
            lag_ms: Some(1000.0),
            ..SEARCH
        };
        assert_eq!(state(&of_lag, &trials, 4), SearchState::NotLimited(4000.0));
    }

    #[test]
    fn a_rate_that_cannot_be_judged_stops_the_search() {
        let trials = [
            trial(
                Some(2000.0),
                2000.0,
                TrialVerdict::NotJudged("it failed".into()),
            ),
            trial(None, 4000.0, TrialVerdict::NotJudged("no rate".into())),
        ];
        let stopped = SearchState::Stopped("tried can't be judged: it failed".into());
        assert_eq!(state(&SEARCH, &trials, 4), stopped);
    }

    #[test]
    fn a_step_at_a_rate_misses_each_bound_for_itself() {
        let row = |p99_us, met| Row {
            sla: Some(crate::Sla {
                met,
                ..crate::Sla::default()
            }),
            ops: BTreeMap::from([(
                "insert".to_owned(),
                crate::OpFigures {
                    count: 1000,
                    scheduled: true,
                    response_us: crate::Percentiles {
                        p99: p99_us,
                        ..crate::Percentiles::default()
                    },
                    ..crate::OpFigures::default()
                },
            )]),
            ..Row::default()
        };
        let both = vec![MissedBound::Rate, MissedBound::ResponseTime];
        assert_eq!(
            verdict(&SEARCH, &row(19_900.0, true)),
            TrialVerdict::Sustained
        );
        assert_eq!(
            verdict(&SEARCH, &row(20_100.0, false)),
            TrialVerdict::Missed(both)
        );
        let of_lag = RateSearch {
            lag_ms: Some(1000.0),
            ..SEARCH
        };
        let unknown = verdict(&of_lag, &row(19_900.0, true));
        assert_eq!(
            unknown,
            TrialVerdict::NotJudged("the target has no replicas".into())
        );
        assert_eq!(
            together([unknown, TrialVerdict::Missed(vec![MissedBound::Lag])].into_iter()),
            TrialVerdict::Missed(vec![MissedBound::Lag])
        );
    }
}
