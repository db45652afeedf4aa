//! Downloads Java artifacts with Maven's own client, into a repository in the store.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::client::{self, ClientOutput};
use super::unpack;
use crate::version::numbers;

/// The goal of Maven's plugin that fetches a single artifact.
const GET: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get";

const INSTALL: &str = "install Maven (Debian: `apt-get install maven`), or use `debian:SUITE/PACKAGE`, \
which needs only `apt-get` and `dpkg-deb`";

/// An artifact, as Maven names it.
#[derive(Debug)]
pub struct Artifact {
    pub group: &'static str,
    pub name: &'static str,
    /// The file name's extension, with Maven's classifier if there is one: `jar`,
    /// `zip:linux-amd64`.
    pub kind: &'static str,
    pub contents: Contents,
}

/// The contents of an artifact.
#[derive(Debug)]
pub enum Contents {
    /// In a compressed archive whose name has this suffix.
    Archive(&'static str),
    /// The files themselves. The function returns a file's path below the build's root, or `None`
    /// to skip the file.
    Files(fn(&str) -> Option<&str>),
}

impl Artifact {
    /// Unpacks the engine's files from a downloaded archive.
    pub fn unpack(&self, archive: &Path, root: &Path) -> anyhow::Result<()> {
        match &self.contents {
            Contents::Archive(suffix) => unpack::archive_in_jar(archive, root, suffix),
            Contents::Files(select) => unpack::jar(archive, root, select),
        }
    }

    pub(super) fn coordinates(&self, version: &str) -> String {
        format!("{}:{}:{version}:{}", self.group, self.name, self.kind)
    }

    /// Returns the folder of the artifact's versions within a repository.
    fn folder(&self) -> PathBuf {
        Path::new(&self.group.replace('.', "/")).join(self.name)
    }

    /// Returns the artifact's file within a repository.
    pub(super) fn file(&self, version: &str) -> PathBuf {
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
}

impl<'a> Maven<'a> {
    pub fn new(downloads: &'a Path) -> Self {
        Self { downloads }
    }

    /// Downloads a version of an artifact. Returns its archive, or what the client printed when it
    /// failed.
    pub fn fetch(
        &self,
        artifact: &Artifact,
        version: &str,
    ) -> anyhow::Result<Result<PathBuf, ClientOutput>> {
        let output = self.get(&artifact.coordinates(version))?;
        let archive = self.downloaded(artifact, version).filter(|_| output.is_success);
        Ok(archive.ok_or(output))
    }

    /// Returns all versions of an artifact, the oldest first, or what the client printed when it
    /// failed.
    pub fn versions(
        &self,
        artifact: &Artifact,
    ) -> anyhow::Result<Result<Vec<String>, ClientOutput>> {
        let output = self.get(&format!("{}:{}:LATEST:pom", artifact.group, artifact.name))?;
        let versions = self.listed_versions(&artifact.folder());
        Ok(if versions.is_empty() { Err(output) } else { Ok(versions) })
    }

    /// Returns the file with the output of the client.
    pub fn log(&self) -> PathBuf {
        self.downloads.join("mvn.log")
    }

    fn repository(&self) -> PathBuf {
        self.downloads.join("maven")
    }

    /// Returns the archive of a version if it was downloaded: until it is complete, Maven uses
    /// another file name.
    pub fn downloaded(&self, artifact: &Artifact, version: &str) -> Option<PathBuf> {
        Some(self.repository().join(artifact.file(version))).filter(|file| file.is_file())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mavens_list_is_parsed() {
        let list = "<versions>\n <version>1.0</version>\n<version> 2.0 </version></versions>";
        assert_eq!(versions_in(list), ["1.0", "2.0"]);
        assert!(versions_in("").is_empty());
    }
}
