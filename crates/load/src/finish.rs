//! The end of a step: combines what its connections did.

use std::collections::BTreeMap;

use engine::Error;
use words::{Connection, Ops};
use workload::{Program, Summaries};

use crate::collect::OpCount;
use crate::start::FinishedWorker;
use crate::step::{StepEnd, StepOutcome};
use crate::supervise::Supervisor;

/// Returns the outcome of a step whose connections have all ended.
pub(crate) fn finish(supervisor: Supervisor<'_, '_>, finished: Vec<FinishedWorker>) -> StepOutcome {
    let Supervisor { mut collector, shared, limits, mut recording, interrupted, .. } = supervisor;
    let mut reasons = shared.take_poison();

    // A step that ran as planned lasts for its whole time, even if the last reply came earlier.
    let foreground = finished.iter().filter(|worker| !worker.task.background);
    let mut elapsed_ns = foreground.map(|worker| worker.report.ended_ns).max().unwrap_or(0);
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

    // What was never sent is only known now.
    let mut totals = collector.totals;
    for worker in &finished {
        add_skipped(&mut totals, worker);
    }
    for (kind, total) in &totals {
        reasons.extend(imbalance(kind, total));
    }

    let handover_waits = finished.iter().map(|worker| worker.report.handover_wait_ns);
    let handover_wait_ns_max = handover_waits.max().unwrap_or(0);
    let mut connections = Vec::new();
    let mut programs = Vec::new();
    for (worker, done) in finished.into_iter().zip(collector.done) {
        connections.push(connection_record(&worker, done));
        programs.push(worker.task.program);
    }

    // A summary may ask the server, whose connection may be broken after a failure.
    let mut summaries = Summaries::new();
    if !interrupted && reasons.is_empty() {
        match summarize(&connections, &mut programs) {
            Ok(all) => summaries = all,
            Err(error) => {
                reasons.push(format!("cannot read the keys that the server assigned: {error}"));
            }
        }
    }

    StepOutcome {
        end: end_of_step(interrupted, reasons),
        elapsed_ns,
        connections,
        summaries,
        totals: totals.into_iter().map(|(kind, ops)| (kind.to_owned(), ops)).collect(),
        handover_wait_ns_max,
    }
}

/// Adds the operations that a connection never sent to those of its main kind.
fn add_skipped(totals: &mut BTreeMap<&'static str, Ops>, worker: &FinishedWorker) {
    let main_kind = worker.task.program.kinds().first();
    if let Some(total) = main_kind.and_then(|kind| totals.get_mut(kind.name)) {
        total.offered += worker.report.skipped;
        total.skipped += worker.report.skipped;
    }
}

/// Returns the end of a step that failed for these reasons, or ended as planned without any.
fn end_of_step(is_interrupted: bool, reasons: Vec<String>) -> StepEnd {
    if is_interrupted {
        return StepEnd::Interrupted;
    }
    if reasons.is_empty() {
        return StepEnd::Complete;
    }
    StepEnd::Failed(reasons)
}

fn connection_record(worker: &FinishedWorker, done: OpCount) -> Connection {
    let FinishedWorker { task, report, cpu, client_use, server_use } = worker;
    Connection {
        client: task.client,
        role: task.role.into(),
        started_ns: report.started_ns,
        ended_ns: report.ended_ns,
        cpu_user_ns: cpu.user_ns,
        cpu_system_ns: cpu.system_ns,
        cpu_wait_ns: client_use.map(|used| used.cpu_wait_ns),
        events: client_use.unwrap_or_default().events,
        server_thread: *server_use,
        states: BTreeMap::new(),
        rows: done.rows,
        ok: done.ok,
    }
}

/// Returns the reason to distrust the counts of a kind: each operation that was offered must have
/// been skipped, have succeeded or have failed.
fn imbalance(kind: &str, total: &Ops) -> Option<String> {
    if total.offered == total.skipped + total.ok + total.failed {
        return None;
    }
    Some(format!(
        "the operation counts of `{kind}` do not add up: offered {} != skipped {} + ok {} + failed {}",
        total.offered, total.skipped, total.ok, total.failed
    ))
}

/// Collects the summary of each connection.
fn summarize(
    connections: &[Connection],
    programs: &mut [Box<dyn Program>],
) -> Result<Summaries, Error> {
    let mut summaries = Summaries::new();
    for (connection, program) in connections.iter().zip(programs) {
        summaries.push((connection.client, program.summary(connection.rows)?));
    }
    Ok(summaries)
}
