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

use std::sync::atomic::AtomicBool;

pub use crate::net::address::{Address, Host, Roots, SslMode};
pub use address::parse_url;
pub use dialect::PostgresDialect;
pub use installation::{Installation, PostgresVersion, locate};
pub use notation::PostgresNotation;
pub use session::PostgresSession;

use crate::contract::{
    Dialect, Index, IndexRows, Needs, Observer, Obstacle, ServerEngine, Session, SettleLimits,
    Settled, SqlEngine, Table,
};
use crate::error::Error;
use crate::servers::sql_server::{SqlServer, connect_alone};
use server::PostgresKind;

/// The time that a dropped table may stay locked: by a commit that waits for a lost replica, or by
/// the creation of an index.
const DROP_TIMEOUT: &str = "set lock_timeout = '10s'";

/// A running PostgreSQL server, which assay started or connected to.
pub type Postgres = SqlServer<PostgresKind>;

impl SqlEngine for Postgres {
    type Session = PostgresSession;

    fn dialect(&self) -> &dyn Dialect {
        &self.kind.dialect
    }

    fn connect(&self) -> Result<PostgresSession, Error> {
        PostgresSession::connect(self.address())
    }

    fn connect_to_read(&self) -> Result<PostgresSession, Error> {
        PostgresSession::connect(self.address_to_read())
    }

    fn connect_to_inspect(&self) -> Result<PostgresSession, Error> {
        let mut session = self.connect()?;
        session.query("set statement_timeout = 0")?;
        Ok(session)
    }

    fn connect_to_clean_up(&self) -> Result<PostgresSession, Error> {
        let mut session = connect_alone::<PostgresKind>(self.address())?;
        session.query(DROP_TIMEOUT)?;
        Ok(session)
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
        session: &mut PostgresSession,
        table: &Table,
        index: &Index,
    ) -> Result<Option<IndexRows>, Error> {
        inspect::count_by_index(session, &self.kind.dialect, table, index).map(Some)
    }
}

impl ServerEngine for Postgres {
    fn read_from(&self, replicas: &[&Self]) {
        self.set_readers(replicas);
    }

    fn url(&self) -> String {
        self.address.url()
    }

    fn obstacles(&self, needs: Needs) -> Result<Vec<Obstacle>, Error> {
        obstacles::find(&mut self.connect()?, needs)
    }
}
