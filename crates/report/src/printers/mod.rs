//! Printers of tables and sentences.

pub(crate) mod json;
mod markdown;
pub(crate) mod page;
pub(crate) mod terminal;
