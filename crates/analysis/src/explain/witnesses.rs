//! Joins the witnesses of a change: time with its interval, exact work, and functions.

use super::case::{Case, Context, Pair};
use super::caveats::Caveat;
use super::explanation::Explanation;
use super::finding::{CellStep, Evidence};
use super::statement::{CountedCaveat, Statement};
use super::thresholds::{EXPLAINS, WORK_SAME};
use crate::compare::{
    ChangedFunction, ComparedStep, ComparedWork, Interval, NamedFunction, OWN_CPU, THROUGHPUT,
    Verdict, WorkVerdict, plain_function_name,
};
use crate::figures::Row;
use crate::order::{grouped, sort_largest_first};

/// The weight of a change of work, relative to the same change of throughput.
const WEIGHT: f64 = 0.4;

/// The agreement of work and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// Both changed alike, and work accounts for much of the change of time.
    Certain,
    /// Both changed in one direction, and work accounts for a small part of the change of time.
    SmallPart,
    /// They changed in opposite directions.
    Opposite,
    /// Time changed, and work did not.
    SameWork,
    /// Work changed, and time shows no change.
    SameTime,
    /// Work changed, and time is too noisy to say.
    NoisyTime,
    /// Work changed, and time was not compared.
    UnknownTime,
}

/// The reason for another time with the same work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherTime {
    /// Operations wait: CPU per operation shows no change.
    Waits,
    /// The same instructions take another time: CPU per operation changed with the time.
    Memory,
    /// Either of both.
    Either,
}

/// A function that a profile names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfiledFunction {
    /// The name of the function.
    pub name: String,
    /// Exact work names the same function.
    pub is_same: bool,
}

/// Exact work, time and profiles of a step as witnesses of its change.
#[derive(Clone, Debug, PartialEq)]
pub struct StepWitnesses {
    /// The agreement of work and time.
    pub agreement: Agreement,
    /// The step.
    pub step: String,
    /// The change of work: 0.02 is 2% more.
    pub change: f64,
    /// The base's instructions per operation.
    pub base_instructions: f64,
    /// The target's instructions per operation.
    pub target_instructions: f64,
    /// The relative difference of exact cells of one target.
    pub floor: f64,
    /// The least change that would be shown.
    pub shown_from: f64,
    /// Throughput over the base's, with the fewest clients; `None` if there is none to compare.
    pub ratio: Option<f64>,
    /// The interval of the true ratio.
    pub interval: Option<Interval>,
    /// The reason for another time where work is the same.
    pub other_time: OtherTime,
    /// The function with most of the change of work.
    pub function: Option<ChangedFunction>,
    /// The function with most of the change in the other direction, if it is of similar size.
    pub opposite: Option<ChangedFunction>,
    /// The function that the profile names, if throughput changed.
    pub profiled: Option<ProfiledFunction>,
}

/// The witnesses of a step.
#[derive(Clone, Copy)]
struct Witnesses<'a> {
    agreement: Agreement,
    work: &'a ComparedWork,
    /// The comparison of throughput with the fewest clients.
    time: Option<&'a ComparedStep>,
    /// The case of that comparison.
    case: Option<&'a Case<'a>>,
    /// The verdict on own CPU with as many clients; more CPU is slower.
    cpu: Option<Verdict>,
}

impl<'a> Witnesses<'a> {
    /// Returns the change of work: 0.02 is 2% more.
    fn change(&self) -> f64 {
        self.work.change().unwrap_or(0.0)
    }

    fn place(&self) -> CellStep<'a> {
        let cell = self.time.map_or(&self.work.cell, |time| &time.cell);
        CellStep { cell, workload: &self.work.workload, step: &self.work.step }
    }

    /// Returns the function that the profile names, if throughput changed.
    fn profiled(&self) -> Option<&'a NamedFunction> {
        self.time.filter(|time| time.verdict.is_change())?;
        self.case?.named_function()
    }

    /// Divides by the CPU time of operations.
    fn other_time(&self) -> OtherTime {
        let time = self.time.map(|time| time.verdict);
        match self.cpu {
            Some(Verdict::Equal) => OtherTime::Waits,
            Some(cpu @ (Verdict::Slower | Verdict::Faster)) if Some(cpu) == time => {
                OtherTime::Memory
            }
            _ => OtherTime::Either,
        }
    }

    /// Returns the witnesses without their rows.
    fn facts(&self) -> StepWitnesses {
        let function = self.work.main_function();
        let profiled = self.profiled().map(|profiled| ProfiledFunction {
            name: profiled.name.clone(),
            is_same: function
                .is_some_and(|function| plain_function_name(&profiled.name) == function.name),
        });

        StepWitnesses {
            agreement: self.agreement,
            step: self.work.step.clone(),
            change: self.change(),
            base_instructions: self.work.base_mean().unwrap_or_default(),
            target_instructions: self.work.target_mean().unwrap_or_default(),
            floor: self.work.floor.unwrap_or(0.0),
            shown_from: self.work.shown_from.unwrap_or(0.0),
            ratio: self.time.and_then(|time| time.ratio),
            interval: self.time.and_then(|time| time.interval),
            other_time: self.other_time(),
            function: function.cloned(),
            opposite: self.work.opposite_function().cloned(),
            profiled,
        }
    }

    fn pair(&self) -> Option<Pair> {
        Some(Pair { base: self.work.base_mean()?, value: self.work.target_mean()? })
    }
}

/// Returns one explanation for each target and what work and time say together of its steps.
pub(super) fn explain<'a>(context: Context<'a>, cases: &'a [Case<'a>]) -> Vec<Explanation<'a>> {
    let mut all = Vec::new();
    for work in context.compared.work.iter().filter(|work| work.part.connection.is_some()) {
        if let Some(witnesses) = witnesses(context, cases, work) {
            let key = (work.cell.target.as_str(), witnesses.agreement, is_more(&witnesses));
            all.push((key, witnesses));
        }
    }
    grouped(all).into_iter().filter_map(|(_, group)| explanation(group)).collect()
}

/// Returns whether a finding is about more work, or more time if work is the same.
fn is_more(witnesses: &Witnesses<'_>) -> bool {
    match witnesses.agreement {
        Agreement::SameWork => witnesses.time.is_some_and(|time| time.verdict == Verdict::Slower),
        _ => witnesses.change() > 0.0,
    }
}

/// Returns what the witnesses of a connection say; `None` if there is nothing to say.
fn witnesses<'a>(
    context: Context<'a>,
    cases: &'a [Case<'a>],
    work: &'a ComparedWork,
) -> Option<Witnesses<'a>> {
    let time = time_of(context, work);
    let case = time.and_then(|time| cases.iter().find(|case| std::ptr::eq(case.compared, time)));
    if !is_main(context, work) {
        return None;
    }

    let cpu = time.and_then(|time| {
        let mut rows = context.compared.rows.iter();
        rows.find(|row| {
            row.metric == OWN_CPU && row.place() == time.place() && row.cell == time.cell
        })
    });
    let agreement = agreement(work, time)?;
    Some(Witnesses { agreement, work, time, case, cpu: cpu.map(|row| row.verdict) })
}

/// Returns the comparison of throughput with the fewest clients: work is counted on one.
fn time_of<'a>(context: Context<'a>, work: &ComparedWork) -> Option<&'a ComparedStep> {
    let rows = context.compared.rows.iter().filter(|row| {
        row.metric == THROUGHPUT
            && (&row.workload, &row.step) == (&work.workload, &work.step)
            && row.cell.target == work.cell.target
            && row.cell.variant == work.cell.variant
    });
    rows.min_by_key(|row| row.cell.clients)
}

/// Returns whether a connection does the main operation of its step. A step without one has its
/// first connection.
fn is_main(context: Context<'_>, work: &ComparedWork) -> bool {
    let of_step = |row: &&Row| row.step == work.step && row.workload == work.workload;
    let mut exact = context.figures.exact.iter().map(|step| &step.row).filter(of_step);
    let main = exact.find_map(|row| row.main_op.as_ref());

    let connections = context.compared.work.iter().filter(|other| {
        other.part.connection.is_some()
            && (&other.cell, &other.workload, &other.step)
                == (&work.cell, &work.workload, &work.step)
    });

    let does_main =
        |other: &&ComparedWork| main.is_some_and(|main| other.part.operations.contains(main));
    let of_main = connections.clone().find(does_main).or_else(|| connections.clone().next());
    of_main.is_some_and(|of_main| std::ptr::eq(of_main, work))
}

/// Returns what work and time say together; `None` if work is silent, or nothing changed.
fn agreement(work: &ComparedWork, time: Option<&ComparedStep>) -> Option<Agreement> {
    let verdict = time.map(|time| time.verdict);

    match work.verdict {
        WorkVerdict::More | WorkVerdict::Less => {}
        WorkVerdict::NoChangeShown => {
            let is_exact = work.shown_from.is_some_and(|shown| shown <= WORK_SAME);
            let has_changed = verdict.is_some_and(Verdict::is_change);
            return (is_exact && has_changed).then_some(Agreement::SameWork);
        }
        _ => return None,
    }

    let is_more_work = work.verdict == WorkVerdict::More;
    Some(match verdict {
        Some(Verdict::Slower | Verdict::Faster) => {
            let is_more_time = verdict == Some(Verdict::Slower);
            if is_more_time != is_more_work {
                Agreement::Opposite
            } else if accounts(work, time) {
                Agreement::Certain
            } else {
                Agreement::SmallPart
            }
        }
        Some(Verdict::Equal) => Agreement::SameTime,
        Some(Verdict::TooNoisy) => Agreement::NoisyTime,
        _ => Agreement::UnknownTime,
    })
}

/// Returns whether the change of work is much of that of time. Both are logarithms of ratios.
fn accounts(work: &ComparedWork, time: Option<&ComparedStep>) -> bool {
    let of_work = work.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    let of_time = time.and_then(|time| time.ratio).map_or(0.0, |ratio| ratio.ln().abs());
    of_work >= EXPLAINS * of_time
}

/// Returns the caveat that time was measured with several clients.
fn one_connection(group: &[Witnesses<'_>]) -> Option<CountedCaveat> {
    let changed = group.iter().filter(|each| {
        each.time.is_some_and(|time| time.verdict.is_change() && time.cell.clients > 1)
    });
    let of_several: Vec<&Case<'_>> = changed.filter_map(|each| each.case).collect();

    Some(CountedCaveat {
        caveat: Caveat::OneConnection,
        case: of_several.first()?.facts(),
        count: of_several.len(),
        case_count: group.len(),
    })
}

fn explanation<'a>(mut group: Vec<Witnesses<'a>>) -> Option<Explanation<'a>> {
    let size = |witnesses: &Witnesses<'_>| {
        let ratio = match witnesses.agreement {
            Agreement::SameWork => witnesses.time.and_then(|time| time.ratio),
            _ => witnesses.work.ratio,
        };
        ratio.filter(|ratio| *ratio > 0.0).map_or(0.0, |ratio| ratio.ln().abs())
    };
    sort_largest_first(&mut group, |item| size(item));
    let first = *group.first()?;

    // The first evidence of a case is its throughput.
    let of_case = first.case.map(|case| case.evidence());
    let throughput = of_case.into_iter().flatten().take(1);
    Some(Explanation {
        places: group.iter().map(Witnesses::place).collect(),
        evidence: throughput.chain(first.pair().map(Evidence::work)).collect(),
        caveats: one_connection(&group).into_iter().collect(),
        weight: WEIGHT * size(&first),
        statement: Statement::Work(group.iter().map(Witnesses::facts).collect()),
    })
}
