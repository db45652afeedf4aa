//! Comparisons: by hand, and on machines of which the truth is known.

mod effects;
mod machine;
mod simulated;
mod trees;
mod verdicts;
