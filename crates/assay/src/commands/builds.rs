//! `assay fetch` and `assay builds`: brings builds of engines, lists, verifies and removes them.

use std::path::Path;

use builds::{Build, Error, Spec, Store, check_name};

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
            let what = format!("`--name {name}` is for one build, but {count} are asked for");
            return Err(Error::usage(what, "fetch them one by one").into());
        }
    }
    let mut exit = Exit::Ok;
    fetch_each(&specs, args.name.as_deref(), |fetched| {
        match fetched {
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
        Ok(())
    })?;
    Ok(exit)
}

/// Fetches builds; `take` is given each, or why it can't be had.
pub fn fetch_each(
    specs: &[Spec],
    name: Option<&str>,
    mut take: impl FnMut(anyhow::Result<Build>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let store = Store::of_user()?;
    let lock = store.lock(&|line| eprintln!("{line}"))?;
    warn_of_barred(store.root());
    for log in ["apt.log", "mvn.log"] {
        // They are of the last fetch alone; one that stays is no harm.
        let _ = fs_err::remove_file(store.downloads().join(log));
    }
    for spec in specs {
        let say = |line: &str| eprintln!("{spec}: {line}");
        take(builds::fetch(&store, &lock, spec, name, &say))?;
    }
    Ok(())
}

/// Servers that refuse to run as root run as another user, who must be able to reach them.
fn warn_of_barred(root: &Path) {
    use std::os::unix::fs::MetadataExt;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let is_barred = |path: &&Path| {
        let metadata = path.metadata();
        metadata.is_ok_and(|metadata| metadata.mode() & 0o001 == 0)
    };
    if let Some(barred) = root.ancestors().filter(is_barred).last() {
        let barred = barred.display();
        eprintln!(
            "warning: other users can't enter `{barred}`, and servers run as another user when assay is root\n\
             help: name a folder that all may enter in ASSAY_BUILDS, or `chmod a+x {barred}`"
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
    let mut exit = Exit::Ok;
    let mut lines = vec![["name", "engine", "version", "MB", "spec", "state"].map(str::to_owned)];
    for (name, build) in store.list()? {
        let (about, state) = match build {
            Err(error) => (["?"; 4].map(str::to_owned), Err(error.to_string())),
            Ok(build) => {
                let state = match args.verify {
                    true => build.verify().map(|()| "verified"),
                    false => build.manifest.quick_check(&build.folder).map(|()| "ok"),
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
        let [engine, version, size, spec] = about;
        let state = state.map_or_else(|what| what, str::to_owned);
        lines.push([name, engine, version, size, spec, state]);
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
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or(0)
    });
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
