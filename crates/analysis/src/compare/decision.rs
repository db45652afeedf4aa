//! Says which comparisons more repeats can decide, for runs that add repeats until all are decided.

use super::{Compared, ComparedStep, REPEATS_CAP, Verdict};
use crate::figures::TYPICAL_RATE;

/// The repeats after which a comparison is given up that has no interval so far: its step is
/// invalid, or only the first repeat has it, as loads of databases that are copied later.
const REPEATS_WITHOUT_INTERVAL: u32 = 3;

/// The most repeats that are worth advising. The notes below tables have the same number.
pub const REPEATS_ADVISED_MAX: u32 = 40;
/// The largest change that these must still be able to show, or more repeats are not advised: 1 is
/// 100%.
pub const CHANGE_ADVISED_MAX: f64 = 1.0;

/// The decision of the repeats so far about a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The comparison is faster, slower, or shows no change.
    Decided {
        /// The verdict.
        verdict: Verdict,
        /// The typical rate decided it, not throughput.
        by_typical_rate: bool,
    },
    /// More repeats may decide the comparison.
    Open {
        /// The total number of repeats that would decide it, if its ratio and spread stay as they
        /// are; at most [`super::REPEATS_CAP`], which means that or more. `None` if unknown.
        repeats_needed: Option<u32>,
    },
    /// No number of repeats can decide the comparison.
    GivenUp,
}

impl Decision {
    /// Returns whether more repeats may decide the comparison.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Open { .. })
    }
}

impl Compared {
    /// Returns what repeats have decided about a comparison of throughput, of which `tried` were
    /// measured. Where targets took turns, their typical rate may decide what stalls leave open.
    pub fn decision(&self, throughput: &ComparedStep, tried: u32) -> Decision {
        let of_throughput = throughput.decision(self.effect, tried);
        let Decision::Open { repeats_needed } = of_throughput else {
            return of_throughput;
        };

        let Some(of_same) = self.typical_rate_of(throughput) else {
            return of_throughput;
        };
        match of_same.decision(self.effect, tried) {
            Decision::Decided { verdict, .. } => {
                Decision::Decided { verdict, by_typical_rate: true }
            }
            Decision::Open { repeats_needed: of_typical } => {
                // Repeats without a typical rate count as well.
                let left_out = throughput.repeats().saturating_sub(of_same.repeats());
                let of_typical = of_typical.map(|needed| (needed + left_out).min(REPEATS_CAP));
                let known = [repeats_needed, of_typical].into_iter().flatten();
                Decision::Open { repeats_needed: known.min() }
            }
            Decision::GivenUp => of_throughput,
        }
    }

    /// Returns whether a comparison of throughput, of which `tried` repeats were measured, is open
    /// but too noisy for more repeats to decide it: even [`REPEATS_ADVISED_MAX`] would show no
    /// change below [`CHANGE_ADVISED_MAX`].
    pub fn is_too_noisy_to_decide(&self, throughput: &ComparedStep, tried: u32) -> bool {
        let needs_most = Decision::Open { repeats_needed: Some(REPEATS_CAP) };
        if self.decision(throughput, tried) != needs_most {
            return false;
        }

        let rows = [Some(throughput), self.typical_rate_of(throughput)];
        let changes =
            rows.into_iter().flatten().filter_map(|row| row.detectable_with(REPEATS_ADVISED_MAX));
        changes.reduce(f64::min).is_some_and(|least| least > CHANGE_ADVISED_MAX)
    }

    /// Returns the comparison of typical rates that is of the same step as one of throughput.
    fn typical_rate_of(&self, throughput: &ComparedStep) -> Option<&ComparedStep> {
        let mut typical = self.rows.iter().filter(|row| row.metric == TYPICAL_RATE);
        typical.find(|row| row.compares_the_same(throughput))
    }
}

impl ComparedStep {
    /// Returns what repeats have decided about this comparison, of which `tried` were measured.
    /// Changes of less than `effect` do not matter.
    fn decision(&self, effect: f64, tried: u32) -> Decision {
        match self.verdict {
            Verdict::Faster | Verdict::Slower | Verdict::Equal => {
                Decision::Decided { verdict: self.verdict, by_typical_rate: false }
            }
            // The figures are too coarse.
            Verdict::TooNoisy if self.repeats_needed.is_none() => Decision::GivenUp,
            Verdict::TooNoisy => Decision::Open { repeats_needed: self.repeats_to_decide(effect) },
            Verdict::Single | Verdict::Invalid | Verdict::NotComparable => {
                if tried < REPEATS_WITHOUT_INTERVAL {
                    Decision::Open { repeats_needed: None }
                } else {
                    Decision::GivenUp
                }
            }
        }
    }

    /// Returns the total number of repeats that would decide this comparison.
    fn repeats_to_decide(&self, effect: f64) -> Option<u32> {
        let center = self.ratio?.ln();
        let (power, spread) = (self.family_power()?, self.interval_spread()?);
        Some(power.repeats_to_decide(center, spread, effect, self.repeats()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Interval, Pairing, Sample};
    use crate::figures::Looks;

    fn noisy(ratio: f64, spread: f64) -> ComparedStep {
        let value = Sample { run: 0, repeat: 1, value: 1.0 };
        ComparedStep {
            values: vec![value; 4],
            base_values: vec![value; 4],
            ratio: Some(ratio),
            interval: Some(Interval { low: 0.5, high: 2.0, confidence: 0.95 }),
            family_level: Some(0.05),
            pairing: Pairing::Paired,
            verdict: Verdict::TooNoisy,
            spread: Some(spread),
            repeats_needed: Some(REPEATS_CAP),
            looks: Looks::AnyTime,
            ..ComparedStep::default()
        }
    }

    fn needed(ratio: f64, spread: f64) -> u32 {
        match noisy(ratio, spread).decision(0.03, 4) {
            Decision::Open { repeats_needed } => repeats_needed.unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns whether a comparison beside other `rows` is too noisy to decide.
    fn is_too_noisy(throughput: &ComparedStep, rows: Vec<ComparedStep>) -> bool {
        let compared = Compared { rows, effect: 0.03, ..Compared::default() };
        compared.is_too_noisy_to_decide(throughput, 4)
    }

    #[test]
    fn large_changes_and_none_need_fewer_repeats_than_changes_of_half_the_effect() {
        let [none, half, large] = [1.0, 1.015, 1.1].map(|ratio| needed(ratio, 0.02));
        assert!(none < half && large < half, "{none} {half} {large}");
        assert!(large > 4, "{large}");
        assert_eq!(needed(1.0, 0.5), REPEATS_CAP);
    }

    #[test]
    fn a_typical_rate_decides_what_throughput_leaves_open() {
        let throughput = ComparedStep { metric: "throughput".into(), ..noisy(1.0, 0.1) };
        let decided_by = |typical: ComparedStep| {
            let typical = ComparedStep { metric: TYPICAL_RATE.into(), ..typical };
            let rows = vec![throughput.clone(), typical];
            Compared { rows, effect: 0.03, ..Compared::default() }.decision(&throughput, 4)
        };

        let equal = ComparedStep { verdict: Verdict::Equal, ..noisy(1.0, 0.01) };
        let decided = Decision::Decided { verdict: Verdict::Equal, by_typical_rate: true };
        assert_eq!(decided_by(equal), decided);

        let needed = |typical| match decided_by(typical) {
            Decision::Open { repeats_needed } => repeats_needed.unwrap(),
            other => panic!("{other:?}"),
        };
        assert!(needed(noisy(1.0, 0.02)) < needed(noisy(1.0, 0.1)));

        // A repeat that has no typical rate is one more to measure.
        let with_fewer = |typical: ComparedStep| ComparedStep {
            values: typical.values[1..].to_vec(),
            ..typical
        };
        assert!(needed(with_fewer(noisy(1.3, 0.02))) > 4);

        let coarse = ComparedStep { repeats_needed: None, ..noisy(1.0, 0.01) };
        assert_eq!(decided_by(coarse), throughput.decision(0.03, 4));
    }

    #[test]
    fn repeats_that_would_show_only_the_largest_changes_decide_nothing() {
        let throughput = ComparedStep { metric: "throughput".into(), ..noisy(1.0, 3.0) };
        assert!(is_too_noisy(&throughput, Vec::new()));

        let less_noisy = noisy(1.0, 0.5);
        assert_eq!(less_noisy.decision(0.03, 4), throughput.decision(0.03, 4));
        assert!(
            !is_too_noisy(&less_noisy, Vec::new()),
            "40 repeats would show a change below 100%"
        );

        let typical = ComparedStep { metric: TYPICAL_RATE.into(), ..less_noisy };
        assert!(!is_too_noisy(&throughput, vec![typical]));

        let decided = ComparedStep { verdict: Verdict::Faster, ..noisy(1.0, 3.0) };
        assert!(!is_too_noisy(&decided, Vec::new()));
    }

    #[test]
    fn what_has_no_interval_is_given_up_after_three_repeats() {
        for verdict in [Verdict::Single, Verdict::Invalid, Verdict::NotComparable] {
            let row = ComparedStep { verdict, ..ComparedStep::default() };
            assert!(row.decision(0.03, 2).is_open());
            assert_eq!(row.decision(0.03, 3), Decision::GivenUp);
        }
        let coarse = ComparedStep { repeats_needed: None, ..noisy(1.0, 0.1) };
        assert_eq!(coarse.decision(0.03, 4), Decision::GivenUp);
    }
}
