//! Charts over what a plan varies.
//!
//! ```text
//! targets   ratios to the base, in the plan's order: where does a series of versions change?
//! steps     ratios to the base of all targets: in which steps does which target differ?
//! factors   the levels of each option, pairs that interact, and effects against noise
//! clients   throughput, cost and scale-up: where does a target stop scaling?
//! rates     response times over requested rates: where does a target saturate?
//! search    the rates that `assay find` tried, with their bounds
//! seconds   a step second by second, for files: pages have their own charts of that
//! curves    what these have in common: repeats become points, and many lines stay legible
//! ```

mod clients;
mod curves;
mod factors;
mod rates;
mod search;
mod seconds;
mod steps;
mod targets;
#[cfg(test)]
mod tests;

pub(super) use clients::{OverClients, clients};
pub(super) use factors::{half_normal, interactions, main_effects};
pub(super) use rates::rates;
pub(super) use search::search;
pub(super) use seconds::{StepSeconds, seconds};
pub(super) use steps::steps;
pub(super) use targets::{ends_of_ratios, targets};
