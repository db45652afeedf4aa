//! `assay fetch` and `assay builds`: brings builds of engines, lists, verifies and removes them.

use std::path::Path;

use builds::{Error, Spec, Store, check_name};

use crate::cli::{BuildsArgs, FetchArgs};
use crate::outcome::{Exit, report_error};
use crate::output::print;

/// Fetches builds.
pub fn fetch(args: &FetchArgs) -> anyhow::Result<Exit> {
    let specs = args
        .specs
        .iter()
        .map(|text| Spec::parse(text))
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(name) = &args.name {
        check_name(name)?;
        if specs.len() > 1 {
            let count = specs.len();
            return Err(Error::usage(
                format!("`--name {name}` is for one build, but {count} are asked for"),
                "fetch them one by one",
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
        let say = |line: &str| eprintln!("{spec}: {line}");
        match builds::fetch(&store, &lock, spec, args.name.as_deref(), &say) {
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
