//! Replicas of a server, which assay starts.

use crate::{Counter, Error, ServerEngine, SetupError, StartOptions};

/// The prefix of gauges about replicas.
pub const REPLICA_PREFIX: &str = "replica.";

/// A server that can have replicas on this host. A replica is another server of the same type.
pub trait Replicated: ServerEngine + Sized {
    /// Clones this server, and starts a replica with the unique `name`. When this returns, the replica answers queries and
    /// follows this server.
    ///
    /// # Errors
    /// An error about the build, the directory or the config. Nothing keeps running.
    fn start_replica(&self, name: &str, options: &StartOptions<'_>) -> Result<Self, SetupError>;

    /// Reads on a session of the primary how much of its log a replica lacks, as gauges in bytes. Empty if the replica is not
    /// connected.
    ///
    /// # Errors
    /// An error of the engine.
    fn behind(session: &mut Self::Session, name: &str) -> Result<Vec<Counter>, Error>;

    /// Returns the reason why this replica has stopped to follow its primary; `None` if it follows.
    ///
    /// # Errors
    /// An error of the engine.
    fn broken(&self) -> Result<Option<String>, Error>;
}
