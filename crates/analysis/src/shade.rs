//! Applies the rules by which the field colors its tables. Differences from the field are stated at
//! each rule.

/// The meaning of a cell's color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shade {
    /// No color.
    None,
    /// Among the best of its column: green.
    Good,
    /// Among the worst of its column: red.
    Bad,
    /// The requested rate was missed: gray.
    SlaMissed,
}

/// The fewest values of which some are called good or bad: of two, one would always be the best.
const VALUES_MIN: usize = 3;

/// Returns whether there are enough values to call some of them good or bad.
fn are_enough(values: &[Option<f64>]) -> bool {
    values.iter().flatten().count() >= VALUES_MIN
}

/// Shades one column of the summary, where more is better. `sla_met` is true without a requested
/// rate.
///
/// The range is from the smallest value of all rows to the largest of those that met the SLA. The
/// lower quarter of it is bad, unless the smallest is at least 80% of the largest. Else a missed
/// SLA is gray, and the upper quarter is good. A low value that missed its SLA is bad, not gray.
///
/// The field rounds a quarter of the range down to a whole number, which distorts columns of
/// fractions: here it is not rounded. The field calls a column of equal values good throughout;
/// here such a column has no color. It also colors two values: here that takes three.
pub fn shade_summary(values: &[Option<f64>], sla_met: &[bool]) -> Vec<Shade> {
    let met = (0..values.len()).map(|index| sla_met.get(index).copied().unwrap_or(true));
    let cells: Vec<(Option<f64>, bool)> = values.iter().copied().zip(met).collect();

    let smallest = values.iter().copied().flatten().fold(f64::INFINITY, f64::min);
    let largest = cells
        .iter()
        .filter(|(_, met)| *met)
        .filter_map(|(value, _)| *value)
        .fold(f64::NEG_INFINITY, f64::max);

    let quarter = 0.25 * (largest - smallest);
    let is_colored = are_enough(values);
    let bottom = (is_colored && smallest < 0.8 * largest).then_some(smallest + quarter);
    let top = (is_colored && smallest < largest).then_some(largest - quarter);

    cells
        .iter()
        .map(|&(value, met)| match value {
            None => Shade::None,
            Some(value) if bottom.is_some_and(|bottom| value <= bottom) => Shade::Bad,
            Some(_) if !met => Shade::SlaMissed,
            Some(value) if top.is_some_and(|top| value >= top) => Shade::Good,
            Some(_) => Shade::None,
        })
        .collect()
}

/// Shades a column of largest response times, where less is better: within a quarter of the range
/// of the largest is bad, then of the smallest is good.
///
/// If the smallest is at least 80% of the largest, nothing is colored. (The field suppresses only
/// the good ones, so that a column of equal values is bad throughout.) Fewer than three values have
/// no colors either.
pub fn shade_max(values: &[Option<f64>]) -> Vec<Shade> {
    let all = || values.iter().copied().flatten();
    let smallest = all().fold(f64::INFINITY, f64::min);
    let largest = all().fold(f64::NEG_INFINITY, f64::max);
    if smallest >= 0.8 * largest || !are_enough(values) {
        return vec![Shade::None; values.len()];
    }

    let quarter = 0.25 * (largest - smallest);
    let shade = |value: f64| {
        if value >= largest - quarter {
            Shade::Bad
        } else if value <= smallest + quarter {
            Shade::Good
        } else {
            Shade::None
        }
    };

    values.iter().map(|value| value.map_or(Shade::None, shade)).collect()
}

/// Returns the darkness of a cell of a response-time bucket, from 0 for nothing to 20 for all: one
/// step per 5%.
pub fn shade_share(percent: f64) -> u8 {
    (percent / 5.0).round().clamp(0.0, 20.0) as u8
}

/// Returns a figure relative to the base's. Two zeros have a ratio of 1, as in the field; if only
/// the base is zero there is no ratio (the field prints `inf`).
pub fn relative(value: Option<f64>, base: Option<f64>) -> Option<f64> {
    match (value?, base?) {
        (0.0, 0.0) => Some(1.0),
        (_, 0.0) => None,
        (value, base) => Some(value / base),
    }
}

#[cfg(test)]
mod tests {
    use Shade::{Bad, Good, None as Plain, SlaMissed};

    use super::*;

    #[track_caller]
    fn check_summary(values: &[f64], missed: &[usize], expected: &[Shade]) {
        let met: Vec<bool> = (0..values.len()).map(|index| !missed.contains(&index)).collect();
        let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
        assert_eq!(shade_summary(&values, &met), expected);
    }

    #[test]
    fn the_quarters_of_the_range_are_good_and_bad() {
        check_summary(
            &[1000.0, 850.0, 849.0, 600.0, 551.0, 550.0, 400.0],
            &[],
            &[Good, Good, Plain, Plain, Plain, Bad, Bad],
        );
    }

    #[test]
    fn nothing_is_bad_when_all_are_within_a_fifth() {
        check_summary(&[1000.0, 950.0, 949.0, 800.0], &[], &[Good, Good, Plain, Plain]);
        check_summary(&[1000.0, 950.0, 949.0, 799.0], &[], &[Good, Good, Plain, Bad]);
    }

    #[test]
    fn a_missed_sla_is_grey_unless_the_value_is_low() {
        // The largest is that of rows that met it: 4000 raises neither bound.
        check_summary(&[4000.0, 1000.0, 700.0, 400.0], &[0, 3], &[SlaMissed, Good, Plain, Bad]);
        check_summary(&[1000.0, 990.0, 500.0], &[1], &[Good, SlaMissed, Bad]);
        check_summary(&[1000.0, 100.0], &[0, 1], &[SlaMissed, SlaMissed]);
    }

    #[test]
    fn of_two_values_none_is_good_or_bad() {
        check_summary(&[1000.0, 500.0], &[], &[Plain, Plain]);
        check_summary(&[1000.0, 500.0], &[1], &[Plain, SlaMissed]);
        assert_eq!(shade_summary(&[Some(2.0), None, Some(1.0)], &[true; 3]), [Plain; 3]);
        assert_eq!(shade_max(&[Some(0.003), Some(0.008)]), [Plain; 2]);
    }

    #[test]
    fn small_values_are_not_cut_to_whole_numbers() {
        // Commits per second of a slow disk: a quarter of the range is less than one.
        check_summary(&[2.0, 1.8, 1.2, 1.0], &[], &[Good, Good, Bad, Bad]);
    }

    #[test]
    fn equal_values_have_no_colour() {
        check_summary(&[7.0, 7.0, 7.0], &[], &[Plain, Plain, Plain]);
        check_summary(&[7.0], &[], &[Plain]);
        assert_eq!(shade_max(&[Some(0.002); 9]), [Plain; 9]);
    }

    #[test]
    fn what_is_absent_has_no_colour_and_moves_no_bound() {
        let values = [None, Some(10.0), Some(1.0), Some(10.0)];
        assert_eq!(shade_summary(&values, &[true; 4]), [Plain, Good, Bad, Good]);
        assert_eq!(shade_summary(&[None, None], &[true; 2]), [Plain, Plain]);
        assert_eq!(shade_max(&[None]), [Plain]);
    }

    /// Largest query response times of q1000: one configuration of "round 6" had 4.484 s, the
    /// others less than one.
    #[test]
    fn an_outlier_of_response_time_is_bad_and_the_rest_is_good() {
        assert_eq!(
            shade_max(&[Some(0.5), Some(4.484), Some(0.9), Some(2.0)]),
            [Good, Bad, Good, Plain]
        );
    }

    /// "Configuration options that make writes faster or slower with MySQL and Postgres", small
    /// server without fsync: (57%, 83%, 54%) with the binlog against without it, (80%, 20%,
    /// 62%) against Postgres.
    #[test]
    fn the_published_ratios_follow_from_the_published_throughput() {
        let (off, on, postgres) =
            ([20458.0, 5881.0, 20271.0], [11614.0, 4910.0, 10992.0], [25471.0, 28840.0, 32837.0]);
        let check = |values: [f64; 3], bases: [f64; 3], published: [f64; 3]| {
            for ((value, base), published) in values.into_iter().zip(bases).zip(published) {
                let percent = relative(Some(value), Some(base)).unwrap() * 100.0;
                assert_eq!(percent.round(), published);
            }
        };
        check(on, off, [57.0, 83.0, 54.0]);
        check(off, postgres, [80.0, 20.0, 62.0]);
    }

    #[test]
    fn a_ratio_to_zero_is_none() {
        assert_eq!(relative(Some(0.0), Some(0.0)), Some(1.0));
        assert_eq!(relative(Some(1.0), Some(0.0)), None);
        assert_eq!(relative(None, Some(1.0)), None);
    }

    #[test]
    fn a_share_darkens_by_five_percent() {
        assert_eq!([0.0, 2.4, 2.6, 50.0, 100.0].map(shade_share), [0, 0, 1, 10, 20]);
    }
}
