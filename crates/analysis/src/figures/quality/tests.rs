//! Series made by hand, with known answers; and made by rule, to see how often something is found
//! that is not there.

use std::collections::BTreeMap;

use record::{
    Connection, HostColumnSeries, HostSeries, LoadPause, OpRole, Ops, Settle, Step, StepKind,
};
use words::Random;

use super::*;
use crate::figures::counters::tests::counter;
use crate::figures::{CounterSeries, OpSeries, Sla};

const SECOND_NS: u64 = 1_000_000_000;

fn op_series(ok: &[u64]) -> OpSeries {
    OpSeries {
        rows: ok.iter().map(|ok| ok * 10).collect(),
        ok: ok.to_vec(),
        failed: vec![0; ok.len()],
        service_us_max: vec![900.0; ok.len()],
        response_us_max: ok.iter().map(|&ok| if ok > 0 { 1000.0 } else { 0.0 }).collect(),
        ..OpSeries::default()
    }
}

fn series(ok: &[u64]) -> Series {
    Series { ops: BTreeMap::from([("query".to_owned(), op_series(ok))]), ..Series::default() }
}

/// Returns a query step of so many whole seconds.
fn step(seconds: usize) -> Step {
    Step { kind: StepKind::Query, elapsed_ns: seconds as u64 * SECOND_NS, ..Step::default() }
}

fn of(ok: &[u64]) -> Quality {
    let host = HostSeries::default();
    quality(&step(ok.len()), &series(ok), &host, None).unwrap()
}

/// Returns a draw of the standard normal distribution.
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.fraction()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.fraction()).cos()
}

/// Rates around a level for each second, with normal noise as a share of the level.
fn noisy(seconds: usize, noise: f64, seed: u64, level: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..seconds)
        .map(|second| (level(second) * (1.0 + noise * normal(&mut random))).max(0.0))
        .collect()
}

fn shifts_of(rates: &[f64]) -> Vec<Shift> {
    shifts::shifts(rates, &vec![false; rates.len()])
}

#[test]
fn an_even_step_has_no_spread() {
    let quality = of(&[100; 20]);
    assert_eq!(quality.seconds, 20);
    assert_eq!(quality.zero_seconds, 0);
    assert_eq!(quality.worst_second, 100.0);
    assert_eq!(quality.median, 100.0);
    assert_eq!((quality.cv, quality.thickness), (Some(0.0), Some(0.0)));
    assert_eq!(quality.p1_of_median, Some(1.0));
    assert_eq!(quality.longest_stall_seconds, Some(0));
    assert!(quality.stalls.is_empty() && quality.shifts.is_empty());
}

#[test]
fn a_pause_of_the_client_process_is_not_a_stall_of_the_engine() {
    let mut ok = vec![100; 20];
    ok[3..6].copy_from_slice(&[2, 0, 5]);
    let of = |held_up: &[(u64, u64)]| {
        let held_up = held_up.iter().map(|&(from_ms, to_ms)| LoadPause {
            from_ns: from_ms * 1_000_000,
            to_ns: to_ms * 1_000_000,
        });
        let step = Step { held_up: held_up.collect(), ..step(ok.len()) };
        let host = HostSeries::default();
        quality(&step, &series(&ok), &host, None).unwrap()
    };
    let quality = of(&[(3_000, 5_960)]);
    assert_eq!((quality.stall_count, quality.stalled_seconds), (0, Some(0)));
    assert_eq!(quality.below_half_median_seconds, 0);
    // What the engine did not do in the time that it had is still its own.
    let quality = of(&[(3_000, 4_500)]);
    let stalls = quality.stalls.iter();
    let stalls: Vec<_> = stalls.map(|it| (it.from_second, it.seconds)).collect();
    assert_eq!(stalls, [(4, 2)]);
    assert_eq!(of(&[]).stalled_seconds, Some(3));
}

#[test]
fn the_spread_is_that_of_the_seconds() {
    // 1 ... 100: median 50.5, standard deviation of the sample 29.0115, mean 50.5.
    let quality = of(&(1..=100).collect::<Vec<u64>>());
    assert_eq!(quality.median, 50.5);
    assert!((quality.cv.unwrap() - 29.011_491_975_882 / 50.5).abs() < 1e-12);
    // 96 seconds had at least 5, and 5 had at least 96.
    assert!((quality.thickness.unwrap() - (96.0 - 6.0) / 50.5).abs() < 1e-12);
    assert!((quality.p1_of_median.unwrap() - 2.0 / 50.5).abs() < 1e-12);
    // Below 25.25.
    assert_eq!(quality.below_half_median_seconds, 25);
    // Below 5.05.
    assert_eq!(quality.stall_count, 1);
    assert_eq!(quality.longest_stall_seconds, Some(5));
}

#[test]
fn stalls_have_their_second_and_length() {
    let mut ok = vec![1000; 60];
    ok[10..13].fill(0);
    ok[20] = 99;
    ok[21] = 100;
    ok[59] = 5;
    let mut all = series(&ok);
    // What was sent before the stall comes back after it.
    all.ops.get_mut("query").unwrap().response_us_max[13] = 3_100_000.0;
    let quality = quality(&step(60), &all, &HostSeries::default(), None).unwrap();
    let stalls: Vec<_> = quality
        .stalls
        .iter()
        .map(|stall| (stall.from_second, stall.seconds, stall.lowest))
        .collect();
    assert_eq!(stalls, [(10, 3, 0.0), (20, 1, 99.0), (59, 1, 5.0)]);
    assert_eq!(quality.stalls[0].response_us_max, Some(3_100_000.0));
    assert_eq!(quality.stall_count, 3);
    assert_eq!(quality.longest_stall_seconds, Some(3));
    assert_eq!(quality.stalled_seconds, Some(5));
    assert_eq!(quality.zero_seconds, 3);
    let worst = quality.worst_response.unwrap();
    assert_eq!((worst.second, worst.us), (13, 3_100_000.0));
    // A stall is no level.
    assert_eq!(quality.shift_count, 0);
}

#[test]
fn a_stall_of_more_than_half_of_a_step_is_a_stall() {
    // One second more, and the median second is one of the stall.
    for stalled in [8, 9, 13] {
        let mut ok = vec![1000; 16];
        ok[3..3 + stalled].fill(0);
        let quality = of(&ok);
        assert_eq!(quality.longest_stall_seconds, Some(stalled));
        assert_eq!(quality.stalled_seconds, Some(stalled));
        assert_eq!(quality.stalls[0].from_second, 3);
        assert_eq!(quality.below_half_median_seconds, stalled);
        assert_eq!((quality.usual, quality.p1_of_median), (1000.0, Some(0.0)));
    }
    // The median stays what it is; a trickle is no progress.
    let mut ok = vec![1000; 60];
    ok[10..45].fill(3);
    let quality = of(&ok);
    assert_eq!((quality.median, quality.usual), (3.0, 1000.0));
    assert_eq!(quality.longest_stall_seconds, Some(35));
    assert_eq!(quality.thickness, Some(0.997));
}

#[test]
fn a_level_that_lasts_for_most_of_a_step_is_no_stall() {
    // What was cached is read from the device from second 10 on.
    let mut ok = vec![900; 60];
    ok[..10].fill(100_000);
    let quality = of(&ok);
    assert_eq!(quality.usual, 900.0);
    assert_eq!(quality.longest_stall_seconds, Some(0));
    assert_eq!((quality.shift_count, quality.shifts[0].second), (1, 10));
}

#[test]
fn clients_that_begin_and_end_together_do_not_stall() {
    // Twenty scans of three seconds each.
    let connection = |client: u32| Connection {
        client,
        role: "query".into(),
        ended_ns: 60 * SECOND_NS,
        ..Connection::default()
    };
    let step = Step { connections: (0..20).map(connection).collect(), ..step(60) };
    let ok: Vec<u64> = (0..60).map(|second| if second % 3 == 2 { 20 } else { 0 }).collect();
    let quality = quality(&step, &series(&ok), &HostSeries::default(), None).unwrap();
    assert_eq!(quality.longest_stall_seconds, None);
    assert_eq!(quality.stall_count, 0);
    assert_eq!((quality.zero_seconds, quality.usual), (40, 0.0));
}

#[test]
fn the_longest_stalls_are_listed_in_the_order_of_time() {
    let mut ok = vec![1000; 400];
    for number in 0..15 {
        let from = 10 + number * 20;
        ok[from..from + 1 + number % 3].fill(0);
    }
    let quality = of(&ok);
    assert_eq!(quality.stall_count, 15);
    assert_eq!(quality.stalls.len(), LISTED_MAX);
    let in_order = quality.stalls.windows(2).all(|pair| pair[0].from_second < pair[1].from_second);
    assert!(in_order);
    let of_three = quality.stalls.iter().filter(|stall| stall.seconds == 3);
    assert_eq!(of_three.count(), 5);
}

#[test]
fn clients_that_work_alone_at_the_end_do_not_stall() {
    // Twenty clients; all but one end after 60 seconds.
    let connection = |client: u32| Connection {
        client,
        role: "insert".into(),
        ended_ns: if client == 0 { 90 } else { 60 } * SECOND_NS,
        ..Connection::default()
    };
    let step = Step {
        kind: StepKind::Load,
        elapsed_ns: 90 * SECOND_NS,
        connections: (0..20).map(connection).collect(),
        ..Step::default()
    };
    let ok: Vec<u64> = (0..90).map(|second| if second < 60 { 200 } else { 10 }).collect();
    let all = Series {
        ops: BTreeMap::from([("insert".to_owned(), op_series(&ok))]),
        ..Series::default()
    };
    let quality = quality(&step, &all, &HostSeries::default(), None).unwrap();
    // Rows are what a load is of.
    assert_eq!((quality.median, quality.worst_second), (2000.0, 100.0));
    assert_eq!(quality.stall_count, 0);
    assert_eq!(quality.below_half_median_seconds, 0);
    let shift = &quality.shifts[0];
    assert_eq!(shift.second, 60);
    assert_eq!(shift.before, 2000.0);
    assert_eq!(shift.after, 100.0);
    let why = &shift.concurrent_changes[0];
    assert_eq!(why.name.as_str(), "clients_at_work");
    assert_eq!(why.otherwise, 20.0);
    assert_eq!(why.during, 1.0);
}

#[test]
fn seconds_after_the_time_that_was_given_are_not_looked_at() {
    let step = Step { time_given_ns: Some(20 * SECOND_NS), elapsed_ns: 24 * SECOND_NS, ..step(0) };
    let mut ok = vec![50; 20];
    ok.extend([0, 0, 0, 1]);
    let mut all = series(&ok);
    all.ops.get_mut("query").unwrap().response_us_max[23] = 4e6;
    let quality = quality(&step, &all, &HostSeries::default(), None).unwrap();
    assert_eq!((quality.seconds, quality.zero_seconds), (20, 0));
    assert_eq!(quality.stall_count, 0);
    // The reply that came then is the worst all the same.
    assert_eq!(quality.worst_response.unwrap().second, 23);
}

#[test]
fn a_last_second_that_is_not_whole_is_left_out() {
    let step = Step { elapsed_ns: 12 * SECOND_NS + SECOND_NS / 2, ..step(0) };
    let mut ok = vec![50; 12];
    ok.push(3);
    let quality = quality(&step, &series(&ok), &HostSeries::default(), None).unwrap();
    assert_eq!((quality.seconds, quality.worst_second), (12, 50.0));
}

#[test]
fn what_short_and_rare_steps_do_not_tell_is_not_applicable() {
    let short = of(&[100, 0, 90, 100, 100]);
    assert_eq!(short.cv, None);
    assert_eq!(short.thickness, None);
    assert_eq!(short.p1_of_median, None);
    assert_eq!((short.zero_seconds, short.stall_count), (1, 1));
    // A scan that takes three seconds is no stall.
    let rare: Vec<u64> = (0..60).map(|second| u64::from(second % 3 == 0)).collect();
    let rare = of(&rare);
    assert_eq!(rare.longest_stall_seconds, None);
    assert_eq!(rare.stalled_seconds, None);
    assert_eq!((rare.stall_count, rare.zero_seconds), (0, 40));
    let nothing = of(&[0; 30]);
    assert_eq!((nothing.cv, nothing.thickness), (None, None));
    assert_eq!(nothing.worst_response, None);
    let host = HostSeries::default();
    assert!(quality(&step(0), &series(&[]), &host, None).is_none());
    let index = Step { kind: StepKind::Index, ..step(30) };
    assert!(quality(&index, &series(&[1; 30]), &host, None).is_none());
}

#[test]
fn queries_are_counted_where_the_step_counts_them() {
    let step = Step { queries_per_event: Some(20.0), main_op: Some("query".into()), ..step(30) };
    let quality = quality(&step, &series(&[7; 30]), &HostSeries::default(), Some(2.5)).unwrap();
    assert_eq!((quality.median, quality.stalled_pct), (140.0, Some(2.5)));
}

#[test]
fn one_second_and_odd_series_never_panic() {
    let mut random = Random::new(7);
    for case in 0..3000_usize {
        let seconds = 1 + case % 83;
        let ok: Vec<u64> = (0..seconds)
            .map(|_| match (random.fraction() * 6.0) as u32 {
                0 => 0,
                1 => 1,
                2 => u64::from(u32::MAX),
                3 => (random.fraction() * 1e15) as u64,
                _ => (random.fraction() * 100.0) as u64,
            })
            .collect();
        let quality = of(&ok);
        assert_eq!(quality.seconds, seconds);
        assert!(quality.zero_seconds <= seconds && quality.below_half_median_seconds <= seconds);
        assert!(quality.stalls.len() <= LISTED_MAX && quality.shifts.len() <= LISTED_MAX);
        assert!(quality.cv.is_none_or(f64::is_finite));
        assert!(quality.thickness.is_none_or(|share| share.is_finite() && share >= 0.0));
        assert!(quality.worst_second <= quality.median);
        let stalled: usize = quality.stalls.iter().map(|stall| stall.seconds).sum();
        assert!(quality.stalled_seconds.is_none_or(|all| all >= stalled));
        let in_step = |shift: &Shift| shift.second < seconds && shift.before != shift.after;
        assert!(quality.shifts.iter().all(in_step));
    }
}

#[test]
fn a_shift_is_found_where_it_is() {
    for seed in 0..40 {
        let at = 15 + (seed as usize * 37) % 270;
        let rates = noisy(300, 0.05, seed, |second| if second < at { 1000.0 } else { 800.0 });
        let found = shifts_of(&rates);
        assert_eq!(found.len(), 1, "seed {seed}, at {at}: {found:?}");
        assert!(found[0].second.abs_diff(at) <= 3, "seed {seed}: {found:?}");
        assert!((found[0].before / 1000.0 - 1.0).abs() < 0.06, "{found:?}");
        assert!((found[0].after / 800.0 - 1.0).abs() < 0.06, "{found:?}");
    }
}

#[test]
fn a_dip_of_half_a_minute_in_an_hour_is_two_shifts() {
    for seed in 0..10 {
        let rates = noisy(3600, 0.05, 100 + seed, |second| {
            if (2000..2030).contains(&second) { 700.0 } else { 1000.0 }
        });
        let found = shifts_of(&rates);
        assert_eq!(found.len(), 2, "seed {seed}: {found:?}");
        assert!(found[0].second.abs_diff(2000) <= 3 && found[1].second.abs_diff(2030) <= 3);
    }
}

#[test]
fn several_levels_are_all_found() {
    let rates = noisy(900, 0.04, 3, |second| match second {
        0..200 => 1000.0,
        200..500 => 700.0,
        500..620 => 1400.0,
        _ => 1100.0,
    });
    let found: Vec<usize> = shifts_of(&rates).iter().map(|shift| shift.second).collect();
    assert_eq!(found.len(), 3, "{found:?}");
    for (found, at) in found.iter().zip([200, 500, 620]) {
        assert!(found.abs_diff(at) <= 3, "{found} is not {at}");
    }
}

#[test]
fn white_noise_has_hardly_ever_a_shift() {
    let mut fired = 0;
    for seed in 0..1000 {
        let seconds = [40, 60, 300, 900][seed as usize % 4];
        let noise = [0.02, 0.1, 0.3][seed as usize % 3];
        fired +=
            usize::from(!shifts_of(&noisy(seconds, noise, 5000 + seed, |_| 1000.0)).is_empty());
    }
    assert!(fired <= 3, "{fired} of 1000");
}

#[test]
fn noise_that_lasts_has_hardly_ever_a_shift() {
    // Each second takes over seven tenths of the one before; heavy tails: one second of fifty is
    // far off.
    let mut fired = 0;
    for seed in 0..400 {
        let mut random = Random::new(9000 + seed);
        let mut before = 0.0;
        let rates: Vec<f64> = (0..600)
            .map(|_| {
                before = 0.7 * before + 0.07 * normal(&mut random);
                let far = if random.fraction() < 0.02 { 0.4 } else { 1.0 };
                1000.0 * far * (1.0 + before).max(0.1)
            })
            .collect();
        fired += usize::from(!shifts_of(&rates).is_empty());
    }
    assert!(fired <= 4, "{fired} of 400");
}

#[test]
fn a_drift_is_no_shift() {
    for seed in 0..40 {
        for end in [0.7, 0.4] {
            let rates = noisy(1800, 0.05, 300 + seed, |second| {
                1000.0 * (1.0 + (end - 1.0) * second as f64 / 1800.0)
            });
            let found = shifts_of(&rates);
            assert!(found.len() <= 1, "{found:?}");
        }
    }
}

#[test]
fn a_fast_sawtooth_is_variance_and_a_slow_one_is_counted_and_cut() {
    let tooth = |period: usize| {
        noisy(3600, 0.03, 11, move |second| {
            1000.0 - 500.0 * (second % period) as f64 / period as f64
        })
    };
    for period in [5, 12, 20, 40] {
        let found = shifts_of(&tooth(period));
        assert!(found.len() <= 2, "{period}: {}", found.len());
    }
    let rates: Vec<u64> = tooth(150).iter().map(|&rate| rate as u64).collect();
    let quality = of(&rates);
    assert!(quality.shift_count > LISTED_MAX, "{}", quality.shift_count);
    assert!(quality.shift_count < 60, "{}", quality.shift_count);
    assert_eq!(quality.shifts.len(), LISTED_MAX);
}

#[test]
fn a_stall_has_its_concurrent_changes() {
    let mut ok = vec![1000; 100];
    ok[50..53].fill(0);
    let flat = |value: f64, in_stall: f64| -> Vec<Option<f64>> {
        let mut random = Random::new(1);
        (0..100)
            .map(|second| {
                let level = if (50..53).contains(&second) { in_stall } else { value };
                Some(level * (0.95 + 0.1 * random.fraction()))
            })
            .collect()
    };
    let mut all = series(&ok);
    all.host = BTreeMap::from([
        ("disk_write_bytes".to_owned(), flat(1e7, 9e7)),
        ("server_cpu_user_ns".to_owned(), flat(1e9, 1e8)),
        ("disk_read_count".to_owned(), flat(500.0, 500.0)),
        ("page_fault_count".to_owned(), flat(70.0, 0.0)),
        ("swap_used_bytes".to_owned(), vec![Some(0.0); 100]),
        ("page_in_bytes".to_owned(), vec![None; 100]),
    ]);
    let counter = |cumulative, values| CounterSeries { cumulative, values, role: None };
    let mut stopped = vec![Some(0.0); 100];
    stopped[51] = Some(1.0);
    let clock = (0..100).map(|second| Some(f64::from(second))).collect();
    all.engine = BTreeMap::from([
        ("write_stopped".to_owned(), counter(false, stopped)),
        ("database_bytes".to_owned(), counter(false, clock)),
    ]);
    let column = |name: &str| HostColumnSeries {
        name: name.to_owned(),
        cumulative: name != "swap_used_bytes",
        values: Vec::new(),
    };
    let host = HostSeries {
        columns: all.host.keys().map(|name| column(name)).collect(),
        ..HostSeries::default()
    };
    let quality = quality(&step(100), &all, &host, None).unwrap();
    let concurrent = &quality.stalls[0].concurrent_changes;
    let names: Vec<_> = concurrent.iter().map(|moved| moved.name.as_str()).collect();
    // First what rose, then what fell with the rate; never what is as ever, or only grows on, or is
    // nothing as the rate.
    assert_eq!(names, ["write_stopped", "disk_write_bytes", "server_cpu_user_ns"]);
    let (stopped, written) = (&concurrent[0], &concurrent[1]);
    assert_eq!(written.unit.as_str(), "bytes/s");
    assert!(!written.of_engine);
    assert!((written.ratio.unwrap() - 9.0).abs() < 1.0, "{written:?}");
    assert_eq!((stopped.ratio, stopped.otherwise), (None, 0.0));
    assert!((stopped.during - 1.0 / 3.0).abs() < 1e-9);
}

#[test]
fn a_shift_has_its_concurrent_changes() {
    let ok: Vec<u64> = (0..200).map(|second| if second < 100 { 1000 } else { 600 }).collect();
    let mut all = series(&ok);
    let reads = (0..200).map(|second| Some(if second < 100 { 10.0 } else { 400.0 }));
    all.host = BTreeMap::from([("disk_read_count".to_owned(), reads.collect())]);
    // What is done for each operation fell as the rate did.
    let writes = ok.iter().map(|&ok| Some(ok as f64 * 2.0)).collect();
    let growth = CounterSeries { cumulative: true, values: writes, role: None };
    all.engine = BTreeMap::from([("page_write_count".to_owned(), growth)]);
    let quality = quality(&step(200), &all, &HostSeries::default(), None).unwrap();
    assert_eq!(quality.shift_count, 1);
    assert_eq!(quality.shifts[0].concurrent_changes.len(), 1);
    let shift = &quality.shifts[0];
    assert_eq!(shift.second, 100);
    assert_eq!(shift.before, 1000.0);
    assert_eq!(shift.after, 600.0);
    let moved = &shift.concurrent_changes[0];
    assert_eq!(moved.otherwise, 10.0);
    assert_eq!(moved.during, 400.0);
    assert_eq!(moved.ratio, Some(40.0));
}

fn rate_step(writers: u32) -> (Step, Sla) {
    let connection = |client| Connection { client, role: "insert".into(), ..Connection::default() };
    let ops = Ops { ok: 100, rows: 1000, ..Ops::default() };
    let step = Step {
        connections: (0..writers).map(connection).collect(),
        ops: BTreeMap::from([("insert".to_owned(), ops)]),
        insert_rate_target_rows_per_s: Some(1000.0),
        ..step(20)
    };
    let sla = Sla { kind: "insert".into(), target: 1000.0, ..Sla::default() };
    (step, sla)
}

#[test]
fn the_history_has_the_seconds_that_reached_the_rate() {
    // 100 operations of 10 rows are asked for; one of each of two connections may be late.
    let (step, sla) = rate_step(2);
    let mut ok = vec![100; 20];
    ok[4] = 93;
    ok[7] = 92;
    ok[11..14].fill(0);
    ok[14] = 400;
    let mut series = op_series(&ok);
    series.response_us_max[14] = 3_000_000.0;
    let ops = BTreeMap::from([("insert".to_owned(), series)]);
    let history = history(&step, &sla, &ops).unwrap();
    assert_eq!(history.seconds, 20);
    assert_eq!(history.met_seconds, 16);
    assert_eq!(history.met_pct, 80.0);
    assert_eq!(history.first_missed_second, Some(7));
    assert_eq!(history.longest_miss_seconds, 3);
    assert_eq!(history.longest_miss_from, Some(11));
    assert_eq!(history.worst_second, 0.0);
    let worst = history.worst_response.unwrap();
    assert_eq!((worst.second, worst.us), (14, 3_000_000.0));
}

#[test]
fn the_history_of_a_rate_of_events_is_of_events_whatever_rows_they_have() {
    let (mut step, mut sla) = rate_step(2);
    let ops = step.ops.remove("insert").unwrap();
    step.ops.insert("event".into(), ops);
    for connection in &mut step.connections {
        connection.role = "event".into();
    }
    (sla.kind, sla.target) = ("event".into(), 100.0);
    let mut ok = vec![100; 20];
    // One of each of two connections may be late.
    ok[4] = 93;
    ok[7] = 92;
    let ops = BTreeMap::from([("event".to_owned(), op_series(&ok))]);
    let history = history(&step, &sla, &ops).unwrap();
    assert_eq!((history.seconds, history.met_seconds), (20, 19));
    assert_eq!(history.first_missed_second, Some(7));
    assert_eq!(history.worst_second, 92.0);
}

#[test]
fn the_history_of_the_rate_of_a_mix_is_that_of_all_its_transactions() {
    let (mut step, mut sla) = rate_step(1);
    let ops = Ops { ok: 1000, ..Ops::of_role(OpRole::Transaction) };
    step.ops = BTreeMap::from(["order", "payment"].map(|kind| (kind.to_owned(), ops.clone())));
    (sla.kind, sla.role, sla.target) = ("order".into(), Some(OpRole::Transaction), 100.0);
    let [mut orders, mut payments] = [[30; 20], [70; 20]].map(|ok| op_series(&ok));
    (orders.ok[3], payments.ok[3]) = (70, 30);
    payments.ok[5] = 10;
    payments.response_us_max[6] = 5_000.0;
    let ops = BTreeMap::from([("order".to_owned(), orders), ("payment".to_owned(), payments)]);
    let history = history(&step, &sla, &ops).unwrap();
    assert_eq!((history.met_seconds, history.first_missed_second), (19, Some(5)));
    assert_eq!(history.worst_second, 40.0);
    assert_eq!(history.worst_response.unwrap().second, 6);
}

#[test]
fn the_history_of_a_reached_rate_has_no_miss() {
    let (step, sla) = rate_step(2);
    let ops = BTreeMap::from([("insert".to_owned(), op_series(&[100; 20]))]);
    let history = history(&step, &sla, &ops).unwrap();
    assert_eq!(history.met_pct, 100.0);
    assert_eq!(history.first_missed_second, None);
    assert_eq!(history.longest_miss_seconds, 0);
    assert_eq!(history.longest_miss_from, None);
}

#[test]
fn seconds_say_nothing_of_a_rate_of_less_than_an_operation_each() {
    let (step, sla) = rate_step(100);
    let ops = BTreeMap::from([("insert".to_owned(), op_series(&[100; 20]))]);
    assert_eq!(history(&step, &sla, &ops), None);
    let (step, sla) = rate_step(2);
    assert_eq!(history(&step, &sla, &BTreeMap::new()), None);
}

#[test]
fn settling_says_how_long_it_took_and_what_was_pending() {
    let settle = Settle {
        actions: vec![
            ("VACUUM pi1".to_owned(), 1_500_000_000),
            ("CHECKPOINT".to_owned(), 500_000_000),
        ],
        pending_before: vec![counter("dead_rows.pi1", 20_000.0, false)],
        pending_after: vec![
            counter("dead_rows.pi1", 0.0, false),
            counter("autovacuum_worker_count", 1.0, false),
        ],
    };
    let ends = |written: f64, wal: f64| {
        vec![counter("checkpoint_bytes", written, true), counter("log_bytes", wal, true)]
    };
    let step = Step {
        kind: StepKind::Settle,
        settle: Some(settle),
        counters_before: ends(100.0, 10.0),
        counters_after: ends(8292.0, 50.0),
        ..Step::default()
    };
    let settled = settled(&step, &BTreeMap::new()).unwrap();
    assert_eq!(settled.seconds, 2.0);
    assert_eq!(settled.written_bytes, Some(8232.0));
    assert_eq!(settled.actions[1].what, "CHECKPOINT");
    let pending: Vec<_> =
        settled.pending.iter().map(|one| (one.name.as_str(), one.before, one.after)).collect();
    assert_eq!(
        pending,
        [
            ("dead_rows.pi1", Some(20_000.0), Some(0.0)),
            ("autovacuum_worker_count", None, Some(1.0))
        ]
    );
}

#[test]
fn a_measured_step_that_settles_has_the_bytes_written_after_its_end() {
    let step = Step {
        kind: StepKind::Load,
        settle: Some(Settle::default()),
        counters_before: vec![counter("written_bytes", 1.0, true)],
        counters_after: vec![counter("written_bytes", 1000.0, true)],
        counters_end: vec![counter("written_bytes", 1600.0, true)],
        ..Step::default()
    };
    let written = |metrics| settled(&step, &metrics).unwrap().written_bytes;
    assert_eq!(written(BTreeMap::new()), Some(600.0));
    // Of a tree it is what flushes and compactions wrote.
    let tree = BTreeMap::from([("c_wgb", Some(1.0)), ("c_wgb_settled", Some(1.5))]);
    assert_eq!(written(tree), Some(0.5 * 1024.0 * 1024.0 * 1024.0));
    let old = BTreeMap::from([("c_wgb", Some(1.0)), ("c_wgb_settled", None)]);
    assert_eq!(written(old), None);
    assert!(settled(&Step::default(), &BTreeMap::new()).is_none());
}
