//! The directories of a run and of its cells, with their JSON files and the log of a cell.

mod cell;
mod log_events;
mod run;

pub use cell::CellDir;
pub use run::RunDir;
