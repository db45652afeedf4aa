//! The processes of a target that are frozen between its turns.

use engine::Engine;
use plan::Idle;

/// The processes of a running target; none for an engine that works in this process, and for a
/// server that Assay did not start.
#[derive(Default)]
pub struct Frozen {}

impl Frozen {
    /// Returns the processes of a running engine.
    pub fn of(_engine: &dyn Engine, _idle: Idle) -> Self {
        Self {}
    }

    /// Freezes the processes.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn freeze(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Lets the processes go on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn thaw(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}
