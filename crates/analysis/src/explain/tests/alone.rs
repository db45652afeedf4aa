//! Steps after others, against the same steps right after the load.

use record::AloneStep;

use super::*;
use crate::explain::alone::unshown;

/// Five repeats of a target whose `overwrite` comes before `readrandom`, and of cells alone.
fn with_alone(in_sequence: f64, alone: f64) -> Figures {
    let mut figures = repeated(&[
        cost("a.c", "fillseq", 100_000.0, &[]),
        cost("a.c", "overwrite", 50_000.0, &[]),
        cost("a.c", "readrandom", in_sequence, &[]),
    ]);
    let cells_alone =
        repeated(&[cost("a.c", "fillseq", 100_000.0, &[]), cost("a.c", "readrandom", alone, &[])]);
    figures.rows.extend(cells_alone.rows.into_iter().map(as_alone));
    figures
}

fn as_alone(mut row: Row) -> Row {
    row.cell.variant = Some("alone-readrandom".to_owned());
    row.alone = (row.step == "readrandom")
        .then(|| AloneStep { step: "readrandom".to_owned(), in_sequence: None });
    row
}

fn sequences(figures: &Figures) -> Vec<(Vec<String>, f64)> {
    explained(figures, |explanation| match &explanation.statement {
        Statement::Sequence(step) => Some((step.before.clone(), step.ratio)),
        _ => None,
    })
}

#[test]
fn a_step_that_is_slower_after_others_than_alone_is_a_finding() {
    let figures = with_alone(20_000.0, 30_000.0);
    let [(before, ratio)] = sequences(&figures).try_into().unwrap();
    assert_eq!(before, ["overwrite"]);
    assert!(is_about(ratio, 2.0 / 3.0), "{ratio}");

    let finding = only(&figures, FindingKind::Sequence);
    assert_eq!((finding.base, finding.step.as_deref()), (None, Some("readrandom")));
    assert_eq!((finding.target.as_str(), finding.variant), ("a.c", None));
}

#[test]
fn equal_steps_and_a_single_pair_are_no_finding() {
    assert_eq!(sequences(&with_alone(30_000.0, 30_000.0)), []);
    let mut single = with_alone(20_000.0, 30_000.0);
    single.rows.retain(|row| row.cell.repeat == 1);
    assert_eq!(sequences(&single), []);
    // Without a cell alone there is nothing to compare with.
    let mut without = with_alone(20_000.0, 30_000.0);
    without.rows.retain(|row| row.cell.variant.is_none());
    assert_eq!(sequences(&without), []);
}

#[test]
fn who_asks_for_a_step_alone_gets_an_answer_if_nothing_is_shown() {
    let compared = Compared { effect: 0.03, error_rate: 0.05, ..Compared::default() };
    let equal = unshown(&with_alone(30_000.0, 30_000.0), &compared);
    let [sequence] = &equal[..] else {
        panic!("one step: {equal:?}");
    };
    assert_eq!((sequence.target.as_str(), sequence.step.as_str()), ("a.c", "readrandom"));
    assert!(is_about(sequence.ratio.unwrap(), 1.0) && sequence.interval.is_some(), "{sequence:?}");

    // What is shown is a finding instead.
    assert_eq!(unshown(&with_alone(20_000.0, 30_000.0), &compared), []);
}

#[test]
fn each_target_is_compared_with_itself() {
    let mut figures = with_alone(30_000.0, 30_000.0);
    let mut others = with_alone(45_000.0, 30_000.0);
    for row in &mut others.rows {
        row.cell.target = "b.c".to_owned();
    }
    figures.rows.extend(others.rows);
    let ratios: Vec<f64> = sequences(&figures).into_iter().map(|(_, ratio)| ratio).collect();
    assert_eq!(ratios.len(), 1, "{ratios:?}");
    assert!(is_about(ratios[0], 1.5), "{ratios:?}");
}
