//! Seconds at which the rate of a step changed its level, and stayed there.
//!
//! A shift is where the means of two neighbouring stretches differ by more than noise explains. Stretches of all lengths
//! are tried, at fixed places that overlap by half ("seeded intervals"), so that a short dip in a long step is found as
//! well as one change in its middle; the work grows with n log n, and the same series always has the same shifts. Noise
//! is what neighbouring seconds differ by, or neighbouring means of 10 seconds where that says more: a rate that swings
//! all the time is noisy. What drifts slowly has no second at which it changed: the medians shortly before and after it
//! have to differ too.

use super::{NORMAL, SECONDS_MIN, Shift, median, scale};

/// The least seconds of a level.
const LEVEL_MIN: usize = SECONDS_MIN;

/// The least change, relative to the larger of two levels.
const SHIFT_SHARE: f64 = 0.1;

/// Seconds on both sides of a shift within which it has to be seen.
const NEAR: usize = 30;

/// How far beyond noise a shift has to be, as a share of what the largest of so many draws is expected to be.
const CERTAINTY: f64 = 1.4;

/// Seconds below which nothing is said of shifts: the means of 10 seconds are too few to know what noise is.
pub const SHIFT_SECONDS_MIN: usize = 4 * LEVEL_MIN;

/// A stretch of the series, and where its two parts differ most.
struct Candidate {
    begin: usize,
    end: usize,
    at: usize,
    /// How far the means of the parts differ, in standard deviations of one second, times the root of what they weigh.
    strength: f64,
}

/// Every shift in the order of time, without what is beside it. Seconds of stalls are left out: they are no level.
pub(super) fn shifts(rates: &[f64], is_stalled: &[bool]) -> Vec<Shift> {
    let kept: Vec<usize> = (0..rates.len())
        .filter(|&second| !is_stalled.get(second).copied().unwrap_or(false))
        .collect();
    let values: Vec<f64> = kept.iter().map(|&second| rates[second]).collect();
    let places = levels(&values, candidates(&values));
    let bounds = bounds(&places, values.len());
    places
        .iter()
        .zip(&bounds)
        .zip(bounds.iter().skip(1))
        .map(|((&place, before), after)| Shift {
            second: kept[place],
            before: median_of(&values, before),
            after: median_of(&values, after),
            beside: Vec::new(),
        })
        .collect()
}

/// The places of shifts that are beyond noise, in order.
fn candidates(values: &[f64]) -> Vec<usize> {
    let count = values.len();
    if count < SHIFT_SECONDS_MIN {
        return Vec::new();
    }
    let smooth = without_spikes(values);
    let sums: Vec<f64> = std::iter::once(0.0)
        .chain(smooth.iter().scan(0.0, |sum, value| {
            *sum += value;
            Some(*sum)
        }))
        .collect();
    let noise = noise(values, &smooth);
    let certain = CERTAINTY * (2.0 * (count as f64).ln()).sqrt();
    let mut found: Vec<Candidate> = intervals(count)
        .into_iter()
        .filter_map(|(begin, end)| strongest(&sums, begin, end))
        .filter(|one| one.strength > certain * noise)
        .filter(|one| is_seen_near(values, one))
        .filter(|one| one.strength > certain * noise_within(values, one))
        .collect();
    found.sort_by(|a, b| {
        b.strength
            .total_cmp(&a.strength)
            .then((a.begin, a.end).cmp(&(b.begin, b.end)))
    });
    let mut places: Vec<usize> = Vec::new();
    for one in found {
        let is_told = |&place: &usize| {
            (one.begin < place && place < one.end) || place.abs_diff(one.at) < LEVEL_MIN
        };
        if !places.iter().any(is_told) {
            places.push(one.at);
        }
    }
    places.sort_unstable();
    places
}

/// Stretches of lengths that shrink by the root of two, each half over the next.
fn intervals(count: usize) -> Vec<(usize, usize)> {
    let mut intervals = Vec::new();
    let mut length = count as f64;
    while length as usize >= 2 * LEVEL_MIN {
        let whole = length as usize;
        let parts = (2 * count).div_ceil(whole).saturating_sub(1).max(1);
        for part in 0..parts {
            let begin = match parts {
                1 => 0,
                _ => part * (count - whole) / (parts - 1),
            };
            intervals.push((begin, begin + whole));
        }
        length /= std::f64::consts::SQRT_2;
    }
    intervals
}

/// Where the two parts of a stretch differ most.
fn strongest(sums: &[f64], begin: usize, end: usize) -> Option<Candidate> {
    let mean = |from: usize, to: usize| (sums[to] - sums[from]) / (to - from) as f64;
    let mut best: Option<Candidate> = None;
    for at in begin + LEVEL_MIN..=end - LEVEL_MIN {
        let (left, right) = ((at - begin) as f64, (end - at) as f64);
        let weight = (left * right / (left + right)).sqrt();
        let strength = (mean(at, end) - mean(begin, at)).abs() * weight;
        if best.as_ref().is_none_or(|best| strength > best.strength) {
            best = Some(Candidate {
                begin,
                end,
                at,
                strength,
            });
        }
    }
    best
}

/// The medians of the seconds right before and after a place.
fn near(values: &[f64], begin: usize, at: usize, end: usize) -> (f64, f64) {
    let before = at.saturating_sub(NEAR).max(begin)..at;
    let after = at..(at + NEAR).min(end);
    (
        median(values[before].iter().copied()).unwrap_or(0.0),
        median(values[after].iter().copied()).unwrap_or(0.0),
    )
}

fn is_seen_near(values: &[f64], one: &Candidate) -> bool {
    let (before, after) = near(values, one.begin, one.at, one.end);
    is_large(before, after)
}

fn is_large(before: f64, after: f64) -> bool {
    (after - before).abs() >= SHIFT_SHARE * before.abs().max(after.abs()) && before != after
}

/// What remains of a stretch when its two levels are taken off, as the deviation of one second.
fn noise_within(values: &[f64], one: &Candidate) -> f64 {
    let sides = [one.begin..one.at, one.at..one.end];
    let rest = sides.into_iter().flat_map(|side| {
        let side = &values[side];
        let level = median(side.iter().copied()).unwrap_or(0.0);
        side.iter().map(move |value| value - level)
    });
    scale(rest, 0.0).unwrap_or(0.0)
}

/// Each value as the median of the five around it: spikes of one or two seconds go, edges stay where they are.
fn without_spikes(values: &[f64]) -> Vec<f64> {
    (0..values.len())
        .map(|at| {
            let reach = at.min(values.len() - 1 - at).min(2);
            let mut around = [0.0; 5];
            let around = &mut around[..=2 * reach];
            around.copy_from_slice(&values[at - reach..=at + reach]);
            around.sort_unstable_by(f64::total_cmp);
            around[reach]
        })
        .collect()
}

/// The deviation of one second that the means of stretches go by: from second to second, or from ten seconds to the next
/// ten, whichever is more. A few shifts don't change it, since it is a median; a rate that swings does.
fn noise(values: &[f64], smooth: &[f64]) -> f64 {
    let batches: Vec<f64> = smooth
        .chunks_exact(LEVEL_MIN)
        .map(|batch| batch.iter().sum::<f64>() / LEVEL_MIN as f64)
        .collect();
    let of_batches = typical_step(&batches) * (LEVEL_MIN as f64).sqrt();
    let of_seconds = match typical_step(values) {
        typical if typical > 0.0 => typical,
        // More than half of the neighbours are equal: whole numbers that are small.
        _ => mean_step(values),
    };
    of_seconds.max(of_batches)
}

/// How far neighbours are apart.
fn steps(values: &[f64]) -> impl Iterator<Item = f64> {
    values.windows(2).map(|pair| (pair[1] - pair[0]).abs())
}

/// The deviation of one value, by the median of what neighbours differ.
fn typical_step(values: &[f64]) -> f64 {
    NORMAL * median(steps(values)).unwrap_or(0.0) / std::f64::consts::SQRT_2
}

/// The same by the mean of it.
fn mean_step(values: &[f64]) -> f64 {
    let count = steps(values).count().max(1) as f64;
    steps(values).sum::<f64>() / count * std::f64::consts::PI.sqrt() / 2.0
}

/// The places that part levels which differ enough: of others the least is taken out, until none is left.
fn levels(values: &[f64], mut places: Vec<usize>) -> Vec<usize> {
    loop {
        let bounds = bounds(&places, values.len());
        let medians: Vec<f64> = bounds
            .iter()
            .map(|level| median_of(values, level))
            .collect();
        let least = medians
            .windows(2)
            .enumerate()
            .filter(|(_, pair)| !is_large(pair[0], pair[1]))
            .min_by(|(_, a), (_, b)| (a[1] - a[0]).abs().total_cmp(&(b[1] - b[0]).abs()));
        match least {
            Some((number, _)) => places.remove(number),
            None => return places,
        };
    }
}

/// The levels that places part.
fn bounds(places: &[usize], count: usize) -> Vec<std::ops::Range<usize>> {
    let begins = std::iter::once(0).chain(places.iter().copied());
    let ends = places.iter().copied().chain([count]);
    begins.zip(ends).map(|(begin, end)| begin..end).collect()
}

fn median_of(values: &[f64], level: &std::ops::Range<usize>) -> f64 {
    median(values[level.clone()].iter().copied()).unwrap_or(0.0)
}
