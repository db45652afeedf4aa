//! Reads the result files of other benchmark tools, and writes them as a record.
//!
//! ```text
//! files/     a folder or an archive, file by file
//!   │
//! campaign/  the description: which file is of which step of which cell
//!   │
//! formats/   a reader for each format: what a file holds, and what is doubtful
//!   │
//! assembly/  the steps of cells, each from one or several files
//!   │
//! writing/   the run directory
//! ```
//!
//! All files are from strangers. Their readers have limits, take no content on trust, and return a
//! [`Refusal`] with file and line instead of figures that may be wrong.
//!
//! ```
//! use import::{Campaign, understand, write_runs};
//!
//! let folder = tempfile::tempdir()?;
//! let summary = "sysbench 1.0.20 (using system LuaJIT)\n\
//!     Number of threads: 4\n\
//!     queries: 1000 (100.00 per sec.)\n\
//!     total time: 10.0s\n\
//!     total number of events: 1000\n";
//! std::fs::write(folder.path().join("pg17.base.point-query.t4"), summary)?;
//!
//! let campaign = Campaign::parse(
//!     "name = \"old\"\nengine = \"postgres\"\n[[files]]\npath = \"{build}.{config}.{step}.t{clients}\"\n",
//! )?;
//! let understood = understand(folder.path(), &campaign)?;
//! let results = tempfile::tempdir()?;
//! let runs = write_runs(&understood, &campaign, results.path())?;
//! assert_eq!(runs[0].step_count, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assembly;
mod campaign;
mod explain;
mod files;
mod formats;
mod guess;
mod published;
#[cfg(test)]
mod tests;
mod text;
mod writing;

pub use assembly::{Fate, Understood, UnderstoodFile, understand};
pub use campaign::{Campaign, CampaignError};
pub use explain::explain;
pub use files::WalkError;
pub use formats::Format;
pub use guess::guess;
pub use published::{Published, PublishedError, PublishedTables, as_published};
pub use text::{Doubt, Refusal};
pub use writing::{WriteError, WrittenRun, write_runs, write_to};
