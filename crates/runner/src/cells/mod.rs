//! Cells of a run: a target on which the steps of a workload run with a number of clients.
//!
//! * [`life`] is the way of a cell from the start of its target until nothing is left of it.
//! * [`CellRun`](cell_run::CellRun) is the cell while it is measured, and [`record`] its record.
//! * [`kept`] lets cells share the load of a database, of which [`database_key`] is all that shapes
//!   it.
//! * [`isolated`] runs a cell in a process of its own, and [`group`] several that take turns.

mod cell_run;
mod database_key;
pub mod group;
pub mod isolated;
mod kept;
pub mod life;
mod record;
