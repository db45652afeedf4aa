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
        let since_ns = outage.as_ref().map_or(now_ns, |it| it.since_ns);
        *outage = found.map(|reason| Self { since_ns, reason });
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
    pub error: Option<String>,
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
    /// The replicas, in the order of their numbers.
    pub replicas: Vec<Shown>,
    /// The end of the last step.
    step_end_ns: u64,
}

impl Heartbeats {
    pub fn new(replicas: usize) -> Self {
        Self {
            committed: VecDeque::new(),
            replicas: (0..replicas).map(|_| Shown::default()).collect(),
            step_end_ns: 0,
        }
    }

    /// Notes that the primary has committed a heartbeat.
    pub fn commit(&mut self, heartbeat_ns: u64, now_ns: u64) {
        self.committed.push_back((heartbeat_ns, now_ns));
    }

    /// Notes that a replica shows a heartbeat.
    pub fn show(&mut self, replica: usize, newest_ns: u64, now_ns: u64) {
        let shown = &mut self.replicas[replica];
        shown.error = None;
        shown.newest_ns = newest_ns;
        shown.looked_at_ns = now_ns;
        if newest_ns >= self.step_end_ns {
            shown.caught_up_at_ns.get_or_insert(now_ns);
        }
        let oldest_ns = self.replicas.iter().map(|it| it.newest_ns).min();
        while self.committed.front().map(|it| it.0) <= oldest_ns && !self.committed.is_empty() {
            self.committed.pop_front();
        }
    }

    /// Notes that a replica did not show its heartbeats.
    pub fn fail(&mut self, replica: usize, error: String) {
        self.replicas[replica].error = Some(error);
    }

    /// Returns the lag of a replica: how long ago the primary had committed the oldest heartbeat
    /// that the replica does not show; 0 if it shows all of them. The lag is as of the last
    /// poll, or as of now if the replica has not answered for two intervals.
    pub fn lag_ns(&self, replica: usize, now_ns: u64) -> u64 {
        let shown = &self.replicas[replica];
        let hangs = now_ns.saturating_sub(shown.looked_at_ns) > 2 * INTERVAL.as_nanos() as u64;
        let at_ns = if hangs { now_ns } else { shown.looked_at_ns };
        let mut committed = self.committed.iter();
        let missing = committed.find(|(heartbeat_ns, _)| *heartbeat_ns > shown.newest_ns);
        missing.map_or(0, |(_, committed_ns)| at_ns.saturating_sub(*committed_ns))
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
        let late = replicas.position(|it| it.caught_up_at_ns.is_none());
        late.unwrap_or(0)
    }

    /// Returns how long after the end of the step all replicas were seen to have everything until
    /// then; `None`: not yet.
    pub fn caught_up_after(&self) -> Option<Duration> {
        let times: Option<Vec<u64>> = self.replicas.iter().map(|it| it.caught_up_at_ns).collect();
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
            outage.as_ref().is_some_and(|it| it.lasts(at(seconds)))
        };
        assert!(!lasts(lost(), 1));
        assert!(!lasts(lost(), 10));
        assert!(!lasts(None, 11));
        assert!(!lasts(lost(), 12));
        assert!(!lasts(lost(), 21));
        assert!(lasts(lost(), 22));
    }
}
