//! Finds the builds and servers that targets on a command line stand for.

use std::path::Path;

use crate::ground::failure::{UsageError, usage};
use anyhow::Context;
use builds::{Spec, Store};
use plan::Engine;
use words::EngineHome;

/// The build of a target on the command line.
#[derive(Clone, Debug)]
pub enum TargetBuild {
    /// A build that is in the store, or that is located when the plan is run.
    Available {
        /// The engine.
        engine: Engine,
        /// The source in plans.
        source: String,
        /// The text of which its name in a plan is made; `None`: the source, or for one that has
        /// no name, the target.
        name: Option<String>,
        /// The same for all names of one build.
        identity: String,
    },
    /// A build that is not downloaded yet.
    Missing(Spec),
}

impl TargetBuild {
    /// Returns the build of a target that is there.
    fn available(target: &str, engine: &str, source: &str, identity: &str) -> anyhow::Result<Self> {
        let engine = Engine::named(engine)
            .with_context(|| format!("plans have no engine `{engine}` (target `{target}`)"))?;

        Ok(Self::Available {
            engine,
            source: source.to_owned(),
            name: None,
            identity: identity.to_owned(),
        })
    }

    /// Returns the spec of a build that is not downloaded.
    pub fn missing(&self) -> Option<&Spec> {
        match self {
            Self::Available { .. } => None,
            Self::Missing(spec) => Some(spec),
        }
    }
}

/// Finds the builds of targets, each of which is a URL, the name of a build in the store, an engine,
/// or a spec.
///
/// # Errors
/// A target stands for none, or the store cannot be read.
pub fn find_all(targets: &[String]) -> anyhow::Result<Vec<TargetBuild>> {
    // A user without a directory for builds has no builds.
    let store = Store::of_user().ok();
    targets.iter().map(|target| find(store.as_ref(), target)).collect()
}

fn find(store: Option<&Store>, target: &str) -> anyhow::Result<TargetBuild> {
    if target.contains("://") {
        return find_server(target);
    }
    if let Some(store) = store
        && let Some(build) = store.by_name(target)?
    {
        return TargetBuild::available(target, &build.manifest.engine, target, target);
    }

    // Without a version, an engine that is part of Assay is that one, a server is the system's, and
    // a library the newest that was downloaded.
    let engine = Engine::all().find(|engine| engine.facts().products.contains(&target));
    match engine.map(|engine| (engine.name(), engine.facts().home)) {
        Some((engine, EngineHome::Bundled)) => {
            TargetBuild::available(target, engine, "bundled", engine)
        }
        Some((engine, EngineHome::Server)) => {
            TargetBuild::available(target, engine, "distribution", engine)
        }
        Some((_, EngineHome::Library)) => find_newest(store, target),
        None => find_spec(store, target),
    }
}

/// Returns the server at a URL, which has no password: the plan would keep it.
fn find_server(url: &str) -> anyhow::Result<TargetBuild> {
    let shown = words::redact(url);
    if shown != url {
        let help = "leave it out: clients find it in `PGPASSWORD` or `~/.pgpass`, and in `MYSQL_PWD` or `~/.my.cnf`";
        return usage(format!("`{shown}` has a password, which a plan would keep"), help);
    }

    let schemes = |engine: Engine| engine.facts().url_schemes;
    let Some(engine) =
        Engine::all().find(|engine| schemes(*engine).iter().any(|scheme| url.starts_with(scheme)))
    else {
        let known: Vec<&str> = Engine::all().flat_map(schemes).copied().collect();
        let help = format!("a URL begins with `{}`", known.join("`, `"));
        return usage(format!("`{shown}` is not the URL of a server"), help);
    };

    // The user says nothing about the server.
    let (_, after_scheme) = url.split_once("://").unwrap_or_default();
    let with_user = after_scheme.split('?').next().unwrap_or_default();
    let place = match with_user.rsplit_once('@') {
        Some((_, place)) => place,
        None => with_user,
    };
    let name = if place.is_empty() { engine.name() } else { place };

    Ok(TargetBuild::Available {
        engine,
        source: url.to_owned(),
        name: Some(name.to_owned()),
        identity: url.to_owned(),
    })
}

/// Finds the build in a directory of the user, which stays where it is.
fn find_directory(path: &Path, name: Option<&str>) -> anyhow::Result<TargetBuild> {
    let given = path.display();
    let absolute = fs_err::canonicalize(path)
        .map_err(|error| UsageError::new(format!("cannot use `dir:{given}`: {error}"), None))?;

    let Some(found) = builds::find_in(&absolute) else {
        let help = "give a directory with `bin/postgres`, `bin/mysqld`, `bin/mariadbd`, `librocksdb.so` or `libsqlite3.so`, or a library";
        return usage(format!("`{given}` has no build of an engine"), help);
    };

    let source = found.path.display().to_string();
    let own_name = absolute.file_name().unwrap_or_default().to_string_lossy();

    let mut target = TargetBuild::available(&source, found.engine, &source, &source)?;
    if let TargetBuild::Available { name: in_plan, .. } = &mut target {
        *in_plan = Some(name.map_or(own_name.into_owned(), str::to_owned));
    }

    Ok(target)
}

/// Finds the newest downloaded build of a library.
fn find_newest(store: Option<&Store>, product: &str) -> anyhow::Result<TargetBuild> {
    let newest = match store {
        Some(store) => store.newest(product)?,
        None => None,
    };
    let Some(build) = newest else {
        let version = if product == "rocksdb" { "9.9.3" } else { "2.8.0" };
        let help = format!("name a version to download, for example `{product}@{version}`");
        return usage(format!("no build of `{product}` is downloaded"), help);
    };

    let name = &build.manifest.name;
    TargetBuild::available(product, &build.manifest.engine, name, name)
}

/// Finds the build of a spec in the store.
fn find_spec(store: Option<&Store>, target: &str) -> anyhow::Result<TargetBuild> {
    let spec = Spec::parse(target).map_err(|error| {
        let products: Vec<&str> =
            Engine::all().flat_map(|engine| engine.facts().products).copied().collect();
        let help = format!(
            "{}; or name a build that `assay builds` lists, or an engine: `{}`",
            error.help(),
            products.join("`, `")
        );
        UsageError::new(error.to_string(), Some(help))
    })?;

    if let Spec::Directory { path, name } = &spec {
        return find_directory(path, name.as_deref());
    }

    let stored = match (store, spec.engine()) {
        (None, _) => None,
        (Some(store), Some(engine)) => store.find(engine, target)?,
        (Some(store), None) => store.by_spec(&spec.to_string())?,
    };

    let Some(build) = stored else {
        return Ok(TargetBuild::Missing(spec));
    };

    let name = &build.manifest.name;
    // A plan names a build by its spec only if the spec says which engine it is.
    let source = if spec.engine().is_some() { target } else { name };
    TargetBuild::available(target, &build.manifest.engine, source, name)
}

/// Turns text into a valid name in a plan.
pub fn plan_name(text: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    let chars = text.chars().map(|char| if is_plain(char) { char } else { '_' });
    chars.take(60).collect()
}
