//! Finds what host and engine did in the seconds of a stall, or after a shift, but not around it.

use std::ops::Range;
use std::slice::from_ref;

use record::{HostSeries, Role};

use super::rates::Rates;
use super::{ConcurrentChange, Shift};
use crate::figures::Series;
use crate::figures::average::{mean, median, scale};

/// Seconds before and after that are compared.
const AROUND: usize = 60;

/// The fewest samples around that define what is usual.
const SAMPLES_MIN: usize = 5;

/// The most changes that are listed.
const MOVED_MAX: usize = 5;

/// The multiple of the usual deviation that counts as unusual.
const UNUSUAL_MIN: f64 = 3.0;

/// Larger deviations count as this one.
const UNUSUAL_MAX: f64 = 100.0;

/// The largest difference between the ratios of a counter and of the rate if it grows with the
/// rate: as a share, and absolutely where almost nothing is left of both.
const PROPORTION: f64 = 0.2;
const NEARLY_NONE: f64 = 0.02;

/// One in this many seconds around may be as far off on the same side.
const COMMON: usize = 10;

/// The least change, as a share of what is usual.
const CHANGE_MIN: f64 = 0.2;

/// The least deviation that counts as usual: as a share of the usual value, and of the largest
/// value around.
const USUAL_SHARE: f64 = 0.02;
const LARGEST_SHARE: f64 = 0.01;

/// The name for the number of clients that still work.
const AT_WORK: &str = "clients_at_work";

/// A column of the host or a counter, second by second.
struct Line<'a> {
    name: &'a str,
    of_engine: bool,
    is_growth: bool,
    values: &'a [Option<f64>],
}

/// All that was sampled in a step.
pub(super) struct ConcurrentActivity<'a> {
    lines: Vec<Line<'a>>,
    rates: &'a Rates<'a>,
    is_stalled: &'a [bool],
}

/// The seconds that others are compared with.
struct Usual<'r> {
    seconds: &'r [Range<usize>],
    /// The rate in the examined seconds over the rate in these.
    rate_ratio: f64,
}

impl<'a> ConcurrentActivity<'a> {
    pub(super) fn new(
        series: &'a Series,
        host: &HostSeries,
        rates: &'a Rates<'a>,
        is_stalled: &'a [bool],
    ) -> Self {
        let of_host = series.host.iter().map(|(name, values)| Line {
            name,
            of_engine: false,
            is_growth: host.column(name).is_some_and(|column| column.cumulative),
            values,
        });

        // Uptime always grows.
        let all = series.engine.iter();
        let counters = all.filter(|(_, counter)| counter.role != Some(Role::UptimeSeconds));
        let of_engine = counters.map(|(name, counter)| Line {
            name,
            of_engine: true,
            is_growth: counter.cumulative,
            values: &counter.values,
        });

        let lines = of_host.chain(of_engine).filter(|line| has_moved(line.values)).collect();
        Self { lines, rates, is_stalled }
    }

    /// Returns the unusual values in the seconds of a stall.
    pub(super) fn stall(&self, from: usize, seconds: usize) -> Vec<ConcurrentChange> {
        let end = from + seconds;
        let around = [from.saturating_sub(AROUND)..from, end..end + AROUND];
        let rates = &self.rates.values;

        let seconds_around = around.iter().flat_map(Clone::clone);
        let around_rates = seconds_around.filter_map(|second| rates.get(second).copied());
        let usual_rate = median(around_rates).unwrap_or(0.0);

        let usual = Usual {
            seconds: &around,
            rate_ratio: ratio(mean(rates[from..end].iter().copied()).unwrap_or(0.0), usual_rate)
                .unwrap_or(0.0),
        };

        let moved = self.lines.iter().filter_map(|line| {
            let during: Vec<f64> = sampled(line.values, from..end).collect();
            self.moved(line, mean(during)?, &usual)
        });

        ranked(moved.collect(), false)
    }

    /// Returns the unusual values after a shift.
    pub(super) fn shift(&self, shift: &Shift) -> Vec<ConcurrentChange> {
        let at = shift.second;
        let before = at.saturating_sub(AROUND)..at;
        let after = at..at + AROUND;
        let usual = Usual {
            seconds: from_ref(&before),
            rate_ratio: ratio(shift.after, shift.before).unwrap_or(0.0),
        };

        let moved = self.lines.iter().filter_map(|line| {
            let during = median(self.usual(line.values, from_ref(&after)))?;
            self.moved(line, during, &usual)
        });

        let mut moved = ranked(moved.collect(), shift.after > shift.before);
        // Clients that ended explain a shift better than anything else.
        if let Some(clients) = self.clients(at) {
            moved.insert(0, clients);
            moved.truncate(MOVED_MAX);
        }

        moved
    }

    fn clients(&self, at: usize) -> Option<ConcurrentChange> {
        let before = *self.rates.at_work.get(at.saturating_sub(super::SECONDS_MIN))?;
        let later = (at + super::SECONDS_MIN).min(self.rates.at_work.len().checked_sub(1)?);
        let after = *self.rates.at_work.get(later)?;

        (after < before).then(|| ConcurrentChange {
            name: AT_WORK.to_owned(),
            of_engine: false,
            unit: String::new(),
            during: after,
            otherwise: before,
            ratio: ratio(after, before),
            unusual: UNUSUAL_MAX,
        })
    }

    /// Returns the samples of some seconds that were not stalled.
    fn usual<'v>(
        &'v self,
        values: &'v [Option<f64>],
        ranges: &'v [Range<usize>],
    ) -> impl Iterator<Item = f64> + 'v {
        let seconds = ranges.iter().flat_map(Clone::clone);
        seconds
            .take_while(|&second| second < values.len())
            .filter(|&second| self.is_stalled.get(second) == Some(&false))
            .filter_map(|second| values[second])
    }

    fn moved(&self, line: &Line<'_>, during: f64, than: &Usual<'_>) -> Option<ConcurrentChange> {
        let mut usual: Vec<f64> = self.usual(line.values, than.seconds).collect();
        if usual.len() < SAMPLES_MIN {
            return None;
        }

        usual.sort_unstable_by(f64::total_cmp);
        let tail = usual.len() / COMMON;

        // A value that comes and goes is often far from its median.
        if (usual[tail]..=usual[usual.len() - 1 - tail]).contains(&during) {
            return None;
        }

        let otherwise = median(usual.iter().copied())?;
        let largest = usual.iter().fold(during.abs(), |most, value| most.max(value.abs()));
        let deviation = scale(usual.iter().copied(), otherwise)?
            .max(USUAL_SHARE * otherwise.abs())
            .max(LARGEST_SHARE * largest);
        let change = (during - otherwise).abs();
        if deviation <= 0.0 || change < CHANGE_MIN * otherwise.abs() {
            return None;
        }

        // Work per operation follows the rate.
        let ratio = ratio(during, otherwise);
        let tolerance = (PROPORTION * than.rate_ratio).max(NEARLY_NONE);
        let is_proportional =
            ratio.is_some_and(|ratio| (ratio - than.rate_ratio).abs() <= tolerance);
        if line.is_growth && is_proportional {
            return None;
        }

        let unusual = (change / deviation).min(UNUSUAL_MAX);
        (unusual >= UNUSUAL_MIN).then(|| ConcurrentChange {
            name: line.name.to_owned(),
            of_engine: line.of_engine,
            unit: unit(line.name, line.is_growth),
            during,
            otherwise,
            ratio,
            unusual,
        })
    }
}

fn ratio(value: f64, to: f64) -> Option<f64> {
    (to > 0.0).then(|| value / to)
}

/// Returns whether the value ever changed.
fn has_moved(values: &[Option<f64>]) -> bool {
    let mut known = values.iter().flatten();
    known.next().is_some_and(|first| known.any(|value| value != first))
}

fn sampled(values: &[Option<f64>], seconds: Range<usize>) -> impl Iterator<Item = f64> {
    let end = seconds.end.min(values.len());
    values[seconds.start.min(end)..end].iter().flatten().copied()
}

/// Sorts changes by how unusual they are. Those that moved against the rate come before those that
/// moved with it, which mostly follow from it.
fn ranked(mut moved: Vec<ConcurrentChange>, rate_rose: bool) -> Vec<ConcurrentChange> {
    let is_with = |one: &ConcurrentChange| (one.during > one.otherwise) == rate_rose;
    let times =
        |one: &ConcurrentChange| one.ratio.map_or(f64::INFINITY, |ratio| ratio.max(1.0 / ratio));

    moved.sort_by(|a, b| {
        is_with(a)
            .cmp(&is_with(b))
            .then(b.unusual.total_cmp(&a.unusual))
            .then(times(b).total_cmp(&times(a)))
            .then(a.name.cmp(&b.name))
    });

    moved.truncate(MOVED_MAX);
    moved
}

/// Returns the unit in the last part of a name, before its table or level.
fn unit(name: &str, is_growth: bool) -> String {
    let whole = name.split_once('.').map_or(name, |(whole, _)| whole);

    let last = whole.trim_end_matches("_max").rsplit_once('_').map_or("", |(_, last)| last);
    let unit = match last {
        "bytes" | "ns" | "us" | "ms" => last,
        "seconds" => "s",
        "pages" | "rows" => last,
        _ => "",
    };

    if is_growth { format!("{unit}/s") } else { unit.to_owned() }
}
