//! The manifest of a kept database: what made it, what is known of it, and its files.

use std::io::Write as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use builds::hash;
use record::Setting;
use serde::{Deserialize, Serialize};
use workload::DataState;

use super::key::{FORMAT, Key, KeyPart};
use crate::ground::time::unix_now_ns;

/// The file with the manifest.
const FILE: &str = "manifest.json";

/// The largest manifest that is read.
const BYTES_MAX: u64 = 256 << 20;

/// A file of a kept database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptFile {
    /// The path, relative to the database.
    pub path: PathBuf,
    /// The size.
    pub bytes: u64,
    /// The SHA-256 of the contents in hexadecimal.
    pub sha256: String,
}

/// `manifest.json`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this format.
    pub format: u32,
    /// The SHA-256 of the key in hexadecimal.
    pub fingerprint: String,
    /// All that made the database.
    pub key: Vec<KeyPart>,
    /// The time at which it was kept.
    pub made_unix_ns: u64,
    /// The run whose cell made it.
    pub made_by: String,
    /// The number of first steps that made it.
    pub steps: u32,
    /// The last of these steps; empty in earlier manifests.
    #[serde(default)]
    pub after_step: String,
    /// The workload's knowledge of it.
    pub state: DataState,
    /// The engine's settings during these steps.
    pub load_settings: Vec<Setting>,
    /// The files, sorted by path.
    pub files: Vec<KeptFile>,
}

/// The part of a manifest that the cell knows that made the database.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(crate) made_by: String,
    pub(crate) steps: u32,
    pub(crate) after_step: String,
    pub(crate) state: DataState,
    pub(crate) load_settings: Vec<Setting>,
}

impl Contents {
    /// Returns the manifest of the database in the directory `data`.
    pub(super) fn manifest_of(self, key: &Key, data: &Path) -> anyhow::Result<Manifest> {
        let mut files = Vec::new();
        for file in list(data)? {
            let (bytes, sha256) = hash::of_file(&data.join(&file.path))?;
            files.push(KeptFile { path: file.path, bytes, sha256 });
        }

        // The copies that servers use need the memory more.
        engine::set_page_cache(data, own_uid(), false)?;

        Ok(Manifest {
            format: FORMAT,
            fingerprint: key.fingerprint(),
            key: key.parts.clone(),
            made_unix_ns: unix_now_ns(),
            made_by: self.made_by,
            steps: self.steps,
            after_step: self.after_step,
            state: self.state,
            load_settings: self.load_settings,
            files,
        })
    }
}

impl Manifest {
    /// Returns the size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns a part of the key.
    pub fn part(&self, name: &str) -> Option<&str> {
        let part = self.key.iter().find(|part| part.name == name)?;
        Some(&part.value)
    }

    /// Returns the time since the database was kept.
    pub fn age(&self) -> Duration {
        let made = UNIX_EPOCH + Duration::from_nanos(self.made_unix_ns);
        SystemTime::now().duration_since(made).unwrap_or_default()
    }

    /// Returns what made the database in words: `insert, 20000 rows, 1 clients, seed 1, after l.x`.
    pub fn workload_text(&self) -> String {
        let mut text = self.part("workload").unwrap_or("?").to_owned();
        for name in ["keys", "rows", "clients"] {
            if let Some(value) = self.part(name) {
                text += &format!(", {value} {name}");
            }
        }

        text += &format!(", seed {}", self.part("seed").unwrap_or("?"));
        if !self.after_step.is_empty() {
            text += &format!(", after {}", self.after_step);
        }
        text
    }

    /// Returns the options of the config that loaded the database, in words; `-` without any.
    pub fn config_text(&self) -> String {
        let mut options = Vec::new();
        for part in &self.key {
            if let Some(option) = part.name.strip_prefix("config.") {
                options.push(format!("{option}={}", part.value));
            }
        }

        if options.is_empty() { "-".to_owned() } else { options.join(" ") }
    }

    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let file = record::open_regular(&path)
            .with_context(|| format!("the database in `{}` has no manifest", folder.display()))?;
        let limited = std::io::BufReader::new(std::io::Read::take(file, BYTES_MAX));
        let manifest: Self = serde_json::from_reader(limited)
            .with_context(|| format!("`{}` is damaged", path.display()))?;

        if manifest.format != FORMAT {
            bail!("`{}` has the format of another version of assay", path.display());
        }

        let is_inside = |file: &KeptFile| {
            file.path.components().all(|part| matches!(part, Component::Normal(_)))
        };
        if !manifest.files.iter().all(is_inside) {
            bail!("`{}` is damaged: it lists a file elsewhere", path.display());
        }

        Ok(manifest)
    }

    /// Writes the manifest, and makes it durable.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let mut file = fs_err::File::create_new(folder.join(FILE))?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.sync_all()?;
        Ok(super::sync_directory(folder)?)
    }

    /// Checks that the directory has exactly these files, in their sizes.
    pub(super) fn compare_sizes(&self, data: &Path) -> anyhow::Result<()> {
        let found = list(data)?;
        let mut listed = self.files.iter();
        for file in &found {
            match listed.next() {
                Some(known) if known.path == file.path && known.bytes == file.bytes => {}
                _ => bail!("`{}` is not as it was kept", data.join(&file.path).display()),
            }
        }

        match listed.next() {
            None => Ok(()),
            Some(missing) => bail!("`{}` is missing", data.join(&missing.path).display()),
        }
    }

    /// Checks the contents of all files.
    pub(super) fn compare_contents(&self, data: &Path) -> anyhow::Result<()> {
        self.compare_sizes(data)?;
        for file in &self.files {
            let path = data.join(&file.path);
            let (_, sha256) = hash::of_file(&path)?;
            if sha256 != file.sha256 {
                bail!("`{}` has changed", path.display());
            }
        }

        Ok(())
    }
}

fn list(data: &Path) -> anyhow::Result<Vec<engine::DatabaseFile>> {
    Ok(engine::list_database(data, own_uid())?)
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use workload::kv::KnownKeys;

    use super::*;

    #[test]
    fn a_state_of_keys_is_written_as_in_earlier_manifests() {
        let text = r#"{"KeyValue":{"keys":5,"load_step":1}}"#;
        let state = DataState::KeyValue(KnownKeys { keys: 5, load_step: 1, writes: Vec::new() });
        assert_eq!(serde_json::to_string(&state).unwrap(), text);
        assert_eq!(serde_json::from_str::<DataState>(text).unwrap(), state);
    }
}
