//! Finds the builds of a plan, identifies them, and checks that they accept their configs.

use std::collections::BTreeMap;
use std::path::Path;

use engine::{Needs, SetupError};
use plan::transactions::Form;
use plan::{Build, BuildSource, Diagnostic, Engine, Limits, Place, Plan, Workload};

use super::engines;
use super::installed::{missing_spec, not_fetched_at};
use super::other_host::OtherHost;
use super::plan_file::{PlanFile, refusal};
use super::trials::{Configs, ITS_REPLICAS, Refusal, Trial, Trials, Tried};
use super::{estimate, trials};
use crate::ground::events::Events;
use crate::ground::failure::{Errors, failure_of, is_usage};

/// Returns true if one of these cells has a server that Assay starts on this host.
pub fn has_local_server(plan: &Plan, mut cells: impl Iterator<Item = plan::Cell>) -> bool {
    cells.any(|cell| {
        let build = &plan.builds[plan.targets[cell.target].build];
        build.engine.facts().is_server() && !matches!(build.source, BuildSource::Url(_))
    })
}

/// The builds of a plan.
pub struct Located {
    /// The builds as they are recorded.
    pub builds: Vec<record::Build>,
    /// Options that are left out because a version lacks them, each with its targets.
    pub left_out: BTreeMap<String, Vec<String>>,
}

/// Finds the builds of a plan that these cells use, and lets each try its configs. Asks a server
/// that Assay doesn't start for its version. Leaves out commits that are not built. `data_root` is
/// the directory for databases, if it is known. Limits of servers are checked against `host` if the
/// plan will run on another machine.
///
/// Warns about configs whose trial could not be completed.
///
/// # Errors
/// Returns everything that is wrong at once.
pub fn locate(
    file: &PlanFile,
    cells: impl Iterator<Item = plan::Cell>,
    data_root: Option<&Path>,
    host: Option<&OtherHost>,
    events: &dyn Events,
) -> anyhow::Result<Located> {
    let mut search = Search::new(file, host);

    for used in used_builds(&file.plan, cells) {
        search.find(used, data_root);
    }

    search.try_configs(events);
    search.finish(events)
}

/// A build that cells use.
struct UsedBuild<'a> {
    build: &'a Build,
    /// A target for each config, by the config's index in the plan.
    targets: BTreeMap<usize, &'a str>,
    /// The cells' needs from a server.
    needs: Needs,
}

/// Returns the builds that these cells use, in the plan's order.
fn used_builds(plan: &Plan, cells: impl Iterator<Item = plan::Cell>) -> Vec<UsedBuild<'_>> {
    let mut used: BTreeMap<usize, UsedBuild<'_>> = BTreeMap::new();
    for cell in cells {
        let target = &plan.targets[cell.target];
        let needs = estimate::needs(&plan.variants[cell.variant], cell.clients);

        let used = used.entry(target.build).or_insert_with(|| UsedBuild {
            build: &plan.builds[target.build],
            targets: BTreeMap::new(),
            needs,
        });
        // Several configs use the build: a trial checks for the largest need of any of them.
        used.targets.entry(target.config).or_insert(&target.name);
        used.needs.connections = used.needs.connections.max(needs.connections);
        used.needs.makes_tables |= needs.makes_tables;
    }

    used.into_values().collect()
}

/// The search for the builds of a plan, which continues after an error: everything that is wrong is
/// reported at once.
struct Search<'a> {
    file: &'a PlanFile,
    /// The machine on which the plan will run; `None` for this one.
    host: Option<&'a OtherHost>,
    /// The builds that were found.
    builds: Vec<record::Build>,
    /// Specs of builds that must be fetched first, with their places in the plan.
    missing: Vec<(String, Place)>,
    /// The trials of configs, each with its build.
    trials: Vec<Trial<'a>>,
    owners: Vec<&'a Build>,
    outcomes: Trials,
    /// The errors in the plan.
    diagnostics: Vec<Diagnostic>,
    /// All other errors.
    errors: Vec<anyhow::Error>,
}

impl<'a> Search<'a> {
    fn new(file: &'a PlanFile, host: Option<&'a OtherHost>) -> Self {
        Self {
            file,
            host,
            builds: Vec::new(),
            missing: Vec::new(),
            trials: Vec::new(),
            owners: Vec::new(),
            outcomes: Trials::default(),
            diagnostics: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Finds a build, and notes the trials that its configs need.
    fn find(&mut self, used: UsedBuild<'a>, data_root: Option<&'a Path>) {
        let UsedBuild { build, targets, needs } = used;

        self.check_limits(&targets);

        if matches!(build.source, BuildSource::Commit(_)) {
            // Only a run builds it.
            return;
        }

        let spec = match missing_spec(build) {
            Ok(spec) => spec,
            Err(error) => return self.note_error(build, error),
        };
        if let Some(spec) = spec {
            self.missing.push((spec, self.file.place_of_build(build)));
            return;
        }

        let mut configs = Configs {
            file: self.file,
            targets,
            needs,
            data_root,
            trials: Vec::new(),
            obstacles: Vec::new(),
        };
        let found = engines::of(build.engine).find(build, &mut configs);

        self.owners.extend(configs.trials.iter().map(|_| build));
        self.trials.extend(configs.trials);

        for obstacle in configs.obstacles {
            let message = format!("the server of build `{}`: {}", build.name, obstacle.what);
            let place = self.file.place_of_build(build);
            self.diagnostics.push(refusal("server::unfit", place, message, Some(&obstacle.help)));
        }

        // A build whose server is unfit is found all the same.
        match found {
            Ok(facts) => {
                self.check_form(build, &facts.version);
                self.builds.push(record::Build {
                    name: build.name.clone(),
                    engine: build.engine.name().into(),
                    version: facts.version,
                    source: facts.source,
                    files: facts.files,
                    commit: facts.commit,
                });
            }
            Err(error) => self.note_error(build, error),
        }
    }

    /// Notes a build that cannot run transactions as blocks: MySQL has none, unlike MariaDB.
    fn check_form(&mut self, build: &Build, version: &str) {
        let is_mysql = build.engine == Engine::Mysql && !version.contains("MariaDB");
        let has_blocks = self.file.plan.variants.iter().any(|variant| match &variant.workload {
            Workload::Transactions(transactions) => transactions.form == Form::Block,
            _ => false,
        });
        if !is_mysql || !has_blocks {
            return;
        }

        let name = &build.name;
        let message = format!(
            "transactions in the form `block` do not run on build `{name}`: MySQL {version} has no \
             blocks of statements outside of procedures"
        );
        let place = self.file.place_of_build(build);
        let help = "use `form = \"procedure\"`, or MariaDB";
        self.diagnostics.push(refusal("build::unusable", place, message, Some(help)));
    }

    /// Checks the limits of the configs of `targets` against the host.
    fn check_limits(&mut self, targets: &BTreeMap<usize, &str>) {
        for (&config, &target) in targets {
            let options = &self.file.plan.configs[config];
            let mut checked = self.check_limit(&options.limits).map_err(anyhow::Error::from);
            if checked.is_ok() && options.replicas > 0 {
                checked = self
                    .check_limit(&options.replica_limits)
                    .map_err(|error| anyhow::Error::from(error).context(ITS_REPLICAS));
            }

            if let Err(error) = checked {
                self.outcomes.add(config, target, "", Tried::Refused(Refusal::of(&error)));
            }
        }
    }

    fn check_limit(&self, limits: &Limits) -> Result<(), SetupError> {
        match self.host {
            None => engine::limits::check(limits),
            Some(host) => engine::limits::check_for(limits, &host.cpus),
        }
    }

    /// Lets the builds try their configs.
    fn try_configs(&mut self, events: &dyn Events) {
        let results = trials::run_all(&self.trials, events);
        let trials = std::mem::take(&mut self.trials);
        let owners = std::mem::take(&mut self.owners);

        for ((trial, build), result) in trials.iter().zip(owners).zip(results) {
            match result {
                Ok(tried) => {
                    self.outcomes.add(trial.config, trial.target, &trial.version, tried);
                }
                Err(error) => self.note_error(build, error),
            }
        }
    }

    /// Adds the error of a build to the diagnostics of the plan if the plan is wrong, otherwise to
    /// the other errors. The error of several configs is added once.
    fn note_error(&mut self, build: &Build, error: anyhow::Error) {
        let error = error.context(format!("build `{}`", build.name));
        let failure = failure_of(&error);

        if !is_usage(&error) {
            if !self.errors.iter().any(|known| failure_of(known).causes == failure.causes) {
                self.errors.push(error);
            }
            return;
        }

        // A directory that cannot hold databases is a mistake of `data-dir`, not of the build.
        let is_of_data = error
            .chain()
            .any(|cause| matches!(cause.downcast_ref(), Some(SetupError::Directory { .. })));
        let place = if is_of_data {
            self.file.place_of(|key| key == "data-dir")
        } else {
            self.file.place_of_build(build)
        };

        let message = failure.causes.join(": ");
        if !self.diagnostics.iter().any(|known| known.message == message) {
            let help = failure.help.as_deref();
            self.diagnostics.push(refusal("build::unusable", place, message, help));
        }
    }

    /// Returns the builds, or everything that is wrong.
    fn finish(mut self, events: &dyn Events) -> anyhow::Result<Located> {
        self.diagnostics.extend(not_fetched_at(&self.missing));
        self.diagnostics.extend(self.outcomes.diagnostics(self.file));

        // The plan's own mistakes come first.
        if let Err(refused) = self.file.refuse(&self.diagnostics) {
            self.errors.insert(0, refused.into());
        }
        Errors::combine(self.errors)?;

        for warning in self.outcomes.warnings() {
            events.warn(None, &warning);
        }

        Ok(Located { builds: self.builds, left_out: self.outcomes.left_out })
    }
}
