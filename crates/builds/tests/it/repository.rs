//! A repository with a small library, and a store, for one test.

use std::path::{Path, PathBuf};
use std::process::Command;

use builds::{Build, Commit, Recipe, Repository, Store};

/// A repository, a store and a folder that recipes may write to.
pub struct RecipePlace {
    folder: tempfile::TempDir,
    pub store: Store,
}

/// The source of the library: any library is taken for RocksDB's.
const LIBRARY: &str = "int level(void) { return LEVEL; }\n";

/// A recipe that notes each of its runs outside of the source.
pub const MAKE: &str = "sh build.sh";

const SCRIPT: &str = "set -e\ncc -shared -fPIC -o librocksdb.so.9.9.3 library.c\n\
    ln -s librocksdb.so.9.9.3 librocksdb.so\n";

impl RecipePlace {
    /// Returns a repository with one commit, which builds.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Another user runs recipes for root.
        set_mode(folder.path(), 0o755);
        let store = Store::at(folder.path().join("builds"));
        let place = Self { folder, store };
        fs_err::create_dir(place.path("noted")).unwrap();
        set_mode(&place.path("noted"), 0o777);
        place.git(&["init", "--quiet", "--initial-branch=main", "repository"], "");
        place.commit("level 1", &[("build.sh", SCRIPT), ("library.c", &library(1))]);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn repository_path(&self) -> PathBuf {
        self.path("repository")
    }

    pub fn repository(&self) -> Repository {
        Repository::open(&self.repository_path()).unwrap()
    }

    /// Runs git in the folder `name` of the place. Returns what it printed.
    pub fn git(&self, arguments: &[&str], name: &str) -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.path(name)).args(arguments);
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "A. U. Thor");
            command.env(format!("GIT_{who}_EMAIL"), "author@example.com");
        }
        let output = command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Commits files, and returns the commit.
    pub fn commit(&self, subject: &str, files: &[(&str, &str)]) -> Commit {
        for (name, text) in files {
            fs_err::write(self.repository_path().join(name), text).unwrap();
        }
        self.git(&["add", "--all"], "repository");
        self.git(&["commit", "--quiet", "--allow-empty", "-m", subject], "repository");
        self.repository().resolve("HEAD").unwrap()
    }

    pub fn recipe(&self) -> Recipe {
        Recipe {
            engine: "rocksdb".into(),
            repository: self.repository(),
            make: MAKE.into(),
            gives: "librocksdb.so".into(),
            patch: None,
        }
    }

    pub fn build(&self, recipe: &Recipe, commit: &Commit) -> anyhow::Result<Build> {
        recipe.build(&self.store, commit, &|_| {}, &|| false)
    }

    /// Returns the names of all that is in the store but downloads and the lock, sorted.
    pub fn stored(&self) -> Vec<String> {
        let entries = fs_err::read_dir(self.store.root()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.retain(|name| name != "downloads" && name != ".lock");
        names.sort();
        names
    }
}

/// Returns the source of a library of this level.
pub fn library(level: u32) -> String {
    LIBRARY.replace("LEVEL", &level.to_string())
}

pub fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs_err::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}
