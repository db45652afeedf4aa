//! The processes of a target: they are frozen between its turns, and measured in each.

use anyhow::Context;
use engine::guard::Guarded;
use engine::{Engine, Freezer};
use plan::Idle;
use probe::{TreeReading, TreeUse};
use record::ServerUse;

/// The processes of a running target; none for an engine that works in this process, and for a
/// server that Assay did not start.
#[derive(Default)]
pub struct Frozen {
    freezer: Option<Freezer>,
    /// The meter of the processes; `None` if their use cannot be read.
    meter: Option<TreeUse>,
    /// The same at the beginning of the turn.
    at_begin: Option<TreeReading>,
}

impl Frozen {
    /// Returns the processes of a running engine that rest between its turns.
    ///
    /// # Errors
    /// The processes cannot be frozen.
    pub fn of(engine: &dyn Engine, idle: Idle) -> anyhow::Result<Self> {
        let freezer = match idle {
            Idle::Frozen => engine.freezer().context("the server cannot be frozen")?,
            Idle::Running => None,
        };

        // Figures of the server's processes are left out where they cannot be read.
        let server = engine.server().and(engine.process_id());
        let meter = server.and_then(|server| TreeUse::open(server).ok());

        Ok(Self { freezer, meter, at_begin: None })
    }

    /// Returns the process of a cell, which rests between the cell's turns.
    ///
    /// # Errors
    /// The process cannot be frozen.
    pub fn of_process(process: &Guarded, idle: Idle) -> anyhow::Result<Self> {
        let freezer = match idle {
            Idle::Frozen => {
                Some(Freezer::of(process).context("the cell's process cannot be frozen")?)
            }
            Idle::Running => None,
        };

        Ok(Self { freezer, ..Self::default() })
    }

    /// Returns the means by which the processes are frozen, for the record; `None` if they are not.
    pub fn how(&self) -> Option<String> {
        self.freezer.as_ref().map(|freezer| freezer.how().to_string())
    }

    /// Finds the processes that a server has started for its connections.
    pub fn find_processes(&mut self) {
        if let Some(meter) = &mut self.meter
            && meter.rescan().is_err()
        {
            self.meter = None;
        }
    }

    /// Notes what the processes have used before a turn.
    pub fn begin_turn(&mut self) {
        self.at_begin = self.meter.as_mut().and_then(|meter| meter.read().ok());
    }

    /// Returns what the processes have used since the turn began, if that is known.
    pub fn used_in_turn(&mut self) -> Option<ServerUse> {
        let used = self.meter.as_mut()?.read().ok()? - self.at_begin?;

        Some(ServerUse {
            cpu_ns: used.cpu_ns,
            minor_faults: used.minor_faults,
            major_faults: used.major_faults,
            voluntary_switches: used.voluntary_switches,
            involuntary_switches: used.involuntary_switches,
        })
    }

    /// Freezes the processes.
    ///
    /// # Errors
    /// The kernel refuses, or a process was not frozen in time.
    pub fn freeze(&mut self) -> anyhow::Result<()> {
        let frozen = self.freezer.as_mut().map_or(Ok(()), Freezer::freeze);
        frozen.context("the target cannot be frozen until its next turn")
    }

    /// Lets the processes continue.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn thaw(&mut self) -> anyhow::Result<()> {
        let thawed = self.freezer.as_mut().map_or(Ok(()), Freezer::thaw);
        thawed.context("the target cannot be thawed for its turn")
    }
}
