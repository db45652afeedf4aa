//! The mean of all steps, which ends a table of throughput.

use analysis::compare::Overall;

use super::*;

/// Returns the mean of four of the five steps of a target.
fn mean(target: &str, ratio: f64, verdict: Verdict) -> Overall {
    let mut compared = row(INSERT, (target, "l.i0", THROUGHPUT, 1.0), (ratio, 0.02, verdict), 3);
    compared.step.clear();
    Overall { compared, step_count: 4, all_step_count: 5 }
}

/// Returns the row of the means, if the text has one.
fn row_of_means(text: &str) -> Option<&str> {
    text.lines().find(|line| line.starts_with("all steps "))
}

#[test]
fn the_mean_of_all_steps_comes_last_and_names_steps_that_say_something_else() {
    let mut of = with_repeats();
    of.overall =
        vec![mean(TARGETS[1], 0.95, Verdict::Slower), mean(TARGETS[2], 1.0, Verdict::TooNoisy)];
    let (run, figures) = (run(), figures(INSERT, 3));
    let show =
        |of: &Compared| shown(&run, &figures, of, &[], |comparison| compared(comparison, WIDE));

    let text = show(&of);
    let means = row_of_means(&text).unwrap();
    assert!(means.contains(" 0.95 (0.93-0.97)▼[d,e]"), "{means}");
    assert!(means.ends_with(" 1.00 (0.98-1.02)?[d]"), "{means}");
    for note in [
        "[d] the mean of 4 of 5 steps (pg17.base all steps, pg17.big_wal all steps)",
        "[e] its steps differ: faster in l.x (pg17.base all steps)",
    ] {
        assert!(text.contains(note), "{note}: {text}");
    }

    // The steps of a mean that were not asked for are not in the table.
    of.rows.retain(|row| row.step == "l.i0");
    let text = show(&of);
    assert_eq!(row_of_means(&text), None, "{text}");
}

#[test]
fn the_mean_of_a_single_target_is_in_the_column_of_throughput() {
    let mut of = with_repeats();
    of.overall = vec![mean(TARGETS[1], 0.95, Verdict::Slower)];
    of.rows.retain(|row| row.cell.target == TARGETS[1]);
    let mut of_both = figures(INSERT, 3);
    of_both.rows.retain(|row| row.cell.target != TARGETS[2]);

    let text = shown(&run(), &of_both, &of, &[], |comparison| compared(comparison, WIDE));
    let means = row_of_means(&text).unwrap();
    assert!(
        means.trim_start_matches("all steps").trim().starts_with("0.95 (0.93-0.97)▼["),
        "{means}"
    );
    assert_eq!(means.matches('(').count(), 1, "own CPU has no mean: {means}");
}
