//! Tries each package in a fresh directory or virtual environment: it has all of its files, and
//! its Assay measures.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::must_run;
use crate::workspace::{Workspace, output, succeeds, succeeds_quietly};

/// A plan that takes a few seconds.
const PLAN: &str = r#"
name = "trial"
[workload.insert]
initial-rows = 2000
write-rows = 1000
read-write-time = "200ms"
steps = ["l.i0", "l.x", "qr100"]
[build.lite]
sqlite = "bundled"
[config.sqlite.base]
set = { journal_mode = "wal", synchronous = "off" }
"#;

/// The files that a package for a system has, below `usr` or its only folder.
const FILES: [&str; 6] = [
    "share/man/man1/assay.1.gz",
    "share/man/man1/assay-run.1.gz",
    "share/bash-completion/completions/assay",
    "share/zsh/vendor-completions/_assay",
    "share/doc/assay/THIRD-PARTY-LICENSES.txt",
    "share/doc/assay/copyright",
];

/// Tries packages, and builds the container where that is possible. Prints what fails. Returns
/// false if anything does.
pub(super) fn all(workspace: &Workspace, packages: &[PathBuf], version: &str) -> Result<bool> {
    let mut is_good = true;
    for package in packages {
        let name = package.file_name().unwrap_or_default().to_string_lossy();
        match one(package, version) {
            Ok(()) => println!("tried {name}"),
            Err(error) => {
                println!("{name} does not work: {error:#}");
                is_good = false;
            }
        }
    }
    Ok(is_good & container(workspace, version)?)
}

/// Tries a package in a fresh place.
fn one(package: &Path, version: &str) -> Result<()> {
    let place = tempfile::tempdir()?;
    let root = place.path();
    match package.extension().and_then(|end| end.to_str()) {
        Some("deb") => {
            must_run(Command::new("dpkg-deb").arg("--extract").arg(package).arg(root))?;
            unpacked(&root.join("usr"), version)
        }
        Some("gz") => {
            let mut tar = Command::new("tar");
            tar.args(["--extract", "--strip-components=1", "--file"]).arg(package);
            must_run(tar.arg("--directory").arg(root))?;
            unpacked(root, version)
        }
        Some("whl") => wheel(package, root, version),
        _ => bail!("it is not a package"),
    }
}

/// Tries the files of a package for a system.
fn unpacked(folder: &Path, version: &str) -> Result<()> {
    for file in FILES {
        fs::metadata(folder.join(file))?;
    }
    measures(&folder.join("bin/assay"), version)
}

/// Installs a wheel in a new virtual environment, and tries its command and its module.
fn wheel(package: &Path, root: &Path, version: &str) -> Result<()> {
    must_run(Command::new("python3").args(["-m", "venv"]).arg(root))?;
    let mut pip = Command::new(root.join("bin/pip"));
    must_run(pip.args(["install", "--quiet", "--no-index"]).arg(package))?;

    let shown = output(Command::new(root.join("bin/pip")).args(["show", "--files", "assay"]))?;
    if !shown.contains("THIRD-PARTY-LICENSES.txt") {
        bail!("it has no licenses:\n{shown}");
    }
    let mut module = Command::new(root.join("bin/python"));
    must_run(module.args(["-c", "import assay; assay.read('latest')"]))?;
    measures(&root.join("bin/assay"), version)
}

/// Runs a small plan with an Assay.
fn measures(assay: &Path, version: &str) -> Result<()> {
    let printed = output(Command::new(assay).arg("--version"))?;
    if !printed.starts_with(&format!("assay {version} ")) {
        bail!("its version is {printed}");
    }
    let place = tempfile::tempdir()?;
    fs::write(place.path().join("plan.toml"), PLAN)?;
    let mut run = Command::new(assay);
    let directory = output(run.args(["run", "plan.toml", "--quiet"]).current_dir(place.path()))?;
    let run = directory.lines().last().context("it printed no directory")?;
    let mut show = Command::new(assay);
    let shown = output(show.args(["show", run]).current_dir(place.path()))?;
    if !shown.contains("qr100") {
        bail!("it shows no result:\n{shown}");
    }
    Ok(())
}

/// Builds the container from the source tree and runs it. Without a container engine, says so.
fn container(workspace: &Workspace, version: &str) -> Result<bool> {
    let engines = ["podman", "docker"];
    let Some(engine) =
        engines.into_iter().find(|engine| succeeds_quietly(Command::new(engine).arg("info")))
    else {
        println!("note: the Containerfile was not tried: neither podman nor docker works here");
        return Ok(true);
    };
    let tag = format!("assay:{version}");
    let mut build = workspace.command(engine);
    build.args(["build", "--file", "packaging/Containerfile", "--tag", &tag, "."]);
    let mut run = Command::new(engine);
    run.args(["run", "--rm", &tag, "--version"]);
    Ok(succeeds(&mut build)? && succeeds(&mut run)?)
}
