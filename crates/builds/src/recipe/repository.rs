//! A git repository of the user, which is only read.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::git::{GitOutput, git, output};
use crate::error::BuildError;
use crate::manifest::Commit;

/// The fields of a [`Commit`] as `git log` prints them, separated by zero bytes.
const COMMIT_FORMAT: &str = "--format=%H%x00%ct%x00%s";

/// A git repository on this machine.
#[derive(Clone, Debug)]
pub struct Repository {
    /// The path of the repository or its work tree, absolute.
    path: PathBuf,
    /// The folder with its configuration and references.
    git_folder: PathBuf,
    /// The folder with its objects.
    objects: PathBuf,
    /// The kind of its hashes, such as `sha1`.
    object_format: String,
}

impl Repository {
    /// Opens the repository at `path`, the folder of a clone or a bare repository.
    ///
    /// # Errors
    /// A [`BuildError`] if there is no repository, if git refuses it because it belongs to another
    /// user, or if git is missing.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let path = fs_err::canonicalize(path).map_err(|error| {
            BuildError::usage(error.to_string(), "`git` names a clone on this machine")
        })?;

        let mut command = git(&path);
        command.args(["rev-parse", "--git-common-dir", "--git-path", "objects"]);
        let answer = output(&mut command)?;
        if !answer.is_success {
            return Err(refused(&path, &answer).into());
        }

        // Git prints the paths relative to `path`.
        let text = answer.text();
        let mut lines = text.lines();
        let (git_folder, objects) = (lines.next(), lines.next());
        let (git_folder, objects) =
            git_folder.zip(objects).context("`git rev-parse` printed no paths")?;
        let git_folder = fs_err::canonicalize(path.join(git_folder))?;
        let objects = fs_err::canonicalize(path.join(objects))?;

        let format = output(git(&path).args(["rev-parse", "--show-object-format"]))?;
        let object_format = if format.is_success { format.text() } else { "sha1".to_owned() };

        Ok(Self { path, git_folder, objects, object_format })
    }

    /// Returns the path of the repository, absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn git_folder(&self) -> &Path {
        &self.git_folder
    }

    pub(super) fn objects(&self) -> &Path {
        &self.objects
    }

    pub(super) fn object_format(&self) -> &str {
        &self.object_format
    }

    /// Returns the commit that `reference` names: a hash, a tag, a branch, or another revision in
    /// git's notation.
    ///
    /// # Errors
    /// A [`BuildError`] for a reference that is not the name of a commit.
    pub fn resolve(&self, reference: &str) -> anyhow::Result<Commit> {
        let unknown = |why: &str| {
            BuildError::usage(
                format!("`{reference}` is not a commit of `{}`: {why}", self.path.display()),
                format!(
                    "write a hash, a tag or a branch of the repository; `git -C {} fetch --tags` gets new ones",
                    self.path.display()
                ),
            )
        };

        // Git would take it for an option.
        if reference.starts_with('-') {
            return Err(unknown("a reference does not begin with `-`").into());
        }
        if reference.is_empty() || reference.contains(char::is_control) {
            return Err(unknown("it is not the name of a reference").into());
        }

        let revision = format!("{reference}^{{commit}}");
        let hash = output(git(&self.path).args(["rev-parse", "--verify", "--quiet", &revision]))?;
        if !hash.is_success {
            return Err(unknown("git finds nothing of this name").into());
        }

        let log = self.log(&["--max-count=1", &hash.text()])?;
        log.into_iter().next().context("`git log` printed no commit")
    }

    /// Returns the commits after `good` up to and including `bad`, the oldest first. Of a merge,
    /// only the first parent is followed: what a branch brought is one change.
    ///
    /// # Errors
    /// A [`BuildError`] if `good` is not an ancestor of `bad`, or both are the same commit.
    pub fn commits_between(&self, good: &Commit, bad: &Commit) -> anyhow::Result<Vec<Commit>> {
        if good.hash == bad.hash {
            return Err(BuildError::usage(
                format!("the good and the bad commit are the same: {}", good.short()),
                "give two commits between which the change came",
            )
            .into());
        }

        let mut command = git(&self.path);
        command.args(["merge-base", "--is-ancestor", &good.hash, &bad.hash]);
        if !output(&mut command)?.is_success {
            let base = output(git(&self.path).args(["merge-base", &good.hash, &bad.hash]))?;
            return Err(self.not_an_ancestor(good, bad, &base).into());
        }

        let range = format!("{}..{}", good.hash, bad.hash);
        self.log(&["--first-parent", "--reverse", &range])
    }

    /// Returns the error that no commit between the two can be asked for. `base` is what git says
    /// of where their branches part.
    fn not_an_ancestor(&self, good: &Commit, bad: &Commit, base: &GitOutput) -> BuildError {
        let help = if base.is_success {
            let hash = base.text();
            let short = hash.get(..12).unwrap_or(&hash);
            format!(
                "they are on different branches: give `{short}`, where these part, as the good one"
            )
        } else {
            "give commits of one branch; a shallow clone lacks the history between them: `git fetch --unshallow`".to_owned()
        };

        let (good, bad) = (good.short(), bad.short());
        let message = format!("the good commit {good} is not an ancestor of the bad one, {bad}");
        BuildError::usage(message, help)
    }

    /// Returns the name that git gives a commit, from the last tag before it.
    pub(super) fn describe(&self, commit: &Commit) -> anyhow::Result<String> {
        let mut command = git(&self.path);
        command.args(["describe", "--tags", "--always", "--abbrev=12", &commit.hash]);
        let described = output(&mut command)?;
        let is_named = described.is_success && !described.text().is_empty();
        Ok(if is_named { described.text() } else { commit.short().to_owned() })
    }

    /// Returns the commits that `git log` prints for these arguments.
    fn log(&self, arguments: &[&str]) -> anyhow::Result<Vec<Commit>> {
        let mut command = git(&self.path);
        command.args(["log", "--no-color", COMMIT_FORMAT]).args(arguments).arg("--");
        let log = output(&mut command)?;
        if !log.is_success {
            return Err(refused(&self.path, &log).into());
        }

        log.text().lines().map(parse_commit).collect()
    }
}

/// Parses a line of `git log` in [`COMMIT_FORMAT`].
fn parse_commit(line: &str) -> anyhow::Result<Commit> {
    let mut fields = line.splitn(3, '\0');
    let mut field = || fields.next().context("`git log` printed an incomplete commit");
    let hash = field()?.to_owned();
    let committed_unix_s = field()?.parse().context("`git log` printed no time")?;

    // A terminal would interpret what a stranger wrote.
    let subject = field()?.replace(char::is_control, "\u{FFFD}");

    Ok(Commit { hash, committed_unix_s, subject })
}

/// Returns the error for a repository that git does not read.
fn refused(path: &Path, answer: &GitOutput) -> BuildError {
    let shown = path.display();
    let error = &answer.stderr;
    if error.contains("dubious ownership") || error.contains("unsafe repository") {
        return BuildError::usage(
            format!("git does not read the repository `{shown}`: it belongs to another user"),
            format!(
                "clone it as your own; if you trust its owner, run `git config --global --add safe.directory {shown}`"
            ),
        );
    }

    if error.contains("not a git repository") {
        return BuildError::usage(
            format!("`{shown}` is not a git repository"),
            "`git` names a clone on this machine, such as `/src/rocksdb`; `git clone` makes one",
        );
    }

    BuildError::new(
        format!("git cannot read the repository `{shown}`: {}", answer.first_error()),
        format!("`git -C {shown} fsck` checks the repository"),
    )
}
