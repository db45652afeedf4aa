//! Downloads packages from npm's registry with npm's own client, which compares each with the hash
//! that the registry lists.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::client::{self, ClientOutput};

const INSTALL: &str = "install npm (Debian: `apt-get install npm`), use a Debian package such as \
`debian:bookworm/libsqlite3-0`, or register a library with `dir:/PATH=NAME`";

/// The folder with npm's own copies of what it downloads, below that of the archive.
const CACHE: &str = "cache";

/// npm's client with a folder for packages.
pub struct Npm<'a> {
    /// The folder that keeps downloads until their build is complete.
    downloads: &'a Path,
}

impl<'a> Npm<'a> {
    pub fn new(downloads: &'a Path) -> Self {
        Self { downloads }
    }

    /// Downloads a version of a package, unless it is there. Returns its archive, which is alone in
    /// its folder. `what` begins the error.
    pub fn fetch(
        &self,
        package: &str,
        version: &str,
        what: &str,
        progress: &dyn Fn(&str),
    ) -> anyhow::Result<PathBuf> {
        let packages = self.downloads.join("npm").join(package);
        let folder = packages.join(version);
        let archive = folder.join(format!("{package}-{version}.tgz"));
        if archive.is_file() {
            progress("already downloaded");
            return Ok(archive);
        }

        progress(&format!("downloading `{package}` {version}"));
        // The client writes the archive under its final name while it downloads.
        let partial = packages.join(format!("{version}.partial"));
        let _ = fs_err::remove_dir_all(&partial);
        fs_err::create_dir_all(&partial)?;

        let output = self.pack(&format!("{package}@{version}"), &partial)?;
        if !output.is_success {
            return Err(output.error(what, "npm", &self.log()).into());
        }

        let _ = fs_err::remove_dir_all(partial.join(CACHE));
        let _ = fs_err::remove_dir_all(&folder);
        fs_err::rename(&partial, &folder)?;

        Ok(archive)
    }

    fn log(&self) -> PathBuf {
        self.downloads.join("npm.log")
    }

    /// Downloads the archive of `package@version` into a folder.
    fn pack(&self, package: &str, folder: &Path) -> anyhow::Result<ClientOutput> {
        let mut command = Command::new("npm");
        command
            // Nothing of the package is run.
            .args(["pack", "--ignore-scripts", package])
            // What it downloads counts, wherever it puts it first.
            .env("npm_config_cache", folder.join(CACHE))
            .current_dir(folder);
        client::run(&mut command, &self.log(), INSTALL)
    }
}
