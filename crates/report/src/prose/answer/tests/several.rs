//! The sentences about several targets.

use super::*;

/// RocksDB 10.2.1 was shown to be slower in one step, and the answer named only what it gained in another.
#[test]
fn each_of_a_few_targets_is_named_with_its_losses_first() {
    let typical = |step, ratio, verdict| ComparedStep {
        metric: TYPICAL_RATE.into(),
        ..row("b.x", step, ratio, verdict)
    };
    let mut compared = Compared {
        base: "a.x".into(),
        effect: 0.03,
        rows: vec![
            row("b.x", "l.i0", 1.22, Faster),
            row("b.x", "qr100", 0.92, TooNoisy),
            typical("qr100", 0.92, Slower),
            row("b.x", "qp100", 1.0, TooNoisy),
            typical("qp100", 1.0, Equal),
            row("c.x", "l.i0", 1.25, Faster),
            row("c.x", "qr100", 0.86, Slower),
            row("c.x", "qp100", 1.0, TooNoisy),
        ],
        ..Compared::default()
    };
    let figures = Figures::default();
    assert_eq!(
        said_of(&figures, &compared, &[]),
        "Of 2 targets against a.x in 3 steps, c.x is slower in qr100 (1.16x) and faster in l.i0 (1.25x). b.x is faster in l.i0 (1.22x), and slower in qr100 \
         (1.09x) only in a typical turn. In a typical turn, b.x is equal to a.x within 3% in 1 step. Over 5 repeats, c.x \
         is 1.19x to 1.31x faster in l.i0."
    );

    // Of many, the best is not called slower in none.
    compared.rows.extend(["d.x", "e.x"].map(|target| row(target, "l.i0", 1.0, TooNoisy)));
    let said = said_of(&figures, &compared, &[]);
    let best = "b.x does best: faster in 1 of 3 steps (l.i0 1.22x), slower in qr100 (1.09x) only in a typical turn. \
                c.x is slower in qr100 (1.16x). In a typical turn, b.x is slower than a.x in qr100 (1.09x), and equal \
                within 3% in 1 other step. Over";
    assert!(said.contains(best), "{said}");
}

#[test]
fn of_many_targets_each_that_loses_is_named_with_its_largest_loss() {
    let targets: [Target<'_>; 4] = [
        ("pg13.x", &[(0.9, Slower), (0.95, Slower)]),
        ("pg14.x", &[(0.5, Slower), (1.0, TooNoisy)]),
        ("pg15.x", &[(1.9, Faster), (1.0, TooNoisy)]),
        ("pg16.x", &[(1.3, Faster), (0.8, Slower)]),
    ];
    let said = text_of("pg12.x", &targets, None);
    let losses = "pg14.x does worst: slower in 1 of 2 steps (l.i0 2.00x), faster in none. pg16.x is slower in l.x (1.25x), \
                  pg13.x in l.i0 (1.11x) and 1 other step. Over";
    assert!(said.contains(losses), "{said}");
}

#[test]
fn of_very_many_targets_that_lose_those_with_the_smallest_losses_are_counted() {
    let targets: [Target<'_>; 7] = [
        ("pg11.x", &[(0.5, Slower)]),
        ("pg12.x", &[(0.6, Slower)]),
        ("pg13.x", &[(0.65, Slower)]),
        ("pg14.x", &[(0.7, Slower)]),
        ("pg15.x", &[(0.75, Slower)]),
        ("pg16.x", &[(0.8, Slower)]),
        ("pg17.x", &[(1.9, Faster)]),
    ];
    let said = text_of("pg10.x", &targets, None);
    let losses = "pg12.x is slower in l.i0 (1.67x), pg13.x in l.i0 (1.54x), pg14.x in l.i0 (1.43x), pg15.x in l.i0 (1.33x) \
                  and 1 more.";
    assert!(said.contains(losses), "{said}");
    let heading = "7 targets against pg10.x in 1 step: pg17.x is faster (1.90x); pg11.x, pg12.x, pg13.x and 3 more are \
                   slower (up to 2.00x).";
    assert!(said.starts_with(heading), "{said}");
}

#[test]
fn of_many_targets_the_best_and_the_worst_are_named() {
    let targets: [Target<'_>; 5] = [
        ("pg13.x", &[(1.2, Faster), (1.0, TooNoisy)]),
        ("pg14.x", &[(0.5, Slower), (1.0, TooNoisy)]),
        ("pg15.x", &[(1.9, Faster), (0.9, Slower)]),
        ("pg16.x", &[(1.0, TooNoisy), (1.0, TooNoisy)]),
        ("pg17.x", &[(1.0, Invalid), (1.0, Invalid)]),
    ];
    assert_eq!(
        text_of("pg12.x", &targets, None),
        "5 targets against pg12.x in 2 steps: pg13.x is faster in some steps (1.20x); pg14.x is slower in some steps \
         (2.00x); pg15.x is faster in some steps (1.90x) and slower in others (1.11x); pg16.x is too noisy to say; pg17.x \
         is not compared. pg15.x does best: faster in 1 of 2 steps (l.i0 1.90x), slower in 1 (l.x 1.11x). pg14.x does \
         worst: slower in 1 of 2 steps (l.i0 2.00x), faster in none. Over 5 repeats, pg14.x is 1.90x to 2.11x slower in \
         l.i0."
    );
}

#[test]
fn of_a_few_targets_without_a_loss_the_one_with_the_largest_gain_comes_first() {
    let targets: [Target<'_>; 3] = [
        ("b.x", &[(1.2, Faster), (1.0, TooNoisy)]),
        ("c.x", &[(1.0, Equal), (1.0, Equal)]),
        ("d.x", &[(1.9, Faster), (1.5, Faster)]),
    ];
    let said = text_of("a.x", &targets, None);
    let first = "Of 3 targets against a.x in 2 steps, d.x is faster in l.i0 (1.90x), l.x (1.50x). b.x is faster in l.i0 \
                 (1.20x). c.x is equal within 3%. Over";
    assert!(said.starts_with(first), "{said}");
}
