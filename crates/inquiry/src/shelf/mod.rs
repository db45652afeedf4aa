//! The runs of a folder: where they are, what they are called, and what is known of each; also its
//! tunings and bisections.
//!
//! ```text
//! names ──► folders ──► results ──► index       follows the runs in a folder
//!                          │  ├────► history    all runs below a folder
//!                          │  └────► entries    a list with tunings and bisections
//!                          ▼
//!              history.json, or the whole record
//! ```
//!
//! The record of a run may take a second, its summary a millisecond. So `results` keeps a summary
//! in the directory of each run, and everything that shows many runs reads that.

mod entries;
mod folders;
mod history;
mod index;
pub mod names;
mod results;

pub use entries::{entries_in, listed};
pub use folders::{RunFolder, run_folders, runs_in};
pub use history::{HistoryRuns, read_all};
pub use index::{Index, IndexedRun, careful};
pub use results::RunResults;
