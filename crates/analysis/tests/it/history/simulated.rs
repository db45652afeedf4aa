//! Levels of series of which the truth is known.

use analysis::history::{LevelOptions, Levels, levels};

use super::machine::Random;
use super::truth::{Noise, Shape, series};
use crate::simulations::{at_most, simulations};

/// A history of two months, with the series of a small plan.
const NIGHTS: usize = 60;
const SERIES: usize = 40;

fn found(shapes: &[Shape], nights: usize, noise: Noise, random: &mut Random) -> Vec<Levels> {
    let made: Vec<Vec<f64>> =
        shapes.iter().map(|shape| series(nights, noise, *shape, random)).collect();
    levels(&made, LevelOptions::default())
}

/// Returns the share of histories without any change in which one is shown.
fn false_alarms(noise: Noise, count: usize, histories: u32) -> f64 {
    let mut random = Random::new(1);
    let wrong = (0..histories).filter(|_| {
        let found = found(&vec![Shape::Flat; count], NIGHTS, noise, &mut random);
        found.iter().any(|levels| !levels.changes.is_empty())
    });
    wrong.count() as f64 / f64::from(histories)
}

#[test]
fn no_history_without_changes_shows_one_more_often_than_the_rate_says() {
    let noises = [Noise::Normal, Noise::HeavyTailed, Noise::Outliers, Noise::TwoModes];
    for noise in noises {
        for (count, histories) in [(1, 400), (SERIES, 40)] {
            let histories = simulations(histories);
            let share = false_alarms(noise, count, histories);
            assert!(share <= at_most(0.05, histories), "{noise:?}, {count} series: {share}");
        }
    }
}

#[test]
fn nights_that_depend_on_the_night_before_are_seen_by_forty_series_together() {
    let histories = simulations(40);
    let share = false_alarms(Noise::Correlated, SERIES, histories);
    assert!(share <= at_most(0.05, histories), "{share}");
}

/// Returns the share of histories in which one series of forty changes after two months, and is
/// found at most one night off so many nights later.
fn shown_after(noise: Noise, nights: usize, size: f64) -> f64 {
    let mut random = Random::new(2);
    let histories = simulations(50);
    let hits = (0..histories).filter(|_| {
        let flat = vec![Shape::Flat; SERIES - 1];
        let mut made: Vec<Vec<f64>> =
            flat.iter().map(|shape| series(NIGHTS, noise, *shape, &mut random)).collect();
        let step = Shape::Step { at: NIGHTS, size };
        made.push(series(NIGHTS + nights, noise, step, &mut random));
        let levels = levels(&made, LevelOptions::default());
        levels[SERIES - 1].changes.iter().any(|change| change.at.abs_diff(NIGHTS) <= 1)
    });
    hits.count() as f64 / f64::from(histories)
}

#[test]
fn a_large_change_is_shown_within_a_week_and_never_by_one_night() {
    for noise in [Noise::Normal, Noise::HeavyTailed] {
        assert_eq!(shown_after(noise, 1, -0.3), 0.0, "{noise:?}");
        let share = shown_after(noise, 7, -0.1);
        assert!(share >= 0.9, "{noise:?}: {share}");
    }
    let share = shown_after(Noise::Normal, 20, -0.02);
    assert!(share >= 0.7, "{share}");
}

#[test]
fn a_change_that_came_and_went_is_two_and_one_that_was_half_repaired_as_well() {
    let mut random = Random::new(3);
    for shape in [
        Shape::Bump { at: 25, length: 10, size: -0.08 },
        Shape::Partly { at: 25, length: 15, size: -0.15 },
    ] {
        let mut right = 0;
        for _ in 0..20 {
            let mut shapes = vec![Shape::Flat; 10];
            shapes[0] = shape;
            let found = found(&shapes, NIGHTS, Noise::Normal, &mut random);
            let places: Vec<usize> = found[0].changes.iter().map(|change| change.at).collect();
            let truth = shape.changes();
            let near = |(a, b): (&usize, &usize)| a.abs_diff(*b) <= 1;
            right += u32::from(places.len() == 2 && places.iter().zip(&truth).all(near));
        }
        assert!(right >= 18, "{shape:?}: {right} of 20");
    }
}

#[test]
fn the_interval_has_the_size_and_the_place_is_in_its_range() {
    let mut random = Random::new(4);
    let (mut sizes, mut places, mut shown) = (0, 0, 0);
    for _ in 0..200 {
        let shape = Shape::Step { at: 40, size: -0.03 };
        let found = found(&[shape], NIGHTS, Noise::Normal, &mut random);
        if let [change] = &found[0].changes[..] {
            shown += 1;
            sizes += u32::from(change.low <= 0.97 && 0.97 <= change.high);
            places += u32::from(change.earliest <= 40 && 40 <= change.latest);
        }
    }
    assert!(shown >= 190, "{shown}");
    let share = |count: u32| f64::from(count) / f64::from(shown);
    assert!(share(sizes) >= 0.9 && share(places) >= 0.9, "{sizes} {places} of {shown}");
}

#[test]
fn the_newest_night_alone_is_pending_and_says_how_many_more_confirm() {
    let mut random = Random::new(5);
    let step = Shape::Step { at: NIGHTS - 1, size: -0.2 };
    let found = found(&[step], NIGHTS, Noise::Normal, &mut random);
    assert!(found[0].changes.is_empty());
    let pending = found[0].pending.unwrap();
    assert_eq!(pending.points, 1);
    assert!((pending.ratio - 0.8).abs() < 0.05, "{pending:?}");
    assert!((2..=4).contains(&found[0].confirming.unwrap()), "{:?}", found[0].confirming);
    assert!(found[0].spread.unwrap() < 0.015);
}

#[test]
fn a_quiet_step_shows_a_smaller_change_than_a_noisy_one() {
    let mut random = Random::new(6);
    let loud = series(NIGHTS, Noise::Normal, Shape::Flat, &mut random);
    let quiet: Vec<f64> = loud.iter().map(|value| value / 5.0).collect();
    let found = levels(&[loud, quiet], LevelOptions::default());
    let [loud, quiet] = [0, 1].map(|series| found[series].visible.unwrap());
    assert!(quiet < 0.006 && loud > 4.0 * quiet, "{quiet} {loud}");
}

#[test]
fn short_and_constant_series_have_one_level() {
    for values in [vec![], vec![1.0], vec![1.0, 2.0, 3.0], vec![0.5; 30]] {
        let found = &levels(std::slice::from_ref(&values), LevelOptions::default())[0];
        assert!(found.changes.is_empty(), "{values:?}");
        assert_eq!(found.levels.len(), usize::from(!values.is_empty()));
    }
}
