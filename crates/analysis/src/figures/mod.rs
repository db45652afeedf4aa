//! Computes the figures of runs from their records alone.
//!
//! ```text
//! RunDir ─► reading ─► computing ─► Row ─► Figures ─► RowIndex
//!           cells and  one step:          all rows    rows by step
//!           their ends counts, samples,   of all runs and by cell
//!                      histograms
//! ```
//!
//! * [`Figures`] are all figures of one or several runs, and [`Row`] those of one step of one cell.
//! * [`Series`] are the seconds of a step. They are long, so whoever does not need them lets go of
//!   them in [`figures_and`].
//! * [`metrics()`] computes the metrics that [`words::METRICS`] names, and `quality` how even the
//!   throughput was: [`Quality`].
//! * [`swing`] finds a period in the throughput, and what keeps step with it.
//!
//! A type stands next to the code that computes it: [`Sla`], [`Fairness`], [`Waits`], [`Lsm`],
//! [`Lag`], [`Size`]. Only [`Row`] knows all of them, so none of them can depend on another one by
//! way of the row.
//!
//! A missing value is `None` and never zero, because a zero would be compared, averaged and shown
//! as if it had been measured. A record that contradicts itself gives an invalid row with the
//! reasons instead of an error, so that one damaged step does not hide the others.

pub(crate) mod average;
pub(crate) mod calls;
mod client_hosts;
mod competition;
mod computing;
mod consistency;
pub(crate) mod counters;
mod disk_floor;
mod fairness;
mod imported;
pub(crate) mod index;
mod latency;
mod loaded_cell;
mod log_events;
mod looks;
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
mod step_swing;
pub mod swing;
mod target_clock;
mod turns;
pub(crate) mod typical;
mod waits;

pub use average::median;
pub use calls::Calls;
pub use client_hosts::ClientHostFigures;
pub use competition::{Competition, TargetCompetition, UnevenStep, competition, uneven_steps};
pub use disk_floor::{FloorRate, StepFloor};
pub use fairness::{ClientEnd, Fairness, fairness};
pub use latency::{BUCKET_NS_LIMITS, Buckets, Percentiles, buckets, curve, percentiles};
pub use log_events::{EventTotals, StepEvents};
pub use looks::Looks;
pub use metrics::{COARSE_SHARE, Lag, LagVerdict, Level, Lsm, lag, metrics};
pub use operation::{MainOperation, noun, throughput_unit};
pub use quality::{
    ConcurrentChange, LISTED_MAX, Pending, Quality, SHIFT_SECONDS_MIN, STALL_SHARE, SettleAction,
    SettleWork, Shift, Stall, WorstResponse,
};
pub use reading::{figures, figures_and, for_each_row};
pub use remarks::{
    DELETED_SHARE, FailedOperations, OTHERS_PERCENT, Remark, RisingLag, SharedHomes,
};
pub(crate) use row::run_label;
pub use row::{
    ComparedSides, CopiedDatabase, ExactStep, Figures, OpFigures, ProfiledStep, RankFigures,
    ReadLimits, Row, StartedCell, UnfinishedCell, throughput,
};
pub use series::{CounterSeries, OpSeries, Series, per_second, rate_exceeded_in};
pub use sizes::{Size, TablePart};
pub use sla::{SLA_SHARE, Sla, SlaHistory, sla};
pub use step_figures::operations_needed;
pub use turns::{HalfBlock, TurnTotals};
pub use typical::{STEADINESS, TYPICAL_CPU, TYPICAL_RATE};
pub use waits::{SessionState, Waits};
