//! CPU, fsyncs, retries and sizes of reads that changed where throughput shows no change, in words.

use super::cause::{conflicts_instead, conflicts_text, fsyncs_instead};
use super::change::{background_cpu, cpu_detail};
use super::wording::{Wording, place, shared_operation};
use crate::model::number::listed;
use crate::prose::amount::AmountChange;
use crate::prose::numbers::{NAMED, figure, list_any};
use analysis::explain::Finding;
use analysis::explain::statement::{ChangedCost, Conflict, HiddenCost, Pair};

pub(super) fn wording(hidden: &HiddenCost, about: &Finding) -> Wording {
    Wording { title: title(hidden, about), sentences: sentences(hidden, &about.target) }
}

/// Names what changed: `b.c: 17% less own CPU per query in q100, no change in throughput shown`. Of
/// several steps or loads, the largest change first and then each: `up to 17% less own CPU per
/// operation in 2 steps (q100 17%, load 9.1%)`. Fsyncs or retries come first: `1.1 fsyncs per commit
/// instead of 2.4 in q100`.
fn title(hidden: &HiddenCost, about: &Finding) -> String {
    let cost = &hidden.costs[0];
    let is_several = hidden.costs.len() > 1;
    let mut changes = Vec::new();

    // Own CPU changes when commits don't wait, and when work is repeated: it follows. Such a count is
    // known of the first step only.
    let count = count_that_changed(hidden);
    let has_count = count.is_some();
    if let Some(count) = count {
        changes.push(format!("{count} in {}", cost.case.place));
    }

    let per = shared_operation(hidden.costs.iter().map(|cost| &cost.case));
    let cpu = format!("{} own CPU per {per} in {}", change_of(cost).text(), place(about));
    if is_several {
        changes.push(format!("up to {cpu} ({})", each_place(&hidden.costs)));
    } else if !has_count {
        changes.push(cpu);
    }

    let mut title = format!("{}: {}", about.target, changes.join(", "));
    if let Some(kb) = hidden.read_kb {
        title += &format!(", {}", other_reads(kb));
    }
    title += if hidden.is_noisy {
        ", throughput too noisy to say"
    } else {
        ", no change in throughput shown"
    };
    title
}

/// Returns the fsyncs or retries whose number changed in the first step, and explains its CPU.
fn count_that_changed(hidden: &HiddenCost) -> Option<String> {
    if let Some(fsyncs) = hidden.fsyncs {
        return Some(fsyncs_instead(fsyncs.metric, fsyncs.count));
    }
    let retries = hidden.retries?;
    let per = &hidden.costs[0].case.operation;
    Some(conflicts_instead(Conflict::Retries, retries, Some(per)))
}

/// Lists the steps, with their loads if there are several, and their changes: `q100 17%, load 9.1%`.
fn each_place(costs: &[ChangedCost]) -> String {
    let mut places = Vec::new();
    for cost in costs {
        places.push(format!("{} {}", cost.case.place, change_of(cost).size()));
    }
    listed(&places, NAMED, ", ")
}

/// States the change of own CPU and its certainty, why throughput does not show it, and what else
/// changed.
fn sentences(hidden: &HiddenCost, target: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let cost = &hidden.costs[0];
    let case = &cost.case;
    let (step, per) = (&case.place, &case.operation);

    let has_fsyncs = match hidden.fsyncs {
        Some(fsyncs) => format!("has {}, and ", fsyncs_instead(fsyncs.metric, fsyncs.count)),
        None => String::new(),
    };
    let change = change_of(cost);
    let over = change.range_over(cost.repeat_count);
    sentences.push(format!(
        "{target} {has_fsyncs}uses {} CPU of the engine and its clients per {per} {} {} in {step}{over}.",
        change.text(),
        change.than(),
        case.base,
    ));

    let why = if hidden.is_noisy {
        "Throughput varies too much between repeats to show the effect."
    } else {
        "Throughput shows no change."
    };
    sentences.push(why.to_owned());

    sentences.extend(cpu_detail(case));
    sentences.extend(background_cpu(case));
    if let Some(counts) = conflicts_text(&hidden.conflicts, per) {
        sentences.push(format!("There are {counts}."));
    }

    let mut others = Vec::new();
    for cost in &hidden.costs[1..] {
        others.push(format!("{} ({})", cost.case.place, change_of(cost).text()));
    }
    if let Some(others) = list_any(others) {
        sentences.push(format!("Also in {others}."));
    }
    sentences
}

/// Returns `smaller device reads (51 KB instead of 349 KB)`.
fn other_reads(kb: Pair) -> String {
    let size = if kb.value < kb.base { "smaller" } else { "larger" };
    format!("{size} device reads ({} KB instead of {} KB)", figure(kb.value), figure(kb.base))
}

fn change_of(cost: &ChangedCost) -> AmountChange {
    AmountChange::new(cost.ratio, cost.interval)
}
