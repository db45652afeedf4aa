//! The throughput of a step, as tables show it, while it runs and at its end.

use load::OpCount;
use record::{Step, StepKind};
use words::{OpRole, plural_of};

/// The operations or rows that the throughput of a step counts.
pub struct Throughput {
    /// The kind of operation.
    pub kind: String,
    /// The throughput counts rows, not operations.
    is_of_rows: bool,
    /// The count of one operation: an event counts as its queries.
    each: f64,
    /// The name of what the throughput counts.
    pub unit: String,
}

impl Throughput {
    /// Returns the throughput of a step that loads or queries.
    pub fn of(step: &Step) -> Option<Self> {
        if matches!(step.kind, StepKind::Index | StepKind::Settle) {
            return None;
        }

        let kind = step.main_op.clone()?;
        Some(Self {
            is_of_rows: step.kind == StepKind::Load,
            each: step.queries_per_event.unwrap_or(1.0),
            unit: plural_of(step.role_of(&kind).noun(&kind)),
            kind,
        })
    }

    /// Returns what the throughput counts in some operations.
    pub fn count(&self, amount: OpCount) -> f64 {
        let count = if self.is_of_rows { amount.rows } else { amount.ok };
        count as f64 * self.each
    }
}

/// The throughput of a step that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedThroughput {
    pub per_second: f64,
    /// The unit, without the time: `queries`.
    pub unit: String,
}

impl EndedThroughput {
    /// Returns the throughput of a step; `None` of one that only settles.
    pub fn of(step: &Step) -> Option<Self> {
        let seconds = (step.elapsed_ns as f64 / 1e9).max(1e-9);
        if step.kind == StepKind::Index {
            let inserted: u64 = step.ops_of(OpRole::Insert).map(|(_, ops)| ops.rows).sum();
            let rows = step.rows_before.saturating_add(inserted);
            return Some(Self { per_second: rows as f64 / seconds, unit: "rows".to_owned() });
        }

        let throughput = Throughput::of(step)?;
        let ops = step.ops.get(&throughput.kind);
        let amount = ops.map(|ops| OpCount { ok: ops.ok, rows: ops.rows });
        let count = throughput.count(amount.unwrap_or_default());
        Some(Self { per_second: count / seconds, unit: throughput.unit })
    }
}
