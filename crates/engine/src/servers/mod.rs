//! Engines that run in programs of their own, which assay starts or attaches to.

pub(crate) mod config;
pub(crate) mod creation;
pub mod mysql;
pub mod postgres;
pub(crate) mod sql_kind;
pub(crate) mod sql_server;
mod stock;
mod unreadable;
pub(crate) mod wire;
