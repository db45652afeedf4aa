//! Lists the candidates of a search.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use builds::{Repository, Spec};
use plan::{BuildSource, Plan, quoted};
use runner::failure::{UsageError, usage};
use runner::prepare::target_builds::{TargetBuild, find_all, plan_name};

use super::log::{Candidate, Source};

/// The candidates of a search, the oldest first.
#[derive(Clone, Debug)]
pub enum Candidates {
    /// The commits of a repository from one to another.
    Commits {
        /// The directory of the repository.
        repository: PathBuf,
        /// The older end.
        good: String,
        /// The newer end.
        bad: String,
    },
    /// All releases of a product from one to another.
    Releases {
        /// The older end.
        good: String,
        /// The newer end.
        bad: String,
    },
    /// These builds: specs, or names of builds.
    Builds(Vec<String>),
}

impl Candidates {
    /// Lists the candidates. `say` gets lines of progress.
    pub(super) fn list(&self, plan: &Plan, say: &dyn Fn(&str)) -> anyhow::Result<Vec<Candidate>> {
        let candidates = match self {
            Self::Commits { repository, good, bad } => commits(repository, good, bad, plan)?,
            Self::Releases { good, bad } => releases(good, bad, say)?,
            Self::Builds(builds) => of_builds(builds),
        };

        if candidates.len() < 2 {
            return usage(
                "there are fewer than two candidates",
                "give `--good` and `--bad`, or at least two `--builds`",
            );
        }
        Ok(with_different_names(candidates))
    }
}

fn of_builds(texts: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<Candidate> {
    texts.into_iter().map(|text| candidate(text.as_ref())).collect()
}

fn candidate(text: &str) -> Candidate {
    Candidate {
        title: text.to_owned(),
        build: plan_name(&text.replace('@', "")),
        source: Source::Build(text.to_owned()),
    }
}

/// Returns all releases from one to another that can be downloaded.
fn releases(good: &str, bad: &str, say: &dyn Fn(&str)) -> anyhow::Result<Vec<Candidate>> {
    let [first, last] = [good, bad].map(Spec::parse);
    let (Ok(first), Ok(last)) = (first, last) else {
        // Builds in the store have no order of their own.
        return Ok(of_builds([good, bad]));
    };
    let (Some((product, from)), Some((other, to))) = (first.release_of(), last.release_of()) else {
        return Ok(of_builds([good, bad]));
    };
    if product != other {
        return usage(
            format!("`{good}` and `{bad}` are of different products"),
            "give two versions of one product, or list all candidates: `--builds A,B,C`",
        );
    }

    let versions = builds::available(product, &|line| say(&format!("{product}: {line}")))?;
    let low = place_of(product, &versions, from, good)?;
    let high = place_of(product, &versions, to, bad)?;
    if low >= high {
        return usage(
            format!("`{good}` is not older than `{bad}`"),
            "`--good` is the older end, even if it is the slower one",
        );
    }
    Ok(of_builds(versions[low..=high].iter().map(|version| format!("{product}@{version}"))))
}

/// Returns the place among `versions` of the newest that a text means.
fn place_of(
    product: &str,
    versions: &[String],
    version: &str,
    text: &str,
) -> Result<usize, UsageError> {
    builds::newest_of(versions, version).ok_or_else(|| {
        let message = format!("`{text}` is not among the versions that can be downloaded");
        let help = format!("`assay builds --available {product}` lists them");
        UsageError::new(message, Some(help))
    })
}

/// Returns the commits from one to another, which are built as the plan's build of a commit.
fn commits(
    repository: &Path,
    good: &str,
    bad: &str,
    plan: &Plan,
) -> anyhow::Result<Vec<Candidate>> {
    let mut recipes: Vec<&str> = Vec::new();
    for build in &plan.builds {
        if matches!(build.source, BuildSource::Commit(_)) {
            recipes.push(&build.name);
        }
    }
    let [recipe] = recipes[..] else {
        return usage(
            format!("the plan has {} builds with a recipe, not one", recipes.len()),
            "add one build with `git`, `make` and `gives` to the plan: `docs/builds.md` has examples",
        );
    };

    let repository = Repository::open(repository)?;
    let (good, bad) = (repository.resolve(good)?, repository.resolve(bad)?);
    let mut commits = repository.commits_between(&good, &bad)?;
    // The older end is not one of the commits between the two.
    commits.insert(0, good);

    let candidates = commits.into_iter().map(|commit| Candidate {
        title: format!("{} {}", commit.short(), commit.subject),
        build: plan_name(&format!("c{}", commit.short())),
        source: Source::Commit { recipe: recipe.to_owned(), hash: commit.hash },
    });
    Ok(candidates.collect())
}

/// Numbers the names of builds that are alike.
fn with_different_names(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    for at in 1..candidates.len() {
        let (before, rest) = candidates.split_at_mut(at);
        let is_taken = |name: &str| before.iter().any(|candidate| candidate.build == name);
        if is_taken(&rest[0].build) {
            rest[0].build = format!("{}-{at}", rest[0].build);
        }
    }
    candidates
}

impl Candidate {
    /// Returns the change of a plan that adds the build of the candidate. It must be downloaded.
    pub(super) fn set(&self, engine: &str) -> anyhow::Result<String> {
        let build = plan::key_part(&self.build);
        Ok(match &self.source {
            Source::Build(text) => {
                let source = in_plans(text)?;
                format!("build.{build}={{{engine}={}}}", quoted(&source))
            }
            Source::Commit { recipe, hash } => {
                format!("build.{build}={{extends={},ref={}}}", quoted(recipe), quoted(hash))
            }
        })
    }
}

/// Returns how a plan names the build that a text on the command line stands for.
fn in_plans(text: &str) -> anyhow::Result<String> {
    let found = find_all(&[text.to_owned()])?;
    match found.into_iter().next() {
        Some(TargetBuild::Available { source, .. }) => Ok(source),
        Some(TargetBuild::Missing(_)) | None => anyhow::bail!("`{text}` is not downloaded"),
    }
}

/// Returns the engine of a plan, whose builds the candidates replace.
pub(super) fn engine(plan: &Plan) -> anyhow::Result<&'static str> {
    let engine = plan.builds.first().context("the plan has no build")?.engine;
    if plan.builds.iter().any(|build| build.engine != engine) {
        return usage(
            "the plan has builds of several engines",
            "remove all but those of the engine that is searched",
        );
    }
    Ok(engine.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_of_one_name_get_different_ones() {
        let candidates = with_different_names(of_builds(["dir:/a/b", "dir:/a_b", "x"]));
        let names: Vec<&str> = candidates.iter().map(|c| c.build.as_str()).collect();
        assert_eq!(names, ["dir__a_b", "dir__a_b-1", "x"]);
    }
}
