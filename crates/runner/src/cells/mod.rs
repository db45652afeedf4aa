//! Cells of a run: a target on which the steps of a workload run with a number of clients.
//!
//! * [`life`] is the way of a cell from the start of its target until nothing is left of it.
//! * [`CellRun`](cell_run::CellRun) is the cell while it is measured, and [`record`] its record.
//! * [`kept`] keeps the database of a cell for others, [`keep_points`] has the steps after which it
//!   does, and [`database_key`] all that shapes such a database.
//! * [`isolated`] runs a cell in a process of its own, and [`group`] several that take turns.

mod cell_run;
mod database_key;
pub mod group;
pub mod isolated;
pub mod keep_points;
mod kept;
pub mod life;
mod record;
