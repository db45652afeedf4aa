//! Safe types for a library that is loaded at run time. All unsafe code of this crate is here.
//!
//! The declarations follow the documentation of RocksDB's C API. The required functions have the
//! same signature in every version since 6.0.

mod api;
mod client;
mod database;
mod sorted_files;
mod transactions;

pub(super) use api::{Api, load};
pub use client::RocksSession;
pub(super) use database::{ClockCache, Database, Options};
