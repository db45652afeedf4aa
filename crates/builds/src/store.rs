//! The folder of builds: `$ASSAY_BUILDS`, else `/var/lib/assay/builds` for root, else
//! `assay/builds` in the user's data folder.
//!
//! Each build has one folder, which is complete or absent: it is filled under another name, and
//! renamed once its manifest is written. Downloads stay in `downloads` until their build is
//! complete.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fs_err::os::unix::fs::OpenOptionsExt as _;

use crate::error::BuildError;
use crate::hash;
use crate::listing::{entries_below, size_of};
use crate::manifest::{FILE, Manifest};
use crate::spec::{DOWNLOADS, check_name};
use crate::version::{is_version, numbers};

/// The file with the SHA-256 of every file of a build, in the format of `sha256sum`.
const FILE_HASHES: &str = "files.sha256";

/// The prefix of folders that are being filled or removed.
const PARTIAL: &str = ".partial-";

/// The folder of what root keeps. It is not in root's home, which the users that run servers cannot
/// enter.
const ROOT_DATA: &str = "/var/lib/assay";

/// The folder in which builds are kept.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// The permissions of the lock.
const LOCK_MODE: u32 = 0o600;

/// A build in the store.
#[derive(Clone, Debug)]
pub struct Build {
    /// The build's folder.
    pub folder: PathBuf,
    /// The description of the build.
    pub manifest: Manifest,
}

/// An exclusive lock on the store, released on drop.
pub struct Lock {
    _file: fs_err::File,
}

impl Build {
    /// Returns the path that the engine needs: a folder with programs, or a library.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.manifest.path)
    }

    /// Checks the hash of every file of the build; of a registered directory, only of its programs.
    pub fn verify(&self) -> Result<(), String> {
        for program in &self.manifest.programs {
            self.verify_file(&program.path, &program.sha256)?;
        }

        let Some(expected) = &self.manifest.files_sha256 else {
            return Ok(());
        };

        // The list of hashes must be right before its hashes mean anything.
        self.verify_file(Path::new(FILE_HASHES), expected)?;
        let list = self.folder.join(FILE_HASHES);
        let text = fs_err::read_to_string(&list).map_err(|error| error.to_string())?;
        for line in text.lines() {
            let (sha256, path) =
                line.split_once("  ").ok_or_else(|| format!("`{}` is damaged", list.display()))?;
            self.verify_file(Path::new(path), sha256)?;
        }

        Ok(())
    }

    fn verify_file(&self, relative: &Path, expected_sha256: &str) -> Result<(), String> {
        let path = self.folder.join(relative);
        match hash::of_file(&path) {
            Err(_) => Err(format!("`{}` is missing", path.display())),
            Ok((_, sha256)) if sha256 != expected_sha256 => {
                Err(format!("`{}` has changed", path.display()))
            }
            Ok(_) => Ok(()),
        }
    }

    /// Adds to a failed `verification` how to fetch or register the build again.
    pub fn check(&self, verification: Result<(), String>) -> Result<(), BuildError> {
        verification.map_err(|why| {
            let Manifest { name, spec, made, .. } = &self.manifest;
            let help = match spec.strip_prefix("dir:") {
                Some(path) => format!(
                    "register it again: `assay builds --remove {name}`, then `assay fetch dir:{path}={name}`"
                ),
                None if made.is_some() => format!(
                    "build it again: `assay builds --remove {name}`, then run its plan"
                ),
                None => format!(
                    "fetch it again: `assay builds --remove {name}`, then `assay fetch {spec} --name {name}`"
                ),
            };
            BuildError::new(
            format!("the build `{name}` has changed since it was fetched: {why}"),
            help,
            )
        })
    }

    /// Returns the numbers of the version; `None` for a version that is not all numbers.
    fn numbers(&self) -> Option<Vec<u64>> {
        numbers(&self.manifest.version)
    }

    /// Returns the disk space of the build's folder in bytes.
    pub fn size_bytes(&self) -> u64 {
        size_of(&self.folder)
    }
}

/// Returns the folder in which the user's databases are kept: `$ASSAY_DATABASES`, or `databases`
/// beside the builds. It need not exist.
///
/// # Errors
/// No variable names it, nor the user's home.
pub fn databases_folder() -> Result<PathBuf, BuildError> {
    let is_root = rustix::process::geteuid().is_root();
    folder_of_user("databases", "ASSAY_DATABASES", is_root, &environment)
}

/// Returns the value of an environment variable that is not empty.
fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the absolute path of the folder `what`: the value of the variable `named_by`, or a
/// folder with that name among the user's data.
fn folder_of_user(
    what: &str,
    named_by: &str,
    is_root: bool,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, BuildError> {
    let root = if let Some(root) = variable(named_by) {
        PathBuf::from(root)
    } else if is_root {
        Path::new(ROOT_DATA).join(what)
    } else if let Some(data) = variable("XDG_DATA_HOME") {
        PathBuf::from(data).join("assay").join(what)
    } else if let Some(home) = variable("HOME") {
        PathBuf::from(home).join(".local/share/assay").join(what)
    } else {
        return Err(BuildError::usage(
            format!("there is no directory for {what}: neither {named_by} nor HOME is set"),
            format!("set {named_by} to a directory for {what}"),
        ));
    };
    Ok(std::path::absolute(&root).unwrap_or(root))
}

impl Store {
    /// Returns the store in the folder `root`, which need not exist.
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the user's store, whose folder need not exist.
    pub fn of_user() -> Result<Self, BuildError> {
        let is_root = rustix::process::geteuid().is_root();
        Self::from_environment(is_root, &environment)
    }

    fn from_environment(
        is_root: bool,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, BuildError> {
        let root = folder_of_user("builds", "ASSAY_BUILDS", is_root, variable)?;
        if root.to_string_lossy().contains([':', ';']) {
            return Err(BuildError::usage(
                format!(
                    "cannot keep builds in `{}`: the loader's search path separates directories with `:` and `;`",
                    root.display()
                ),
                "set ASSAY_BUILDS to a directory without these characters",
            ));
        }

        Ok(Self { root })
    }

    /// Returns the folder of the store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder for downloads.
    pub fn downloads(&self) -> PathBuf {
        self.root.join(DOWNLOADS)
    }

    /// Locks the store for changes. Calls `progress` before it waits for another process that holds
    /// the lock.
    pub fn lock(&self, progress: &dyn Fn(&str)) -> anyhow::Result<Lock> {
        use rustix::fs::{FlockOperation, OFlags, flock};

        let missing: Vec<&Path> = self.root.ancestors().take_while(|path| !path.exists()).collect();
        let failed = "cannot create the directory for builds; ASSAY_BUILDS may name another";
        fs_err::create_dir_all(&self.root).context(failed)?;

        for folder in missing {
            // Independent of the umask: servers run as other users.
            fs_err::set_permissions(folder, PermissionsExt::from_mode(0o755))?;
        }
        fs_err::create_dir_all(self.downloads()).context(failed)?;

        // Others may be able to write to the folder: a link there is not followed. Who can open the
        // file can lock it, and so stop all downloads.
        let file = fs_err::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(LOCK_MODE)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(self.root.join(".lock"))
            .context(failed)?;
        // Earlier versions let others read the file. One of another user keeps its mode.
        let _ = file.set_permissions(PermissionsExt::from_mode(LOCK_MODE));
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            progress("waiting for another assay that is changing the builds");
            flock(&file, FlockOperation::LockExclusive).context("cannot lock the builds")?;
        }

        // Removes what an interrupted process left.
        for entry in fs_err::read_dir(&self.root)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
                remove_tree(&entry.path())?;
            }
        }

        Ok(Lock { _file: file })
    }

    /// Returns all builds, sorted by name, each with the error if its manifest cannot be read.
    pub fn list(&self) -> anyhow::Result<Vec<(String, anyhow::Result<Build>)>> {
        let entries = match fs_err::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).context("cannot list the builds"),
        };

        let mut builds = BTreeMap::new();
        for entry in entries {
            let entry = entry?;
            let (folder, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy().into_owned();
            if name.starts_with('.') || name == DOWNLOADS {
                continue;
            }
            if let Some(manifest) = Manifest::read(&folder).transpose() {
                let build = manifest.map(|manifest| Build { folder, manifest });
                builds.insert(name, build);
            }
        }

        Ok(builds.into_iter().collect())
    }

    /// Returns the builds whose manifests can be read.
    fn readable(&self) -> anyhow::Result<Vec<Build>> {
        Ok(self.list()?.into_iter().filter_map(|(_, build)| build.ok()).collect())
    }

    /// Returns the build of that name.
    pub fn by_name(&self, name: &str) -> anyhow::Result<Option<Build>> {
        if check_name(name).is_err() {
            return Ok(None);
        }
        let folder = self.root.join(name);
        Ok(Manifest::read(&folder)?.map(|manifest| Build { folder, manifest }))
    }

    /// Returns the build that was fetched for this spec.
    pub fn by_spec(&self, spec: &str) -> anyhow::Result<Option<Build>> {
        let builds = self.readable()?;
        Ok(builds.into_iter().find(|build| build.manifest.spec == spec))
    }

    /// Returns the newest build of a product.
    pub fn newest(&self, product: &str) -> anyhow::Result<Option<Build>> {
        let mut builds = self.readable()?;
        builds.retain(|build| build.manifest.product == product && build.manifest.made.is_none());
        Ok(builds.into_iter().max_by_key(Build::numbers))
    }

    /// Returns the build of `engine` that `text` in a plan means: a name, a spec or a version,
    /// tried in this order.
    pub fn find(&self, engine: &str, text: &str) -> anyhow::Result<Option<Build>> {
        if let Some(build) = self.by_name(text)? {
            if build.manifest.engine != engine {
                return Err(BuildError::usage(
                    format!("the build `{text}` is for {}, not {engine}", build.manifest.engine),
                    format!("write `{} = \"{text}\"`", build.manifest.engine),
                )
                .into());
            }
            return Ok(Some(build));
        }

        let mut builds = self.readable()?;
        builds.retain(|build| build.manifest.engine == engine);
        if let Some(build) = builds.iter().find(|build| build.manifest.spec == text) {
            return Ok(Some(build.clone()));
        }

        let (product, version) = match text.split_once('@') {
            Some((product, version)) => (Some(product), version),
            None => (None, text),
        };
        builds.retain(|build| {
            // A build of a commit has its version only in part.
            build.manifest.made.is_none()
                && is_version(&build.manifest.version, version)
                && product.is_none_or(|product| build.manifest.product == product)
        });

        let newest = builds.iter().map(Build::numbers).max();
        builds.retain(|build| Some(build.numbers()) == newest);

        if builds.len() > 1 {
            let names: Vec<&str> =
                builds.iter().map(|build| build.manifest.name.as_str()).collect();
            return Err(BuildError::usage(
                format!("`{text}` matches several builds: `{}`", names.join("`, `")),
                "write the name of one of them",
            )
            .into());
        }

        Ok(builds.pop())
    }

    /// Creates the folder in which the next build is unpacked.
    pub fn begin(&self, _lock: &Lock) -> anyhow::Result<PathBuf> {
        let folder = self.root.join(format!("{PARTIAL}fetched"));
        fs_err::create_dir(&folder)?;
        // Independent of the umask: servers run as other users.
        fs_err::set_permissions(&folder, PermissionsExt::from_mode(0o755))?;
        Ok(folder)
    }

    /// Completes the build in the folder `partial`, and renames the folder to the build's name.
    pub fn finish(
        &self,
        _lock: &Lock,
        partial: &Path,
        mut manifest: Manifest,
    ) -> anyhow::Result<Build> {
        // The name may have parts that a downloaded program printed.
        check_name(&manifest.name)?;
        let folder = self.root.join(&manifest.name);
        if folder.exists() {
            return Err(name_is_taken(&manifest.name));
        }

        // The files of a build that is elsewhere are not assay's.
        if manifest.path.is_relative() {
            let path = partial.join(FILE_HASHES);
            fs_err::write(&path, hashes_of_files(partial)?)?;
            manifest.files_sha256 = Some(hash::of_file(&path)?.1);
        }
        manifest.write(partial)?;

        // The content must be on disk before the new name says that it is complete.
        fs_err::File::open(partial.join(FILE))?.sync_all()?;
        rustix::fs::syncfs(fs_err::File::open(partial)?)?;
        fs_err::rename(partial, &folder)?;
        fs_err::File::open(&self.root)?.sync_all()?;
        Ok(Build { folder, manifest })
    }

    /// Removes the build of that name. Returns the freed disk space in bytes.
    pub fn remove(&self, _lock: &Lock, name: &str) -> anyhow::Result<u64> {
        check_name(name)?;
        let folder = self.root.join(name);
        if !folder.exists() {
            return Err(BuildError::usage(
                format!("there is no build `{name}` in `{}`", self.root.display()),
                "`assay builds` lists the builds",
            )
            .into());
        }
        if !folder.join(FILE).is_file() {
            return Err(BuildError::new(
                format!("`{}` is not a build: it has no `{FILE}`", folder.display()),
                "assay removes only directories that it created; remove this one by hand",
            )
            .into());
        }

        let size = size_of(&folder);
        // Renames first: a half-removed folder must not look like a build.
        let partial = self.root.join(format!("{PARTIAL}removed-{name}"));
        fs_err::rename(&folder, &partial)?;
        remove_tree(&partial)?;
        Ok(size)
    }
}

/// Lets all users enter the folders of a build. Returns the hash and the path of each file, one in
/// each line.
fn hashes_of_files(build: &Path) -> anyhow::Result<String> {
    let mut entries = entries_below(build)?;
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));

    let mut lines = String::new();
    for (path, metadata) in entries {
        if metadata.is_dir() {
            // Independent of the umask: servers run as other users.
            fs_err::set_permissions(path, PermissionsExt::from_mode(0o755))?;
        } else if metadata.is_file() {
            let (_, sha256) = hash::of_file(&path)?;
            let relative = path.strip_prefix(build)?.display();
            lines.push_str(&format!("{sha256}  {relative}\n"));
        }
    }

    Ok(lines)
}

/// Removes a folder with all that is in it, even folders to which a recipe has forbidden writing.
pub fn remove_tree(folder: &Path) -> std::io::Result<()> {
    let removed = fs_err::remove_dir_all(folder);
    if !removed.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
        return removed;
    }

    allow_writing(folder)?;
    fs_err::remove_dir_all(folder)
}

/// Lets the owner write to a folder and to all folders in it.
fn allow_writing(folder: &Path) -> std::io::Result<()> {
    fs_err::set_permissions(folder, PermissionsExt::from_mode(0o700))?;
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            allow_writing(&entry.path())?;
        }
    }

    Ok(())
}

/// Returns the error for a name that another build has.
pub fn name_is_taken(name: &str) -> anyhow::Error {
    BuildError::new(
        format!("another build has the name `{name}`"),
        format!("choose another name with `--name`, or remove that build: `assay builds --remove {name}`"),
    )
    .into()
}

#[cfg(test)]
mod tests;
