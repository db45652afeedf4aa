//! Swings of throughput, and what keeps step with them.

mod shapes;

use analysis::figures::swing::Swing;
use shapes::{EVENT, NOISES, Random, Rhythm, Shape, SwingingStep, Truth};

/// The lengths of simulated steps in seconds.
const LENGTHS: [usize; 2] = [60, 180];

/// A rhythm like that of vacuum: every 20 s, neither strict nor at random.
const RHYTHM: Rhythm = Rhythm { period: 20.0, jitter: 0.05, shape: Shape::Dips(0.4) };

/// Returns the swings of twenty steps of 180 s.
fn twenty(truth: Truth, rhythm: Rhythm) -> Vec<Swing> {
    let step = SwingingStep { truth, rhythm, share: 0.6 };
    let mut random = Random::new(3);
    (0..20).filter_map(|_| step.swing(&mut random, 180)).collect()
}

fn names_the_event(swing: &Swing) -> bool {
    swing.in_step.iter().any(|one| one.name == EVENT)
}

#[test]
fn noise_of_any_kind_hardly_ever_swings() {
    for noise in &NOISES {
        for seconds in LENGTHS {
            let mut random = Random::new(11);
            let swings = (0..20).filter_map(|_| noise.swing(&mut random, seconds));
            let swings: Vec<Swing> = swings.collect();
            assert!(swings.len() <= 1, "{}, {seconds} s: {swings:?}", noise.name);
        }
    }
}

#[test]
fn twenty_steps_of_white_noise_do_not_swing() {
    let mut random = Random::new(20);
    let swings = (0..20).filter_map(|_| NOISES[0].swing(&mut random, 180));
    assert_eq!(swings.collect::<Vec<_>>(), []);
}

#[test]
fn a_swing_has_its_period_and_the_event_that_drives_it() {
    let swings = twenty(Truth::Engine, RHYTHM);
    let with_period = swings.iter().filter(|swing| (18.0..22.0).contains(&swing.period_seconds));
    assert!(with_period.count() >= 12, "{swings:?}");
    let named = swings.iter().filter(|swing| names_the_event(swing)).count();
    assert!(4 * named >= 3 * swings.len(), "{named} of {}", swings.len());
    assert!(swings.iter().all(|swing| swing.host_load.is_none()));
}

#[test]
fn beside_a_neighbor_that_works_every_7_seconds_nothing_of_the_engine_is_named() {
    for jitter in [0.0, 0.05] {
        let rhythm = Rhythm { period: 7.0, jitter, shape: Shape::Dips(0.4) };
        let swings = twenty(Truth::Neighbor, rhythm);
        assert!(!swings.is_empty());
        for swing in swings {
            assert_eq!(swing.in_step, []);
            assert_eq!(swing.host_load.unwrap().name, "other programs");
        }
    }
}

#[test]
fn an_event_with_the_same_period_by_chance_is_hardly_ever_named() {
    let swings = twenty(Truth::Coincidence, RHYTHM);
    assert!(swings.len() >= 12);
    let named = swings.iter().filter(|swing| names_the_event(swing)).count();
    assert!(named <= 2, "{named}");
}
