//! Fetches one build: finds out whether it is there, has its source bring it, and puts it into the store.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::Error;
use crate::hash;
use crate::inspect::{self, Place, Version};
use crate::manifest::{Artifact, FORMAT, Manifest, Program};
use crate::sources::debian::Debian;
use crate::sources::maven::{Maven, Product};
use crate::sources::own_libc;
use crate::spec::Spec;
use crate::store::{self, Build, Lock, Store};

/// Fetches a build, unless it is there; `say` is told how far it is.
pub fn fetch(
    store: &Store,
    lock: &Lock,
    spec: &Spec,
    name: Option<&str>,
    say: &dyn Fn(&str),
) -> anyhow::Result<Build> {
    let (spec_text, name) = match spec {
        Spec::Directory { path, name: given } => {
            let path = fs_err::canonicalize(path).map_err(|error| {
                Error::usage(
                    error.to_string(),
                    "name a directory or a library that is there",
                )
            })?;
            (format!("dir:{}", path.display()), name.or(given.as_deref()))
        }
        _ => (spec.to_string(), name),
    };
    let present = match name {
        Some(name) => store.named(name)?,
        None => store.of_spec(&spec_text)?,
    };
    if let Some(build) = present {
        if build.manifest.spec != spec_text {
            return Err(store::taken(&build.manifest.name));
        }
        // It is used again only as it was.
        build.check(build.verify())?;
        say(&format!(
            "it is there already, as `{}`",
            build.manifest.name
        ));
        return Ok(build);
    }
    let partial = store.begin(lock)?;
    let result = install(store, lock, spec, spec_text, name, &partial, say);
    if result.is_err() {
        // What was downloaded is elsewhere, and stays.
        let _ = fs_err::remove_dir_all(&partial);
    }
    result.map_err(|error| {
        if is_disk_full(&error) {
            error.context(Error::new(
                format!("`{spec}` can't be installed: the disk is full"),
                "make room, or name another place for builds in ASSAY_BUILDS; what was downloaded is kept",
            ))
        } else {
            error
        }
    })
}

fn is_disk_full(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|it| it.downcast_ref::<std::io::Error>());
    causes.any(|error| error.kind() == std::io::ErrorKind::StorageFull)
}

/// What is put in the store, before its place in it is known.
struct Unpacked {
    place: Place,
    version: Version,
    artifacts: Vec<Artifact>,
    /// The end of its name, after product and version, when none is given.
    suffix: String,
    /// The downloads that are not needed any more once it is in the store.
    downloads: Option<PathBuf>,
}

fn install(
    store: &Store,
    lock: &Lock,
    spec: &Spec,
    spec_text: String,
    name: Option<&str>,
    partial: &Path,
    say: &dyn Fn(&str),
) -> anyhow::Result<Build> {
    let unpacked = match spec {
        Spec::Directory { path, .. } => registered(path)?,
        Spec::Release { product, version } => release(
            &store.downloads(),
            product,
            version,
            &partial.join("root"),
            say,
        )?,
        Spec::Debian { suite, packages } => {
            packaged(&store.downloads(), packages, suite, partial, say)?
        }
    };
    let (place, version) = (unpacked.place, unpacked.version);
    let usual = || format!("{}-{}{}", version.product, version.number, unpacked.suffix);
    let name = name.map_or_else(usual, str::to_owned);
    let canonical = fs_err::canonicalize(partial)?;
    let relative = |path: &Path| {
        let below = path
            .strip_prefix(&canonical)
            .or_else(|_| path.strip_prefix(partial));
        below.unwrap_or(path).to_path_buf()
    };
    let mut programs = Vec::new();
    for program in place.programs.iter().filter(|program| program.is_file()) {
        // A script may be reached by a link to its other name; the program itself is beside the script.
        let aside = own_libc::program(&fs_err::canonicalize(program)?);
        for file in [&aside, program] {
            if file.is_file() {
                programs.push(Program::of(partial, relative(file))?);
            }
        }
    }
    let manifest = Manifest {
        format: FORMAT,
        name,
        engine: place.engine.into(),
        product: version.product.into(),
        version: version.number,
        version_text: version.text,
        spec: spec_text,
        fetched_unix_s: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        path: relative(&place.path),
        artifacts: unpacked.artifacts,
        programs,
        files_sha256: None,
    };
    let build = store.finish(lock, partial, manifest)?;
    if let Some(downloads) = unpacked.downloads {
        // They cost space, no more.
        let _ = fs_err::remove_dir_all(downloads);
    }
    Ok(build)
}

/// A directory or a library of the user's: it stays where it is.
fn registered(path: &Path) -> anyhow::Result<Unpacked> {
    let path = fs_err::canonicalize(path)?;
    let place = inspect::find(&path).ok_or_else(|| {
        Error::new(
            format!("`{}` holds no build of a known engine", path.display()),
            "name the directory that holds `bin/postgres`, `bin/mysqld` or `bin/mariadbd`, or a library with RocksDB's C interface",
        )
    })?;
    let version = inspect::version(&place, &place.programs[0])?;
    Ok(Unpacked {
        version,
        place,
        artifacts: Vec::new(),
        suffix: String::new(),
        downloads: None,
    })
}

/// A version from Maven's repositories.
fn release(
    downloads: &Path,
    product: &'static Product,
    asked: &str,
    root: &Path,
    say: &dyn Fn(&str),
) -> anyhow::Result<Unpacked> {
    let arch = std::env::consts::ARCH;
    if arch != "x86_64" {
        return Err(Error::new(
            format!(
                "`{}@{asked}` is for x86-64 only; this machine is {arch}",
                product.name
            ),
            "fetch it as `debian:SUITE/PACKAGE`, or register a build with `dir:/PATH=NAME`",
        )
        .into());
    }
    let (number, archive) = Maven::new(downloads, product).fetch(asked, say)?;
    let (size_bytes, sha256) = hash::of_file(&archive)?;
    let folder = archive.parent().map(Path::to_path_buf);
    say("unpacking");
    if let Err(error) = product.unpack(&number, &archive, root) {
        if let Some(folder) = folder.filter(|_| !is_disk_full(&error)) {
            // A damaged download is not to be met again.
            let _ = fs_err::remove_dir_all(folder);
        }
        return Err(error);
    }
    let place = inspect::find(root).ok_or_else(|| {
        Error::new(
            format!(
                "what was downloaded as {} {number} holds no build of it",
                product.name
            ),
            "try another version",
        )
    })?;
    let mut version = inspect::version(&place, &place.programs[0])?;
    if place.engine == "rocksdb" {
        // A library says nothing of itself without being loaded.
        version = Version {
            product: product.name,
            text: number.clone(),
            number,
        };
    }
    let name = archive.file_name().unwrap_or_default();
    Ok(Unpacked {
        place,
        version,
        artifacts: vec![Artifact {
            name: name.to_string_lossy().into_owned(),
            size_bytes,
            sha256,
        }],
        suffix: String::new(),
        downloads: folder,
    })
}

/// Packages of Debian, to be run by their own loader.
fn packaged(
    downloads: &Path,
    packages: &[String],
    suite: &str,
    partial: &Path,
    say: &dyn Fn(&str),
) -> anyhow::Result<Unpacked> {
    let root = &partial.join("root");
    let debian = Debian::new(downloads, suite);
    let artifacts = debian.fetch(packages, say)?;
    say("unpacking");
    debian.unpack(&artifacts, root)?;
    let place = inspect::find(root).ok_or_else(|| {
        Error::new(
            format!("there is no database server in {}", packages.join(", ")),
            "name the package of the server: `postgresql-17`, `mariadb-server`, `mysql-server-core`",
        )
    })?;
    let mut program = place.programs[0].clone();
    if place.engine != "rocksdb" {
        let own = program.parent().map(Path::to_path_buf);
        let bins = own
            .into_iter()
            .chain([root.join("usr/bin"), root.join("usr/sbin")]);
        let bins: BTreeSet<PathBuf> = bins.filter(|bin| bin.is_dir()).collect();
        own_libc::wrap(partial, root, &bins)?;
        program = own_libc::program(&fs_err::canonicalize(&program)?);
    }
    let version = inspect::version(&place, &program)?;
    Ok(Unpacked {
        place,
        version,
        artifacts,
        suffix: format!("-{suite}"),
        downloads: Some(debian.archives()),
    })
}
