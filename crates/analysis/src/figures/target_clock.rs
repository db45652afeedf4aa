//! The clock of a target that takes turns within a step.

use record::TurnRow;

/// The clock by which a step was measured. In turns it stands still while other targets work.
pub(super) struct TargetClock<'t> {
    /// The target's turns; empty for a target that was measured alone.
    pub(super) turns: &'t [TurnRow],
    /// The length of the step by this clock.
    pub(super) elapsed_ns: i64,
}

impl TargetClock<'_> {
    /// Returns the length of the step by the host's clock.
    pub(super) fn host_span_ns(&self) -> i64 {
        let Some(last) = self.turns.last() else {
            return self.elapsed_ns;
        };
        let ended = self.host_start(last).saturating_add(signed(last.length_ns));
        ended.saturating_add(signed(last.idle_ns))
    }

    /// Returns the time since the step began, of a moment that is `host_ns` after that by the host's
    /// clock. Before the step and after its last turn, both clocks run alike.
    pub(super) fn own_ns(&self, host_ns: i64) -> i64 {
        let begun = self.turns.partition_point(|turn| self.host_start(turn) <= host_ns);
        let Some(turn) = begun.checked_sub(1).and_then(|index| self.turns.get(index)) else {
            return host_ns;
        };

        let since_start = host_ns.saturating_sub(self.host_start(turn));
        let is_last = begun == self.turns.len();
        let own_time_ns =
            if is_last { since_start } else { since_start.min(signed(turn.length_ns)) };
        signed(turn.began_ns).saturating_add(own_time_ns)
    }

    /// Returns the time from the target's first turn to the start of another one, by the host's
    /// clock.
    fn host_start(&self, turn: &TurnRow) -> i64 {
        let first_ns = self.turns.first().map_or(0, |first| first.at_ns);
        signed(turn.at_ns.saturating_sub(first_ns))
    }
}

/// Returns a time as it is subtracted from others. A record may be forged.
pub(super) fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_target_stands_still_between_its_turns() {
        let turn = |at_ns, began_ns| TurnRow {
            at_ns,
            began_ns,
            length_ns: 10,
            idle_ns: 1,
            ..TurnRow::default()
        };
        let turns = [turn(40, 0), turn(100, 10), turn(160, 20)];
        let clock = TargetClock { turns: &turns, elapsed_ns: 30 };
        assert_eq!(clock.host_span_ns(), 131);

        let own = [-5, 0, 9, 30, 59, 60, 65, 119, 120, 129, 140].map(|host| clock.own_ns(host));
        assert_eq!(own, [-5, 0, 9, 10, 10, 10, 15, 20, 20, 29, 40]);
    }

    #[test]
    fn the_clock_of_a_target_alone_is_the_hosts() {
        let clock = TargetClock { turns: &[], elapsed_ns: 30 };
        assert_eq!(clock.host_span_ns(), 30);
        assert_eq!([-5, 0, 40].map(|host| clock.own_ns(host)), [-5, 0, 40]);
    }
}
