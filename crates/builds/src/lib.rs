//! Keeps several versions of database engines on one machine, without installing anything in the
//! system.
//!
//! ```text
//!  `postgres@17.2`       spec.rs: what to fetch
//!        │
//!        ▼
//!    sources/            products.rs: where the versions of a product come from
//!        │               maven.rs, debian.rs, npm.rs: download with the package manager's own client
//!        │               unpack.rs, own_libc.rs: unpack, and make the programs start here
//!        │               amalgamation.rs: compile SQLite's source
//!        ▼
//!    inspect.rs          which engine is it, which version?
//!        │
//!        ▼
//!    store.rs            one folder for each build, with its manifest.rs and hashes
//! ```
//!
//! [`fetch()`] goes through these stages. [`Recipe`] makes builds from commits instead (`recipe/`).
//! [`Store`] finds builds by name, spec or version.
//!
//! ```
//! let spec = builds::Spec::parse("postgres@17.2")?;
//! assert_eq!(spec.engine(), Some("postgres"));
//!
//! let error = builds::Spec::parse("oracle@9").unwrap_err();
//! assert_eq!(error.to_string(), "invalid build spec `oracle@9`: unknown product `oracle`");
//! assert!(error.help().starts_with("write `postgres@17.2`"));
//! # Ok::<(), builds::BuildError>(())
//! ```

mod asking;
mod elf;
mod error;
mod fetch;
pub mod hash;
mod inspect;
mod listing;
mod manifest;
mod process_group;
mod recipe;
mod sources;
mod spec;
mod store;
mod unprivileged;
mod version;
mod waiting;

pub use error::BuildError;
pub use fetch::{available, fetch};
pub use inspect::{FoundBuild, find as find_in, find_library};
pub use manifest::{Commit, Made, MadePatch, Manifest};
pub use recipe::{CommitFailure, Interrupted, Patch, Recipe, Repository};
pub use spec::{Spec, check_name};
pub use store::{Build, Lock, Store, databases_folder};
pub use version::newest_of;
