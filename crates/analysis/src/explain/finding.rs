//! A finding, and the figures below it.

use std::cmp::Ordering;

use record::CellKey;
use serde::Serialize;

use super::case::{BACKGROUND_CPU, Case, Pair};
use super::evidence::{SERVER_PROCESS_CPU, evidence_title};
use super::explanation::Explanation;
use super::statement::{CountedCaveat, Statement};
use super::thresholds::NOTHING;
use crate::compare::{ComparedStep, OWN_CPU};
use crate::figures::Row;
use crate::order::distinct;

/// The findings that a report shows; the others are counted.
pub const FINDINGS_SHOWN_MAX: usize = 12;

/// The rule that made a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Commits wait for fsyncs, or wait longer.
    Fsyncs,
    /// A log-structured merge tree stalled writes.
    WriteStalls,
    /// Seconds without progress account for the change.
    Stall,
    /// Attempts failed and were retried.
    Retries,
    /// CPU of the connections that do the operations, in client and server.
    Cpu,
    /// Threads waited for a processor, and a setting limits processors or threads.
    ProcessorWait,
    /// Waiting for reads from storage.
    Reads,
    /// Waiting for writes to storage.
    Writes,
    /// Waiting for other threads.
    Locks,
    /// Handover between client and server.
    Handover,
    /// The rate changed its level within the step, and matched the other target's at one of the
    /// levels.
    LevelShift,
    /// There was too much competition for processors to name a cause.
    HostBusy,
    /// No measured figure accounts for the change.
    Unexplained,
    /// The client is the bottleneck.
    ClientBound,
    /// The disk is the bottleneck.
    DiskFloor,
    /// A step after others differs from the same step right after the load.
    Sequence,
    /// Clients of one step ended far apart.
    Unfair,
    /// Throughput rises and falls with a period.
    Swing,
    /// The requested rate was missed.
    SlaMissed,
    /// A setting differs and shows no effect.
    NoEffect,
    /// Response times changed where a schedule decides the throughput.
    Response,
    /// CPU of engine and clients per operation changed, and throughput shows no change.
    HiddenCost,
    /// Known differences between targets that were measured once: no cause.
    Facts,
    /// Several machines measured the repeats.
    Machines,
    /// Exact work and time, as they agree or differ.
    Work,
}

impl FindingKind {
    /// Returns true where the change has a known cause that can be acted on.
    pub(crate) fn is_cause(self) -> bool {
        !matches!(self, Self::HostBusy | Self::Unexplained | Self::SlaMissed)
    }
}

/// The direction of a change of throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// An operation takes longer.
    Slower,
    /// An operation takes less time.
    Faster,
}

/// The cause of a change of throughput, without its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeCause {
    /// The kind of the finding.
    pub kind: FindingKind,
    /// The direction of the change; `None` for a level that shifted, which is one cause of gains and
    /// of losses.
    pub direction: Option<Direction>,
    /// Only a longer step would tell the cause.
    pub is_too_short: bool,
    /// The number of fsyncs per commit changed, and not only the wait for each.
    pub is_fsync_count: bool,
}

impl ChangeCause {
    /// Returns true where an operation takes longer because of the cause.
    pub fn is_slower(self) -> bool {
        self.direction == Some(Direction::Slower)
    }
}

/// One finding. The crate `report` puts it in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule that made it.
    pub kind: FindingKind,
    /// The target with the largest change.
    pub target: String,
    /// All targets of the finding.
    pub targets: Vec<String>,
    /// The target that the others are compared with; `None` if nothing is compared.
    pub base: Option<String>,
    /// The workload.
    pub workload: String,
    /// The variant; `None` if there is none, or several.
    pub variant: Option<String>,
    /// The number of clients; `None` if there are several numbers.
    pub clients: Option<u32>,
    /// The step; `None` if there are several.
    pub step: Option<String>,
    /// All steps of the finding.
    pub steps: Vec<String>,
    /// The cause of a change of throughput; `None` if throughput did not change.
    pub cause: Option<ChangeCause>,
    /// The change with its size and certainty, its cause, the other places, and the differences.
    pub statement: Statement,
    /// The figures of the step with the largest change.
    pub evidence: Vec<Evidence>,
    /// Reasons to doubt the finding.
    pub caveats: Vec<CountedCaveat>,
    /// The importance of the finding, about the logarithm of the change. Findings are sorted by
    /// it.
    pub weight: f64,
}

/// A step of a cell, with its workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellStep<'a> {
    pub cell: &'a CellKey,
    pub workload: &'a str,
    pub step: &'a str,
}

/// Returns the place of a comparison.
pub(super) fn place(step: &ComparedStep) -> CellStep<'_> {
    CellStep { cell: &step.cell, workload: &step.workload, step: &step.step }
}

/// Returns the place of a row.
pub(super) fn place_of(row: &Row) -> CellStep<'_> {
    CellStep { cell: &row.cell, workload: &row.workload, step: &row.step }
}

impl Finding {
    /// Returns the result of a rule as a finding against the base; `None` if it names no step.
    pub(super) fn new(base: &str, explanation: Explanation<'_>) -> Option<Self> {
        let is_compared = explanation.is_compared();
        let Explanation { statement, places, evidence, caveats, weight } = explanation;
        let CellStep { cell: first, workload, .. } = *places.first()?;

        let targets = distinct_names(places.iter().map(|place| place.cell.target.as_str()));
        let steps = distinct_names(places.iter().map(|place| place.step));

        // What all places share is part of what the finding is about.
        let shares_variant = places.iter().all(|place| place.cell.variant == first.variant);
        let shares_clients = places.iter().all(|place| place.cell.clients == first.clients);
        let only_step = if steps.len() == 1 { steps.first().cloned() } else { None };

        Some(Self {
            kind: statement.kind(),
            target: first.target.clone(),
            base: is_compared.then(|| base.to_owned()),
            workload: workload.to_owned(),
            variant: first.variant.clone().filter(|_| shares_variant),
            clients: shares_clients.then_some(first.clients),
            step: only_step,
            targets,
            steps,
            cause: statement.cause(),
            statement,
            evidence,
            caveats,
            weight,
        })
    }

    /// Compares two findings: the more important one comes first. Of the same weight, those about
    /// several targets come before those about one, which are in the order of names, then of steps.
    pub(super) fn importance(&self, other: &Self) -> Ordering {
        let by_weight = other.weight.total_cmp(&self.weight);
        by_weight.then_with(|| (self.subject(), &self.steps).cmp(&(other.subject(), &other.steps)))
    }

    /// Returns the target, or the setting, that the finding is about; `None` if it is about several
    /// targets, or what they share.
    fn subject(&self) -> Option<&str> {
        match &self.statement {
            Statement::ClientBound(_) | Statement::Facts(_) | Statement::Machines(_) => None,
            Statement::Change(_) if self.targets.len() > 1 => None,
            Statement::Unfair(step) if step.unfair_count > 1 => None,

            // Other targets of these are only listed.
            Statement::AtFloor(at_floor) => Some(&at_floor.steps[0].who),
            Statement::Swings(targets) => Some(&targets[0].who),
            Statement::Unfair(step) => Some(&step.worst),
            Statement::Sequence(step) => Some(&step.who),
            Statement::NoEffect(no_effect) => Some(&no_effect.settings[0].setting.name),
            Statement::Change(_)
            | Statement::SlaMissed(_)
            | Statement::Response(_)
            | Statement::HiddenCost(_)
            | Statement::Work(_) => Some(&self.target),
        }
    }
}

fn distinct_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    distinct(names).into_iter().map(str::to_owned).collect()
}

/// A figure of a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// The name.
    pub name: String,
    /// The unit.
    pub unit: String,
    /// The figure of the base.
    pub base: Option<f64>,
    /// The figure of the target.
    pub value: Option<f64>,
    /// Value over base, where both are above zero.
    pub ratio: Option<f64>,
    /// The repeats don't show that the two figures differ.
    pub is_noise: bool,
    /// The figure that the finding's title names, or background CPU that changed by more than own CPU in
    /// the title. Tables have it right after throughput.
    pub is_cause: bool,
}

impl Evidence {
    pub(super) fn new(name: &str, unit: &str, pair: Pair) -> Self {
        Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            base: Some(pair.base),
            value: Some(pair.value),
            ratio: pair.ratio(),
            is_noise: false,
            is_cause: false,
        }
    }

    /// Marks the figure of a metric as the one that the title names.
    pub(super) fn mark_cause(evidence: &mut [Self], metric: &'static str) {
        Self::mark_named(evidence, evidence_title(metric));
    }

    /// Marks the figure with this name as one that the title names.
    pub(super) fn mark_named(evidence: &mut [Self], name: &str) {
        for figure in evidence.iter_mut().filter(|figure| figure.name == name) {
            figure.is_cause = true;
        }
    }

    /// Marks own CPU, or what stands for it, as what the title names, and background CPU that changed by
    /// more.
    pub(super) fn mark_own_cpu(evidence: &mut [Self], case: &Case<'_>) {
        // Where an engine works on its clients' threads, own CPU is theirs.
        let of_clients = evidence_title("op_client_cpu_us");
        for name in [evidence_title(OWN_CPU), SERVER_PROCESS_CPU, of_clients] {
            if evidence.iter().any(|figure| figure.name == name) {
                Self::mark_named(evidence, name);
                break;
            }
        }

        if case.changed_background_cpu().is_some() {
            Self::mark_cause(evidence, BACKGROUND_CPU);
        }
    }

    /// Returns a figure without a base.
    pub(super) fn single(name: String, unit: &str, value: f64) -> Self {
        Self {
            name,
            unit: unit.to_owned(),
            base: None,
            value: Some(value),
            ratio: None,
            is_noise: false,
            is_cause: false,
        }
    }

    /// Returns the throughput of base and target, which the table of a finding always shows.
    pub(super) fn throughput(unit: &str, pair: Pair) -> Self {
        Self::new(THROUGHPUT_NAME, unit, pair)
    }

    /// Returns the exact work of base and target, whose changes are shown however small they are.
    pub(super) fn work(pair: Pair) -> Self {
        Self::new(WORK_NAME, "instructions/op", pair)
    }

    /// Returns true where a table shows the figure: it is throughput or exact work, is named in the title,
    /// has no base, or differs by more than background work moves it.
    pub fn is_shown(&self) -> bool {
        let figures = self.base.zip(self.value);
        let pair = figures.map(|(base, value)| Pair { base, value });
        let has_changed = pair.is_none_or(|pair| pair.max() >= NOTHING && !pair.is_same());
        self.name == THROUGHPUT_NAME || self.name == WORK_NAME || self.is_cause || has_changed
    }
}

/// The name of the figure that each table begins with.
const THROUGHPUT_NAME: &str = "throughput";
const WORK_NAME: &str = "exact work";
