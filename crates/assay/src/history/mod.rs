//! The runs of a history: where they are, and what is kept of each.
//!
//! ```text
//! folders ──► runs ──► RunSummary ──► analysis::history
//!             │           ▲
//!             └─ history.json, or the whole record
//! ```

mod folders;
mod summaries;

pub use folders::places;
pub use summaries::{Reading, read_all};
