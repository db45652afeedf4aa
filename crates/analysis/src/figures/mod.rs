//! Computes the figures of runs from their records alone.

pub(crate) mod average;
pub(crate) mod calls;
mod client_hosts;
mod competition;
mod computing;
mod consistency;
pub(crate) mod counters;
mod fairness;
pub(crate) mod index;
mod latency;
mod log_events;
pub(crate) mod machines;
pub(crate) mod metrics;
pub(crate) mod operation;
pub(crate) mod quality;
mod reading;
mod remarks;
mod row;
pub(crate) mod series;
mod sizes;
mod sla;
pub(crate) mod step_figures;
mod waits;

pub use calls::Calls;
pub use client_hosts::ClientHostFigures;
pub use competition::{Competition, UnevenStep, competition, uneven_steps};
pub use fairness::{ClientEnd, Fairness, fairness};
pub use latency::{BUCKET_NS_LIMITS, Buckets, Percentiles, buckets, curve, percentiles};
pub use log_events::{EventTotals, StepEvents};
pub use metrics::{COARSE_SHARE, Lag, LagVerdict, Level, Lsm, lag, metrics};
pub use operation::{noun, throughput_unit};
pub use quality::{
    ConcurrentChange, LISTED_MAX, Pending, Quality, SHIFT_SECONDS_MIN, STALL_SHARE, SettleAction,
    SettleWork, Shift, Stall, WorstResponse,
};
pub use reading::{figures, figures_and, for_each_row};
pub use remarks::Remark;
pub(crate) use row::run_label;
pub use row::{
    Figures, OpFigures, ProfiledStep, RankFigures, ReadLimits, Row, StartedCell, UnfinishedCell,
    throughput,
};
pub use series::{CounterSeries, OpSeries, Series, per_second, rate_exceeded_in};
pub use sizes::{Size, TablePart};
pub use sla::{SLA_SHARE, Sla, SlaHistory, sla};
pub use step_figures::operations_needed;
pub use waits::{SessionState, Waits};
