//! Tests with real servers and processes. The tests of an engine that is not installed are reported
//! as skipped; if `ASSAY_REQUIRE_ENGINES` has its name (separated by commas), they fail.

#![allow(clippy::unwrap_used, reason = "all of this is tests, what they have in common included")]

mod freeze;
mod guard;
mod life;
mod limits;
mod mysql;
mod network;
mod placement;
mod postgres;
mod rocksdb;
mod script;
mod server;
mod skipped;
mod sqlite;
mod statements;
mod strangers;
mod tables;
mod upkeep;

pub(crate) use skipped::say_skipped;
