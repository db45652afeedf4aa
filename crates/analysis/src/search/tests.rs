use super::*;

const SEARCH: RateSearch = RateSearch {
    step: String::new(),
    p99_ms: Some(20.0),
    lag_ms: None,
    rate_max: None,
    tolerance: 0.05,
    repeats: 1,
};

/// Returns a rate of four clients after some tries, which achieved as much.
fn trial(rate: Option<f64>, achieved: f64, verdicts: &[TrialVerdict]) -> RateTrial {
    let variant = rate.map(|rate| rate_variant(rate / 4.0));
    let figures = TriedFigures { achieved: Some(achieved), ..TriedFigures::default() };
    let tries = verdicts.iter().map(|verdict| RateTry { figures, verdict: verdict.clone() });
    RateTrial::new(variant.as_deref(), 4, tries.collect())
}

fn missed_p99() -> TrialVerdict {
    TrialVerdict::Missed(vec![MissedBound::ResponseTime])
}

/// Searches with four clients a system that sustains `limit` per second and achieves 4,000 per
/// second without a rate.
fn search(limit: f64, search: &RateSearch) -> (SearchState, usize) {
    let mut trials = match search.rate_max {
        None => vec![trial(None, 4000.0, &[no_response_time()])],
        Some(_) => Vec::new(),
    };
    loop {
        let next = match state(search, &trials, 4) {
            SearchState::Next(next) => next * 4.0,
            state => return (state, trials.len()),
        };
        assert!(next > 0.0);
        let verdict = if next <= limit { TrialVerdict::Sustained } else { missed_p99() };
        try_again(&mut trials, next, &verdict);
        let tried = trials.iter().find(|trial| trial.rate == Some(next)).unwrap();
        assert!(tried.tries.len() <= 2, "{tried:?}");
        assert!(trials.len() < 40, "{trials:?}");
    }
}

/// Adds a try of a rate, which achieves it if it meets the bounds.
fn try_again(trials: &mut Vec<RateTrial>, rate: f64, verdict: &TrialVerdict) {
    let before = trials.iter().position(|trial| trial.rate == Some(rate));
    let mut verdicts = Vec::new();
    if let Some(index) = before {
        let tries = trials.remove(index).tries;
        verdicts.extend(tries.into_iter().map(|one| one.verdict));
    }

    verdicts.push(verdict.clone());
    trials.push(trial(Some(rate), rate, &verdicts));
}

/// Searches, at a bound that only chance decides, with a seed.
fn search_by_chance(seed: u64) -> (SearchState, Vec<RateTrial>) {
    let mut random = words::Random::new(seed);
    let mut trials = vec![trial(None, 4000.0, &[no_response_time()])];
    loop {
        let next = match state(&SEARCH, &trials, 4) {
            SearchState::Next(next) => next * 4.0,
            state => return (state, trials),
        };
        let is_met = random.below(2) == 0;
        let verdict = if is_met { TrialVerdict::Sustained } else { missed_p99() };
        try_again(&mut trials, next, &verdict);
        assert!(trials.len() < 40, "{trials:?}");
    }
}

#[test]
fn whatever_the_tries_say_the_answer_rests_on_two_that_agree() {
    let mut found_count = 0;
    for seed in 0..500 {
        let (state, trials) = search_by_chance(seed);
        let SearchState::Found { sustained, missed } = state else { continue };
        found_count += 1;

        let of_rate = |rate: f64| trials.iter().find(|trial| trial.rate == Some(rate));
        assert_eq!(of_rate(sustained).unwrap().met_count(), 2, "{seed}: {trials:?}");
        // The upper end may be what the cell without a rate achieved.
        if let Some(above) = of_rate(missed) {
            assert_eq!(above.missed_count(), 2, "{seed}: {trials:?}");
        }
        assert!(trials.iter().all(|trial| trial.tries.len() <= 3), "{seed}: {trials:?}");
    }
    assert!(found_count > 100, "{found_count}");
}

fn no_response_time() -> TrialVerdict {
    TrialVerdict::NotJudged("no rate".into())
}

#[test]
fn the_limit_lies_between_the_rates_that_are_found() {
    for limit in [100.0, 777.0, 1600.0, 2900.0, 3800.0, 3999.0] {
        let (state, trials) = search(limit, &SEARCH);
        let SearchState::Found { sustained, missed } = state else {
            panic!("{state:?}");
        };
        assert!(sustained <= limit && limit < missed, "{state:?}");
        assert!(sustained >= 0.94 * missed, "{state:?}");
        assert!(trials <= 11, "{trials} trials for {limit}");
    }
}

#[test]
fn a_rate_that_nothing_sustains_ends_the_search() {
    assert_eq!(search(10.0, &SEARCH), (SearchState::NoneSustained(62.8), 7));
    // Rounding makes of 1/64 of this rate 16, which is less.
    let capped = RateSearch { rate_max: Some(1024.8), ..SEARCH };
    assert_eq!(search(10.0, &capped), (SearchState::NoneSustained(128.0), 6));
}

#[test]
fn a_small_tolerance_is_reached() {
    for (tolerance, limit) in [(0.01, 404.1), (0.001, 1001.3), (1e-6, 2345.678)] {
        let fine = RateSearch { tolerance, ..SEARCH };
        let (state, _) = search(limit, &fine);
        let SearchState::Found { sustained, missed } = state else {
            panic!("{state:?}");
        };
        assert!(sustained <= limit && limit < missed, "{state:?}");
        assert!(sustained >= missed * (1.0 - tolerance), "{state:?}");
    }
}

#[test]
fn a_variant_says_its_rate() {
    for rate in [0.5, 12.0, 15.6, 1234.5, 1e7] {
        assert_eq!(rate_of(&rate_variant(rate)), Some(rate));
    }
    assert_eq!(rate_of("unlimited"), None);
}

#[test]
fn the_highest_rate_is_tried_first_and_may_be_the_answer() {
    let capped = RateSearch { rate_max: Some(500.0), ..SEARCH };
    let found = search(2500.0, &capped);
    assert_eq!(found, (SearchState::NotLimited(2000.0), 1));
    let (state, _) = search(1000.0, &capped);
    let SearchState::Found { sustained, .. } = state else {
        panic!("{state:?}");
    };
    assert!((950.0..=1000.0).contains(&sustained), "{sustained}");
}

#[test]
fn a_lag_that_is_bounded_without_a_rate_ends_the_search() {
    let trials = [trial(None, 4000.0, &[TrialVerdict::Sustained])];
    let of_lag = RateSearch { p99_ms: None, lag_ms: Some(1000.0), ..SEARCH };
    assert_eq!(state(&of_lag, &trials, 4), SearchState::NotLimited(4000.0));
}

#[test]
fn a_rate_that_cannot_be_judged_stops_the_search() {
    let trials = [
        trial(Some(2000.0), 2000.0, &[TrialVerdict::NotJudged("it failed".into())]),
        trial(None, 4000.0, &[no_response_time()]),
    ];
    let stopped = SearchState::Stopped("rate-500 cannot be judged: it failed".into());
    assert_eq!(state(&SEARCH, &trials, 4), stopped);
}

const STEP: &str = "l.i1";

/// Returns a run that searches with four clients and has one or more repeats of these variants, and
/// its figures: the statuses of its cells, with the row of each that has one.
fn run_of(search: &RateSearch, cells: &[(&str, Status, Option<Row>)]) -> (Run, Figures) {
    let mut run =
        Run { search: Some(RateSearch { step: STEP.into(), ..search.clone() }), ..Run::default() };
    let mut figures = Figures::default();
    for (variant, status, row) in cells {
        let repeat =
            1 + run.cells.iter().filter(|it| it.key.variant.as_deref() == Some(variant)).count()
                as u32;
        let cell = record::CellRef::new("a", "insert", Some(variant), 4, repeat);
        if *status != Status::Complete {
            figures.unfinished.push(crate::figures::UnfinishedCell {
                run: 0,
                cell: cell.key.clone(),
                status: Some(*status),
                causes: vec!["the server did not start".into()],
            });
        }
        figures.rows.extend(row.clone().map(|row| Row {
            cell: cell.key.clone(),
            step: STEP.into(),
            ..row
        }));
        run.cells.push(cell);
    }
    (run, figures)
}

fn state_of(search: &RateSearch, cells: &[(&str, Status, Option<Row>)]) -> SearchState {
    let (run, figures) = run_of(search, cells);
    let mut searched = rate_searches(&run, &figures);
    assert_eq!(searched.len(), 1);
    searched.remove(0).state
}

/// Returns a valid row of 1,000 operations, whose 99th percentile meets the bound of [`SEARCH`] or
/// not.
fn row(is_met: bool) -> Row {
    let p99_ms = if is_met { 19.9 } else { 20.1 };
    Row {
        valid: true,
        sla: Some(crate::figures::Sla {
            met: true,
            achieved: 1900.0,
            ..crate::figures::Sla::default()
        }),
        ops: BTreeMap::from([("insert".to_owned(), op(1000, p99_ms))]),
        ..Row::default()
    }
}

/// Returns operations that have a rate.
fn op(count: u64, p99_ms: f64) -> OpFigures {
    OpFigures {
        count,
        scheduled: true,
        response_us: crate::figures::Percentiles {
            p99: p99_ms * 1e3,
            ..crate::figures::Percentiles::default()
        },
        ..OpFigures::default()
    }
}

#[test]
fn a_cell_that_fails_before_the_step_stops_the_search() {
    let capped = RateSearch { rate_max: Some(500.0), ..SEARCH };
    let failed = |variant: &str| {
        let why = "cannot be judged: the server did not start";
        SearchState::Stopped(format!("{variant} {why}"))
    };
    let first = [("rate-500", Status::Failed, None)];
    assert_eq!(state_of(&capped, &first), failed("rate-500"));
    let unlimited = [("unlimited", Status::Failed, None)];
    assert_eq!(state_of(&SEARCH, &unlimited), failed("unlimited"));
    let second =
        [("unlimited", Status::Complete, Some(row(true))), ("rate-237_5", Status::Failed, None)];
    assert_eq!(state_of(&SEARCH, &second), failed("rate-237_5"));
}

#[test]
fn a_rate_is_judged_by_all_of_its_repeats() {
    let capped = RateSearch { rate_max: Some(500.0), repeats: 2, ..SEARCH };
    let with = |is_met: bool, status: Status| {
        let cells = [("rate-500", Status::Complete, Some(row(is_met))), ("rate-500", status, None)];
        state_of(&capped, &cells)
    };
    assert!(matches!(with(true, Status::Failed), SearchState::Stopped(_)));
    // A bound that one of them misses is missed, whatever the others do.
    assert_eq!(with(false, Status::Failed), SearchState::Next(250.0));
    let invalid =
        Row { valid: false, reasons: vec!["the client was too slow".into()], ..row(true) };
    let cells = [("rate-500", Status::Complete, Some(invalid))];
    let stopped = "rate-500 cannot be judged: the client was too slow";
    assert_eq!(state_of(&capped, &cells), SearchState::Stopped(stopped.into()));
}

#[test]
fn a_missed_rate_above_a_met_one_counts_only_if_most_tries_miss_it() {
    let capped = RateSearch { rate_max: Some(500.0), tolerance: 0.6, ..SEARCH };
    let complete = |variant, is_met| (variant, Status::Complete, Some(row(is_met)));
    let first = [complete("rate-500", false), complete("rate-250", true)];
    // Without a lower one that is met, bisection continues.
    assert_eq!(state_of(&capped, &first[..1]), SearchState::Next(250.0));
    assert_eq!(state_of(&capped, &first), SearchState::Next(500.0));

    let with_more = |more: &[(&'static str, Status, Option<Row>)]| {
        let cells = [&first[..], more].concat();
        let (run, figures) = run_of(&capped, &cells);
        rate_searches(&run, &figures).remove(0)
    };
    let met = complete("rate-500", true);
    let open = with_more(std::slice::from_ref(&met));
    assert_eq!(open.state, SearchState::Next(500.0), "one try of two is not enough");
    let stalled = with_more(&[met.clone(), met.clone()]);
    assert_eq!(stalled.state, SearchState::NotLimited(2000.0));
    let tried = &stalled.trials[1];
    assert_eq!((tried.met_count(), tried.missed_count()), (2, 1));
    assert_eq!(tried.figures.p99_ms, Some(19.9), "the first is left out");
    assert_eq!(tried.tries[0].figures.p99_ms, Some(20.1));
    let slow = with_more(&[met, complete("rate-500", false)]);
    assert_eq!(slow.state, SearchState::Next(250.0), "so does the rate that met its bounds");

    let missed = with_more(&[complete("rate-500", false)]);
    assert_eq!(missed.state, SearchState::Next(250.0), "so does the rate that met its bounds");
    let interrupted = with_more(&[("rate-500", Status::Interrupted, None)]);
    assert_eq!(interrupted.state, SearchState::Unfinished);

    // Earlier records know only one try.
    let earlier = RateSearch { repeats: 0, ..capped.clone() };
    let found = SearchState::Found { sustained: 1000.0, missed: 2000.0 };
    assert_eq!(state_of(&earlier, &first), found);
}

#[test]
fn a_met_rate_counts_only_if_most_tries_meet_its_bounds() {
    let capped = RateSearch { rate_max: Some(500.0), tolerance: 0.6, ..SEARCH };
    let complete = |variant, is_met| (variant, Status::Complete, Some(row(is_met)));
    let first =
        [complete("rate-500", false), complete("rate-500", false), complete("rate-250", true)];
    assert_eq!(state_of(&capped, &first), SearchState::Next(250.0));

    let again = |tries: &[bool]| {
        let mut cells = first.to_vec();
        cells.extend(tries.iter().map(|is_met| complete("rate-250", *is_met)));
        state_of(&capped, &cells)
    };
    let found = SearchState::Found { sustained: 1000.0, missed: 2000.0 };
    assert_eq!(again(&[true]), found);
    assert_eq!(again(&[false]), SearchState::Next(250.0), "the two disagree");
    assert_eq!(again(&[false, true]), found);
    assert_eq!(again(&[false, false]), SearchState::Next(125.0));
}

#[test]
fn a_search_that_was_interrupted_has_not_stopped() {
    let interrupted = Row { valid: false, reasons: vec!["interrupted".into()], ..row(true) };
    for row in [None, Some(interrupted)] {
        for status in [Status::Interrupted, Status::Incomplete] {
            let cells = [
                ("unlimited", Status::Complete, Some(self::row(true))),
                ("rate-237", status, row.clone()),
            ];
            assert_eq!(state_of(&SEARCH, &cells), SearchState::Unfinished);
            assert_eq!(state_of(&SEARCH, &cells[1..]), SearchState::Unfinished);
        }
    }
}

#[test]
fn each_kind_of_operation_needs_enough_of_them() {
    let with = |ops: &[(&str, OpFigures)]| {
        let ops = ops.iter().map(|(kind, op)| ((*kind).to_owned(), op.clone()));
        let row = Row { ops: ops.collect(), ..row(true) };
        verdict(&SEARCH, &row)
    };
    let queries = OpFigures { scheduled: false, ..op(1000, 1.0) };
    let few = |verdict| matches!(verdict, TrialVerdict::NotJudged(why) if why.starts_with("fewer than 100 operations"));
    assert!(few(with(&[("insert", op(99, 1.0)), ("query", queries.clone())])));
    assert!(few(with(&[("insert", op(99, 1.0)), ("delete", op(1000, 1.0))])));
    assert_eq!(with(&[("insert", op(100, 1.0)), ("query", queries)]), TrialVerdict::Sustained);
    // A schedule of its own, and without a rate nothing else has one.
    let long = ("long_transaction", op(5, 1000.0));
    assert_eq!(with(&[("insert", op(100, 1.0)), long.clone()]), TrialVerdict::Sustained);
    assert!(matches!(with(&[long]), TrialVerdict::NotJudged(_)));
    // One that is known to be too slow is enough.
    assert_eq!(
        with(&[("insert", op(99, 1.0)), ("delete", op(1000, 21.0))]),
        TrialVerdict::Missed(vec![MissedBound::ResponseTime])
    );
}

/// Returns a row of `readwhilewriting`: gets at a rate or not, beside the puts of a writer.
fn reads_beside_a_writer(get_p99_ms: f64, are_scheduled: bool) -> Row {
    let gets = OpFigures { scheduled: are_scheduled, per_second: 800.0, ..op(1000, get_p99_ms) };
    let sla = crate::figures::Sla {
        kind: "put".into(),
        met: true,
        achieved: 50.0,
        ..crate::figures::Sla::default()
    };
    Row {
        main_op: Some("get".into()),
        kinds_of_rate: vec!["get".into()],
        ops: BTreeMap::from([("get".to_owned(), gets), ("put".to_owned(), op(500, 300.0))]),
        sla: Some(sla),
        ..row(true)
    }
}

#[test]
fn a_writer_beside_readers_is_neither_their_rate_nor_bounded_with_them() {
    let at_a_rate = reads_beside_a_writer(19.0, true);
    assert_eq!(achieved(&at_a_rate), Some(800.0));
    assert_eq!(verdict(&SEARCH, &at_a_rate), TrialVerdict::Sustained);
    let too_slow = verdict(&SEARCH, &reads_beside_a_writer(21.0, true));
    assert_eq!(too_slow, TrialVerdict::Missed(vec![MissedBound::ResponseTime]));

    let mut behind = reads_beside_a_writer(19.0, true);
    behind.sla.as_mut().unwrap().met = false;
    assert_eq!(verdict(&SEARCH, &behind), TrialVerdict::Sustained);

    let unlimited = reads_beside_a_writer(19.0, false);
    assert_eq!(achieved(&unlimited), Some(800.0));
    assert!(matches!(verdict(&SEARCH, &unlimited), TrialVerdict::NotJudged(_)));
}

#[test]
fn clients_that_read_and_write_keys_achieve_the_rate_of_both() {
    let of_rate = |per_second: f64| OpFigures { per_second, ..op(1000, 1.0) };
    let mixed = Row {
        main_op: Some("get".into()),
        kinds_of_rate: vec!["get".into(), "put".into()],
        ops: BTreeMap::from([("get".to_owned(), of_rate(95.0)), ("put".to_owned(), of_rate(5.0))]),
        sla: None,
        ..row(true)
    };
    assert_eq!(achieved(&mixed), Some(100.0));
}

#[test]
fn each_bound_of_a_step_is_judged_separately() {
    let row = |p99_ms, met| Row {
        sla: Some(crate::figures::Sla { met, ..crate::figures::Sla::default() }),
        ops: BTreeMap::from([("insert".to_owned(), op(1000, p99_ms))]),
        ..Row::default()
    };
    let both = vec![MissedBound::Rate, MissedBound::ResponseTime];
    assert_eq!(verdict(&SEARCH, &row(19.9, true)), TrialVerdict::Sustained);
    assert_eq!(verdict(&SEARCH, &row(20.1, false)), TrialVerdict::Missed(both));
    let of_lag = RateSearch { lag_ms: Some(1000.0), ..SEARCH };
    let unknown = verdict(&of_lag, &row(19.9, true));
    assert_eq!(unknown, TrialVerdict::NotJudged("the target has no replicas".into()));
    assert_eq!(
        together([unknown, TrialVerdict::Missed(vec![MissedBound::Lag])].into_iter()),
        TrialVerdict::Missed(vec![MissedBound::Lag])
    );
}
