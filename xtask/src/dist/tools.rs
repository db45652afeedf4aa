//! The Python packages that make a wheel, in a virtual environment of their own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use super::must_run;
use crate::prepare;
use crate::workspace::{succeeds, succeeds_quietly, with_retries};

/// The packages, with their versions.
const PACKAGES: [&str; 3] = ["maturin==1.9.4", "ziglang==0.15.1", "wheel==0.45.1"];

/// Takes the only program out of a wheel. Arguments: the wheel, the file to write.
const EXTRACT: &str = r#"
import os, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    [name] = [name for name in wheel.namelist() if name.endswith(".data/scripts/assay")]
    with open(sys.argv[2], "wb") as binary:
        binary.write(wheel.read(name))
os.chmod(sys.argv[2], 0o755)
"#;

/// The virtual environment.
pub(super) struct Tools {
    folder: PathBuf,
}

impl Tools {
    /// Installs the packages, unless they are there.
    pub(super) fn installed_in(folder: &Path) -> Result<Self> {
        ensure!(prepare::ensure_installed(&["python3-venv"])?, "a wheel needs Python with `venv`");
        let tools = Self { folder: folder.to_owned() };
        let marker = folder.join("installed");
        let wanted = PACKAGES.join("\n");
        if fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
            return Ok(tools);
        }

        let installed = with_retries("the installation of maturin and zig", || {
            let made =
                succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
            let mut pip = Command::new(tools.program("pip"));
            Ok(made && succeeds(pip.args(["install", "--quiet"]).args(PACKAGES))?)
        })?;
        ensure!(installed, "maturin and zig cannot be installed");
        fs::write(&marker, wanted)?;
        Ok(tools)
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// Returns `PATH` with the programs first.
    pub(super) fn path_variable(&self) -> Result<OsString> {
        let others = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.folder.join("bin")).chain(std::env::split_paths(&others));
        std::env::join_paths(all).context("PATH has a directory with a colon")
    }

    /// Adds a file to the licenses of a wheel, and removes the debug information of its binary, which
    /// is most of it.
    pub(super) fn finish(&self, wheel: &Path, license: &Path) -> Result<()> {
        let place = tempfile::tempdir()?;
        let mut unpack = Command::new(self.program("wheel"));
        must_run(unpack.arg("unpack").arg(wheel).arg("--dest").arg(place.path()))?;
        let unpacked = only_entry(place.path(), "")?;

        let info = only_entry(&unpacked, ".dist-info")?;
        let licenses = info.join("licenses");
        fs::create_dir_all(&licenses)?;
        fs::copy(license, licenses.join(license.file_name().unwrap_or_default()))?;

        let binary = only_entry(&unpacked, ".data")?.join("scripts/assay");
        must_run(Command::new("strip").arg("--strip-debug").arg(binary))?;

        let folder = wheel.parent().unwrap_or(Path::new("."));
        let mut pack = Command::new(self.program("wheel"));
        must_run(pack.arg("pack").arg(&unpacked).arg("--dest-dir").arg(folder))
    }

    /// Takes the binary out of a wheel.
    pub(super) fn binary_of(&self, wheel: &Path) -> Result<PathBuf> {
        let binary = self.folder.join("assay");
        let mut python = Command::new(self.program("python"));
        must_run(python.args(["-c", EXTRACT]).arg(wheel).arg(&binary))?;
        ensure!(
            succeeds_quietly(Command::new(&binary).arg("--version")),
            "the binary does not run"
        );
        Ok(binary)
    }
}

/// Returns the only entry of a folder whose name ends so.
fn only_entry(folder: &Path, end: &str) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    match <[PathBuf; 1]>::try_from(found) {
        Ok([path]) => Ok(path),
        Err(found) => anyhow::bail!("`{}` has {} of `*{end}`", folder.display(), found.len()),
    }
}
