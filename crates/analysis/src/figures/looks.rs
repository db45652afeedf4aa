//! The number of looks at the results of some runs, which decides how certain a verdict has to be.

use record::{Run, Status};
use serde::Serialize;

/// The times at which the results of repeats are looked at, and which look this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Looks {
    /// Once: the number of repeats was chosen in advance.
    #[default]
    Once,
    /// At any time, and for the last time when results say so.
    AnyTime,
    /// At any time, while repeats are added. There may be a last look when the time is up.
    Growing,
    /// For the last time: no result, but the time that was given to the run has ended it.
    TimeUp,
    /// The same, after the run was resumed.
    TimeUpAgain,
}

impl Looks {
    /// The most looks of [`Self::TimeUpAgain`]: resumed any more often, a run is looked at like one
    /// that grows.
    pub(crate) const AGAIN_MAX: usize = 4;

    /// Returns how the results of a run are looked at.
    pub(super) fn of_run(run: &Run) -> Self {
        if !run.is_open_ended {
            return Self::Once;
        }

        let has_ended_in_time = run.is_time_up && run.status == Status::Complete;
        if !has_ended_in_time {
            return Self::Growing;
        }

        match run.invocations.len() {
            0 | 1 => Self::TimeUp,
            count if count <= 1 + Self::AGAIN_MAX => Self::TimeUpAgain,
            _ => Self::Growing,
        }
    }

    /// Returns how the results of two runs are looked at together.
    pub(super) fn with(self, other: Self) -> Self {
        if self == Self::Once && other == Self::Once { Self::Once } else { Self::Growing }
    }
}

#[cfg(test)]
mod tests {
    use record::Invocation;

    use super::*;

    #[test]
    fn a_run_ends_by_the_clock_only_if_it_is_complete() {
        let invocations = |count: usize| vec![Invocation::default(); count];
        let mut run = Run {
            is_open_ended: true,
            is_time_up: true,
            status: Status::Complete,
            invocations: invocations(1),
            ..Run::default()
        };
        assert_eq!(Looks::of_run(&run), Looks::TimeUp);

        run.invocations = invocations(5);
        assert_eq!(Looks::of_run(&run), Looks::TimeUpAgain);
        run.invocations = invocations(6);
        assert_eq!(Looks::of_run(&run), Looks::Growing);

        run.invocations = invocations(1);
        run.status = Status::Incomplete;
        assert_eq!(Looks::of_run(&run), Looks::Growing);
        run = Run { is_time_up: false, status: Status::Complete, ..run };
        assert_eq!(Looks::of_run(&run), Looks::Growing);
        assert_eq!(Looks::of_run(&Run { is_open_ended: false, ..run }), Looks::Once);
    }
}
