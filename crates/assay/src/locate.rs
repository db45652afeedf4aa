//! Finds the builds of a plan, identifies them, and checks that they accept their configs.

use std::collections::BTreeMap;
use std::path::Path;

use engine::{Needs, SetupError};
use plan::{Build, BuildSource, Diagnostic, Plan};
use report::terminal_text;

use crate::installed::{missing_spec, not_fetched_at};
use crate::outcome::{Errors, failure_of, is_usage};
use crate::output::eprint_line;
use crate::plan_file::{PlanFile, refusal};
use crate::trials::{Configs, ITS_REPLICAS, Refusal, Trials, Tried};
use crate::{engines, estimate, trials};

/// Returns true if one of these cells has a server that assay starts on this host.
pub fn has_local_server(plan: &Plan, mut cells: impl Iterator<Item = plan::Cell>) -> bool {
    cells.any(|cell| {
        let build = &plan.builds[plan.targets[cell.target].build];
        build.engine.facts().is_server() && matches!(build.source, BuildSource::Installed(_))
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
/// that assay doesn't start for its version. `data_root` is the directory for databases, if it is
/// known.
///
/// Warns about configs whose trial could not be completed.
///
/// # Errors
/// Returns everything that is wrong at once.
pub fn locate(
    file: &PlanFile,
    cells: impl Iterator<Item = plan::Cell>,
    data_root: Option<&Path>,
) -> anyhow::Result<Located> {
    let plan = &file.plan;
    // By build: a target for each config, and what the build's cells need from a server.
    let mut used: BTreeMap<usize, (BTreeMap<usize, &str>, Needs)> = BTreeMap::new();
    for cell in cells {
        let target = &plan.targets[cell.target];
        let needs = estimate::needs(&plan.variants[cell.variant], cell.clients);
        let (targets, build_needs) =
            used.entry(target.build).or_insert_with(|| (BTreeMap::new(), needs));
        targets.entry(target.config).or_insert(&target.name);
        build_needs.connections = build_needs.connections.max(needs.connections);
        build_needs.makes_tables |= needs.makes_tables;
    }
    let mut missing = Vec::new();
    let mut errors = Vec::new();
    let mut diagnostics = Vec::new();
    let mut outcomes = Trials::default();
    let mut builds = Vec::new();
    let mut trials = Vec::new();
    let mut owners = Vec::new();
    for (build, (targets, needs)) in used {
        let build = &plan.builds[build];
        let place = file.place_of_build(build);
        check_limits(plan, &targets, &mut outcomes);
        let mut configs =
            Configs { file, targets, needs, data_root, trials: Vec::new(), obstacles: Vec::new() };
        let facts = match missing_spec(build) {
            Ok(None) => engines::of(build.engine).find(build, &mut configs),
            Ok(Some(spec)) => {
                missing.push((spec, place));
                continue;
            }
            Err(error) => Err(error),
        };
        owners.extend(configs.trials.iter().map(|_| build));
        trials.extend(configs.trials);
        diagnostics.extend(configs.obstacles.into_iter().map(|obstacle| {
            let message = format!("the server of build `{}`: {}", build.name, obstacle.what);
            refusal("server::unfit", place, message, Some(&obstacle.help))
        }));
        match facts {
            Ok(facts) => builds.push(record::Build {
                name: build.name.clone(),
                engine: build.engine.name().into(),
                version: facts.version,
                source: facts.source,
                files: facts.files,
            }),
            Err(error) => report(file, build, error, &mut diagnostics, &mut errors),
        }
    }

    let results = trials::run_all(&trials);
    for ((trial, build), result) in trials.iter().zip(owners).zip(results) {
        match result {
            Ok(tried) => outcomes.add(trial.config, trial.target, &trial.version, tried),
            Err(error) => report(file, build, error, &mut diagnostics, &mut errors),
        }
    }

    diagnostics.extend(not_fetched_at(&missing));
    diagnostics.extend(outcomes.diagnostics(file));
    if let Err(refused) = file.refuse(&diagnostics) {
        errors.push(refused.into());
    }
    Errors::combine(errors)?;
    for warning in outcomes.warnings() {
        eprint_line!("warning: {}", terminal_text(&warning));
    }
    Ok(Located { builds, left_out: outcomes.left_out })
}

/// Checks the limits of the configs of `targets` against this host.
fn check_limits(plan: &Plan, targets: &BTreeMap<usize, &str>, outcomes: &mut Trials) {
    for (&config, &target) in targets {
        let options = &plan.configs[config];
        let checked = match engine::limits::check(&options.limits) {
            Ok(()) if options.replicas > 0 => engine::limits::check(&options.replica_limits)
                .map_err(|error| anyhow::Error::from(error).context(ITS_REPLICAS)),
            checked => checked.map_err(anyhow::Error::from),
        };
        if let Err(error) = checked {
            outcomes.add(config, target, "", Tried::Refused(Refusal::of(&error)));
        }
    }
}

/// Adds the error of a build to the diagnostics of the plan if the plan is wrong, otherwise to the
/// other errors. The error of several configs is added once.
fn report(
    file: &PlanFile,
    build: &Build,
    error: anyhow::Error,
    diagnostics: &mut Vec<Diagnostic>,
    errors: &mut Vec<anyhow::Error>,
) {
    let error = error.context(format!("build `{}`", build.name));
    let failure = failure_of(&error);
    let message = failure.causes.join(": ");
    if !is_usage(&error) {
        if !errors.iter().any(|known| failure_of(known).causes == failure.causes) {
            errors.push(error);
        }
        return;
    }

    let is_of_data = error
        .chain()
        .any(|cause| matches!(cause.downcast_ref(), Some(SetupError::Directory { .. })));
    let place = if is_of_data {
        file.place_of(|key| key == "data-dir")
    } else {
        file.place_of_build(build)
    };
    if !diagnostics.iter().any(|known| known.message == message) {
        diagnostics.push(refusal("build::unusable", place, message, failure.help.as_deref()));
    }
}
