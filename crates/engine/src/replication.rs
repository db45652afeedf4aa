//! Replicas of a server, which assay starts.

use crate::{Counter, Error, ServerEngine, SetupError, StartOptions};

/// A server that can have replicas on this host. A replica is another server of the same type.
pub trait Replicated: ServerEngine + Sized {
    /// Clones this server, and starts a replica with the unique `name`. When this returns, the replica answers queries and
    /// follows this server.
    ///
    /// # Errors
    /// An error about the build, the directory or the config. Nothing keeps running.
    fn start_replica(&self, name: &str, options: &StartOptions<'_>) -> Result<Self, SetupError>;

    /// Connects to a running server of this type at `url`.
    ///
    /// # Errors
    /// The server can't be reached or refuses.
    fn attach(url: &str) -> Result<Self, SetupError>;

    /// Reads on sessions of the primary and of the replica `name` how much of the primary's log the replica lacks, as gauges in
    /// bytes, transactions and seconds, which are called `NAME.written_bytes`, `NAME.replayed_bytes` and so on. Empty if the replica
    /// is not connected.
    ///
    /// # Errors
    /// An error of the engine.
    fn behind(
        primary: &mut Self::Session,
        replica: &mut Self::Session,
        name: &str,
    ) -> Result<Vec<Counter>, Error>;

    /// Returns on a session of a replica the reason why it does not follow its primary now; `None` if it follows.
    ///
    /// # Errors
    /// An error of the engine.
    fn broken(session: &mut Self::Session) -> Result<Option<String>, Error>;
}
