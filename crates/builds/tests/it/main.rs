//! Builds of commits, of a repository that each test makes.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "all of this is tests, what they have in common included"
)]

mod commits;
mod recipes;
mod repository;
