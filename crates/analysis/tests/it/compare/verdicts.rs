//! The pairs that are compared, and the messages about missing ones.

use analysis::compare::{
    CompareOptions, Compared, ComparedStep, Gate, Pairing, Thresholds, Verdict, compare, gate,
    noise_floor,
};
use analysis::figures::{Figures, Row, StartedCell, UnfinishedCell};
use record::{Status, StepKind};

use super::machine::{BASE, Noise, Random, Truth, row};

const TARGET: &str = "new1.base";

fn options() -> CompareOptions {
    CompareOptions { base: BASE.to_owned(), ..CompareOptions::default() }
}

fn figures(rows: Vec<Row>) -> Figures {
    Figures { rows, ..Figures::default() }
}

/// Returns whether a comparison has a note in which `text` is.
pub fn notes(compared: &Compared, text: &str) -> bool {
    compared.notes.iter().any(|note| note.contains(text))
}

/// Repeats of base and target in turns.
pub fn in_turns(values: &[(f64, f64)]) -> Vec<Row> {
    let repeats = (1..).zip(values);
    repeats
        .flat_map(|(repeat, &(base, value))| {
            [row(BASE, repeat, "scan", base), row(TARGET, repeat, "scan", value)]
        })
        .collect()
}

pub fn compared(rows: Vec<Row>) -> Compared {
    compare(&figures(rows), &options())
}

#[track_caller]
pub fn of<'a>(compared: &'a Compared, metric: &str) -> &'a ComparedStep {
    let mut rows = compared.rows.iter().filter(|row| row.metric == metric);
    let row = rows.next().unwrap();
    assert!(rows.next().is_none());
    row
}

const SLOWER: [(f64, f64); 4] = [(1000.0, 900.0), (1010.0, 905.0), (990.0, 895.0), (1000.0, 902.0)];

#[test]
fn more_throughput_is_faster_and_more_cost_is_slower() {
    let compared = compared(in_turns(&SLOWER));
    let throughput = of(&compared, "throughput");
    assert_eq!(throughput.verdict, Verdict::Slower);
    assert_eq!(throughput.pairing, Pairing::Paired);
    let product: f64 = SLOWER.iter().map(|(base, value)| value / base).product();
    assert!((throughput.ratio.unwrap() - product.powf(0.25)).abs() < 1e-12);
    let cost = of(&compared, "cpupq");
    assert_eq!(cost.verdict, Verdict::Slower);
    assert!(!cost.more_is_better);
    assert!(cost.ratio.unwrap() > 1.1);
    assert_eq!(compared.comparison_count, 1);
    assert_eq!(compared.rows.len(), 2);
}

#[test]
fn a_single_run_has_a_ratio_and_no_interval() {
    let compared = compared(in_turns(&SLOWER[..1]));
    let row = of(&compared, "throughput");
    assert_eq!(row.verdict, Verdict::Single);
    assert_eq!(row.pairing, Pairing::Single);
    assert!((row.ratio.unwrap() - 0.9).abs() < 1e-12);
    assert_eq!(row.interval, None);
    assert_eq!(row.p_value, None);
    assert_eq!(row.repeats_needed, None);
    assert!(notes(&compared, "no interval"));
    assert_eq!(compared.comparison_count, 0);
}

#[test]
fn a_side_with_one_repeat_is_named() {
    let mut rows = in_turns(&SLOWER);
    rows.retain(|row| row.cell.target == BASE || row.cell.repeat == 1);
    let compared = compared(rows);
    let row = of(&compared, "throughput");
    assert_eq!(row.verdict, Verdict::Single);
    assert_eq!(row.base_values.len(), 4);
    assert_eq!(row.reasons, ["new1.base has one repeat that counts"]);
}

#[test]
fn repeats_that_did_not_take_turns_are_independent_samples() {
    let mut rows = in_turns(&SLOWER);
    rows.sort_by_key(|row| row.cell.target != BASE);
    let compared = compared(rows);
    let row = of(&compared, "throughput");
    assert_eq!(row.pairing, Pairing::Independent);
    assert!(notes(&compared, "take turns"));
}

/// Returns the cells of [`in_turns`] with the invocation and the time at which they were begun.
fn begun(rows: &[Row], at: impl Fn(usize) -> (u32, u64)) -> Vec<StartedCell> {
    let cells = rows.iter().enumerate().map(|(index, row)| {
        let (invocation, started_unix_ns) = at(index);
        StartedCell {
            run: row.run,
            cell: row.cell.clone(),
            invocation,
            machine: 0,
            started_unix_ns,
            database: None,
        }
    });
    cells.collect()
}

#[test]
fn a_repeat_that_was_made_up_for_later_has_no_partner() {
    let rows = in_turns(&SLOWER);
    // The last cell, the fourth of the target, was measured again in another invocation.
    let begun = begun(&rows, |index| match index {
        7 => (2, 9000),
        index => (1, 100 + index as u64),
    });
    let figures = Figures { begun, ..figures(rows) };
    let compared = compare(&figures, &options());
    let row = of(&compared, "throughput");
    assert_eq!(row.pairing, Pairing::Paired);
    assert_eq!((row.values.len(), row.base_values.len()), (3, 3));
    let why = "repeat 4 is left out: another invocation measured the other target's repeat, so the two did not run next to \
        each other";
    assert_eq!(row.reasons, [format!("old.base, {why}"), format!("new1.base, {why}")]);
}

#[test]
fn times_tell_the_order_where_the_rows_do_not() {
    let rows = in_turns(&SLOWER);
    // All of the base first, whatever the order of the plan.
    let begun = begun(&rows, |index| (1, 1000 + (index as u64 % 2) * 100 + index as u64));
    let figures = Figures { begun, ..figures(rows) };
    let compared = compare(&figures, &options());
    assert_eq!(of(&compared, "throughput").pairing, Pairing::Independent);
}

#[test]
fn repeats_of_several_runs_are_pairs_within_their_run() {
    let mut rows = Vec::new();
    for (run, pair) in SLOWER.iter().enumerate() {
        let mut of_run = in_turns(&[*pair]);
        for row in &mut of_run {
            row.run = run;
        }
        rows.append(&mut of_run);
    }
    let paired = compared(rows);
    assert_eq!(of(&paired, "throughput").pairing, Pairing::Paired);
    assert_eq!(of(&paired, "throughput").verdict, Verdict::Slower);
}

#[test]
fn where_base_and_target_are_of_different_runs_a_run_is_one_value() {
    // Of each of `runs` nights, the base and the target in runs of their own, with five repeats.
    let nights = |runs: usize| {
        let mut rows = Vec::new();
        for night in 0..runs {
            for mut row in in_turns(&SLOWER) {
                row.run = 2 * night + usize::from(row.cell.target != BASE);
                rows.push(row);
            }
        }
        compared(rows)
    };

    let one = nights(1);
    let row = of(&one, "throughput");
    assert_eq!((row.pairing, row.verdict, row.interval), (Pairing::Single, Verdict::Single, None));
    assert!(row.reasons[0].contains("measured by different runs, 1 of each"), "{:?}", row.reasons);
    assert_eq!(of(&nights(2), "throughput").verdict, Verdict::Single);

    let three = nights(3);
    let row = of(&three, "throughput");
    assert_eq!((row.pairing, row.values.len()), (Pairing::Independent, 3));
    assert_eq!(row.verdict, Verdict::Slower);
}

#[test]
fn an_invalid_repeat_is_left_out_with_a_reason() {
    let mut rows = in_turns(&SLOWER);
    rows[3].valid = false;
    rows[3].reasons = vec!["row count differs".into()];
    let compared = compared(rows);
    let row = of(&compared, "throughput");
    assert_eq!(row.values.len(), 3);
    assert_eq!(row.base_values.len(), 3);
    assert_eq!(row.verdict, Verdict::Slower);
    assert_eq!(
        row.reasons,
        [
            "new1.base, repeat 2 is left out: row count differs",
            "old.base, repeat 2 is left out: the other target has no repeat that counts next to it"
        ]
    );
}

#[test]
fn where_all_repeats_are_invalid_so_is_the_comparison() {
    let mut rows = in_turns(&SLOWER[..2]);
    for row in rows.iter_mut().filter(|row| row.cell.target == TARGET) {
        row.status = Status::Interrupted;
        row.valid = false;
    }
    let compared = compared(rows);
    let row = of(&compared, "throughput");
    assert_eq!(row.verdict, Verdict::Invalid);
    assert_eq!((row.ratio, row.interval), (None, None));
    assert_eq!(row.reasons, ["new1.base, repeats 1 and 2 are left out: were interrupted"]);
}

#[test]
fn a_cell_that_never_got_so_far_makes_the_comparison_invalid_not_absent() {
    let mut rows = in_turns(&SLOWER[..2]);
    rows.retain(|row| row.cell.target == BASE);
    rows.push(row(TARGET, 1, "load", 10.0));
    let unfinished =
        [(1, Some(Status::Failed)), (2, None)].map(|(repeat, status)| UnfinishedCell {
            run: 0,
            cell: record::CellKey::new(TARGET, None, 1, repeat),
            status,
            causes: Vec::new(),
        });
    let figures = Figures { unfinished: unfinished.into(), ..figures(rows) };
    let compared = compare(&figures, &options());
    let scan = compared.rows.iter().find(|row| row.step == "scan").unwrap();
    assert_eq!(scan.verdict, Verdict::Invalid);
    assert_eq!(
        scan.reasons,
        [
            "new1.base, repeat 1 does not have the step: its cell failed",
            "new1.base, repeat 2 has not begun"
        ]
    );
    let load = compared.rows.iter().find(|row| row.step == "load").unwrap();
    assert_eq!(load.verdict, Verdict::NotComparable);
    assert!(load.reasons.contains(&"old.base does not have the step".to_owned()));
    let told = compared.unfinished.unwrap();
    assert!(told.contains("missing (1 failed, 1 not measured)"), "{told}");
}

#[test]
fn metrics_that_one_lacks_are_not_comparable_and_those_that_both_lack_are_absent() {
    let mut rows = in_turns(&SLOWER);
    for row in rows.iter_mut().filter(|row| row.cell.target == TARGET) {
        row.metrics.insert("cpupq", None);
    }
    let mut with_more = options();
    with_more.metrics = ["cpupq", "rpq"].map(str::to_owned).to_vec();
    let compared = compare(&figures(rows), &with_more);
    let cost = of(&compared, "cpupq");
    assert_eq!(cost.verdict, Verdict::NotComparable);
    assert_eq!(cost.reasons, ["new1.base: not applicable"]);
    assert!(compared.rows.iter().all(|row| row.metric != "rpq"));
}

#[test]
fn zeros_have_no_ratio_unless_both_have_nothing_else() {
    let with_reads = |reads: [f64; 2]| {
        let mut rows = in_turns(&SLOWER);
        for row in &mut rows {
            let of_target = usize::from(row.cell.target == TARGET);
            row.metrics.insert("cpupq", Some(reads[of_target]));
        }
        compared(rows)
    };
    let none = with_reads([0.0, 0.0]);
    assert_eq!(of(&none, "cpupq").ratio, Some(1.0));
    assert_eq!(of(&none, "cpupq").verdict, Verdict::Equal);
    let some = with_reads([0.0, 1.0]);
    assert_eq!(of(&some, "cpupq").ratio, None);
    assert_eq!(of(&some, "cpupq").verdict, Verdict::NotComparable);
}

/// So many pairs, whose CPU per operation is that of 1000 operations in a second.
fn cpu_of(metric: &'static str, repeats: usize, cpu: impl Fn(usize) -> (f64, f64)) -> Compared {
    let mut rows = in_turns(&vec![(1000.0, 1000.0); repeats]);
    for (index, row) in rows.iter_mut().enumerate() {
        let (base, value) = cpu(index / 2);
        let us = if row.cell.target == BASE { base } else { value };
        row.metrics.insert(metric, Some(us));
        row.seconds = 1.0;
    }
    let mut with_metric = options();
    with_metric.metrics = vec![metric.to_owned()];
    compare(&figures(rows), &with_metric)
}

/// Five steps of which the first costs 3% more CPU, while throughput is anything.
fn own_cpu_in_noise() -> Compared {
    let truth = Truth { noise: Noise::Bursts, steps: 5, ..Truth::default() };
    let mut figures = truth.measure(&mut Random::new(3));
    let mut random = Random::new(4);
    for row in &mut figures.rows {
        let slower = row.cell.target == TARGET && row.step == "s0";
        let us = if slower { 51.5 } else { 50.0 } * (0.002 * random.normal()).exp();
        row.metrics.insert("own_cpu_us_per_op", Some(us));
    }
    compare(&figures, &options())
}

#[test]
fn own_cpu_has_verdicts_where_throughput_is_too_noisy() {
    let compared = own_cpu_in_noise();
    let verdicts = |metric: &str| -> Vec<Verdict> {
        let rows = compared.rows.iter().filter(|row| row.metric == metric);
        rows.map(|row| row.verdict).collect()
    };
    assert_eq!(verdicts("throughput"), [Verdict::TooNoisy; 5]);
    let own = verdicts("own_cpu_us_per_op");
    assert_eq!(own[0], Verdict::Slower);
    assert_eq!(own[1..], [Verdict::Equal; 4]);
    // Nobody has this one.
    assert!(verdicts("instructions_per_op").is_empty());
    for family in ["throughput", "own CPU per operation", "costs"] {
        let of_family = format!("5 comparisons of {family}: ");
        let mut notes = compared.notes.iter();
        assert!(notes.any(|note| note.starts_with(&of_family)), "{family}");
    }
    let Gate::Doubtful(rows) = gate(&compared, &Thresholds::default()) else {
        panic!("throughput is too noisy for the gate");
    };
    let is_throughput = |row: &usize| compared.rows[*row].metric == "throughput";
    assert!(!rows.is_empty() && rows.iter().all(is_throughput));
    let strict = Thresholds { default: 0.02, ..Thresholds::default() };
    assert_eq!(gate(&compared, &strict), Gate::Regressed(vec![1]));
}

/// Five repeats of a server whose threads cannot be told apart, and of one with 1.5 times the CPU
/// and all threads.
fn whole_process_against_threads() -> Compared {
    let mut rows = in_turns(&SLOWER);
    for (index, row) in rows.iter_mut().enumerate() {
        let noise = 1.0 + 0.001 * (index % 3) as f64;
        let server_us = if row.cell.target == BASE { 40.0 } else { 60.0 };
        row.metrics.insert("op_client_cpu_us", Some(10.0 * noise));
        row.metrics.insert("server_cpu_us_per_op", Some(server_us * noise));
        if row.cell.target == TARGET {
            row.metrics.insert("own_cpu_us_per_op", Some(45.0 * noise));
        }
        row.seconds = 100.0;
    }
    compare(&figures(rows), &options())
}

#[test]
fn the_servers_whole_process_stands_for_own_cpu_where_threads_cannot_be_told_apart() {
    let compared = whole_process_against_threads();
    let own = of(&compared, "own_cpu_us_per_op");
    assert_eq!(own.verdict, Verdict::Slower);
    assert!((own.ratio.unwrap() - 1.4).abs() < 0.01, "{:?}", own.ratio);
    assert!((own.values[0].value - 70.0).abs() < 1.0, "{:?}", own.values);
    let reason = format!("the threads of {BASE} cannot be told apart");
    assert!(own.reasons.iter().any(|it| it.starts_with(&reason)), "{:?}", own.reasons);

    let index = compared.rows.iter().position(|row| row == own).unwrap();
    let Gate::Regressed(rows) = gate(&compared, &Thresholds::default()) else {
        panic!("1.4 times the CPU is a regression");
    };
    assert!(rows.contains(&index));
}

#[test]
fn a_comparison_says_what_change_it_could_show() {
    let compared = own_cpu_in_noise();
    for row in &compared.rows {
        let detectable = row.detectable().unwrap();
        let is_noisy = row.metric != "own_cpu_us_per_op";
        assert_eq!(detectable > 0.03, is_noisy, "{} {detectable}", row.metric);
    }
    // Of five pairs 1.69 standard deviations, by simulation of Student's t test.
    let pair = |index: i32| (1000.0, 1000.0 * (0.01 * f64::from(index)).exp());
    let values: Vec<(f64, f64)> = [-1, -1, 0, 1, 1].map(pair).into();
    let compared = self::compared(in_turns(&values));
    let detectable = of(&compared, "throughput").detectable().unwrap();
    assert!((detectable.ln_1p() - 0.0169).abs() < 0.0005, "{detectable}");
    let single = self::compared(in_turns(&SLOWER[..1]));
    assert_eq!(of(&single, "throughput").detectable(), None);
}

#[test]
fn one_value_that_differs_among_equal_ones_has_an_interval_no_wider_than_it() {
    // Of the client, whose CPU time is exact.
    let metric = "client_cpu_us_per_op";
    let one = |pair| (10.0, if pair == 6 { 10.1 } else { 10.0 });
    let compared = cpu_of(metric, 10, one);
    let row = of(&compared, metric);
    let interval = row.interval.unwrap();
    assert!(interval.low > 0.99 && interval.high < 1.011, "{interval:?}");
    assert!(interval.contains(1.0) && interval.contains(1.001));
    assert_eq!(row.verdict, Verdict::Equal);
}

#[test]
fn a_difference_of_a_tick_is_rounding_however_often_it_is_measured() {
    // 50 ms against 60 ms, for want of a finer clock.
    for repeats in [5, 20] {
        let compared = cpu_of("server_cpu_us_per_op", repeats, |_| (50.0, 60.0));
        let row = of(&compared, "server_cpu_us_per_op");
        assert_eq!(row.verdict, Verdict::TooNoisy);
        assert!((row.ratio.unwrap() - 1.2).abs() < 1e-12);
        assert_eq!(row.repeats_needed, None);
        assert!(row.reasons[0].contains("resolution of 10 ms"), "{row:?}");
    }
    // What is many times as much is a change all the same, and so is a difference of an exact
    // clock.
    let twice = cpu_of("server_cpu_us_per_op", 5, |_| (50.0, 150.0));
    assert_eq!(of(&twice, "server_cpu_us_per_op").verdict, Verdict::Slower);
    let exact = cpu_of("client_cpu_us_per_op", 5, |_| (50.0, 60.0));
    assert_eq!(of(&exact, "client_cpu_us_per_op").verdict, Verdict::Slower);
}

#[test]
fn processor_counters_are_judged_by_default_where_there_are_any() {
    let judged = |name, base, value| {
        let compared = cpu_of(name, 5, |_| (base, value));
        of(&compared, name).verdict
    };
    assert_eq!(judged("ipc", 2.0, 1.5), Verdict::Slower);
    assert_eq!(judged("cache_misses_per_op", 90.0, 60.0), Verdict::Faster);
    let mut rows = in_turns(&SLOWER);
    assert!(!analysis::compare::costs(&figures(rows.clone())).contains(&"ipc".to_owned()));
    rows[0].metrics.insert("ipc", Some(2.0));
    assert!(analysis::compare::costs(&figures(rows)).contains(&"ipc".to_owned()));
}

#[test]
fn runs_with_one_repeat_each_have_a_note_on_hidden_drift() {
    let is_told = |compared: &Compared| notes(compared, "has only one repeat");
    let mut rows = in_turns(&SLOWER);
    assert!(!is_told(&compared(rows.clone())));
    for row in &mut rows {
        row.run = row.cell.repeat as usize;
    }
    assert!(is_told(&compared(rows)));
}

#[test]
fn settling_and_what_is_not_reported_are_not_compared() {
    let mut rows = in_turns(&SLOWER);
    for (kind, reported) in [(StepKind::Settle, true), (StepKind::Query, false)] {
        for (base, step) in [(BASE, "other"), (TARGET, "other")] {
            rows.push(Row { kind, reported, ..row(base, 1, step, 5.0) });
        }
    }
    assert!(compared(rows).rows.iter().all(|row| row.step == "scan"));
}

#[test]
fn what_noise_can_hide_is_too_noisy_and_what_it_cannot_is_no_change() {
    let near = [(1000.0, 1001.0), (1002.0, 1000.0), (999.0, 1000.0)];
    let near = compared(in_turns(&near));
    assert_eq!(of(&near, "throughput").verdict, Verdict::Equal);
    let far = [(1000.0, 1040.0), (1020.0, 990.0), (990.0, 1010.0)];
    let far = compared(in_turns(&far));
    let row = of(&far, "throughput");
    assert_eq!(row.verdict, Verdict::TooNoisy);
    assert!(row.repeats_needed.unwrap() > 3);
}

#[test]
fn more_comparisons_need_more_certainty() {
    let alone = compared(in_turns(&SLOWER));
    let mut rows = in_turns(&SLOWER);
    let mut random = Random::new(3);
    for step in 0..20 {
        for repeat in 1..=4 {
            for target in [BASE, TARGET] {
                let value = 1000.0 * (0.01 * random.normal()).exp();
                rows.push(row(target, repeat, &format!("s{step}"), value));
            }
        }
    }
    let among = compared(rows);
    let scan = |compared: &Compared| {
        let mut rows = compared.rows.iter();
        let row = rows.find(|row| row.step == "scan").unwrap();
        row.interval.unwrap()
    };
    let (alone, among) = (scan(&alone), scan(&among));
    assert!(among.confidence > alone.confidence);
    assert!(among.low < alone.low && among.high > alone.high);
}

#[test]
fn neither_the_order_of_the_rows_nor_their_unit_matters_and_the_estimate_is_in_its_interval() {
    let mut random = Random::new(5);
    for repeats in [2, 3, 6, 9] {
        let truth = Truth {
            noise: Noise::HeavyTailed,
            repeats,
            steps: 4,
            ratios: &[0.98, 1.1],
            ..Truth::default()
        };
        let mut measured = truth.measure(&mut random);
        measured.begun = Vec::new();
        // Cells are begun one after the other, whatever order their rows are in.
        let mut cells: Vec<(String, u32)> = Vec::new();
        for row in &measured.rows {
            let cell = (row.cell.target.clone(), row.cell.repeat);
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        measured.begun = (0..)
            .zip(&cells)
            .map(|(index, (target, repeat))| StartedCell {
                cell: record::CellKey::new(&target.clone(), None, 1, *repeat),
                invocation: 1,
                started_unix_ns: 1_000_000_000 * (index + 1),
                ..StartedCell::default()
            })
            .collect();
        let first = compare(&measured, &options());
        let mut swapped = measured.clone();
        swapped.rows.reverse();
        for row in &mut swapped.rows {
            // Operations that are counted in another unit: what one costs is told in it as well.
            for (metric, value) in &mut row.metrics {
                let factor = if *metric == "qps" { 1024.0 } else { 1.0 / 1024.0 };
                *value = value.map(|value| value * factor);
            }
        }
        let second = compare(&swapped, &options());
        assert_eq!(first.rows.len(), second.rows.len());
        for row in &first.rows {
            let same = second.rows.iter().find(|other| {
                (&other.cell.target, &other.step, &other.metric)
                    == (&row.cell.target, &row.step, &row.metric)
            });
            let same = same.unwrap();
            let (interval, other) = (row.interval.unwrap(), same.interval.unwrap());
            let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
            near(interval.low, other.low);
            near(interval.high, other.high);
            near(row.p_value.unwrap(), same.p_value.unwrap());
            assert_eq!((row.verdict, row.pairing), (same.verdict, same.pairing));
            assert!(interval.contains(row.ratio.unwrap()));
            let changed = matches!(row.verdict, Verdict::Faster | Verdict::Slower);
            if row.verdict == Verdict::Equal {
                assert!(interval.low >= 0.97 && interval.high <= 1.03, "{interval:?}");
            } else {
                assert_eq!(changed, !interval.contains(1.0));
            }
        }
    }
}

#[test]
fn the_same_figures_always_give_the_same_comparison() {
    let figures = Truth { repeats: 10, steps: 3, ..Truth::default() }.measure(&mut Random::new(9));
    assert_eq!(compare(&figures, &options()), compare(&figures, &options()));
}

#[test]
fn a_target_against_itself_gives_the_noise_floor() {
    let figures = Truth { repeats: 6, steps: 8, ..Truth::default() }.measure(&mut Random::new(4));
    let compared = compare(&figures, &options());
    let floor = noise_floor(&compared);
    assert_eq!(floor.steps.len(), 8);
    assert_eq!(floor.shown, 0);
    // Two values with 1% each.
    let spread = floor.spread_median.unwrap();
    assert!((0.009..0.02).contains(&spread), "{spread}");
    let worst = &floor.steps[floor.worst_step.unwrap()];
    let away = |ratio: f64| ratio.ln().abs();
    assert!(floor.steps.iter().all(|step| away(step.largest) <= away(worst.largest)));
    assert!(floor.steps.iter().all(|step| away(step.ratio) <= away(step.largest)));
    let effects: Vec<f64> = floor.seen.iter().map(|seen| seen.effect).collect();
    assert!(effects.is_sorted_by(|a, b| a > b), "{effects:?}");
}

#[test]
fn without_a_base_nothing_is_compared_and_a_note_says_so() {
    let mut without = options();
    without.base = "absent.base".into();
    let compared = compare(&figures(in_turns(&SLOWER)), &without);
    assert!(compared.rows.iter().all(|row| row.verdict == Verdict::NotComparable));
    assert!(notes(&compared, "absent.base"));
    assert!(compare(&Figures::default(), &without).rows.is_empty());
}
