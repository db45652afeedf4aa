//! A run from its request to its end.
//!
//! * [`begin`] creates the record of a run, and [`resume`] continues that of a [`recorded_run`].
//! * [`load_rank`] is a run on a host that only makes load for another.
//! * [`conduct`] measures the cells in the order of the matrix, with the [`disk_floor`] before and
//!   after them. [`machine`] describes where.

pub mod begin;
pub mod conduct;
mod disk_floor;
pub mod load_rank;
mod machine;
mod recorded_run;
pub mod resume;
