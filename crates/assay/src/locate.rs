//! The builds of a plan: finds them and says what they are, and whether they take their configs.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use engine::{Needs, SetupError};
use plan::{BuildSource, Engine, Plan};

use crate::installed::{missing_spec, not_fetched_at};
use crate::outcome::{Several, failure_of, is_usage};
use crate::plan_file::{PlanFile, refusal};
use crate::trials::{Configs, Trials};
use crate::{engines, estimate};

/// Whether some of these cells has a server that assay starts on this host.
pub fn has_local_server(plan: &Plan, mut cells: impl Iterator<Item = plan::Cell>) -> bool {
    cells.any(|cell| {
        let build = &plan.builds[plan.targets[cell.target].build];
        build.engine != Engine::RocksDb && matches!(build.source, BuildSource::Installed(_))
    })
}

/// The builds of a plan.
pub struct Located {
    /// What they are.
    pub builds: Vec<record::Build>,
    /// Options of configs that versions don't have and that are left out, with the targets of which each is.
    pub left_out: BTreeMap<String, Vec<String>>,
}

/// Finds the builds of a plan that these cells use, and has each try its configs. A server that assay doesn't start is
/// asked for its version. `data_root` is where databases will be made, where that is known.
///
/// # Errors
/// All that is wrong, at once.
pub fn locate(
    file: &PlanFile,
    cells: impl Iterator<Item = plan::Cell>,
    data_root: Option<&Path>,
) -> anyhow::Result<Located> {
    let plan = &file.plan;
    // By build, its targets by their config, and what its cells need of a server.
    let mut used: BTreeMap<usize, (BTreeMap<usize, &str>, Needs)> = BTreeMap::new();
    for cell in cells {
        let target = &plan.targets[cell.target];
        let needs = estimate::needs(&plan.variants[cell.variant], cell.clients);
        let (targets, most) = used
            .entry(target.build)
            .or_insert_with(|| (BTreeMap::new(), needs));
        targets.entry(target.config).or_insert(&target.name);
        most.connections = most.connections.max(needs.connections);
        most.makes_tables |= needs.makes_tables;
    }
    let mut missing = Vec::new();
    let mut errors = Vec::new();
    let mut diagnostics = Vec::new();
    let mut trials = Trials::default();
    let mut builds = Vec::new();
    for (build, (targets, needs)) in used {
        let build = &plan.builds[build];
        let place = file.place_of_build(build);
        for (&config, &target) in &targets {
            if let Err(error) = engine::limits::check(&plan.configs[config].limits) {
                trials.add(config, target, "", Err(failure_of(&error.into())));
            }
        }
        let mut configs = Configs {
            file,
            targets,
            needs,
            data_root,
            trials: &mut trials,
            obstacles: Vec::new(),
        };
        let found = match missing_spec(build) {
            Ok(None) => engines::of(build.engine).find(build, &mut configs),
            Ok(Some(spec)) => {
                missing.push((spec, place));
                continue;
            }
            Err(error) => Err(error),
        };
        diagnostics.extend(configs.obstacles.into_iter().map(|obstacle| {
            let message = format!("the server of build `{}`: {}", build.name, obstacle.what);
            refusal("server::unfit", place, message, Some(&obstacle.help))
        }));
        match found.with_context(|| format!("build `{}`", build.name)) {
            Ok(found) => builds.push(record::Build {
                name: build.name.clone(),
                engine: build.engine.name().into(),
                version: found.version,
                source: found.source,
                files: found.files,
            }),
            Err(error) if is_usage(&error) => {
                let is_of_data = error.chain().any(|cause| {
                    matches!(cause.downcast_ref(), Some(SetupError::Directory { .. }))
                });
                let place = match is_of_data {
                    true => file.place_of(|key| key == "data-dir"),
                    false => place,
                };
                let failure = failure_of(&error);
                let (message, help) = (failure.causes.join(": "), failure.help.as_deref());
                diagnostics.push(refusal("build::unusable", place, message, help));
            }
            Err(error) => errors.push(error),
        }
    }
    diagnostics.extend(not_fetched_at(&missing));
    diagnostics.extend(trials.diagnostics(file));
    if let Err(refused) = file.refuse(&diagnostics) {
        errors.push(refused.into());
    }
    Several::of(errors)?;
    Ok(Located {
        builds,
        left_out: trials.left_out,
    })
}
