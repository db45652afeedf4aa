//! Workloads on real engines. Where an engine is not installed its tests are skipped, aloud; with its name in
//! `ASSAY_REQUIRE_ENGINES` (separated by commas) they fail instead.

#![allow(
    clippy::unwrap_used,
    reason = "all of this is tests, what they have in common included"
)]

mod insert_keyed;

#[path = "../../../engine/tests/it/rocksdb/libraries.rs"]
mod libraries;
#[path = "../../../engine/tests/it/skipped.rs"]
mod skipped;

pub(crate) use skipped::say_skipped;
