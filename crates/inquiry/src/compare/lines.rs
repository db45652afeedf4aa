//! The runs of a comparison, what takes the place of targets, and the cells behind its lines.

use std::path::PathBuf;

use analysis::compat::{self, Recorded, VariantSides};
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

/// The sides of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sides {
    /// The targets of all runs.
    Targets,
    /// The runs: see [`compat::by_run`].
    Runs,
    /// These steps: see [`compat::by_step`].
    Steps(Vec<String>),
    /// The variants of the workload: see [`compat::by_variant`].
    Variants(VariantSides),
}

impl Sides {
    /// Returns the keys under which a cell of a run is shown: a cell is one of each step.
    fn keys(&self, run: usize, cell: &CellKey) -> Vec<CellKey> {
        match self {
            Self::Targets => vec![cell.clone()],
            Self::Runs => vec![compat::key_by_run(run, cell)],
            Self::Steps(steps) => {
                steps.iter().map(|step| compat::key_by_step(step, cell)).collect()
            }
            Self::Variants(variants) => vec![variants.key(cell)],
        }
    }
}

/// Returns the lines of all cells.
pub fn lines_of<'a>(runs: &'a [Recorded], sides: &Sides) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for (run, recorded) in runs.iter().enumerate() {
        for cell in &recorded.run.cells {
            let keys = sides.keys(run, &cell.key).into_iter();
            lines.extend(keys.map(|key| Line { key, run, cell }));
        }
    }
    lines
}
