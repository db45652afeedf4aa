//! The growth of the lag of replicas.

mod shapes;

use analysis::figures::LagVerdict;
use shapes::{Random, SHAPES, verdict};

/// The lengths of simulated steps in seconds.
const LENGTHS: [usize; 5] = [20, 30, 40, 60, 120];

/// Steps of each shape and length.
const STEPS: usize = 100;

#[test]
fn a_lag_that_grows_in_any_shape_is_not_called_bounded() {
    for shape in SHAPES.iter().filter(|shape| shape.grows) {
        let mut random = Random::new(7);
        for seconds in LENGTHS {
            let verdicts = (0..STEPS).map(|_| shape.verdict(&mut random, seconds));
            let (mut growing, mut is_bounded) = (0, false);
            for verdict in verdicts {
                growing += usize::from(verdict == LagVerdict::Grows);
                is_bounded |= verdict == LagVerdict::Bounded;
            }
            assert!(!is_bounded, "{}, {seconds} s", shape.name);
            assert!(growing * 10 >= STEPS * 8, "{}, {seconds} s: {growing}", shape.name);
        }
    }
}

#[test]
fn a_lag_that_is_bounded_is_hardly_ever_called_growing() {
    for shape in SHAPES.iter().filter(|shape| !shape.grows) {
        let mut random = Random::new(11);
        for seconds in LENGTHS {
            let verdicts = (0..STEPS).map(|_| shape.verdict(&mut random, seconds));
            let growing = verdicts.filter(|verdict| *verdict == LagVerdict::Grows).count();
            assert!(growing * 20 <= STEPS, "{}, {seconds} s: {growing}", shape.name);
        }
    }
}

#[test]
fn a_lag_that_grew_faster_and_faster_for_25_seconds_grows() {
    let lag_ms = [
        258.0, 551.0, 870.0, 1101.0, 1330.0, 1560.0, 1790.0, 2040.0, 2310.0, 2640.0, 3000.0,
        3366.0, 3587.0, 4062.0, 4400.0, 4750.0, 5100.0, 5460.0, 5820.0, 6180.0, 6540.0, 6860.0,
        7167.0, 7666.0, 8167.0,
    ];
    assert_eq!(verdict(&lag_ms), LagVerdict::Grows);
}

#[test]
fn a_lag_that_rises_only_at_its_very_end_is_not_called_bounded() {
    for seconds in LENGTHS {
        let rise_begins = 0.9 * seconds as f64;
        let measured = |lag: &dyn Fn(f64) -> f64| -> Vec<f64> {
            (0..seconds).map(|second| lag(second as f64)).collect()
        };
        let stopped = measured(&|second| 100.0 + 1000.0 * (second - rise_begins).max(0.0));
        let jumped = measured(&|second| if second < rise_begins { 100.0 } else { 4000.0 });
        assert_eq!(verdict(&stopped), LagVerdict::Undecided, "{seconds} s");
        assert_eq!(verdict(&jumped), LagVerdict::Undecided, "{seconds} s");
    }
}

#[test]
fn a_lag_that_ends_far_above_its_middle_after_a_burst_is_not_decided() {
    let burst_and_growth = |second: usize| {
        let second = second as f64;
        (5000.0 - 800.0 * second).max(50.0 * second)
    };
    let lag_ms: Vec<f64> = (0..40).map(burst_and_growth).collect();
    assert_eq!(verdict(&lag_ms), LagVerdict::Undecided);
}
