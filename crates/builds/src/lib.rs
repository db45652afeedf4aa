//! Versions of engines side by side, without touching the system: fetched by the package managers' own clients
//! (`sources/`), unpacked into a folder of their own, looked at (`inspect.rs`) and kept in a store (`store.rs`).

mod elf;
mod error;
mod fetch;
pub mod hash;
mod inspect;
mod manifest;
mod sources;
mod spec;
mod store;
mod version;

pub use error::Error;
pub use fetch::fetch;
pub use manifest::Manifest;
pub use spec::{Spec, check_name};
pub use store::{Build, Lock, Store};
