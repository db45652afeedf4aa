//! Keeps programs and data of this host safe: programs end with assay and keep to their limits, and
//! assay deletes only what it created.

pub(crate) mod copying;
pub(crate) mod data_dir;
pub mod freeze;
pub mod guard;
pub mod limits;
pub mod placement;
pub(crate) mod trial;
pub(crate) mod user;
