//! The offset of another rank's clock.

use serde::{Deserialize, Serialize};

/// The difference between another clock and ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// The other clock's time minus ours, in nanoseconds.
    pub offset_ns: i64,
    /// The true offset is at most this far away: half of the round trip.
    pub uncertainty_ns: u64,
}

/// One question for the time: when it was asked and answered by our clock, and the answer.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    pub asked_at: u64,
    pub theirs: u64,
    pub answered_at: u64,
}

impl ClockOffset {
    /// Returns the offset by the reading with the shortest round trip, as NTP does (RFC 5905,
    /// section 10). Whatever delays a message adds to its round trip, so the shortest is the
    /// most exact.
    pub fn of(readings: &[ClockReading]) -> Option<Self> {
        let best = readings.iter().min_by_key(|reading| reading.answered_at - reading.asked_at)?;
        let round_trip = best.answered_at - best.asked_at;
        let middle = best.asked_at + round_trip / 2;

        Some(Self {
            offset_ns: best.theirs.cast_signed() - middle.cast_signed(),
            uncertainty_ns: round_trip.div_ceil(2),
        })
    }

    /// Returns the other clock's time at a time of ours.
    pub fn theirs(self, ours: u64) -> u64 {
        ours.saturating_add_signed(self.offset_ns)
    }

    /// Returns our time at theirs.
    pub fn ours(self, theirs: u64) -> u64 {
        theirs.saturating_add_signed(-self.offset_ns)
    }
}

/// Returns whether more readings would hardly be more exact: several have nearly the shortest round
/// trip. A busy processor delays most of them.
pub fn is_settled(readings: &[ClockReading]) -> bool {
    const ENOUGH: usize = 4;
    let round_trip = |reading: &ClockReading| reading.answered_at - reading.asked_at;
    let shortest = readings.iter().map(round_trip).min().unwrap_or(0);
    let near = |reading: &&ClockReading| round_trip(reading) <= shortest + shortest / 2;
    readings.len() >= 2 * ENOUGH && readings.iter().filter(near).count() >= ENOUGH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_true_offset_is_within_the_uncertainty_whichever_way_is_slow() {
        const TRUE: i64 = 5_000;
        let reading = |asked_at: u64, there: u64, back: u64| ClockReading {
            asked_at,
            theirs: (asked_at + there).saturating_add_signed(TRUE),
            answered_at: asked_at + there + back,
        };
        for (there, back) in [(10, 10), (0, 90), (90, 0), (1, 2)] {
            let readings = [reading(1_000, there, back), reading(9_000, 100, 3_000)];
            let offset = ClockOffset::of(&readings).unwrap();
            let error = (offset.offset_ns - TRUE).unsigned_abs();
            assert!(error <= offset.uncertainty_ns, "{offset:?} of {there} and {back}");
            assert_eq!(offset.uncertainty_ns, (there + back).div_ceil(2));
            assert_eq!(offset.ours(offset.theirs(9_000)), 9_000);
        }
        assert_eq!(ClockOffset::of(&[]), None);
    }

    #[test]
    fn readings_that_were_delayed_are_not_enough() {
        let reading =
            |round_trip: u64| ClockReading { asked_at: 0, theirs: 0, answered_at: round_trip };
        let all = |round_trips: &[u64]| -> Vec<ClockReading> {
            round_trips.iter().map(|ns| reading(*ns)).collect()
        };
        assert!(!is_settled(&all(&[10; 7])));
        assert!(is_settled(&all(&[10; 8])));
        assert!(!is_settled(&all(&[10, 90, 90, 90, 90, 90, 90, 90, 90])));
        assert!(is_settled(&all(&[10, 90, 12, 90, 14, 90, 15, 90])));
    }
}
