//! Computes the work of settling an engine after a step.

use std::collections::BTreeMap;

use record::{Counter, Role, Step, StepKind};
use serde::Serialize;

use crate::figures::counters::Counters;
use crate::figures::metrics::GIB;
use crate::order::distinct;

/// The deferred work that settling an engine completed: in a step of its own, or at the end of a
/// measured one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SettleWork {
    /// The duration, in seconds.
    pub seconds: f64,
    /// The bytes that the engine reports as written meanwhile; `None` if it reports none.
    pub written_bytes: Option<f64>,
    /// The actions, in order.
    pub actions: Vec<SettleAction>,
    /// The pending work that the engine reports, by the recorded names.
    pub pending: Vec<Pending>,
}

/// One action of settling.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SettleAction {
    /// The action: `CHECKPOINT`.
    pub what: String,
    /// The duration, in seconds.
    pub seconds: f64,
}

/// Pending work.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Pending {
    /// The name, with the unit: `dirty_page_count`.
    pub name: String,
    /// The meaning.
    #[serde(skip)]
    pub role: Option<Role>,
    /// The amount before; `None`: the engine did not report it.
    pub before: Option<f64>,
    /// The amount after.
    pub after: Option<f64>,
}

/// Returns the work of settling a step; `None` if it was not settled. `metrics` are those of the
/// step.
pub(crate) fn settled(
    step: &Step,
    metrics: &BTreeMap<&'static str, Option<f64>>,
) -> Option<SettleWork> {
    let settle = step.settle.as_ref()?;

    let mut actions = Vec::new();
    for (what, ns) in &settle.actions {
        actions.push(SettleAction { what: what.clone(), seconds: *ns as f64 / 1e9 });
    }

    Some(SettleWork {
        seconds: actions.iter().map(|action| action.seconds).sum(),
        written_bytes: written_bytes(step, metrics),
        actions,
        pending: pending(&settle.pending_before, &settle.pending_after),
    })
}

/// Returns the pending work of each name, in the order in which the engine reported them.
fn pending(before: &[Counter], after: &[Counter]) -> Vec<Pending> {
    let reported = || before.iter().chain(after);

    let mut all = Vec::new();
    for name in distinct(reported().map(|counter| &counter.name)) {
        // Older records have no roles.
        let first = reported().find(|counter| counter.name == *name);
        let role = first.and_then(|counter| counter.role);
        all.push(Pending {
            name: name.clone(),
            role: role.or_else(|| Role::of_pending(name)),
            before: value_of(before, name),
            after: value_of(after, name),
        });
    }
    all
}

fn value_of(counters: &[Counter], name: &str) -> Option<f64> {
    counters.iter().find(|counter| counter.name == name).map(|counter| counter.value)
}

/// Returns bytes that the engine wrote while it settled, by its own counters: those of flushes and
/// compactions of a tree, or else of all files, or of checkpoints and the log.
fn written_bytes(step: &Step, metrics: &BTreeMap<&'static str, Option<f64>>) -> Option<f64> {
    let metric = |name: &str| metrics.get(name).copied().flatten();

    // The counters of settling at the end of a measured step continue those of the step.
    let counters = match step.kind {
        StepKind::Settle => Counters::new(step),
        _ => Counters::between(&step.counters_after, &step.counters_end),
    };

    if metric("c_wgb").is_some() {
        let gb = match step.kind {
            StepKind::Settle => metric("c_wgb"),
            _ => metric("c_wgb_settled").zip(metric("c_wgb")).map(|(all, own)| all - own),
        };
        return gb.map(|gb| (gb * GIB).max(0.0));
    }

    let grown = |role| counters.growth(role);
    grown(Role::WrittenBytes)
        .or_else(|| Some(grown(Role::CheckpointBytes)? + grown(Role::LogBytes)?))
}
