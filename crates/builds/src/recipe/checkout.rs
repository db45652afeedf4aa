//! Makes the source of a commit, in a repository of Assay's own.
//!
//! The new repository reads the objects of the user's (`objects/info/alternates`) and nothing else:
//! neither configuration nor hooks, so that nothing is executed that the user's repository names.
//! Nor is anything written to the user's repository, as `git worktree` would.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;

use super::git::{git_of_scratch, output, output_with_input};
use super::repository::Repository;
use crate::error::BuildError;
use crate::manifest::Commit;

/// The mode of a submodule in git's index.
const SUBMODULE_MODE: &str = "160000";

/// The objects of a repository or of a submodule, and where its own submodules have theirs.
struct Objects<'a> {
    repository: &'a Repository,
    objects: PathBuf,
    git_folder: PathBuf,
}

/// Checks out a commit with its submodules into the new folder `source`. Writes to `log` which
/// submodules the repository lacks.
///
/// # Errors
/// A [`BuildError`] if the repository lacks objects of the commit.
pub fn check_out(
    repository: &Repository,
    commit: &Commit,
    source: &Path,
    log: &mut fs_err::File,
) -> anyhow::Result<()> {
    let objects = Objects {
        repository,
        objects: repository.objects().to_path_buf(),
        git_folder: repository.git_folder().to_path_buf(),
    };

    fs_err::create_dir(source)?;
    objects.check_out(&commit.hash, source, log)
}

impl Objects<'_> {
    fn check_out(&self, hash: &str, source: &Path, log: &mut fs_err::File) -> anyhow::Result<()> {
        let format = format!("--object-format={}", self.repository.object_format());
        let made =
            output(git_of_scratch(source).args(["init", "--quiet", "--template=", &format]))?;
        anyhow::ensure!(made.is_success, "`git init` failed: {}", made.first_error());

        let info = source.join(".git/objects/info");
        fs_err::create_dir_all(&info)?;
        let mut line = self.objects.as_os_str().as_bytes().to_vec();
        anyhow::ensure!(!line.contains(&b'\n'), "the repository's path contains a line break");
        line.push(b'\n');
        fs_err::write(info.join("alternates"), line)?;

        let mut command = git_of_scratch(source);
        command.args(["-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", hash]);
        let checked_out = output(&mut command)?;
        // Git only prints which files it cannot read, and reports success.
        let missing = output(git_of_scratch(source).args(["ls-files", "--deleted"]))?;
        if !checked_out.is_success || !missing.stdout.is_empty() {
            return Err(self.lacks_objects(hash, checked_out.first_error()).into());
        }

        self.check_out_submodules(hash, source, log)
    }

    fn check_out_submodules(
        &self,
        hash: &str,
        source: &Path,
        log: &mut fs_err::File,
    ) -> anyhow::Result<()> {
        let index = output(git_of_scratch(source).args(["ls-files", "--stage", "-z"]))?;
        anyhow::ensure!(index.is_success, "`git ls-files` failed: {}", index.first_error());

        let submodules: Vec<Submodule> =
            index.stdout.split(|&byte| byte == 0).filter_map(Submodule::parse).collect();
        if submodules.is_empty() {
            return Ok(());
        }

        let names = submodule_names(hash, source)?;
        for submodule in submodules {
            let named = names.iter().find(|named| named.path == submodule.path);
            let folder = named.and_then(|named| self.folder_of_submodule(&named.name));
            let Some(git_folder) = folder else {
                // Many recipes don't need all submodules.
                let path = submodule.path.display();
                writeln!(log, "assay: the clone lacks the submodule `{path}`, which stays empty")?;
                continue;
            };

            let source = source.join(&submodule.path);
            let is_inside = source.is_dir() && !source.is_symlink();
            anyhow::ensure!(is_inside, "the submodule `{}` is not a directory", source.display());
            let objects = git_folder.join("objects");
            let inner = Objects { repository: self.repository, objects, git_folder };
            inner.check_out(&submodule.hash, &source, log)?;
        }

        Ok(())
    }

    /// Returns the folder in which the repository keeps a submodule, if it has it.
    fn folder_of_submodule(&self, name: &Path) -> Option<PathBuf> {
        let is_plain = name.components().all(|part| matches!(part, Component::Normal(_)));
        let folder = self.git_folder.join("modules").join(name);
        (is_plain && folder.join("objects").is_dir()).then_some(folder)
    }

    fn lacks_objects(&self, hash: &str, why: &str) -> BuildError {
        let (objects, path) = (self.objects.display(), self.repository.path().display());
        BuildError::new(
            format!("cannot check out {hash} from `{objects}`: {why}"),
            format!(
                "the repository may be a partial clone, which lacks files, or may lack a submodule's commit: \
                `git -C {path} fetch --recurse-submodules` gets commits, and a clone without `--filter` has all files"
            ),
        )
    }
}

/// A submodule in an index.
struct Submodule {
    path: PathBuf,
    hash: String,
}

impl Submodule {
    /// Parses an entry of `git ls-files --stage`: `160000 HASH 0<tab>PATH`. Returns `None` for a
    /// file.
    fn parse(entry: &[u8]) -> Option<Self> {
        let tab = entry.iter().position(|&byte| byte == b'\t')?;
        let (facts, path) = entry.split_at(tab);
        let mut facts = std::str::from_utf8(facts).ok()?.split(' ');
        if facts.next() != Some(SUBMODULE_MODE) {
            return None;
        }

        let path = PathBuf::from(OsStr::from_bytes(path.get(1..)?));
        Some(Self { path, hash: facts.next()?.to_owned() })
    }
}

/// A submodule in `.gitmodules`.
struct NamedSubmodule {
    name: PathBuf,
    path: PathBuf,
}

/// Returns the names of the submodules of a commit, under which a repository keeps them.
fn submodule_names(hash: &str, source: &Path) -> anyhow::Result<Vec<NamedSubmodule>> {
    let mut command = git_of_scratch(source);
    let blob = format!("{hash}:.gitmodules");
    command.args(["config", "--null", "--blob", &blob, "--get-regexp", r"^submodule\..*\.path$"]);
    let listed = output(&mut command)?;

    // Without the file there are no names, and the submodules stay empty.
    let parse = |entry: &[u8]| {
        let newline = entry.iter().position(|&byte| byte == b'\n')?;
        let (key, path) = entry.split_at(newline);
        let name = key.strip_prefix(b"submodule.")?.strip_suffix(b".path")?;
        let name = PathBuf::from(OsStr::from_bytes(name));
        Some(NamedSubmodule { name, path: PathBuf::from(OsStr::from_bytes(path.get(1..)?)) })
    };
    Ok(listed.stdout.split(|&byte| byte == 0).filter_map(parse).collect())
}

/// Applies a patch to a source. Returns git's error if it does not apply.
pub fn apply_patch(source: &Path, patch: &[u8]) -> anyhow::Result<Result<(), String>> {
    let mut command = git_of_scratch(source);
    command.args(["apply", "--whitespace=nowarn", "-"]);
    let applied = output_with_input(&mut command, patch).context("cannot apply the patch")?;

    if applied.is_success {
        return Ok(Ok(()));
    }
    Ok(Err(applied.first_error().to_owned()))
}
