//! Decides many comparisons at once.

/// Returns the level at which each comparison of a family is decided, so that at most the share
/// `rate` of the shown changes is false. With R of m shown, it is R x rate / m (Benjamini and
/// Hochberg 1995), and with none rate / m. A comparison is shown if its p is at most this level;
/// intervals of that level agree with it (Benjamini and Yekutieli 2005).
pub(crate) fn level(p_values: &[f64], rate: f64) -> f64 {
    let mut sorted = p_values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let each = rate / sorted.len().max(1) as f64;
    let at_rank = |index: usize| (index + 1) as f64 * each;
    let shown = (0..sorted.len()).rfind(|&index| sorted[index] <= at_rank(index));
    at_rank(shown.unwrap_or(0))
}

/// The parts of a family that are decided at levels of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FamilyParts {
    /// The number of targets.
    pub target_count: usize,
    /// The most metrics of a target, such as throughput and the rate in a typical turn.
    pub metric_count: usize,
}

impl FamilyParts {
    /// Returns what the levels depend on.
    pub(super) fn depends_on(self) -> &'static str {
        match (self.target_count > 1, self.metric_count > 1) {
            (true, true) => "by target and metric",
            (false, true) => "by metric",
            (_, false) => "by target",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(p_values: &[f64], shown: usize) {
        let level = level(p_values, 0.05);
        let got = p_values.iter().filter(|&&p| p <= level).count();
        assert_eq!(got, shown, "{level}");
        let expected = shown.max(1) as f64 * 0.05 / p_values.len().max(1) as f64;
        assert!((level - expected).abs() < 1e-12);
    }

    #[test]
    fn the_example_of_benjamini_and_hochberg_shows_four_of_fifteen() {
        check(
            &[
                0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240,
                0.4262, 0.5719, 0.6528, 0.7590, 1.0,
            ],
            4,
        );
    }

    #[test]
    fn one_comparison_is_decided_at_the_rate_itself() {
        check(&[0.049], 1);
        check(&[0.051], 0);
        check(&[], 0);
    }

    #[test]
    fn one_small_p_among_many_must_be_smaller() {
        check(&[0.004, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1], 1);
        check(&[0.006, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1], 0);
    }

    #[test]
    fn levels_depend_on_targets_only_where_there_are_several() {
        let depends_on =
            |target_count, metric_count| FamilyParts { target_count, metric_count }.depends_on();
        assert_eq!(depends_on(1, 2), "by metric");
        assert_eq!(depends_on(2, 1), "by target");
        assert_eq!(depends_on(2, 2), "by target and metric");
    }

    #[test]
    fn if_all_changed_each_is_judged_as_if_it_were_the_only_one() {
        check(&[0.04; 20], 20);
    }
}
