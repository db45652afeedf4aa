//! All that is unsafe about a library that is opened at run time, behind types that are not.
//!
//! The declarations follow the documentation of RocksDB's C API, which has only ever grown: what is required here has
//! the same signature in every version from 6.0 on.

mod api;
mod client;
mod database;

pub(super) use api::{Api, load};
pub use client::RocksSession;
pub(super) use database::{ClockCache, Database, Options};
