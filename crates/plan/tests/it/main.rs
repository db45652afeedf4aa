//! Tests of plans: a corpus with expected results, the shipped plans, and damaged texts.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod chains;
mod corpus;
mod designs;
mod order;
mod robustness;
mod shipped;
