//! CPU, fsyncs, retries and sizes of reads that changed where throughput shows no change, in words.

use super::cause::{conflicts_instead, conflicts_text, fsyncs_instead};
use super::change::cpu_detail;
use super::wording::{Wording, place};
use crate::prose::amount::AmountChange;
use crate::prose::numbers::{figure, list_any};
use analysis::counted;
use analysis::explain::Finding;
use analysis::explain::statement::{ChangedCost, Conflict, HiddenCost, Pair};

pub(super) fn wording(hidden: &HiddenCost, about: &Finding) -> Wording {
    let (throughput, why) = if hidden.is_noisy {
        (
            "throughput too noisy to say",
            "Throughput varies too much between repeats to show the effect.",
        )
    } else {
        ("no change of throughput shown", "Throughput shows no change.")
    };

    let cost = &hidden.costs[0];
    let case = &cost.case;
    let (target, per) = (&about.target, &case.operation);
    let change = change_of(cost);
    let amount = change.text();

    let over = match change.range() {
        Some(range) => format!(" ({range} over {})", counted(cost.repeat_count, "repeat")),
        None => String::new(),
    };

    let mut sentences = Vec::new();
    sentences.extend(hidden.fsyncs.map(|fsyncs| {
        let instead = fsyncs_instead(fsyncs.metric, fsyncs.count);
        format!("{target} has {instead} in {}.", case.place)
    }));
    sentences.extend([
        format!(
            "{target} uses {amount} CPU of the engine and its clients per {per} {} {} in {}{over}.",
            change.than(),
            case.base,
            case.place
        ),
        why.to_owned(),
    ]);
    sentences.extend(cpu_detail(case));
    let conflicts = conflicts_text(&hidden.conflicts, per);
    sentences.extend(conflicts.map(|counts| format!("There are {counts}.")));

    let mut others = Vec::new();
    for cost in &hidden.costs[1..] {
        others.push(format!("{} ({})", cost.case.place, change_of(cost).text()));
    }
    if let Some(others) = list_any(others) {
        sentences.push(format!("Also in {others}."));
    }

    // Own CPU changes when commits don't wait, and when work is repeated: it follows.
    let what = if let Some(fsyncs) = hidden.fsyncs {
        fsyncs_instead(fsyncs.metric, fsyncs.count)
    } else if let Some(retries) = hidden.retries {
        conflicts_instead(Conflict::Retries, retries, Some(per))
    } else {
        format!("{amount} own CPU per {per}")
    };
    let mut title = format!("{target}: {what} in {}", place(about));
    if let Some(kb) = hidden.read_kb {
        title += &format!(", {}", other_reads(kb));
    }
    Wording { title: format!("{title}, {throughput}"), sentences }
}

/// Returns `smaller device reads (51 KB instead of 349 KB)`.
fn other_reads(kb: Pair) -> String {
    let size = if kb.value < kb.base { "smaller" } else { "larger" };
    format!("{size} device reads ({} KB instead of {} KB)", figure(kb.value), figure(kb.base))
}

fn change_of(cost: &ChangedCost) -> AmountChange {
    AmountChange::new(cost.ratio, cost.interval)
}
