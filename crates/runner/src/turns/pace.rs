//! The length of the turns of a step.

use std::time::Duration;

use load::Turn;
use plan::TurnLength;

/// The length of a turn in the first block, and the least in later ones, if the plan leaves the length
/// to Assay. `docs/turns.md` has the measurements.
const SHORTEST: Duration = Duration::from_millis(20);
/// The most to which slow operations extend a turn.
const LONGEST: Duration = Duration::from_millis(500);

/// The operations of a connection in a turn: with fewer, the last one of each turn decides too much.
const OPERATIONS_PER_TURN: u32 = 10;

/// The length of the turns of one step, which is the same for all targets.
pub struct Pace {
    length: Duration,
    /// The longest mean time of an operation in the first block; `None` once the length is chosen, or if
    /// the plan has it.
    slowest: Option<Duration>,
}

impl Pace {
    pub fn new(length: TurnLength) -> Self {
        match length {
            TurnLength::Fixed(length) => Self { length, slowest: None },
            TurnLength::Auto => Self { length: SHORTEST, slowest: Some(Duration::ZERO) },
        }
    }

    /// Returns the length of a turn in this block. The first turn after the first block chooses it.
    pub fn length_in(&mut self, block: u32) -> Duration {
        if block > 0
            && let Some(slowest) = self.slowest.take()
        {
            self.length = (slowest * OPERATIONS_PER_TURN).clamp(SHORTEST, LONGEST);
        }
        self.length
    }

    /// Takes note of how long operations took in a turn.
    pub fn note(&mut self, turn: &Turn) {
        let Some(slowest) = &mut self.slowest else {
            return;
        };

        let operations: u64 = turn.work.ok.values().sum();
        let time_ns = turn.length_ns.saturating_mul(turn.connection_count as u64);
        let of_operation = match time_ns.checked_div(operations) {
            Some(ns) => Duration::from_nanos(ns).min(LONGEST),
            // No operation succeeded, so that its time is unknown.
            None => LONGEST,
        };
        *slowest = of_operation.max(*slowest);
    }
}

#[cfg(test)]
mod tests {
    use load::Work;

    use super::*;

    fn turn(ms: u64, operations: u64, connection_count: usize) -> Turn {
        let ok = [("op".to_owned(), operations)].into();
        Turn {
            length_ns: ms * 1_000_000,
            work: Work { ok, ..Work::default() },
            connection_count,
            ..Turn::default()
        }
    }

    /// Returns the length of turns after a first block of these.
    fn chosen(turns: &[Turn]) -> Duration {
        let mut pace = Pace::new(TurnLength::Auto);
        assert_eq!(pace.length_in(0), SHORTEST);
        turns.iter().for_each(|turn| pace.note(turn));
        let length = pace.length_in(1);
        // Later turns change nothing.
        pace.note(&turn(500, 1, 1));
        assert_eq!(pace.length_in(2), length);
        length
    }

    #[test]
    fn the_slowest_target_has_ten_operations_of_each_connection_in_a_turn() {
        assert_eq!(chosen(&[turn(20, 400, 1), turn(20, 300, 1)]), SHORTEST);
        assert_eq!(chosen(&[turn(20, 400, 1), turn(20, 4, 1)]), Duration::from_millis(50));
        assert_eq!(chosen(&[turn(20, 16, 4)]), Duration::from_millis(50));
    }

    #[test]
    fn a_turn_has_an_end_even_where_operations_have_none() {
        assert_eq!(chosen(&[turn(20, 0, 1)]), LONGEST);
        assert_eq!(chosen(&[turn(10_000, 1, 1)]), LONGEST);
    }

    #[test]
    fn the_length_of_a_plan_stays() {
        let mut pace = Pace::new(TurnLength::Fixed(Duration::from_millis(70)));
        pace.note(&turn(20, 0, 1));
        assert_eq!(pace.length_in(1), Duration::from_millis(70));
    }
}
