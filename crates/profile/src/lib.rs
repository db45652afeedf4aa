//! Functions of processes: their CPU time and their exact work.
//!
//! ```text
//! CPU profiles   perf record ──► unnamed file ──► perf script ──► Stacks
//! exact work     valgrind ──► dumps ──► Counted     (the module callgrind)
//! ```
//!
//! CPU profiles come from `perf`, whose samples of call stacks are counted.
//!
//! The samples are in a file without a name, and `perf` ends when its pipes close. So nothing is
//! left when assay is killed. Symbols come from `perf script`; `symbols.rs` demangles them.
//!
//! ```no_run
//! use profile::{CallGraph, Recording, Settings, has_cycles};
//!
//! let server = [4711];
//! let settings = Settings {
//!     frequency_hz: 199,
//!     call_graph: CallGraph::Dwarf,
//!     has_cycles: has_cycles(),
//! };
//! let mut recording = Recording::start(&server, settings, std::path::Path::new("/tmp"))?;
//! recording.enable()?;
//! // The load runs.
//! recording.disable()?;
//! let stop = std::sync::atomic::AtomicBool::new(false);
//! let profile = recording.finish(&stop)?;
//! println!("{} samples\n{}", profile.stacks.total(), profile.stacks);
//! # Ok::<(), profile::ProfileError>(())
//! ```

mod call_graph;
pub mod callgrind;
mod error;
mod recording;
mod script;
mod symbols;

pub use call_graph::CallGraph;
pub use error::ProfileError;
pub use recording::{Recording, Settings, has_cycles};
pub use script::Profile;
