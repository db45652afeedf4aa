//! Computes the evenness of a step's throughput: its worst seconds, its stalls, the seconds at
//! which its level changed, and what host and engine did then. All figures are of the step's main
//! operation, over all clients, second by second. The rules and their limits are in
//! `docs/metrics.md`.

mod concurrent;
mod history;
pub(super) mod rates;
mod settle_work;
mod shifts;
mod spread;
mod stalls;

use record::{HostSeries, Step};
use serde::Serialize;

use crate::figures::Series;
use concurrent::ConcurrentActivity;
use rates::Rates;

pub(crate) use history::history;
pub(crate) use settle_work::settled;
pub use settle_work::{Pending, SettleAction, SettleWork};
pub use shifts::SHIFT_SECONDS_MIN;

/// The fewest whole seconds for a spread or a level.
pub(crate) const SECONDS_MIN: usize = 10;

/// The share of the usual rate below which a second is part of a stall.
pub const STALL_SHARE: f64 = 0.1;

/// The most stalls, and the most shifts, that are listed: the worst.
pub const LISTED_MAX: usize = 10;

/// The evenness of one step's throughput. Rates count what throughput counts: rows in load steps,
/// queries in query steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Quality {
    /// The kind of operation: `insert`.
    pub kind: String,
    /// Whole seconds within the time that the step was given: all figures here are of these.
    pub seconds: usize,
    /// Seconds in which nothing was completed.
    pub zero_seconds: usize,
    /// The lowest rate of a second, per second.
    pub worst_second: f64,
    /// The median rate of a second, per second.
    pub median: f64,
    /// The usual rate, per second: the median, or the median of the other seconds if half of the
    /// seconds or more stood still.
    pub usual: f64,
    /// Coefficient of variation: standard deviation over mean of the rates; `None` with fewer than
    /// 10 seconds, or without any progress.
    pub cv: Option<f64>,
    /// The thickness of a chart's line: (95th - 5th percentile of the rates) / usual; `None` as
    /// for `cv`.
    pub thickness: Option<f64>,
    /// The rate that all but 1% of the seconds reached, over the usual; `None` as for `cv`.
    pub p1_of_median: Option<f64>,
    /// Seconds with less than half the usual rate, in proportion to the clients that were still at
    /// work.
    pub below_half_median_seconds: usize,
    /// Seconds of the longest stall, 0 without one; `None` if operations are too rare to show
    /// stalls.
    pub longest_stall_seconds: Option<usize>,
    /// Seconds of all stalls; `None` if operations are too rare.
    pub stalled_seconds: Option<usize>,
    /// The share of the step in which the engine reports stalled writes, in percent: the metric
    /// `stall%`; `None` if it reports none.
    pub stalled_pct: Option<f64>,
    /// The longest response time; `None` without any progress.
    pub worst_response: Option<WorstResponse>,
    /// Stalls that were found; at most [`LISTED_MAX`] are in `stalls`.
    pub stall_count: usize,
    /// The longest stalls, in the order of time.
    pub stalls: Vec<Stall>,
    /// Shifts that were found; at most [`LISTED_MAX`] are in `shifts`. Many shifts mean that the
    /// rate swings and has no levels. Zero with fewer than [`SHIFT_SECONDS_MIN`] seconds.
    pub shift_count: usize,
    /// The largest shifts, in the order of time.
    pub shifts: Vec<Shift>,
}

/// The longest response time of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorstResponse {
    /// The second in which the operation ended, from 0.
    pub second: usize,
    /// The time, in microseconds.
    pub us: f64,
}

/// Consecutive seconds with less than [`STALL_SHARE`] of the usual rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stall {
    /// The first second, from 0.
    pub from_second: usize,
    /// The number of seconds.
    pub seconds: usize,
    /// The lowest rate of these seconds, per second.
    pub lowest: f64,
    /// The longest response time that ended in these seconds or in the next one, in microseconds;
    /// `None` if none ended.
    pub response_us_max: Option<f64>,
    /// The figures of host and engine that were unusual in these seconds, the most unusual first.
    pub concurrent_changes: Vec<ConcurrentChange>,
}

/// A second at which the rate changed its level.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Shift {
    /// The first second of the new level, from 0.
    pub second: usize,
    /// The median rate of the level before, per second; stalls don't count.
    pub before: f64,
    /// The median rate of the level that begins.
    pub after: f64,
    /// The figures of host and engine that changed at the shift, the most unusual first.
    pub concurrent_changes: Vec<ConcurrentChange>,
}

/// A counted value that was unusual.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConcurrentChange {
    /// The name of the host's column or the engine's counter, as recorded, or `clients_at_work`.
    pub name: String,
    /// The engine counted this figure, not the host.
    pub of_engine: bool,
    /// The unit: `bytes/s`, `ns/s`, `/s`, `bytes`; empty for a number.
    pub unit: String,
    /// The mean of these seconds; after a shift, the median.
    pub during: f64,
    /// The median of the seconds around it that were not stalled; for a shift, of the seconds
    /// before it.
    pub otherwise: f64,
    /// `during / otherwise`; `None` if `otherwise` is zero.
    pub ratio: Option<f64>,
    /// The difference of both in usual deviations, at most 100.
    pub unusual: f64,
}

/// Returns the evenness of a step's throughput; `None` if nothing is counted second by second, or
/// the step is shorter than a second.
pub(crate) fn quality(
    step: &Step,
    series: &Series,
    host: &HostSeries,
    stalled_pct: Option<f64>,
) -> Option<Quality> {
    let rates = Rates::new(step, &series.ops)?;
    let stalls = stalls::stalls(&rates);
    let is_stalled = stalls::marked(rates.values.len(), stalls.as_deref().unwrap_or_default());
    let levels = shifts::shifts(&rates.values, &is_stalled);
    let concurrent = ConcurrentActivity::new(series, host, &rates, &is_stalled);
    let mut quality = Quality { stalled_pct, shift_count: levels.len(), ..spread::spread(&rates) };
    if let Some(stalls) = stalls {
        let lengths = || stalls.iter().map(|stall| stall.seconds);
        quality.longest_stall_seconds = Some(lengths().max().unwrap_or(0));
        quality.stalled_seconds = Some(lengths().sum());
        quality.stall_count = stalls.len();
        quality.stalls = worst(stalls, |stall| (stall.seconds as f64, -stall.lowest));
    }
    for stall in &mut quality.stalls {
        stall.concurrent_changes = concurrent.stall(stall.from_second, stall.seconds);
    }
    quality.shifts = worst(levels, |shift| ((shift.after - shift.before).abs(), 0.0));
    for shift in &mut quality.shifts {
        shift.concurrent_changes = concurrent.shift(shift);
    }
    Some(quality)
}

/// Returns the [`LISTED_MAX`] worst items, in their order.
fn worst<T>(items: Vec<T>, badness: impl Fn(&T) -> (f64, f64)) -> Vec<T> {
    let mut by_level: Vec<(usize, T)> = items.into_iter().enumerate().collect();
    by_level.sort_by(|(_, a), (_, b)| {
        let (a, b) = (badness(a), badness(b));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    by_level.truncate(LISTED_MAX);
    by_level.sort_by_key(|(number, _)| *number);
    by_level.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests;
