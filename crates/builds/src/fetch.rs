//! Fetches one build: looks for it in the store, downloads it if it is missing, and adds it to the
//! store.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::BuildError;
use crate::hash;
use crate::inspect::{self, FoundBuild, ProductVersion};
use crate::manifest::{Artifact, Compiled, FORMAT, Manifest, Program};
use crate::sources::DISK_FULL_HELP;
use crate::sources::amalgamation;
use crate::sources::debian::Debian;
use crate::sources::own_libc;
use crate::sources::products::Product;
use crate::spec::Spec;
use crate::store::{self, Build, Lock, Store};
use crate::version::numbers;

/// Returns the versions of a product that can be downloaded, as the product writes them, the oldest
/// first, without pre-releases. Calls `progress` with a short text before each stage.
pub fn available(product: &str, progress: &dyn Fn(&str)) -> anyhow::Result<Vec<String>> {
    let Some(product) = Product::named(product) else {
        let known: Vec<&str> = Product::all().map(|product| product.name).collect();
        let message = format!("unknown product `{product}`");
        return Err(
            BuildError::usage(message, format!("known are `{}`", known.join("`, `"))).into()
        );
    };

    let store = Store::of_user()?;
    // Its lock also creates the folder of downloads.
    let _lock = store.lock(progress)?;

    let what = format!("list the versions of `{}`", product.name);
    let mut versions = product.versions(&store.downloads(), &what, progress)?;

    versions.retain(|version| numbers(version).is_some());

    // The store knows a build by the version that the build prints. So a version is offered once,
    // whatever the revision of its artifact.
    let mut own: Vec<String> = Vec::new();
    for version in &versions {
        own.push(product.own_version(version).to_owned());
    }
    own.dedup();
    Ok(own)
}

/// Fetches a build, unless the store already has it. Calls `progress` with a short text before each
/// stage.
pub fn fetch(
    store: &Store,
    lock: &Lock,
    spec: &Spec,
    name: Option<&str>,
    progress: &dyn Fn(&str),
) -> anyhow::Result<Build> {
    let (spec_text, name) = match spec {
        Spec::Directory { path, name: name_in_spec } => {
            // Without links and relative parts, so that it is found again from anywhere.
            let path = fs_err::canonicalize(path).map_err(|error| {
                BuildError::usage(
                    error.to_string(),
                    "write the path of an existing directory or library after `dir:`",
                )
            })?;
            (format!("dir:{}", path.display()), name.or(name_in_spec.as_deref()))
        }
        _ => (spec.to_string(), name),
    };

    let present = match name {
        Some(name) => store.by_name(name)?,
        None => store.by_spec(&spec_text)?,
    };
    if let Some(build) = present {
        if build.manifest.spec != spec_text {
            return Err(store::name_is_taken(&build.manifest.name));
        }
        // A build that has changed must not be used again.
        build.check(build.verify())?;
        progress(&format!("already in the store as `{}`", build.manifest.name));
        return Ok(build);
    }

    let partial = store.begin(lock)?;
    let error = match install(store, lock, spec, spec_text, name, &partial, progress) {
        Ok(build) => return Ok(build),
        Err(error) => error,
    };

    // Downloads are in another folder and are kept for the next attempt.
    let _ = fs_err::remove_dir_all(&partial);
    if is_disk_full(&error) {
        let what = format!("cannot install `{spec}`: the disk is full");
        return Err(error.context(BuildError::new(what, DISK_FULL_HELP)));
    }
    Err(error)
}

/// Returns the time in seconds since 1970 UTC.
pub(crate) fn unix_now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn is_disk_full(error: &anyhow::Error) -> bool {
    let mut io_errors = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    io_errors.any(|error| error.kind() == std::io::ErrorKind::StorageFull)
}

/// An unpacked build, before its name in the store is known.
struct Unpacked {
    place: FoundBuild,
    version: ProductVersion,
    artifacts: Vec<Artifact>,
    /// The end of the default name, after product and version.
    suffix: String,
    /// The compilation, if there was one.
    compiled: Option<Compiled>,
    /// The downloads to delete once the build is in the store.
    downloads: Option<PathBuf>,
}

/// Unpacks what a spec stands for into the folder `partial`, and adds it to the store. If the store has
/// the same files already, returns the build that has them.
fn install(
    store: &Store,
    lock: &Lock,
    spec: &Spec,
    spec_text: String,
    name: Option<&str>,
    partial: &Path,
    progress: &dyn Fn(&str),
) -> anyhow::Result<Build> {
    let unpacked = match spec {
        Spec::Directory { path, .. } => register(path)?,
        Spec::Release { product, version } => {
            fetch_release(&store.downloads(), product, version, &partial.join("root"), progress)?
        }
        Spec::Debian { suite, packages } => {
            fetch_packages(&store.downloads(), packages, suite, partial, progress)?
        }
    };

    let folder = UnpackedFolder::of(partial)?;
    let programs = folder.programs(&unpacked.place)?;
    let (place, version) = (unpacked.place, unpacked.version);
    let name = match name {
        Some(name) => name.to_owned(),
        None => format!("{}-{}{}", version.product, version.number, unpacked.suffix),
    };

    let manifest = Manifest {
        format: FORMAT,
        name,
        engine: place.engine.into(),
        product: version.product.into(),
        version: version.number,
        version_text: version.text,
        spec: spec_text,
        fetched_unix_s: unix_now_s(),
        path: folder.relative(&place.path),
        compiled: unpacked.compiled,
        made: None,
        artifacts: unpacked.artifacts,
        programs,
        files_sha256: None,
    };

    if let Some(same) = with_same_files(store, &manifest)? {
        let Manifest { name, spec, .. } = &same.manifest;
        progress(&format!("the same files are already in the store as `{name}`, for `{spec}`"));
        fs_err::remove_dir_all(partial)?;
        remove_downloads(unpacked.downloads);
        return Ok(same);
    }

    let build = store.finish(lock, partial, manifest)?;
    remove_downloads(unpacked.downloads);
    Ok(build)
}

/// The folder of a build that is not in the store yet.
struct UnpackedFolder<'a> {
    path: &'a Path,
    /// The path without links.
    canonical: PathBuf,
}

impl<'a> UnpackedFolder<'a> {
    fn of(path: &'a Path) -> anyhow::Result<Self> {
        Ok(Self { path, canonical: fs_err::canonicalize(path)? })
    }

    /// Returns a path relative to the folder; a path that is not in the folder remains as it is.
    fn relative(&self, path: &Path) -> PathBuf {
        // Programs were found with or without links in the path of the folder.
        let inside = path.strip_prefix(&self.canonical).or_else(|_| path.strip_prefix(self.path));
        inside.unwrap_or(path).to_path_buf()
    }

    /// Reads the programs of a build for its manifest.
    fn programs(&self, build: &FoundBuild) -> anyhow::Result<Vec<Program>> {
        let mut programs = Vec::new();
        for program in build.programs.iter().filter(|program| program.is_file()) {
            // `program` may be a link to the script, which was put in the place of the real program.
            let moved = own_libc::moved_program(&fs_err::canonicalize(program)?);
            for file in [&moved, program] {
                if file.is_file() {
                    programs.push(Program::read(self.path, self.relative(file))?);
                }
            }
        }
        Ok(programs)
    }
}

/// Removes what a build in the store no longer needs. Downloads that stay only take disk space.
fn remove_downloads(downloads: Option<PathBuf>) {
    if let Some(folder) = downloads {
        let _ = fs_err::remove_dir_all(folder);
    }
}

/// Returns the build with the name of a new one, if it was made of the same downloads: both
/// `speedb@2.8` and `speedb@2.8.0` may mean it.
fn with_same_files(store: &Store, new: &Manifest) -> anyhow::Result<Option<Build>> {
    let Some(build) = store.by_name(&new.name)? else {
        return Ok(None);
    };
    let known = &build.manifest;
    let is_downloaded = !new.artifacts.is_empty();
    let is_same = known.artifacts == new.artifacts && known.compiled == new.compiled;
    if !is_downloaded || !is_same {
        return Ok(None);
    }

    // A build that has changed must not be used again.
    build.check(build.verify())?;
    Ok(Some(build))
}

/// Registers a directory or a library of the user, which stays where it is.
fn register(path: &Path) -> anyhow::Result<Unpacked> {
    let path = fs_err::canonicalize(path)?;
    let place = inspect::find(&path).ok_or_else(|| {
        BuildError::new(
            format!("`{}` contains no build of a supported engine", path.display()),
            "write the directory that contains `bin/postgres`, `bin/mysqld` or `bin/mariadbd`, or a shared library of RocksDB or SQLite",
        )
    })?;

    let version = inspect::version(&place, &place.programs[0])?;
    Ok(Unpacked {
        version,
        place,
        artifacts: Vec::new(),
        suffix: String::new(),
        compiled: None,
        downloads: None,
    })
}

/// Downloads and unpacks a version of a product, and compiles it if it is source.
fn fetch_release(
    downloads: &Path,
    product: &'static Product,
    requested: &str,
    root: &Path,
    progress: &dyn Fn(&str),
) -> anyhow::Result<Unpacked> {
    let arch = std::env::consts::ARCH;
    if arch != "x86_64" && !product.is_source() {
        return Err(BuildError::new(
            format!(
                "`{}@{requested}` is available for x86-64 only; this machine is {arch}",
                product.name
            ),
            "fetch it as `debian:SUITE/PACKAGE`, or register a build with `dir:/PATH=NAME`",
        )
        .into());
    }

    let (number, archive) = product.fetch(downloads, requested, progress)?;
    let (size_bytes, sha256) = hash::of_file(&archive)?;
    let folder = archive.parent().map(Path::to_path_buf);

    progress("unpacking");
    if let Err(error) = product.unpack(&number, &archive, root) {
        if let Some(folder) = folder
            && !is_disk_full(&error)
        {
            // The next attempt must not use a damaged download.
            let _ = fs_err::remove_dir_all(folder);
        }
        return Err(error);
    }

    let compiled = if product.is_source() {
        Some(amalgamation::compile(downloads, root, progress)?)
    } else {
        None
    };
    let place = inspect::find(root).ok_or_else(|| {
        BuildError::new(
            format!(
                "the archive downloaded for {} {number} contains no server or library",
                product.name
            ),
            "try another version, or register a build with `dir:/PATH=NAME`",
        )
    })?;

    let mut version = inspect::version(&place, &place.programs[0])?;
    if product.is_source() && version.number != number {
        let what =
            format!("the source that was downloaded for {number} is that of {}", version.number);
        return Err(BuildError::new(what, "use another version, or a Debian package").into());
    }

    if place.hides_version() {
        // The version of the download is known.
        version = ProductVersion { product: product.name, text: number.clone(), number };
    }

    let name = archive.file_name().unwrap_or_default();
    Ok(Unpacked {
        place,
        version,
        artifacts: vec![Artifact { name: name.to_string_lossy().into_owned(), size_bytes, sha256 }],
        suffix: String::new(),
        compiled,
        downloads: folder,
    })
}

/// Downloads and unpacks Debian packages, and makes their programs start with their own C library.
fn fetch_packages(
    downloads: &Path,
    packages: &[String],
    suite: &str,
    partial: &Path,
    progress: &dyn Fn(&str),
) -> anyhow::Result<Unpacked> {
    let root = &partial.join("root");
    let debian = Debian::new(downloads, suite);
    let artifacts = debian.fetch(packages, progress)?;
    progress("unpacking");
    debian.unpack(&artifacts, root)?;

    let place = inspect::find(root).ok_or_else(|| {
        let packages_text = packages.join(", ");
        let what = format!("the packages {packages_text} contain no database server or library");
        let help = "add the package of the server, such as `postgresql-17`, `mariadb-server`, `mysql-server-core` or \
                    `libsqlite3-0`";
        BuildError::new(what, help)
    })?;

    // A library has no programs to wrap.
    let mut program = place.programs[0].clone();
    if !place.is_library() {
        let mut bins = BTreeSet::from([root.join("usr/bin"), root.join("usr/sbin")]);
        bins.extend(program.parent().map(Path::to_path_buf));
        bins.retain(|bin| bin.is_dir());
        own_libc::wrap_programs(partial, root, &bins)?;
        program = own_libc::moved_program(&fs_err::canonicalize(&program)?);
    }

    let version = inspect::version(&place, &program)?;
    Ok(Unpacked {
        place,
        version,
        artifacts,
        suffix: format!("-{suite}"),
        compiled: None,
        downloads: Some(debian.archives()),
    })
}
