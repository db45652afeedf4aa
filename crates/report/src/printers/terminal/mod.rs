//! Prints tables and sentences for a terminal or as Markdown.
//!
//! A terminal shows the end of a text, and a page of Markdown its beginning. So the answer is last
//! in the one and first in the other, and everything else has the same order in both. That is why
//! one [`writer::TerminalWriter`] writes both formats.
//!
//! * [`runs`]: what `assay show` and the end of `assay run` print
//! * [`comparisons`], [`effects`]: what `assay compare` prints
//! * [`bundles`]: the bug report that `assay bundle` writes
//! * [`run_list`]: what `assay ls` prints
//! * `bisections`: the table of `assay bisect`, and [`columns`] for lists
//! * [`writer`]: paragraphs, wrapped and colored
//! * [`layout`]: the widths of columns, and where wide tables are split

mod bisections;
pub(crate) mod bundles;
pub(crate) mod columns;
pub(crate) mod comparisons;
pub(crate) mod effects;
pub(crate) mod history;
mod layout;
pub(crate) mod run_list;
pub(crate) mod runs;
pub(crate) mod writer;
