//! Binds the C interface of `adapters/assay_engine.h`.

mod abi;
mod database;
mod session;

pub(super) use database::{Api, Database, OpenError};
pub use session::CustomSession;
