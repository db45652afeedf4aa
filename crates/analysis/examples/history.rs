//! Simulates histories of which the truth is known: how often changes are false, which changes are
//! shown and when. Prints the tables of `docs/history.md`, through the same code as `assay
//! history`. `cargo xtask bench history` runs it, and compares it with another program on the
//! series that `--series` prints.

#![allow(clippy::print_stdout, reason = "it prints tables")]

#[path = "../tests/it/compare/machine.rs"]
#[allow(dead_code, reason = "the tests use what this does not")]
mod machine;
#[path = "../tests/it/random.rs"]
mod random;
#[path = "../tests/it/history/truth.rs"]
#[allow(dead_code, reason = "the tests use what this does not")]
mod truth;

use std::time::Duration;

use analysis::history::{LevelOptions, Levels, levels};
use machine::Random;
use truth::{NOISES, Noise, Shape, series};

/// Simulated histories for each figure.
const HISTORIES: usize = 40;

/// The numbers of series and nights of the first table.
const EXTENTS: [(usize, usize); 4] = [(1, 60), (40, 20), (40, 60), (40, 200)];

/// The sizes of changes, and the nights after them.
const SIZES: [f64; 4] = [-0.02, -0.03, -0.05, -0.1];
const NIGHTS_AFTER: [usize; 6] = [1, 2, 3, 5, 7, 20];

fn main() {
    if std::env::args().nth(1).as_deref() == Some("--series") {
        print_series();
        return;
    }
    print_false_changes();
    print_power();
    print_year();
}

fn percent(part: usize, whole: usize) -> String {
    format!("{:.0}", part as f64 / whole.max(1) as f64 * 100.0)
}

fn print_false_changes() {
    println!(
        "Histories without any change in which one is shown, in percent; in parentheses, changes for each series:\n"
    );
    let heads = EXTENTS.map(|(count, nights)| format!("{count} x {nights}"));
    println!("| noise | {} |", heads.join(" | "));
    println!("|---{}|", "|---".repeat(EXTENTS.len()));
    for (name, noise) in NOISES {
        let figures = EXTENTS.map(|(count, nights)| {
            let histories = if count == 1 { 10 * HISTORIES } else { HISTORIES };
            let mut random = Random::new(1);
            let (mut any, mut total) = (0, 0);
            for _ in 0..histories {
                let made: Vec<Vec<f64>> =
                    (0..count).map(|_| series(nights, noise, Shape::Flat, &mut random)).collect();
                let shown = changes(&levels(&made, LevelOptions::default()));
                any += usize::from(shown > 0);
                total += shown;
            }
            let each = total as f64 / (histories * count) as f64;
            format!("{} ({each:.3})", percent(any, histories))
        });
        println!("| {name} | {} |", figures.join(" | "));
    }
}

fn changes(levels: &[Levels]) -> usize {
    levels.iter().map(|levels| levels.changes.len()).sum()
}

fn print_power() {
    println!(
        "\nChanges of one series of 40 after 60 nights that are shown so many nights later, in percent:\n"
    );
    println!("| noise | change | {} |", NIGHTS_AFTER.map(|nights| nights.to_string()).join(" | "));
    println!("|---|---{}|", "|---".repeat(NIGHTS_AFTER.len()));
    for (name, noise) in NOISES.into_iter().take(3) {
        for size in SIZES {
            let shown = NIGHTS_AFTER.map(|nights| {
                let mut random = Random::new(2);
                let hits = (0..HISTORIES).filter(|_| {
                    let mut made: Vec<Vec<f64>> =
                        (0..39).map(|_| series(60, noise, Shape::Flat, &mut random)).collect();
                    let step = Shape::Step { at: 60, size };
                    made.push(series(60 + nights, noise, step, &mut random));
                    let found = levels(&made, LevelOptions::default());
                    found[39].changes.iter().any(|change| change.at.abs_diff(60) <= 2)
                });
                percent(hits.count(), HISTORIES)
            });
            println!("| {name} | {:.0}% | {} |", size * 100.0, shown.join(" | "));
        }
    }
}

/// Looks at a history after each night of a year.
fn print_year() {
    println!(
        "\nNew changes of 40 series without any change, looked at after each night from the 20th to the 200th:\n"
    );
    println!("| noise | nights with a new change |\n|---|---|");
    for (name, noise) in NOISES.into_iter().take(3) {
        let mut random = Random::new(3);
        let made: Vec<Vec<f64>> =
            (0..40).map(|_| series(200, noise, Shape::Flat, &mut random)).collect();
        let nights = (20..=200).filter(|nights| {
            let so_far: Vec<Vec<f64>> = made.iter().map(|all| all[..*nights].to_vec()).collect();
            let found = levels(&so_far, LevelOptions::default());
            let is_new = |levels: &Levels| {
                let newest = levels.levels.last().map_or(0, |level| level.points.len());
                !levels.changes.is_empty() && newest <= 7
            };
            found.iter().any(is_new)
        });
        println!("| {name} | {} of 181 |", nights.count());
    }
}

/// A set of series for another program.
struct Set {
    name: &'static str,
    noise: Noise,
    shape: fn(usize) -> Shape,
}

/// The points of each series of a set, and the number of series.
const POINTS: usize = 120;
const OF_A_SET: usize = 60;

const SETS: [Set; 8] = [
    Set { name: "flat, normal", noise: Noise::Normal, shape: |_| Shape::Flat },
    Set { name: "flat, heavy tails", noise: Noise::HeavyTailed, shape: |_| Shape::Flat },
    Set { name: "flat, outliers", noise: Noise::Outliers, shape: |_| Shape::Flat },
    Set {
        name: "step of 2%, normal",
        noise: Noise::Normal,
        shape: |number| Shape::Step { at: 20 + number, size: -0.02 },
    },
    Set {
        name: "step of 5%, heavy tails",
        noise: Noise::HeavyTailed,
        shape: |number| Shape::Step { at: 20 + number, size: -0.05 },
    },
    Set {
        name: "step of 10%, outliers",
        noise: Noise::Outliers,
        shape: |number| Shape::Step { at: 20 + number, size: -0.1 },
    },
    Set {
        name: "step of 5%, 5 nights ago",
        noise: Noise::Normal,
        shape: |_| Shape::Step { at: POINTS - 5, size: -0.05 },
    },
    Set {
        name: "5% for 10 nights, normal",
        noise: Noise::Normal,
        shape: |number| Shape::Bump { at: 20 + number, length: 10, size: -0.05 },
    },
];

/// Prints series with the truth, and what is found in them, as a line of JSON for each set.
fn print_series() {
    for set in SETS {
        let mut random = Random::new(4);
        let shapes: Vec<Shape> = (0..OF_A_SET).map(set.shape).collect();
        let made: Vec<Vec<f64>> =
            shapes.iter().map(|shape| series(POINTS, set.noise, *shape, &mut random)).collect();
        let (found, took) = timed(|| levels(&made, LevelOptions::default()));
        let places = |levels: &Levels| -> Vec<usize> {
            levels.changes.iter().map(|change| change.at).collect()
        };
        let line = serde_json::json!({
            "name": set.name,
            "series": made,
            "truth": shapes.iter().map(|shape| shape.changes()).collect::<Vec<_>>(),
            "found": found.iter().map(places).collect::<Vec<_>>(),
            "seconds": took.as_secs_f64(),
        });
        println!("{line}");
    }
}

#[expect(clippy::disallowed_methods, reason = "it is a benchmark")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = std::time::Instant::now();
    let result = work();
    (result, begun.elapsed())
}
