//! Versions that are packed as Java artifacts: had by Maven's own client, into a repository inside the store.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::client::{self, Reason, Said};
use super::failure::FetchError;
use super::spec::{Product, is_version, numbers};

/// The plugin that fetches a single artifact.
const GET: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get";

const INSTALL: &str = "install Maven (Debian: `apt-get install maven`); where that can't be, \
                       `debian:SUITE/PACKAGE` needs `apt-get` and `dpkg-deb` only";

/// What Maven has fetched.
#[derive(Debug)]
pub struct Fetched {
    /// The whole version: `17.2.0`.
    pub version: String,
    /// The archive.
    pub jar: PathBuf,
}

/// Maven's client, with a repository of assay's own.
pub struct Maven<'a> {
    /// The folder in which downloads are kept until they are a build.
    downloads: &'a Path,
    product: Product,
}

impl<'a> Maven<'a> {
    pub fn new(downloads: &'a Path, product: Product) -> Self {
        Self { downloads, product }
    }

    /// Fetches the newest version that `asked` means.
    pub fn fetch(&self, asked: &str, say: &dyn Fn(&str)) -> anyhow::Result<Fetched> {
        let what = format!("{}@{asked}", self.product.name());
        if let Some(jar) = self.complete(asked) {
            say("it was downloaded already");
            return Ok(Fetched {
                version: asked.into(),
                jar,
            });
        }
        say("asking Maven which versions there are");
        let said = self.get("LATEST:pom")?;
        let versions = self.versions();
        if versions.is_empty() {
            return Err(self.failure(&said, &what).into());
        }
        let version =
            choose(&versions, asked).ok_or_else(|| unknown(self.product, asked, &versions))?;
        if let Some(jar) = self.complete(version) {
            say("it was downloaded already");
            return Ok(Fetched {
                version: version.into(),
                jar,
            });
        }
        say(&format!("downloading version {version}"));
        let said = self.get(&format!("{version}:jar"))?;
        let jar = self.jar(version);
        if !said.success || !jar.is_file() {
            if said.reason() == Reason::Unknown {
                return Err(unknown(self.product, asked, &versions).into());
            }
            return Err(self.failure(&said, &what).into());
        }
        Ok(Fetched {
            version: version.into(),
            jar,
        })
    }

    /// Forgets a version's archive: its build is installed.
    pub fn forget(&self, version: &str) {
        // It costs space, no more.
        let _ = fs_err::remove_dir_all(self.artifact_dir().join(version));
    }

    fn failure(&self, said: &Said, what: &str) -> FetchError {
        said.failure(&format!("`{what}` can't be fetched"), "mvn", &self.log())
    }

    fn log(&self) -> PathBuf {
        self.downloads.join("mvn.log")
    }

    fn repository(&self) -> PathBuf {
        self.downloads.join("maven")
    }

    fn artifact_dir(&self) -> PathBuf {
        let (group, artifact) = self.product.artifact();
        self.repository()
            .join(group.replace('.', "/"))
            .join(artifact)
    }

    fn jar(&self, version: &str) -> PathBuf {
        let (_, artifact) = self.product.artifact();
        self.artifact_dir()
            .join(version)
            .join(format!("{artifact}-{version}.jar"))
    }

    /// The archive of a version, if all of it is here: Maven writes under another name until it is.
    fn complete(&self, version: &str) -> Option<PathBuf> {
        Some(self.jar(version)).filter(|jar| jar.is_file())
    }

    /// Fetches `VERSION:TYPE` of the artifact.
    fn get(&self, version_and_type: &str) -> anyhow::Result<Said> {
        let (group, artifact) = self.product.artifact();
        let mut repository = std::ffi::OsString::from("-Dmaven.repo.local=");
        repository.push(self.repository());
        let mut command = Command::new("mvn");
        command
            .args(["--batch-mode", "--no-transfer-progress", "--quiet"])
            // What does not match its checksum is an error.
            .arg("--strict-checksums")
            // Ask again, although the answer was no a minute ago.
            .arg("--update-snapshots")
            .arg(repository)
            .args([
                "-Dmaven.wagon.rto=60000",
                "-Daether.connector.connectTimeout=20000",
                "-Daether.connector.requestTimeout=60000",
            ])
            .arg(GET)
            .arg(format!("-Dartifact={group}:{artifact}:{version_and_type}"))
            .arg("-Dtransitive=false")
            // A project in the working directory is none of its business.
            .current_dir(self.downloads);
        client::run(&mut command, &self.log(), INSTALL)
    }

    /// The versions that Maven has noted, as it lists them.
    fn versions(&self) -> Vec<String> {
        let Ok(entries) = fs_err::read_dir(self.artifact_dir()) else {
            return Vec::new();
        };
        let mut versions: Vec<String> = entries
            .flatten()
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name.starts_with("maven-metadata") && name.ends_with(".xml")
            })
            .filter_map(|entry| fs_err::read_to_string(entry.path()).ok())
            .flat_map(|text| versions_in(&text))
            .collect();
        versions.sort_by_key(|version| numbers(version));
        versions.dedup();
        versions
    }
}

/// The versions in Maven's list: the texts of its elements `version`.
fn versions_in(list: &str) -> Vec<String> {
    list.split("<version>")
        .skip(1)
        .filter_map(|rest| rest.split("</version>").next())
        .map(|version| version.trim().to_owned())
        .collect()
}

/// The newest version that `asked` means: released ones only, unless it is named whole.
fn choose<'a>(versions: &'a [String], asked: &str) -> Option<&'a str> {
    let exact = versions.iter().find(|version| *version == asked);
    let newest = || {
        versions
            .iter()
            .filter(|version| is_version(version, asked) && numbers(version).is_some())
            .max_by_key(|version| numbers(version))
    };
    exact.or_else(newest).map(String::as_str)
}

fn unknown(product: Product, asked: &str, versions: &[String]) -> FetchError {
    let major = |version: &str| version.split('.').next().unwrap_or_default().to_owned();
    let mut near: Vec<&str> = versions
        .iter()
        .map(String::as_str)
        .filter(|version| major(version) == major(asked))
        .collect();
    if near.is_empty() {
        // The newest of each major version.
        for version in versions.iter().filter(|version| numbers(version).is_some()) {
            match near.last_mut() {
                Some(last) if major(last) == major(version) => *last = version,
                _ => near.push(version),
            }
        }
    }
    FetchError::new(
        format!("there is no {} {asked} to be fetched", product.name()),
        format!(
            "versions like it are {}; another one may be registered with `dir:/PATH=NAME`",
            near.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions() -> Vec<String> {
        ["16.4.0", "17.2.0", "17.10.0", "18.0.0-beta1"]
            .map(str::to_owned)
            .to_vec()
    }

    #[test]
    fn the_newest_version_that_begins_so_is_meant() {
        assert_eq!(choose(&versions(), "17"), Some("17.10.0"));
        assert_eq!(choose(&versions(), "17.2"), Some("17.2.0"));
        assert_eq!(choose(&versions(), "17.1"), None);
        assert_eq!(choose(&versions(), "18"), None);
        assert_eq!(choose(&versions(), "18.0.0-beta1"), Some("18.0.0-beta1"));
    }

    #[test]
    fn an_unknown_version_comes_with_those_like_it() {
        let near = unknown(Product::Postgres, "17.99", &versions());
        assert!(near.help().unwrap().contains("17.2.0, 17.10.0;"));
        let far = unknown(Product::Postgres, "9", &versions());
        assert!(far.help().unwrap().contains("16.4.0, 17.10.0;"));
    }

    #[test]
    fn mavens_list_is_read() {
        let list = "<versions>\n <version>1.0</version>\n<version> 2.0 </version></versions>";
        assert_eq!(versions_in(list), ["1.0", "2.0"]);
        assert!(versions_in("").is_empty());
    }
}
