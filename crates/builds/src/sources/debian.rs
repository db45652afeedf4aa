//! Downloads packages of a Debian suite, with their dependencies, and unpacks them into a folder.
//!
//! apt resolves and downloads with a private state inside the store. In that state nothing is
//! installed, so the dependencies include the C library. The system's own apt only says which
//! mirror to use.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

use super::client::{self, ClientOutput};
use super::unpack;
use crate::error::BuildError;
use crate::hash;
use crate::manifest::Artifact;
use crate::process_group::ProcessGroup;

/// Debian's keys. Without this file, apt's trusted keys are used.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

const INSTALL: &str = "Debian packages can be fetched only where `apt-get` and `dpkg-deb` are installed; \
otherwise use `postgres@VERSION` or `mariadb@VERSION`, or register a build with `dir:/PATH=NAME`";

/// apt with a private state.
pub struct Debian<'a> {
    downloads: &'a Path,
    suite: &'a str,
    home: PathBuf,
}

impl<'a> Debian<'a> {
    pub fn new(downloads: &'a Path, suite: &'a str) -> Self {
        Self { downloads, suite, home: downloads.join("debian").join(suite) }
    }

    /// Downloads `packages` and their dependencies.
    pub fn fetch(
        &self,
        packages: &[String],
        progress: &dyn Fn(&str),
    ) -> anyhow::Result<Vec<Artifact>> {
        let what = format!("cannot fetch `debian:{}/{}`", self.suite, packages.join(","));
        self.configure()?;
        progress("reading the mirror's list of packages");
        self.update(&what)?;

        let output = self.apt(&["install", "--yes", "--print-uris"], packages)?;
        let listed = parse_uris(&output.stdout);
        if !output.is_success || listed.is_empty() {
            let other = || {
                let why = package_error(&output, self.suite);
                BuildError::new(format!("{what}: {why}"), SERVER_PACKAGES)
            };
            return Err(output.error_or(&what, "apt-get", &self.log(), other).into());
        }

        let total: u64 = listed.iter().map(|package| package.size_bytes).sum();
        progress(&format!(
            "downloading {} packages, {} MB",
            listed.len(),
            total.div_ceil(1_000_000)
        ));

        let output = self.apt(&["install", "--yes", "--download-only"], packages)?;
        if !output.is_success {
            return Err(output.error(&what, "apt-get", &self.log()).into());
        }

        listed.into_iter().map(|package| self.check(package)).collect()
    }

    /// Downloads the list of packages. `what` begins the error.
    fn update(&self, what: &str) -> anyhow::Result<()> {
        let output = self.apt(&["update"], &[])?;
        // When the mirror fails, apt uses an old list and reports success.
        if output.is_success && !self.has_no_list()? {
            return Ok(());
        }

        let other = || {
            BuildError::new(
                format!(
                    "{what}: this machine's Debian mirror has no suite `{}`, or its signature is not trusted",
                    self.suite
                ),
                format!(
                    "write `sid` or the name of a supported release; the output of `apt-get` is in `{}`",
                    self.log().display()
                ),
            )
        };
        Err(output.error_or(what, "apt-get", &self.log(), other).into())
    }

    /// Unpacks downloaded packages below `root`.
    pub fn unpack(&self, packages: &[Artifact], root: &Path) -> anyhow::Result<()> {
        let group = ProcessGroup::begin()?;
        let mut links = unpack::Links::default();
        for Artifact { name, size_bytes, .. } in packages {
            let mut child = group
                .add(&mut Command::new("dpkg-deb"))
                .arg("--fsys-tarfile")
                .arg(self.archives().join(name))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|error| client::not_started("dpkg-deb", INSTALL, error))?;
            let unpacked = match child.stdout.take() {
                Some(files) => unpack::debian_package(files, *size_bytes, root, &mut links),
                None => Ok(()),
            };

            let output = child.wait_with_output()?;
            unpacked.with_context(|| format!("cannot unpack `{name}`"))?;

            let stderr = String::from_utf8_lossy(&output.stderr);
            anyhow::ensure!(output.status.success(), "cannot unpack `{name}`: {}", stderr.trim());
        }

        links.create(root)
    }

    fn log(&self) -> PathBuf {
        self.downloads.join("apt.log")
    }

    /// Returns the folder of the downloaded packages.
    pub fn archives(&self) -> PathBuf {
        self.home.join("cache/archives")
    }

    /// Creates the private state, and the configuration that makes apt use it.
    fn configure(&self) -> anyhow::Result<()> {
        for folder in ["state/lists/partial", "cache/archives/partial", "log", "empty"] {
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
            return Err(BuildError::new(
                format!("apt cannot work in `{home}`: the path contains a space or a quote"),
                "set ASSAY_BUILDS to a directory without these characters",
            )
            .into());
        }
        fs_err::write(self.config(), config(&home))?;
        Ok(())
    }

    fn config(&self) -> PathBuf {
        self.home.join("apt.conf")
    }

    /// Returns the Debian mirror in the configuration of this machine's apt.
    fn mirror(&self) -> anyhow::Result<String> {
        let mut command = Command::new("apt-get");
        command.args(["indextargets", "--format", "$(REPO_URI) $(RELEASE)"]);
        command.arg("Created-By: Packages");
        let output = client::run(&mut command, &self.log(), INSTALL)?;

        choose_mirror(&output.stdout).ok_or_else(|| {
            anyhow::Error::new(BuildError::new(
                "no Debian mirror is configured in this machine's apt",
                "add one to `/etc/apt/sources.list`, or use `postgres@VERSION` or `mariadb@VERSION`",
            ))
        })
    }

    fn apt(&self, args: &[&str], packages: &[String]) -> anyhow::Result<ClientOutput> {
        let mut command = Command::new("apt-get");

        // apt reads this file after the system's: it overrides folders, but not proxies.
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

    /// Compares a download with the hash that apt listed, if any. Returns the package with its size
    /// and hash.
    fn check(&self, package: Artifact) -> anyhow::Result<Artifact> {
        let path = self.archives().join(&package.name);
        let (size_bytes, sha256) = hash::of_file(&path)?;

        if !["", &sha256].contains(&package.sha256.as_str()) {
            // The next attempt downloads the package again.
            let _ = fs_err::remove_file(&path);
            return Err(BuildError::new(
                format!("the SHA-256 of `{}` is not the one that the mirror lists", package.name),
                "try again; the damaged file was removed",
            )
            .into());
        }

        Ok(Artifact { name: package.name, size_bytes, sha256 })
    }
}

const SERVER_PACKAGES: &str = "packages of servers are `postgresql-17`, `mariadb-server` with `mariadb-plugin-rocksdb`, and \
`mysql-server-core`; not every suite has them all";

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

/// Returns the first mirror of a complete Debian release, from lines of `URI RELEASE`.
fn choose_mirror(lines: &str) -> Option<String> {
    let partial = ["-security", "/updates", "-updates", "-backports"];
    let mut mirrors = lines.lines().filter_map(|line| line.split_once(' '));
    let mirror = mirrors.find(|(uri, release)| {
        !partial.iter().any(|suffix| release.contains(suffix))
            && uri.trim_end_matches('/').ends_with("/debian")
            && !uri.starts_with("cdrom:")
    });

    Some(mirror?.0.to_owned())
}

/// Parses apt's list of downloads, with `'URI' FILE SIZE SHA256:HASH` in each line.
fn parse_uris(printed: &str) -> Vec<Artifact> {
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

/// Returns the reason why apt refuses the requested packages.
fn package_error(output: &ClientOutput, suite: &str) -> String {
    let message = output
        .text_after("E: Unable to locate package ")
        .or_else(|| output.text_after("E: Package "));
    let Some(word) = message.and_then(|message| message.split_whitespace().next()) else {
        return "apt cannot satisfy the dependencies".into();
    };

    let package = word.trim_matches(['\'', '"']);
    format!("`{suite}` has no package `{package}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_mirror_of_a_complete_release_is_used() {
        let lines = "http://m/debian-security/ bookworm-security\nhttp://m/debian/ bookworm-updates\n\
                     http://tools/apt stable\nhttp://m/debian/ bookworm\n";
        assert_eq!(choose_mirror(lines).as_deref(), Some("http://m/debian/"));
        assert_eq!(choose_mirror("http://m/ubuntu/ noble\n"), None);
    }

    #[test]
    fn the_list_of_packages_is_parsed() {
        let printed = "Reading package lists...\n'http://m/x_1.deb' x_1%3a1.deb 12 SHA256:ab\n'u' ../y 1 SHA256:c\n";
        assert_eq!(
            parse_uris(printed),
            [Artifact { name: "x_1%3a1.deb".into(), size_bytes: 12, sha256: "ab".into() }]
        );
    }
}
