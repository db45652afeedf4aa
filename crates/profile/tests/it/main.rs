//! Tests with real programs. Those that need a program that is not installed are reported as
//! skipped; if `ASSAY_REQUIRE_ENGINES` has its name (separated by commas), they fail.

#![allow(clippy::unwrap_used, reason = "all of this is tests, what they have in common included")]

mod callgrind;
#[path = "../../../engine/tests/it/skipped.rs"]
mod skipped;
mod subject;
