//! Finds seconds with almost no progress.

use super::rates::Rates;
use super::{STALL_SHARE, Stall};

/// Returns every stall in the order of time, without concurrent changes; `None` if operations are
/// too rare to tell.
pub(super) fn stalls(rates: &Rates<'_>) -> Option<Vec<Stall>> {
    if rates.are_rare() {
        return None;
    }

    let usual = rates.usual();
    let mut stalls: Vec<Stall> = Vec::new();
    for (second, &rate) in rates.values.iter().enumerate() {
        // When the last clients work alone, they are not slow.
        if rate >= STALL_SHARE * usual * rates.share_at_work(second) {
            continue;
        }
        match stalls.last_mut() {
            Some(stall) if stall.from_second + stall.seconds == second => {
                stall.seconds += 1;
                stall.lowest = stall.lowest.min(rate);
            }
            _ => stalls.push(Stall {
                from_second: second,
                seconds: 1,
                lowest: rate,
                ..Stall::default()
            }),
        }
    }

    // The reply that ends a stall comes in the second after it.
    for stall in &mut stalls {
        let times = rates.response_us_max.iter().copied();
        let around = times.skip(stall.from_second).take(stall.seconds + 1);
        stall.response_us_max = around.filter(|&us| us > 0.0).max_by(f64::total_cmp);
    }
    Some(stalls)
}

/// Marks which of `seconds` seconds are part of a stall.
pub(super) fn marked(seconds: usize, stalls: &[Stall]) -> Vec<bool> {
    let mut marks = vec![false; seconds];
    for stall in stalls {
        let end = (stall.from_second + stall.seconds).min(seconds);
        marks[stall.from_second.min(end)..end].fill(true);
    }
    marks
}
