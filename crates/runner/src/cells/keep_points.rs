//! The steps after which a cell keeps its database, and the step after which the cell begins.

use plan::Reuse;
use record::{Run, RunDir};

use super::database_key::key_of;
use crate::databases::{Databases, Key, Nearest};
use crate::ground::failure::UsageError;
use crate::session::RunSession;
use crate::targets::site::CellSite;

/// A place between two steps of a cell, with the database that is kept there.
pub struct KeepPoint {
    pub(super) databases: Databases,
    pub(super) key: Key,
    /// The number of first steps that make the database.
    pub(super) steps: usize,
    /// The name of the last of them.
    pub(super) after_step: String,
}

/// The places at which a cell takes or keeps a database.
#[derive(Default)]
pub struct KeepPoints {
    /// The place at which the cell begins if its database is kept.
    pub begin: Option<KeepPoint>,
    /// The later places at which its database is kept, in their order.
    pub later: Vec<KeepPoint>,
}

impl KeepPoints {
    /// Returns the places of a cell.
    pub fn of(cell: &CellSite<'_>) -> anyhow::Result<Self> {
        let Some(counts) = StepCounts::of(cell.session, cell.planned) else {
            return Ok(Self::default());
        };

        let run = cell.run.read_run()?;
        let mut points = Self::default();
        if let Some(steps) = counts.begin {
            points.begin = KeepPoint::of(cell.session, &run, cell.planned, steps)?;
        }
        for steps in counts.later {
            points.later.extend(KeepPoint::of(cell.session, &run, cell.planned, steps)?);
        }
        Ok(points)
    }
}

impl KeepPoint {
    /// Returns the place after the first `steps` steps of a cell; `None` if the run keeps no databases.
    fn of(
        session: &RunSession<'_>,
        run: &Run,
        planned: plan::Cell,
        steps: usize,
    ) -> anyhow::Result<Option<Self>> {
        let Some(databases) = &session.databases else {
            return Ok(None);
        };

        let workload = &session.plan().variants[planned.variant].workload;
        Ok(Some(Self {
            databases: databases.clone(),
            key: key_of(session, run, planned, steps)?,
            steps,
            after_step: workload.steps()[steps - 1].name.to_owned(),
        }))
    }

    /// Returns the error of a cell that begins `from` this step, after which no fitting database is kept.
    fn missing(&self, target: &str) -> UsageError {
        let step = &self.after_step;
        let folder = self.databases.root().display();
        let message = match Nearest::find(&self.databases, &self.key, step) {
            Some(nearest) => {
                format!("no kept database fits `{target}` after `{step}`: {nearest}")
            }
            None => format!("no database of this engine is kept after `{step}` in `{folder}`"),
        };
        let help = format!(
            "make one with `assay run PLAN --keep-after {step} --only '{target}'`, without `--from`; `--reuse DIR` chooses another directory than `{folder}`"
        );
        UsageError::new(message, Some(help))
    }
}

/// The numbers of first steps of a cell after which it takes or keeps a database.
struct StepCounts {
    begin: Option<usize>,
    later: Vec<usize>,
}

impl StepCounts {
    /// Returns the numbers of a cell; `None` if it neither takes nor keeps databases.
    fn of(session: &RunSession<'_>, planned: plan::Cell) -> Option<Self> {
        let plan = session.plan();
        let engine = plan.builds[plan.targets[planned.target].build].engine;
        if session.databases.is_none() || !engine.facts().stores_data {
            return None;
        }

        let workload = &plan.variants[planned.variant].workload;
        let loading = workload.steps_that_load();
        let begin = match &plan.from {
            Some(step) => workload.steps_up_to(step),
            None if plan.reuse != Reuse::Off && loading > 0 => Some(loading),
            None => None,
        };

        // A cell begins with a copy of what was kept there, so only later databases are its own. Before
        // the load, there is nothing to keep.
        let after = begin.unwrap_or(0);
        let mut later = Vec::new();
        for step in &plan.keep_after {
            let count = workload.steps_up_to(step);
            later.extend(count.filter(|count| *count > after && workload.loads_within(*count)));
        }
        later.sort_unstable();

        Some(Self { begin, later })
    }
}

/// Returns for each cell of a group the number of the earlier cell that makes the database with which it
/// begins; `None` for a cell that makes its own, or shares none.
///
/// # Errors
/// The record of the run cannot be read, or the file of a config.
pub fn loaders_of(
    session: &RunSession<'_>,
    run: &RunDir,
    cells: &[plan::Cell],
) -> anyhow::Result<Vec<Option<usize>>> {
    if session.databases.is_none() {
        return Ok(vec![None; cells.len()]);
    }

    let record = run.read_run()?;
    let mut keys: Vec<Option<Key>> = Vec::new();
    let mut loaders = Vec::new();
    for &cell in cells {
        let mut key = None;
        if let Some(steps) = StepCounts::of(session, cell).and_then(|counts| counts.begin) {
            key = Some(key_of(session, &record, cell, steps)?);
        }

        let is_same = |earlier: &Option<Key>| key.is_some() && *earlier == key;
        loaders.push(keys.iter().position(is_same));
        keys.push(key);
    }

    Ok(loaders)
}

/// Refuses cells that begin `from` a step after which no fitting database is kept. `run` is the record
/// of the run, which says what its builds are.
///
/// # Errors
/// The first such cell, with the kept database that differs least; a database that cannot be read.
pub fn require_databases(
    session: &RunSession<'_>,
    run: &Run,
    cells: impl Iterator<Item = plan::Cell>,
) -> anyhow::Result<()> {
    if session.plan().from.is_none() {
        return Ok(());
    }

    for planned in cells {
        let Some(steps) = StepCounts::of(session, planned).and_then(|counts| counts.begin) else {
            continue;
        };
        let Some(point) = KeepPoint::of(session, run, planned, steps)? else {
            continue;
        };

        if point.databases.find(&point.key)?.is_none() {
            let target = &session.plan().targets[planned.target].name;
            return Err(point.missing(target).into());
        }
    }
    Ok(())
}

/// Refuses a cell for which no database is kept, and which must not make one: only the other target
/// can load for a `load-with` target, and a cell that begins `from` a step does not run that step.
pub fn refuse_without_database(
    cell: &CellSite<'_>,
    begin: Option<&KeepPoint>,
) -> anyhow::Result<()> {
    if cell.session.plan().from.is_some()
        && let Some(point) = begin
    {
        return Err(point.missing(&cell.record.key.target).into());
    }

    let Some(loader) = cell.loader() else {
        return Ok(());
    };

    let message = format!("no database that `{}` loaded is kept", loader.name);
    let help = format!(
        "measure `{}` in the same run, or keep its database with `reuse = true`",
        loader.name
    );

    Err(UsageError::new(message, Some(help)).into())
}
