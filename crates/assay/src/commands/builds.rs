//! `assay builds`: lists, shows, verifies and removes builds of engines.

use builds::{Build, BuildError, Made, Manifest, Store};
use report::{columns, moment_of_seconds, safe_columns};

use crate::cli::BuildsArgs;
use crate::exit::Exit;
use crate::output::print;

/// The column headers of the list of builds.
const HEADERS: [&str; 6] = ["name", "engine", "version", "MB", "spec", "state"];

/// A build in the list.
struct BuildRow {
    /// The texts under [`HEADERS`].
    cells: [String; HEADERS.len()],
    /// No problem was found.
    is_intact: bool,
}

/// Lists or verifies builds, shows one, or removes one.
pub fn builds(args: &BuildsArgs) -> anyhow::Result<Exit> {
    if let Some(product) = &args.available {
        return list_available(product);
    }

    let store = Store::of_user()?;
    if let Some(name) = &args.remove {
        return remove(&store, name);
    }
    if let Some(name) = &args.name {
        return show(&store, name);
    }
    list(&store, args.verify)
}

/// Lists the versions of a product that can be downloaded.
fn list_available(product: &str) -> anyhow::Result<Exit> {
    let versions = builds::available(product, &|line| eprintln!("{product}: {line}"))?;
    print(&(versions.join("\n") + "\n"))?;
    Ok(Exit::Ok)
}

/// Removes a build.
fn remove(store: &Store, name: &str) -> anyhow::Result<Exit> {
    let lock = store.lock(&|line| eprintln!("{line}"))?;
    let freed_bytes = store.remove(&lock, name)?;
    eprintln!("removed `{name}`: {} MB", freed_bytes.div_ceil(1_000_000));
    Ok(Exit::Ok)
}

/// Shows where a build is from, and how it was made.
fn show(store: &Store, name: &str) -> anyhow::Result<Exit> {
    let Some(build) = store.by_name(name)? else {
        let message = format!("there is no build `{name}` in `{}`", store.root().display());
        return Err(BuildError::usage(message, "`assay builds` lists the builds").into());
    };

    print(&description(&build))?;
    Ok(Exit::Ok)
}

/// Lists all builds with their states. Checks each file of them if `verify` is set.
fn list(store: &Store, verify: bool) -> anyhow::Result<Exit> {
    let mut exit = Exit::Ok;
    let mut lines = vec![HEADERS.map(str::to_owned)];
    for (name, outcome) in store.list()? {
        let row = build_row(name, outcome, verify);
        if !row.is_intact {
            exit = Exit::Failed;
        }
        lines.push(row.cells);
    }

    if lines.len() == 1 {
        eprintln!(
            "no builds in `{}`; `assay fetch postgres@17` downloads one",
            store.root().display()
        );
        return Ok(exit);
    }

    print(&columns(&lines))?;
    Ok(exit)
}

/// Returns the row of a build. One that cannot be read has a row, too, with the problem as its state.
fn build_row(name: String, outcome: anyhow::Result<Build>, verify: bool) -> BuildRow {
    let build = match outcome {
        Ok(build) => build,
        Err(error) => {
            let [engine, version, size, spec] = ["?"; 4].map(str::to_owned);
            let cells = [name, engine, version, size, spec, error.to_string()];
            return BuildRow { cells, is_intact: false };
        }
    };

    let checked = if verify {
        build.verify().map(|()| "verified")
    } else {
        build.manifest.quick_check(&build.folder).map(|()| "ok")
    };
    let is_intact = checked.is_ok();
    let state = checked.map_or_else(|problem| problem, str::to_owned);

    let size_mb = build.size_bytes().div_ceil(1_000_000).to_string();
    let Manifest { engine, product, version, spec, .. } = build.manifest;
    let cells = [name, engine, format!("{product} {version}"), size_mb, spec, state];
    BuildRow { cells, is_intact }
}

/// Returns where a build is from, and how it was made.
fn description(build: &Build) -> String {
    let Manifest { name, spec, version_text, made, compiled, programs, .. } = &build.manifest;
    let mut lines = vec![
        ["name".to_owned(), name.clone()],
        ["spec".to_owned(), spec.clone()],
        ["version".to_owned(), version_text.clone()],
        ["path".to_owned(), build.path().display().to_string()],
    ];
    if let Some(made) = made {
        lines.extend(made_lines(made));
    }
    if let Some(compiled) = compiled {
        lines.push(["compiler".to_owned(), compiled.compiler.clone()]);
        lines.push(["command".to_owned(), compiled.command.clone()]);
    }
    for program in programs {
        let (path, sha256) = (program.path.display(), &program.sha256);
        lines.push(["SHA-256".to_owned(), format!("{sha256}  {path}")]);
    }

    // Recipes and subjects of commits come from strangers.
    safe_columns(&lines)
}

/// Returns how a build was made from a commit.
fn made_lines(made: &Made) -> Vec<[String; 2]> {
    let seconds = made.duration_ms as f64 / 1e3;
    let mut lines = vec![
        ["commit".to_owned(), made.commit.hash.clone()],
        ["subject".to_owned(), made.commit.subject.clone()],
        ["committed".to_owned(), moment_of_seconds(made.commit.committed_unix_s)],
        ["recipe".to_owned(), made.make.trim().replace('\n', "; ")],
        ["gives".to_owned(), made.gives.display().to_string()],
        ["took".to_owned(), format!("{seconds:.1} s")],
    ];
    if let Some(patch) = &made.patch {
        lines.push(["patch".to_owned(), format!("{}  {}", patch.sha256, patch.name)]);
    }
    for (name, version) in made.compilers.iter().chain(&made.flags) {
        lines.push([name.clone(), version.clone()]);
    }

    lines
}
