//! The ranks of an MPI job: their number, and messages between them.
//!
//! ```text
//!            mpirun -n 3 assay run PLAN
//!    rank 0                     rank 1, rank 2
//!    servers, samples,  ◄────►  load
//!    checks, record
//! ```
//!
//! Messages are bytes. They arrive in the order in which a rank sent them. Nothing here blocks or
//! spins: rank 0 shares its host with the server that is measured, so callers poll at a rate that
//! suits them. One thread of a process may use [`Ranks`].
//!
//! Without the feature `mpi` a process is always alone, and [`Ranks::join`] refuses to run in a job
//! of several ranks.
//!
//! ```
//! // This process was not started by `mpirun`.
//! assert!(ranks::Ranks::join()?.is_none());
//! # Ok::<(), ranks::RanksError>(())
//! ```

#[cfg(feature = "mpi")]
mod job;
#[cfg(not(feature = "mpi"))]
mod no_job;

#[cfg(feature = "mpi")]
pub use job::Ranks;
#[cfg(not(feature = "mpi"))]
pub use no_job::Ranks;

/// The reason why a process cannot take part in its MPI job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RanksError {
    /// This build has no MPI.
    #[error("assay was started as one of {size} MPI ranks, but this build of assay has no MPI")]
    NotBuilt {
        /// The ranks of the job.
        size: u32,
    },
    /// An MPI function failed.
    #[error("{function} failed: {reason}")]
    Mpi {
        /// The function.
        function: &'static str,
        /// The MPI library's message.
        reason: String,
    },
}

impl RanksError {
    /// Returns the remedy.
    pub fn help(&self) -> &'static str {
        match self {
            Self::NotBuilt { .. } => {
                "install libopenmpi-dev and libclang-dev, and build assay with `--features mpi`; or start it without `mpirun`"
            }
            Self::Mpi { .. } => {
                "check that `mpirun` and assay use the same MPI library, and that every host can be reached"
            }
        }
    }
}

/// Variables in which Open MPI, and MPICH and its descendants, tell a process its rank.
const RANK_VARIABLES: [&str; 2] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK"];

/// Returns true if `mpirun` started this process as another rank than 0. It need not have joined
/// the job.
pub fn is_further_rank() -> bool {
    first_number(&RANK_VARIABLES).is_some_and(|rank| rank > 0)
}

/// Variables in which they tell a process the number of ranks.
const SIZE_VARIABLES: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

/// Returns the number of ranks in the job that started this process; 1 if none did.
fn launched_ranks() -> u32 {
    first_number(&SIZE_VARIABLES).unwrap_or(1)
}

/// Returns the value of the first variable that has a number.
fn first_number(variables: &[&str]) -> Option<u32> {
    variables.iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}
