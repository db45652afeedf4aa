//! The heartbeats that the primary has committed, those that replicas show, and the lag that
//! follows.

use std::collections::VecDeque;
use std::time::Duration;

/// The time between heartbeats, and between polls of a replica: the resolution of the lag.
pub const INTERVAL: Duration = Duration::from_millis(100);
/// A replica no longer follows if no poll has found it following for this long. PostgreSQL
/// reconnects every 5 s.
pub const BROKEN_FOR: Duration = Duration::from_secs(10);

/// A time in which every poll has found that a replica does not follow, or that the primary takes
/// no heartbeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    since_ns: u64,
    /// The newest reason.
    pub reason: String,
}

impl Outage {
    /// Returns true if the outage has lasted too long to go away by itself.
    pub fn lasts(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.since_ns) >= BROKEN_FOR.as_nanos() as u64
    }

    /// Notes what a poll has found.
    pub fn note(outage: &mut Option<Self>, found: Option<String>, now_ns: u64) {
        let since_ns = outage.as_ref().map_or(now_ns, |outage| outage.since_ns);
        *outage = found.map(|reason| Self { since_ns, reason });
    }
}

/// The time for which a replica may lack the table of the heartbeats, because it still applies what
/// its primary wrote before.
const LACKS_TABLE_FOR: Duration = Duration::from_secs(30);
/// The codes of servers for a missing privilege: PostgreSQL's, then those of MySQL for a database,
/// a table and a column.
const DENIED: [&str; 4] = ["42501", "1044", "1142", "1143"];
/// The codes for a missing table.
const LACKS_TABLE: [&str; 2] = ["42P01", "1146"];

/// The error with which a replica refuses to show its heartbeats.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub error: engine::Error,
    /// The time of the first of successive errors with this code.
    since_ns: u64,
}

impl Refusal {
    fn has_code(&self, codes: &[&str]) -> bool {
        self.error.code.as_deref().is_some_and(|code| codes.contains(&code))
    }

    /// Returns true if the replica will not show its heartbeats however long one waits.
    pub fn is_permanent(&self, now_ns: u64) -> bool {
        let lasted_ns = now_ns.saturating_sub(self.since_ns);
        self.has_code(&DENIED)
            || self.has_code(&LACKS_TABLE) && lasted_ns >= LACKS_TABLE_FOR.as_nanos() as u64
    }

    /// Returns the error with its remedy.
    pub fn explained(&self) -> String {
        let remedy = if self.has_code(&DENIED) {
            "grant its user `select` on the tables that the primary's user creates"
        } else {
            "check that its URL names the primary's database, that it receives all tables of that database, and that \
             it has caught up"
        };

        format!("{}; {remedy}", self.error)
    }
}

/// The heartbeats that one replica shows.
#[derive(Debug, Default)]
pub struct Shown {
    /// The newest heartbeat.
    newest_ns: u64,
    /// The time of the last reply.
    looked_at_ns: u64,
    /// The time at which it was first seen to have everything until the end of the step.
    caught_up_at_ns: Option<u64>,
    /// The error of the last poll, if it failed.
    pub refusal: Option<Refusal>,
    /// The reason why it does not follow, if it does not.
    pub outage: Option<Outage>,
}

/// The heartbeats. All times are nanoseconds of one clock; a heartbeat's value is the time at which
/// it was sent.
#[derive(Debug)]
pub struct Heartbeats {
    /// The heartbeats that a replica may lack: their values, and when the primary had committed
    /// them.
    committed: VecDeque<(u64, u64)>,
    /// The heartbeat that was sent and that the primary has not confirmed.
    in_flight_ns: Option<u64>,
    /// The replicas, in the order of their numbers.
    pub replicas: Vec<Shown>,
    /// The end of the last step.
    step_end_ns: u64,
}

impl Heartbeats {
    pub fn new(replicas: usize) -> Self {
        Self {
            committed: VecDeque::new(),
            in_flight_ns: None,
            replicas: (0..replicas).map(|_| Shown::default()).collect(),
            step_end_ns: 0,
        }
    }

    /// Notes that a heartbeat is sent to the primary.
    pub fn send(&mut self, heartbeat_ns: u64) {
        self.in_flight_ns = Some(heartbeat_ns);
    }

    /// Notes that the primary has not committed the heartbeat that was sent.
    pub fn lose(&mut self) {
        self.in_flight_ns = None;
    }

    /// Notes that the primary has committed a heartbeat.
    pub fn commit(&mut self, heartbeat_ns: u64, now_ns: u64) {
        self.in_flight_ns = None;
        self.committed.push_back((heartbeat_ns, now_ns));
    }

    /// Notes that a replica shows a heartbeat.
    pub fn show(&mut self, replica: usize, newest_ns: u64, now_ns: u64) {
        let shown = &mut self.replicas[replica];
        shown.refusal = None;
        shown.newest_ns = newest_ns;
        shown.looked_at_ns = now_ns;
        if newest_ns >= self.step_end_ns {
            shown.caught_up_at_ns.get_or_insert(now_ns);
        }

        // Heartbeats that all replicas show no longer decide a lag.
        let oldest_ns = self.replicas.iter().map(|shown| shown.newest_ns).min();
        while self.committed.front().map(|beat| beat.0) <= oldest_ns && !self.committed.is_empty() {
            self.committed.pop_front();
        }
    }

    /// Notes that a replica did not show its heartbeats.
    pub fn fail(&mut self, replica: usize, error: engine::Error, now_ns: u64) {
        let refusal = &mut self.replicas[replica].refusal;
        let before = refusal.take().filter(|before| before.error.code == error.code);
        let since_ns = before.map_or(now_ns, |before| before.since_ns);
        *refusal = Some(Refusal { error, since_ns });
    }

    /// Returns true if a replica has shown a heartbeat.
    pub fn has_shown_any(&self, replica: usize) -> bool {
        self.replicas[replica].newest_ns > 0
    }

    /// Returns the lag of a replica: how long ago the primary had committed the oldest heartbeat
    /// that the replica does not show; 0 if it shows all of them. The lag is as of the last
    /// poll, or as of now if the replica has not answered for two intervals. Then the heartbeat
    /// that the primary has not confirmed counts, too, from when it was sent: its commit may
    /// wait for this replica.
    pub fn lag_ns(&self, replica: usize, now_ns: u64) -> u64 {
        let shown = &self.replicas[replica];

        let hangs = now_ns.saturating_sub(shown.looked_at_ns) > 2 * INTERVAL.as_nanos() as u64;
        let at_ns = if hangs { now_ns } else { shown.looked_at_ns };
        let in_flight = self.in_flight_ns.filter(|_| hangs).map(|sent_ns| (sent_ns, sent_ns));

        let mut sent = self.committed.iter().copied().chain(in_flight);
        let missing = sent.find(|(heartbeat_ns, _)| *heartbeat_ns > shown.newest_ns);
        missing.map_or(0, |(_, committed_ns)| at_ns.saturating_sub(committed_ns))
    }

    /// Notes the end of a step, from which catching up is measured.
    pub fn end_step(&mut self, end_ns: u64) {
        self.step_end_ns = end_ns;
        for shown in &mut self.replicas {
            shown.caught_up_at_ns = (shown.newest_ns >= end_ns).then_some(shown.looked_at_ns);
        }
    }

    /// Returns the first replica that has not caught up, or else the first one.
    pub fn late(&self) -> usize {
        let mut replicas = self.replicas.iter();
        let late = replicas.position(|shown| shown.caught_up_at_ns.is_none());
        late.unwrap_or(0)
    }

    /// Returns how long after the end of the step all replicas were seen to have everything until
    /// then; `None`: not yet.
    pub fn caught_up_after(&self) -> Option<Duration> {
        let times: Option<Vec<u64>> =
            self.replicas.iter().map(|shown| shown.caught_up_at_ns).collect();
        let last_ns = times?.into_iter().max()?;
        Some(Duration::from_nanos(last_ns.saturating_sub(self.step_end_ns)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns heartbeats at 100, 200, .. 1000 ms, each committed a millisecond after it was sent.
    fn with_ten_heartbeats(replicas: usize) -> Heartbeats {
        let mut beats = Heartbeats::new(replicas);
        (1..=10).for_each(|beat| beats.commit(beat * 100 * MS, (beat * 100 + 1) * MS));
        beats
    }

    #[test]
    fn the_lag_is_the_age_of_the_oldest_heartbeat_that_is_not_shown() {
        let mut beats = with_ten_heartbeats(2);
        beats.show(0, 1000 * MS, 1050 * MS);
        beats.show(1, 600 * MS, 1050 * MS);
        let lags = |now: u64| [0, 1].map(|replica| beats.lag_ns(replica, now * MS) / MS);
        // The one committed at 701 ms is missing.
        assert_eq!(lags(1075), [0, 349]);
        // A primary that stalls writes nothing that could be missing.
        assert_eq!(lags(9000)[0], 0);
    }

    #[test]
    fn a_replica_that_hangs_lags_more_and_more() {
        let mut beats = with_ten_heartbeats(1);
        beats.show(0, 1000 * MS, 1050 * MS);
        beats.commit(1100 * MS, 1101 * MS);
        assert_eq!(beats.lag_ns(0, 1175 * MS), 0, "the next reply is not late");
        assert_eq!(beats.lag_ns(0, 1275 * MS) / MS, 174);
        assert_eq!(beats.lag_ns(0, 61_101 * MS) / MS, 60_000);
        // A late reply shows what was there when it was asked.
        beats.commit(61_000 * MS, 61_001 * MS);
        beats.show(0, 1000 * MS, 61_200 * MS);
        assert_eq!(beats.lag_ns(0, 61_201 * MS) / MS, 60_099);
    }

    #[test]
    fn a_heartbeat_that_waits_for_a_replica_that_hangs_counts() {
        let mut beats = with_ten_heartbeats(1);
        beats.show(0, 1000 * MS, 1050 * MS);
        beats.send(1100 * MS);
        // The primary alone may be slow.
        assert_eq!(beats.lag_ns(0, 1175 * MS), 0);
        assert_eq!(beats.lag_ns(0, 6100 * MS) / MS, 5000);
        beats.show(0, 1000 * MS, 6150 * MS);
        assert_eq!(beats.lag_ns(0, 6175 * MS), 0);
        beats.lose();
        assert_eq!(beats.lag_ns(0, 9000 * MS), 0);
    }

    #[test]
    fn a_missing_privilege_is_permanent_at_once_and_a_missing_table_after_a_while() {
        let mut beats = with_ten_heartbeats(1);
        let mut is_permanent = |code: &str, seconds: u64| {
            let now_ns = seconds * 1000 * MS;
            let code = Some(code.to_owned());
            let class = engine::ErrorClass::Other;
            let error = engine::Error { class, code, message: "no".into() };
            beats.fail(0, error, now_ns);
            beats.replicas[0].refusal.as_ref().unwrap().is_permanent(now_ns)
        };
        assert!(!is_permanent("42P01", 1));
        assert!(!is_permanent("42P01", 30));
        assert!(is_permanent("42P01", 31));
        assert!(!is_permanent("40001", 32));
        assert!(!is_permanent("42P01", 33));
        assert!(is_permanent("42501", 33));
        assert!(is_permanent("1142", 33));
    }

    #[test]
    fn catching_up_takes_as_long_as_the_slowest_replica_from_the_end_of_the_step() {
        let mut beats = with_ten_heartbeats(2);
        beats.show(0, 900 * MS, 950 * MS);
        beats.end_step(930 * MS);
        assert_eq!(beats.caught_up_after(), None);
        beats.show(0, 1000 * MS, 1050 * MS);
        beats.show(0, 1000 * MS, 1150 * MS);
        assert_eq!(beats.caught_up_after(), None);
        beats.show(1, 1000 * MS, 1250 * MS);
        let took = Duration::from_millis(320);
        assert_eq!(beats.caught_up_after(), Some(took));
        // The next one is noted later than it ended.
        beats.end_step(990 * MS);
        let took = Duration::from_millis(260);
        assert_eq!(beats.caught_up_after(), Some(took));
    }

    #[test]
    fn an_outage_lasts_only_if_every_poll_finds_it() {
        let mut outage = None;
        let lost = || Some("lost".to_owned());
        let at = |seconds: u64| seconds * 1000 * MS;
        let mut lasts = |found, seconds| {
            Outage::note(&mut outage, found, at(seconds));
            outage.as_ref().is_some_and(|outage| outage.lasts(at(seconds)))
        };
        assert!(!lasts(lost(), 1));
        assert!(!lasts(lost(), 10));
        assert!(!lasts(None, 11));
        assert!(!lasts(lost(), 12));
        assert!(!lasts(lost(), 21));
        assert!(lasts(lost(), 22));
    }
}
