//! The run directory from outside: what is written is what is read, and damage is found.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;
mod fixture;
mod round_trip;
mod sample;
