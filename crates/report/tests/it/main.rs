//! Tests of the whole crate on figures of a run that never was.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod browser;
mod html;
mod kv;
mod synthetic;
mod sysbench;
mod terminal;
mod written;
