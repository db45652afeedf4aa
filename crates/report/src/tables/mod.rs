//! Figures as tables, without a format.
//!
//! Each function returns a [`Table`](crate::model::table::Table), empty if there is nothing to
//! show, so that a printer asks no questions: it prints what it gets, in the order that its readers
//! need.
//!
//! ```text
//! classic       all steps: throughput, requested rates, fairness, lengths
//! grouped       all tests of a group: costs and times, a row for each test and target
//! steps         one step: ─┬─ metrics   costs, time, upkeep, host ─── sizes, plans, system_calls
//!                          ├─ quality   how even the seconds were, and debt
//!                          ├─ lsm       stalls, amplification, levels of trees
//!                          └─ times     outcomes and latencies by kind of operation
//! homes         the rows for which each client works
//! pauses        the times for which each client thinks and types
//! searches      the rates that a search tried
//! disk_floor    what the disk does for a program alone
//! compared/     targets relative to their base, and effects of factors
//! metric_list   the metrics that can be compared
//! ```

pub(crate) mod classic;
pub(crate) mod commands;
pub(crate) mod compared;
pub(crate) mod disk_floor;
pub(crate) mod grouped;
pub(crate) mod history;
pub(crate) mod homes;
pub(crate) mod lsm;
pub(crate) mod max_rates;
pub(crate) mod metric_list;
pub(crate) mod metrics;
pub(crate) mod pauses;
pub(crate) mod plans;
pub(crate) mod quality;
pub(crate) mod searches;
pub(crate) mod sizes;
pub(crate) mod steps;
pub(crate) mod system_calls;
pub(crate) mod times;
pub(crate) mod turns;
