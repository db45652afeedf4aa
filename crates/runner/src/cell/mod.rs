//! One cell of a run.

pub mod cell_run;
pub mod isolated;
pub mod record;
pub mod tables;
