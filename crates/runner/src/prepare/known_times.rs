//! The times of an earlier run's steps and the sizes of its databases, on which an estimate of a
//! like plan rests.
//!
//! The run may have had fewer rows. Each of its steps says how much longer it took than an estimate
//! by Assay's constants says, and a step of the new plan is expected to take that much longer, too.

use std::time::Duration;

use plan::{Engine, Plan};
use record::{Status, StepReader};

use super::estimate;

/// The column of a step's host series with the size of the database's files.
const DATA_BYTES: &str = "data_bytes";

/// The times and sizes of an earlier run.
#[derive(Default)]
pub struct KnownTimes {
    steps: Vec<KnownStep>,
    sizes: Vec<KnownSize>,
}

/// A target with its engine and its number of clients.
#[derive(Clone)]
struct MeasuredTarget {
    target: String,
    engine: Engine,
    clients: u32,
}

/// A step that was measured to its end.
struct KnownStep {
    of: MeasuredTarget,
    step: String,
    took: Duration,
    estimate: Duration,
}

/// A database at its largest.
struct KnownSize {
    of: MeasuredTarget,
    bytes: u64,
    estimate: u64,
}

impl KnownTimes {
    /// Adds what the recorded steps of a cell took, and the size of its database.
    ///
    /// # Errors
    /// A record of the host cannot be read.
    pub fn add_cell(
        &mut self,
        plan: &Plan,
        cell: &plan::Cell,
        recorded: &[StepReader],
    ) -> anyhow::Result<()> {
        let target = &plan.targets[cell.target];
        let of = MeasuredTarget {
            target: target.name.clone(),
            engine: plan.builds[target.build].engine,
            clients: cell.clients,
        };

        for expected in estimate::assumed_step_times(plan, cell) {
            self.add_step(&of, &expected, recorded);
        }
        self.add_size(&of, estimate::assumed_bytes(plan, cell), recorded)
    }

    /// Returns whether no step is known.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    fn add_step(
        &mut self,
        of: &MeasuredTarget,
        expected: &estimate::StepTime,
        recorded: &[StepReader],
    ) {
        let is_it = |reader: &&StepReader| {
            let step = reader.step();
            step.name == expected.name && step.status == Status::Complete
        };
        let Some(reader) = recorded.iter().find(is_it) else {
            return;
        };

        self.steps.push(KnownStep {
            of: of.clone(),
            step: expected.name.clone(),
            took: Duration::from_nanos(reader.step().elapsed_ns),
            estimate: expected.time,
        });
    }

    /// Adds the largest size of a database that any step saw, if one did.
    fn add_size(
        &mut self,
        of: &MeasuredTarget,
        estimate: u64,
        recorded: &[StepReader],
    ) -> anyhow::Result<()> {
        let mut bytes = 0;
        for reader in recorded {
            let series = reader.host()?;
            let Some(column) = series.column(DATA_BYTES) else {
                continue;
            };
            let largest = column.values.iter().flatten().max();
            bytes = bytes.max(largest.copied().unwrap_or(0).max(0) as u64);
        }

        if bytes > 0 && estimate > 0 {
            self.sizes.push(KnownSize { of: of.clone(), bytes, estimate });
        }
        Ok(())
    }

    /// Returns by how much longer a step is expected to take than its estimate: as much as those of
    /// the same name took, of the same target or at least of the same engine, with the nearest number
    /// of clients. `None` if there was none.
    pub fn time_factor(&self, cell: &CellOfPlan<'_>, step: &str) -> Option<f64> {
        let steps = self.steps.iter().filter(|known| known.step == step);
        let like = most_like(cell, steps.map(|known| (&known.of, known)).collect());

        let took: Duration = like.iter().map(|known| known.took).sum();
        let estimate: Duration = like.iter().map(|known| known.estimate).sum();
        (!estimate.is_zero()).then(|| took.as_secs_f64() / estimate.as_secs_f64())
    }

    /// Returns how much larger than its estimate a database is expected to be.
    pub fn size_factor(&self, cell: &CellOfPlan<'_>) -> Option<f64> {
        let like = most_like(cell, self.sizes.iter().map(|known| (&known.of, known)).collect());

        let bytes: u64 = like.iter().map(|known| known.bytes).sum();
        let estimate: u64 = like.iter().map(|known| known.estimate).sum();
        (estimate > 0).then(|| bytes as f64 / estimate as f64)
    }
}

/// A cell whose time and size are to be estimated.
pub struct CellOfPlan<'p> {
    /// The name of its target.
    pub target: &'p str,
    /// The engine.
    pub engine: Engine,
    /// The number of clients.
    pub clients: u32,
}

/// Returns what was measured on the same target; without any, on the same engine. Of these, it
/// returns what was measured with the nearest number of clients.
fn most_like<'k, K>(
    cell: &CellOfPlan<'_>,
    mut known: Vec<(&'k MeasuredTarget, &'k K)>,
) -> Vec<&'k K> {
    known.retain(|(of, _)| of.engine == cell.engine);
    if known.iter().any(|(of, _)| of.target == cell.target) {
        known.retain(|(of, _)| of.target == cell.target);
    }

    let distance =
        |of: &MeasuredTarget| (f64::from(of.clients) / f64::from(cell.clients)).ln().abs();
    let nearest = known.iter().map(|(of, _)| distance(of)).fold(f64::INFINITY, f64::min);
    known.retain(|(of, _)| distance(of) <= nearest);
    known.into_iter().map(|(_, known)| known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(target: &str, engine: Engine, clients: u32, took_s: u64) -> KnownStep {
        KnownStep {
            of: MeasuredTarget { target: target.to_owned(), engine, clients },
            step: "l.i1".to_owned(),
            took: Duration::from_secs(took_s),
            estimate: Duration::from_secs(10),
        }
    }

    #[test]
    fn the_same_target_says_more_than_the_same_engine_and_the_nearest_clients_most() {
        let known = KnownTimes {
            steps: vec![
                step("pg15.a", Engine::Postgres, 1, 20),
                step("pg15.a", Engine::Postgres, 8, 40),
                step("pg17.a", Engine::Postgres, 8, 60),
                step("pg17.a", Engine::Postgres, 8, 80),
                step("my.a", Engine::Mysql, 8, 500),
            ],
            sizes: Vec::new(),
        };
        let factor = |target, engine, clients| {
            known.time_factor(&CellOfPlan { target, engine, clients }, "l.i1")
        };
        assert_eq!(factor("pg15.a", Engine::Postgres, 1), Some(2.0));
        assert_eq!(factor("pg15.a", Engine::Postgres, 40), Some(4.0));
        assert_eq!(factor("pg17.a", Engine::Postgres, 1), Some(7.0), "both repeats");
        assert_eq!(factor("pg18.a", Engine::Postgres, 8), Some(6.0), "all of the engine");
        assert_eq!(factor("lite.a", Engine::Sqlite, 8), None);
    }
}
