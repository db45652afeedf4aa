//! Tests with real servers and processes. Where an engine is not installed its tests are skipped, aloud; with its name
//! in `ASSAY_REQUIRE_ENGINES` (separated by commas) they fail instead.

#![allow(
    clippy::unwrap_used,
    reason = "all of this is tests, what they have in common included"
)]

mod guard;
mod life;
mod limits;
mod mysql;
mod postgres;
mod rocksdb;
mod script;
mod server;
mod skipped;
mod statements;
mod tables;
mod upkeep;

pub(crate) use skipped::say_skipped;
