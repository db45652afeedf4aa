//! The version of the run directory's format.

use serde::{Deserialize, Serialize};

/// A version of the run directory's format. A reader understands all minor versions of its own
/// major version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatVersion {
    /// Changes when an older reader would misunderstand the record.
    pub major: u32,
    /// Changes when something is added.
    pub minor: u32,
}

impl std::fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The version that this Assay writes. A field that a minor version adds has a serde default, so
/// that readers understand earlier minor versions. Readers skip unknown fields.
///
/// - 1.0: the first version. Earlier records belong to no released version, whatever version they
///   name.
/// - 1.1: JSON files end with their checksum. Runs list their cells and cells their steps with
///   checksums, steps name their cell, and cells their run. Also [`RateSearch::repeats`](crate::RateSearch::repeats), and
///   `not_had` became [`Cell::unmet_options`](crate::Cell::unmet_options). [`Ops::role`](crate::Ops::role) and [`Step::main_role`](crate::Step::main_role) say what a
///   kind of operation means; without them, the kind's name does.
/// - 1.2: [`Cell::database`](crate::Cell::database): a cell may begin with a copy of a kept database, and leave out the
///   steps that load.
/// - 1.3: [`Build::commit`](crate::Build::commit): the commit that Assay made a build from.
/// - 1.4: [`Step::commands`](crate::Step::commands): what ran before and after a step.
/// - 1.5: [`Invocation::disk_floors`](crate::Invocation::disk_floors): what the disk can do for a program alone.
///   [`WorkloadSteps::alone`](crate::WorkloadSteps::alone): a step that is measured right after the load. [`Run::design`](crate::Run::design): the
///   levels of the targets of a designed experiment.
/// - 1.6: [`Step::system_calls`](crate::Step::system_calls): how many system calls of each kind the engine made.
/// - 1.7: [`Run::imported`](crate::Run::imported) and [`Step::imported`](crate::Step::imported): what other tools measured.
/// - 1.8: [`Run::bases`](crate::Run::bases): a base for each engine or build.
/// - 1.9: [`Cell::has_host_metrics`](crate::Cell::has_host_metrics): a server's host that is not Assay's own was sampled.
/// - 1.10: [`Ops::rolled_back`](crate::Ops::rolled_back): rollbacks that a workload means.
/// - 1.11: [`KeptDatabase::made_by`](crate::KeptDatabase::made_by) and [`KeptDatabase::after_step`](crate::KeptDatabase::after_step): a kept database may be
///   that after any step.
/// - 1.12: [`Step::homes`](crate::Step::homes): the rows for which clients work. [`Step::pauses`](crate::Step::pauses): their
///   think and keying times. [`Step::per_minute`](crate::Step::per_minute): the name of a throughput per minute.
///   [`Cell::procedures_left`](crate::Cell::procedures_left): what a killed run left in a server.
/// - 1.13: [`Ops::retried_ns`](crate::Ops::retried_ns): the time of attempts that were retried.
///   [`Role::LockWaitTime`](crate::Role::LockWaitTime): the time of waits for locks on data.
///   [`Run::max_rates`](crate::Run::max_rates): rates that are shares of highest rates, and cells of the kind
///   [`words::CellKind::Unlimited`] that measure these.
pub const FORMAT: FormatVersion = FormatVersion { major: 1, minor: 13 };

impl FormatVersion {
    /// Returns whether the JSON files have checksums.
    pub(crate) fn has_sums(self) -> bool {
        (self.major, self.minor) >= (1, 1)
    }
}
