//! The processes that a run starts: one for a cell, and one that describes a library.

use crate::cli::{CellArgs, LibraryArgs};
use crate::exit::Exit;
use crate::output::print;
use crate::run_view::RunView;

/// Runs the process of a cell. Its exit code tells whether the cell's end is recorded.
pub fn cell(args: &CellArgs) -> anyhow::Result<Exit> {
    let view = RunView::of_cell(args)?;
    runner::run_cell(&args.request(), &view)?;
    Ok(Exit::Ok)
}

/// Loads the library and prints what it is. If stdin has a config, also prints the result of trying
/// it.
pub fn library(args: &LibraryArgs) -> anyhow::Result<Exit> {
    runner::describe_library(&args.engine, &args.path, std::io::stdin(), print)?;
    Ok(Exit::Ok)
}
