//! The connections of a step, which this process or the load ranks open and run.

use std::collections::BTreeMap;
use std::time::Duration;

use load::{Limits, Sink, StepEnd, StepOutcome};
use plan::StepRun;
use record::{Check, Step};
use workload::Task;

use super::StepRunner;
use crate::ground::server_threads::find_server_threads;
use crate::remote::{LoadRanks, RankedStep};
use crate::steps::exact::{CountedLoad, Counting, StepToCount};

/// Connections that still wait for a reply this long after the end of the step are cut off.
const GRACE: Duration = Duration::from_secs(300);

/// The load of a step whose connections are open.
pub(super) enum StepLoad<'a> {
    /// This process makes it.
    Local {
        tasks: Vec<Task>,
        /// The number among the loads of a cell: the warm-up and the load of each step.
        number: usize,
    },
    /// Load ranks make it.
    Ranks(&'a LoadRanks, RankedStep),
}

impl StepLoad<'_> {
    /// Returns the role of the connections that do each kind of operation.
    pub(super) fn roles(&self) -> BTreeMap<String, String> {
        let mut roles = BTreeMap::new();
        match self {
            Self::Local { tasks, .. } => {
                for task in tasks {
                    for kind in task.program.kinds() {
                        roles.insert(kind.name.to_owned(), task.role.to_owned());
                    }
                }
            }
            Self::Ranks(_, step) => {
                for connection in step.connections() {
                    for kind in &connection.kinds {
                        roles.insert(kind.clone(), connection.role.clone());
                    }
                }
            }
        }

        roles
    }
}

impl<'a> StepRunner<'a> {
    /// Returns the limits of a step; without a time, it ends when its work is done.
    pub(super) fn limits(&self, time: Option<Duration>) -> Limits {
        Limits {
            time,
            error_limit: self.policy.error_limit,
            attempts: self.policy.attempts,
            grace: GRACE,
        }
    }

    /// Opens the connections of a step or its warm-up.
    pub(super) fn prepare(
        &mut self,
        number: usize,
        is_warm_up: bool,
        limits: Limits,
    ) -> anyhow::Result<StepLoad<'a>> {
        if let Some(ranks) = &self.session.ranks {
            let mut step = ranks.prepare(number, is_warm_up, limits)?;
            step.find_server_threads(self.engine.engine());
            return Ok(StepLoad::Ranks(ranks, step));
        }

        let mut tasks = self.runner.tasks(number, is_warm_up)?;
        find_server_threads(self.engine.engine(), &mut tasks);

        // The warm-up is a load of its own, before that of its step.
        Ok(StepLoad::Local { tasks, number: 2 * number + usize::from(!is_warm_up) })
    }

    /// Runs the load of a step, and records which rank did what.
    pub(super) fn run_load(
        &self,
        load: StepLoad<'_>,
        limits: Limits,
        sink: &mut dyn Sink,
        record: &mut Step,
    ) -> anyhow::Result<StepOutcome> {
        let (clock, stop) = (&self.session.clock, &self.session.stop);
        match load {
            StepLoad::Local { tasks, number } => match self.seat {
                Some(seat) => seat.run_load(number, tasks, limits, stop, sink),
                None => Ok(load::run(tasks, limits, clock, stop, sink)),
            },
            // Load ranks tell of pauses in their own processes, not in this one.
            StepLoad::Ranks(ranks, step) => {
                let ranked = ranks.run(&step, sink)?;
                record.ranks = ranked.ranks;
                record.held_up = ranked.pauses;
                Ok(ranked.outcome)
            }
        }
    }

    /// Returns what the counting of a step needs to know of it.
    pub(super) fn step_to_count(&self, planned: &StepRun<'_>, record: &Step) -> StepToCount<'_> {
        StepToCount {
            kind: record.kind,
            has_quota: planned.time.is_none(),
            settle_limits: self.settle_limits(),
            stop: &self.session.stop,
        }
    }

    /// Runs the load of a step, and counts the engine's work.
    pub(super) fn run_counted(
        &self,
        load: StepLoad<'_>,
        limits: Limits,
        sink: &mut dyn Sink,
        counting: &Counting,
        step: &StepToCount<'_>,
    ) -> anyhow::Result<CountedLoad> {
        let StepLoad::Local { tasks, .. } = load else {
            anyhow::bail!("load ranks cannot count the work of an engine");
        };

        let (clock, stop) = (&self.session.clock, &self.session.stop);
        let run = |tasks| load::run(tasks, limits, clock, stop, sink);
        Ok(counting.run_load(step, self.engine, tasks, run))
    }

    /// Takes note of what a step or its warm-up did, in all processes, and returns the checks of
    /// what it read.
    pub(super) fn apply(
        &mut self,
        number: usize,
        outcome: &StepOutcome,
    ) -> anyhow::Result<Vec<Check>> {
        let (summaries, totals) = (&outcome.summaries, &outcome.totals);
        // A failed step's summaries would leave the ranks with another state than this process has.
        if let Some(ranks) = &self.session.ranks
            && outcome.end == StepEnd::Complete
        {
            ranks.apply(number, summaries, totals)?;
        }

        Ok(self.runner.apply(number, summaries, totals))
    }
}
