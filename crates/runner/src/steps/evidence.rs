//! Records the engine's own account of its state after a step: its status, the plans of statements,
//! and the bloat of indexes.

use plan::Checks;
use record::{Step, StepWriter, Warning};

use super::StepRunner;

impl StepRunner<'_> {
    /// Keeps the engine's own text about its state after the step. If the engine does not tell it,
    /// that is a warning.
    pub(super) fn keep_engine_status(
        &mut self,
        record: &mut Step,
        writer: &mut StepWriter,
    ) -> anyhow::Result<()> {
        match self.observer.status() {
            Ok(Some(text)) => writer.engine_status(&text)?,
            Ok(None) => {}
            Err(error) => {
                let text = format!("cannot read the engine's status: {error}");
                record.warnings.push(Warning::new("step::status", text));
            }
        }

        Ok(())
    }

    /// Asks the engine for the plans of the step's statements, after the step: a failure is a
    /// warning.
    pub(super) fn explain(&self, number: usize, record: &mut Step) {
        let mut errors = Vec::new();
        match self.runner.plans(number) {
            Ok(plans) => {
                for plan in &plans {
                    if let Some(error) = &plan.error {
                        errors.push(format!("`{}`: {error}", plan.statement));
                    }
                }
                record.plans = plans;
            }
            Err(error) => errors.push(format!("{error:#}")),
        }

        for error in errors {
            let text = format!("the engine did not explain a statement: {error}");
            record.warnings.push(Warning::new("step::plans", text));
        }
    }

    /// Adds the bloat of indexes to the counters after the step, beside checks that read all
    /// indexes too. A failure is a warning.
    pub(super) fn read_bloat(&mut self, record: &mut Step) {
        if self.policy.checks != Checks::Full {
            return;
        }

        match self.observer.bloat() {
            Ok(gauges) => record.counters_after.extend(gauges),
            Err(error) => {
                let text = format!("cannot read the bloat of indexes: {error}");
                record.warnings.push(Warning::new("step::bloat", text));
            }
        }
    }
}
