//! Replicas in a step: their lag, and how they catch up.

use std::time::Duration;

use load::Clock as _;
use record::{Status, Step, StepWriter, Warning};

use super::StepRunner;
use super::remarks::note_unfinished;
use crate::targets::replicas::largest_by_second;

/// A step begins with lag if a replica lags by more than this, which is twice the resolution of the
/// lag.
const LAG_BEFORE_MAX: Duration = Duration::from_millis(200);

impl StepRunner<'_> {
    /// Warns if the step begins with lag.
    pub(super) fn note_lag_before(&self, record: &mut Step) {
        let Some(replication) = self.engine.replication() else {
            return;
        };

        record.lag_at_most_ns = Some(self.policy.lag_at_most.as_nanos() as u64);

        let lag = replication.lag();
        if lag > LAG_BEFORE_MAX {
            let text = format!(
                "a replica already lagged by {:.1} s when the step began",
                lag.as_secs_f64()
            );
            record.warnings.push(Warning::new("replica::behind", text));
        }
    }

    /// Records how far the replicas lagged in a step that began and lasted this long by the clock,
    /// however it ended.
    pub(super) fn record_lag(
        &self,
        started_ns: Option<u64>,
        elapsed_ns: Option<u64>,
        writer: &mut StepWriter,
    ) -> anyhow::Result<()> {
        let Some((replication, started_ns)) = self.engine.replication().zip(started_ns) else {
            return Ok(());
        };

        let so_far = || self.session.clock.now().saturating_sub(started_ns);
        let elapsed_ns = elapsed_ns.unwrap_or_else(so_far);
        let readings = replication.end_step(started_ns + elapsed_ns);

        for (at_ns, counters) in largest_by_second(readings, started_ns, elapsed_ns) {
            let second = (at_ns / 1_000_000_000) as u32;
            writer.counters(second, at_ns as i64, &counters)?;
        }
        Ok(())
    }

    /// Waits until the replicas have replayed what settling wrote, and settles those that it did
    /// not reach.
    pub(super) fn catch_up_after_settling(&self, record: &mut Step) -> anyhow::Result<()> {
        let Some(replication) = self.engine.replication() else {
            return Ok(());
        };

        replication.end_step(self.session.clock.now());

        let took = self.catch_up(record)?;
        let tables = self.runner.tables();

        let own = replication.settle(tables, self.settle_limits(), &self.session.stop)?;
        note_unfinished(record, own.unfinished);

        if let Some(settle) = &mut record.settle {
            settle.actions.extend(took.map(|took| ("replicas catch up".to_owned(), took)));
            for action in own.actions {
                settle.actions.push((action.what, action.took.as_nanos() as u64));
            }
        }

        Ok(())
    }

    /// Waits until the replicas show what the step wrote. Returns how many nanoseconds after its
    /// end they did.
    pub(super) fn catch_up(&self, record: &mut Step) -> anyhow::Result<Option<u64>> {
        let Some(replication) = self.engine.replication() else {
            return Ok(None);
        };

        let at_most = self.policy.settle_at_most;
        let took = replication.catch_up(self.runner.tables(), at_most, &self.session.stop)?;

        if took.is_none() && self.session.is_stopped() {
            record.status = Status::Interrupted;
        } else if took.is_none() {
            let text = format!(
                "a replica had not caught up {} s after the step: the next step begins with lag",
                at_most.as_secs()
            );
            record.warnings.push(Warning::new("replica::behind", text));
        }

        Ok(took.map(|took| took.as_nanos() as u64))
    }
}
