//! Tests of the run directory: records read back as written, and damage is found.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;
mod exchanged;
mod fixture;
mod round_trip;
mod sample;
mod special_files;
