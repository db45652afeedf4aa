//! The statements of findings and the reasons to doubt them, as values. The crate `report` puts them
//! in words.

use words::OpRole;

pub use super::accounting::WhyUnexplained;
pub use super::case::Pair;
pub use super::case_facts::{CaseFacts, ChangedPlan};
pub use super::cause::{Cause, Detail, LevelShift, PartOfTime, PartShare, StallReason};
pub use super::caveats::{Caveat, InheritedDebt, LargeReadAhead};
pub use super::conflicts::{Conflict, ConflictCount, RetryCause};
pub use super::difference::{OtherBuild, TargetDifference};
pub use super::fsync_counts::FsyncCount;
pub use super::gap::{CostGap, CostGaps};
pub use super::thresholds::{
    BEGINS_FACTOR, EXPLAINS, FLOOR_DRIFT_TOLD, NOTHING, SHORT_SECONDS, UNFAIR_PCT, WHOLE_MAX,
};
pub use super::witnesses::{Agreement, OtherTime, ProfiledFunction, StepWitnesses};

use super::case::Case;
use super::finding::{ChangeCause, Direction, FindingKind};
use crate::compare::{Interval, VarianceShare};
use crate::figures::FloorRate;
use crate::figures::swing::Swing;
use crate::settings::Difference;

/// The statement of a finding.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// Throughput changed.
    Change(ThroughputChange),
    /// Client threads have no time left; the busiest first, at least one.
    ClientBound(Vec<BusyClients>),
    /// The disk is the bottleneck.
    AtFloor(AtFloor),
    /// A step after others differs from the same step right after the load.
    Sequence(SequencedStep),
    /// Clients of one step ended far apart.
    Unfair(UnfairStep),
    /// Throughput of one step swings: its targets, the largest range first, at least one.
    Swings(Vec<SwingingTarget>),
    /// A requested rate was missed.
    SlaMissed(MissedRates),
    /// One setting differs, and throughput shows no change.
    NoEffect(NoEffect),
    /// Response times changed where a schedule decides the throughput.
    Response(ResponseChange),
    /// Own CPU changed where throughput shows no change.
    HiddenCost(HiddenCost),
    /// Known differences between targets that were measured once.
    Facts(KnownDifferences),
    /// Several machines measured the repeats.
    Machines(MachineVariance),
    /// Exact work and time, of one target; the largest change of work first, at least one.
    Work(Vec<StepWitnesses>),
}

/// A change of throughput with one cause, in one or several cases.
#[derive(Clone, Debug, PartialEq)]
pub struct ThroughputChange {
    /// The cases, at least one, the most important first.
    pub cases: Vec<CaseFacts>,
    /// The cause of the first.
    pub cause: Cause,
    /// The fsyncs per commit that a setting adds to, or saves in, the first case of a single target,
    /// where the change of own CPU is named.
    pub fsyncs: Option<FsyncCount>,
    /// The number of comparisons of throughput that these targets have; of response times, that of
    /// the cases.
    pub comparison_count: usize,
    /// The differences between the base and the only target; none if there are several targets.
    pub differences: Vec<SharedDifference>,
    /// Neither chance nor the host makes the change, so that a setting that alone differs is the
    /// cause.
    pub is_sure: bool,
}

/// The difference between the base and a target that two runs may share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedDifference {
    /// The target that both runs share, where runs are compared.
    pub shared: Option<String>,
    /// The difference.
    pub difference: TargetDifference,
}

/// A case whose client threads have no time left.
#[derive(Clone, Debug, PartialEq)]
pub struct BusyClients {
    /// The share of their time in which they are busy.
    pub share: f64,
    /// The case.
    pub case: CaseFacts,
}

/// A step of a target that others come before, against the same step right after the load.
#[derive(Clone, Debug, PartialEq)]
pub struct SequencedStep {
    /// The target, with its variant and clients where several were compared.
    pub who: String,
    /// The step.
    pub step: String,
    /// The steps that come before it only in sequence.
    pub before: Vec<String>,
    /// The size of all indexes when the step began, in GB, alone and in sequence, if it grew enough
    /// to matter.
    pub index_gb: Option<Pair>,
    /// The throughput in sequence over that alone.
    pub ratio: f64,
    /// The interval of the true ratio.
    pub interval: Option<Interval>,
    /// The number of repeats in sequence.
    pub repeat_count: usize,
}

/// The requests to the disk for which operations wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloorRequests {
    /// Fsyncs of the log.
    Commits,
    /// Reads.
    Reads,
}

/// Steps whose requests come close to the floor of the disk.
#[derive(Clone, Debug, PartialEq)]
pub struct AtFloor {
    /// The requests.
    pub requests: FloorRequests,
    /// At least one, the closest first.
    pub steps: Vec<AtFloorStep>,
}

/// A typical repeat of a target in a step that the disk limits.
#[derive(Clone, Debug, PartialEq)]
pub struct AtFloorStep {
    /// The target, with its variant and clients where several were compared.
    pub who: String,
    /// The step.
    pub step: String,
    /// Requests per second, in percent of the floor.
    pub percent: f64,
    /// The floor.
    pub floor: FloorRate,
    /// Clients.
    pub clients: u32,
    /// The mean size of a read.
    pub read_kb: Option<f64>,
    /// The number of commits that share an fsync.
    pub commits_per_fsync: Option<f64>,
}

impl AtFloorStep {
    /// Returns the step's own requests per second.
    pub fn per_s(&self) -> f64 {
        self.percent / 100.0 * self.floor.per_s
    }
}

/// The differences between the ends of one step's clients.
#[derive(Clone, Debug, PartialEq)]
pub struct UnfairStep {
    /// The name of the target with the largest percentage.
    pub worst: String,
    /// The time by which its slowest client ended later than its fastest, in percent.
    pub percent: f64,
    /// The number of its repeats.
    pub repeat_count: usize,
    /// The number of targets whose clients ended far apart.
    pub unfair_count: usize,
    /// The number of all targets.
    pub target_count: usize,
}

/// A target whose throughput swings in a step.
#[derive(Clone, Debug, PartialEq)]
pub struct SwingingTarget {
    /// The target, with its variant and clients where several were compared.
    pub who: String,
    /// The swing of a typical repeat.
    pub swing: Swing,
    /// The number of repeats with about this period.
    pub swinging_repeats: usize,
    /// The number of all repeats.
    pub repeat_count: usize,
}

/// The requested rates that one workload missed.
#[derive(Clone, Debug, PartialEq)]
pub struct MissedRates {
    /// The smallest share first, at least one.
    pub missed: Vec<MissedRate>,
    /// Targets that reached the rate in the step of the first.
    pub reached_by: Vec<String>,
}

/// A target that missed its rate in a step.
#[derive(Clone, Debug, PartialEq)]
pub struct MissedRate {
    /// The target, with its variant and clients where several were compared.
    pub who: String,
    /// The step.
    pub step: String,
    /// The role of the operations that have the rate.
    pub role: OpRole,
    /// The requested rate, in the unit of the role.
    pub requested: f64,
    /// The rate of a typical repeat.
    pub achieved: f64,
    /// The number of repeats that missed the rate.
    pub missed_repeats: usize,
    /// The number of all repeats.
    pub repeat_count: usize,
}

impl MissedRate {
    /// Returns the unit of both rates.
    pub fn unit(&self) -> &'static str {
        self.role.facts().requested_unit
    }
}

/// One setting in which targets differ from the base.
#[derive(Clone, Debug, PartialEq)]
pub struct NoEffect {
    /// The setting of each target: at least one, all of one name.
    pub settings: Vec<ChangedSetting>,
    /// The number of comparisons.
    pub comparison_count: usize,
    /// The smallest ratio of throughput.
    pub ratio_min: f64,
    /// The largest ratio of throughput.
    pub ratio_max: f64,
    /// The least relative change that matters.
    pub effect: f64,
}

/// A setting that differs from the base's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedSetting {
    /// The target, with its run where runs are compared.
    pub who: String,
    /// The setting.
    pub setting: Difference,
}

/// Response times of one target that changed where a schedule decides the throughput.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseChange {
    /// The changed times of the first case's main operation: the mean, the 99th percentile, or both.
    pub times: Vec<ChangedTime>,
    /// Throughput is too noisy to say in at least one of the cases; in the others, it is equal.
    pub is_noisy: bool,
    /// The same as a change of speed: operations that take twice as long are half as fast.
    pub speed: ThroughputChange,
}

/// A response time that changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangedTime {
    /// The metric.
    pub metric: &'static str,
    /// The means of the repeats, in microseconds.
    pub us: Pair,
    /// The time over the base's.
    pub ratio: f64,
    /// The interval of the true ratio.
    pub interval: Option<Interval>,
}

/// Own CPU of one target that changed where throughput shows no change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HiddenCost {
    /// The largest change first, at least one.
    pub costs: Vec<ChangedCost>,
    /// Throughput is too noisy to say in the first of the steps; otherwise, it is equal.
    pub is_noisy: bool,
    /// The fsyncs per commit that changed in the first step: they say more than CPU.
    pub fsyncs: Option<FsyncCount>,
    /// The conflicts between operations whose number is shown to have changed with the CPU of the
    /// first step.
    pub conflicts: Vec<ConflictCount>,
    /// The number of retries per operation, if they make up enough of the change.
    pub retries: Option<Pair>,
    /// The mean size of device reads in the first step, in KB, if it is shown to have changed.
    pub read_kb: Option<Pair>,
}

/// Own CPU of one step that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedCost {
    /// The CPU over the base's.
    pub ratio: f64,
    /// The interval of the true ratio.
    pub interval: Option<Interval>,
    /// The number of the target's repeats that count.
    pub repeat_count: usize,
    /// The comparison of throughput in this step.
    pub case: CaseFacts,
}

/// The known differences between the base and targets that were measured once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownDifferences {
    /// Large differences in cost, the largest first.
    pub gaps: Vec<CostGaps>,
    /// The other differences of each target.
    pub facts: Vec<Fact>,
}

/// The known differences between the base and one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The target, with its run where runs are compared.
    pub who: String,
    /// The steps in which fsyncs per commit differ.
    pub fsyncs: Vec<String>,
    /// Settings that differ and that the plan declares, or that count by their effective values.
    pub settings: Vec<Difference>,
}

/// The variance of throughput between machines.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineVariance {
    /// The number of machines.
    pub machine_count: usize,
    /// At least one, the largest share first.
    pub shares: Vec<MachineShare>,
    /// The cases whose ratios differ between machines.
    pub differing: Vec<CaseFacts>,
}

/// The share of the variance of a case's throughput that is between machines.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineShare {
    /// The share.
    pub share: VarianceShare,
    /// The case.
    pub case: CaseFacts,
}

/// A caveat with the number of cases that it holds for.
#[derive(Clone, Debug, PartialEq)]
pub struct CountedCaveat {
    /// The caveat.
    pub caveat: Caveat,
    /// The first of these cases.
    pub case: CaseFacts,
    /// The number of these cases.
    pub count: usize,
    /// The number of all cases of the finding.
    pub case_count: usize,
}

impl CountedCaveat {
    /// Returns a caveat of a finding that rests on one case.
    pub(super) fn of_one(case: &Case<'_>, caveat: Caveat) -> Self {
        Self { caveat, case: case.facts(), count: 1, case_count: 1 }
    }
}

impl Statement {
    /// Returns the cause of a change of throughput.
    pub fn cause(&self) -> Option<ChangeCause> {
        match self {
            Self::Change(change) => Some(change.cause_in_brief()),
            _ => None,
        }
    }

    /// Returns the kind of a finding with this statement.
    pub fn kind(&self) -> FindingKind {
        match self {
            Self::Change(change) => change.cause.kind(),
            Self::ClientBound(_) => FindingKind::ClientBound,
            Self::AtFloor(_) => FindingKind::DiskFloor,
            Self::Sequence(_) => FindingKind::Sequence,
            Self::Unfair(_) => FindingKind::Unfair,
            Self::Swings(_) => FindingKind::Swing,
            Self::SlaMissed(_) => FindingKind::SlaMissed,
            Self::NoEffect(_) => FindingKind::NoEffect,
            Self::Response(_) => FindingKind::Response,
            Self::HiddenCost(_) => FindingKind::HiddenCost,
            Self::Facts(_) => FindingKind::Facts,
            Self::Machines(_) => FindingKind::Machines,
            Self::Work(_) => FindingKind::Work,
        }
    }
}

impl ThroughputChange {
    /// Returns the cause of the first case without its figures.
    pub fn cause_in_brief(&self) -> ChangeCause {
        let kind = self.cause.kind();
        let direction =
            if self.cases[0].is_slower() { Direction::Slower } else { Direction::Faster };
        let has_direction = kind != FindingKind::LevelShift;

        ChangeCause {
            kind,
            direction: has_direction.then_some(direction),
            is_too_short: self.cause.is_too_short(),
            is_fsync_count: self.cause.is_fsync_count(),
        }
    }
}
