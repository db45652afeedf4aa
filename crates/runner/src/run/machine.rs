//! The machine of an invocation, as it is recorded.

use plan::Reuse;
use probe::HostContext;
use record::{Host, Invocation, Status, Warning};

use crate::ground::host;
use crate::ground::request::RunRequest;
use crate::remote::LoadRanks;
use crate::session::{NO_SYSTEM_CALLS, RunSession, SystemCalls};

/// The machine at the beginning of an invocation.
pub struct Machine {
    pub host: Host,
    /// Warnings about results from it, and about the plan on it.
    pub warnings: Vec<Warning>,
}

impl Machine {
    /// Inspects the machine for a run with these needs.
    pub fn inspect(session: &RunSession<'_>, needs: HostContext<'_>) -> anyhow::Result<Self> {
        let data_dir = &session.data_root;
        let (mut host, warnings) = host::describe(HostContext { data_dir, ..needs })?;

        let clock = session.clock.source().into();
        host.facts.push(("assay_clock".into(), clock));

        let mut machine = Self { host, warnings: Vec::new() };
        let rank_warnings = session.ranks.iter().flat_map(LoadRanks::warnings);
        for Warning { code, text } in warnings.into_iter().chain(rank_warnings) {
            machine.warn(session, &code, text);
        }
        if let Some(reason) = session.system_calls.as_ref().and_then(SystemCalls::missing) {
            let text = format!("system calls cannot be counted: {reason}");
            machine.warn(session, NO_SYSTEM_CALLS, text);
        }

        Ok(machine)
    }

    /// Shows a warning, and keeps it for the record.
    pub fn warn(&mut self, session: &RunSession<'_>, code: &str, text: String) {
        session.events.warn(Some(code), &text);
        self.warnings.push(Warning::new(code, text));
    }

    /// Returns the record of this invocation.
    pub fn invocation(
        &self,
        session: &RunSession<'_>,
        request: &RunRequest,
        started_unix_ns: u64,
    ) -> Invocation {
        let ranks = session.ranks.as_ref();
        let is_own = matches!(session.file.plan.reuse, Reuse::Run | Reuse::Repeat);
        let shared = session.databases.as_ref().filter(|_| !is_own);
        Invocation {
            started_unix_ns,
            ended_unix_ns: None,
            elapsed_ns: None,
            status: Status::Incomplete,
            assay: request.assay.clone(),
            command: request.command.clone(),
            only: request.only.clone(),
            data_dir: session.data_root.display().to_string(),
            databases_dir: shared.map(|databases| databases.root().display().to_string()),
            boot_id: host::boot_id(),
            host_differences: Vec::new(),
            left_out: Vec::new(),
            client_hosts: ranks.map(LoadRanks::client_hosts).unwrap_or_default(),
            fsync: self.host.fsync,
            disk_floors: Vec::new(),
        }
    }
}
