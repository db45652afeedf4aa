//! The facts of a compared step that a sentence may state.

use super::case::{Case, Pair};
use super::conflicts::{ConflictCount, changed_conflicts};
use super::thresholds::{NAMED_CHANGE, shown_change};
use crate::compare::{Interval, NamedFunction, OWN_CPU, StateDifference};

/// A compared step of a target, without its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseFacts {
    /// The base.
    pub base: String,
    /// The target, or the run where runs are compared.
    pub target: String,
    /// The target, with its run where runs are compared: `pg17.base`, `run 2 of pg17.base`.
    pub who: String,
    /// The step.
    pub step: String,
    /// The step, with its variant and clients where several were compared: `scan of small at 8
    /// clients`.
    pub place: String,
    /// The variant, where several were compared.
    pub named_variant: Option<String>,
    /// Clients.
    pub clients: u32,
    /// The speed over the base's: of throughput, or of an operation by its response time.
    pub ratio: f64,
    /// The interval of the true ratio; `None` without repeats.
    pub interval: Option<Interval>,
    /// The number of the target's repeats that count.
    pub repeat_count: usize,
    /// The name of an operation: `query`.
    pub operation: String,
    /// The unit of throughput: `queries/s`.
    pub rate_unit: String,
    /// Own CPU over the base's, if it is shown to have changed with the time of an operation.
    pub own_cpu_ratio: Option<f64>,
    /// The CPU of the engine's threads that serve no connection, in microseconds per operation, if it is
    /// shown to have changed by more time than own CPU.
    pub background_cpu_us: Option<Pair>,
    /// The CPU of the server's whole process, in microseconds per operation.
    pub server_cpu_us: Option<Pair>,
    /// The sides whose threads cannot be told apart, base first, if the CPU of an operation is
    /// therefore that of the server's whole process.
    pub without_threads: Vec<String>,
    /// The function in which most of the change of CPU is, by the profiles of both targets.
    pub function: Option<NamedFunction>,
    /// The conflicts between operations whose number is shown to have changed with the time of an
    /// operation.
    pub conflicts: Vec<ConflictCount>,
    /// The size of all indexes when the step began, in GB, if they differ enough to matter.
    pub index_gb: Option<Pair>,
    /// The wait of sessions that makes up enough of the change.
    pub wait: Option<StateDifference>,
    /// A statement that the engine runs with another plan.
    pub plan: Option<ChangedPlan>,
}

/// A statement with another plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedPlan {
    /// The statement.
    pub statement: String,
    /// The first line of the base's plan that the target's lacks.
    pub base: String,
    /// The first line of the target's plan that the base's lacks.
    pub target: String,
    /// The number of other statements whose plans differ.
    pub other_count: usize,
}

impl CaseFacts {
    /// Returns true if the target is slower than the base.
    pub fn is_slower(&self) -> bool {
        self.ratio < 1.0
    }
}

impl Case<'_> {
    /// Returns what sentences may state of the case.
    pub(super) fn facts(&self) -> CaseFacts {
        let step = self.compared;
        let without_threads = match self.process_cpu() {
            Some(_) => self.without_threads().into_iter().map(str::to_owned).collect(),
            None => Vec::new(),
        };

        CaseFacts {
            base: self.base_name().to_owned(),
            target: self.target().to_owned(),
            who: self.who(),
            step: step.step.clone(),
            place: self.place(),
            named_variant: self
                .context
                .named_variant(step.cell.variant.as_deref())
                .map(str::to_owned),
            clients: step.cell.clients,
            ratio: self.ratio,
            interval: self.interval,
            repeat_count: step.values.len(),
            operation: self.noun().to_owned(),
            rate_unit: self.rate(),
            own_cpu_ratio: self.shown_own_cpu_ratio(),
            background_cpu_us: self.changed_background_cpu(),
            server_cpu_us: self.metric("server_cpu_us_per_op"),
            without_threads,
            function: self.named_function().cloned(),
            conflicts: changed_conflicts(self, self.is_slower()),
            index_gb: self.changed_index_gb(),
            wait: self.named_wait().cloned(),
            plan: self.changed_plan(),
        }
    }

    /// Returns own CPU over the base's, if it is shown to have changed in the direction of an operation's
    /// time, by enough to be named.
    pub(super) fn shown_own_cpu_ratio(&self) -> Option<f64> {
        let ratio = shown_change(self.of_metric(OWN_CPU)?, NAMED_CHANGE)?;
        ((ratio > 1.0) == self.is_slower()).then_some(ratio)
    }

    /// Returns the first statement whose plans differ in a line.
    fn changed_plan(&self) -> Option<ChangedPlan> {
        let plans = self.changed_plans();

        for plan in plans {
            if let Some([base, target]) = plan.first_lines() {
                let statement = plan.statement.clone();
                return Some(ChangedPlan { statement, base, target, other_count: plans.len() - 1 });
            }
        }
        None
    }
}
