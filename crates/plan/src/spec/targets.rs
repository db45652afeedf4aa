//! Builds, configs, and the targets that they make.

use words::{Creation, Durability, Engine, EngineHome, Limits, Secret, TransactionKind};

/// One installed version of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Build {
    /// The name in the plan.
    pub name: String,
    /// The engine.
    pub engine: Engine,
    /// The location of the build.
    pub source: BuildSource,
    /// The URLs of replicas of a running server.
    pub replica_urls: Vec<Secret>,
    /// The exporter of a running server's host; `None` without one.
    pub host_metrics: Option<HostMetrics>,
    /// Factors in which it differs from other builds, with their values.
    pub factors: Vec<(String, String)>,
}

impl Build {
    /// Returns where the build's code runs. An engine of which one version is bundled may also be a
    /// library.
    pub fn home(&self) -> EngineHome {
        let facts = self.engine.facts();
        if facts.has_libraries && self.source != BuildSource::Bundled {
            EngineHome::Library
        } else {
            facts.home
        }
    }
}

/// The `node_exporter` of Prometheus on the host of a running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostMetrics {
    /// The host and the port: `db:9100`.
    pub address: String,
    /// The path with its query: `/metrics`.
    pub path: String,
    /// The disks whose counters are summed; empty for all whole disks.
    pub disks: Vec<String>,
}

/// The location of a build.
#[derive(Clone, Debug, PartialEq)]
pub enum BuildSource {
    /// Part of Assay.
    Bundled,
    /// A directory, or a name that Assay knows.
    Installed(String),
    /// A commit, which Assay builds.
    Commit(CommitSource),
    /// A running server.
    Url(Secret),
}

/// A commit, and how it is built. Paths are relative to the plan's directory.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitSource {
    /// The path of a git repository on this machine.
    pub repository: String,
    /// The commit, or the name of a tag or a branch.
    pub reference: String,
    /// The shell command that is run in the commit's source.
    pub make: String,
    /// The path of the library or folder that the command makes, in the source.
    pub gives: String,
    /// The path of a patch that is applied to the commit.
    pub patch: Option<String>,
}

/// A named set of options, merged with those of the configs that it extends.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The name in the plan.
    pub name: String,
    /// The engine it is for.
    pub engine: Engine,
    /// Files in the engine's own format, used verbatim, in order: those of the configs that it
    /// extends come first.
    pub files: Vec<String>,
    /// Options, in the engine's notation; a later one overrides an earlier one of the same name.
    pub set: Vec<(String, String)>,
    /// Options of RocksDB that override `set` during the load; afterward the database is
    /// reopened.
    pub load: Vec<(String, String)>,
    /// Factors in which it differs from other configs, with their values.
    pub factors: Vec<(String, String)>,
    /// The part of the machine that its server may use.
    pub limits: Limits,
    /// The way in which its databases are made.
    pub creation: Creation,
    /// Environment variables of its server, or of the process of a library.
    pub env: Vec<(String, String)>,
    /// The number of the server's replicas.
    pub replicas: u32,
    /// Replicas get the changes of rows instead of the log (PostgreSQL).
    pub logical_replication: bool,
    /// Options of the replicas, which override `set`.
    pub replica_set: Vec<(String, String)>,
    /// The part of the machine that each replica may use.
    pub replica_limits: Limits,
    /// Connections that only read connect to the replicas.
    pub reads_replicas: bool,
    /// Clients connect to its server by TCP with TLS.
    pub tls: bool,
    /// Options that a version of RocksDB doesn't have are left out and recorded as not applicable;
    /// otherwise the cell fails.
    pub skips_unknown_options: bool,
    /// RocksDB counts and times its operations, which costs some speed.
    pub statistics: bool,
    /// The durability of writes to an engine with keys and values, unless a step has its own.
    pub durability: Durability,
    /// The kind of transactions of a database of RocksDB, if the workload has any.
    pub transactions: TransactionKind,
}

impl Config {
    /// Returns a config without options.
    pub(crate) fn new(name: &str, engine: Engine) -> Self {
        Self {
            name: name.to_owned(),
            engine,
            files: Vec::new(),
            set: Vec::new(),
            load: Vec::new(),
            factors: Vec::new(),
            limits: Limits::default(),
            creation: Creation::default(),
            env: Vec::new(),
            replicas: 0,
            logical_replication: false,
            replica_set: Vec::new(),
            replica_limits: Limits::default(),
            reads_replicas: false,
            tls: false,
            skips_unknown_options: false,
            statistics: false,
            durability: Durability::Process,
            transactions: TransactionKind::Pessimistic,
        }
    }

    /// Returns the options that the config declares. The names of those for the load begin with
    /// `load.`. `tls`, `durability`, `transactions`, the options for replicas, and [`Self::surroundings`] are
    /// assay's own.
    pub fn declared(&self) -> Vec<(String, String)> {
        let mut declared = self.set.clone();
        if self.tls {
            declared.push(("tls".to_owned(), "on".to_owned()));
        }
        if self.durability != Durability::Process {
            declared.push(("durability".to_owned(), self.durability.name().to_owned()));
        }
        if self.transactions != TransactionKind::Pessimistic {
            declared.push(("transactions".to_owned(), self.transactions.name().to_owned()));
        }
        declared.extend(self.replica_options());
        declared.extend(self.surroundings());

        for (name, value) in &self.load {
            let plain_name = name.strip_prefix(TABLE_OPTION).unwrap_or(name);
            declared.push((format!("{LOAD_OPTION}{plain_name}"), value.clone()));
        }
        declared
    }

    /// Returns those of the [declared](Self::declared) options that may shape a database.
    pub fn shaping(&self) -> Vec<(String, String)> {
        let facts = self.engine.facts();

        let mut shaping = self.declared();
        shaping.retain(|(name, _)| {
            let name = name.strip_prefix(LOAD_OPTION).unwrap_or(name);
            !facts.leaves_no_trace(name)
        });
        shaping
    }

    /// Returns how its databases are made and the environment of its server, as options that no
    /// engine reports. The names of environment variables begin with `env.`.
    pub fn surroundings(&self) -> Vec<(String, String)> {
        let of_creation = self.creation.declared().into_iter();
        let creation = of_creation.map(|(name, value)| (name.to_owned(), value));
        let env = self.env.iter().map(|(name, value)| (format!("{ENV}.{name}"), value.clone()));
        creation.chain(env).collect()
    }

    /// Returns whether only a server that is started shows whether the config works: its options
    /// can be read without.
    pub fn needs_trial_of_creation(&self) -> bool {
        let known = self.engine.facts().known_table_formats;
        let is_known = |format: &str| known.iter().any(|known| known.eq_ignore_ascii_case(format));
        !self.surroundings().is_empty() || !self.table_format().is_none_or(is_known)
    }

    /// Returns whether databases of the other config can be used with this one: both are made in
    /// the same way, and their tables have the same format.
    pub fn makes_the_same_database(&self, other: &Self) -> bool {
        self.creation == other.creation && self.table_format() == other.table_format()
    }

    /// Returns the format of new tables that the config selects by an option.
    fn table_format(&self) -> Option<&str> {
        let wanted = self.engine.facts().table_format_option?;
        let option = self.set.iter().rfind(|(name, _)| name.eq_ignore_ascii_case(wanted));
        option.map(|(_, value)| value.as_str())
    }

    /// Returns the options of its replicas: those of `set` and their own.
    pub fn set_of_replicas(&self) -> Vec<(String, String)> {
        self.set.iter().chain(&self.replica_set).cloned().collect()
    }

    /// Returns the options for replicas that the config declares; empty without replicas.
    pub fn replica_options(&self) -> Vec<(String, String)> {
        if self.replicas == 0 && !self.reads_replicas {
            return Vec::new();
        }

        let mut options = Vec::new();
        if self.replicas > 0 {
            options.push(("replicas".to_owned(), self.replicas.to_string()));
        }
        if self.logical_replication {
            options.push(("replication".to_owned(), "logical".to_owned()));
        }
        if self.reads_replicas {
            options.push(("reads".to_owned(), "replica".to_owned()));
        }

        // The other options are those of replicas that Assay starts.
        if self.replicas == 0 {
            return options;
        }
        for (name, value) in &self.replica_set {
            options.push((format!("replica.{name}"), value.clone()));
        }
        for (name, value) in self.replica_limits.declared() {
            options.push((format!("replica.{name}"), value));
        }
        options
    }
}

/// The table of environment variables in a config.
pub(crate) const ENV: &str = "env";
/// The prefix of options of the load, in a list with other options.
pub const LOAD_OPTION: &str = "load.";
/// The prefix that names of RocksDB's table options may have.
const TABLE_OPTION: &str = "block_based_table_factory.";

/// A build with a config.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// `build.config`, or `build.config-from-OTHER` if another target loads its database.
    pub name: String,
    /// Index in the plan's builds.
    pub build: usize,
    /// Index in the plan's configs.
    pub config: usize,
    /// Index in the plan's targets of the one that loads its database; `None`: the target itself.
    pub load_with: Option<usize>,
}

/// The target that those of an engine or of a build are compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupBase {
    /// The name of the engine or of the build.
    pub group: String,
    /// Index in the plan's targets.
    pub target: usize,
}

/// A designed experiment: its targets tell the effects of factors.
#[derive(Clone, Debug, PartialEq)]
pub struct Designed {
    /// The kind of the design.
    pub kind: design::Kind,
    /// The factors.
    pub factors: Vec<DesignFactor>,
    /// The targets, in the order of [`Plan::targets`](crate::Plan::targets). The first one is the
    /// base.
    pub targets: Vec<DesignedTarget>,
}

/// A factor of a design.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesignFactor {
    /// The name: an option, an environment variable, or a name of the plan.
    pub name: String,
    /// The levels; the first one is the base's.
    pub levels: Vec<String>,
}

/// A target of a design.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DesignedTarget {
    /// The name of the target.
    pub target: String,
    /// The index of the level of each factor.
    pub levels: Vec<usize>,
    /// The target was added to separate effects from interactions.
    pub is_folded: bool,
}
