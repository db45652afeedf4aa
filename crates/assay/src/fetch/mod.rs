//! `assay fetch` and `assay builds`: versions of engines side by side, without touching the system.

mod client;
mod debian;
mod elf;
mod failure;
pub mod hash;
mod inspect;
mod manifest;
mod maven;
mod own_libc;
mod spec;
mod store;
mod unpack;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;

pub use failure::FetchError;
pub use store::{Store, Stored};

use crate::cli::{BuildsArgs, FetchArgs};
use crate::outcome::{Exit, UsageError, report_error};
use crate::results::print;
use inspect::{Place, Version};
use manifest::{Artifact, Launch, Manifest};
use spec::{Product, Spec};
use store::Lock;

/// Whether `text` is written as `assay fetch` takes it.
pub fn is_spec(text: &str) -> bool {
    Spec::parse(text).is_ok()
}

/// Fetches builds.
pub fn fetch(args: &FetchArgs) -> anyhow::Result<Exit> {
    let specs = args
        .specs
        .iter()
        .map(|text| Spec::parse(text))
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(name) = &args.name {
        spec::check_name(name)?;
        if specs.len() > 1 {
            return Err(UsageError::new(
                format!(
                    "`--name {name}` is for one build, but {} are asked for",
                    specs.len()
                ),
                Some("fetch them one by one".into()),
            )
            .into());
        }
    }
    let store = Store::of_user()?;
    let lock = store.lock(&|line| eprintln!("{line}"))?;
    warn_of_barred(store.root());
    for log in ["apt.log", "mvn.log"] {
        // They are of the last fetch alone; one that stays is no harm.
        let _ = fs_err::remove_file(store.downloads().join(log));
    }
    let mut exit = Exit::Ok;
    for spec in &specs {
        match one(&store, &lock, spec, args.name.as_deref()) {
            Ok(build) => print(&format!(
                "{}\t{} {}\t{}\n",
                build.manifest.name,
                build.manifest.product,
                build.manifest.version,
                build.path().display()
            ))?,
            // The others are fetched all the same.
            Err(error) => exit = exit.max(report_error(&error)),
        }
    }
    Ok(exit)
}

/// Servers that refuse to run as root run as another user, who must be able to reach them.
fn warn_of_barred(root: &Path) {
    use std::os::unix::fs::MetadataExt;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let barred = root
        .ancestors()
        .filter(|path| {
            path.metadata()
                .is_ok_and(|metadata| metadata.mode() & 0o001 == 0)
        })
        .last();
    if let Some(barred) = barred {
        eprintln!(
            "warning: other users can't enter `{}`, and servers run as another user when assay is root\n\
             help: name a folder that all may enter in ASSAY_BUILDS, or `chmod a+x {}`",
            barred.display(),
            barred.display()
        );
    }
}

/// Fetches one build, unless it is there.
fn one(store: &Store, lock: &Lock, spec: &Spec, name: Option<&str>) -> anyhow::Result<Stored> {
    let say = |line: &str| eprintln!("{spec}: {line}");
    let (spec_text, name) = match spec {
        Spec::Directory { path, name: given } => {
            let path = fs_err::canonicalize(path)
                .map_err(|error| UsageError::new(error.to_string(), None))?;
            (format!("dir:{}", path.display()), name.or(given.as_deref()))
        }
        _ => (spec.to_string(), name),
    };
    if let Some(name) = name
        && let Some(build) = store.named(name)?
    {
        if build.manifest.spec != spec_text {
            return Err(store::taken(name));
        }
        return present(build, &say);
    }
    if name.is_none()
        && let Some(build) = store.of_spec(&spec_text)?
    {
        return present(build, &say);
    }
    let partial = store.begin(lock, spec)?;
    let result = install(store, lock, spec, spec_text, name, &partial, &say);
    if result.is_err() {
        // What was downloaded is elsewhere, and stays.
        let _ = fs_err::remove_dir_all(&partial);
    }
    result.map_err(|error| {
        if is_disk_full(&error) {
            error.context(FetchError::new(
                format!("`{spec}` can't be installed: the disk is full"),
                "make room, or name another place for builds in ASSAY_BUILDS; what was downloaded is kept",
            ))
        } else {
            error
        }
    })
}

fn is_disk_full(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::StorageFull)
    })
}

/// A build that was fetched before is used again only as it was.
fn present(build: Stored, say: &dyn Fn(&str)) -> anyhow::Result<Stored> {
    check(&build, build.verify())?;
    say(&format!(
        "it is there already, as `{}`",
        build.manifest.name
    ));
    Ok(build)
}

/// An error for a build that is not what it was.
pub fn check(build: &Stored, state: Result<(), String>) -> anyhow::Result<()> {
    state.map_err(|what| {
        let name = &build.manifest.name;
        let again = match build.manifest.spec.strip_prefix("dir:") {
            Some(path) => format!(
                "register it again: `assay builds --remove {name}`, `assay fetch dir:{path}={name}`"
            ),
            None => format!(
                "fetch it again: `assay builds --remove {name}`, `assay fetch {} --name {name}`",
                build.manifest.spec
            ),
        };
        FetchError::new(
            format!("the build `{name}` is not what was fetched: {what}"),
            again,
        )
        .into()
    })
}

/// What is put in the store, before its place in it is known.
struct Unpacked {
    place: Place,
    version: Version,
    launch: Option<Launch>,
    artifacts: Vec<Artifact>,
    /// What the name begins with when none is given is product and version; and this is its end.
    suffix: String,
}

fn install(
    store: &Store,
    lock: &Lock,
    spec: &Spec,
    spec_text: String,
    name: Option<&str>,
    partial: &Path,
    say: &dyn Fn(&str),
) -> anyhow::Result<Stored> {
    let downloads = store.downloads();
    let root = partial.join("root");
    let (unpacked, forget): (Unpacked, Box<dyn Fn() + '_>) = match spec {
        Spec::Directory { path, .. } => (registered(path)?, Box::new(|| {})),
        Spec::Release { product, version } => {
            let (unpacked, version) = release(&downloads, *product, version, &root, say)?;
            let downloads = &downloads;
            let product = *product;
            let forget = move || maven::Maven::new(downloads, product).forget(&version);
            (unpacked, Box::new(forget))
        }
        Spec::Debian { suite, packages } => {
            let debian = debian::Debian::new(&downloads, suite);
            let unpacked = packaged(&debian, packages, suite, partial, &root, say)?;
            (unpacked, Box::new(move || debian.forget()))
        }
    };
    let version = unpacked.version;
    let name = name.map_or_else(
        || format!("{}-{}{}", version.product, version.number, unpacked.suffix),
        str::to_owned,
    );
    let place = unpacked.place;
    let scripts = unpacked.launch.is_some();
    let mut programs = Vec::new();
    for program in place.programs.iter().filter(|program| program.is_file()) {
        if scripts {
            // The script may be reached by a link to its other name; the program itself is beside the script.
            programs.push(own_libc::program(&fs_err::canonicalize(program)?));
        }
        programs.push(program.clone());
    }
    let canonical = fs_err::canonicalize(partial)?;
    let programs: Vec<PathBuf> = programs
        .into_iter()
        .map(|path| match path.strip_prefix(&canonical) {
            Ok(relative) => partial.join(relative),
            Err(_) => path,
        })
        .collect();
    let manifest = Manifest {
        format: Manifest::format(),
        name,
        engine: place.engine.into(),
        product: version.product.into(),
        version: version.number,
        version_text: version.text,
        spec: spec_text,
        fetched_unix_s: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
        path: place
            .path
            .strip_prefix(partial)
            .map_or_else(|_| place.path.clone(), Path::to_path_buf),
        launch: unpacked.launch,
        artifacts: unpacked.artifacts,
        programs: store::programs(partial, &programs)?,
        files_sha256: None,
    };
    let build = store.finish(lock, partial, manifest)?;
    forget();
    Ok(build)
}

/// A directory or a library of the user's: it stays where it is.
fn registered(path: &Path) -> anyhow::Result<Unpacked> {
    let path = fs_err::canonicalize(path)?;
    let place = inspect::find(&path).ok_or_else(|| {
        FetchError::new(
            format!("`{}` holds no build of a known engine", path.display()),
            "name the directory that holds `bin/postgres`, `bin/mysqld` or `bin/mariadbd`, or a library with RocksDB's C interface",
        )
    })?;
    let version = inspect::version(&place, &place.programs[0])?;
    Ok(Unpacked {
        version,
        place,
        launch: None,
        artifacts: Vec::new(),
        suffix: String::new(),
    })
}

/// A version from Maven's repositories; and what they call the version.
fn release(
    downloads: &Path,
    product: Product,
    asked: &str,
    root: &Path,
    say: &dyn Fn(&str),
) -> anyhow::Result<(Unpacked, String)> {
    if std::env::consts::ARCH != "x86_64" {
        return Err(FetchError::new(
            format!(
                "`{}@{asked}` is for x86-64 only; this machine is {}",
                product.name(),
                std::env::consts::ARCH
            ),
            "fetch it as `debian:SUITE/PACKAGE`, or register a build with `dir:/PATH=NAME`",
        )
        .into());
    }
    let maven = maven::Maven::new(downloads, product);
    let fetched = maven.fetch(asked, say)?;
    let (size_bytes, sha256) = hash::of_file(&fetched.archive)?;
    say("unpacking");
    let unpacked = take_apart(product, &fetched.archive, root);
    if let Err(error) = unpacked {
        if !is_disk_full(&error) {
            // A damaged download is not to be met again.
            maven.forget(&fetched.version);
        }
        return Err(error);
    }
    let place = inspect::find(root).ok_or_else(|| {
        FetchError::new(
            format!(
                "what was downloaded as {} {} holds no build of it",
                product.name(),
                fetched.version
            ),
            "try another version",
        )
    })?;
    let mut version = inspect::version(&place, &place.programs[0])?;
    if matches!(product, Product::Rocksdb | Product::Speedb) {
        // A library says nothing of itself without being loaded.
        version = Version {
            product: product.name(),
            number: fetched.version.clone(),
            text: fetched.version.clone(),
        };
    }
    let name = fetched.archive.file_name().unwrap_or_default();
    let unpacked = Unpacked {
        place,
        version,
        launch: None,
        artifacts: vec![Artifact {
            name: name.to_string_lossy().into_owned(),
            size_bytes,
            sha256,
        }],
        suffix: String::new(),
    };
    Ok((unpacked, fetched.version))
}

/// Takes out of a jar, or another archive, what is the engine's.
fn take_apart(product: Product, jar: &Path, root: &Path) -> anyhow::Result<()> {
    match product {
        Product::Postgres => unpack::tar_in_jar(jar, root, ".txz")?
            .context("the jar has no archive of PostgreSQL in it"),
        Product::Mysql if jar.extension().is_some_and(|ending| ending == "zip") => {
            unpack::jar(jar, root, |name| is_of_server(name).then(|| name.into()))
        }
        Product::Mysql => unpack::tar_in_jar(jar, root, "Linux-amd64.tar.gz")?
            .context("the jar has no archive of MySQL in it"),
        Product::Mariadb => unpack::jar(jar, root, |name| {
            // `.../mariadb-11.4.5/linux/bin/mariadbd`
            let (_, rest) = name
                .split_once("/linux/")
                .or_else(|| name.split_once("/linux64/"))?;
            Some(rest.into())
        }),
        Product::Rocksdb | Product::Speedb => unpack::jar(jar, root, |name| {
            // Others are for other machines and C libraries.
            (name.starts_with("lib") && name.ends_with("jni-linux64.so")).then(|| name.into())
        }),
    }
}

/// Whether a file of MySQL's whole distribution is the server's: the rest is clients, libraries to link with, and tests.
fn is_of_server(name: &str) -> bool {
    let is_part = ["share/", "lib/plugin/", "docs/INFO_"]
        .iter()
        .any(|part| name.starts_with(part));
    let is_debug = name.starts_with("lib/plugin/debug/");
    (is_part && !is_debug) || ["bin/mysqld", "COPYING", "README"].contains(&name)
}

/// Packages of Debian, to be run by their own loader.
fn packaged(
    debian: &debian::Debian<'_>,
    packages: &[String],
    suite: &str,
    partial: &Path,
    root: &Path,
    say: &dyn Fn(&str),
) -> anyhow::Result<Unpacked> {
    let fetched = debian.fetch(packages, say)?;
    say("unpacking");
    debian.unpack(&fetched, root)?;
    let place = inspect::find(root).ok_or_else(|| {
        FetchError::new(
            format!("there is no database server in {}", packages.join(", ")),
            "name the package of the server: `postgresql-17`, `mariadb-server`, `mysql-server-core`",
        )
    })?;
    let mut launch = None;
    let mut program = place.programs[0].clone();
    if place.engine != "rocksdb" {
        let own = program.parent().map(Path::to_path_buf);
        let mut bins = vec![root.join("usr/bin"), root.join("usr/sbin")];
        bins.extend(own);
        bins.sort();
        bins.dedup();
        bins.retain(|bin| bin.is_dir());
        launch = Some(own_libc::wrap(partial, root, &bins)?);
        program = own_libc::program(&fs_err::canonicalize(&program)?);
    }
    let version = inspect::version(&place, &program)?;
    Ok(Unpacked {
        place,
        version,
        launch,
        artifacts: fetched.artifacts,
        suffix: format!("-{suite}"),
    })
}

/// Lists builds, verifies them, removes one.
pub fn builds(args: &BuildsArgs) -> anyhow::Result<Exit> {
    let store = Store::of_user()?;
    if let Some(name) = &args.remove {
        let lock = store.lock(&|line| eprintln!("{line}"))?;
        let freed = store.remove(&lock, name)?;
        eprintln!("removed `{name}`: {} MB", freed.div_ceil(1_000_000));
        return Ok(Exit::Ok);
    }
    let builds = store.list()?;
    let mut exit = Exit::Ok;
    let mut lines = vec![["name", "engine", "version", "MB", "spec", "state"].map(str::to_owned)];
    for (name, build) in builds {
        let build = match build {
            Ok(build) => build,
            Err(error) => {
                exit = Exit::Failed;
                lines.push([
                    name,
                    "?".into(),
                    "?".into(),
                    "?".into(),
                    "?".into(),
                    error.to_string(),
                ]);
                continue;
            }
        };
        let state = if args.verify {
            build.verify().map(|()| "verified".to_owned())
        } else {
            build
                .manifest
                .quick_check(&build.folder)
                .map(|()| "ok".to_owned())
        };
        if state.is_err() {
            exit = Exit::Failed;
        }
        let size = build.size_bytes().div_ceil(1_000_000);
        lines.push([
            name,
            build.manifest.engine,
            format!("{} {}", build.manifest.product, build.manifest.version),
            size.to_string(),
            build.manifest.spec,
            state.unwrap_or_else(|what| what),
        ]);
    }
    if lines.len() == 1 {
        eprintln!(
            "no builds in `{}`; `assay fetch postgres@17` gets one",
            store.root().display()
        );
        return Ok(exit);
    }
    print(&table(&lines))?;
    Ok(exit)
}

fn table<const COLUMNS: usize>(lines: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for line in lines {
        let mut row = String::new();
        for (width, cell) in widths.iter().zip(line) {
            row.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}
