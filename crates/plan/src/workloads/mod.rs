//! Reads the workload of a plan, with its steps and variants.

pub(crate) mod alone;
pub(crate) mod chosen_steps;
mod insert;
mod kv;
mod step;
mod step_policy;
mod sysbench;
mod test_rate;
mod transactions;
pub(crate) mod variants;

use crate::reading::context::{Context, Section};
use crate::spec::{Variant, Workload};
use crate::text::diagnostic::Place;
use crate::text::tree::Entry;

/// The names of all workloads.
const WORKLOADS: [&str; 4] = ["insert", "kv", "sysbench", "transactions"];

/// Reads `[workload]`: the variants of the workload that it has. `clients_max` is the largest number
/// of clients, if it is known.
pub(crate) fn read(
    cx: &mut Context<'_>,
    section: &mut Section,
    clients_max: Option<u32>,
) -> Option<Vec<Variant>> {
    let Some(Entry { key_place, node, .. }) = section.take("workload") else {
        report_no_workload(cx, Place::Nowhere);
        return None;
    };

    let mut section = Section::of(cx, "workload", node)?;
    let exclusive = ["a plan has one workload", "remove one of them, or write two plans"];
    let entry =
        section.take_one(cx, &WORKLOADS, exclusive, |cx| report_no_workload(cx, key_place))?;

    let path = section.name_of(&entry.key);
    variants::read(cx, &path, entry.node, |cx, node| match entry.key.as_str() {
        "insert" => insert::read(cx, node, clients_max).map(Workload::Insert),
        "kv" => kv::read(cx, node).map(Workload::Kv),
        "sysbench" => sysbench::read(cx, node, clients_max).map(Workload::Sysbench),
        _ => transactions::read(cx, node, clients_max).map(Workload::Transactions),
    })
}

/// Reports a plan without a workload, or with an empty table of workloads at `place`.
fn report_no_workload(cx: &mut Context<'_>, place: Place) {
    const HELP: &str = "add `[workload.insert]` (the Insert Benchmark), `[workload.sysbench]` (the sysbench microbenchmarks), \
         `[workload.kv]` (the key-value sequence), or `[workload.transactions]` with `use = \"tpcb\"`; the other keys have defaults";

    cx.error("plan::missing-key", place, "the plan has no workload")
        .label("this table is empty")
        .help(HELP);
}
