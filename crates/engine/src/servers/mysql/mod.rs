//! MySQL since 5.6 and MariaDB since 10.6, with InnoDB or MyRocks.
//!
//! [`Mysql::start`] creates the system tables and starts the build's server, under guard and on a
//! private socket. [`Mysql::attach`] connects to a running server. [`MysqlSession`] is a blocking
//! client that implements the protocol.

mod address;
mod auth;
mod config;
mod connection;
mod dates;
mod dialect;
mod failure;
mod inspect;
mod installation;
mod log;
mod login;
mod notation;
mod observer;
mod obstacles;
mod option_file;
mod packet;
mod replica;
mod row;
mod server;
mod session;
mod settle;
mod sizes;
mod status;

pub use crate::net::address::{Address, Host, Roots, SslMode};
pub use address::parse_url;
pub use dialect::{MysqlDialect, StorageEngine};
pub use installation::{Flavor, Installation, MysqlVersion, locate};
pub use notation::MysqlNotation;
pub use session::MysqlSession;

use crate::servers::sql_server::SqlServer;
use server::MysqlKind;

/// A running MySQL or MariaDB server, which assay started or connected to.
pub type Mysql = SqlServer<MysqlKind>;
