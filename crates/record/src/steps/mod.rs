//! The record of a step: its tables and histograms, written while it is measured and read in
//! batches.

mod columns;
mod of_cell;
mod reader;
mod turns;
mod work;
mod writer;

pub use reader::{CounterRow, HostColumnSeries, HostSeries, StepReader, StepState};
pub use turns::{ServerUse, TurnRow};
pub use writer::{HostColumn, StepWriter};
