//! Tests of the whole crate on figures of a run that never was.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod browser;
mod compared;
mod findings;
mod html;
mod kv;
mod published;
mod quality;
mod synthetic;
mod sysbench;
mod terminal;
mod written;
