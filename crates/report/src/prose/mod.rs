//! What is said of results.

pub(crate) mod answer;
pub(crate) mod differences;
pub(crate) mod findings;
pub(crate) mod problems;
pub(crate) mod trees;
pub(crate) mod uneven;
