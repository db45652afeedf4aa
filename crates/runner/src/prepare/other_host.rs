//! The machine on which a plan will run, from what `assay host --format json` printed there.

use std::io::Read as _;
use std::path::Path;

use record::{Host, open_regular};
use serde::Deserialize;
use words::parse_cpus;

use crate::ground::failure::UsageError;

/// The largest file that is read.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The most processors that a file may claim.
const CPUS_MAX: u32 = 65_536;

/// The facts that a plan may need of a machine that is not this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherHost {
    /// The size of the memory.
    pub memory_bytes: u64,
    /// The numbers of the processors that are online.
    pub cpus: Vec<u32>,
    /// The free space of the disk for databases; `None` if it is unknown.
    pub free_bytes: Option<u64>,
}

/// The part of the file that is read.
#[derive(Deserialize)]
struct HostFile {
    host: Host,
}

impl OtherHost {
    /// Reads a description of a machine.
    ///
    /// # Errors
    /// The file cannot be read, or is not what `assay host --format json` prints.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let refused = |why: String| {
            let message = format!("`{}` does not describe a machine: {why}", path.display());
            let help =
                "give a file with what `assay host --format json DIR` prints on that machine";
            anyhow::Error::from(UsageError::new(message, Some(help.into())))
        };

        let mut text = String::new();
        let file = open_regular(path).map_err(|error| refused(error.to_string()))?;
        let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
        read.map_err(|error| refused(error.to_string()))?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(refused(format!("it is larger than {} MiB", FILE_BYTES_MAX >> 20)));
        }

        let parsed: HostFile =
            serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
        Self::of(&parsed.host).map_err(|why| refused(why.to_owned()))
    }

    fn of(host: &Host) -> Result<Self, &'static str> {
        let count = host.cpu_count;
        if count == 0 || count > CPUS_MAX || host.memory_total_bytes == 0 {
            return Err("it does not say how many processors and how much memory there are");
        }

        // Descriptions by earlier versions only have their number.
        let listed = host.fact("cpu_online_list").and_then(parse_cpus);
        Ok(Self {
            memory_bytes: host.memory_total_bytes,
            cpus: listed.unwrap_or_else(|| (0..count).collect()),
            free_bytes: host.fact("data_fs_free_bytes").and_then(|bytes| bytes.parse().ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<OtherHost> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.json");
        fs_err::write(&path, text).unwrap();
        OtherHost::read(&path)
    }

    #[test]
    fn a_description_gives_memory_processors_and_free_space() {
        let facts = "[[\"cpu_online_list\", \"0-1,4\"], [\"data_fs_free_bytes\", \"9000\"]]";
        let text = format!(
            "{{\"host\": {{\"facts\": {facts}, \"cpu_count\": 3, \"memory_total_bytes\": 64}}}}"
        );
        let host = read(&text).unwrap();
        let expected = OtherHost { memory_bytes: 64, cpus: vec![0, 1, 4], free_bytes: Some(9000) };
        assert_eq!(host, expected);

        // Without the list, the processors are the first ones.
        let host = read(&text.replace("cpu_online_list", "x").replace("data_fs", "y")).unwrap();
        assert_eq!((host.cpus, host.free_bytes), (vec![0, 1, 2], None));
    }

    #[test]
    fn other_files_are_refused() {
        for text in [
            "",
            "{}",
            "[1]",
            "{\"host\": {\"facts\": [], \"cpu_count\": 0, \"memory_total_bytes\": 64}}",
            "{\"host\": {\"facts\": [], \"cpu_count\": 4000000000, \"memory_total_bytes\": 64}}",
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains("does not describe a machine"), "{text}: {error}");
        }
        assert!(OtherHost::read(Path::new("/dev/zero")).is_err());
    }
}
