//! The files of a package, as they are installed, and the packages that are made of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;
use serde_json::Value;

use super::{must_run, symbols};
use crate::workspace::{Workspace, output};

/// The scripts of completions: the shell, and the path below `usr/share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/assay"),
    ("zsh", "zsh/vendor-completions/_assay"),
    ("fish", "fish/vendor_completions.d/assay.fish"),
];
/// Files of the checkout that go into the package's documentation.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// The files below a root directory.
pub(super) struct Staged {
    pub(super) version: String,
    root: tempfile::TempDir,
    needed: symbols::Version,
}

impl Staged {
    /// Copies the binary and what belongs to it.
    pub(super) fn new(
        workspace: &Workspace,
        binary: &Path,
        licenses: &Path,
        needed: symbols::Version,
    ) -> Result<Self> {
        let root = tempfile::tempdir()?;
        let usr = root.path().join("usr");
        let (share, documents) = (usr.join("share"), usr.join("share/doc/assay"));
        let pages = share.join("man/man1");
        for folder in [&usr.join("bin"), &documents, &pages] {
            fs::create_dir_all(folder)?;
        }

        let installed = usr.join("bin/assay");
        fs::copy(binary, &installed)?;
        must_run(Command::new("strip").arg("--strip-debug").arg(&installed))?;

        must_run(Command::new(&installed).arg("man").arg(&pages))?;
        for page in fs::read_dir(&pages)? {
            // Without the time, so that the same page is the same file.
            must_run(Command::new("gzip").args(["--best", "--no-name"]).arg(page?.path()))?;
        }
        for (shell, path) in COMPLETIONS {
            let path = share.join(path);
            fs::create_dir_all(path.parent().unwrap_or(&share))?;
            fs::write(path, output(Command::new(&installed).args(["completions", shell]))?)?;
        }

        for name in DOCUMENTS {
            fs::copy(workspace.root.join(name), documents.join(name))?;
        }
        fs::copy(licenses, documents.join("THIRD-PARTY-LICENSES.txt"))?;
        fs::write(documents.join("copyright"), copyright(workspace)?)?;

        Ok(Self { version: version(workspace)?, root, needed })
    }

    /// Makes a tarball, with one folder in it.
    pub(super) fn tarball(&self, folder: &Path) -> Result<PathBuf> {
        let name = format!("assay-{}-{}-linux", self.version, std::env::consts::ARCH);
        let path = folder.join(format!("{name}.tar.gz"));
        let mut tar = Command::new("tar");
        tar.args(["--create", "--gzip", "--sort=name", "--owner=0", "--group=0"]);
        tar.arg(format!("--transform=s,^usr,{name},")).arg("--file").arg(&path);
        must_run(tar.arg("--directory").arg(self.root.path()).arg("usr"))?;
        Ok(path)
    }

    /// Makes a Debian package.
    pub(super) fn debian_package(&self, folder: &Path) -> Result<PathBuf> {
        let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
        let architecture = architecture.trim();

        let control = self.root.path().join("DEBIAN");
        fs::create_dir_all(&control)?;
        fs::write(
            control.join("control"),
            format!(
                "Package: assay\n\
                 Version: {}\n\
                 Architecture: {architecture}\n\
                 Maintainer: The Assay developers <assay@localhost>\n\
                 Section: database\n\
                 Priority: optional\n\
                 Depends: libc6 (>= {}), libgcc-s1\n\
                 Suggests: postgresql, mariadb-server, maven, linux-perf, valgrind\n\
                 Description: measures database storage engines and explains what changed\n \
                 Assay compares versions and configurations of PostgreSQL, MySQL, MariaDB,\n \
                 SQLite, RocksDB and Speedb, with the certainty of each verdict.\n",
                self.version, self.needed
            ),
        )?;

        let path = folder.join(format!("assay_{}_{architecture}.deb", self.version));
        let mut dpkg = Command::new("dpkg-deb");
        dpkg.args(["--root-owner-group", "--build"]).arg(self.root.path()).arg(&path);
        must_run(&mut dpkg)?;
        Ok(path)
    }
}

/// Returns the version of the crate.
fn version(workspace: &Workspace) -> Result<String> {
    let metadata = workspace.metadata("--no-deps")?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let own = packages.into_iter().find(|package| package["name"] == "assay");
    let version = own.and_then(|package| package["version"].as_str());
    version.map(str::to_owned).context("`cargo metadata` has no version of `assay`")
}

/// Returns the file in which Debian looks for licenses.
fn copyright(workspace: &Workspace) -> Result<String> {
    let mit = fs::read_to_string(workspace.root.join("LICENSE-MIT"))?;
    let license: Value = workspace.metadata("--no-deps")?["packages"][0]["license"].take();
    Ok(format!(
        "Assay is licensed under {}. LICENSE-APACHE and THIRD-PARTY-LICENSES.txt are beside this file.\n\n{mit}",
        license.as_str().unwrap_or("MIT OR Apache-2.0")
    ))
}
