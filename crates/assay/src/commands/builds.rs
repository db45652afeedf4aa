//! `assay builds`: lists, shows, verifies and removes builds of engines.

use builds::{Build, BuildError, Made, Manifest, Store};
use report::{columns, moment_of_seconds, safe_columns};

use crate::cli::BuildsArgs;
use crate::exit::Exit;
use crate::output::print;

/// Lists or verifies builds, shows one, or removes one.
pub fn builds(args: &BuildsArgs) -> anyhow::Result<Exit> {
    if let Some(product) = &args.available {
        let versions = builds::available(product, &|line| eprintln!("{product}: {line}"))?;
        print(&(versions.join("\n") + "\n"))?;
        return Ok(Exit::Ok);
    }

    let store = Store::of_user()?;
    if let Some(name) = &args.remove {
        let lock = store.lock(&|line| eprintln!("{line}"))?;
        let freed = store.remove(&lock, name)?;
        eprintln!("removed `{name}`: {} MB", freed.div_ceil(1_000_000));
        return Ok(Exit::Ok);
    }

    if let Some(name) = &args.name {
        let Some(build) = store.by_name(name)? else {
            let message = format!("there is no build `{name}` in `{}`", store.root().display());
            return Err(BuildError::usage(message, "`assay builds` lists the builds").into());
        };
        print(&description(&build))?;
        return Ok(Exit::Ok);
    }

    // A build that cannot be read still has a line, with the problem as its state.
    let mut exit = Exit::Ok;
    let mut lines = vec![["name", "engine", "version", "MB", "spec", "state"].map(str::to_owned)];
    for (name, build) in store.list()? {
        let (columns, state) = match build {
            Err(error) => (["?"; 4].map(str::to_owned), Err(error.to_string())),
            Ok(build) => {
                let state = if args.verify {
                    build.verify().map(|()| "verified")
                } else {
                    build.manifest.quick_check(&build.folder).map(|()| "ok")
                };
                let size = build.size_bytes().div_ceil(1_000_000).to_string();
                let manifest = build.manifest;
                let version = format!("{} {}", manifest.product, manifest.version);
                ([manifest.engine, version, size, manifest.spec], state)
            }
        };

        if state.is_err() {
            exit = Exit::Failed;
        }
        let [engine, version, size, spec] = columns;
        let state = state.map_or_else(|problem| problem, str::to_owned);
        lines.push([name, engine, version, size, spec, state]);
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
