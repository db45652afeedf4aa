//! Everything that is decided before a run begins: its plan and whether it can run, the builds and
//! whether they accept their configs, and what the run will need.

pub mod estimate;
pub(crate) mod installed;
pub(crate) mod library;
pub mod locate;
pub mod memory;
pub mod only;
pub mod plan_file;
pub mod preflight;
pub(crate) mod recorded_run;
pub(crate) mod trials;
pub(crate) mod trust;
