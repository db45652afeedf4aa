//! The engines by their names in plans and records.

use words::Engine;

use crate::contract::notation::Notation;
use crate::libraries::{null, rocksdb, sqlite};
use crate::servers::{mysql, postgres};

/// Returns the notation of options and settings of the engine with this name. That of the null
/// engine also serves for libraries and unknown engines: it knows no option.
pub fn notation_of(engine: &str) -> &'static dyn Notation {
    match Engine::named(engine) {
        Some(Engine::Sqlite) => &sqlite::SqliteNotation,
        Some(Engine::Postgres) => &postgres::PostgresNotation,
        Some(Engine::Mysql) => &mysql::MysqlNotation,
        Some(Engine::RocksDb) => &rocksdb::RocksdbNotation,
        Some(Engine::Library | Engine::Null) | None => &null::NullNotation,
    }
}
