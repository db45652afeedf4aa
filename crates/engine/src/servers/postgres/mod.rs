//! PostgreSQL since version 12.
//!
//! [`Postgres::start`] creates a cluster and starts the build's server, under guard and on a
//! private socket. [`Postgres::attach`] connects to a running server. [`PostgresSession`] is a
//! blocking client that implements the protocol.

mod address;
mod build_facts;
mod config;
mod connection;
mod dialect;
mod failure;
mod inspect;
mod installation;
mod log;
mod logical;
mod notation;
mod observer;
mod obstacles;
mod replica;
mod row;
mod server;
mod session;
mod settle;

pub use crate::net::address::{Address, Host, Roots, SslMode};
pub use address::parse_url;
pub use dialect::PostgresDialect;
pub use installation::{Installation, PostgresVersion, locate};
pub use notation::PostgresNotation;
pub use session::PostgresSession;

use crate::servers::sql_server::SqlServer;
use server::PostgresKind;

/// A running PostgreSQL server, which assay started or connected to.
pub type Postgres = SqlServer<PostgresKind>;
