//! Findings in words: what changed, by how much, which resource accounts for it, and what speaks against that. Made from the
//! figures by stated rules alone; the rules and their thresholds are in `docs/findings.md`.

mod against;
mod apart;
mod case;
mod cause;
mod change;
mod clients;
mod counters;
mod hidden;
mod no_effect;
mod thresholds;
mod words;

pub use words::counted;

use serde::Serialize;

use crate::{Compared, ComparedStep, Figures, THROUGHPUT, Verdict};
use case::{Case, Pair};

/// The findings that a report shows; the rest are counted.
pub const FINDINGS_SHOWN_MAX: usize = 12;

/// Which rule a finding is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// CPU per operation moved with throughput.
    Cpu,
    /// CPU that is neither the client's nor the server's did, or time that a hypervisor took away.
    HostBusy,
    /// Reads per operation did.
    Reads,
    /// Reads became smaller and more, or larger and fewer.
    ReadSize,
    /// Fsyncs per commit moved with throughput.
    Fsyncs,
    /// Bytes written per operation did.
    Writes,
    /// A log-structured merge tree held writes up for longer, or less long.
    WriteStalls,
    /// Context switches per operation moved with throughput.
    ContextSwitches,
    /// Seconds without progress account for the change.
    Stall,
    /// The rate changed its level within the step; on one of them nothing is different.
    LevelShift,
    /// Clients wait longer, and none of the resources says for what.
    Waiting,
    /// Nothing accounts for it.
    Unexplained,
    /// The client is what limits.
    ClientBound,
    /// Clients of one step ended far apart.
    Unfair,
    /// The rate of writes that was asked for was not had.
    SlaMissed,
    /// A setting differs and changes nothing that can be seen.
    NoEffect,
    /// A cost per operation changed, and throughput did not.
    HiddenCost,
}

impl FindingKind {
    /// The same without figures, for a title over several steps.
    fn headline(self, slower: bool) -> &'static str {
        match (self, slower) {
            (Self::Cpu, true) => "more CPU per operation",
            (Self::Cpu, false) => "less CPU per operation",
            (Self::HostBusy, true) => "the host was busier with others",
            (Self::HostBusy, false) => "the host was less busy with others",
            (Self::Reads, true) => "more reads per operation",
            (Self::Reads, false) => "fewer reads per operation",
            (Self::ReadSize, true) => "smaller reads, and more of them",
            (Self::ReadSize, false) => "larger reads, and fewer of them",
            (Self::Fsyncs, true) => "more fsyncs per commit",
            (Self::Fsyncs, false) => "fewer fsyncs per commit",
            (Self::Writes, true) => "more is written per operation",
            (Self::Writes, false) => "less is written per operation",
            (Self::WriteStalls, true) => "writes are stalled for longer",
            (Self::WriteStalls, false) => "writes are stalled less",
            (Self::ContextSwitches, true) => "more context switches per operation",
            (Self::ContextSwitches, false) => "fewer context switches per operation",
            (Self::Stall, true) => "more seconds without progress",
            (Self::Stall, false) => "fewer seconds without progress",
            (Self::LevelShift, _) => "the level changed within the step",
            (Self::Waiting, true) => "clients wait longer",
            (Self::Waiting, false) => "clients wait less",
            (Self::Unexplained, _) => "no figure accounts for it",
            (Self::ClientBound, _) => "the client is the limit",
            (Self::Unfair, _) => "clients ended far apart",
            (Self::SlaMissed, _) => "the rate of writes was missed",
            (Self::NoEffect, _) => "no change shown",
            (Self::HiddenCost, true) => "more CPU per operation at the same throughput",
            (Self::HiddenCost, false) => "less CPU per operation at the same throughput",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Which rule it is of.
    pub kind: FindingKind,
    /// The target that the text tells most of.
    pub target: String,
    /// All that it is about.
    pub targets: Vec<String>,
    /// What they are compared with; `None` where nothing is.
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
    /// One line.
    pub title: String,
    /// The paragraph.
    pub text: String,
    /// The figures that it rests on: of the step that the text tells most of.
    pub evidence: Vec<Evidence>,
    /// What speaks against it, a part of a sentence each.
    pub against: Vec<String>,
    /// How much it matters: findings are in this order. About the logarithm of the change.
    pub weight: f64,
}

/// A figure of a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// What it is.
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
}

/// What a place needs to be told apart from others.
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
            clients: others(|a, b| a.clients != b.clients),
            variants: others(|a, b| a.variant != b.variant),
        }
    }

    /// `scan`, `scan at 8 clients`, `scan of small at 8 clients`
    fn place(self, step: &ComparedStep) -> String {
        self.named(&step.step, step.variant.as_deref(), step.clients)
    }

    fn named(self, step: &str, variant: Option<&str>, clients: u32) -> String {
        let variant = variant.filter(|_| self.variants);
        let variant = variant.map(|variant| format!(" of {variant}"));
        let clients = self.clients.then(|| match clients {
            1 => " at 1 client".to_owned(),
            clients => format!(" at {clients} clients"),
        });
        format!(
            "{step}{}{}",
            variant.unwrap_or_default(),
            clients.unwrap_or_default()
        )
    }
}

/// What can be said of a comparison in words: the most important first. Only steps whose comparison shows a change, or single
/// runs that are more than 5 % apart, are explained; what is invalid explains nothing.
pub fn explain(figures: &Figures, compared: &Compared) -> Vec<Finding> {
    let naming = Naming::of(compared);
    let throughput = || {
        let rows = compared.rows.iter();
        rows.filter(|row| row.metric == THROUGHPUT)
    };
    let changed = |row: &&ComparedStep| match row.verdict {
        Verdict::Faster | Verdict::Slower => true,
        Verdict::Single => row
            .ratio
            .is_some_and(|ratio| ratio.max(1.0 / ratio) >= 1.0 + thresholds::SINGLE_CHANGE),
        _ => false,
    };
    let cases = throughput()
        .filter(changed)
        .filter_map(|row| Case::new(figures, &compared.base, row));
    let mut findings = change::findings(figures, compared, cases.collect(), naming);
    let all = throughput().filter_map(|row| Case::new(figures, &compared.base, row));
    findings.extend(clients::bound(all.collect(), naming));
    findings.extend(clients::unfair(figures, compared, naming));
    findings.extend(clients::sla_missed(figures, compared, naming));
    findings.extend(no_effect::findings(figures, compared));
    findings.extend(hidden::findings(figures, compared, naming));
    findings.sort_by(|a, b| {
        let by_weight = b.weight.total_cmp(&a.weight);
        by_weight.then_with(|| a.title.cmp(&b.title))
    });
    findings
}

#[cfg(test)]
mod tests;
