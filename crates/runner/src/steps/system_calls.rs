//! Counts the engine's system calls in a step, if the plan says so.

use probe::{CountedThreads, SystemCallCounting};
use record::{Step, Warning};
use words::{CellKind, EngineHome, SystemCallCounts};

use crate::session::SystemCalls;

/// The code of the warning that nothing, or not everything, is counted in a step.
const UNKNOWN_IN_STEP: &str = "step::system-calls";

/// The way in which the system calls of a cell are counted.
#[derive(Clone)]
pub(crate) struct CellCalls {
    calls: SystemCalls,
    /// The engine's process; `None` if it has none on this host.
    pid: Option<u32>,
    home: EngineHome,
}

impl CellCalls {
    /// Returns the way of a measured cell; `None` if its plan counts nothing, and for other cells.
    pub(crate) fn of(
        calls: Option<&SystemCalls>,
        planned: plan::Cell,
        home: EngineHome,
        pid: Option<u32>,
    ) -> Option<Self> {
        let calls = calls.filter(|_| planned.kind == CellKind::Measured)?;
        Some(Self { calls: calls.clone(), pid, home })
    }

    /// Begins to count the threads of the engine. `clients` are the load's threads on this host,
    /// and `observer` is the server's thread for Assay's own observer.
    pub(super) fn begin(&self, clients: Vec<u32>, observer: Option<u32>) -> StepCalls {
        let threads = match (self.home, self.pid) {
            (EngineHome::Bundled, _) => CountedThreads::Clients(clients),
            (EngineHome::Library, _) => CountedThreads::Library(clients),
            (EngineHome::Server, Some(pid)) => CountedThreads::Server { pid, except: observer },
            (EngineHome::Server, None) => {
                let text = "the server is on another host, or its processes are unknown";
                return StepCalls { counting: Err(text.to_owned()), is_known_missing: false };
            }
        };

        let counting = self.calls.begin(&threads);
        StepCalls { is_known_missing: self.calls.missing().is_some(), counting }
    }
}

/// The system calls of one step, which are being counted.
pub(super) struct StepCalls {
    /// The reason why nothing is counted if it is an error.
    counting: Result<SystemCallCounting, String>,
    /// The run has warned that nothing is counted.
    is_known_missing: bool,
}

impl StepCalls {
    /// Returns what was counted until now.
    pub(super) fn end(self) -> EndedCalls {
        let counted = match self.counting {
            Ok(counting) => counting.end().map_err(|error| error.to_string()),
            Err(reason) => Err(reason),
        };
        let counts = counted.unwrap_or_else(|reason| SystemCallCounts {
            missing: Some(reason),
            ..SystemCallCounts::default()
        });

        EndedCalls { counts, is_known_missing: self.is_known_missing }
    }
}

/// The system calls of one step.
pub(super) struct EndedCalls {
    counts: SystemCallCounts,
    is_known_missing: bool,
}

impl EndedCalls {
    /// Records the counts, with a warning about what is missing that the run has not given.
    pub(super) fn record(self, record: &mut Step) {
        let Self { counts, is_known_missing } = self;
        let text = match &counts.missing {
            Some(reason) => Some(format!("system calls were not counted: {reason}")),
            None if counts.calls.is_empty() || counts.left_out.is_empty() => None,
            None => Some(format!(
                "system calls of these kinds were not counted, because this machine lacks them or \
                 `ulimit -Hn` is too low: {}",
                counts.left_out.join(", ")
            )),
        };
        if let Some(text) = text.filter(|_| !is_known_missing) {
            record.warnings.push(Warning::new(UNKNOWN_IN_STEP, text));
        }
        record.system_calls = Some(counts);
    }
}
