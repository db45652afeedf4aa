//! Builds of commits, of a repository that each test makes.

mod commits;
mod recipes;
mod repository;
