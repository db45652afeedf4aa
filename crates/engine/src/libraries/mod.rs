//! Engines that run in assay's own process: shared libraries, and the engine that does nothing.

pub mod custom;
pub(crate) mod dynamic;
pub(crate) mod loaded;
pub mod null;
pub mod rocksdb;
pub mod sqlite;
