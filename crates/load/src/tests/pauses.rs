//! Clients that wait between their operations.

use super::*;

/// A clock that lets sleepers wake late.
#[derive(Clone, Default)]
struct LateClock {
    clock: FakeClock,
    late_ns: u64,
}

impl Clock for LateClock {
    fn now(&self) -> u64 {
        self.clock.now()
    }
    fn sleep_until(&self, at: u64) {
        self.clock.sleep_until(at + self.late_ns);
    }
}

#[test]
fn a_pause_begins_with_the_reply() {
    // Cycles of 90 ms and 10 ms; the tenth has a reply that is 1 s late, and delays the others.
    let clock = FakeClock::default();
    let program = Simulated::new(&clock, 10 * MS).pause(90 * MS).at(10, Special::Stall(SECOND));
    let (outcome, notes) = run_all(&clock, vec![task(program, Schedule::Paused)], limits(Some(10)));

    let total = &outcome.totals["op"];
    assert_eq!((total.offered, total.ok, total.skipped, total.failed), (90, 90, 0, 0));
    assert_eq!(total.rate_target_ops_per_s, None);
    // The stall counts against one operation, since no other was due.
    let response = notes.all(LatencyKind::Response);
    assert_eq!((response.len(), response.count_between(11 * MS, u64::MAX)), (90, 1));
    let longest = (notes.service_ns_max(), notes.response_ns_max());
    assert_eq!(longest, (Some(SECOND + 10 * MS), Some(SECOND + 10 * MS)));
    assert_eq!(outcome.elapsed_ns, 10 * SECOND);
}

#[test]
fn a_client_that_wakes_late_has_a_longer_response_time() {
    let clock = LateClock { clock: FakeClock::default(), late_ns: 7 * MS };
    let program = Simulated::new(&clock.clock, 10 * MS).pause(83 * MS);
    let mut notes = Notes::default();
    let tasks = vec![task(program, Schedule::Paused)];
    let outcome = run(tasks, limits(Some(10)), &clock, &AtomicBool::new(false), &mut notes);

    // Each cycle has 83 ms, a delay of 7 ms, and 10 ms.
    assert_eq!((outcome.totals["op"].ok, outcome.totals["op"].skipped), (100, 0));
    let longest = (notes.service_ns_max(), notes.response_ns_max());
    assert_eq!(longest, (Some(10 * MS), Some(17 * MS)));
}

#[test]
fn an_operation_that_is_due_but_not_sent_in_time_is_skipped() {
    // Due at 0.95 s, but the client wakes at the end.
    let clock = LateClock { clock: FakeClock::default(), late_ns: 60 * MS };
    let program = Simulated::new(&clock.clock, 10 * MS).pause(950 * MS);
    let tasks = vec![task(program, Schedule::Paused)];
    let outcome = run(tasks, limits(Some(1)), &clock, &AtomicBool::new(false), &mut ());
    let total = &outcome.totals["op"];
    assert_eq!((total.offered, total.ok, total.skipped), (1, 0, 1));

    // One that is due after the end is not offered at all.
    let clock = FakeClock::default();
    let program = Simulated::new(&clock, 10 * MS).pause(SECOND);
    let (outcome, _) = run_all(&clock, vec![task(program, Schedule::Paused)], limits(Some(1)));
    let total = &outcome.totals["op"];
    assert_eq!((total.offered, total.ok, total.skipped), (0, 0, 0));
}

#[test]
fn a_quota_ends_a_step_with_pauses() {
    let clock = FakeClock::default();
    let program = Simulated::new(&clock, 10 * MS).pause(90 * MS).quota(25);
    let (outcome, _) = run_all(&clock, vec![task(program, Schedule::Paused)], limits(None));
    assert_eq!((outcome.totals["op"].ok, outcome.elapsed_ns), (25, 2500 * MS));
}
