//! The end of a step: combines what its connections did.

use std::collections::BTreeMap;

use engine::Error;
use words::Connection;
use workload::{Program, Summaries};

use crate::start::FinishedWorker;
use crate::step::{StepEnd, StepOutcome};
use crate::supervise::Supervisor;

/// Returns the outcome of a step whose connections have all ended.
pub(crate) fn finish(supervisor: Supervisor<'_, '_>, finished: Vec<FinishedWorker>) -> StepOutcome {
    let Supervisor { mut collector, shared, limits, mut recording, interrupted, .. } = supervisor;
    let mut reasons = shared.take_poison();
    let foreground = finished.iter().filter(|it| !it.task.background);
    let ended_ns = foreground.map(|it| it.report.ended_ns).max();
    let mut elapsed_ns = ended_ns.unwrap_or(0);
    if !interrupted && reasons.is_empty() && recording.is_ok() {
        elapsed_ns = elapsed_ns.max(limits.deadline_ns().unwrap_or(0));
    }
    // Also after an error: what can still be written must match the totals.
    let flushed = collector.finish(elapsed_ns.div_ceil(1_000_000_000) as u32);
    if recording.is_ok() {
        recording = flushed;
    }
    if let Err(reason) = recording {
        // First: what else went wrong may follow from it.
        reasons.insert(0, format!("cannot write the record: {reason}"));
    }
    let mut totals = collector.totals;
    let mut handover_wait_ns_max = 0;
    let (mut connections, mut programs) = (Vec::new(), Vec::new());
    for (it, (rows, ok)) in finished.into_iter().zip(collector.rows_and_ok) {
        let (task, report) = (it.task, it.report);
        handover_wait_ns_max = handover_wait_ns_max.max(report.handover_wait_ns);
        let main = task.program.kinds().first();
        if let Some(total) = main.and_then(|kind| totals.get_mut(kind.0)) {
            total.offered += report.skipped;
            total.skipped += report.skipped;
        }
        connections.push(Connection {
            client: task.client,
            role: task.role.into(),
            started_ns: report.started_ns,
            ended_ns: report.ended_ns,
            cpu_user_ns: it.cpu.user_ns,
            cpu_system_ns: it.cpu.system_ns,
            cpu_wait_ns: it.client_use.map(|used| used.cpu_wait_ns),
            events: it.client_use.unwrap_or_default().events,
            server_thread: it.server_use,
            states: BTreeMap::new(),
            rows,
            ok,
        });
        programs.push(task.program);
    }
    for (kind, total) in &totals {
        if total.offered != total.skipped + total.ok + total.failed {
            reasons.push(format!(
                "the operation counts of `{kind}` do not add up: offered {} != skipped {} + ok {} + failed {}",
                total.offered, total.skipped, total.ok, total.failed
            ));
        }
    }
    let mut summaries = Summaries::new();
    if !interrupted && reasons.is_empty() {
        match summarize(&connections, &mut programs) {
            Ok(all) => summaries = all,
            Err(error) => {
                reasons.push(format!("cannot read the keys that the server assigned: {error}"))
            }
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
        summaries,
        totals: totals.into_iter().map(|(kind, ops)| (kind.to_owned(), ops)).collect(),
        handover_wait_ns_max,
    }
}

/// Collects the summary of each connection.
fn summarize(
    connections: &[Connection],
    programs: &mut [Box<dyn Program>],
) -> Result<Summaries, Error> {
    let both = connections.iter().zip(programs);
    both.map(|(connection, program)| Ok((connection.client, program.summary(connection.rows)?)))
        .collect()
}
