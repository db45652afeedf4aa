//! Truth tests: a simulated engine advances the clock, so that every expected figure is known
//! exactly.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::{self, ThreadId};
use std::time::Duration;

use engine::{Error, ErrorClass};
use hdrhistogram::Histogram;
use words::IntervalRow;
use workload::{Executed, Next, OpKind, OpRole, Program, Schedule, Task};

use crate::*;

mod pauses;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

const OP: OpKind = OpKind::new("op", OpRole::Unknown);
const ASK: OpKind = OpKind::new("ask", OpRole::Unknown);

/// A clock that advances only when a thread sleeps or works.
#[derive(Clone, Default)]
struct FakeClock(Arc<AtomicU64>);

impl FakeClock {
    fn advance(&self, ns: u64) {
        self.0.fetch_add(ns, SeqCst);
    }
}

impl Clock for FakeClock {
    fn now(&self) -> u64 {
        self.0.load(SeqCst)
    }
    fn sleep_until(&self, at: u64) {
        self.0.fetch_max(at, SeqCst);
    }
}

/// An engine that answers after `service_ns`, except for the operations in `special`.
struct Simulated {
    clock: FakeClock,
    service_ns: u64,
    special: BTreeMap<u64, Special>,
    quota: Option<u64>,
    pause_ns: u64,
    /// The time to draw what an operation needs when it is due.
    draw_ns: u64,
    number: u64,
    rows: u64,
    /// The thread that called `begin`.
    thread: Option<ThreadId>,
}

#[derive(Clone)]
enum Special {
    Stall(u64),
    FailOnce(ErrorClass),
    Fail(ErrorClass),
    Rows(u64),
    Panic,
}

impl Simulated {
    fn new(clock: &FakeClock, service_ns: u64) -> Self {
        Self {
            clock: clock.clone(),
            service_ns,
            special: BTreeMap::new(),
            quota: None,
            pause_ns: 0,
            draw_ns: 0,
            number: 0,
            rows: 1,
            thread: None,
        }
    }

    fn at(mut self, number: u64, special: Special) -> Self {
        self.special.insert(number, special);
        self
    }

    fn quota(mut self, quota: u64) -> Self {
        self.quota = Some(quota);
        self
    }

    fn pause(mut self, pause_ns: u64) -> Self {
        self.pause_ns = pause_ns;
        self
    }
}

impl Program for Simulated {
    fn kinds(&self) -> &'static [OpKind] {
        &[OP]
    }

    fn begin(&mut self) {
        assert_eq!(self.thread.replace(thread::current().id()), None);
    }

    fn prepare(&mut self) -> Next {
        assert_eq!(self.thread, Some(thread::current().id()));
        if self.quota == Some(self.number) {
            return Next::Done;
        }
        self.number += 1;
        Next::Ready(0)
    }

    fn pause_ns(&self) -> u64 {
        self.pause_ns
    }

    fn on_due(&mut self) {
        self.clock.advance(self.draw_ns);
    }

    fn execute(&mut self) -> Result<Executed, Error> {
        self.clock.advance(self.service_ns);
        self.rows = 1;
        match self.special.get(&self.number).cloned() {
            None => {}
            Some(Special::Stall(ns)) => self.clock.advance(ns),
            Some(Special::Rows(rows)) => self.rows = rows,
            Some(Special::Fail(class)) => return Err(Error::new(class, "simulated")),
            Some(Special::FailOnce(class)) => {
                self.special.remove(&self.number);
                return Err(Error::new(class, "simulated"));
            }
            Some(Special::Panic) => panic!("simulated panic"),
        }
        Ok(Executed::new(self.rows, (1, 1)))
    }
}

#[derive(Default)]
struct Notes {
    rows: Vec<IntervalRow<'static>>,
    latencies: BTreeMap<LatencyKind, Histogram<u64>>,
    fail_after: Option<usize>,
}

impl Notes {
    /// Returns the sum of all seconds.
    fn all(&self, time: LatencyKind) -> Histogram<u64> {
        let histogram = self.latencies.get(&time).cloned();
        histogram.unwrap_or_else(new_histogram)
    }

    fn service_ns_max(&self) -> Option<u64> {
        self.rows.iter().map(|row| row.service_ns_max).max()
    }

    fn response_ns_max(&self) -> Option<u64> {
        self.rows.iter().map(|row| row.response_ns_max).max()
    }
}

impl Sink for Notes {
    fn intervals(&mut self, rows: &[IntervalRow<'static>]) -> Result<(), String> {
        self.rows.extend_from_slice(rows);
        match self.fail_after {
            Some(most) if self.rows.len() > most => Err("no space left".into()),
            _ => Ok(()),
        }
    }
    fn latencies(
        &mut self,
        _: u32,
        kind: &str,
        time: LatencyKind,
        histogram: &Histogram<u64>,
    ) -> Result<(), String> {
        if kind == "op" {
            let all = self.latencies.entry(time).or_insert_with(new_histogram);
            all.add(histogram).unwrap();
        }
        Ok(())
    }
}

fn task(program: Simulated, schedule: Schedule) -> Task {
    Task::new(0, OP, schedule, Box::new(program)).unwrap()
}

fn limits(seconds: Option<u64>) -> Limits {
    Limits {
        time: seconds.map(Duration::from_secs),
        error_limit: 0,
        attempts: 3,
        grace: Duration::from_secs(60),
    }
}

fn run_all(clock: &FakeClock, tasks: Vec<Task>, limits: Limits) -> (StepOutcome, Notes) {
    let mut notes = Notes::default();
    let outcome = run(tasks, limits, clock, &AtomicBool::new(false), &mut notes);
    (outcome, notes)
}

/// Takes 20 s for its first rows, while the only connection waits for it.
struct LateOnce {
    clock: FakeClock,
    /// The connection's thread; `None` once the sink was late.
    connection: Option<u32>,
}

impl Sink for LateOnce {
    fn begin(&mut self, earliest: u64, connections: &[ConnectionThreads]) -> Result<u64, String> {
        self.connection = connections[0].client;
        Ok(earliest)
    }

    fn intervals(&mut self, _: &[IntervalRow<'static>]) -> Result<(), String> {
        let Some(connection) = self.connection.take() else {
            return Ok(());
        };
        // Without a lap to fill, it sleeps; before that, it may wait long for a processor.
        while is_at_work(connection) {
            thread::sleep(Duration::from_millis(1));
        }
        self.clock.advance(20 * SECOND);
        Ok(())
    }
}

/// Returns whether a thread works, or waits for a processor or a disk.
fn is_at_work(tid: u32) -> bool {
    let stat = fs_err::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['R', 'D']))
}

#[test]
fn a_wait_for_a_slow_record_is_reported() {
    let clock = FakeClock::default();
    let task = task(Simulated::new(&clock, 100 * MS).quota(100), Schedule::Closed);
    let mut sink = LateOnce { clock: clock.clone(), connection: None };
    let stop = AtomicBool::new(false);
    let outcome = run(vec![task], limits(None), &clock, &stop, &mut sink);
    assert_eq!(outcome.end, StepEnd::Complete);
    assert_eq!(outcome.handover_wait_ns_max, 20 * SECOND);
}

#[test]
fn every_percentile_is_the_constant_service_time() {
    let clock = FakeClock::default();
    let (outcome, notes) = run_all(
        &clock,
        vec![task(Simulated::new(&clock, MS).quota(5000), Schedule::Closed)],
        limits(None),
    );
    assert_eq!(outcome.end, StepEnd::Complete);
    assert_eq!(outcome.elapsed_ns, 5000 * MS);
    let service = notes.all(LatencyKind::Service);
    assert_eq!(service.len(), 5000);
    assert!(service.equivalent(service.min(), MS) && service.equivalent(service.max(), MS));
    // It would equal the service time.
    assert!(notes.all(LatencyKind::Response).is_empty());
    let longest = (notes.service_ns_max(), notes.response_ns_max());
    assert_eq!(longest, (Some(MS), Some(MS)));
    assert_eq!(notes.rows.iter().map(|row| row.ok).collect::<Vec<_>>(), [1000; 5]);
}

#[test]
fn a_stall_shows_in_response_time_and_once_in_service_time() {
    // 1000 operations a second, each of 0.1 ms; the one sent at 3 s is answered after 2 s more.
    let clock = FakeClock::default();
    let program = Simulated::new(&clock, MS / 10).at(3001, Special::Stall(2 * SECOND));
    let (outcome, notes) =
        run_all(&clock, vec![task(program, Schedule::rate(1000.0, 0, 1))], limits(Some(10)));
    let total = &outcome.totals["op"];
    assert_eq!((total.offered, total.ok, total.skipped, total.failed), (10_000, 10_000, 0, 0));
    let slower_than = |histogram: &Histogram<u64>, ns: u64| histogram.count_between(ns, u64::MAX);
    assert_eq!(slower_than(&notes.all(LatencyKind::Service), 2 * MS), 1);
    assert_eq!(notes.service_ns_max(), Some(2 * SECOND + MS / 10));
    // 2000 were due during the stall; the backlog shrinks by 0.9 ms an operation, so 2001 / 0.9 are
    // late in all.
    let late = slower_than(&notes.all(LatencyKind::Response), MS);
    assert!((2220..=2225).contains(&late), "{late}");
    // The target rate is caught up, and the seconds of the stall are rows with zero.
    let ok: BTreeMap<u32, u64> = notes.rows.iter().map(|row| (row.second, row.ok)).collect();
    assert_eq!((ok[&3], ok[&4], ok.len()), (0, 0, 10));
    assert_eq!(ok.values().sum::<u64>(), 10_000);
    assert_eq!(outcome.elapsed_ns, 10 * SECOND);
}

#[test]
fn operations_that_are_due_but_not_sent_are_skipped() {
    // Twice as much is offered as can be served.
    let clock = FakeClock::default();
    let (outcome, notes) = run_all(
        &clock,
        vec![task(Simulated::new(&clock, 2 * MS), Schedule::rate(1000.0, 0, 1))],
        limits(Some(4)),
    );
    let total = &outcome.totals["op"];
    assert_eq!(outcome.end, StepEnd::Complete, "saturation is a result, not a failure");
    assert_eq!((total.offered, total.ok, total.skipped), (4000, 2000, 2000));
    assert_eq!(
        notes.response_ns_max(),
        Some(2 * SECOND + MS),
        "the last was due at 1999 ms and answered at 4000 ms"
    );
}

#[test]
fn what_is_drawn_when_an_operation_is_due_counts_as_response_time_alone() {
    let longest = |schedule| {
        let clock = FakeClock::default();
        let program = Simulated { draw_ns: MS, ..Simulated::new(&clock, 2 * MS).quota(10) };
        let (_, notes) = run_all(&clock, vec![task(program, schedule)], limits(None));
        (notes.service_ns_max(), notes.response_ns_max())
    };
    assert_eq!(longest(Schedule::rate(10.0, 0, 1)), (Some(2 * MS), Some(3 * MS)));
    // Without a schedule, nothing waits until it is due.
    assert_eq!(longest(Schedule::Closed).0, Some(2 * MS));
}

#[test]
fn a_transient_error_is_retried_within_the_operation() {
    let clock = FakeClock::default();
    let program =
        Simulated::new(&clock, MS).quota(100).at(50, Special::FailOnce(ErrorClass::Deadlock));
    let (outcome, notes) = run_all(&clock, vec![task(program, Schedule::Closed)], limits(None));
    let total = &outcome.totals["op"];
    assert_eq!((total.ok, total.failed, total.retried), (100, 0, 1));
    assert_eq!(total.retried_ns, Some(MS), "the attempt that failed, not the one after it");
    assert_eq!(total.errors["deadlock"], 1);
    assert_eq!(notes.service_ns_max(), Some(2 * MS));
}

#[test]
fn failures_are_counted_separately_and_a_limit_ends_the_step() {
    let clock = FakeClock::default();
    let program = |number| {
        Simulated::new(&clock, MS).quota(100).at(number, Special::Fail(ErrorClass::DuplicateKey))
    };
    let within = Limits { error_limit: 1, ..limits(None) };
    let (outcome, notes) = run_all(&clock, vec![task(program(50), Schedule::Closed)], within);
    assert_eq!(outcome.end, StepEnd::Complete);
    let total = &outcome.totals["op"];
    assert_eq!((total.offered, total.ok, total.failed), (100, 99, 1));
    assert_eq!(
        (notes.all(LatencyKind::Service).len(), notes.all(LatencyKind::Failed).len()),
        (99, 1)
    );

    let (outcome, _) = run_all(&clock, vec![task(program(50), Schedule::Closed)], limits(None));
    let StepEnd::Failed(reasons) = outcome.end else { panic!("the step did not fail") };
    assert!(
        reasons[0].contains("more than the limit of 0") && reasons[0].contains("duplicate_key"),
        "{reasons:?}"
    );
    assert_eq!(outcome.totals["op"].ok, 49);
}

#[test]
fn a_lost_connection_poisons_the_step() {
    let clock = FakeClock::default();
    let lost = Simulated::new(&clock, MS).at(50, Special::Fail(ErrorClass::ConnectionLost));
    let other = Simulated::new(&clock, MS);
    let tasks = vec![task(lost, Schedule::Closed), task(other, Schedule::Closed)];
    let (outcome, _) = run_all(&clock, tasks, limits(Some(1_000_000)));
    let StepEnd::Failed(reasons) = outcome.end else { panic!("the step did not fail") };
    assert!(reasons[0].contains("connection 1 failed: simulated"), "{reasons:?}");
}

#[test]
fn a_panic_of_a_connection_fails_only_the_step() {
    let clock = FakeClock::default();
    let tasks = vec![
        task(Simulated::new(&clock, MS).at(5, Special::Panic), Schedule::Closed),
        task(Simulated::new(&clock, MS), Schedule::Closed),
    ];
    let (outcome, _) = run_all(&clock, tasks, limits(Some(1_000_000)));
    let StepEnd::Failed(reasons) = outcome.end else { panic!("the step did not fail") };
    assert!(reasons[0].contains("simulated panic"), "{reasons:?}");
}

#[test]
fn a_failure_at_the_start_fails_only_the_step() {
    struct NeverBegins;
    impl Sink for NeverBegins {
        fn begin(&mut self, _: u64, _: &[ConnectionThreads]) -> Result<u64, String> {
            panic!("no thread left")
        }
    }
    let clock = FakeClock::default();
    let outcome = run(
        vec![task(Simulated::new(&clock, MS), Schedule::Closed)],
        limits(Some(1_000_000)),
        &clock,
        &AtomicBool::new(false),
        &mut NeverBegins,
    );
    let StepEnd::Failed(reasons) = outcome.end else { panic!("the step did not fail") };
    assert_eq!(reasons, ["cannot start the step: no thread left"]);
    assert_eq!(outcome.totals["op"].ok, 0);
}

#[test]
fn an_unexpected_number_of_rows_is_counted() {
    let clock = FakeClock::default();
    let program = Simulated::new(&clock, MS).quota(10).at(3, Special::Rows(0));
    let (outcome, _) = run_all(&clock, vec![task(program, Schedule::Closed)], limits(None));
    let total = &outcome.totals["op"];
    assert_eq!((total.ok, total.rows, total.unexpected_rows), (10, 9, 1));
}

#[test]
fn a_failed_write_to_the_record_fails_the_step() {
    let clock = FakeClock::default();
    let mut notes = Notes { fail_after: Some(3), ..Notes::default() };
    let outcome = run(
        vec![task(Simulated::new(&clock, MS), Schedule::Closed)],
        limits(Some(1_000_000)),
        &clock,
        &AtomicBool::new(false),
        &mut notes,
    );
    let StepEnd::Failed(reasons) = outcome.end else { panic!("the step did not fail") };
    assert_eq!(reasons, ["cannot write the record: no space left"]);
}

#[test]
fn the_totals_of_a_step_that_fails_add_up_and_match_its_histogram() {
    /// Fails at a time, as when a replica no longer follows, and records all that it gets.
    struct Fails {
        notes: Notes,
        at_ns: u64,
    }

    impl Sink for Fails {
        fn intervals(&mut self, rows: &[IntervalRow<'static>]) -> Result<(), String> {
            self.notes.intervals(rows)
        }

        fn latencies(
            &mut self,
            second: u32,
            kind: &str,
            time: LatencyKind,
            histogram: &Histogram<u64>,
        ) -> Result<(), String> {
            self.notes.latencies(second, kind, time, histogram)
        }

        fn progress(&mut self, progress: &Progress) -> Result<(), String> {
            if progress.elapsed_ns >= self.at_ns {
                return Err("the replica is gone".into());
            }
            Ok(())
        }
    }

    let clock = FakeClock::default();
    let mut sink = Fails { notes: Notes::default(), at_ns: 5 * SECOND };
    // Each operation is longer than a second, so that laps end within one.
    let tasks = (0..2).map(|_| task(Simulated::new(&clock, 1700 * MS), Schedule::Closed));
    let stop = AtomicBool::new(false);
    let outcome = run(tasks.collect(), limits(Some(1_000_000)), &clock, &stop, &mut sink);
    let StepEnd::Failed(reasons) = outcome.end else { panic!("the step did not fail") };
    assert_eq!(reasons, ["cannot write the record: the replica is gone"]);
    let total = &outcome.totals["op"];
    assert_eq!(total.offered, total.skipped + total.ok + total.failed);
    assert!(total.ok > 0);
    let ok: u64 = sink.notes.rows.iter().map(|row| row.ok).sum();
    assert_eq!(ok, total.ok);
    assert_eq!(sink.notes.all(LatencyKind::Service).len(), total.ok);
}

#[test]
fn a_step_that_the_operator_ends_keeps_its_measurements() {
    let clock = FakeClock::default();
    let stop = AtomicBool::new(false);
    let mut notes = Notes::default();
    struct Stopping<'a>(&'a AtomicBool, &'a mut Notes);
    impl Sink for Stopping<'_> {
        fn intervals(&mut self, rows: &[IntervalRow<'static>]) -> Result<(), String> {
            self.0.store(true, SeqCst);
            self.1.intervals(rows)
        }
        fn latencies(
            &mut self,
            second: u32,
            kind: &str,
            time: LatencyKind,
            h: &Histogram<u64>,
        ) -> Result<(), String> {
            self.1.latencies(second, kind, time, h)
        }
    }
    let tasks = vec![task(Simulated::new(&clock, MS), Schedule::Closed)];
    let outcome =
        run(tasks, limits(Some(1_000_000)), &clock, &stop, &mut Stopping(&stop, &mut notes));
    assert_eq!(outcome.end, StepEnd::Interrupted);
    // At most the laps in circulation, however fast they arrive.
    assert!(outcome.elapsed_ns < 5 * SECOND, "{}", outcome.elapsed_ns);
    let total = &outcome.totals["op"];
    assert!(total.ok > 0);
    assert_eq!(total.ok, notes.rows.iter().map(|row| row.ok).sum::<u64>());
    assert_eq!(total.ok, notes.all(LatencyKind::Service).len());
}

#[test]
fn a_connection_that_hangs_is_cut_off_and_fails_the_step() {
    /// Waits for a reply that never comes; nothing else advances the clock.
    struct Hanging(Arc<AtomicBool>, FakeClock);
    impl Program for Hanging {
        fn kinds(&self) -> &'static [OpKind] {
            &[OP]
        }
        fn prepare(&mut self) -> Next {
            Next::Ready(0)
        }
        fn execute(&mut self) -> Result<Executed, Error> {
            while !self.0.load(SeqCst) {
                self.1.advance(MS);
                thread::yield_now();
            }
            Err(Error::new(ErrorClass::Interrupted, "cut off"))
        }
    }
    let clock = FakeClock::default();
    let cut = Arc::new(AtomicBool::new(false));
    let interrupt = Arc::clone(&cut);
    let task = Task {
        client: 0,
        role: "op",
        schedule: Schedule::Closed,
        background: false,
        program: Box::new(Hanging(cut, clock.clone())),
        interrupt: Some(Box::new(move || interrupt.store(true, SeqCst))),
        server_thread: None,
    };
    let outcome =
        run(vec![task], limits(Some(10)), &clock, &AtomicBool::new(false), &mut Notes::default());
    let StepEnd::Failed(reasons) = outcome.end else { panic!("the step did not fail") };
    assert!(reasons[0].contains("were cut off"), "{reasons:?}");
    assert_eq!((outcome.totals["op"].offered, outcome.totals["op"].failed), (1, 1));
}

#[test]
fn a_connection_that_waits_for_another_ends_with_the_step() {
    /// Waits forever for another connection.
    struct Waiting(FakeClock);
    impl Program for Waiting {
        fn kinds(&self) -> &'static [OpKind] {
            &[OP]
        }
        fn prepare(&mut self) -> Next {
            Next::Later
        }
        fn wait(&self, at_most: Duration) {
            self.0.advance(at_most.as_nanos() as u64);
        }
        fn execute(&mut self) -> Result<Executed, Error> {
            unreachable!()
        }
    }
    let clock = FakeClock::default();
    let task = Task {
        client: 0,
        role: "op",
        schedule: Schedule::Closed,
        background: false,
        program: Box::new(Waiting(clock.clone())),
        interrupt: None,
        server_thread: None,
    };
    let (outcome, _) = run_all(&clock, vec![task], limits(Some(2)));
    assert_eq!(outcome.end, StepEnd::Complete);
    assert_eq!(outcome.elapsed_ns, 2 * SECOND);
    assert_eq!(outcome.totals["op"].offered, 0);
}

#[test]
fn additional_operations_do_not_count_in_the_schedule() {
    struct Asking(FakeClock, u64);
    impl Program for Asking {
        fn kinds(&self) -> &'static [OpKind] {
            &[OP, ASK]
        }
        fn prepare(&mut self) -> Next {
            self.1 += 1;
            Next::Ready(usize::from(self.1 % 10 == 1))
        }
        fn execute(&mut self) -> Result<Executed, Error> {
            self.0.advance(MS / 10);
            Ok(Executed::new(1, (1, 1)))
        }
    }
    let clock = FakeClock::default();
    let task = Task {
        client: 0,
        role: "op",
        schedule: Schedule::rate(100.0, 0, 1),
        background: false,
        program: Box::new(Asking(clock.clone(), 0)),
        interrupt: None,
        server_thread: None,
    };
    let (outcome, notes) = run_all(&clock, vec![task], limits(Some(9)));
    let (op, ask) = (&outcome.totals["op"], &outcome.totals["ask"]);
    assert_eq!((op.offered, op.ok, op.skipped), (900, 900, 0));
    assert_eq!((ask.offered, ask.ok), (100, 100));
    // The response time includes the wait for the additional operation before it.
    let longest = (notes.service_ns_max(), notes.response_ns_max());
    assert_eq!(longest, (Some(MS / 10), Some(MS / 5)));
}

#[test]
fn each_kind_of_a_mix_has_its_share_of_the_schedule() {
    struct Mixed(FakeClock, usize);
    impl Program for Mixed {
        fn kinds(&self) -> &'static [OpKind] {
            &[OP, ASK]
        }
        fn shares(&self) -> Vec<f64> {
            vec![0.75, 0.25]
        }
        fn prepare(&mut self) -> Next {
            self.1 += 1;
            Next::Ready(usize::from(self.1.is_multiple_of(4)))
        }
        fn execute(&mut self) -> Result<Executed, Error> {
            self.0.advance(MS / 10);
            Ok(Executed::new(1, (1, 1)))
        }
    }
    let clock = FakeClock::default();
    let mixed = Box::new(Mixed(clock.clone(), 0));
    let task = Task::new(0, OP, Schedule::rate(100.0, 0, 1), mixed).unwrap();
    let (outcome, notes) = run_all(&clock, vec![task], limits(Some(8)));
    let totals = ["op", "ask"].map(|kind| &outcome.totals[kind]);
    assert_eq!(totals.map(|total| total.offered), [600, 200]);
    assert_eq!(totals.map(|total| total.rate_target_ops_per_s), [Some(75.0), Some(25.0)]);
    assert_eq!(notes.response_ns_max(), Some(MS / 10));
}

#[test]
fn every_mix_of_outcomes_and_connections_adds_up() {
    let mut state = 1_u64;
    let mut draw = move |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for _ in 0..20 {
        let clock = FakeClock::default();
        let connections = 1 + draw(4);
        let tasks: Vec<Task> = (0..connections)
            .map(|index| {
                let mut program = Simulated::new(&clock, MS * (1 + draw(3)));
                for _ in 0..draw(20) {
                    let special = match draw(4) {
                        0 => Special::Stall(draw(3) * SECOND),
                        1 => Special::FailOnce(ErrorClass::Busy),
                        2 => Special::Fail(ErrorClass::Other),
                        _ => Special::Rows(draw(3)),
                    };
                    program = program.at(draw(400), special);
                }
                let schedule = match draw(2) {
                    0 => Schedule::Closed,
                    _ => Schedule::rate(100.0 + draw(900) as f64, index as u32, connections as u32),
                };
                Task { client: index as u32, ..task(program, schedule) }
            })
            .collect();
        let is_scheduled = |task: &Task| task.schedule != Schedule::Closed;
        let is_any_scheduled = tasks.iter().any(is_scheduled);
        let (outcome, notes) =
            run_all(&clock, tasks, Limits { error_limit: 1000, ..limits(Some(3)) });
        assert_eq!(outcome.end, StepEnd::Complete);
        let total = &outcome.totals["op"];
        let sum = |field: fn(&IntervalRow<'_>) -> u64| notes.rows.iter().map(field).sum::<u64>();
        assert_eq!(total.offered, total.skipped + total.ok + total.failed);
        assert_eq!(
            (sum(|row| row.ok), sum(|row| row.failed), sum(|row| row.rows)),
            (total.ok, total.failed, total.rows)
        );
        assert_eq!(sum(|row| row.retried), total.retried);
        let count = |time| notes.all(time).len();
        assert_eq!(count(LatencyKind::Service), total.ok);
        let responses = if is_any_scheduled { total.ok } else { 0 };
        assert_eq!(count(LatencyKind::Response), responses);
        assert_eq!(count(LatencyKind::Failed), total.failed);
        assert_eq!(
            outcome.connections.iter().map(|connection| connection.ok).sum::<u64>(),
            total.ok
        );
        let seconds = outcome.elapsed_ns.div_ceil(SECOND) as usize;
        assert_eq!(
            notes.rows.len(),
            seconds * connections as usize,
            "every second of every client is a row"
        );
    }
}
