//! Work that several engines do alike: they read counters and catalogs, and wait until work ends.

pub(crate) mod catalog;
pub(crate) mod figures;
pub(crate) mod quiet;
pub(crate) mod runtime;
pub(crate) mod waiting;
