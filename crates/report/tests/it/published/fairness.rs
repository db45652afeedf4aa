//! "Tuning Postgres and the Insert Benchmark, round 6": the differences between the ends of eight
//! clients in `l.i1`.

use record::StepKind;

use super::{MeasuredStep, Published};

/// Config, seconds apart, percent of the fastest's time, as printed; and the fastest's and
/// slowest's seconds, where they are told.
type FairnessLine = (&'static str, u32, &'static str, Option<(f64, f64)>);

const CACHED: [FairnessLine; 15] = [
    ("a", 1066, "11.3", None),
    ("a1", 580, "6.0", None),
    ("a3", 1085, "8.5", None),
    ("a4", 892, "9.3", None),
    ("a7", 248, "1.9", None),
    ("a10", 753, "7.6", None),
    ("a12", 756, "7.8", None),
    ("a15", 927, "8.5", None),
    ("a16", 488, "8.9", None),
    ("a23", 414, "6.7", None),
    ("a24", 446, "3.6", None),
    ("a25", 837, "5.4", None),
    ("a26", 691, "11.0", None),
    ("a27", 365, "5.9", None),
    ("a28", 775, "10.3", None),
];

const IO_BOUND: [FairnessLine; 15] = [
    ("a", 18873, "87.7", None),
    ("a1", 24447, "92.2", None),
    ("a3", 25111, "125.0", None),
    ("a4", 13996, "66.2", None),
    ("a7", 18689, "81.9", None),
    ("a10", 21996, "95.8", None),
    ("a12", 13264, "61.7", None),
    ("a15", 25102, "317.4", Some((7909.0, 33011.0))),
    ("a16", 13228, "142.0", None),
    ("a23", 11040, "70.5", None),
    ("a24", 5464, "18.3", None),
    ("a25", 23811, "200.5", None),
    ("a26", 9749, "54.4", None),
    ("a27", 18242, "186.9", None),
    ("a28", 15468, "102.9", Some((15038.1, 30505.9))),
];

/// Returns the fastest's and the slowest's seconds. Where these are not told there is one to a
/// tenth of a second that both columns agree on: what the seconds apart are so many percent of.
fn runtimes((_, apart, percent, told): &FairnessLine) -> (f64, f64) {
    told.unwrap_or_else(|| {
        let percent: f64 = percent.parse().unwrap();
        let fastest = (f64::from(*apart) / percent * 1000.0).round() / 10.0;
        (fastest, fastest + f64::from(*apart))
    })
}

fn measured(line: &FairnessLine) -> MeasuredStep {
    let (fastest, slowest) = runtimes(line);
    // The others end in between, the fastest is neither the first nor the last.
    let share = [0.3, 0.5, 0.0, 0.9, 1.0, 0.7, 0.2, 0.4];
    let ends = share.map(|share| fastest + (slowest - fastest) * share);
    MeasuredStep {
        step: "l.i1",
        kind: StepKind::Load,
        main_op: "insert",
        seconds: slowest,
        count: 320_000_000,
        ends: ends.to_vec(),
        ..MeasuredStep::default()
    }
}

/// The page prints whole seconds and a decimal of percent, both rounded to the nearest; the
/// report's table has milliseconds.
#[track_caller]
fn check(lines: &[FairnessLine]) {
    let targets = lines.iter().map(|line| (line.0, vec![measured(line)]));
    let published = Published::new("insert", 8, targets.collect());
    let table = published.table("Fairness", None);
    assert_eq!(table.len(), lines.len(), "{table:?}");
    for (config, apart, percent, _) in lines {
        let [seconds, found] = &table[*config][..] else {
            panic!("two columns: {table:?}");
        };
        let seconds: f64 = seconds.parse().unwrap();
        assert_eq!(
            (format!("{seconds:.0}"), found.as_str()),
            (apart.to_string(), *percent),
            "{config}"
        );
    }
}

#[test]
fn cached_by_postgres() {
    check(&CACHED);
}

#[test]
#[ignore = "the table is that of `cached_by_postgres`, with steps of hours"]
fn io_bound() {
    check(&IO_BOUND);
}
