//! Targets that run: how they are started, what they do with the workload, and how they end.
//!
//! * [`engines`] has a row for each engine, which starts a target on the [`CellSite`](site::CellSite)
//!   of a cell. What it started is a [`RunningTarget`](running::RunningTarget).
//! * [`workloads`] are the interfaces through which steps see an engine and a workload on it.
//! * [`replicas`] watches the replicas of a server.
//! * [`tables`] and [`procedures`] create them and drop them, and [`part`] has copies of kept databases.

pub mod engines;
pub mod part;
mod procedures;
pub mod replicas;
pub mod running;
pub mod site;
mod tables;
pub mod workloads;
