//! One cell of a run: a target on which the steps of a workload run with a number of clients.
//!
//! * [`life`] is the way of a cell from the start of its target until nothing is left of it.
//! * [`RunningTarget`](target::RunningTarget) is what it needs of a target; `engines/` has them.
//! * [`CellRun`](cell_run::CellRun) is the cell while it is measured, and [`record`] its record.
//! * [`kept`] lets cells share the load of a database.
//! * [`isolated`] runs a cell in a process of its own.

pub mod cell_run;
mod database_key;
pub mod isolated;
pub mod kept;
pub mod life;
pub mod record;
pub mod tables;
pub mod target;
