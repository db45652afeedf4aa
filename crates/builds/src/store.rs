//! The folder of builds: `$ASSAY_BUILDS`, else `/var/lib/assay/builds` of root, else `assay/builds` where the user's data
//! belongs.
//!
//! One folder per build, whole or not there: it is made under another name and renamed when its manifest is in it. What
//! is downloaded is kept in `downloads` until it is a build.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::error::Error;
use crate::hash;
use crate::manifest::{FILE, Manifest};
use crate::spec::{DOWNLOADS, check_name};
use crate::version::{is_version, numbers};

/// The SHA-256 of every file of a build, as `sha256sum` writes them.
const FILES: &str = "files.sha256";

/// Folders that begin so are not yet builds, or no longer.
const PARTIAL: &str = ".partial-";

/// Where builds of root are kept: servers then run as other users, who can't enter root's home.
const OF_ROOT: &str = "/var/lib/assay/builds";

/// Where builds are kept.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// A build in the store.
#[derive(Clone, Debug)]
pub struct Build {
    /// Its folder.
    pub folder: PathBuf,
    /// What it is.
    pub manifest: Manifest,
}

/// The right to change the store, as long as it lives.
pub struct Lock {
    _file: fs_err::File,
}

impl Build {
    /// What the engine is given.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.manifest.path)
    }

    /// Compares every file of the build with what it was, or of one that was only registered its programs.
    pub fn verify(&self) -> Result<(), String> {
        let check = |path: &Path, expected: &str| {
            let path = self.folder.join(path);
            match hash::of_file(&path) {
                Err(_) => Err(format!("`{}` is missing", path.display())),
                Ok((_, found)) if found != expected => {
                    Err(format!("`{}` has changed", path.display()))
                }
                Ok(_) => Ok(()),
            }
        };
        for program in &self.manifest.programs {
            check(&program.path, &program.sha256)?;
        }
        let Some(expected) = &self.manifest.files_sha256 else {
            return Ok(());
        };
        check(Path::new(FILES), expected)?;
        let list = self.folder.join(FILES);
        let text = fs_err::read_to_string(&list).map_err(|error| error.to_string())?;
        for line in text.lines() {
            let (sha256, path) = line
                .split_once("  ")
                .ok_or_else(|| format!("`{}` can't be understood", list.display()))?;
            check(Path::new(path), sha256)?;
        }
        Ok(())
    }

    /// Returns an error that says how to have it again, where `state` says that it is not what was fetched.
    pub fn check(&self, state: Result<(), String>) -> Result<(), Error> {
        state.map_err(|what| {
            let Manifest { name, spec, .. } = &self.manifest;
            let again = match spec.strip_prefix("dir:") {
                Some(path) => format!(
                    "register it again: `assay builds --remove {name}`, `assay fetch dir:{path}={name}`"
                ),
                None => format!(
                    "fetch it again: `assay builds --remove {name}`, `assay fetch {spec} --name {name}`"
                ),
            };
            Error::new(format!("the build `{name}` is not what was fetched: {what}"), again)
        })
    }

    /// The numbers of its version, if it is all numbers.
    fn numbers(&self) -> Option<Vec<u64>> {
        numbers(&self.manifest.version)
    }

    /// Bytes on disk, of what is the store's.
    pub fn size_bytes(&self) -> u64 {
        size_of(&self.folder)
    }
}

impl Store {
    /// The user's store. It need not exist.
    pub fn of_user() -> Result<Self, Error> {
        let is_root = rustix::process::geteuid().is_root();
        Self::of(is_root, &|name| {
            std::env::var_os(name).filter(|value| !value.is_empty())
        })
    }

    fn of(is_root: bool, set: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let root = if let Some(root) = set("ASSAY_BUILDS") {
            PathBuf::from(root)
        } else if is_root {
            PathBuf::from(OF_ROOT)
        } else if let Some(data) = set("XDG_DATA_HOME") {
            PathBuf::from(data).join("assay/builds")
        } else if let Some(home) = set("HOME") {
            PathBuf::from(home).join(".local/share/assay/builds")
        } else {
            return Err(Error::usage(
                "it is not known where builds are kept: neither ASSAY_BUILDS nor HOME is set",
                "name a folder for them in ASSAY_BUILDS",
            ));
        };
        let root = std::path::absolute(&root).unwrap_or(root);
        if root.to_string_lossy().contains([':', ';']) {
            return Err(Error::usage(
                format!(
                    "builds can't be kept in `{}`: `:` and `;` part the folders of libraries",
                    root.display()
                ),
                "name another folder for them in ASSAY_BUILDS",
            ));
        }
        Ok(Self { root })
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder for downloads.
    pub fn downloads(&self) -> PathBuf {
        self.root.join(DOWNLOADS)
    }

    /// The right to change it; waits for another assay that has it, after saying so.
    pub fn lock(&self, say: &dyn Fn(&str)) -> anyhow::Result<Lock> {
        use rustix::fs::{FlockOperation, flock};
        let ancestors = self.root.ancestors();
        let new: Vec<&Path> = ancestors.take_while(|path| !path.exists()).collect();
        fs_err::create_dir_all(&self.root).context("builds can't be kept")?;
        for folder in new {
            // Whatever the user's own mask: servers run as other users.
            fs_err::set_permissions(folder, PermissionsExt::from_mode(0o755))?;
        }
        fs_err::create_dir_all(self.downloads()).context("builds can't be kept")?;
        let file = fs_err::File::create(self.root.join(".lock")).context("builds can't be kept")?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            say("another assay changes the builds; waiting for it");
            flock(&file, FlockOperation::LockExclusive).context("the builds can't be locked")?;
        }
        // What an interrupted one left is no build.
        for entry in fs_err::read_dir(&self.root)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
                fs_err::remove_dir_all(entry.path())?;
            }
        }
        Ok(Lock { _file: file })
    }

    /// Its builds by name; with each that can't be read, why.
    pub fn list(&self) -> anyhow::Result<Vec<(String, anyhow::Result<Build>)>> {
        let entries = match fs_err::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).context("the builds can't be read"),
        };
        let mut builds = BTreeMap::new();
        for entry in entries {
            let entry = entry?;
            let (folder, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy().into_owned();
            if name.starts_with('.') || name == DOWNLOADS {
                continue;
            }
            if let Some(read) = Manifest::read(&folder).transpose() {
                let read = read.map(|manifest| Build { folder, manifest });
                builds.insert(name, read);
            }
        }
        Ok(builds.into_iter().collect())
    }

    /// The builds that can be read.
    fn readable(&self) -> anyhow::Result<Vec<Build>> {
        let builds = self.list()?.into_iter();
        Ok(builds.filter_map(|(_, build)| build.ok()).collect())
    }

    /// The build of that name.
    pub fn named(&self, name: &str) -> anyhow::Result<Option<Build>> {
        if check_name(name).is_err() {
            return Ok(None);
        }
        let folder = self.root.join(name);
        Ok(Manifest::read(&folder)?.map(|manifest| Build { folder, manifest }))
    }

    /// The build that was fetched for this spec.
    pub fn of_spec(&self, spec: &str) -> anyhow::Result<Option<Build>> {
        let builds = self.readable()?;
        Ok(builds.into_iter().find(|build| build.manifest.spec == spec))
    }

    /// Returns the newest build of a product.
    pub fn newest(&self, product: &str) -> anyhow::Result<Option<Build>> {
        let mut builds = self.readable()?;
        builds.retain(|build| build.manifest.product == product);
        Ok(builds.into_iter().max_by_key(Build::numbers))
    }

    /// The build that a plan means by `text`, for `engine`: by name, spec or version, in this order.
    pub fn find(&self, engine: &str, text: &str) -> anyhow::Result<Option<Build>> {
        if let Some(build) = self.named(text)? {
            if build.manifest.engine != engine {
                return Err(Error::usage(
                    format!(
                        "the build `{text}` is for {}, not for {engine}",
                        build.manifest.engine
                    ),
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
        let named = text.split_once('@');
        let named = named.map(|(product, version)| (Some(product), version));
        let (product, version) = named.unwrap_or((None, text));
        builds.retain(|build| {
            is_version(&build.manifest.version, version)
                && product.is_none_or(|product| build.manifest.product == product)
        });
        let newest = builds.iter().map(Build::numbers).max();
        builds.retain(|build| Some(build.numbers()) == newest);
        if builds.len() > 1 {
            let names = builds.iter().map(|build| build.manifest.name.as_str());
            let names = names.collect::<Vec<_>>().join("`, `");
            return Err(Error::usage(
                format!("`{text}` may be any of the builds `{names}`"),
                "name one of them",
            )
            .into());
        }
        Ok(builds.pop())
    }

    /// A folder in which a build is made: one at a time.
    pub fn begin(&self, _lock: &Lock) -> anyhow::Result<PathBuf> {
        let folder = self.root.join(format!("{PARTIAL}fetched"));
        fs_err::create_dir(&folder)?;
        // Whatever the user's own mask: servers run as other users.
        fs_err::set_permissions(&folder, PermissionsExt::from_mode(0o755))?;
        Ok(folder)
    }

    /// Makes a build of the folder `partial`.
    pub fn finish(
        &self,
        _lock: &Lock,
        partial: &Path,
        mut manifest: Manifest,
    ) -> anyhow::Result<Build> {
        let folder = self.root.join(&manifest.name);
        if folder.exists() {
            return Err(taken(&manifest.name));
        }
        if manifest.path.is_relative() {
            let mut list = String::new();
            let mut all = below(partial)?;
            all.sort_by(|(one, _), (other, _)| one.cmp(other));
            for (path, metadata) in all {
                if metadata.is_dir() {
                    // Whatever the user's own mask: servers run as other users.
                    fs_err::set_permissions(path, PermissionsExt::from_mode(0o755))?;
                } else if metadata.is_file() {
                    let (_, sha256) = hash::of_file(&path)?;
                    let path = path.strip_prefix(partial)?.display();
                    list.push_str(&format!("{sha256}  {path}\n"));
                }
            }
            let path = partial.join(FILES);
            fs_err::write(&path, list)?;
            manifest.files_sha256 = Some(hash::of_file(&path)?.1);
        }
        manifest.write(partial)?;
        // What is in it must be on disk before its name says that it is whole.
        fs_err::File::open(partial.join(FILE))?.sync_all()?;
        rustix::fs::syncfs(fs_err::File::open(partial)?)?;
        fs_err::rename(partial, &folder)?;
        fs_err::File::open(&self.root)?.sync_all()?;
        Ok(Build { folder, manifest })
    }

    /// Removes the build of that name.
    pub fn remove(&self, _lock: &Lock, name: &str) -> anyhow::Result<u64> {
        check_name(name)?;
        let folder = self.root.join(name);
        if !folder.join(FILE).is_file() {
            return Err(if folder.exists() {
                Error::new(
                    format!("`{}` is no build: it has no `{FILE}`", folder.display()),
                    "assay removes only what it made; remove it by hand",
                )
                .into()
            } else {
                Error::usage(
                    format!("there is no build `{name}` in `{}`", self.root.display()),
                    "`assay builds` lists them",
                )
                .into()
            });
        }
        let size = size_of(&folder);
        // Gone in one step: half a build must not look like one.
        let partial = self.root.join(format!("{PARTIAL}removed-{name}"));
        fs_err::rename(&folder, &partial)?;
        fs_err::remove_dir_all(&partial)?;
        Ok(size)
    }
}

/// The name is another build's.
pub fn taken(name: &str) -> anyhow::Error {
    Error::new(
        format!("there is another build of the name `{name}`"),
        format!("give this one another name with `--name`, or remove that one: `assay builds --remove {name}`"),
    )
    .into()
}

/// Returns the bytes on disk of all files below `folder`.
fn size_of(folder: &Path) -> u64 {
    let files = below(folder).unwrap_or_default();
    let blocks = files.iter().filter(|(_, it)| !it.is_dir());
    blocks.map(|(_, it)| it.blocks() * 512).sum()
}

/// Returns all that is below `folder`.
fn below(folder: &Path) -> std::io::Result<Vec<(PathBuf, std::fs::Metadata)>> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        let (path, metadata) = (entry.path(), entry.metadata()?);
        if metadata.is_dir() {
            found.extend(below(&path)?);
        }
        found.push((path, metadata));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(store: &Store, name: &str, engine: &str, product: &str, version: &str, spec: &str) {
        let folder = store.root.join(name);
        fs_err::create_dir_all(&folder).unwrap();
        Manifest {
            format: crate::manifest::FORMAT,
            name: name.into(),
            engine: engine.into(),
            product: product.into(),
            version: version.into(),
            version_text: version.into(),
            spec: spec.into(),
            fetched_unix_s: 0,
            path: "root".into(),
            artifacts: Vec::new(),
            programs: Vec::new(),
            files_sha256: None,
        }
        .write(&folder)
        .unwrap();
    }

    #[test]
    fn builds_of_root_are_where_other_users_can_get_to_them() {
        let home = |name: &str| (name == "HOME").then(|| OsString::from("/h"));
        let root = |is_root| Store::of(is_root, &home).unwrap().root;
        assert_eq!(root(true), Path::new("/var/lib/assay/builds"));
        assert_eq!(root(false), Path::new("/h/.local/share/assay/builds"));
        let named = |name: &str| (name == "ASSAY_BUILDS").then(|| OsString::from("/b"));
        assert_eq!(Store::of(true, &named).unwrap().root, Path::new("/b"));
    }

    #[test]
    fn folders_that_are_made_for_builds_can_be_entered_by_all() {
        let directory = tempfile::tempdir().unwrap();
        fs_err::set_permissions(directory.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let top = directory.path().join("assay");
        let root = top.join("builds");
        let _lock = Store { root: root.clone() }.lock(&|_| {}).unwrap();
        for folder in [top, root] {
            assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o755);
        }
        // What was there already is as it was.
        assert_eq!(directory.path().metadata().unwrap().mode() & 0o777, 0o700);
    }

    fn store() -> (tempfile::TempDir, Store) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store {
            root: directory.path().to_path_buf(),
        };
        put(
            &store,
            "pg",
            "postgres",
            "postgres",
            "17.2",
            "postgres@17.2",
        );
        put(
            &store,
            "new",
            "postgres",
            "postgres",
            "17.10",
            "postgres@17",
        );
        put(
            &store,
            "maria",
            "mysql",
            "mariadb",
            "11.4.5",
            "mariadb@11.4.5",
        );
        put(&store, "my", "mysql", "mysql", "11.4.5", "dir:/x");
        (directory, store)
    }

    fn found(store: &Store, engine: &str, text: &str) -> Result<Option<String>, String> {
        let found = store
            .find(engine, text)
            .map_err(|error| error.to_string())?;
        Ok(found.map(|build| build.manifest.name))
    }

    #[test]
    fn a_build_is_found_by_name_spec_and_version() {
        let (_directory, store) = store();
        let found = |engine, text| found(&store, engine, text).unwrap();
        assert_eq!(found("postgres", "pg").as_deref(), Some("pg"));
        assert_eq!(found("postgres", "postgres@17.2").as_deref(), Some("pg"));
        assert_eq!(found("postgres", "17.2").as_deref(), Some("pg"));
        assert_eq!(found("postgres", "17").as_deref(), Some("new"));
        assert_eq!(found("mysql", "mariadb@11").as_deref(), Some("maria"));
        assert_eq!(found("postgres", "17.1"), None);
        assert_eq!(found("postgres", "mariadb@11"), None);
        assert_eq!(found("postgres", "/opt/pg"), None);
        assert_eq!(found("postgres", ""), None);
    }

    #[test]
    fn what_may_be_two_builds_is_an_error_that_names_both() {
        let (_directory, store) = store();
        let error = found(&store, "mysql", "11.4").unwrap_err();
        assert!(error.contains("`maria`, `my`"), "{error}");
        let error = found(&store, "mysql", "pg").unwrap_err();
        assert!(error.contains("is for postgres"), "{error}");
    }

    #[test]
    fn only_what_has_a_manifest_is_removed() {
        let (_directory, store) = store();
        let lock = store.lock(&|_| {}).unwrap();
        fs_err::create_dir(store.root.join("mine")).unwrap();
        fs_err::write(store.root.join("mine/file"), "x").unwrap();
        let error = store.remove(&lock, "mine").unwrap_err();
        assert!(error.to_string().contains("is no build"), "{error}");
        assert!(store.root.join("mine/file").exists());
        store.remove(&lock, "pg").unwrap();
        assert!(store.named("pg").unwrap().is_none());
        assert!(store.remove(&lock, "../mine").is_err());
    }

    #[test]
    fn what_an_interrupted_fetch_left_is_cleared() {
        let (_directory, store) = store();
        let lock = store.lock(&|_| {}).unwrap();
        let left = store.begin(&lock).unwrap();
        drop(lock);
        let lock = store.lock(&|_| {}).unwrap();
        assert!(!left.exists());
        store.begin(&lock).unwrap();
    }
}
