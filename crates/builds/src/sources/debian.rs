//! Packages of a suite of Debian, with all that they depend on, in a folder of their own.
//!
//! apt resolves and downloads, with a state of its own inside the store in which nothing is installed: so the C library
//! belongs to what is needed. Nothing is installed on this system, and its apt is only asked which mirror it uses.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

use super::client::{self, Said};
use super::unpack;
use crate::error::Error;
use crate::hash;
use crate::manifest::Artifact;

/// Debian's keys, where its own package puts them; elsewhere apt's trusted keys count.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

const INSTALL: &str = "packages of Debian can be fetched only where `apt-get` and `dpkg-deb` are; \
                       elsewhere use `postgres@VERSION` or `mariadb@VERSION`, or register a build with `dir:/PATH=NAME`";

/// apt, with a state of its own.
pub struct Debian<'a> {
    downloads: &'a Path,
    suite: &'a str,
    home: PathBuf,
}

impl<'a> Debian<'a> {
    pub fn new(downloads: &'a Path, suite: &'a str) -> Self {
        Self {
            downloads,
            suite,
            home: downloads.join("debian").join(suite),
        }
    }

    /// Downloads `packages` and all that they depend on.
    pub fn fetch(&self, packages: &[String], say: &dyn Fn(&str)) -> anyhow::Result<Vec<Artifact>> {
        let what = format!(
            "`debian:{}/{}` can't be fetched",
            self.suite,
            packages.join(",")
        );
        self.configure()?;
        say("asking the mirror what there is");
        let said = self.apt(&["update"], &[])?;
        // apt goes on with an old list when the mirror fails it, and says that all is well.
        if !said.success || self.has_no_list()? {
            let other = || {
                Error::new(
                    format!(
                        "{what}: this machine's mirror of Debian has no suite `{}`, or it can't be trusted",
                        self.suite
                    ),
                    format!(
                        "`sid` and the names of supported releases are there; what `apt-get` said is in `{}`",
                        self.log().display()
                    ),
                )
            };
            return Err(said.failure_or(&what, "apt-get", &self.log(), other).into());
        }
        let said = self.apt(&["install", "--yes", "--print-uris"], packages)?;
        let listed = listed(&said.stdout);
        if !said.success || listed.is_empty() {
            let other = || Error::new(format!("{what}: {}", complaint(&said, self.suite)), NAMES);
            return Err(said.failure_or(&what, "apt-get", &self.log(), other).into());
        }
        let total: u64 = listed.iter().map(|package| package.size_bytes).sum();
        say(&format!(
            "downloading {} packages, {} MB",
            listed.len(),
            total.div_ceil(1_000_000)
        ));
        let said = self.apt(&["install", "--yes", "--download-only"], packages)?;
        if !said.success {
            return Err(said.failure(&what, "apt-get", &self.log()).into());
        }
        listed
            .into_iter()
            .map(|package| self.check(package))
            .collect()
    }

    /// Unpacks them below `root`.
    pub fn unpack(&self, packages: &[Artifact], root: &Path) -> anyhow::Result<()> {
        for Artifact { name, .. } in packages {
            let mut child = Command::new("dpkg-deb")
                .arg("--fsys-tarfile")
                .arg(self.archives().join(name))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|error| client::not_started("dpkg-deb", INSTALL, error))?;
            let unpacked = match child.stdout.take() {
                Some(files) => unpack::debian(files, root),
                None => Ok(()),
            };
            let output = child.wait_with_output()?;
            unpacked.with_context(|| format!("`{name}` can't be unpacked"))?;
            let said = String::from_utf8_lossy(&output.stderr);
            anyhow::ensure!(
                output.status.success(),
                "`{name}` can't be unpacked: {}",
                said.trim()
            );
        }
        Ok(())
    }

    fn log(&self) -> PathBuf {
        self.downloads.join("apt.log")
    }

    /// Returns where the packages are downloaded to.
    pub fn archives(&self) -> PathBuf {
        self.home.join("cache/archives")
    }

    /// Makes the private state, and the configuration that leads apt to it.
    fn configure(&self) -> anyhow::Result<()> {
        for folder in [
            "state/lists/partial",
            "cache/archives/partial",
            "log",
            "empty",
        ] {
            fs_err::create_dir_all(self.home.join(folder))?;
        }
        fs_err::write(self.home.join("state/status"), "")?;
        let signed = if Path::new(KEYRING).is_file() {
            format!("[signed-by={KEYRING}] ")
        } else {
            String::new()
        };
        fs_err::write(
            self.home.join("sources.list"),
            format!("deb {signed}{} {} main\n", self.mirror()?, self.suite),
        )?;
        let home = self.home.display().to_string();
        if home.contains(['"', ' ']) {
            return Err(Error::new(
                format!("apt can't work in `{home}`: a blank or a quote is in its path"),
                "name another place for builds in ASSAY_BUILDS",
            )
            .into());
        }
        fs_err::write(self.config(), config(&home))?;
        Ok(())
    }

    fn config(&self) -> PathBuf {
        self.home.join("apt.conf")
    }

    /// The mirror of Debian that this machine's apt is configured with.
    fn mirror(&self) -> anyhow::Result<String> {
        let mut command = Command::new("apt-get");
        command.args(["indextargets", "--format", "$(REPO_URI) $(RELEASE)"]);
        command.arg("Created-By: Packages");
        let said = client::run(&mut command, &self.log(), INSTALL)?;
        choose_mirror(&said.stdout).ok_or_else(|| {
            anyhow::Error::new(Error::new(
                "this machine's apt has no mirror of Debian",
                "add one to `/etc/apt/sources.list`, or use `postgres@VERSION` or `mariadb@VERSION`",
            ))
        })
    }

    fn apt(&self, args: &[&str], packages: &[String]) -> anyhow::Result<Said> {
        let mut command = Command::new("apt-get");
        // This file is read after the system's own: proxies hold, places don't.
        command.arg("--config-file").arg(self.config());
        command.args(["-o", "APT::Install-Recommends=false"]);
        command.args(args).args(packages);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        client::run(&mut command, &self.log(), INSTALL)
    }

    fn has_no_list(&self) -> anyhow::Result<bool> {
        let mut lists = fs_err::read_dir(self.home.join("state/lists"))?;
        Ok(!lists.any(|entry| {
            entry.is_ok_and(|entry| entry.file_name().to_string_lossy().contains("_Packages"))
        }))
    }

    /// Compares a download with what apt listed; returns it with its hash, which apt need not know.
    fn check(&self, package: Artifact) -> anyhow::Result<Artifact> {
        let path = self.archives().join(&package.name);
        let (size_bytes, sha256) = hash::of_file(&path)?;
        if !["", &sha256].contains(&package.sha256.as_str()) {
            // The next attempt downloads it again.
            let _ = fs_err::remove_file(&path);
            return Err(Error::new(
                format!("`{}` is not what the mirror announced", package.name),
                "try again",
            )
            .into());
        }
        Ok(Artifact {
            name: package.name,
            size_bytes,
            sha256,
        })
    }
}

const NAMES: &str = "servers are in `postgresql-17`, `mariadb-server` with `mariadb-plugin-rocksdb`, `mysql-server-core`; \
                     not every suite has each";

fn config(home: &str) -> String {
    format!(
        "Dir::Etc::sourcelist \"{home}/sources.list\";\n\
         Dir::Etc::sourceparts \"{home}/empty\";\n\
         Dir::Etc::preferences \"{home}/empty/none\";\n\
         Dir::Etc::preferencesparts \"{home}/empty\";\n\
         Dir::State \"{home}/state\";\n\
         Dir::State::status \"{home}/state/status\";\n\
         Dir::State::extended_states \"{home}/state/extended_states\";\n\
         Dir::State::lists \"{home}/state/lists\";\n\
         Dir::Cache \"{home}/cache\";\n\
         Dir::Cache::archives \"{home}/cache/archives\";\n\
         Dir::Log \"{home}/log\";\n\
         APT::Sandbox::User \"root\";\n\
         APT::Default-Release \"\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::Retries \"2\";\n\
         Acquire::http::Timeout \"30\";\n\
         Acquire::https::Timeout \"30\";\n\
         Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
         Acquire::IndexTargets::deb::CNF::DefaultEnabled \"false\";\n\
         #clear APT::Update;\n\
         #clear DPkg::Pre-Install-Pkgs;\n\
         #clear DPkg::Pre-Invoke;\n\
         #clear DPkg::Post-Invoke;\n"
    )
}

/// The first mirror that carries a whole release of Debian, from lines of `URI RELEASE`.
fn choose_mirror(lines: &str) -> Option<String> {
    let partial = ["-security", "/updates", "-updates", "-backports"];
    let mut mirrors = lines.lines().filter_map(|line| line.split_once(' '));
    let whole = mirrors.find(|(uri, release)| {
        !partial.iter().any(|suffix| release.contains(suffix))
            && uri.trim_end_matches('/').ends_with("/debian")
            && !uri.starts_with("cdrom:")
    });
    Some(whole?.0.to_owned())
}

/// Reads apt's list of what it would download: `'URI' FILE SIZE SHA256:HASH` in each line.
fn listed(printed: &str) -> Vec<Artifact> {
    let package = |line: &str| {
        let mut words = line.strip_prefix('\'')?.split_whitespace().skip(1);
        let (name, size, hash) = (words.next()?, words.next()?, words.next());
        let sha256 = hash.and_then(|hash| hash.strip_prefix("SHA256:"));
        (!name.contains('/')).then_some(Artifact {
            name: name.to_owned(),
            size_bytes: size.parse().ok()?,
            sha256: sha256.unwrap_or_default().to_owned(),
        })
    };
    printed.lines().filter_map(package).collect()
}

/// apt's complaint about what was asked for.
fn complaint(said: &Said, suite: &str) -> String {
    let about = said.complaint("E: Unable to locate package ");
    let about = about.or_else(|| said.complaint("E: Package "));
    let Some(name) = about.and_then(|about| about.split_whitespace().next()) else {
        return "its dependencies can't be met".into();
    };
    let name = name.trim_matches(['\'', '"']);
    format!("`{suite}` has no package `{name}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_the_one_with_whole_releases() {
        let lines = "http://m/debian-security/ bookworm-security\nhttp://m/debian/ bookworm-updates\n\
                     http://tools/apt stable\nhttp://m/debian/ bookworm\n";
        assert_eq!(choose_mirror(lines).as_deref(), Some("http://m/debian/"));
        assert_eq!(choose_mirror("http://m/ubuntu/ noble\n"), None);
    }

    #[test]
    fn the_list_of_packages_is_read() {
        let printed = "Reading package lists...\n'http://m/x_1.deb' x_1%3a1.deb 12 SHA256:ab\n'u' ../y 1 SHA256:c\n";
        assert_eq!(
            listed(printed),
            [Artifact {
                name: "x_1%3a1.deb".into(),
                size_bytes: 12,
                sha256: "ab".into()
            }]
        );
    }
}
