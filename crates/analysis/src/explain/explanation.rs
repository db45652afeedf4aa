//! The values that the rules return. `prose` puts them in words.

use super::case::Case;
use super::cause::Cause;
use super::caveats::Caveat;
use super::difference::TargetDifference;
use super::finding::{ChangeCause, Direction, Evidence, Finding, FindingKind, Place};
use super::gap::CostGaps;
use super::witnesses::Witnesses;
use crate::compare::{ComparedStep, VarianceShare};
use crate::figures::swing::Swing;
use crate::figures::{FloorRate, Row, Sla};
use crate::settings::Difference;

/// The result of one rule.
pub(super) struct Explanation<'a> {
    pub statement: Statement<'a>,
    /// The steps of cells that the explanation is about, the most important first.
    pub places: Vec<Place<'a>>,
    pub evidence: Vec<Evidence>,
    pub caveats: Vec<CountedCaveat<'a>>,
    pub weight: f64,
}

impl Explanation<'_> {
    /// Returns the finding without its words; `None` if the explanation names no step.
    pub(super) fn finding(&self, base: &str) -> Option<Finding> {
        let places = self.places.iter().copied();
        let mut finding = Finding::about(self.statement.kind(), base, places)?;

        finding.cause = self.statement.cause();
        finding.evidence.clone_from(&self.evidence);
        finding.weight = self.weight;

        if !self.is_compared() {
            finding.base = None;
        }
        Some(finding)
    }

    /// Returns whether targets are compared with the base. Other findings are about one target
    /// alone.
    fn is_compared(&self) -> bool {
        match &self.statement {
            Statement::Unfair(_) => self.evidence.iter().any(|evidence| evidence.base.is_some()),
            Statement::SlaMissed { .. }
            | Statement::Machines(_)
            | Statement::AtFloor(_)
            | Statement::Sequence(_)
            | Statement::Swings(_) => false,
            Statement::Change(_)
            | Statement::ClientBound(_)
            | Statement::NoEffect(_)
            | Statement::HiddenCost { .. }
            | Statement::Facts { .. }
            | Statement::Work(_) => true,
        }
    }
}

/// A caveat with the number of cases that it holds for.
pub(super) struct CountedCaveat<'a> {
    pub caveat: Caveat,
    /// The first of these cases.
    pub case: &'a Case<'a>,
    pub count: usize,
    pub case_count: usize,
}

/// The statement of a finding.
pub(super) enum Statement<'a> {
    /// Throughput changed.
    Change(Change<'a>),
    /// Client threads have no time left: the share of their time in which they are busy, the
    /// largest first.
    ClientBound(Vec<(f64, &'a Case<'a>)>),
    /// The disk is the limit.
    AtFloor(AtFloor<'a>),
    /// A step after others differs from the same step right after the load.
    Sequence(SequencedStep),
    /// Clients of one step ended far apart.
    Unfair(UnfairStep),
    /// Throughput of one step swings: its targets, the largest range first.
    Swings(Vec<SwingingTarget<'a>>),
    /// A requested rate was missed.
    SlaMissed {
        /// The smallest share first.
        missed: Vec<MissedRate<'a>>,
        /// Targets that reached the rate in the step of the first.
        reached_by: Vec<&'a str>,
    },
    /// One setting differs, and throughput shows no change.
    NoEffect(NoEffect<'a>),
    /// Own CPU changed where throughput shows no change; the largest change first.
    HiddenCost { costs: Vec<(&'a ComparedStep, &'a Case<'a>)>, is_noisy: bool },
    /// Known differences between targets that were measured once.
    Facts {
        /// Large differences in cost, the largest first.
        gaps: Vec<CostGaps<'a>>,
        facts: Vec<Fact<'a>>,
    },
    /// Several machines measured the repeats.
    Machines(MachineVariance<'a>),
    /// Exact work and time, of one target; the largest change of work first, at least one.
    Work(Vec<Witnesses<'a>>),
}

/// A change of throughput with one cause, in one or several cases.
pub(super) struct Change<'a> {
    /// The cases, at least one, the most important first.
    pub cases: Vec<&'a Case<'a>>,
    /// The cause of the first.
    pub cause: Cause,
    /// The number of comparisons of throughput that these targets have.
    pub comparison_count: usize,
    /// The differences between the base and the only target, for each target that two runs share.
    pub differences: Vec<(Option<&'a str>, &'a TargetDifference)>,
    /// Neither chance nor the host makes the change, so that a setting that alone differs is the
    /// cause.
    pub is_sure: bool,
}

impl Change<'_> {
    /// Returns the cause of the first case without its figures.
    pub(super) fn cause_in_brief(&self) -> ChangeCause {
        let kind = self.cause.kind();
        let direction =
            if self.cases[0].is_slower() { Direction::Slower } else { Direction::Faster };
        let has_direction = kind != FindingKind::LevelShift;

        ChangeCause {
            kind,
            direction: has_direction.then_some(direction),
            is_too_short: self.cause.is_too_short(),
        }
    }
}

/// A step of a target that others come before, against the same step right after the load.
#[derive(Debug)]
pub(super) struct SequencedStep {
    /// The target, with its variant and clients where several were compared.
    pub who: String,
    /// The steps that come before it only in sequence.
    pub before: Vec<String>,
    /// The comparison, whose base is the step alone.
    pub compared: Box<ComparedStep>,
}

/// The requests to the disk for which operations wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FloorRequests {
    /// Fsyncs of the log.
    Commits,
    /// Reads.
    Reads,
}

/// Steps whose requests come close to the floor of the disk.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AtFloor<'a> {
    pub requests: FloorRequests,
    /// At least one, the closest first.
    pub steps: Vec<AtFloorStep<'a>>,
}

/// A typical repeat of a target in a step that the disk limits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AtFloorStep<'a> {
    /// The target, with its variant and clients where several were compared.
    pub who: String,
    pub step: &'a str,
    /// Its requests per second, in percent of the floor.
    pub percent: f64,
    pub floor: FloorRate,
    pub clients: u32,
    /// The mean size of a read.
    pub read_kb: Option<f64>,
    pub commits_per_fsync: Option<f64>,
}

impl AtFloorStep<'_> {
    /// Returns the step's own requests per second.
    pub(super) fn per_s(&self) -> f64 {
        self.percent / 100.0 * self.floor.per_s
    }
}

/// The differences between the ends of one step's clients.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UnfairStep {
    /// The name of the target with the largest percentage.
    pub worst: String,
    pub percent: f64,
    pub repeat_count: usize,
    /// The number of targets whose clients ended far apart.
    pub unfair_count: usize,
    /// The number of all targets.
    pub target_count: usize,
}

/// A target whose throughput swings in a step.
pub(super) struct SwingingTarget<'a> {
    /// The target, with its variant and clients where several were compared.
    pub who: String,
    /// A typical repeat.
    pub row: &'a Row,
    /// The swing of this repeat.
    pub swing: &'a Swing,
    /// The number of repeats with about this period.
    pub swinging_repeats: usize,
    pub repeat_count: usize,
}

/// One setting in which targets differ from the base, each with its name.
pub(super) struct NoEffect<'a> {
    /// The settings with their names: at least one, all of one name.
    pub settings: Vec<(String, &'a Difference)>,
    pub comparison_count: usize,
    /// The smallest and the largest ratio of throughput.
    pub ratios: (f64, f64),
    /// The least relative change that matters.
    pub effect: f64,
}

/// A target that missed its rate in a step.
pub(super) struct MissedRate<'a> {
    /// The target, with its variant and clients where several were compared.
    pub who: String,
    pub step: &'a str,
    /// A typical repeat.
    pub sla: &'a Sla,
    pub missed_repeats: usize,
    pub repeat_count: usize,
}

/// The known differences between the base and a target that was measured once.
pub(super) struct Fact<'a> {
    pub who: String,
    /// The steps in which fsyncs per commit differ.
    pub fsyncs: Vec<String>,
    /// Settings that differ and that the plan declares, or that count by their effective values.
    pub settings: Vec<&'a Difference>,
}

/// The variance of throughput between machines.
pub(super) struct MachineVariance<'a> {
    pub machine_count: usize,
    /// At least one, the largest share first.
    pub shares: Vec<(VarianceShare, &'a Case<'a>)>,
    /// The cases whose ratios differ between machines.
    pub differing: Vec<&'a Case<'a>>,
}

impl Statement<'_> {
    /// Returns the cause of a change of throughput.
    fn cause(&self) -> Option<ChangeCause> {
        match self {
            Self::Change(change) => Some(change.cause_in_brief()),
            _ => None,
        }
    }

    pub(super) fn kind(&self) -> FindingKind {
        match self {
            Self::Change(change) => change.cause.kind(),
            Self::ClientBound(_) => FindingKind::ClientBound,
            Self::AtFloor(_) => FindingKind::DiskFloor,
            Self::Sequence(_) => FindingKind::Sequence,
            Self::Unfair(_) => FindingKind::Unfair,
            Self::Swings(_) => FindingKind::Swing,
            Self::SlaMissed { .. } => FindingKind::SlaMissed,
            Self::NoEffect(_) => FindingKind::NoEffect,
            Self::HiddenCost { .. } => FindingKind::HiddenCost,
            Self::Facts { .. } => FindingKind::Facts,
            Self::Machines(_) => FindingKind::Machines,
            Self::Work(_) => FindingKind::Work,
        }
    }
}
