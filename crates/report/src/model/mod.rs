//! Everything that is shown, before it is a table: lines, steps and names, and the table itself as
//! data.
//!
//! A plan has cells and steps, a reader wants rows and columns. Which of them are rows depends on
//! how many there are, and a target's name on what all targets share. These decisions are made
//! here, once, so that no table makes them differently.
//!
//! ```text
//! Figures ─► matrix      lines of cells, steps as columns ─► grid   either way around
//!               ├─ worth       which figures may be compared, and what stands in their place
//!               ├─ names       full and short names of targets
//!               └─ operations  what a step counts: rows, queries, events
//! metric, number, text         how a figure and a foreign text are written
//! comparison                   targets with verdicts and findings
//! table                        the result: texts on the left, cells with tones on the right
//! ```

pub(crate) mod comparison;
pub(crate) mod grid;
pub(crate) mod history;
pub(crate) mod matrix;
pub(crate) mod metric;
pub(crate) mod names;
pub(crate) mod number;
pub(crate) mod operations;
pub(crate) mod outline;
pub(crate) mod repeats;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod worth;
