//! What is shown: the cells and steps of a run, and tables of their figures.

pub(crate) mod comparison;
pub(crate) mod grid;
pub(crate) mod matrix;
pub(crate) mod metric;
pub(crate) mod names;
pub(crate) mod number;
pub(crate) mod operations;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod worth;
