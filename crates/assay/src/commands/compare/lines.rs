//! The runs of a comparison, and the cells behind its lines.

use std::path::PathBuf;

use analysis::compat::Recorded;
use record::{CellKey, CellRef};

/// The runs to compare.
pub(super) struct Runs {
    pub(super) paths: Vec<PathBuf>,
    pub(super) recorded: Vec<Recorded>,
}

/// A line of a comparison, with the cell that its figures come from.
pub(super) struct Line<'a> {
    /// The key under which the cell is shown.
    pub(super) key: CellKey,
    /// The index of the run that has the cell.
    pub(super) run: usize,
    pub(super) cell: &'a CellRef,
}
