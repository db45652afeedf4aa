//! All engines, by their names in plans and records.

use crate::contract::notation::Notation;
use crate::libraries::{null, rocksdb, sqlite};
use crate::servers::{mysql, postgres};

/// An engine's name and notation, which are known before it runs.
pub struct EngineKind {
    /// The engine's name in plans and records.
    pub name: &'static str,
    /// The engine's notation of options and settings.
    pub notation: &'static dyn Notation,
}

/// All engines. Each has a folder in this crate.
pub const ENGINES: [EngineKind; 6] = [
    EngineKind { name: "sqlite", notation: &sqlite::SqliteNotation },
    EngineKind { name: "postgres", notation: &postgres::PostgresNotation },
    EngineKind { name: "mysql", notation: &mysql::MysqlNotation },
    EngineKind { name: "rocksdb", notation: &rocksdb::RocksdbNotation },
    EngineKind { name: "library", notation: &null::NullNotation },
    EngineKind { name: "null", notation: &null::NullNotation },
];

/// Returns the notation of the engine with this name.
pub fn notation_of(engine: &str) -> &'static dyn Notation {
    let kind = ENGINES.iter().find(|kind| kind.name == engine);
    kind.map_or(&null::NullNotation, |kind| kind.notation)
}
