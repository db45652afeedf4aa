//! MySQL since 5.6 and MariaDB since 10.6, with InnoDB or MyRocks.
//!
//! [`Mysql::start`] creates the system tables and starts the build's server, under guard and on a
//! private socket. [`Mysql::attach`] connects to a running server. [`MysqlSession`] is a blocking
//! client that implements the protocol.

mod address;
mod auth;
mod config;
mod connection;
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

use std::sync::atomic::AtomicBool;

pub use crate::net::address::{Address, Host, Roots, SslMode};
pub use address::parse_url;
pub use dialect::{MysqlDialect, StorageEngine};
pub use installation::{Flavor, Installation, MysqlVersion, locate};
pub use notation::MysqlNotation;
pub use session::MysqlSession;

use crate::contract::{
    Dialect, Index, IndexRows, Needs, Observer, Obstacle, ServerEngine, SettleLimits, Settled,
    SqlEngine, Table,
};
use crate::error::Error;
use crate::servers::sql_server::SqlServer;
use server::MysqlKind;

/// A running MySQL or MariaDB server, which assay started or connected to.
pub type Mysql = SqlServer<MysqlKind>;

impl SqlEngine for Mysql {
    type Session = MysqlSession;

    fn dialect(&self) -> &dyn Dialect {
        &self.kind.dialect
    }

    fn connect(&self) -> Result<MysqlSession, Error> {
        MysqlSession::connect(&self.address)
    }

    fn connect_to_read(&self) -> Result<MysqlSession, Error> {
        MysqlSession::connect(self.address_to_read())
    }

    fn observer(&self, tables: &[Table]) -> Result<Box<dyn Observer>, Error> {
        observer::open(self, tables)
    }

    fn settle(
        &self,
        tables: &[Table],
        limits: SettleLimits,
        stop: &AtomicBool,
    ) -> Result<Settled, Error> {
        settle::settle(self, tables, limits, stop)
    }

    fn count_by_index(
        &self,
        session: &mut MysqlSession,
        table: &Table,
        index: &Index,
    ) -> Result<Option<IndexRows>, Error> {
        inspect::count_by_index(session, &self.kind.dialect, table, index).map(Some)
    }
}

impl ServerEngine for Mysql {
    fn read_from(&self, replicas: &[&Self]) {
        self.set_readers(replicas);
    }

    fn url(&self) -> String {
        self.address.url()
    }

    fn obstacles(&self, needs: Needs) -> Result<Vec<Obstacle>, Error> {
        obstacles::find(&mut self.connect()?, &self.address.database, needs)
    }
}
