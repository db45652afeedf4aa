//! SQLite's C API: a table of functions, either of the bundled library or of a shared one, and the
//! connections that call them. This is the only part of the engine with `unsafe` code.

mod api;
mod connection;
mod lock_waits;

#[cfg(test)]
pub(super) use api::REQUIRED;
pub(super) use api::{Api, bundled, load};
pub(super) use connection::{Connection, Failure, Param};
pub(super) use lock_waits::{LOCK_WAIT_COUNT, LOCK_WAIT_NS};
