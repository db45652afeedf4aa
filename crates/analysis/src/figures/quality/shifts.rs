//! Finds seconds at which the rate of a step changed its level, and stayed there.
//!
//! At a shift, the means of two neighboring stretches differ by more than noise explains. The
//! search tries stretches of all lengths at fixed places that overlap by half ("seeded intervals").
//! This finds a short dip in a long step as well as one change in its middle. The work grows with n
//! log n, and equal series have equal shifts.
//!
//! Noise is the difference of neighboring seconds, or of neighboring means of 10 seconds if that is
//! larger: a rate that swings all the time is noisy. A slow drift is no shift, so the medians
//! shortly before and after must differ too.

use super::{SECONDS_MIN, Shift};
use crate::figures::average::{NORMAL, median, scale};

/// The least seconds of a level.
const LEVEL_MIN: usize = SECONDS_MIN;

/// The least change, relative to the larger of two levels.
const SHIFT_SHARE: f64 = 0.1;

/// The seconds on both sides of a shift that must show it.
const NEAR: usize = 30;

/// The factor by which a shift must exceed the largest deviation that noise is expected to have
/// among all seconds.
const CERTAINTY: f64 = 1.4;

/// The fewest seconds for shifts: in fewer, the means of 10 seconds are too few to measure noise.
pub const SHIFT_SECONDS_MIN: usize = 4 * LEVEL_MIN;

/// A stretch of the series, and the place at which its two parts differ most.
struct Candidate {
    begin: usize,
    end: usize,
    at: usize,
    /// The difference of the parts' means in standard deviations of one second, times the root of
    /// their weight.
    strength: f64,
}

/// Returns all shifts in the order of time, without concurrent changes. Leaves out seconds of
/// stalls, which are not a level.
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
            concurrent_changes: Vec::new(),
        })
        .collect()
}

/// Returns the places of shifts that are beyond noise, in order.
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

    // The maximum of `count` pure noises grows with the root of the logarithm.
    let noise = noise(values, &smooth);
    let certain = CERTAINTY * (2.0 * (count as f64).ln()).sqrt();
    let mut candidates: Vec<Candidate> = intervals(count)
        .into_iter()
        .filter_map(|(begin, end)| strongest(&sums, begin, end))
        .filter(|candidate| candidate.strength > certain * noise)
        .filter(|candidate| is_seen_near(values, candidate))
        .filter(|candidate| candidate.strength > certain * noise_within(values, candidate))
        .collect();
    candidates.sort_by(|a, b| {
        b.strength.total_cmp(&a.strength).then((a.begin, a.end).cmp(&(b.begin, b.end)))
    });

    // Overlapping intervals find the same shift: the strongest of them says where it is.
    let mut places: Vec<usize> = Vec::new();
    for candidate in candidates {
        let is_known = places.iter().any(|&place| {
            let is_within = candidate.begin < place && place < candidate.end;
            is_within || place.abs_diff(candidate.at) < LEVEL_MIN
        });
        if !is_known {
            places.push(candidate.at);
        }
    }

    places.sort_unstable();
    places
}

/// Returns stretches of lengths that shrink by the root of two, each overlapping half of the next.
fn intervals(count: usize) -> Vec<(usize, usize)> {
    let mut intervals = Vec::new();
    let mut length = count as f64;
    while length as usize >= 2 * LEVEL_MIN {
        let whole = length as usize;

        let stretch_count = (2 * count).div_ceil(whole).saturating_sub(1).max(1);
        for stretch in 0..stretch_count {
            let begin = match stretch_count {
                1 => 0,
                _ => stretch * (count - whole) / (stretch_count - 1),
            };
            intervals.push((begin, begin + whole));
        }
        length /= std::f64::consts::SQRT_2;
    }
    intervals
}

/// Returns the place at which the two parts of a stretch differ most.
fn strongest(sums: &[f64], begin: usize, end: usize) -> Option<Candidate> {
    let mean = |from: usize, to: usize| (sums[to] - sums[from]) / (to - from) as f64;
    let mut best: Option<Candidate> = None;
    for at in begin + LEVEL_MIN..=end - LEVEL_MIN {
        let (left, right) = ((at - begin) as f64, (end - at) as f64);
        let weight = (left * right / (left + right)).sqrt();
        let strength = (mean(at, end) - mean(begin, at)).abs() * weight;
        if best.as_ref().is_none_or(|best| strength > best.strength) {
            best = Some(Candidate { begin, end, at, strength });
        }
    }
    best
}

/// Returns the medians of the seconds right before and after a place.
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

/// Returns the deviation of one second in a stretch from its two levels.
fn noise_within(values: &[f64], one: &Candidate) -> f64 {
    let sides = [one.begin..one.at, one.at..one.end];
    let residuals = sides.into_iter().flat_map(|side| {
        let side = &values[side];
        let level = median(side.iter().copied()).unwrap_or(0.0);
        side.iter().map(move |value| value - level)
    });
    scale(residuals, 0.0).unwrap_or(0.0)
}

/// Returns each value as the median of the five around it: spikes of one or two seconds vanish,
/// edges stay in place.
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

/// Returns the deviation of one second that candidates are compared with: the larger of the
/// deviations from second to second, and from ten seconds to the next ten. It is a median, so that
/// a few shifts don't change it, but a rate that swings does.
fn noise(values: &[f64], smooth: &[f64]) -> f64 {
    let batches: Vec<f64> = smooth
        .chunks_exact(LEVEL_MIN)
        .map(|batch| batch.iter().sum::<f64>() / LEVEL_MIN as f64)
        .collect();

    let of_batches = typical_step(&batches) * (LEVEL_MIN as f64).sqrt();
    let of_seconds = match typical_step(values) {
        typical if typical > 0.0 => typical,
        // More than half of the neighbors are equal: small whole numbers.
        _ => mean_step(values),
    };
    of_seconds.max(of_batches)
}

/// Returns the absolute differences of neighbors.
fn steps(values: &[f64]) -> impl Iterator<Item = f64> {
    values.windows(2).map(|pair| (pair[1] - pair[0]).abs())
}

/// Returns the deviation of one value, by the median difference of neighbors.
fn typical_step(values: &[f64]) -> f64 {
    NORMAL * median(steps(values)).unwrap_or(0.0) / std::f64::consts::SQRT_2
}

/// Returns the deviation of one value, by the mean difference of neighbors.
fn mean_step(values: &[f64]) -> f64 {
    let count = steps(values).count().max(1) as f64;
    steps(values).sum::<f64>() / count * std::f64::consts::PI.sqrt() / 2.0
}

/// Returns the places between levels that differ enough. Removes the smallest change until all are
/// large enough.
fn levels(values: &[f64], mut places: Vec<usize>) -> Vec<usize> {
    loop {
        let bounds = bounds(&places, values.len());
        let medians: Vec<f64> = bounds.iter().map(|level| median_of(values, level)).collect();

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

/// Returns the ranges between places.
fn bounds(places: &[usize], count: usize) -> Vec<std::ops::Range<usize>> {
    let begins = std::iter::once(0).chain(places.iter().copied());
    let ends = places.iter().copied().chain([count]);
    begins.zip(ends).map(|(begin, end)| begin..end).collect()
}

fn median_of(values: &[f64], level: &std::ops::Range<usize>) -> f64 {
    median(values[level.clone()].iter().copied()).unwrap_or(0.0)
}
