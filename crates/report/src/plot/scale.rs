//! Axes: positions of values, and ticks.

use crate::model::number::fixed;

/// The maximum number of ticks. A logarithmic axis with more has only powers of ten.
const TICKS_MAX: usize = 7;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    pub low: f64,
    pub high: f64,
    is_log: bool,
    /// The ticks with their texts.
    pub ticks: Vec<(f64, String)>,
}

impl Scale {
    /// Returns an axis of names at 0, 1, 2 and so on.
    pub(super) fn names(names: impl Iterator<Item = String>) -> Self {
        let ticks: Vec<(f64, String)> = (0..).map(f64::from).zip(names).collect();
        Self { low: -0.5, high: ticks.len() as f64 - 0.5, is_log: false, ticks }
    }

    /// Returns a logarithmic axis with ticks at these sorted values only.
    pub(super) fn values(values: &[f64]) -> Self {
        Self {
            low: values.first().copied().unwrap_or(1.0),
            high: values.last().copied().unwrap_or(1.0),
            is_log: true,
            ticks: values.iter().map(|&value| (value, compact(value))).collect(),
        }
    }

    /// Returns a linear axis with round ends.
    pub(super) fn linear(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = round_step((high - low) / 4.0);
        let (first, last) = ((low / step).floor(), (high / step).ceil());

        // As many decimals as the step needs.
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let tick = |number: i64| {
            let value = number as f64 * step;
            let text = if value.abs() >= 1e4 { compact(value) } else { fixed(value, decimals) };
            (value, text)
        };

        Self {
            low: first * step,
            high: last * step,
            is_log: false,
            ticks: (first as i64..=last as i64).map(tick).collect(),
        }
    }

    /// Returns a logarithmic axis that ends at 1, 2 or 5 times a power of ten.
    pub(super) fn logarithmic(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low * 2.0 };
        let ladder = ladder(low, high);
        Self {
            low: ladder[0],
            high: ladder[ladder.len() - 1],
            is_log: true,
            ticks: thinned(ladder),
        }
    }

    /// Returns a logarithmic axis of ratios around 1; `reach` is a natural logarithm.
    pub(super) fn ratios(reach: f64) -> Self {
        let (low, high) = ((-reach).exp(), reach.exp());

        // Powers of ten would leave a narrow axis with one tick.
        let ticks = if high < 1.65 {
            // The smallest step with at most four ticks on each side.
            let steps = [0.01, 0.02, 0.05, 0.1, 0.2];
            let fits = |step: &f64| (high - 1.0) / step < 4.5;
            let step = steps.into_iter().find(fits).unwrap_or(0.2);

            let values = (-4..=4).map(|number| 1.0 + f64::from(number) * step);
            values.map(|value| (value, fixed(value, 2))).collect()
        } else {
            thinned(ladder(low, high))
        };

        let is_inside = |(tick, _): &(f64, String)| low <= *tick && *tick <= high;
        Self { low, high, is_log: true, ticks: ticks.into_iter().filter(is_inside).collect() }
    }

    /// Returns true if a value is outside the axis.
    pub(super) fn is_beyond(&self, value: f64) -> bool {
        let slack = 1e-9 * (self.high - self.low);
        value < self.low - slack || value > self.high + slack
    }

    /// Returns the position of a value on the axis from 0 to 1; values outside are at an end.
    pub(super) fn share(&self, value: f64) -> f64 {
        let along = |value: f64| if self.is_log { value.ln() } else { value };
        let (low, high) = (along(self.low), along(self.high));
        if high > low { ((along(value) - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
    }
}

/// Returns the next of 1, 2, 5 and 10 times a power of ten.
fn round_step(least: f64) -> f64 {
    let unit = 10_f64.powf(least.log10().floor());
    let mut steps = [1.0, 2.0, 5.0].into_iter().map(|digit| digit * unit);
    // The slack keeps a step that is too small only by rounding.
    steps.find(|step| *step >= least * 0.999).unwrap_or(10.0 * unit)
}

/// Returns 1, 2 and 5 times powers of ten, from the last value up to `low` to the first value from
/// `high` on.
fn ladder(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let powers = (first..=last).map(|power| 10_f64.powi(power));
    let rungs: Vec<f64> = powers.flat_map(|unit| [unit, 2.0 * unit, 5.0 * unit]).collect();

    let from = rungs.iter().rposition(|rung| *rung <= low * 1.001);
    let to = rungs.iter().position(|rung| *rung >= high * 0.999);
    rungs[from.unwrap_or(0)..=to.unwrap_or(rungs.len() - 1)].to_vec()
}

/// Returns as many of the values as fit, with their labels.
fn thinned(mut rungs: Vec<f64>) -> Vec<(f64, String)> {
    if rungs.len() > TICKS_MAX {
        let is_power_of_ten = |rung: &f64| (rung.log10() - rung.log10().round()).abs() < 1e-9;
        rungs.retain(is_power_of_ten);
    }
    // Even powers of ten may be too many.
    let each = rungs.len().div_ceil(TICKS_MAX).max(1);
    rungs.into_iter().step_by(each).map(|rung| (rung, compact(rung))).collect()
}

/// Formats a number with at most three digits: `0.5`, `12.5k`, `3M`.
pub(super) fn compact(value: f64) -> String {
    // Up to 9,999 the number itself is short enough.
    let units = [(1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")];
    let found = units.into_iter().find(|(from, ..)| value.abs() >= *from);
    let (_, divisor, unit) = found.unwrap_or((0.0, 1.0, ""));
    let scaled = value / divisor;

    let digits = scaled.abs().max(1e-9).log10().floor() as i32;
    let text = fixed(scaled, (2 - digits).clamp(0, 9) as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_string() + unit
    } else {
        text + unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: &Scale) -> String {
        let texts = scale.ticks.iter().map(|(_, text)| text.as_str());
        texts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round_and_as_many_as_can_be_read() {
        for (scale, expected) in [
            (Scale::linear(0.0, 37_000.0), "0 10k 20k 30k 40k"),
            (Scale::linear(0.93, 1.08), "0.90 0.95 1.00 1.05 1.10"),
            (Scale::linear(0.0, 0.0), "0.0 0.5 1.0"),
            (Scale::logarithmic(0.3, 12.0), "0.2 0.5 1 2 5 10 20"),
            (Scale::logarithmic(0.3, 40_000.0), "1 10 100 1,000 10k"),
            (Scale::logarithmic(7.0, 7.0), "5 10 20"),
            (Scale::ratios(0.04), "0.97 0.98 0.99 1.00 1.01 1.02 1.03 1.04"),
            (Scale::ratios(0.4), "0.80 1.00 1.20 1.40"),
            (Scale::ratios(1.2), "0.5 1 2"),
            (Scale::ratios(6.0), "0.01 0.1 1 10 100"),
            (Scale::values(&[1.0, 8.0, 64.0]), "1 8 64"),
        ] {
            assert_eq!(texts(&scale), expected);
        }
    }

    #[test]
    fn a_value_is_between_the_ends() {
        let scale = Scale::ratios(2_f64.ln());
        let near = |share: f64, expected: f64| assert!((share - expected).abs() < 1e-12);
        near(scale.share(1.0), 0.5);
        near(scale.share(2.0), 1.0);
        near(scale.share(1e9), 1.0);
        near(scale.share(0.5), 0.0);
        near(Scale::linear(0.0, 4.0).share(1.0), 0.25);
        near(Scale::values(&[8.0]).share(8.0), 0.5);
    }

    #[test]
    fn numbers_have_three_digits_at_most() {
        let values = [0.0, 0.5, 1.0, 12.345, 999.4, 9999.0, 12_345.0, 2.6e6, 0.001_24];
        let texts = values.map(compact);
        let expected = ["0", "0.5", "1", "12.3", "999", "9,999", "12.3k", "2.6M", "0.00124"];
        assert_eq!(texts, expected);
    }
}
