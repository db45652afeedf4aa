//! The end of a step: combines what its connections did.

use std::collections::BTreeMap;

use words::Connection;

use crate::start::FinishedWorker;
use crate::step::{ConnectionOutcome, StepEnd, StepOutcome};
use crate::supervise::Supervisor;

/// Returns the outcome of a step whose connections have all ended.
pub(crate) fn finish(supervisor: Supervisor<'_, '_>, finished: Vec<FinishedWorker>) -> StepOutcome {
    let Supervisor {
        mut collector,
        shared,
        limits,
        mut recording,
        interrupted,
        ..
    } = supervisor;
    let mut reasons = shared.take_poison();
    let foreground = finished.iter().filter(|it| !it.task.background);
    let ended_ns = foreground.map(|it| it.report.ended_ns).max();
    let mut elapsed_ns = ended_ns.unwrap_or(0);
    if !interrupted && reasons.is_empty() && recording.is_ok() {
        elapsed_ns = elapsed_ns.max(limits.deadline_ns().unwrap_or(0));
    }
    if recording.is_ok() {
        recording = collector.finish(elapsed_ns.div_ceil(1_000_000_000) as u32);
    }
    if let Err(reason) = recording {
        // First: what else went wrong may follow from it.
        reasons.insert(0, format!("cannot write the record: {reason}"));
    }
    let mut totals = collector.totals;
    let mut handover_wait_ns_max = 0;
    let mut connections = Vec::new();
    for (it, (rows, ok)) in finished.into_iter().zip(collector.rows_and_ok) {
        let (task, report) = (it.task, it.report);
        handover_wait_ns_max = handover_wait_ns_max.max(report.handover_wait_ns);
        let main = task.program.kinds().first();
        if let Some(total) = main.and_then(|kind| totals.get_mut(kind.0)) {
            total.offered += report.skipped;
            total.skipped += report.skipped;
        }
        let record = Connection {
            client: task.client,
            role: task.role.into(),
            started_ns: report.started_ns,
            ended_ns: report.ended_ns,
            cpu_user_ns: it.cpu.user_ns,
            cpu_system_ns: it.cpu.system_ns,
            cpu_wait_ns: it.client_use.map(|used| used.cpu_wait_ns),
            instructions: it.client_use.and_then(|used| used.instructions),
            server_thread: it.server_use,
            states: BTreeMap::new(),
            rows,
            ok,
        };
        connections.push(ConnectionOutcome {
            program: task.program,
            record,
        });
    }
    for (kind, total) in &totals {
        if total.offered != total.skipped + total.ok + total.failed && reasons.is_empty() {
            reasons.push(format!(
                "the operation counts of `{kind}` do not add up: offered {} != skipped {} + ok {} + failed {}",
                total.offered, total.skipped, total.ok, total.failed
            ));
        }
    }
    let end = match (interrupted, reasons.is_empty()) {
        (true, _) => StepEnd::Interrupted,
        (false, true) => StepEnd::Complete,
        (false, false) => StepEnd::Failed(reasons),
    };
    StepOutcome {
        end,
        elapsed_ns,
        connections,
        totals,
        handover_wait_ns_max,
    }
}
