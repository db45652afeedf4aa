//! Periods of series that are made by hand, without random numbers.

use super::*;

/// Returns a number in -1..1 that looks random.
fn noise(at: usize) -> f64 {
    let mut random = words::Random::stream(3, &[at as u64]);
    2.0 * (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 - 1.0
}

/// The begins and lengths of work in 200 s: every 20 s, but not as strict as a clock.
const WORK: [(usize, usize); 10] =
    [(3, 4), (22, 5), (43, 4), (64, 6), (82, 4), (103, 5), (122, 3), (144, 5), (163, 4), (183, 6)];

/// Returns the share of each second in which the work runs.
fn work() -> Vec<f64> {
    let runs = |second: usize| WORK.iter().any(|&(at, length)| (at..at + length).contains(&second));
    (0..200).map(|second| f64::from(runs(second))).collect()
}

/// Returns rates that fall while the work runs.
fn rates(work: &[f64]) -> Vec<f64> {
    let rate = |(second, work): (usize, &f64)| 1000.0 - 400.0 * work + 100.0 * noise(second);
    work.iter().enumerate().map(rate).collect()
}

fn candidate(source: Source, name: &str, values: Vec<f64>) -> Candidate {
    Candidate { source, name: name.to_owned(), values }
}

fn engine(candidates: Vec<Candidate>) -> Surroundings {
    Surroundings { engine: candidates, ..Surroundings::default() }
}

#[test]
fn a_period_of_20_seconds_is_found_with_its_share_of_the_variance() {
    let swing = find(&rates(&work()), &Surroundings::default()).unwrap();
    assert!((swing.period_seconds - 20.0).abs() < 0.5, "{swing:?}");
    assert!((swing.cycles - 10.0).abs() < 0.3, "{swing:?}");
    assert!((0.4..0.9).contains(&swing.variance_share), "{swing:?}");
    assert!((0.25..0.6).contains(&swing.range_of_mean), "{swing:?}");
    assert_eq!((swing.in_step.len(), swing.host_load), (0, None));
}

#[test]
fn a_strict_rhythm_of_7_seconds_has_no_multiple_of_its_period() {
    let neighbor = |second: usize| if second % 7 < 3 { 20.0 } else { 1000.0 };
    for seconds in [60, 126, 600] {
        let values: Vec<f64> =
            (0..seconds).map(|second| neighbor(second) + noise(second)).collect();
        let swing = find(&values, &Surroundings::default()).unwrap();
        assert!((swing.period_seconds - 7.0).abs() < 0.1, "{swing:?}");
    }
}

#[test]
fn work_that_runs_while_the_rate_is_low_keeps_step_and_its_consequences_do_not() {
    let rates = rates(&work());
    let follows = rates.iter().map(|rate| 3.0 * rate).collect();
    let candidates = vec![
        candidate(Source::Counter, "log bytes", follows),
        candidate(Source::Event, "vacuum", work()),
    ];
    let swing = find(&rates, &engine(candidates)).unwrap();
    let [vacuum] = &swing.in_step[..] else { panic!("{swing:?}") };
    assert_eq!((vacuum.name.as_str(), vacuum.source), ("vacuum", Source::Event));
    assert!(vacuum.correlation < -0.8 && vacuum.p.unwrap() <= 0.05, "{vacuum:?}");
}

#[test]
fn the_same_work_at_another_time_does_not_keep_step() {
    for later in [5, 10, 15] {
        let mut shifted = work();
        shifted.rotate_right(later);
        let candidates = vec![candidate(Source::Event, "vacuum", shifted)];
        let swing = find(&rates(&work()), &engine(candidates)).unwrap();
        assert_eq!(swing.in_step, [], "{later} s later");
        assert_eq!(swing.candidate_count, 1);
    }
}

#[test]
fn load_of_others_takes_the_claim_from_the_engine() {
    let rates = rates(&work());
    let mut around = engine(vec![candidate(Source::Event, "vacuum", work())]);
    around.own_cpu = rates.clone();
    let others: Vec<f64> = rates.iter().map(|rate| 1500.0 - rate).collect();
    around.host = vec![candidate(Source::Host, "other programs", others.clone())];
    let swing = find(&rates, &around).unwrap();
    assert_eq!(swing.in_step, []);
    assert_eq!(swing.host_load.unwrap().name, "other programs");

    // The kernel's threads work for the engine, but little.
    let little = others.iter().map(|others| 0.1 * others).collect();
    around.host = vec![candidate(Source::Host, "other programs", little)];
    let swing = find(&rates, &around).unwrap();
    assert_eq!((swing.host_load, swing.in_step.len()), (None, 1));
}

#[test]
fn of_candidates_that_are_as_close_the_event_comes_first() {
    let candidates = vec![
        candidate(Source::Counter, "pages", work()),
        candidate(Source::Thread, "worker", work()),
        candidate(Source::Event, "vacuum", work()),
    ];
    let swing = find(&rates(&work()), &engine(candidates)).unwrap();
    let names: Vec<&str> = swing.in_step.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["vacuum", "worker", "pages"]);
}

#[test]
fn three_stalls_at_equal_distances_are_no_period() {
    let mut values: Vec<f64> = (0..120).map(|at| 1000.0 + 100.0 * noise(at)).collect();
    for at in [20, 60, 100] {
        values[at] = 0.0;
        values[at + 1] = 0.0;
    }
    assert_eq!(find(&values, &Surroundings::default()), None);
}

#[test]
fn a_constant_or_short_series_has_no_period() {
    assert_eq!(find(&[1000.0; 300], &Surroundings::default()), None);
    assert_eq!(find(&[0.0; 300], &Surroundings::default()), None);
    let short = &rates(&work())[..SWING_SECONDS_MIN - 1];
    assert_eq!(find(short, &Surroundings::default()), None);
    assert_eq!(find(&[], &Surroundings::default()), None);
}
