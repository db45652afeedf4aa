//! The log of a search: a file in its directory with the question, and the trials that were begun.
//! An interrupted search continues from it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plan::Plan;
use runner::events::PlanDiagnostics;
use runner::failure::{PlanRefused, UsageError};
use runner::prepare::trust;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::RUNS;

/// The largest file that is read.
const BYTES_MAX: u64 = 16 << 20;
/// The version of the format of all logs.
pub(crate) const FORMAT: u32 = 1;

/// The plan of a search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SearchedPlan {
    /// The absolute path.
    pub plan: PathBuf,
    /// The text, which must stay the same.
    pub plan_text: String,
    /// Changes of the plan.
    pub sets: Vec<String>,
}

impl SearchedPlan {
    /// Reads a plan.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path, sets: &[String]) -> anyhow::Result<Self> {
        let plan =
            fs_err::canonicalize(path).map_err(|error| UsageError::new(error.to_string(), None))?;
        Ok(Self { plan_text: fs_err::read_to_string(&plan)?, plan, sets: sets.to_vec() })
    }

    /// Returns the plan with its changes.
    ///
    /// # Errors
    /// The plan is not valid.
    pub fn parse(&self) -> anyhow::Result<Plan> {
        let name = self.plan.display().to_string();
        match plan::parse(&name, &self.plan_text, &self.sets) {
            Ok((plan, _)) => Ok(plan),
            Err(errors) => {
                let diagnostics = PlanDiagnostics::new(&errors, name, &self.plan_text, &self.sets);
                Err(PlanRefused(diagnostics).into())
            }
        }
    }
}

/// A trial that was begun.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Logged<T, R> {
    /// The trial.
    #[serde(alias = "phase")]
    pub trial: T,
    /// The run's folder below [`RUNS`]; `None`: it did not begin.
    pub run: Option<String>,
    /// The result; `None`: it has not ended, or could not be measured.
    pub result: Option<R>,
}

/// The log of a kind of search.
pub(crate) trait SearchLog: Serialize + DeserializeOwned {
    /// A trial.
    type Trial: Clone + PartialEq;
    /// The result of a trial.
    type Result;

    /// The file in the directory of a search.
    const FILE: &'static str;
    /// The kind of search, for messages.
    const NAME: &'static str;
    /// The name of one of its trials, for messages.
    const TRIAL: &'static str;

    /// Returns the version of the format.
    fn format(&self) -> u32;

    /// Returns the plan.
    fn plan(&self) -> &SearchedPlan;

    /// Returns the trials, in the order in which they were begun.
    fn trials(&self) -> &[Logged<Self::Trial, Self::Result>];

    /// Returns the trials, to change them.
    fn trials_mut(&mut self) -> &mut Vec<Logged<Self::Trial, Self::Result>>;

    /// Checks that the trials are of this search.
    ///
    /// # Errors
    /// A trial is not one of this search.
    fn check_trials(&self) -> anyhow::Result<()>;

    /// Creates the directory of a search and its log. Returns the directory.
    ///
    /// # Errors
    /// It cannot be written.
    fn create(&self, results: &Path, name: &str) -> anyhow::Result<PathBuf> {
        let directory = results.join(record::name_with_moment(name));
        fs_err::create_dir_all(directory.join(RUNS))?;
        self.write(&directory)?;
        Ok(directory)
    }

    /// Reads the log of a search, whose plan and builds are run: refuses what others could have
    /// written, unless the operator trusts it.
    ///
    /// # Errors
    /// The log cannot be read or is damaged, or others could have written it.
    fn read(directory: &Path, is_trusted: bool) -> anyhow::Result<Self> {
        let path = directory.join(Self::FILE);
        let log: Self = read(directory, Self::FILE, is_trusted)?;
        check(&log).with_context(|| format!("`{}` is damaged", path.display()))?;
        if !is_trusted {
            trust::refuse_recorded_plan(&log.plan().parse()?)?;
        }

        Ok(log)
    }

    /// Replaces the file in the directory of the search.
    ///
    /// # Errors
    /// It cannot be written.
    fn write(&self, directory: &Path) -> anyhow::Result<()> {
        write(directory, Self::FILE, self)
    }

    /// Refuses a plan that has changed since the search began.
    ///
    /// # Errors
    /// The plan has changed, or cannot be read.
    fn refuse_changed_plan(&self) -> anyhow::Result<()> {
        let SearchedPlan { plan, plan_text, .. } = self.plan();
        if fs_err::read_to_string(plan)? == *plan_text {
            return Ok(());
        }

        let (name, trial) = (Self::NAME, Self::TRIAL);
        let message = format!("`{}` has changed since the {name} began", plan.display());
        let help = format!("begin another {name}: {trial}s of two plans cannot be joined");
        Err(UsageError::new(message, Some(help)).into())
    }

    /// Refuses a plan of several workloads or loads, of which a search measures one.
    ///
    /// # Errors
    /// The plan has several.
    fn refuse_several_loads(plan: &Plan) -> Result<(), UsageError> {
        if plan.variants.len() > 1 {
            let help = format!("a {} measures one: remove the others", Self::NAME);
            return Err(UsageError::new("the plan has variants", Some(help)));
        }
        if plan.clients.len() > 1 {
            let help = "choose one: `--set clients=[8]`";
            let message = "the plan has several numbers of clients";
            return Err(UsageError::new(message, Some(help.into())));
        }

        Ok(())
    }

    /// Returns the index of a trial that was begun and has no result; adds it if there is none.
    fn begin(&mut self, trial: &Self::Trial) -> usize {
        let is_it = |logged: &Logged<Self::Trial, Self::Result>| {
            logged.trial == *trial && logged.result.is_none()
        };
        let trials = self.trials_mut();
        trials.iter().rposition(is_it).unwrap_or_else(|| {
            trials.push(Logged { trial: trial.clone(), run: None, result: None });
            trials.len() - 1
        })
    }
}

/// Checks what a search relies on.
fn check<L: SearchLog>(log: &L) -> anyhow::Result<()> {
    anyhow::ensure!(log.format() == FORMAT, "its format is {}, not {FORMAT}", log.format());
    log.check_trials()?;

    let mut runs = log.trials().iter().filter_map(|logged| logged.run.as_deref());
    anyhow::ensure!(runs.all(is_folder_name), "the run of a {} is not a name", L::TRIAL);
    Ok(())
}

/// Reads the log of a search, whose plan and builds are run. Refuses a directory that others could
/// have changed, unless the operator trusts it.
fn read<T: DeserializeOwned>(
    directory: &Path,
    file_name: &str,
    is_trusted: bool,
) -> anyhow::Result<T> {
    let path = directory.join(file_name);
    let file = record::open_regular(&path).map_err(|error| {
        let message = format!("cannot resume `{}`: {error}", path.display());
        UsageError::new(message, Some("give the directory of a search".into()))
    })?;

    if !is_trusted {
        trust::refuse_foreign_record(&fs_err::canonicalize(directory)?)?;
    }

    let mut text = String::new();
    // A damaged log may have any size.
    file.take(BYTES_MAX).read_to_string(&mut text)?;
    serde_json::from_str(&text).with_context(|| format!("`{}` is damaged", path.display()))
}

/// Returns the option, with a space before it, without which a search by this plan is not resumed.
pub fn trust_option(plan: &Plan) -> &'static str {
    if trust::command_key(plan).is_some() { " --trust" } else { "" }
}

/// Replaces the log in its directory.
fn write(directory: &Path, file_name: &str, log: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_vec_pretty(log)?;
    text.push(b'\n');
    record::replace_file(directory, file_name, &text)?;
    Ok(())
}

/// Returns whether a log may name this as the folder of a run.
fn is_folder_name(name: &str) -> bool {
    !name.contains('/') && name != "." && name != ".."
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_log_that_others_could_have_written_is_resumed_only_if_it_is_trusted() {
        let around = tempfile::tempdir().unwrap();
        let directory = around.path().join("search");
        let log = directory.join("tune.json");
        fs_err::create_dir(&directory).unwrap();
        write(&directory, "tune.json", &[7]).unwrap();
        assert_eq!(read::<Vec<u32>>(&directory, "tune.json", false).unwrap(), [7]);

        // The file, its folder, and the folder around that.
        for (path, mode, usual) in [
            (&log, 0o646, 0o644),
            (&directory, 0o757, 0o755),
            (&around.path().into(), 0o757, 0o755),
        ] {
            let set_mode =
                |mode| fs_err::set_permissions(path, Permissions::from_mode(mode)).unwrap();

            set_mode(mode);
            let refused = read::<Vec<u32>>(&directory, "tune.json", false).unwrap_err().to_string();
            assert!(refused.contains("other users can write to"), "{refused}");
            assert_eq!(read::<Vec<u32>>(&directory, "tune.json", true).unwrap(), [7]);
            set_mode(usual);
        }
    }

    #[test]
    fn a_log_of_a_foreign_group_is_refused() {
        // Only root can give a file to another group.
        if !rustix::process::geteuid().is_root() {
            return;
        }

        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), "tune.json", &[7]).unwrap();
        let log = directory.path().join("tune.json");
        fs_err::os::unix::fs::chown(&log, None, Some(7002)).unwrap();
        fs_err::set_permissions(&log, Permissions::from_mode(0o664)).unwrap();

        let refused = read::<Vec<u32>>(directory.path(), "tune.json", false).unwrap_err();
        assert!(refused.to_string().contains("other users can write to"), "{refused}");
    }
}
