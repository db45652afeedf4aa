//! The processes of a target that are frozen between its turns.

use anyhow::Context;
use engine::guard::Guarded;
use engine::{Engine, Freezer};
use plan::Idle;

/// The processes of a running target; none for an engine that works in this process, and for a
/// server that Assay did not start.
#[derive(Default)]
pub struct Frozen {
    freezer: Option<Freezer>,
}

impl Frozen {
    /// Returns the processes of a running engine that rest between its turns.
    ///
    /// # Errors
    /// The processes can't be frozen.
    pub fn of(engine: &dyn Engine, idle: Idle) -> anyhow::Result<Self> {
        let freezer = match idle {
            Idle::Frozen => engine.freezer().context("the server can't be frozen")?,
            Idle::Running => None,
        };
        Ok(Self { freezer })
    }

    /// Returns the process of a cell, which rests between the cell's turns.
    ///
    /// # Errors
    /// The process can't be frozen.
    pub fn of_process(process: &Guarded, idle: Idle) -> anyhow::Result<Self> {
        let freezer = match idle {
            Idle::Frozen => {
                Some(Freezer::of(process).context("the cell's process can't be frozen")?)
            }
            Idle::Running => None,
        };
        Ok(Self { freezer })
    }

    /// Freezes the processes.
    ///
    /// # Errors
    /// The kernel refuses, or a process was not frozen in time.
    pub fn freeze(&mut self) -> anyhow::Result<()> {
        let frozen = self.freezer.as_mut().map_or(Ok(()), Freezer::freeze);
        frozen.context("the target can't be frozen until its next turn")
    }

    /// Lets the processes go on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn thaw(&mut self) -> anyhow::Result<()> {
        let thawed = self.freezer.as_mut().map_or(Ok(()), Freezer::thaw);
        thawed.context("the target can't be thawed for its turn")
    }
}
