//! What it took to bring an engine to rest after what a step left behind.

use std::collections::BTreeMap;

use record::{Counter, Role, Step, StepKind};
use serde::Serialize;

use crate::metrics::{Counters, GIB};
use crate::order::distinct;

/// The work that was put off until an engine was brought to rest: in a step of its own, or at the end of a measured one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SettleWork {
    /// How long all of it took, in seconds.
    pub seconds: f64,
    /// What the engine says that it wrote meanwhile, in bytes; `None` where it does not say.
    pub written_bytes: Option<f64>,
    /// What was done, in order.
    pub actions: Vec<SettleAction>,
    /// What was pending, as the engine tells: names as recorded.
    pub pending: Vec<Pending>,
}

/// One thing that was done.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SettleAction {
    /// What: `CHECKPOINT`.
    pub what: String,
    /// How long it took.
    pub seconds: f64,
}

/// Something that was to be done.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pending {
    /// Its name, with the unit: `dirty_page_count`.
    pub name: String,
    /// How much there was before; `None`: the engine did not tell.
    pub before: Option<f64>,
    /// How much was left.
    pub after: Option<f64>,
}

/// What settling a step took; `None` where that was not done. `metrics` are those of the step.
pub(crate) fn settled(
    step: &Step,
    metrics: &BTreeMap<&'static str, Option<f64>>,
) -> Option<SettleWork> {
    let settle = step.settle.as_ref()?;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let (before, after) = (&settle.pending_before, &settle.pending_after);
    let value = |counters: &[Counter], name: &str| {
        let mut counters = counters.iter();
        counters.find(|it| it.name == name).map(|it| it.value)
    };
    let names = distinct(before.iter().chain(after).map(|counter| &counter.name));
    let pending = names.into_iter().map(|name| Pending {
        name: name.clone(),
        before: value(before, name),
        after: value(after, name),
    });
    Some(SettleWork {
        seconds: settle.actions.iter().map(|(_, ns)| seconds(*ns)).sum(),
        written_bytes: written_bytes(step, metrics),
        actions: settle
            .actions
            .iter()
            .map(|(what, ns)| SettleAction {
                what: what.clone(),
                seconds: seconds(*ns),
            })
            .collect(),
        pending: pending.collect(),
    })
}

/// Bytes that the engine says it wrote while it settled: of a tree what flushes and compactions wrote, else what it wrote
/// to all files, or what checkpoints and the log did.
fn written_bytes(step: &Step, metrics: &BTreeMap<&'static str, Option<f64>>) -> Option<f64> {
    let metric = |name: &str| metrics.get(name).copied().flatten();
    // At the end of a measured step, the counters of settling go on from those of the step.
    let counters = match step.kind {
        StepKind::Settle => Counters::of(step),
        _ => Counters::between(&step.counters_after, &step.counters_end),
    };
    if metric("c_wgb").is_some() {
        let gb = match step.kind {
            StepKind::Settle => metric("c_wgb"),
            _ => metric("c_wgb_settled")
                .zip(metric("c_wgb"))
                .map(|(all, own)| all - own),
        };
        return gb.map(|gb| (gb * GIB).max(0.0));
    }
    let grown = |role| counters.growth(role);
    grown(Role::WrittenBytes)
        .or_else(|| Some(grown(Role::CheckpointBytes)? + grown(Role::LogBytes)?))
}
