//! An earlier run whose times tell how long a plan takes.

use std::path::{Path, PathBuf};

use plan::Plan;
use record::{Run, RunDir};
use runner::matrix::known_times;
use runner::prepare::known_times::KnownTimes;

use crate::shelf::runs_in;

/// The newest runs of a folder that are searched for one of the same plan.
const SEARCHED_MAX: usize = 200;

/// The times of an earlier run, and where they are from.
pub struct KnownRun {
    /// The times of its steps.
    pub times: KnownTimes,
    /// The directory of the run.
    pub path: PathBuf,
    /// Nobody named it: it is the last run of the same plan.
    pub is_found: bool,
}

impl KnownRun {
    /// Reads the run that the user names, or else the last run of a plan of this name in the folder
    /// `results`. Runs that cannot be read, or have no complete step, are passed over unless they are
    /// named.
    ///
    /// # Errors
    /// The run that the user names cannot be read, or has no complete step.
    pub fn find(plan: &Plan, named: Option<&Path>, results: &Path) -> anyhow::Result<Option<Self>> {
        if let Some(path) = named {
            let times = known_times::of_run(path)?;
            return Ok(Some(Self { times, path: path.to_owned(), is_found: false }));
        }

        let Ok(runs) = runs_in(results) else {
            return Ok(None);
        };
        for path in runs.into_iter().rev().take(SEARCHED_MAX) {
            let run = RunDir::open(&path).and_then(|directory| directory.read_run());
            if !run.is_ok_and(|run| is_of(&run, plan)) {
                continue;
            }
            if let Ok(times) = known_times::of_run(&path) {
                return Ok(Some(Self { times, path, is_found: true }));
            }
        }
        Ok(None)
    }
}

/// Returns whether a run is of a plan with this name and workload.
fn is_of(run: &Run, plan: &Plan) -> bool {
    let workload = plan.variants.first().map(|variant| variant.workload.name());
    let recorded = run.workloads.first().map(|steps| steps.workload.as_str());
    run.name == plan.name && recorded == workload
}
