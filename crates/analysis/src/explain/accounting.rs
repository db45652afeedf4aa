//! The parts of an operation's time, and those that changed with throughput.

use super::FindingKind::{
    self, Cpu, Fsyncs, Handover, HostBusy, Locks, ProcessorWait, Reads, Unexplained, Writes,
};
use super::case::{Case, Pair};
use super::thresholds::{EXPLAINS, LARGEST, SHORT_SECONDS};
use crate::compare::{Difference, OWN_CPU, process_cpu};
use crate::order::sort_largest_first;

/// The metric of the time that a connection takes for an operation, in microseconds.
const TIME: &str = "op_time_us";

/// One part of that time.
pub(super) struct Part {
    pub kind: FindingKind,
    metric: &'static str,
}

/// All parts, which do not overlap.
const PARTS: [Part; 9] = [
    part(Cpu, OWN_CPU),
    part(ProcessorWait, "op_cpu_wait_us"),
    part(HostBusy, "op_steal_us"),
    part(Reads, "op_read_us"),
    part(Writes, "op_write_us"),
    part(Fsyncs, "op_fsync_us"),
    part(Locks, "op_lock_us"),
    part(Handover, "op_handover_us"),
    part(Unexplained, "op_unexplained_us"),
];

const fn part(kind: FindingKind, metric: &'static str) -> Part {
    Part { kind, metric }
}

/// Returns the metric of a part of an operation's time; `None` if the kind is none of them.
pub(super) fn metric_of(kind: FindingKind) -> Option<&'static str> {
    let part = PARTS.iter().find(|part| part.kind == kind)?;
    Some(part.metric)
}

/// A part with its change.
pub(super) struct ChangedPart {
    pub part: &'static Part,
    pub us: Pair,
    pub difference: Difference,
    /// The wait for a processor that more, or less, CPU causes. It counts as CPU, not as wait.
    pub induced_us: f64,
    /// The share of the change of an operation's time.
    pub share: f64,
}

impl ChangedPart {
    /// Returns whether the part is shown to have changed.
    pub(super) fn is_shown(&self) -> bool {
        self.difference.is_shown()
    }

    /// Returns whether the part is shown to have changed with the time of an operation, by enough
    /// to name a cause.
    fn is_candidate(&self) -> bool {
        self.difference.is_shown() && self.share >= EXPLAINS
    }
}

/// The change of an operation's time, divided among its parts.
pub(super) struct Accounting {
    pub time: Pair,
    /// The change of that time, in microseconds.
    change_us: f64,
    /// The measured parts, the largest share first.
    pub parts: Vec<ChangedPart>,
}

/// The reason why no part of an operation's time explains a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyUnexplained {
    /// The record lacks an operation's time or its parts.
    NotMeasured,
    /// The same, and only because repeats were too short for samples of what operations wait for.
    TooShort,
    /// The time of an operation is not shown to have changed with throughput.
    NotShown,
    /// No part makes up enough of the change.
    NoLargePart,
}

impl Accounting {
    /// Divides the change among the parts. `is_limited`: the targets differ in the number of
    /// processors or threads, which explains a wait for them.
    pub(super) fn new(case: &Case<'_>, is_limited: bool) -> Result<Self, WhyUnexplained> {
        let (time, whole) = changed_time(case)?;

        let mut parts: Vec<ChangedPart> = PARTS
            .iter()
            .filter_map(|part| {
                let us = case.metric(part.metric)?;
                let difference = case.difference(|row| row.metric(part.metric))?;
                Some(ChangedPart {
                    part,
                    us,
                    difference,
                    induced_us: 0.0,
                    share: difference.mean / whole.mean,
                })
            })
            .collect();

        if !is_limited {
            count_induced_wait_as_cpu(&mut parts, whole.mean);
        }

        // The unexplained time is known only if all parts are: without one of them, the largest of
        // the others may not be the cause.
        if parts.iter().all(|part| part.part.kind != Unexplained) {
            return Err(if is_too_short(case) {
                WhyUnexplained::TooShort
            } else {
                WhyUnexplained::NotMeasured
            });
        }

        sort_largest_first(&mut parts, |item| item.share);
        Ok(Self { time, change_us: whole.mean, parts })
    }

    /// Returns the parts that may explain the change, the largest first. A step that only reads is
    /// never explained by writes and fsyncs.
    pub(super) fn candidates(&self, only_reads: bool) -> Vec<&ChangedPart> {
        let is_of_writes = |kind: FindingKind| matches!(kind, Writes | Fsyncs);
        let parts = self.parts.iter().filter(|part| part.is_candidate());
        parts.filter(|part| !(only_reads && is_of_writes(part.part.kind))).collect()
    }

    /// Returns the share of a part if the wait for a processor that CPU causes counts as wait, not as
    /// CPU.
    pub(super) fn share_without_induced_wait(&self, part: &ChangedPart) -> f64 {
        part.difference.mean / self.change_us
    }

    /// Returns the longer of both times of an operation without waits for a processor, in
    /// microseconds.
    pub(super) fn time_without_processor_waits(&self) -> f64 {
        let wait_us =
            self.part(ProcessorWait).map_or(Pair { base: 0.0, value: 0.0 }, |wait| wait.us);
        f64::max(self.time.base - wait_us.base, self.time.value - wait_us.value)
    }

    /// Returns the part of one kind, where it was measured.
    pub(super) fn part(&self, kind: FindingKind) -> Option<&ChangedPart> {
        self.parts.iter().find(|part| part.part.kind == kind)
    }
}

/// Returns the time of an operation on both sides with its change, which has to be shown and in the
/// direction of the change of throughput.
pub(super) fn changed_time(case: &Case<'_>) -> Result<(Pair, Difference), WhyUnexplained> {
    let time = case.metric(TIME).ok_or(WhyUnexplained::NotMeasured)?;
    let whole = case.difference(|row| row.metric(TIME)).ok_or(WhyUnexplained::NotMeasured)?;
    let is_same_direction = (whole.mean > 0.0) == case.is_slower();
    if whole.is_shown() && is_same_direction {
        Ok((time, whole))
    } else {
        Err(WhyUnexplained::NotShown)
    }
}

/// Returns whether longer steps would have the parts of an operation's time: the threads are known,
/// and each repeat without the parts was short.
fn is_too_short(case: &Case<'_>) -> bool {
    let mut rows = case.base.rows.iter().chain(&case.side.rows);
    rows.all(|row| {
        let has_parts = row.metric("op_unexplained_us").is_some();
        has_parts || row.metric(OWN_CPU).is_some() && row.seconds < SHORT_SECONDS
    })
}

/// Returns the change of the CPU of the clients and the server's whole process, where the threads
/// of a server cannot be told apart and it may explain the change of an operation's time. The
/// process also works beside its connections, so this is not a part of that time.
pub(super) fn changed_process_cpu(case: &Case<'_>) -> Option<ChangedPart> {
    let us = case.process_cpu()?;
    let difference = case.difference(process_cpu)?;
    let (_, whole) = changed_time(case).ok()?;

    let changed = ChangedPart {
        part: &PARTS[0],
        us,
        difference,
        induced_us: 0.0,
        share: difference.mean / whole.mean,
    };

    changed.is_candidate().then_some(changed)
}

/// Returns the change of own CPU, where other parts of an operation's time were not measured and
/// it makes up so much of the change of that time that none of them can be larger.
pub(super) fn changed_own_cpu(case: &Case<'_>) -> Option<ChangedPart> {
    let us = case.metric(OWN_CPU)?;
    let difference = case.difference(|row| row.metric(OWN_CPU))?;
    let added_us = case.side.time_us() - case.base.time_us();

    let share = difference.mean / added_us;
    let changed = ChangedPart { part: &PARTS[0], us, difference, induced_us: 0.0, share };
    (changed.is_shown() && share >= LARGEST).then_some(changed)
}

/// Counts the wait for a processor that more CPU causes as CPU. On a busy host, a thread waits some
/// time for each microsecond of CPU that it uses. The side with the shorter wait shows how long. A
/// longer wait has another cause.
fn count_induced_wait_as_cpu(parts: &mut [ChangedPart], whole_us: f64) {
    let place = |kind| parts.iter().position(|part| part.part.kind == kind);
    let (Some(cpu), Some(wait)) = (place(Cpu), place(ProcessorWait)) else {
        return;
    };

    let (of_cpu, of_wait) = (&parts[cpu], &parts[wait]);
    let (cpu_us, wait_us) = (of_cpu.difference.mean, of_wait.difference.mean);
    if !of_cpu.difference.is_shown() || cpu_us * wait_us <= 0.0 {
        return;
    }

    let per_us = |cpu: f64, wait: f64| if cpu > 0.0 { wait / cpu } else { 0.0 };
    let stretch =
        per_us(of_cpu.us.base, of_wait.us.base).min(per_us(of_cpu.us.value, of_wait.us.value));
    let induced_us = wait_us.signum() * wait_us.abs().min(stretch * cpu_us.abs());

    parts[cpu].induced_us = induced_us;
    parts[cpu].share += induced_us / whole_us;
    parts[wait].share -= induced_us / whole_us;
}
