//! Decides whether a lag grows until the end of a step. `docs/seconds.md` states the rule, its
//! claim and how often it is wrong.
//!
//! A straight line with an interval cannot decide that: the residuals of a curve look like slow
//! noise, which makes the interval too wide. This rule compares quarters of the step instead.

use crate::figures::average;

/// The least growth from the second quarter to the last that counts, in milliseconds: twice the
/// resolution of the lag.
const GROWTH_MS_MIN: f64 = 200.0;
/// The least ratio of that growth to the span of the two middle quarters. The span of a wave
/// exceeds the differences between the medians of quarters.
const OF_MIDDLE_MIN: f64 = 0.6;
/// The least ratio of that growth to the one from the first quarter to the third, in a lag that
/// ends high. That of an exponential warm-up is less, if its time constant is a quarter of the step
/// or shorter.
const OF_EARLIER_MIN: f64 = 0.4;
/// The same for a lag that grows. That of a square root is 0.7.
const OF_EARLIER_MIN_TO_GROW: f64 = 0.55;
/// The share of the growth by which the lag may fall within the last quarter.
const FALL_MAX: f64 = 0.3;
/// The least ratio of the span of the last quarter to that of the third: a rise that has ended
/// leaves less.
const LAST_SPAN_MIN: f64 = 0.125;
/// The least growth from the first quarter to the last, in standard deviations of the sum of as
/// many random steps.
const DEVIATIONS_MIN: f64 = 1.6;

/// The share of the step that its last seconds are, at least [`LAST_SECONDS_MIN`].
const LAST_SECONDS_SHARE: f64 = 0.05;
/// The least number of last seconds: the median of one is a single value.
const LAST_SECONDS_MIN: usize = 2;

/// The trend of the lag of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// The lag grows until the end.
    Grows,
    /// The lag ends far above its middle, but may be periodic, random or bounded.
    EndsHigh,
    None,
}

/// The lag of each second that has one, by quarters of a step, in milliseconds.
pub struct Quarters {
    all: Vec<f64>,
    quarters: [Vec<f64>; 4],
}

impl Quarters {
    /// Splits the lag of each second; `None` if a quarter has fewer than two.
    pub fn of(lag_ms: &[Option<f64>]) -> Option<Self> {
        let quarters = [0, 1, 2, 3].map(|quarter| -> Vec<f64> {
            let [begin, end] = [quarter, quarter + 1].map(|edge| lag_ms.len() * edge / 4);
            lag_ms[begin..end].iter().flatten().copied().collect()
        });
        if quarters.iter().any(|quarter| quarter.len() < 2) {
            return None;
        }
        Some(Self { all: quarters.concat(), quarters })
    }

    /// Returns the median lag of each quarter.
    pub fn medians(&self) -> [f64; 4] {
        self.quarters.each_ref().map(|quarter| median(quarter))
    }

    /// Judges the end against the middle, and the middle against the beginning.
    pub fn trend(&self) -> Trend {
        let [first, second, third, last] = self.medians();
        let growth = last - second;
        let earlier = third - first;
        let middle = self.quarters[1..3].concat();

        let ends_high = growth >= GROWTH_MS_MIN
            && growth >= OF_MIDDLE_MIN * span(&middle)
            && growth >= OF_EARLIER_MIN * earlier;
        if !ends_high {
            return if self.jumps_at_the_end() { Trend::EndsHigh } else { Trend::None };
        }

        let grows = growth >= OF_EARLIER_MIN_TO_GROW * earlier
            && last > third
            && self.exceeds_first_half()
            && self.rises_to_the_end(growth)
            && last - first >= DEVIATIONS_MIN * self.random_growth();
        if grows { Trend::Grows } else { Trend::EndsHigh }
    }

    /// Returns true if the last seconds are far above every second before the last quarter. Medians
    /// of quarters don't see a rise that has just begun.
    fn jumps_at_the_end(&self) -> bool {
        let last = &self.quarters[3];
        let before = &self.all[..self.all.len() - last.len()];
        let share = (LAST_SECONDS_SHARE * self.all.len() as f64) as usize;
        let count = share.clamp(LAST_SECONDS_MIN, last.len());
        let end = median(&last[last.len() - count..]);
        before.iter().all(|lag| end >= lag + GROWTH_MS_MIN)
    }

    /// Returns true if three quarters of the last quarter's seconds are above all of the first
    /// half. Those of a wave are not, if its period is at most half of the step.
    fn exceeds_first_half(&self) -> bool {
        let mut first_half = self.quarters[..2].iter().flatten();
        let last = sorted(&self.quarters[3]);
        let low = last[(last.len() - 1) / 4];
        first_half.all(|lag| *lag < low)
    }

    /// Returns true if the last quarter neither falls, like the end of a burst, nor is flat after a
    /// third one that was not.
    fn rises_to_the_end(&self, growth: f64) -> bool {
        let [.., third, last] = &self.quarters;
        let (before, end) = last.split_at(last.len() / 2);
        median(end) >= median(before) - FALL_MAX * growth
            && span(last) >= LAST_SPAN_MIN * span(third)
    }

    /// Returns the standard deviation of the sum of as many random steps as there are seconds
    /// between the middles of the first and the last quarter, if they vary as those of the lag.
    fn random_growth(&self) -> f64 {
        let steps: Vec<f64> = self.all.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let count = steps.len() as f64;
        let mean = steps.iter().sum::<f64>() / count;
        let squares: f64 = steps.iter().map(|step| (step - mean).powi(2)).sum();
        (squares / (count - 1.0) * 0.75 * self.all.len() as f64).sqrt()
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn median(values: &[f64]) -> f64 {
    average::median(values.iter().copied()).unwrap_or_default()
}

/// Returns the span from the first decile of values to the last.
fn span(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let decile = |share: f64| sorted[(share * (sorted.len() - 1) as f64).round() as usize];
    decile(0.9) - decile(0.1)
}
