//! The end of a step: puts together what its connections did.

use std::collections::BTreeMap;

use words::Connection;

use crate::start::Finished;
use crate::step::{Ended, Outcome, Worked};
use crate::supervise::Supervisor;

/// Returns what a step came to whose connections have all ended.
pub(crate) fn finish(supervisor: Supervisor<'_, '_>, finished: Vec<Finished>) -> Outcome {
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
    let ended_ns = foreground.map(|it| it.ending.ended_ns).max();
    let mut elapsed_ns = ended_ns.unwrap_or(0);
    if !interrupted && reasons.is_empty() && recording.is_ok() {
        elapsed_ns = elapsed_ns.max(limits.deadline_ns().unwrap_or(0));
    }
    if recording.is_ok() {
        recording = collector.finish(elapsed_ns.div_ceil(1_000_000_000) as u32);
    }
    if let Err(reason) = recording {
        // First: what else went wrong may follow from it.
        reasons.insert(0, format!("the record could not be written: {reason}"));
    }
    let mut totals = collector.totals;
    let mut handover_wait_ns_max = 0;
    let mut worked = Vec::new();
    for (it, (rows, ok)) in finished.into_iter().zip(collector.done) {
        let (task, ending) = (it.task, it.ending);
        handover_wait_ns_max = handover_wait_ns_max.max(ending.handover_wait_ns);
        let main = task.program.kinds().first();
        if let Some(total) = main.and_then(|kind| totals.get_mut(kind.0)) {
            total.offered += ending.skipped;
            total.skipped += ending.skipped;
        }
        let connection = Connection {
            client: task.client,
            role: task.role.into(),
            started_ns: ending.started_ns,
            ended_ns: ending.ended_ns,
            cpu_user_ns: it.cpu.user_ns,
            cpu_system_ns: it.cpu.system_ns,
            cpu_wait_ns: it.client_use.map(|used| used.cpu_wait_ns),
            instructions: it.client_use.and_then(|used| used.instructions),
            server_thread: it.server_use,
            states: BTreeMap::new(),
            rows,
            ok,
        };
        worked.push(Worked {
            program: task.program,
            connection,
        });
    }
    for (kind, total) in &totals {
        if total.offered != total.skipped + total.ok + total.failed && reasons.is_empty() {
            reasons.push(format!(
                "the accounting of `{kind}` does not add up: offered {} is not skipped {} + ok {} + failed {}",
                total.offered, total.skipped, total.ok, total.failed
            ));
        }
    }
    let ended = match (interrupted, reasons.is_empty()) {
        (true, _) => Ended::Interrupted,
        (false, true) => Ended::Complete,
        (false, false) => Ended::Failed(reasons),
    };
    Outcome {
        ended,
        elapsed_ns,
        worked,
        totals,
        handover_wait_ns_max,
    }
}
