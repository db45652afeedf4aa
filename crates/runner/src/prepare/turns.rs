//! Refuses plans whose targets cannot take turns.

use std::collections::HashSet;

use plan::{BuildSource, Diagnostic, Order};

use super::plan_file::{PlanFile, refusal};
use crate::ground::host::memory_bytes;

/// A reason why the targets of a plan cannot take turns.
struct Obstacle {
    /// The key that is in the way.
    key: &'static str,
    what: String,
    help: &'static str,
}

/// Returns the error for a plan with turns whose targets cannot take them.
pub fn impossible_turns(file: &PlanFile) -> Option<Diagnostic> {
    file.plan.turns?;
    let Obstacle { key, what, help } = obstacle(file)?;
    let place = file.place_of(|other| other == key || other.ends_with(&format!(".{key}")));
    let message = format!("the targets cannot take turns: {what}");
    Some(refusal("plan::turns", place, message, Some(help)))
}

fn obstacle(file: &PlanFile) -> Option<Obstacle> {
    let plan = &file.plan;
    if plan.order == Order::Grouped {
        return Some(Obstacle {
            key: "order",
            what: "`order` is `grouped`, which measures all repeats of a target in a row".into(),
            help: "remove `order` or `turns`",
        });
    }

    if let Some(target) = plan.targets.iter().find(|target| plan.has_replicas(target)) {
        return Some(Obstacle {
            key: "replicas",
            what: format!("`{}` has replicas, which cannot be frozen with it yet", target.name),
            help: "remove `turns`, or the replicas",
        });
    }

    // Two targets of one server would work on each other's tables.
    let mut urls = HashSet::new();
    for target in &plan.targets {
        let BuildSource::Url(url) = &plan.builds[target.build].source else {
            continue;
        };
        if !urls.insert(url.expose()) {
            return Some(Obstacle {
                key: "url",
                what: format!("`{}` has the database of another target", target.name),
                help: "remove `turns`, or give each target a database of its own",
            });
        }
    }

    memory_obstacle(file)
}

/// Returns the obstacle of limits that the host's memory does not hold at the same time.
fn memory_obstacle(file: &PlanFile) -> Option<Obstacle> {
    let plan = &file.plan;

    let limits = plan.targets.iter().map(|target| &plan.configs[target.config].limits);
    let needed: u64 = limits.filter_map(|limits| limits.memory_bytes).sum();
    let host = memory_bytes();
    if needed <= host {
        return None;
    }

    Some(Obstacle {
        key: "memory",
        what: format!(
            "their limits of `memory` are {:.1} GB together, and this host has {:.1} GB",
            needed as f64 / 1e9,
            host as f64 / 1e9
        ),
        help: "lower the limits, or remove `turns`",
    })
}
