//! Host observers: what the machine, its disk and the server's processes did, and what the machine is.
//!
//! [`Sampler`] reads `/proc` once a second and gives one row of [`Sample::COLUMNS`]. [`host`] describes the machine,
//! [`measure_fsync`] its disk's flush, and [`warnings`] says what of that spoils a measurement. The parsers in
//! `parse` are pure functions of text; all files are read through [`Proc`], so that other kernels' files can stand in.
//!
//! Nothing here is part of the measured path: a sample costs CPU time of the thread that takes it, which is why its
//! cost is kept small and why that CPU time is in `assay_cpu_ns`.

mod columns;
mod disk;
mod error;
mod frequency;
mod fsync;
mod group;
mod host;
mod parse;
mod sampler;
mod source;
mod storage;
mod thread_states;
mod tree;
mod warnings;

pub use columns::{Column, Sample};
pub use error::{Malformed, ProbeError};
pub use fsync::measure_fsync;
pub use group::{Group, Version};
pub use host::{HostFacts, host, host_at};
pub use sampler::{Sampler, Targets};
pub use source::{Proc, state_and_parent};
pub use storage::storage_size;
pub use thread_states::{StateCounts, ThreadStates, WatchedConnection};
pub use warnings::{HostContext, warnings};
