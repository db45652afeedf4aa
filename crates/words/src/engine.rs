//! The engines, and what each can do: one row of one table for each.
//!
//! Plans, the checks before a run, estimates, drafts of plans and the conductor read these facts
//! and name no engine themselves. So a new engine is a row here, and the compiler points at what
//! else it needs: its folder in `engine`, its row in the conductor, and its first config.

use crate::engine_options;

crate::named_enum! {
    /// An engine.
    pub enum Engine {
        /// SQLite: the bundled one, or a library of any version.
        Sqlite = "sqlite",
        /// PostgreSQL.
        Postgres = "postgres",
        /// MySQL and MariaDB.
        Mysql = "mysql",
        /// RocksDB and its forks.
        RocksDb = "rocksdb",
        /// A library with Assay's C interface.
        Library = "library",
        /// An engine that does nothing, to measure Assay itself.
        Null = "null",
    }
}

/// Facts about an engine, and about the keys that configs may have for it.
#[derive(Clone, Copy, Debug)]
pub struct EngineFacts {
    /// The engine's name in messages.
    pub title: &'static str,
    /// The names that `assay versus` and `assay fetch` take for the engine.
    pub products: &'static [&'static str],
    /// Where its code runs, if a plan says no more than the engine's name.
    pub home: EngineHome,
    /// Builds of it may be shared libraries, which run in processes of their own. False for a
    /// server.
    pub has_libraries: bool,
    /// The way in which clients use it.
    pub interface: EngineInterface,
    /// The beginnings of the URLs of its servers.
    pub url_schemes: &'static [&'static str],
    /// The files of options that a config may name.
    pub config_files: ConfigFiles,
    /// Configs may set options.
    pub has_options: bool,
    /// Configs may set options for the load alone, leave out those that a version lacks, and turn
    /// statistics on.
    pub has_load_options: bool,
    /// An option may hold others: its value is `{capacity=1G}`, or its name is the path
    /// `table.block_size`.
    pub has_nested_options: bool,
    /// It accepts the beginning of an option's name for the whole name.
    pub accepts_short_names: bool,
    /// The bytes of a cache's size without a unit. `None` if no option sets that size, or if the
    /// cache only grows as far as the data needs it.
    pub cache_unit_bytes: Option<u32>,
    /// The words for true and false in its options.
    pub boolean_words: [&'static str; 2],
    /// Tables may be partitioned. True also of an engine that ignores the request.
    pub has_partitions: bool,
    /// Assay can make replicas of it.
    pub has_replicas: bool,
    /// Replicas may also apply rows instead of the log's bytes.
    pub has_logical_replication: bool,
    /// The engine assigns a key only to a column that is the primary key.
    pub assigns_only_primary_keys: bool,
    /// The option of its server that names the format of new tables.
    pub table_format_option: Option<&'static str>,
    /// The formats that its options alone show to exist.
    pub known_table_formats: &'static [&'static str],
    /// Its databases have extensions.
    pub has_extensions: bool,
    /// It stores what it is given.
    pub stores_data: bool,
    /// The options that [leave no trace](crate::engine_options) in a database.
    traceless_options: &'static [&'static str],
}

/// Where an engine's code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineHome {
    /// Inside of Assay, in the version that is part of it.
    Bundled,
    /// In a process of Assay that loads a library for one cell.
    Library,
    /// In a server.
    Server,
}

/// The way in which clients use an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineInterface {
    /// By statements.
    Sql,
    /// By keys and values.
    Keys,
}

/// The files of options that a config may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigFiles {
    /// The engine has no such file.
    None,
    /// One file. A config that extends another may not add a second.
    One,
    /// Several, of which later ones override earlier ones.
    Several,
}

const ON_OFF: [&str; 2] = ["on", "off"];

/// The size of a page in PostgreSQL's builds, unless they were configured for another.
const POSTGRES_PAGE_BYTES: u32 = 8192;

const SQLITE: EngineFacts = EngineFacts {
    title: "SQLite",
    products: &["sqlite"],
    home: EngineHome::Bundled,
    has_libraries: true,
    interface: EngineInterface::Sql,
    url_schemes: &[],
    config_files: ConfigFiles::None,
    has_options: true,
    has_load_options: false,
    has_nested_options: false,
    accepts_short_names: false,
    cache_unit_bytes: None,
    boolean_words: ON_OFF,
    has_partitions: false,
    has_replicas: false,
    has_logical_replication: false,
    assigns_only_primary_keys: true,
    table_format_option: None,
    known_table_formats: &[],
    has_extensions: false,
    stores_data: true,
    traceless_options: engine_options::OF_SQLITE,
};

const POSTGRES: EngineFacts = EngineFacts {
    title: "PostgreSQL",
    products: &["postgres"],
    home: EngineHome::Server,
    has_libraries: false,
    interface: EngineInterface::Sql,
    url_schemes: &["postgresql://", "postgres://"],
    config_files: ConfigFiles::Several,
    has_options: true,
    has_load_options: false,
    has_nested_options: false,
    accepts_short_names: false,
    cache_unit_bytes: Some(POSTGRES_PAGE_BYTES),
    boolean_words: ON_OFF,
    has_partitions: true,
    has_replicas: true,
    has_logical_replication: true,
    assigns_only_primary_keys: false,
    table_format_option: Some("default_table_access_method"),
    known_table_formats: &["heap"],
    has_extensions: true,
    stores_data: true,
    traceless_options: engine_options::OF_POSTGRES,
};

const MYSQL: EngineFacts = EngineFacts {
    title: "MySQL",
    products: &["mysql", "mariadb"],
    home: EngineHome::Server,
    has_libraries: false,
    interface: EngineInterface::Sql,
    url_schemes: &["mysql://", "mariadb://"],
    config_files: ConfigFiles::Several,
    has_options: true,
    has_load_options: false,
    has_nested_options: false,
    accepts_short_names: true,
    cache_unit_bytes: Some(1),
    boolean_words: ON_OFF,
    has_partitions: true,
    has_replicas: true,
    has_logical_replication: false,
    assigns_only_primary_keys: false,
    table_format_option: Some("default_storage_engine"),
    known_table_formats: &["innodb", "rocksdb", "myrocks"],
    has_extensions: false,
    stores_data: true,
    traceless_options: engine_options::OF_MYSQL,
};

const ROCKSDB: EngineFacts = EngineFacts {
    title: "RocksDB",
    products: &["rocksdb", "speedb"],
    home: EngineHome::Library,
    has_libraries: true,
    interface: EngineInterface::Keys,
    url_schemes: &[],
    config_files: ConfigFiles::One,
    has_options: true,
    has_load_options: true,
    has_nested_options: true,
    accepts_short_names: false,
    cache_unit_bytes: Some(1),
    // RocksDB reads no other words.
    boolean_words: ["true", "false"],
    has_partitions: false,
    has_replicas: false,
    has_logical_replication: false,
    assigns_only_primary_keys: false,
    table_format_option: None,
    known_table_formats: &[],
    has_extensions: false,
    stores_data: true,
    traceless_options: engine_options::OF_ROCKSDB,
};

const LIBRARY: EngineFacts = EngineFacts {
    title: "a library with Assay's C interface",
    products: &["library"],
    home: EngineHome::Library,
    has_libraries: true,
    interface: EngineInterface::Keys,
    url_schemes: &[],
    config_files: ConfigFiles::None,
    has_options: true,
    has_load_options: false,
    has_nested_options: false,
    accepts_short_names: false,
    cache_unit_bytes: None,
    boolean_words: ["true", "false"],
    has_partitions: false,
    has_replicas: false,
    has_logical_replication: false,
    assigns_only_primary_keys: false,
    stores_data: true,
    table_format_option: None,
    known_table_formats: &[],
    has_extensions: false,
    traceless_options: &[],
};

const NULL: EngineFacts = EngineFacts {
    title: "the null engine",
    products: &["null"],
    home: EngineHome::Bundled,
    has_libraries: false,
    interface: EngineInterface::Sql,
    url_schemes: &[],
    config_files: ConfigFiles::None,
    has_options: false,
    has_load_options: false,
    has_nested_options: false,
    accepts_short_names: false,
    cache_unit_bytes: None,
    boolean_words: ON_OFF,
    has_partitions: true,
    has_replicas: false,
    has_logical_replication: false,
    assigns_only_primary_keys: false,
    table_format_option: None,
    known_table_formats: &[],
    has_extensions: false,
    stores_data: false,
    traceless_options: &[],
};

impl Engine {
    /// Returns what the engine can do.
    pub fn facts(self) -> &'static EngineFacts {
        match self {
            Self::Sqlite => &SQLITE,
            Self::Postgres => &POSTGRES,
            Self::Mysql => &MYSQL,
            Self::RocksDb => &ROCKSDB,
            Self::Library => &LIBRARY,
            Self::Null => &NULL,
        }
    }

    /// Returns the engine with this name in plans and records.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|engine| engine.name() == name)
    }

    /// Returns all engines.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.iter().map(|(_, engine)| *engine)
    }
}

impl EngineFacts {
    /// Returns whether its server can use TLS and listen on an address.
    pub fn is_server(&self) -> bool {
        self.home == EngineHome::Server
    }

    /// Returns whether a database is the same whatever the value of an option was when it was
    /// loaded.
    pub fn leaves_no_trace(&self, option: &str) -> bool {
        engine_options::is_among(self.traceless_options, option)
    }

    /// Returns whether builds of it can be installed. False for an engine that only Assay has.
    pub fn has_builds(&self) -> bool {
        self.is_server() || self.has_libraries
    }
}
