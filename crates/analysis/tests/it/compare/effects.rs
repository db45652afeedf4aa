//! The effects of factors on machines of which the truth is known.

use analysis::compare::{CompareOptions, Effects, Pairing, Verdict, effects};
use analysis::figures::{Figures, HalfBlock, TYPICAL_RATE};
use analysis::settings::{Factors, Profile, ProfileSetting};

use super::machine::{Drift, NOISES, Order, Random, Truth};
use crate::simulations::{at_most, simulations};

/// Levels of the factors `a` and `b` of each target, the base first.
const MATRIX: [(u32, u32); 6] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)];

fn profiles() -> Vec<Profile> {
    let profile = |(index, (a, b)): (usize, (u32, u32))| {
        let setting = |name: &str, level: u32| {
            let value = level.to_string();
            let setting = ProfileSetting { name: name.to_owned(), canonical: value.clone(), value };
            (name.to_owned(), setting)
        };
        Profile {
            target: match index {
                0 => "old.base".to_owned(),
                index => format!("new{index}.base"),
            },
            is_reported: true,
            settings: [setting("a", a), setting("b", b)].into(),
            declared: vec!["a".to_owned(), "b".to_owned()],
            ..Profile::default()
        }
    };
    MATRIX.into_iter().enumerate().map(profile).collect()
}

/// Returns the effects of `a`, at level 1, and of `b`, at levels 1 and 2.
fn found(figures: &Figures) -> Effects {
    let factors = Factors::find(&profiles(), &["old.base".to_owned()]).factors;
    let options = CompareOptions { ..CompareOptions::default() };
    let mut found = effects(figures, factors, &options);
    found.rows.retain(|row| row.compared.metric == "throughput");
    found
}

/// Returns the percentage of `times` runs in which it holds.
fn percent(truth: Truth, times: u32, holds: impl Fn(&Effects) -> bool) -> f64 {
    let mut random = Random::new(u64::from(truth.repeats));
    let hits = (0..times).filter(|_| holds(&found(&truth.measure(&mut random))));
    let percent = 100.0 * hits.count() as f64 / f64::from(times);
    #[allow(clippy::print_stdout, reason = "the figures of docs/validation.md")]
    {
        println!("effects: {truth:?}: {percent:.1}% of {times}");
    }
    percent
}

/// Returns the largest percentage that chance makes of a rate of 5%.
fn percent_at_most(times: u32) -> f64 {
    100.0 * at_most(0.05, times)
}

fn is_different(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Faster | Verdict::Slower)
}

const EQUAL: Truth = Truth { ratios: &[1.0; 5], ..Truth::EQUAL };

#[test]
fn a_factor_that_is_asked_for_alone_keeps_its_verdicts() {
    let all = found(&EQUAL.measure(&mut Random::new(1)));
    let mut alone = all.clone();
    alone.retain_factors(&[false, true]);
    assert_eq!(alone.factors, all.factors[1..]);
    assert!(alone.rows.iter().all(|row| row.factor == 0));

    let of_second = all.rows.iter().filter(|row| row.factor == 1);
    let expected: Vec<_> = of_second.map(|row| &row.compared).collect();
    let left: Vec<_> = alone.rows.iter().map(|row| &row.compared).collect();
    assert!(!left.is_empty());
    assert_eq!(left, expected);
}

#[test]
fn equal_levels_are_called_different_at_most_as_often_as_the_error_rate() {
    let any = |found: &Effects| {
        let mut rows = found.rows.iter();
        rows.any(|row| is_different(row.compared.verdict))
    };
    let mut truths: Vec<Truth> = NOISES.map(|noise| Truth { noise, ..EQUAL }).to_vec();
    for drift in [Drift::Linear, Drift::Wandering, Drift::Levels, Drift::Neighbors] {
        truths.push(Truth { drift, ..EQUAL });
    }
    truths.extend([3, 10].map(|repeats| Truth { repeats, ..EQUAL }));
    for truth in truths {
        let times = simulations(500);
        let share = percent(truth, times, any);
        assert!(share <= percent_at_most(times), "{truth:?}: {share}");
    }
}

#[test]
fn combinations_without_interaction_differ_at_most_as_often_as_the_error_rate() {
    let any = |found: &Effects| found.rows.iter().any(|row| row.differs());
    // `a` makes 10% of difference, and `b` 20 and 30%: in every combination the same.
    let ratios: &[f64] = &[1.2, 1.3, 0.9, 0.9 * 1.2, 0.9 * 1.3];
    for noise in NOISES {
        let truth = Truth { noise, ratios, ..EQUAL };
        let times = simulations(500);
        let share = percent(truth, times, any);
        assert!(share <= percent_at_most(times), "{truth:?}: {share}");
    }
}

#[test]
fn an_effect_of_ten_percent_is_found_and_those_of_the_other_factor_are_not_mixed_into_it() {
    let ratios: &[f64] = &[1.0, 1.5, 0.9, 0.9, 0.9 * 1.5];
    let truth = Truth { ratios, ..EQUAL };
    let is_found = |found: &Effects| {
        let [a, b1, b2] = &found.rows[..] else {
            return false;
        };
        let ratio = a.compared.ratio.unwrap_or(0.0);
        a.compared.verdict == Verdict::Slower
            && (ratio - 0.9).abs() < 0.05
            && !is_different(b1.compared.verdict)
            && b2.compared.verdict == Verdict::Faster
    };
    let share = percent(truth, 200, is_found);
    assert!(share > 90.0, "{share}");
}

#[test]
fn an_interaction_is_found_in_the_combination_that_has_it() {
    // `a` does nothing but together with the second level of `b`.
    let truth = Truth { ratios: &[1.0, 1.0, 1.0, 1.0, 0.7], ..EQUAL };
    let is_found = |found: &Effects| {
        let combinations = &found.rows[0].combinations;
        let deviations: Vec<f64> = combinations
            .iter()
            .filter_map(|it| Some(it.deviation.filter(|it| it.is_shown)?.ratio))
            .collect();
        // The mean is the third root of 0.7.
        combinations[2].deviation.is_some_and(|it| it.is_shown && it.ratio < 0.85)
            && deviations.iter().filter(|ratio| **ratio < 1.0).count() == 1
    };
    let share = percent(truth, 200, is_found);
    assert!(share > 90.0, "{share}");
}

#[test]
fn a_repeat_counts_where_all_combinations_have_it_and_only_turns_make_pairs() {
    let mut random = Random::new(1);
    let mut figures = EQUAL.measure(&mut random);
    let lost =
        figures.rows.iter_mut().find(|row| row.cell.target == "new4.base" && row.cell.repeat == 2);
    lost.unwrap().valid = false;
    let effect = &found(&figures).rows[0];
    let repeats: Vec<u32> = effect.compared.values.iter().map(|it| it.repeat).collect();
    assert_eq!(repeats, [1, 3, 4, 5]);
    assert_eq!(effect.compared.pairing, Pairing::Paired);
    let reasons = effect.compared.reasons.join("; ");
    assert!(reasons.contains("new4.base, repeat 2 is left out"), "{reasons}");
    // The other combinations have all of theirs.
    assert_eq!(effect.combinations[0].compared.values.len(), 5);

    let grouped = Truth { order: Order::Grouped, ..EQUAL };
    let effect = &found(&grouped.measure(&mut random)).rows[0];
    assert_eq!(effect.compared.pairing, Pairing::Independent);
    assert!(effect.combinations.iter().all(|it| it.deviation.is_none()));
}

/// By hand: the ratios are 4, 1 and 2, and their mean is 2.
#[test]
fn a_combination_that_is_not_compared_leaves_each_other_its_own_deviation() {
    let mut figures = Truth { repeats: 2, ..EQUAL }.measure(&mut Random::new(1));
    for row in &mut figures.rows {
        let rate = match row.cell.target.as_str() {
            "new3.base" => 400.0,
            "new5.base" => 200.0,
            _ => 100.0,
        };
        row.metrics.insert(TYPICAL_RATE, Some(rate));
        row.turns = Some(20);
        for block in 0..20 {
            row.half_blocks.push(HalfBlock {
                block,
                half: 0,
                seconds: 0.1,
                operations: 1000 + u64::from(block),
                cpu_seconds: None,
            });
        }
    }

    // The targets of the second combination never took turns with each other.
    for begun in figures.begun.iter_mut().filter(|begun| begun.cell.target == "new4.base") {
        begun.invocation += 1;
    }

    let factors = Factors::find(&profiles(), &["old.base".to_owned()]).factors;
    let shown_metrics = vec![TYPICAL_RATE.to_owned()];
    let options = CompareOptions { shown_metrics, ..CompareOptions::default() };
    let found = effects(&figures, factors, &options);
    let effect = found.rows.iter().find(|row| row.compared.metric == TYPICAL_RATE).unwrap();
    let [first, third] = &effect.combinations[..] else {
        panic!("{:?}", effect.combinations);
    };

    assert_eq!([first.index, third.index], [0, 2]);
    let [of_first, of_third] = [first, third].map(|it| it.deviation.unwrap().ratio);
    assert!((of_first - 2.0).abs() < 1e-6 && (of_third - 1.0).abs() < 1e-6);
}

/// By hand: two combinations, two repeats; the square roots of products.
#[test]
fn the_effect_is_the_geometric_mean_over_the_combinations() {
    let mut figures = Truth { repeats: 2, ..EQUAL }.measure(&mut Random::new(1));
    for row in &mut figures.rows {
        let value = match row.cell.target.as_str() {
            "old.base" => 100.0,
            "new1.base" | "new2.base" => 200.0,
            "new3.base" => 800.0,
            _ => 200.0,
        };
        row.metrics.insert("qps", Some(value));
    }
    let effect = &found(&figures).rows[0];
    let ratio = effect.compared.ratio.unwrap();
    assert!((ratio - 2.0).abs() < 1e-9, "{ratio}");
    let of = |index: usize| effect.combinations[index].compared.ratio.unwrap();
    assert!((of(0) - 8.0).abs() < 1e-9 && (of(1) - 1.0).abs() < 1e-9);
    let deviation = effect.combinations[0].deviation.unwrap();
    assert!((deviation.ratio - 4.0).abs() < 1e-6 && deviation.is_shown);
}
