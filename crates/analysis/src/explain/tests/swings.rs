//! Throughput that swings, from swings that are made by hand.

use super::*;
use crate::figures::swing::{InStep, Source, Swing};

fn swing(period_seconds: f64) -> Swing {
    Swing {
        period_seconds,
        cycles: 100.0 / period_seconds,
        variance_share: 0.4,
        range_of_mean: 0.3,
        ..Swing::default()
    }
}

fn in_step(source: Source, name: &str) -> InStep {
    InStep { source, name: name.to_owned(), correlation: -0.9, p: None }
}

/// Returns repeats of one target with these swings.
fn repeats(swings: &[Option<Swing>]) -> Figures {
    let rows = swings.iter().zip(1..).map(|(swing, repeat)| Row {
        swing: swing.clone(),
        ..row(&cost("a.c", "l.i1", 10_000.0, &[]), repeat)
    });
    Figures { rows: rows.collect(), ..Figures::default() }
}

/// Returns the period that is found, and in how many repeats.
fn swinging(figures: &Figures) -> Vec<(f64, usize, usize)> {
    let found = explained(figures, |explanation| match &explanation.statement {
        Statement::Swings(targets) => Some(
            targets
                .iter()
                .map(|target| {
                    (target.swing.period_seconds, target.swinging_repeats, target.repeat_count)
                })
                .collect::<Vec<_>>(),
        ),
        _ => None,
    });
    found.concat()
}

/// Returns the name of what keeps step with the swing of a finding.
fn closest(finding: &Finding) -> &str {
    match &finding.statement {
        Statement::Swings(targets) => &targets[0].swing.closest().unwrap().name,
        statement => panic!("{statement:?}"),
    }
}

#[test]
fn a_swing_of_a_target_that_was_measured_once_is_a_finding() {
    let mut swing = swing(20.0);
    swing.in_step = vec![in_step(Source::Event, "autovacuum")];
    let finding = only(&repeats(&[Some(swing)]), FindingKind::Swing);
    assert_eq!(finding.base, None);
    assert_eq!(closest(&finding), "autovacuum");
}

#[test]
fn a_swing_counts_if_more_than_half_of_the_repeats_have_its_period() {
    let [at_20, at_21, at_40] = [20.0, 21.0, 40.0].map(|period| Some(swing(period)));
    let found = swinging(&repeats(&[at_20.clone(), None, at_21.clone()]));
    assert_eq!(found, [(21.0, 2, 3)]);
    assert_eq!(swinging(&repeats(&[at_20.clone(), None])), []);
    assert_eq!(swinging(&repeats(&[at_20, at_40.clone(), None])), []);
    assert_eq!(swinging(&repeats(&[None, at_40, at_21])), []);
}

#[test]
fn a_neighbor_in_one_repeat_is_named_instead_of_the_engine() {
    let mut of_engine = swing(7.0);
    of_engine.in_step = vec![in_step(Source::Event, "flush")];
    let mut beside_neighbor = swing(7.1);
    beside_neighbor.host_load = Some(in_step(Source::Host, "other programs on the host"));

    let figures = repeats(&[Some(of_engine.clone()), Some(of_engine), Some(beside_neighbor)]);
    let finding = only(&figures, FindingKind::Swing);
    assert_eq!(closest(&finding), "other programs on the host");
}

#[test]
fn invalid_and_unreported_steps_do_not_swing() {
    let mut figures = repeats(&[Some(swing(20.0))]);
    figures.rows[0].reported = false;
    assert_eq!(swinging(&figures), []);
    figures.rows[0].reported = true;
    figures.rows[0].valid = false;
    assert_eq!(swinging(&figures), []);
}
