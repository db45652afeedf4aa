//! Replicas of a server.

use words::Counter;

use super::{Needs, Obstacle, ServerEngine, Table};
use crate::error::{Error, SetupError};
use crate::local::start_options::StartOptions;

/// The table of the heartbeats that a run writes on a primary. Samples of the load's sessions leave
/// out statements that use it.
pub const HEARTBEAT_TABLE: &str = "assay_heartbeat";

/// Returns the error for a replica of a server that already runs.
pub(crate) fn no_own_primary() -> SetupError {
    SetupError::config(
        "assay can start replicas only for a server that it starts",
        "remove `replicas`",
    )
}

/// A server that can have replicas. A replica is another server of the same type.
pub trait Replicated: ServerEngine + Sized {
    /// Starts a replica with the unique `name` and the data of this server. When this returns, the
    /// replica answers queries and follows this server.
    ///
    /// # Errors
    /// An error about the build, the directory or the config. Nothing keeps running.
    fn start_replica(&self, name: &str, options: &StartOptions<'_>) -> Result<Self, SetupError>;

    /// Connects to a running server of this type at `url`.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    fn attach(url: &str) -> Result<Self, SetupError>;

    /// Opens a session that watches this server, which is not one of the load's.
    ///
    /// # Errors
    /// An error of the engine.
    fn connect_watcher(&self) -> Result<Self::Session, Error>;

    /// Creates new tables of the primary, which are empty, on this replica by its session. Creates
    /// none of them, and returns false, if replication does that.
    ///
    /// # Errors
    /// An error of the engine; then none of the tables is on the replica.
    fn create_tables(
        &self,
        _primary: &mut Self::Session,
        _replica: &mut Self::Session,
        _tables: &[Table],
    ) -> Result<bool, Error> {
        Ok(false)
    }

    /// Drops tables on a replica for which [`Self::create_tables`] returned true, and does nothing
    /// on any other.
    ///
    /// # Errors
    /// An error of the engine.
    fn drop_tables(_replica: &mut Self::Session, _tables: &[Table]) -> Result<(), Error> {
        Ok(())
    }

    /// Creates the indexes of the primary's tables on a replica for which [`Self::create_tables`]
    /// returned true.
    ///
    /// # Errors
    /// An error of the engine.
    fn create_indexes(
        _primary: &mut Self::Session,
        _replica: &mut Self::Session,
        _tables: &[Table],
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the problems with a replica that assay did not start, which would make a run fail.
    ///
    /// # Errors
    /// An error of the engine.
    fn obstacles_of(&self, replica: &Self, needs: Needs) -> Result<Vec<Obstacle>, Error>;

    /// Returns how much of the primary's log the replica `name` lacks, read on sessions of both
    /// servers. These are gauges in bytes, transactions and seconds, called `NAME.written_bytes`,
    /// `NAME.replayed_bytes` and so on. Empty if the replica is not connected.
    ///
    /// # Errors
    /// An error of the engine.
    fn replication_gauges(
        primary: &mut Self::Session,
        replica: &mut Self::Session,
        name: &str,
    ) -> Result<Vec<Counter>, Error>;

    /// Returns the reason why a replica does not follow its primary now, read on a session of the
    /// replica; `None` if the replica follows.
    ///
    /// # Errors
    /// An error of the engine.
    fn replication_error(session: &mut Self::Session) -> Result<Option<String>, Error>;
}
