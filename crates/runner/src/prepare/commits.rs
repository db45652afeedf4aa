//! Builds the commits that a plan names, before anything else looks for its builds.
//!
//! Afterward, the plan names builds of the store instead, as if they had been fetched. A run that
//! is resumed uses the builds that it recorded, from the store: a record never makes anything be
//! built.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use builds::{Commit, Manifest, Patch, Recipe, Repository, Store};
use plan::{Build, BuildSource, CommitSource, Engine, Plan};
use record::{BuiltCommit, BuiltPatch};

use super::plan_file::{PlanFile, refusal};
use crate::ground::events::Events;
use crate::ground::failure::{Errors, UsageError, failure_of, is_usage};

/// A build of a plan that the store does not have yet.
pub struct Unbuilt {
    /// The name of the build in the plan.
    pub name: String,
    /// The commit to build.
    pub commit: Commit,
    /// The recipe of the build.
    pub recipe: Recipe,
    /// The time that the recipe took for another commit, if any was built here.
    pub last_duration: Option<Duration>,
}

/// Finds the commits that these cells use, and lets the plan use those builds that the store has.
/// Returns the others.
///
/// # Errors
/// Returns everything that is wrong at once: repositories, references and patches.
pub fn use_stored(
    file: &mut PlanFile,
    cells: impl Iterator<Item = plan::Cell>,
) -> anyhow::Result<Vec<Unbuilt>> {
    let mut diagnostics = Vec::new();
    let mut errors = Vec::new();
    let mut unbuilt = Vec::new();

    for index in used_commits(&file.plan, cells) {
        let build = &file.plan.builds[index];
        match find(file, build) {
            Ok(Found::Stored(stored)) => file.use_built(&build.name.clone(), &stored),
            Ok(Found::Unbuilt(found)) => unbuilt.push(*found),
            Err(error) if is_usage(&error) => {
                // The causes and the help become parts of the plan's own diagnostic, at the build's
                // place.
                let failure = failure_of(&error);
                let message = format!("build `{}`: {}", build.name, failure.causes.join(": "));
                let place = file.place_of_build(build);
                let help = failure.help.as_deref();
                diagnostics.push(refusal("build::unusable", place, message, help));
            }
            Err(error) => errors.push(error.context(format!("build `{}`", build.name))),
        }
    }

    // The plan's own mistakes come first.
    if let Err(refused) = file.refuse(&diagnostics) {
        errors.insert(0, refused.into());
    }
    Errors::combine(errors)?;

    Ok(unbuilt)
}

/// Builds the commits that these cells use, unless the store has them, and lets the plan use the
/// builds.
///
/// # Errors
/// The first commit that cannot be built.
pub fn build(
    file: &mut PlanFile,
    cells: impl Iterator<Item = plan::Cell>,
    events: &dyn Events,
) -> anyhow::Result<()> {
    for unbuilt in use_stored(file, cells)? {
        let Unbuilt { name, commit, recipe, .. } = &unbuilt;

        events.say(&format!("building `{name}`, {}", unbuilt.what()));
        let progress = |line: &str| events.say(&format!("build `{name}`: {line}"));

        // A signal ends this process, and the build with it.
        let built = recipe
            .build(&Store::of_user()?, commit, &progress, &|| false)
            .map_err(|error| error.context(format!("build `{name}`")))?;
        file.use_built(name, &built.manifest.name);
    }

    Ok(())
}

/// Lets the plan of a run use the builds that the run recorded, which must still be in the store.
pub fn use_recorded(file: &mut PlanFile, recorded: &[record::Build]) -> anyhow::Result<()> {
    let mut names: Vec<String> = Vec::new();
    for build in &file.plan.builds {
        if matches!(build.source, BuildSource::Commit(_)) {
            names.push(build.name.clone());
        }
    }

    for name in names {
        let build = recorded.iter().find(|build| build.name == name);
        let Some(commit) = build.and_then(|build| build.commit.as_ref()) else {
            // Cells of another invocation did not use it.
            continue;
        };

        // A build of that name may have been made of another commit since.
        let stored = Store::of_user()?.by_name(&commit.stored)?;
        let is_same = stored.is_some_and(|stored| {
            stored.manifest.made.is_some_and(|made| made.commit.hash == commit.hash)
        });

        if !is_same {
            let message = format!(
                "the build `{name}` of commit {} is not in the store of builds",
                commit.hash
            );
            let help = "start a new run of the plan, which builds it: \
                resuming a run never builds what a record names";
            return Err(UsageError::new(message, Some(help.into())).into());
        }

        file.use_built(&name, &commit.stored);
    }

    Ok(())
}

impl Unbuilt {
    /// Returns the commit in words: its hash, its subject, and where it is from.
    pub fn what(&self) -> String {
        let (commit, repository) = (&self.commit, self.recipe.repository.path().display());
        format!("commit {} of `{repository}` ({})", commit.short(), commit.subject)
    }
}

/// A commit of a plan, in the store or not.
enum Found {
    /// The name of the build in the store.
    Stored(String),
    Unbuilt(Box<Unbuilt>),
}

fn find(file: &PlanFile, build: &Build) -> anyhow::Result<Found> {
    let BuildSource::Commit(source) = &build.source else {
        anyhow::bail!("the build is not of a commit");
    };

    let store = Store::of_user()?;
    let recipe = recipe(file, build.engine, source)?;
    let commit = recipe.repository.resolve(&source.reference)?;

    if let Some(stored) = recipe.find(&store, &commit)? {
        return Ok(Found::Stored(stored.manifest.name));
    }

    let last_duration = recipe.last_duration(&store)?;
    let name = build.name.clone();
    Ok(Found::Unbuilt(Box::new(Unbuilt { name, commit, recipe, last_duration })))
}

/// Returns how a plan builds commits of `source`. Paths are relative to the plan's directory.
///
/// # Errors
/// The repository or the patch cannot be read.
pub fn recipe(file: &PlanFile, engine: Engine, source: &CommitSource) -> anyhow::Result<Recipe> {
    let directory = file.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let patch = source.patch.as_ref().map(|path| Patch::read(&directory.join(path))).transpose()?;

    Ok(Recipe {
        engine: engine.name().into(),
        repository: Repository::open(&directory.join(&source.repository))?,
        make: source.make.clone(),
        gives: source.gives.clone().into(),
        patch,
    })
}

/// Returns the builds of commits that these cells use, by their indexes in the plan.
fn used_commits(plan: &Plan, cells: impl Iterator<Item = plan::Cell>) -> BTreeSet<usize> {
    let mut used: BTreeSet<usize> = cells.map(|cell| plan.targets[cell.target].build).collect();
    used.retain(|&index| matches!(plan.builds[index].source, BuildSource::Commit(_)));
    used
}

/// Returns what a record says of the commit of a build in the store; `None` for other builds.
pub fn recorded(manifest: &Manifest) -> Option<BuiltCommit> {
    let made = manifest.made.clone()?;

    Some(BuiltCommit {
        stored: manifest.name.clone(),
        repository: made.repository.display().to_string(),
        hash: made.commit.hash,
        described: made.described,
        subject: made.commit.subject,
        committed_unix_s: made.commit.committed_unix_s,
        make: made.make,
        gives: made.gives.display().to_string(),
        patch: made.patch.map(|patch| BuiltPatch { name: patch.name, sha256: patch.sha256 }),
        compilers: made.compilers,
        flags: made.flags,
        duration_ms: made.duration_ms,
    })
}
