//! Threads that a run needs, where the system may refuse to create them.

use std::thread::JoinHandle;

/// The system refused to create a thread.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot create the thread `{name}`: {source}; allow more memory (`ulimit -v`) or threads (`ulimit -u`)"
)]
pub struct NoThread {
    name: &'static str,
    source: std::io::Error,
}

/// Starts a thread.
///
/// # Errors
/// The system refuses to create it.
pub fn spawn<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, NoThread> {
    let builder = std::thread::Builder::new().name(name.to_owned());
    builder.spawn(work).map_err(|source| NoThread { name, source })
}
