//! The installed builds that a plan names: those of the store, the user's own directories, and the
//! distribution's.

use std::path::{Path, PathBuf};

use anyhow::Context;
use builds::{Spec, Store, hash};
use plan::{Build, BuildSource, Diagnostic, Engine, Place};
use record::{BuiltCommit, FileHash};
use words::EngineHome;

use super::commits::recorded;
use super::plan_file::refusal;
use crate::ground::failure::UsageError;

/// An installed build that a plan names.
pub struct Installed {
    /// The path or the name that the engine locates.
    pub place: String,
    /// The build in the store; `None` for the user's own directory or the distribution's build.
    stored: Option<builds::Build>,
}

impl Installed {
    /// Finds a build of a plan: in the store by name, spec or version. Otherwise the engine takes
    /// the text as a path or as the distribution's build.
    pub fn of(build: &Build) -> anyhow::Result<Self> {
        let text = source_text(build).context("the plan's build is not an installed one")?;
        let stored = stored(build.engine, text)?;
        let place = if let Some(in_store) = &stored {
            in_store.check(in_store.manifest.quick_check(&in_store.folder))?;
            in_store.path().display().to_string()
        } else if let Some(spec) = spec_of(build.engine, text) {
            return Err(not_fetched(&[spec.as_str()]).into());
        } else {
            text.to_owned()
        };

        Ok(Self { place, stored })
    }

    /// Returns the path of the library of `engine`. The build may also be a directory that has one.
    ///
    /// # Errors
    /// The directory has none, or the text is the name of a build that was not found.
    pub fn library(&self, engine: Engine) -> anyhow::Result<PathBuf> {
        if !is_path(&self.place) {
            return Err(no_build_named(&self.place).into());
        }

        let place = Path::new(&self.place);
        if !place.is_dir() {
            return Ok(place.to_owned());
        }

        // The root of a system has a home directory of this name.
        let files = place.join(FILES_OF_BUILD);
        if files.is_dir() && builds::find_library(engine.name(), place).is_none() {
            return library_in(engine, &files);
        }
        library_in(engine, place)
    }

    /// Returns the commit that the build was made from, if Assay made it.
    pub fn commit(&self) -> Option<BuiltCommit> {
        recorded(&self.stored.as_ref()?.manifest)
    }

    /// Returns the build's files with their hashes: the files that the store's manifest lists, or
    /// else `engine_files`.
    pub fn hashes(&self, engine_files: &[PathBuf]) -> anyhow::Result<Vec<FileHash>> {
        let Some(stored) = &self.stored else {
            return engine_files.iter().map(|file| file_hash(file)).collect();
        };

        let mut hashes = Vec::new();
        for program in &stored.manifest.programs {
            let file = file_hash(&stored.folder.join(&program.path))?;
            let state = if file.sha256 == program.sha256 {
                Ok(())
            } else {
                Err(format!("`{}` has changed", file.path))
            };

            stored.check(state)?;
            hashes.push(file);
        }
        Ok(hashes)
    }
}

/// The directory of a downloaded build that has its files.
const FILES_OF_BUILD: &str = "root";

/// Returns the error that a name without a slash is that of no build.
fn no_build_named(name: &str) -> UsageError {
    UsageError::new(
        format!("no downloaded build is called `{name}`"),
        Some(format!(
            "write `./{name}` for a file or directory in the working directory; `assay builds` lists the builds on this \
             machine"
        )),
    )
}

/// Returns the path of the shared library of `engine` in a directory.
///
/// # Errors
/// The directory has no such library.
pub fn library_in(engine: Engine, folder: &Path) -> anyhow::Result<PathBuf> {
    if let Some(library) = builds::find_library(engine.name(), folder) {
        return Ok(library);
    }

    let shown = folder.display();
    let message = match engine {
        Engine::Library => format!("`{shown}` is a directory, not a shared library"),
        _ => format!("`{shown}` has no shared library of {}", engine.facts().title),
    };
    let help = match engine {
        Engine::Sqlite => {
            "write `bundled`, the path of a shared library, or a version to download, as in `sqlite@3.46.1`"
        }
        Engine::RocksDb => {
            "write the path of a shared library, or a version to download, as in `rocksdb@9.9.3`"
        }
        _ => "write the path of a shared library",
    };
    Err(UsageError::new(message, Some(help.into())).into())
}

/// Returns the spec that `assay fetch` must download for a build, if it is missing.
pub fn missing_spec(build: &Build) -> anyhow::Result<Option<String>> {
    let Some(text) = source_text(build) else {
        return Ok(None);
    };
    let Some(spec) = spec_of(build.engine, text) else {
        return Ok(None);
    };
    Ok(stored(build.engine, text)?.is_none().then_some(spec))
}

/// Returns the spec by which `assay fetch` downloads what a plan calls `text`; `None` for a path, and
/// for a version of a server, which the distribution may have.
fn spec_of(engine: Engine, text: &str) -> Option<String> {
    if is_spec(text) {
        return Some(text.to_owned());
    }

    let is_version = text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_version || engine.facts().home == EngineHome::Server {
        return None;
    }

    let release = format!("{}@{text}", engine.name());
    is_spec(&release).then_some(release)
}

/// Returns the error that lists the builds to fetch, with the places that name them.
pub fn not_fetched_at(missing: &[(String, Place)]) -> Option<Diagnostic> {
    let (&(_, first), others) = missing.split_first()?;

    let mut specs: Vec<&str> = Vec::new();
    for (spec, _) in missing {
        if !specs.contains(&spec.as_str()) {
            specs.push(spec);
        }
    }

    let UsageError { message, help } = not_fetched(&specs);

    let mut diagnostic = refusal("build::not-fetched", first, message, help.as_deref());
    for (_, place) in others {
        diagnostic.also(*place, "");
    }

    Some(diagnostic)
}

fn not_fetched(specs: &[&str]) -> UsageError {
    let (message, them) = match specs {
        [spec] => (format!("the build `{spec}` is not downloaded"), "it"),
        _ => {
            let (count, names) = (specs.len(), specs.join("`, `"));
            (format!("{count} builds are not downloaded: `{names}`"), "them")
        }
    };

    let downloaded = match specs {
        [spec] => downloaded_versions(spec),
        _ => Vec::new(),
    };
    let here = if downloaded.is_empty() {
        "`assay builds` lists the builds on this machine".to_owned()
    } else {
        format!("on this machine are `{}`", downloaded.join("`, `"))
    };

    let help = format!("`assay fetch {}` downloads {them}; {here}", specs.join(" "));
    UsageError::new(message, Some(help))
}

/// The most builds that help names.
const NAMED_MAX: usize = 12;

/// Returns the names of downloaded builds of the product of a spec; empty if there are none, or too
/// many to name.
fn downloaded_versions(spec: &str) -> Vec<String> {
    let Ok(parsed) = Spec::parse(spec) else {
        return Vec::new();
    };
    let Some((product, _)) = parsed.release_of() else {
        return Vec::new();
    };
    // Without a store that can be read, no build is known.
    let Ok(builds) = Store::of_user().map_err(anyhow::Error::from).and_then(|store| store.list())
    else {
        return Vec::new();
    };

    let mut names = Vec::new();
    for build in builds.into_iter().filter_map(|(_, build)| build.ok()) {
        if build.manifest.product == product {
            names.push(build.manifest.name);
        }
    }
    if names.len() > NAMED_MAX { Vec::new() } else { names }
}

/// Returns the source of an installed build in plans.
fn source_text(build: &Build) -> Option<&str> {
    match &build.source {
        BuildSource::Installed(text) => Some(text),
        BuildSource::Commit(_) | BuildSource::Bundled | BuildSource::Url(_) => None,
    }
}

fn stored(engine: Engine, text: &str) -> anyhow::Result<Option<builds::Build>> {
    // A user without a directory for builds has no builds.
    match Store::of_user() {
        Ok(store) if !is_path(text) => store.find(engine.name(), text),
        _ => Ok(None),
    }
}

/// Returns true if `text` is a spec of `assay fetch`.
fn is_spec(text: &str) -> bool {
    Spec::parse(text).is_ok()
}

/// Returns true if `text` is a path, and not a name, a version or a spec. These never name files: in
/// a shared working directory, another user could make a file with such a name.
fn is_path(text: &str) -> bool {
    text.contains('/') && !is_spec(text)
}

fn file_hash(path: &Path) -> anyhow::Result<FileHash> {
    let (size_bytes, sha256) = hash::of_file(path)?;
    Ok(FileHash { path: path.display().to_string(), size_bytes, sha256 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_of_a_library_is_a_release_to_download() {
        assert_eq!(spec_of(Engine::RocksDb, "10.3").as_deref(), Some("rocksdb@10.3"));
        assert_eq!(spec_of(Engine::Sqlite, "3.40.98").as_deref(), Some("sqlite@3.40.98"));
        assert_eq!(spec_of(Engine::RocksDb, "speedb@2.8").as_deref(), Some("speedb@2.8"));
        // The distribution may have that one.
        assert_eq!(spec_of(Engine::Postgres, "15"), None);
        assert_eq!(spec_of(Engine::RocksDb, "/opt/librocksdb.so"), None);
        assert_eq!(spec_of(Engine::Library, "1.2"), None);
    }

    #[test]
    fn the_library_of_a_downloaded_build_is_found_in_its_directory() {
        let folder = tempfile::tempdir().unwrap();
        let installed = Installed { place: folder.path().display().to_string(), stored: None };
        let error = installed.library(Engine::RocksDb).unwrap_err().to_string();
        assert!(error.ends_with("has no shared library of RocksDB"), "{error}");

        // Any file that a loader can read serves.
        let library = folder.path().join("root/librocksdbjni-linux64.so");
        fs_err::create_dir(folder.path().join("root")).unwrap();
        fs_err::os::unix::fs::symlink(std::env::current_exe().unwrap(), &library).unwrap();
        assert_eq!(installed.library(Engine::RocksDb).unwrap(), library);
    }

    #[test]
    fn a_home_directory_in_the_root_of_a_system_hides_no_library() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("lib/libsqlite3.so.0");
        fs_err::create_dir(folder.path().join("root")).unwrap();
        fs_err::create_dir(folder.path().join("lib")).unwrap();
        fs_err::os::unix::fs::symlink(std::env::current_exe().unwrap(), &library).unwrap();

        let installed = Installed { place: folder.path().display().to_string(), stored: None };
        assert_eq!(installed.library(Engine::Sqlite).unwrap(), library);
    }

    #[test]
    fn a_name_is_no_file_of_the_working_directory() {
        let error_of = |place: &str| {
            let installed = Installed { place: place.to_owned(), stored: None };
            installed.library(Engine::RocksDb).unwrap_err().to_string()
        };

        // The working directory of a test is that of its crate.
        assert_eq!(error_of("src"), "no downloaded build is called `src`");
        assert_eq!(error_of("./src"), "`./src` has no shared library of RocksDB");
    }

    #[test]
    fn a_path_has_a_slash_and_is_no_spec() {
        for path in ["./10.3", "/opt/librocksdb.so", "adapters/liblmdb-assay.so"] {
            assert!(is_path(path), "{path}");
        }
        for name in ["10.3", "rocksdb-10.3", "rocksdb@10.3", "debian:sid/mysql-server-core"] {
            assert!(!is_path(name), "{name}");
        }
    }
}
