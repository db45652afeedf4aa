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
mod measured_once;
mod no_effect;
mod thresholds;
mod words;

use record::CellKey;
use serde::Serialize;

use crate::order::distinct;
use crate::{Compared, ComparedStep, Figures, Row, THROUGHPUT, counted};
use case::{Case, Pair};
pub use words::{factor, factor_within, figure, range};

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
    /// Returns true where a change is put down to something that can be acted on, not to chance or to what is not known.
    pub(crate) fn is_cause(self) -> bool {
        !matches!(self, Self::HostBusy | Self::Unexplained | Self::SlaMissed)
    }

    /// Returns the cause without figures, for a title over several steps.
    fn headline(self, slower: bool) -> String {
        let (if_slower, if_faster, what) = match self {
            Self::Fsyncs => ("more", "less", "waiting for fsyncs"),
            Self::Stall => ("more", "fewer", "seconds without progress"),
            Self::Cpu => ("more", "less", "CPU per operation"),
            Self::ProcessorWait => ("more", "less", "waiting for a processor"),
            Self::Reads => ("more", "less", "waiting for reads from storage"),
            Self::Writes => ("more", "less", "waiting for writes to storage"),
            Self::Locks => ("more", "less", "waiting for other threads"),
            Self::Handover => ("slower", "faster", "handover between client and server"),
            Self::WriteStalls if slower => return "writes stalled for longer".to_owned(),
            Self::WriteStalls => return "writes stalled less".to_owned(),
            Self::LevelShift => return "the level changed within the step".to_owned(),
            Self::HostBusy => {
                return "too much competition for processors to name a cause".to_owned();
            }
            Self::SlaMissed => return "both missed the target write rate".to_owned(),
            // The others have titles of their own.
            _ => return "unexplained".to_owned(),
        };
        format!("{} {what}", if slower { if_slower } else { if_faster })
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
    /// What a change of throughput is put down to, as in `less CPU per operation`; `None`: it is about none.
    pub cause: Option<String>,
    /// At most three sentences of a change: what, by how much and how surely; why; where else, and what differs.
    pub text: String,
    /// The figures that it rests on, of the step with the largest change.
    pub evidence: Vec<Evidence>,
    /// Reasons to doubt it, a part of a sentence each.
    pub caveats: Vec<String>,
    /// How much it matters: findings are in this order. About the logarithm of the change.
    pub weight: f64,
}

/// A step of a cell, with the workload that it is of.
type Place<'a> = (&'a CellKey, &'a str, &'a str);

fn place(step: &ComparedStep) -> Place<'_> {
    (&step.cell, &step.workload, &step.step)
}

fn place_of(row: &Row) -> Place<'_> {
    (&row.cell, &row.workload, &row.step)
}

impl Finding {
    /// Returns a finding about some places, the most important one first, of which nothing is said yet.
    pub(crate) fn about<'a>(
        kind: FindingKind,
        base: &str,
        places: impl IntoIterator<Item = Place<'a>>,
    ) -> Option<Self> {
        let places: Vec<Place<'_>> = places.into_iter().collect();
        let &(first, workload, _) = places.first()?;
        let named = |name: fn(&Place<'a>) -> &'a str| {
            let names = distinct(places.iter().map(name));
            names
                .into_iter()
                .map(str::to_owned)
                .collect::<Vec<String>>()
        };
        let targets = named(|(cell, ..)| &cell.target);
        let steps = named(|(.., step)| step);
        let has_one = |of: fn(&CellKey, &CellKey) -> bool| places.iter().all(|it| of(it.0, first));
        Some(Self {
            kind,
            target: first.target.clone(),
            base: Some(base.to_owned()),
            workload: workload.to_owned(),
            variant: first
                .variant
                .clone()
                .filter(|_| has_one(|a, b| a.variant == b.variant)),
            clients: has_one(|a, b| a.clients == b.clients).then_some(first.clients),
            step: steps.first().filter(|_| steps.len() == 1).cloned(),
            targets,
            steps,
            title: String::new(),
            cause: None,
            text: String::new(),
            evidence: Vec::new(),
            caveats: Vec::new(),
            weight: 0.0,
        })
    }

    /// `q100`, or `3 steps`
    fn place(&self) -> String {
        let several = || counted(self.steps.len(), "step");
        self.step.clone().unwrap_or_else(several)
    }
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

    /// Returns true where the two values differ by more than background work moves them, and are not both next to nothing.
    pub fn has_changed(&self) -> bool {
        let both = self.base.zip(self.value);
        let both = both.map(|(base, value)| Pair { base, value });
        both.is_some_and(|pair| pair.max() >= thresholds::NOTHING && !pair.is_same())
    }
}

/// What is explained.
#[derive(Clone, Copy)]
struct Context<'a> {
    figures: &'a Figures,
    compared: &'a Compared,
    /// Whether the names of places need these parts, since there are several.
    names_clients: bool,
    names_variants: bool,
}

impl<'a> Context<'a> {
    fn new(figures: &'a Figures, compared: &'a Compared) -> Self {
        let steps = || compared.rows.iter().zip(compared.rows.iter().skip(1));
        Self {
            figures,
            compared,
            names_clients: steps().any(|(a, b)| a.cell.clients != b.cell.clients),
            names_variants: steps().any(|(a, b)| a.cell.variant != b.cell.variant),
        }
    }

    /// `scan`, `scan at 8 clients`, `scan of small at 8 clients`
    fn named(self, name: &str, cell: &CellKey) -> String {
        let (variant, clients) = cell.load();
        let variant = variant.filter(|_| self.names_variants);
        let variant = variant.map(|variant| format!(" of {variant}"));
        let clients = self.names_clients.then(|| match clients {
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
    let context = Context::new(figures, compared);
    let throughput = compared.rows.iter().filter(|row| row.metric == THROUGHPUT);
    let cases: Vec<Case<'_>> = throughput
        .filter_map(|row| Case::new(context, row))
        .collect();
    let mut findings = change::findings(context, &cases);
    findings.extend(clients::bound(&cases));
    findings.extend(clients::unfair(context));
    findings.extend(clients::sla_missed(context));
    findings.extend(no_effect::findings(context, &cases));
    findings.extend(hidden_cost::findings(context, &cases));
    findings.extend(measured_once::facts(context, &cases));
    findings.sort_by(|a, b| {
        let by_weight = b.weight.total_cmp(&a.weight);
        by_weight.then_with(|| a.title.cmp(&b.title))
    });
    findings
}

#[cfg(test)]
mod tests;
