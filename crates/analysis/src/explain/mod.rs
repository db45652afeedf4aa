//! Findings in words: what changed, by how much and how surely, why, and the caveats. Made from the figures by stated rules
//! alone; the rules and their thresholds are in `docs/findings.md`.

mod accounting;
mod case;
mod cause;
mod caveats;
mod change;
mod clients;
mod counters;
mod difference;
mod hidden_cost;
mod no_effect;
mod single;
mod thresholds;
mod words;

use std::fmt;

use record::CellKey;
use serde::Serialize;

use crate::{Compared, ComparedStep, Figures, THROUGHPUT, Verdict};
use case::{Case, Pair};

/// The findings that a report shows; the rest are counted.
pub const FINDINGS_SHOWN_MAX: usize = 12;

/// The rule that made a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Commits wait for fsyncs, or longer for them.
    Fsyncs,
    /// A log-structured merge tree stalled writes.
    WriteStalls,
    /// Seconds without progress account for the change.
    Stall,
    /// CPU of client and server on the connections that do the operations.
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
    /// The rate changed its level within the step; on one of them nothing differs.
    LevelShift,
    /// There was too much competition for processors to name a cause.
    HostBusy,
    /// No measured figure accounts for the change.
    Unexplained,
    /// The client is the limit.
    ClientBound,
    /// Clients of one step ended far apart.
    Unfair,
    /// The target rate was missed.
    SlaMissed,
    /// A setting differs and shows no effect.
    NoEffect,
    /// CPU of engine and clients per operation changed, and throughput shows no change.
    HiddenCost,
    /// Known differences between targets that were measured once: no cause.
    Facts,
}

impl FindingKind {
    /// Returns the cause without figures, for a title over several steps.
    fn headline(self, slower: bool) -> &'static str {
        match (self, slower) {
            (Self::Fsyncs, true) => "more waiting for fsyncs",
            (Self::Fsyncs, false) => "less waiting for fsyncs",
            (Self::WriteStalls, true) => "writes stalled for longer",
            (Self::WriteStalls, false) => "writes stalled less",
            (Self::Stall, true) => "more seconds without progress",
            (Self::Stall, false) => "fewer seconds without progress",
            (Self::Cpu, true) => "more CPU per operation",
            (Self::Cpu, false) => "less CPU per operation",
            (Self::ProcessorWait, true) => "more waiting for a processor",
            (Self::ProcessorWait, false) => "less waiting for a processor",
            (Self::Reads, true) => "more waiting for reads from storage",
            (Self::Reads, false) => "less waiting for reads from storage",
            (Self::Writes, true) => "more waiting for writes to storage",
            (Self::Writes, false) => "less waiting for writes to storage",
            (Self::Locks, true) => "more waiting for other threads",
            (Self::Locks, false) => "less waiting for other threads",
            (Self::Handover, true) => "slower handover between client and server",
            (Self::Handover, false) => "faster handover between client and server",
            (Self::LevelShift, _) => "the level changed within the step",
            (Self::HostBusy, _) => "too much competition for processors to name a cause",
            (Self::Unexplained, _) => "unexplained",
            (Self::ClientBound, _) => "the client is the limit",
            (Self::Unfair, _) => "clients ended far apart",
            (Self::SlaMissed, _) => "the target rate was missed",
            (Self::NoEffect, _) => "no effect shown",
            (Self::HiddenCost, true) => "more own CPU per operation",
            (Self::HiddenCost, false) => "less own CPU per operation",
            (Self::Facts, _) => "measured once",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule that made it.
    pub kind: FindingKind,
    /// The target with the largest change.
    pub target: String,
    /// All targets that it is about.
    pub targets: Vec<String>,
    /// The target that they are compared with; `None`: they are not compared.
    pub base: Option<String>,
    /// The workload.
    pub workload: String,
    /// Its variant; `None`: there is none, or it is about several.
    pub variant: Option<String>,
    /// Clients; `None`: it is about several numbers of them.
    pub clients: Option<u32>,
    /// The step; `None`: it is about several.
    pub step: Option<String>,
    /// All of them.
    pub steps: Vec<String>,
    /// One line: what changed, by how much, and why.
    pub title: String,
    /// At most three sentences of a change: what, by how much and how surely; why; where else, and what differs.
    pub text: String,
    /// The figures that it rests on, of the step with the largest change.
    pub evidence: Vec<Evidence>,
    /// Reasons to doubt it, a part of a sentence each.
    pub caveats: Vec<String>,
    /// How much it matters: findings are in this order. About the logarithm of the change.
    pub weight: f64,
}

/// A figure of a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// With the base.
    pub base: Option<f64>,
    /// With the target.
    pub value: Option<f64>,
    /// Value over base, where both are more than nothing.
    pub ratio: Option<f64>,
}

impl Evidence {
    fn new(name: &str, unit: &str, pair: Pair) -> Self {
        Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            base: Some(pair.base),
            value: Some(pair.value),
            ratio: pair.ratio(),
        }
    }

    /// Returns true where the two values differ by more than background work moves them.
    pub fn has_changed(&self) -> bool {
        let both = self.base.zip(self.value);
        both.is_some_and(|(base, value)| !Pair { base, value }.is_same())
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) = (&self.name, &self.unit);
        match (self.base, self.value) {
            (Some(base), Some(value)) => write!(f, "{name} {}", words::change(base, value, unit)),
            (None, Some(only)) | (Some(only), None) => {
                write!(f, "{name} {} {unit}", words::figure(only))
            }
            (None, None) => f.write_str(name),
        }
    }
}

/// The parts of a place's name that several places need.
#[derive(Clone, Copy)]
struct Naming {
    clients: bool,
    variants: bool,
}

impl Naming {
    fn of(compared: &Compared) -> Self {
        let mut rows = compared.rows.iter();
        let first = rows.next();
        let others = |differs: fn(&ComparedStep, &ComparedStep) -> bool| {
            first.is_some_and(|first| compared.rows.iter().any(|row| differs(first, row)))
        };
        Self {
            clients: others(|a, b| a.cell.clients != b.cell.clients),
            variants: others(|a, b| a.cell.variant != b.cell.variant),
        }
    }

    /// `scan`, `scan at 8 clients`, `scan of small at 8 clients`
    fn place(self, step: &ComparedStep) -> String {
        self.named(&step.step, &step.cell)
    }

    fn named(self, name: &str, cell: &CellKey) -> String {
        let (variant, clients) = cell.load();
        let variant = variant.filter(|_| self.variants);
        let variant = variant.map(|variant| format!(" of {variant}"));
        let clients = self.clients.then(|| match clients {
            1 => " at 1 client".to_owned(),
            clients => format!(" at {clients} clients"),
        });
        format!(
            "{name}{}{}",
            variant.unwrap_or_default(),
            clients.unwrap_or_default()
        )
    }
}

/// Explains a comparison, the most important finding first. Only a verdict has a cause: steps that were measured once, that
/// are too noisy or invalid have none.
pub fn explain(figures: &Figures, compared: &Compared) -> Vec<Finding> {
    let naming = Naming::of(compared);
    let cases = |is_wanted: fn(&ComparedStep) -> bool| -> Vec<Case<'_>> {
        let rows = compared.rows.iter();
        rows.filter(|row| row.metric == THROUGHPUT && is_wanted(row))
            .filter_map(|row| Case::new(figures, &compared.base, row))
            .collect()
    };
    let has_changed = |row: &ComparedStep| matches!(row.verdict, Verdict::Faster | Verdict::Slower);
    let mut findings = change::findings(figures, compared, cases(has_changed), naming);
    findings.extend(clients::bound(cases(|_| true), naming));
    findings.extend(clients::unfair(figures, compared, naming));
    findings.extend(clients::sla_missed(figures, compared, naming));
    findings.extend(no_effect::findings(figures, compared));
    findings.extend(hidden_cost::findings(figures, compared, naming));
    findings.extend(single::facts(figures, compared, naming));
    findings.sort_by(|a, b| {
        let by_weight = b.weight.total_cmp(&a.weight);
        by_weight.then_with(|| a.title.cmp(&b.title))
    });
    findings
}

#[cfg(test)]
mod tests;
