//! The text of a plan: its values with their places, and the diagnostics that point there.

pub(crate) mod diagnostic;
pub(crate) mod render;
pub(crate) mod tree;
pub(crate) mod wording;
