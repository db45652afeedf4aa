//! Turn tables, passages and plots into text.
//!
//! A printer decides on the order of parts, on wrapping and on emphasis, and on nothing else. The
//! order differs because readers do: a terminal shows the end of a text, a page its beginning, and
//! a script neither.
//!
//! * [`terminal`]: text with or without colors; through [`markdown`], also GitHub's Markdown
//! * [`html`]: the shell of all HTML pages
//! * [`page`]: one self-contained HTML file with charts
//! * [`catalog`]: pages over many runs, for a server
//! * [`json`]: comparisons for scripts

pub(crate) mod catalog;
pub(crate) mod history;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod page;
pub(crate) mod terminal;
