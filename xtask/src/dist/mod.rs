//! `cargo xtask dist`: makes the packages of a release, and tries each of them.
//!
//! ```text
//! maturin ──► wheel ──► binary ──► staged files ─┬─► tarball
//!   │                     │        man pages,    └─► Debian package
//!   zig's C library       │        completions,
//!   of glibc 2.28         │        licenses
//!                         ▼
//!                      symbols     runs on Debian 11?
//! ```
//!
//! All packages have the same binary. It is compiled for an old C library, which zig brings along,
//! so that the packages run on older systems than the one that made them.

mod licenses;
mod stage;
mod symbols;
mod tools;
mod trial;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;

use crate::workspace::{Workspace, output, succeeds};
use stage::Staged;
use tools::Tools;

/// The oldest C library on which the packages run: that of Debian 11.
const GLIBC_MAX: symbols::Version = symbols::Version { major: 2, minor: 31 };
/// The wheel's tag for C libraries, which decides which one zig compiles for.
const COMPATIBILITY: &str = "manylinux_2_28";

/// Makes all packages in `target/dist`, tries them, and prints their paths. Returns false if the
/// build or a trial fails.
///
/// With `binary`, packages that binary and makes no wheel, which is for tests of the packages.
pub fn run(workspace: &Workspace, binary: Option<&Path>) -> Result<bool> {
    let target = workspace.target_directory()?;
    let folder = target.join("dist");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let licenses = folder.join("THIRD-PARTY-LICENSES.txt");
    fs::write(&licenses, licenses::text(workspace)?)?;

    let mut packages = Vec::new();
    let binary = match binary {
        Some(binary) => binary.to_owned(),
        None => {
            let tools = Tools::installed_in(&target.join("xtask/dist-tools"))?;
            let Some(wheel) = build_wheel(workspace, &tools, &folder)? else {
                println!("the wheel could not be built, see above");
                return Ok(false);
            };
            tools.finish(&wheel, &licenses)?;
            let binary = tools.binary_of(&wheel)?;
            packages.push(wheel);
            binary
        }
    };

    let needed = symbols::needed_glibc(&binary)?;
    println!("the binary needs glibc {needed}");
    let is_old_enough = needed <= GLIBC_MAX;
    if !is_old_enough {
        println!("it would not run on Debian 11, which has glibc {GLIBC_MAX}");
    }

    let staged = Staged::new(workspace, &binary, &licenses, needed)?;
    packages.push(staged.tarball(&folder)?);
    packages.push(staged.debian_package(&folder)?);
    let tried = trial::all(workspace, &packages, &staged.version)?;
    for package in &packages {
        println!("{}", package.display());
    }
    Ok(is_old_enough && tried)
}

/// Builds the wheel, and returns its path; `None` if the build fails.
fn build_wheel(workspace: &Workspace, tools: &Tools, folder: &Path) -> Result<Option<PathBuf>> {
    let mut maturin = workspace.command(tools.program("maturin"));
    maturin.args(["build", "--release", "--locked", "--zig"]);
    maturin.args(["--compatibility", COMPATIBILITY, "--out"]).arg(folder);
    // It finds zig there.
    maturin.env("PATH", tools.path_variable()?);
    if !succeeds(&mut maturin)? {
        return Ok(None);
    }
    let wheels = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let wheels: Vec<PathBuf> = wheels.collect::<Result<_>>()?;
    let wheel = wheels.into_iter().find(|path| path.extension().is_some_and(|end| end == "whl"));
    wheel.context("maturin made no wheel").map(Some)
}

/// Runs a command that must succeed.
fn must_run(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}
