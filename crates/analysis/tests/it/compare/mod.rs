//! Comparisons: by hand, and on machines of which the truth is known.

mod effects;
mod families;
mod initial_tree;
mod looks;
pub mod machine;
mod machines;
mod notes;
mod overall;
mod simulated;
mod verdicts;
mod work;
