//! The corpus: plans with what is said about them, in the files beside them.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod corpus;
mod order;
mod robustness;
mod shipped;
