//! Finds the highest rate at which a step meets its bounds: what was tried, which rate to try next,
//! and the result.

use crate::order::sort_smallest_first;
use std::collections::BTreeMap;

use record::{CellKey, OpRole, RateSearch, Run, Status};
use serde::Serialize;

use crate::figures::{Figures, LagVerdict, OpFigures, Row};

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
    /// The requested rate of all clients, in rows or events per second; `None`: as fast as
    /// possible.
    pub rate: Option<f64>,
    /// The worst figures of the tries that have the verdict of the rate.
    #[serde(flatten)]
    pub figures: TriedFigures,
    /// The verdict of two tries that agree, or of the only one. Two that disagree miss the bounds
    /// until a third one decides.
    pub verdict: TrialVerdict,
    /// The tries, in their order: at most [`TRIES_MAX`].
    pub tries: Vec<RateTry>,
}

/// One try of a rate: as many repeats as the plan has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateTry {
    /// The figures.
    #[serde(flatten)]
    pub figures: TriedFigures,
    /// The verdict on the bounds, which each repeat must meet.
    pub verdict: TrialVerdict,
}

/// The figures of a rate that a search bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TriedFigures {
    /// The achieved rate of all clients, the lowest of all repeats; `None` without a valid repeat.
    pub achieved: Option<f64>,
    /// The 99th percentile of response times in milliseconds: the longest of all repeats and
    /// scheduled kinds of operations.
    pub p99_ms: Option<f64>,
    /// The largest lag of a replica in milliseconds, over all repeats.
    pub lag_ms_max: Option<f64>,
    /// The growth of the lag in milliseconds per second: the fastest of all repeats.
    pub lag_ms_slope: Option<f64>,
}

/// The verdict on a rate: it meets the bounds of a search, or does not, or was not judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialVerdict {
    /// All bounds were met.
    Sustained,
    /// These bounds were missed.
    Missed(Vec<MissedBound>),
    /// There is no answer, for this reason.
    NotJudged(String),
    /// A repeat was not measured, or not to its end.
    NotMeasured,
}

/// A bound that was missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedBound {
    /// The rate itself was not reached.
    Rate,
    /// The 99th percentile of response times.
    ResponseTime,
    /// The lag of replicas: too large, or growing.
    Lag,
    /// The lag of replicas: it ends far above its middle, so it is not known to be bounded.
    UndecidedLag,
}

/// The next rate to try, or the result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchState {
    /// The rate to try next, per second and client. If it was tried, it is tried once more.
    Next(f64),
    /// A rate was chosen, but a repeat was not measured.
    Unfinished,
    /// The highest rate that met all bounds, and the lowest that did not, per second of all
    /// clients. The latter is that of the cell without a rate if no other missed a bound.
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
/// The most tries of a rate: with three, most of them agree.
pub const TRIES_MAX: u32 = 3;
/// The tries that must agree before a rate bounds the answer.
const TRIES_THAT_AGREE: usize = 2;

/// Returns the state of a run's search for each target and number of clients, in the order of its
/// cells. Empty if the run has no search.
pub fn rate_searches(record: &Run, figures: &Figures) -> Vec<SearchedTarget> {
    let Some(search) = &record.search else {
        return Vec::new();
    };

    let mut searched: Vec<SearchedTarget> = Vec::new();
    for cell in record.cells.iter().map(|cell| &cell.key) {
        let is_known = |search: &SearchedTarget| {
            search.target == cell.target && search.clients == cell.clients
        };
        if !cell.kind.is_measured() || searched.iter().any(is_known) {
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

/// The beginning of the names of variants with a rate.
const WITH_RATE: &str = "rate-";

/// Returns the name of the variant with a rate per second and client.
pub fn rate_variant(rate: f64) -> String {
    // A name cannot have a point.
    format!("{WITH_RATE}{rate}").replace('.', "_")
}

/// Returns the rate per second and client of a variant of a search; `None`: as fast as possible, or
/// no such variant.
pub fn rate_of(variant: &str) -> Option<f64> {
    let rate = variant.strip_prefix(WITH_RATE)?;
    rate.replace('_', ".").parse().ok()
}

/// Returns the rates that were tried on the target of a cell, with its number of clients.
fn trials(search: &RateSearch, record: &Run, of: &CellKey, figures: &Figures) -> Vec<RateTrial> {
    let keys = record.cells.iter().map(|cell| &cell.key);
    let cells = keys.filter(|other| {
        other.target == of.target && other.clients == of.clients && other.kind.is_measured()
    });

    let mut variants: BTreeMap<Option<&str>, RepeatsOfTries<'_>> = BTreeMap::new();
    for cell in cells {
        let tries = variants.entry(cell.variant.as_deref()).or_default();
        let of_try = tries.entry(try_of(search, cell)).or_default();
        of_try.push(Repeat::new(search, cell, figures));
    }

    let mut trials = Vec::new();
    for (variant, repeats) in variants {
        let tries = repeats.values().map(|of_try| tried(search, of_try)).collect();
        trials.push(RateTrial::new(variant, of.clients, tries));
    }

    let rate = |trial: &RateTrial| trial.rate.unwrap_or(f64::INFINITY);
    sort_smallest_first(&mut trials, |item| rate(item));
    trials
}

/// The repeats of a rate by the index of their try.
type RepeatsOfTries<'a> = BTreeMap<u32, Vec<Repeat<'a>>>;

/// Returns the index of the try that a cell belongs to. Repeats that were added to the run count to
/// the last one.
fn try_of(search: &RateSearch, cell: &CellKey) -> u32 {
    // Earlier records know only one try.
    let index = cell.repeat.saturating_sub(1).checked_div(search.repeats);
    index.unwrap_or(0).min(TRIES_MAX - 1)
}

/// The result of one repeat of a rate.
enum Repeat<'a> {
    Valid(&'a Row),
    /// The step failed or is invalid, for this reason.
    Invalid(String),
    NotMeasured,
}

impl<'a> Repeat<'a> {
    fn new(search: &RateSearch, cell: &CellKey, figures: &'a Figures) -> Self {
        let mut rows = figures.rows.iter();
        let row = rows.find(|row| row.step == search.step && row.cell == *cell);

        let mut unfinished = figures.unfinished.iter();
        let end = unfinished.find(|end| end.cell == *cell);

        match (row, end) {
            (Some(row), _) if row.valid => Self::Valid(row),
            (_, Some(end)) if end.status == Some(Status::Failed) => Self::Invalid(
                Some(end.causes.join(": "))
                    .filter(|causes| !causes.is_empty())
                    .unwrap_or_else(|| "it failed".into()),
            ),
            (Some(row), end) if end.is_none_or(|end| end.status == Some(Status::Complete)) => {
                Self::Invalid(row.reasons.join("; "))
            }
            _ => Self::NotMeasured,
        }
    }

    fn verdict(&self, search: &RateSearch) -> TrialVerdict {
        match self {
            Self::Valid(row) => verdict(search, row),
            Self::Invalid(reason) => TrialVerdict::NotJudged(reason.clone()),
            Self::NotMeasured => TrialVerdict::NotMeasured,
        }
    }
}

/// Judges the repeats of one try.
fn tried(search: &RateSearch, repeats: &[Repeat<'_>]) -> RateTry {
    let mut figures = TriedFigures::default();
    for repeat in repeats {
        if let Repeat::Valid(row) = repeat {
            figures = figures.worst(TriedFigures::of(row));
        }
    }

    let verdicts = repeats.iter().map(|repeat| repeat.verdict(search));
    RateTry { figures, verdict: together(verdicts) }
}

impl TriedFigures {
    fn of(row: &Row) -> Self {
        Self {
            achieved: achieved(row),
            p99_ms: p99_ms(row),
            lag_ms_max: row.metric("lag_ms_max"),
            lag_ms_slope: row.metric("lag_ms_slope"),
        }
    }

    /// Returns the worse figures of two.
    fn worst(self, other: Self) -> Self {
        Self {
            achieved: self.achieved.into_iter().chain(other.achieved).reduce(f64::min),
            p99_ms: larger(self.p99_ms, other.p99_ms),
            lag_ms_max: larger(self.lag_ms_max, other.lag_ms_max),
            lag_ms_slope: larger(self.lag_ms_slope, other.lag_ms_slope),
        }
    }
}

/// Returns the larger one of two figures, or the one that there is.
fn larger(one: Option<f64>, another: Option<f64>) -> Option<f64> {
    one.into_iter().chain(another).reduce(f64::max)
}

impl RateTrial {
    fn new(variant: Option<&str>, clients: u32, tries: Vec<RateTry>) -> Self {
        let verdict = of_most(&tries);

        let mut figures = TriedFigures::default();
        for of_verdict in tries.iter().filter(|one| is_alike(&one.verdict, &verdict)) {
            figures = figures.worst(of_verdict.figures);
        }

        Self {
            variant: variant.map(str::to_owned),
            rate: variant.and_then(rate_of).map(|rate| rate * f64::from(clients)),
            figures,
            verdict,
            tries,
        }
    }

    /// Returns the number of tries that met all bounds.
    pub fn met_count(&self) -> usize {
        count_alike(&self.tries, &TrialVerdict::Sustained)
    }

    /// Returns the number of tries that missed a bound.
    pub fn missed_count(&self) -> usize {
        count_alike(&self.tries, &TrialVerdict::Missed(Vec::new()))
    }

    /// Returns true if tries disagree, and those of neither verdict are enough to decide.
    fn is_open(&self) -> bool {
        let met = self.met_count();
        let missed = self.missed_count();
        met > 0 && missed > 0 && met.max(missed) < TRIES_THAT_AGREE
    }
}

/// Returns the verdict of the tries of a rate: what two of them say, else what is not known of one
/// of them, else any bound that is missed.
fn of_most(tries: &[RateTry]) -> TrialVerdict {
    if count_alike(tries, &TrialVerdict::Sustained) >= TRIES_THAT_AGREE {
        return TrialVerdict::Sustained;
    }

    let missed = TrialVerdict::Missed(Vec::new());
    let unknown = tries.iter().filter(|one| {
        !is_alike(&one.verdict, &missed) && !is_alike(&one.verdict, &TrialVerdict::Sustained)
    });
    let of_unknown = together(unknown.map(|one| one.verdict.clone()));
    let is_decided = count_alike(tries, &missed) >= TRIES_THAT_AGREE;
    if !is_decided && of_unknown != TrialVerdict::Sustained {
        return of_unknown;
    }

    together(tries.iter().map(|one| one.verdict.clone()))
}

/// Returns the number of tries with a verdict of this kind.
fn count_alike(tries: &[RateTry], verdict: &TrialVerdict) -> usize {
    tries.iter().filter(|one| is_alike(&one.verdict, verdict)).count()
}

/// Returns true if verdicts are of the same kind, whatever their bounds or reasons.
fn is_alike(one: &TrialVerdict, another: &TrialVerdict) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(another)
}

/// Returns the verdict of several repeats or bounds: a bound that one of them misses is missed.
fn together(verdicts: impl Iterator<Item = TrialVerdict>) -> TrialVerdict {
    let mut missed = Vec::new();
    let mut unknown = TrialVerdict::Sustained;

    for verdict in verdicts {
        match verdict {
            TrialVerdict::Sustained => {}
            TrialVerdict::Missed(bounds) => missed.extend(bounds),
            // It may be judged once it is measured.
            TrialVerdict::NotJudged(_) if unknown == TrialVerdict::NotMeasured => {}
            verdict => unknown = verdict,
        }
    }

    missed.sort();
    missed.dedup();
    if missed.is_empty() { unknown } else { TrialVerdict::Missed(missed) }
}

/// Returns the rate that a step achieved: rows or events per second, over all clients.
pub fn achieved(row: &Row) -> Option<f64> {
    let sla = row.sla.as_ref().filter(|sla| !row.is_beside_reads(&sla.kind));
    if let Some(sla) = sla {
        return Some(sla.achieved);
    }

    let main = row.main_operation()?;
    if main.role == OpRole::Transaction || main.role.reads_keys() {
        // A rate is that of all operations that clients mix.
        let mixed = row.ops.iter().filter(|(kind, _)| row.kinds_of_rate.contains(kind));
        return Some(mixed.map(|(_, op)| op.per_second).sum());
    }
    let op = row.ops.get(main.kind)?;
    Some(if main.role.has_rate_in_rows() { op.rows_per_second } else { op.per_second })
}

/// Returns the kinds of operations whose response times are bounded: those that have the rate. Long
/// transactions have a schedule of their own, and so has a writer beside readers of keys.
fn scheduled(row: &Row) -> impl Iterator<Item = &OpFigures> {
    let ops = row.ops.iter().filter(|(kind, op)| {
        let is_of_others =
            row.role_of(kind) == OpRole::HoldTransaction || row.is_beside_reads(kind);
        op.scheduled && op.count > 0 && !is_of_others
    });
    ops.map(|(_, op)| op)
}

/// Returns the longest 99th percentile of response times in milliseconds; `None` without operations
/// that have a schedule.
fn p99_ms(row: &Row) -> Option<f64> {
    scheduled(row).map(|op| op.response_us.p99 / 1e3).reduce(f64::max)
}

fn verdict(search: &RateSearch, row: &Row) -> TrialVerdict {
    let of_readers = row.sla.iter().filter(|sla| !row.is_beside_reads(&sla.kind));
    let missed_rates = of_readers.filter(|sla| !sla.met);
    let rate = missed_rates.map(|_| TrialVerdict::Missed(vec![MissedBound::Rate]));
    let p99 = search.p99_ms.map(|bound_ms| response_time_verdict(row, bound_ms));

    // The plan's bound is that of the search.
    let lag = search.lag_ms.iter().map(|_| match row.lag.map(|lag| lag.verdict) {
        Some(LagVerdict::Bounded) => TrialVerdict::Sustained,
        Some(LagVerdict::Grows | LagVerdict::TooLarge) => {
            TrialVerdict::Missed(vec![MissedBound::Lag])
        }
        Some(LagVerdict::Undecided) => TrialVerdict::Missed(vec![MissedBound::UndecidedLag]),
        Some(LagVerdict::NotApplicable(reason)) => TrialVerdict::NotJudged(reason.to_owned()),
        None => TrialVerdict::NotJudged("the target has no replicas".to_owned()),
    });

    together(rate.chain(p99).chain(lag))
}

/// Returns the verdict on the 99th percentile of each operation that follows a schedule.
fn response_time_verdict(row: &Row, bound_ms: f64) -> TrialVerdict {
    if p99_ms(row).is_none() {
        return TrialVerdict::NotJudged("without a rate there is no response time".into());
    }

    let verdicts = scheduled(row).map(|op| {
        if op.count < OPS_MIN {
            TrialVerdict::NotJudged(format!(
                "fewer than {OPS_MIN} operations are too few for a 99th percentile: make the step longer"
            ))
        } else if op.response_us.p99 / 1e3 > bound_ms {
            TrialVerdict::Missed(vec![MissedBound::ResponseTime])
        } else {
            TrialVerdict::Sustained
        }
    });
    together(verdicts)
}

/// Returns what follows from the trials, by bisection between the highest rate that met all bounds
/// and the lowest that did not.
fn state(search: &RateSearch, trials: &[RateTrial], clients: u32) -> SearchState {
    let clients = f64::from(clients);

    // The upper end only limits the search, so nothing needs to be known about its bounds.
    for trial in trials {
        let is_upper_end = trial.rate.is_none() && trial.figures.achieved.is_some();
        match &trial.verdict {
            TrialVerdict::NotMeasured => return SearchState::Unfinished,
            TrialVerdict::NotJudged(reason) if !is_upper_end => return stopped(trial, reason),
            _ => {}
        }
    }

    let unlimited = trials.iter().find(|trial| trial.rate.is_none());
    let top = match (search.rate_max, unlimited) {
        (Some(rate), _) => rate * clients,
        (None, None) => return SearchState::Unfinished,
        (None, Some(trial)) => match (trial.figures.achieved, &trial.verdict) {
            (Some(rate), TrialVerdict::Sustained) => return SearchState::NotLimited(rate),
            (Some(rate), _) if rate > 0.0 => rate,
            _ => return stopped(trial, "the step completed no operations"),
        },
    };

    if let Some(rate) = to_decide(search, trials) {
        return SearchState::Next(rate);
    }

    let (sustained, missed) = bracket(trials);
    if let (None, Some(highest)) = (missed, search.rate_max) {
        // The highest rate first: it may be the answer.
        return match sustained {
            Some(rate) => confirmed(search, trials, rate, SearchState::NotLimited(rate)),
            None => SearchState::Next(highest),
        };
    }

    if let Some(rate) = to_repeat(search, trials, sustained, missed) {
        return SearchState::Next(rate);
    }

    let ceiling = missed.unwrap_or(top);
    let middle = (sustained.unwrap_or(0.0) + ceiling) / 2.0 / clients;
    let next = rounded(middle, search.tolerance);
    match sustained {
        Some(sustained) if sustained >= ceiling * (1.0 - search.tolerance) => {
            let found = SearchState::Found { sustained, missed: ceiling };
            confirmed(search, trials, sustained, found)
        }
        None if next * clients < top * LOWEST_SHARE => SearchState::NoneSustained(ceiling),
        _ => SearchState::Next(next),
    }
}

/// Returns a rate, per second and client, whose tries disagree: a further one decides.
fn to_decide(search: &RateSearch, trials: &[RateTrial]) -> Option<f64> {
    if search.repeats == 0 {
        return None;
    }

    let mut open = trials.iter().filter(|trial| trial.is_open());
    open.find_map(|trial| rate_of(trial.variant.as_deref()?))
}

/// Returns the lowest missed rate, per second and client, if it needs a second try: a lower one met
/// all bounds, so a single stall may decide the result.
fn to_repeat(
    search: &RateSearch,
    trials: &[RateTrial],
    sustained: Option<f64>,
    missed: Option<f64>,
) -> Option<f64> {
    sustained?;
    let missed = trials.iter().find(|trial| trial.rate == missed && missed.is_some())?;
    second_try(search, missed)
}

/// Returns the rate of a trial, per second and client, if it was tried once.
fn second_try(search: &RateSearch, trial: &RateTrial) -> Option<f64> {
    // Earlier records know only one try.
    if search.repeats == 0 || trial.tries.len() > 1 {
        return None;
    }
    rate_of(trial.variant.as_deref()?)
}

/// Returns what a search found, or the sustained rate as the next one to try: one lucky try must not
/// be the answer.
fn confirmed(
    search: &RateSearch,
    trials: &[RateTrial],
    rate: f64,
    found: SearchState,
) -> SearchState {
    let sustained = trials.iter().find(|trial| trial.rate == Some(rate));
    match sustained.and_then(|trial| second_try(search, trial)) {
        Some(rate) => SearchState::Next(rate),
        None => found,
    }
}

/// Returns the highest rate that met all bounds and is below all that did not, and the lowest rate
/// that did not, per second of all clients.
pub fn bracket(trials: &[RateTrial]) -> (Option<f64>, Option<f64>) {
    let rates = |is_sustained: bool| {
        let such = trials
            .iter()
            .filter(move |trial| (trial.verdict == TrialVerdict::Sustained) == is_sustained);
        such.filter_map(|trial| trial.rate)
    };

    let missed = rates(false).reduce(f64::min);
    let below = rates(true).filter(|rate| missed.is_none_or(|missed| *rate < missed));

    (below.reduce(f64::max), missed)
}

fn stopped(trial: &RateTrial, reason: &str) -> SearchState {
    let what = trial.variant.as_deref().unwrap_or("a cell");
    SearchState::Stopped(format!("{what} cannot be judged: {reason}"))
}

/// Rounds a rate to three significant digits, or to more if the tolerance needs them: a rate
/// halfway between two others must differ from both.
fn rounded(rate: f64, tolerance: f64) -> f64 {
    let needed = (1.0 - tolerance.log10()).floor() + 1.0;
    let digits = 10_f64.powf(needed.max(3.0) - 1.0 - rate.log10().floor());
    (rate * digits).round() / digits
}

#[cfg(test)]
mod tests;
