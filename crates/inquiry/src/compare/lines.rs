//! The runs of a comparison, and the cells behind its lines.

use std::path::PathBuf;

use analysis::compat::Recorded;
use record::{CellKey, CellRef};

/// The runs to compare.
#[derive(Debug)]
pub struct Runs {
    /// Their directories.
    pub paths: Vec<PathBuf>,
    /// The runs as they are recorded.
    pub recorded: Vec<Recorded>,
}

/// A line of a comparison, with the cell that its figures come from.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The key under which the cell is shown.
    pub key: CellKey,
    /// The index of the run that has the cell.
    pub run: usize,
    /// The cell.
    pub cell: &'a CellRef,
}
