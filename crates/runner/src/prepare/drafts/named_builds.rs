//! Names the builds of targets in a plan.

use builds::Spec;
use plan::Engine;
use plan::draft::DraftBuild;

use crate::ground::failure::usage;
use crate::prepare::target_builds::{TargetBuild, plan_name};

/// Builds with their names in a plan.
#[derive(Clone, Debug)]
pub struct NamedBuilds {
    /// The builds.
    pub builds: Vec<DraftBuild>,
    /// The identity of each.
    pub identities: Vec<String>,
}

/// Returns the builds with their names in a plan. A missing build keeps its spec.
///
/// # Errors
/// The engine of a missing build is not known.
pub fn name_builds(
    targets: &[String],
    target_builds: Vec<TargetBuild>,
) -> anyhow::Result<NamedBuilds> {
    let mut builds: Vec<DraftBuild> = Vec::new();
    let mut identities = Vec::new();
    for (target, target_build) in targets.iter().zip(target_builds) {
        let (engine, source, own_name, identity) = match target_build {
            TargetBuild::Available { engine, source, name, identity } => {
                (engine, source, name, identity)
            }
            TargetBuild::Missing(spec) => {
                (engine_of_missing(target, &spec)?, target.clone(), None, target.clone())
            }
        };

        let text = match (&own_name, source.as_str()) {
            (Some(name), _) => name,
            // Such words are the same for all engines, and so no names.
            (None, "bundled" | "distribution") => target,
            (None, source) => source,
        };

        let name = unused_name(plan_name(&text.replace('@', "")), &builds);
        builds.push(DraftBuild { name, engine, source });
        identities.push(identity);
    }

    Ok(NamedBuilds { builds, identities })
}

/// Returns the engine of a build that is not downloaded, as its spec tells.
fn engine_of_missing(target: &str, spec: &Spec) -> anyhow::Result<Engine> {
    let known = Engine::NAMES.iter().find(|(name, _)| spec.engine() == Some(*name));
    if let Some((_, engine)) = known {
        return Ok(*engine);
    }

    let message = format!("the engine of `{target}` is not known before its download");
    let help = format!("download it first: `assay fetch {target}`");
    usage(message, help)
}

/// Returns a name that no other build of the plan has.
fn unused_name(name: String, builds: &[DraftBuild]) -> String {
    let is_taken = |name: &String| builds.iter().any(|build| build.name == *name);
    let mut names =
        std::iter::once(name.clone()).chain((2..).map(|number: usize| format!("{name}-{number}")));
    names.find(|name| !is_taken(name)).unwrap_or(name)
}
