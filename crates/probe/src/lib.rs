//! Observes the host during a measurement: its CPU, disks, network and memory, the server's
//! processes, and the states of connections.
//!
//! ```text
//! /proc, /sys ──► Proc ──► parse/ ─┬─► Sampler       one row of Sample::COLUMNS per second
//!                                  ├─► ThreadStates  what connections and the engine's threads wait for
//!                                  ├─► SystemCallEvents  the engine's system calls by kind
//!                                  └─► host ─────┐
//!                     data directory ─┬─► measure_fsync ──► warnings
//!                                     └─► measure_disk_floor
//! ```
//!
//! [`Sampler`] takes the samples of a step. [`host()`] describes the machine, [`measure_fsync`]
//! measures a flush in the data directory, [`measure_disk_floor`] the rates of its disk, and
//! [`warnings()`] says what disturbs a measurement. All files are read through [`Proc`], so tests can
//! use files of other kernels. The parsers in `parse` are pure functions.
//!
//! This crate is not part of the measured path. A sample takes CPU time of its thread, which
//! `assay_cpu_ns` includes.
//!
//! ```
//! use std::path::Path;
//!
//! let mut sampler = probe::Sampler::new(probe::Targets::default());
//! let row = sampler.sample()?;
//! assert!(row.get("cpu_user_ns") > Some(0));
//! // Without a server, its columns are not applicable.
//! assert_eq!(row.get("server_rss_bytes"), None);
//!
//! let facts = probe::host(Path::new("/"));
//! assert!(facts.cpu_count > 0 && facts.get("kernel_release").is_some());
//! # Ok::<(), probe::ProbeError>(())
//! ```

mod addresses;
mod columns;
mod device;
mod disk;
mod error;
mod floor;
mod frequency;
mod fsync;
mod group;
mod host;
mod host_counters;
mod network;
mod parse;
mod processes;
mod sampler;
mod scratch;
mod source;
mod storage;
mod system_calls;
mod thread_states;
mod timing;
mod tree;
mod tree_use;
mod warnings;

pub use addresses::host_addresses;
pub use columns::{Column, Sample};
pub use error::{Malformed, ProbeError};
pub use floor::{FLOOR_DEPTH_MAX, FloorError, FloorRequest, measure_disk_floor};
pub use fsync::measure_fsync;
pub use group::{Group, Version};
pub use host::{HostFacts, host, host_at};
pub use host_counters::HostCounters;
pub use processes::{
    children_of, cpu_ticks, process_tree, state_and_parent, state_of_thread, threads_of,
};
pub use sampler::{Sampler, Targets};
pub use source::Proc;
pub use storage::storage_size;
pub use system_calls::{CountedThreads, SystemCallCounting, SystemCallError, SystemCallEvents};
pub use thread_states::{
    ServingThread, StateCounts, StateSamples, ThreadStates, WatchedConnection,
};
pub use tree_use::{ThreadTime, TreeReading, TreeUse};
pub use warnings::{HostContext, warnings};
